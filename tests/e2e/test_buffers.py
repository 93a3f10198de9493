"""Shuffles fill and empty, tasks align and spill: as Spark's event log has it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from streamgauge import names
from tests.e2e.attempts import FILES, driver, run
from tests.e2e.conftest import Rest, eventually, number
from tests.e2e.event_log import EventLog
from tests.e2e.figures import settings
from tests.e2e.test_exact import SCHEMA, write

pytestmark = pytest.mark.spark

MS_IN_NS = 1_000_000
FLUTTER_NS = MS_IN_NS
"""By how much steady times differ from Spark's own, which are whole milliseconds of another clock."""

SIZES = (4, 4, 4, 4, 4, 60)
"""Rows of each file, each of which a task of its own reads: the last one is the skewed one."""

SLEEP = "java_method('java.lang.Thread', 'sleep', {}) IS NOT NULL"

TOLD = (
    names.OUTPUT_BUFFERS,
    names.INPUT_BUFFERS,
    names.OLD_BUFFERS,
    names.CHECKPOINT_ALIGNMENT_TIME,
    names.CHECKPOINT_START_DELAY,
    names.NUM_BYTES_SPILLED,
)
"""What is asked for, by parts of its name."""

Poll = dict[str, list[float]]
"""Metric → a value a subtask."""


def poll(rest: Rest, jid: str, vertex: str) -> Poll:
    # Few enough for one answer, so that all are of one moment.
    columns = rest.columns(jid, vertex, lambda metric: any(each in metric for each in TOLD))
    return {metric: [number(column[each]) for each in sorted(column)] for metric, column in columns.items()}


def watch(rest: Rest, name: str, going_on: Callable[[], Any]) -> tuple[str, list[tuple[Poll, Poll]]]:
    """Look at both vertices of a job while something goes on, and once more; return its id and what was seen."""
    eventually(lambda: (job := rest.job(name)) and len(rest.get(f"/jobs/{job['jid']}")["vertices"]) == 2)
    job = rest.job(name)
    assert job is not None
    source, reader = [each["id"] for each in rest.get(f"/jobs/{job['jid']}")["vertices"]]
    seen = []
    while going_on():
        seen.append((poll(rest, job["jid"], source), poll(rest, job["jid"], reader)))
        time.sleep(0.2)
    return job["jid"], seen


def values(seen: list[Poll], metric: str) -> list[list[float]]:
    return [each[metric] for each in seen if metric in each]


def start(frame: DataFrame, name: str, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.format("noop").outputMode("update").queryName(name)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


@pytest.fixture(scope="module")
def skewed(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EventLog, list[Poll], list[Poll], dict[str, Any]]:
    """A batch whose last map task takes 3 s and more, the others a fifth; then three readers on two cores."""
    folder, first = tmp_path_factory.mktemp("skewed"), 0
    for file, size in enumerate(SIZES):
        write(folder / "in", file, range(first, first + size))
        first += size
    # Less than a file's opening is reckoned at: every file is a partition of its own.
    with settings(attached, files__maxPartitionBytes="1m"):
        slow = attached.readStream.schema(SCHEMA).json(str(folder / "in")).where(SLEEP.format("50L + k * 0L"))
        # Of these keys each of the three readers has one at least: none is through at once.
        counted = slow.groupBy((f.col("k") + 11).alias("k")).count().where(SLEEP.format("4000L + count * 0L"))
        query = start(counted, "skewed", folder / "checkpoint")
        jid, seen = watch(rest, "skewed", lambda: query.isActive)
    log = eventually(lambda: (found := EventLog(event_log, query.runId)).ended and found)
    eventually(lambda: (job := rest.job("skewed")) and job["state"] == "FINISHED")
    source, reader = [each["id"] for each in rest.get(f"/jobs/{jid}")["vertices"]]
    seen.append((poll(rest, jid, source), poll(rest, jid, reader)))
    return log, [each for each, _ in seen], [each for _, each in seen], query.recentProgress[0]


def test_blocks_wait_for_readers_and_are_gone_in_the_end(skewed: Any) -> None:
    """One for each reader from the task's finish on; none while none has finished, and none once all have read."""
    _, source, _, _ = skewed
    lengths = values(source, names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH)
    assert lengths == values(source, names.OLD_BUFFERS + names.OUTPUT_QUEUE_LENGTH)
    steps = [told for told, _ in groupby(lengths)]
    whole = steps.index([3] * 6)
    assert any({0, 3} == set(told) for told in steps[:whole]), steps
    assert all({0, 3} >= set(told) for told in steps[:whole]), steps
    assert all(now >= then for one, other in pairwise(steps[: whole + 1]) for then, now in zip(one, other, strict=True))
    assert steps[whole:] == [[left] * 6 for left in sorted({told[0] for told in steps[whole:]}, reverse=True)]
    assert steps[-1] == [0] * 6


def test_bytes_that_wait_are_those_that_were_written(skewed: Any) -> None:
    """When all have written and nobody has read, to the byte; never more, and none in the end."""
    log, source, _, _ = skewed
    written = log.rows("Exchange", "shuffle bytes written")
    sizes = values(source, names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_SIZE)
    assert [written[partition] for partition in range(len(SIZES))] in sizes
    assert all(told <= written[partition] for each in sizes for partition, told in enumerate(each))
    assert sizes[-1] == [0] * len(SIZES)


def test_in_local_mode_nothing_is_remote(skewed: Any) -> None:
    """One executor: no block is on another one."""
    _, _, reader, _ = skewed
    for metric in (names.INPUT_QUEUE_LENGTH, names.INPUT_QUEUE_SIZE, names.IN_POOL_USAGE):
        told = values(reader, names.INPUT_BUFFERS + metric)
        assert told
        assert not any(map(any, told))


def test_alignment_is_what_finish_times_say(skewed: Any) -> None:
    """Of every reader, growing while the skewed task runs; of the source there is none."""
    log, source, reader, _ = skewed
    finishes = [attempt.finish_ms for attempt in log.stage(0).values()]
    assert len(finishes) == len(SIZES)
    aligned = values(reader, names.CHECKPOINT_ALIGNMENT_TIME)
    expected = (max(finishes) - min(finishes)) * MS_IN_NS
    assert aligned[-1] == pytest.approx([expected] * 3, rel=0, abs=FLUTTER_NS)
    assert aligned[-1][0] > 1000 * MS_IN_NS
    assert not values(source, names.CHECKPOINT_ALIGNMENT_TIME)


def test_start_delay_is_from_the_trigger_to_the_first_launch(skewed: Any) -> None:
    """Of both vertices, from the progress event's own timestamp."""
    log, source, reader, progress = skewed
    begin_ms = _milliseconds(progress["timestamp"])
    for seen, place in ((source, 0), (reader, 1)):
        first_ms = min(attempt.launch_ms for attempt in log.stage(place).values())
        told = values(seen, names.CHECKPOINT_START_DELAY)[-1]
        assert told == pytest.approx([(first_ms - begin_ms) * MS_IN_NS] * len(told), rel=0, abs=FLUTTER_NS)


def test_memory_of_a_slot_is_used(skewed: Any) -> None:
    """By the hash aggregation on both sides; no slot has more than its share."""
    for seen in skewed[1:3]:
        told = values(seen, names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE)[-1]
        assert all(0 < usage <= 1 for usage in told)


def test_executor_tells_what_execution_memory_is_left(skewed: Any, attached: SparkSession, rest: Rest) -> None:
    """Heartbeats tell what is used; with what is left it is all that there is, in the metrics as in the digest."""
    executor = f"{attached.sparkContext.applicationId}-driver"
    asked = [names.SHUFFLE_MEMORY_USED, names.SHUFFLE_MEMORY_AVAILABLE, names.SHUFFLE_MEMORY_TOTAL, names.MANAGED_TOTAL]

    def told() -> dict[str, int]:
        found = rest.get(f"/taskmanagers/{executor}/metrics?get={','.join(asked)}")
        return {each["id"]: int(each["value"]) for each in found}

    found = eventually(lambda: len(told()) == len(asked) and told())
    assert found[names.SHUFFLE_MEMORY_TOTAL] == found[names.MANAGED_TOTAL] > 0
    assert found[names.SHUFFLE_MEMORY_USED] + found[names.SHUFFLE_MEMORY_AVAILABLE] == found[names.MANAGED_TOTAL]
    digest = rest.get(f"/taskmanagers/{executor}")["metrics"]
    assert digest["nettyShuffleMemoryTotal"] == found[names.SHUFFLE_MEMORY_TOTAL]
    assert digest["nettyShuffleMemoryUsed"] + digest["nettyShuffleMemoryAvailable"] == digest["nettyShuffleMemoryTotal"]


def test_what_tasks_spill_is_counted(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> None:
    """A window whose rows do not fit: as many bytes, subtask by subtask, as Spark's task metrics have."""
    write(tmp_path / "in", 0, range(4000))

    def ranked(frame: DataFrame, _: int) -> None:
        whole = "sum(id) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        frame.withColumn("total", f.expr(whole)).write.format("noop").mode("overwrite").save()

    frame = attached.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    limits = {
        "adaptive__coalescePartitions__enabled": "false",
        "windowExec__buffer__in__memory__threshold": "10",
        "windowExec__buffer__spill__threshold": "100",
    }
    with settings(attached, **limits):
        writer = frame.writeStream.foreachBatch(ranked).queryName("spilling")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination(60)
    log = eventually(lambda: (found := EventLog(event_log, query.runId)).ended and found)
    eventually(lambda: (job := rest.job("spilling")) and job["state"] == "FINISHED")
    job = rest.job("spilling")
    assert job is not None
    vertices = rest.get(f"/jobs/{job['jid']}")["vertices"]
    told = {each["name"]: poll(rest, job["jid"], each["id"]).get(names.NUM_BYTES_SPILLED, []) for each in vertices}
    spilled = [log.stage(1)[partition].spilled_bytes for partition in range(3)]
    assert sum(spilled) > 0
    assert [column for name, column in told.items() if "Window" in name] == [spilled], told
    assert not any(any(column) for name, column in told.items() if "Window" not in name), told


def test_blocks_on_other_executors_wait_for_readers(service: str, rest: Rest, tmp_path: Path) -> None:
    """Before a reader that has a place those of the other executor, before one that has none all that there are."""
    with driver(service, "cluster", tmp_path) as cluster:
        run_id = run(cluster, "slow_readers")
        job = partial(rest.job, "slow_readers")
        _, seen = watch(rest, "slow_readers", lambda: (found := job()) and found["state"] != "FINISHED")
        log = eventually(partial(cluster.log, run_id))
        cluster.end()
    writers, readers = log.stage(0), log.stage(1)
    lengths = values([each for _, each in seen], names.INPUT_BUFFERS + names.INPUT_QUEUE_LENGTH)
    remote = [
        sum(each.executor != reader.executor for each in writers.values()) for _, reader in sorted(readers.items())
    ]
    last = max(readers, key=lambda partition: readers[partition].launch_ms)
    waiting = [len(FILES) if partition == last else blocks for partition, blocks in enumerate(remote)]
    assert waiting in lengths
    assert any(map(any, values([each for _, each in seen], names.INPUT_BUFFERS + names.INPUT_QUEUE_SIZE)))
    alone = [remote[last] if partition == last else 0 for partition in range(3)]
    assert alone in lengths


def _milliseconds(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)
