"""Micro-batches as checkpoints: figure by figure what Spark's progress, its event log and its files say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from spark_hooks.checkpoints import STOPPED
from tests.e2e.conftest import Rest, eventually, told
from tests.e2e.event_log import EventLog, logged
from tests.e2e.test_exact import SCHEMA, write
from tests.e2e.test_states import SLOW

pytestmark = pytest.mark.spark

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
NO_WATERMARK = str(-(2**63))

Table = tuple[tuple[int, int, int], ...]
"""(partition, launch, finish) of every task of a stage that won."""


def read(session: SparkSession, folder: Path, files: int = 4) -> DataFrame:
    """Files of 40 rows, a file a batch; event time goes on by 40 s a file."""
    for file in range(files):
        write(folder / "in", file, range(40 * file, 40 * file + 40))
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def counted(stream: DataFrame) -> DataFrame:
    return stream.withWatermark("t", "10 seconds").groupBy(f.window("t", "10 seconds"), "k").count()


def start(stream: DataFrame, name: str, folder: Path, **trigger: Any) -> StreamingQuery:
    writer = stream.writeStream.format("noop").queryName(name).option("checkpointLocation", str(folder / "state"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


@contextmanager
def setting(session: SparkSession, **settings: str) -> Iterator[None]:
    """Settings of Spark's streaming SQL, by their last words, while a query starts."""
    for key, value in settings.items():
        session.conf.set(f"spark.sql.streaming.{key}", value)
    try:
        yield
    finally:
        for key in settings:
            session.conf.unset(f"spark.sql.streaming.{key}")


def progress_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """Of every micro-batch, newest first, without triggers that found nothing to do."""
    found = [json.loads(each.json) if hasattr(each, "json") else each for each in query.recentProgress]
    return [each for each in reversed(found) if "addBatch" in each["durationMs"]]


def milliseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)


def stages(folder: Path, run_id: str) -> dict[int, set[Table]]:
    """Batch → the winners of each of its stages, from the event log; no task of these tests runs twice."""
    events = logged(folder, run_id)
    batch_of = {
        stage: int(event["Properties"]["streaming.sql.batchId"])
        for event in events
        if event["Event"] == "SparkListenerJobStart" and event["Properties"].get("spark.jobGroup.id") == run_id
        for stage in event["Stage IDs"]
    }
    tasks: dict[int, list[tuple[int, int, int]]] = {}
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in batch_of:
            assert event["Task End Reason"]["Reason"] == "Success"
            info = event["Task Info"]
            row = (info["Partition ID"], info["Launch Time"], info["Finish Time"])
            tasks.setdefault(event["Stage ID"], []).append(row)
    found: dict[int, set[Table]] = {}
    for stage, rows in tasks.items():
        found.setdefault(batch_of[stage], set()).add(tuple(sorted(rows)))
    return found


def subtasks(rest: Rest, jid: str, batch: int) -> dict[str, list[dict[str, Any]]]:
    """Vertex → its subtasks in a batch, of those that had any, from the details of the batch and of its vertices."""
    path = f"/jobs/{jid}/checkpoints/details/{batch}"
    tasks = rest.get(path)["tasks"]
    found = {vertex: rest.get(f"{path}/subtasks/{vertex}")["subtasks"] for vertex in tasks}
    assert {vertex: len(rows) for vertex, rows in found.items()} == {
        vertex: told["num_subtasks"] for vertex, told in tasks.items()
    }
    return {vertex: rows for vertex, rows in found.items() if rows}


def test_batches_are_as_spark_tells_them(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A stateful query with a watermark: times, phases, state, rows; and each task's times, from the event log."""
    name = request.node.name
    query = start(counted(read(attached, tmp_path)), name, tmp_path)
    query.awaitTermination(90)
    job = told(rest, name, "FINISHED")
    jid, oracle = job["jid"], progress_of(query)
    body = rest.get(f"/jobs/{jid}/checkpoints")
    assert body["counts"] == {"restored": 0, "total": 5, "in_progress": 0, "completed": 5, "failed": 0}
    assert [each["id"] for each in body["history"]] == [each["batchId"] for each in oracle] == [4, 3, 2, 1, 0]
    assert body["latest"] == {"completed": body["history"][0], "savepoint": None, "failed": None, "restored": None}
    for batch, progress in zip(body["history"], oracle, strict=True):
        trigger_ms, duration_ms = milliseconds(progress["timestamp"]), progress["durationMs"]["triggerExecution"]
        assert (batch["trigger_timestamp"], batch["end_to_end_duration"]) == (trigger_ms, duration_ms)
        assert batch["latest_ack_timestamp"] == trigger_ms + duration_ms
        assert batch["state_size"] == sum(each["memoryUsedBytes"] for each in progress["stateOperators"])
        assert batch["checkpointed_size"] == -1
        additions = batch["streamgauge"]
        assert additions["phases"] == progress["durationMs"]
        assert (additions["input_rows"], additions["output_rows"]) == (
            progress["numInputRows"],
            progress["sink"]["numOutputRows"],
        )
    for figure, values in {
        "end_to_end_duration": [each["durationMs"]["triggerExecution"] for each in oracle],
        "state_size": [each["stateOperators"][0]["memoryUsedBytes"] for each in oracle],
    }.items():
        summary = body["summary"][figure]
        assert [summary[word] for word in ("min", "max", "avg", "p50")] == [
            min(values),
            max(values),
            sum(values) // 5,
            sorted(values)[2],
        ]
    eventually(lambda: EventLog(event_log, str(query.runId)).ended)
    truth = stages(event_log, str(query.runId))
    for batch, progress in zip(body["history"], oracle, strict=True):
        found = subtasks(rest, jid, batch["id"])
        tables = {
            tuple(
                (each["index"], batch["trigger_timestamp"] + each["start_delay"], each["ack_timestamp"])
                for each in rows
            )
            for rows in found.values()
        }
        assert tables == truth[batch["id"]]
        assert batch["num_subtasks"] == batch["num_acknowledged_subtasks"] == sum(map(len, tables))
        rows = [each for vertex in found.values() for each in vertex]
        state = progress["stateOperators"][0]
        assert sum(each["state_size"] for each in rows) == state["memoryUsedBytes"]
        assert sum(each["checkpoint"]["sync"] for each in rows) == state["commitTimeMs"]


def test_watermark_is_that_of_the_latest_batch(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On every subtask of a vertex that has inputs, and none on a source."""
    name = request.node.name
    query = start(counted(read(attached, tmp_path)), name, tmp_path)
    query.awaitTermination(90)
    job = told(rest, name, "FINISHED")
    watermark = milliseconds(progress_of(query)[0]["eventTime"]["watermark"])
    source, reader = (rest.columns(job["jid"], vertex["id"]) for vertex in job["vertices"])
    assert reader["currentInputWatermark"] == dict.fromkeys(range(3), str(watermark))
    assert "currentInputWatermark" not in source


def test_query_without_a_watermark_has_flinks_word_for_none(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Long.MIN_VALUE; a stateless query's checkpoints have no state."""
    name = request.node.name
    start(read(attached, tmp_path, 1).repartition(2), name, tmp_path).awaitTermination(90)
    job = told(rest, name, "FINISHED")
    columns = rest.columns(job["jid"], job["vertices"][-1]["id"])
    assert set(columns["currentInputWatermark"].values()) == {NO_WATERMARK}
    [batch] = rest.get(f"/jobs/{job['jid']}/checkpoints")["history"]
    assert (batch["state_size"], batch["checkpointed_size"]) == (0, 0)


def test_rocksdb_tells_what_it_wrote(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Bytes copied to the checkpoint at each commit; Spark 3.5 does not say if they are of an older snapshot."""
    name = request.node.name
    with setting(attached, **{"stateStore.providerClass": ROCKSDB}):
        query = start(counted(read(attached, tmp_path)), name, tmp_path)
        query.awaitTermination(90)
    body = rest.get(f"/jobs/{told(rest, name, 'FINISHED')['jid']}/checkpoints")
    written = [each["stateOperators"][0]["customMetrics"]["rocksdbBytesCopied"] for each in progress_of(query)]
    assert min(written) > 0
    config = rest.get(f"/jobs/{told(rest, name, 'FINISHED')['jid']}/checkpoints/config")
    assert (config["state_backend"], config["state_changelog_enabled"]) == ("RocksDBStateStoreProvider", False)
    expected = [-1] * len(written) if attached.version.startswith("3.5") else written
    assert [each["checkpointed_size"] for each in body["history"]] == expected
    assert body["summary"]["checkpointed_size"]["max"] == max(*expected, 0)


def test_change_log_leaves_written_bytes_unknown(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """RocksDB tells nothing of its change log, and repeats the figures of the snapshot before."""
    name = request.node.name
    with setting(
        attached,
        **{"stateStore.providerClass": ROCKSDB, "stateStore.rocksdb.changelogCheckpointing.enabled": "true"},
    ):
        query = start(counted(read(attached, tmp_path, 2)), name, tmp_path)
        query.awaitTermination(90)
    body = rest.get(f"/jobs/{told(rest, name, 'FINISHED')['jid']}/checkpoints")
    assert {each["checkpointed_size"] for each in body["history"]} == {-1}
    assert body["summary"]["checkpointed_size"]["p50"] == "NaN"


def test_failed_batch_and_the_run_after_it(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The failure's words; the next run restores the last committed batch, and runs the broken one again."""
    name = request.node.name
    broken = f.expr("IF(id = 79, raise_error('row 79 is one too many'), id)")
    query = start(read(attached, tmp_path, 3).select(broken), name, tmp_path)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(60)
    jid = told(rest, name, "FAILED")["jid"]
    body = rest.get(f"/jobs/{jid}/checkpoints")
    assert body["counts"] == {"restored": 0, "total": 2, "in_progress": 0, "completed": 1, "failed": 1}
    failed = body["latest"]["failed"]
    assert failed == body["history"][0]
    assert (failed["id"], failed["className"], failed["status"]) == (1, "failed", "FAILED")
    assert "row 79 is one too many" in failed["failure_message"]
    assert failed["failure_timestamp"] == failed["trigger_timestamp"] + failed["end_to_end_duration"]
    assert (failed["num_subtasks"], failed["num_acknowledged_subtasks"]) == (1, 0)
    again = start(read(attached, tmp_path, 3).select("id"), name, tmp_path)
    again.awaitTermination(60)
    body = rest.get(f"/jobs/{told(rest, name, 'FINISHED')['jid']}/checkpoints")
    assert [each["id"] for each in body["history"]] == [each["batchId"] for each in progress_of(again)] == [2, 1]
    restored = body["latest"]["restored"]
    committed = tmp_path / "state" / "commits" / "0"
    assert restored["id"] == 0
    assert restored["external_path"].endswith(str(committed))
    assert committed.exists()
    assert restored["restore_timestamp"] < body["history"][-1]["trigger_timestamp"]
    assert body["counts"]["restored"] == 1


def test_long_batch_is_seen_and_its_stop(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """IN_PROGRESS while its tasks run; broken off by stop() it has failed, with words of ours for the reason."""
    name = request.node.name
    slow = read(attached, tmp_path, 2).where(f"id < 40 OR {SLOW}").repartition(2)
    query = start(slow, name, tmp_path, processingTime="1 second")

    def running() -> Any:
        job = rest.job(name)
        history = rest.get(f"/jobs/{job['jid']}/checkpoints")["history"] if job else []
        return history and history[0]["num_subtasks"] and history[0]["id"] == 1 and history[0]

    batch = eventually(running)
    assert (batch["className"], batch["status"]) == ("in_progress", "IN_PROGRESS")
    assert (batch["num_acknowledged_subtasks"], batch["latest_ack_timestamp"]) == (0, -1)
    [pending] = subtasks(rest, eventually(lambda: rest.job(name))["jid"], 1).values()
    assert pending == [{"className": "pending", "index": 0, "status": "pending_or_failed"}]
    query.stop()
    body = rest.get(f"/jobs/{told(rest, name, 'CANCELED')['jid']}/checkpoints")
    assert body["counts"] == {"restored": 0, "total": 2, "in_progress": 0, "completed": 1, "failed": 1}
    assert body["latest"]["failed"]["failure_message"] == STOPPED
    assert not (tmp_path / "state" / "commits" / "1").exists()


@pytest.mark.parametrize(("retained", "kept"), [("2", {3, 4, 5}), (None, set(range(6)))], ids=["two", "default"])
def test_what_spark_has_deleted_is_discarded(
    attached: SparkSession,
    rest: Rest,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    retained: str | None,
    kept: set[int],
) -> None:
    """When Spark begins a micro-batch it deletes what is older than so many before it; a hundred by default."""
    name = request.node.name
    with setting(attached, **({} if retained is None else {"minBatchesToRetain": retained})):
        start(read(attached, tmp_path, 6).select("id"), name, tmp_path).awaitTermination(90)
    body = rest.get(f"/jobs/{told(rest, name, 'FINISHED')['jid']}/checkpoints")
    there = {batch["id"] for batch in body["history"] if Path(batch["external_path"].removeprefix("file:")).exists()}
    assert there == {batch["id"] for batch in body["history"] if not batch["discarded"]} == kept


def test_config_is_of_the_trigger_and_the_sink(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A sink by foreachBatch is at-least-once; without a place of the user's the checkpoints go with the query."""
    name = request.node.name
    stream = read(attached, tmp_path, 1)
    query = start(stream, name, tmp_path, processingTime="7 seconds")
    writer = stream.writeStream.queryName(f"{name} again").foreachBatch(lambda batch, _: batch.count())
    other = writer.trigger(processingTime="0 seconds").start()
    try:
        for each in (query, other):
            each.processAllAvailable()
        jids = [eventually(lambda each=each: rest.job(each.name))["jid"] for each in (query, other)]
        for jid in jids:
            eventually(lambda jid=jid: rest.get(f"/jobs/{jid}/checkpoints")["counts"]["completed"])
        kept, gone = (rest.get(f"/jobs/{jid}/checkpoints/config") for jid in jids)
    finally:
        query.stop()
        other.stop()
    assert (kept["mode"], kept["interval"]) == ("exactly_once", 7000)
    assert kept["externalization"] == {"enabled": True, "delete_on_cancellation": False}
    assert (gone["mode"], gone["interval"]) == ("at_least_once", 0)
    assert gone["externalization"] == {"enabled": False, "delete_on_cancellation": True}
    told(rest, f"{name} again", "CANCELED")
    [batch] = rest.get(f"/jobs/{jids[1]}/checkpoints")["history"]
    assert batch["discarded"]
    assert not Path(batch["external_path"].removeprefix("file:")).exists()
