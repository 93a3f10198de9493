"""How far sources are behind, against files on disk, event times that are known, and Spark's own progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming import StreamingQuery

from streamgauge import names
from tests.e2e.conftest import Rest, eventually, number
from tests.e2e.topics import topics

pytestmark = pytest.mark.spark

FILES = 5
SCHEMA = "t timestamp, value long"
EVENTS = "2026-11-21T10:00:0{}.000Z"
SLOW = "value > 0 OR java_method('java.lang.Thread', 'sleep', 3000L + value) IS NULL"
"""Each file has one row whose value is 0: what a batch has told stands for three seconds, and pushes come every one."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files with 1, 2, … rows, whose latest event time is that of their number, 10:00:00, 10:00:01, …"""
    for place in range(FILES):
        rows = [json.dumps({"t": EVENTS.format(place), "value": row}) for row in range(place + 1)]
        (tmp_path / f"{place}.json").write_text("\n".join(rows))
        # Read in the order of their times.
        time.sleep(0.01)
    return tmp_path


@contextmanager
def running(frame: DataFrame, name: str, interval: str | None = None) -> Iterator[StreamingQuery]:
    writer = frame.writeStream.queryName(name).format("noop")
    query = (writer.trigger(processingTime=interval) if interval else writer).start()
    try:
        yield query
    finally:
        query.stop()


def batches(query: StreamingQuery) -> list[dict[str, Any]]:
    """The progress of all micro-batches that have ended."""
    return [json.loads(told.json) if not isinstance(told, dict) else told for told in query.recentProgress]


def ahead(told: dict[str, Any], start: str, end: str) -> int:
    """Rows from one offset of its only source to another."""
    one, other = (json.loads(told["sources"][0][each])["flights"] for each in (start, end))
    return sum(other.values()) - sum(one.values())


def read(query: StreamingQuery, count: int) -> Callable[[], bool]:
    return lambda: len([told for told in batches(query) if told["numInputRows"]]) >= count


def source_metrics(rest: Rest, name: str) -> dict[str, dict[int, float]]:
    """'<operator>.<metric>' of a job's source vertices → subtask → value."""
    job = rest.job(name)
    found: dict[str, dict[int, float]] = {}
    for vertex in rest.get(f"/jobs/{job['jid']}")["vertices"] if job else ():
        for metric, values in rest.columns(job["jid"], vertex["id"]).items():
            if metric.startswith("Source__"):
                found[metric] = {subtask: number(value) for subtask, value in values.items()}
    return found


def job_metrics(rest: Rest, name: str) -> dict[str, float]:
    job = rest.job(name)
    assert job is not None
    path = f"/jobs/{job['jid']}/metrics"
    ids = ",".join(metric["id"] for metric in rest.get(path))
    return {metric["id"]: number(metric["value"]) for metric in rest.get(f"{path}?get={ids}")}


def test_unread_files_count_down(attached: SparkSession, rest: Rest, folder: Path) -> None:
    """Of five files, one a batch, four are left at first; when none is, no listing is, and nothing is told."""
    stream = attached.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    metric = f"Source__json.{names.UNREAD_FILES}"
    seen: list[dict[int, float]] = []
    with running(stream.where(SLOW), "unread files") as query:

        def look() -> bool:
            told = source_metrics(rest, "unread files").get(metric)
            if told is not None and told not in seen:
                seen.append(told)
            return read(query, FILES)()

        eventually(look, 90)
        eventually(lambda: metric not in source_metrics(rest, "unread files"))
        left = [len(list(folder.iterdir())) - 1 - told["batchId"] for told in batches(query) if told["numInputRows"]]
        assert not any(name.endswith(names.PENDING_RECORDS) for name in source_metrics(rest, "unread files"))
        assert names.BACKLOG_ROWS not in job_metrics(rest, "unread files")
    assert seen == [{0: float(files)} for files in left[:-1]]
    assert left == [4, 3, 2, 1, 0]


def test_lags_are_those_of_the_rows(attached: SparkSession, rest: Rest, folder: Path) -> None:
    """From the latest event time of the last batch to its trigger and its end; the watermark lags more and more."""
    stream = attached.readStream.schema(SCHEMA).json(str(folder)).withWatermark("t", "1 second")
    with running(stream, "event times") as query:
        eventually(read(query, 1), 60)
        (folder / "more.json").write_text(json.dumps({"t": EVENTS.format(9), "value": 1}))
        eventually(read(query, 2), 60)
        last = [told for told in batches(query) if told["numInputRows"]][-1]
        fetched = parsed(last["timestamp"]) - parsed(last["eventTime"]["max"])
        assert last["eventTime"]["max"] == EVENTS.format(9)
        expected = {names.FETCH_LAG: fetched, names.EMIT_LAG: fetched + last["durationMs"]["triggerExecution"]}

        def told() -> dict[str, float]:
            """What every subtask that has run says."""
            found = {
                name.removeprefix("Source__json."): values
                for name, values in source_metrics(rest, "event times").items()
                if names.NUM_RECORDS_OUT not in name and names.NUM_RECORDS_IN not in name
            }
            assert len({len(values) for values in found.values()}) <= 1
            assert all(len(set(values.values())) == 1 for values in found.values())
            return {name: values[0] for name, values in found.items()}

        eventually(lambda: expected.items() <= told().items())
        assert names.PENDING_RECORDS not in told()
        first = told()
        eventually(lambda: told()[names.SOURCE_IDLE_TIME] >= first[names.SOURCE_IDLE_TIME] + 4_000)
        later = told()
        assert expected.items() <= later.items()
        # What the last batch went by; the next one's is told with that.
        watermark = last["eventTime"]["watermark"]
        now_ms = time.time() * 1000
        # What is told may be a tick and a push old.
        assert 0 <= now_ms - parsed(watermark) - later[names.WATERMARK_LAG] <= 10_000


def parsed(moment: str) -> float:
    """Unix milliseconds of a time in Spark's progress."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1000


def test_rate_tells_no_pending_rows_and_keeps_up(attached: SparkSession, rest: Rest) -> None:
    """Its offsets are seconds. Each batch takes all of them, so what it could process is told."""
    stream = attached.readStream.format("rate").option("rowsPerSecond", 50).load()
    with running(stream, "rate alone", "2 seconds") as query:
        eventually(read(query, 2), 60)
        eventually(lambda: names.KEEP_UP_RATIO in job_metrics(rest, "rate alone"))
        found = source_metrics(rest, "rate alone")
        assert {name.partition(".")[2] for name in found} == {
            names.SOURCE_IDLE_TIME,
            names.NUM_RECORDS_OUT,
            names.NUM_RECORDS_OUT + names.PER_SECOND,
            names.NUM_RECORDS_IN,
            names.NUM_RECORDS_IN + names.PER_SECOND,
        }
    eventually(lambda: (rest.job("rate alone") or {}).get("state") == "CANCELED")
    found_job = job_metrics(rest, "rate alone")
    assert names.BACKLOG_ROWS not in found_job
    # Of the run's own times: batches that read their rows in less time than the trigger leaves them.
    after_first = batches(query)[1:]
    busy_ms = sum(told["durationMs"]["triggerExecution"] for told in after_first)
    begins = [parsed(told["timestamp"]) for told in batches(query)]
    assert found_job[names.KEEP_UP_RATIO] == pytest.approx((begins[-1] - begins[0]) / busy_ms, rel=0.01)


def test_two_sources_are_told_apart(attached: SparkSession, rest: Rest, folder: Path) -> None:
    """Files that are left are those of the one; of the event times of both nobody knows whose they are."""
    files = attached.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    rate = attached.readStream.format("rate").option("rowsPerSecond", 5).load()
    both = files.union(rate.select(col("timestamp").alias("t"), "value")).withWatermark("t", "1 second")
    with running(both, "files and a rate", "4 seconds") as query:

        def unread() -> dict[str, dict[int, float]]:
            found = source_metrics(rest, "files and a rate")
            return {name: told for name, told in found.items() if name.endswith(names.UNREAD_FILES)}

        assert eventually(unread, 60).keys() == {f"Source__json.{names.UNREAD_FILES}"}
        eventually(read(query, 1), 60)
        metrics = {name.partition(".")[2] for name in source_metrics(rest, "files and a rate")}
        assert not metrics & {names.FETCH_LAG, names.EMIT_LAG, names.PENDING_RECORDS}


def test_pending_rows_are_those_beyond_the_batch(attached: SparkSession, rest: Rest) -> None:
    """A source of topics and partitions, as Kafka's; it has 160 rows, and gives ten of each partition a batch."""
    streaming = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark reads such a source from 4.2 on")
    attached.dataSource.register(topics(streaming.ReadMaxRows, 80))
    metric = f"pending-topics.{names.PENDING_RECORDS}"
    stream = attached.readStream.format("pending-topics").load()
    with running(stream, "topics", "3 seconds") as query:
        seen: dict[float, None] = {}
        backlogs: dict[float, None] = {}

        def look() -> bool:
            told = source_metrics(rest, "topics")
            for values in (values for name, values in told.items() if name.endswith(names.PENDING_RECORDS)):
                assert values.keys() == {0}
                seen[values[0]] = None
            if rest.job("topics"):
                backlogs.update({rows: None for rows in (job_metrics(rest, "topics").get(names.BACKLOG_ROWS),) if rows})
            return read(query, 3)() and bool(seen) and bool(backlogs)

        eventually(look, 90)
        job = rest.job("topics")
        assert job is not None
        [vertex] = rest.get(f"/jobs/{job['jid']}")["vertices"]
        path = f"/jobs/{job['jid']}/vertices/{vertex['id']}/jm-operator-metrics"
        partitions = eventually(lambda: {name for each in rest.get(path) if metric[-14:] in (name := each["id"])})
        assert {name.partition(names.COORDINATOR)[2] for name in partitions} == {
            f"{names.PENDING_RECORDS}.flights.0",
            f"{names.PENDING_RECORDS}.flights.1",
        }
        # As an autoscaler asks: of all subtasks together, and named in full.
        path = f"/jobs/{job['jid']}/vertices/{vertex['id']}/subtasks/metrics"
        [named] = eventually(
            lambda: [each["id"] for each in rest.get(path) if each["id"].endswith(names.PENDING_RECORDS)]
        )
        assert named.startswith("Source__")
        [told] = rest.get(f"{path}?get={named}&agg=sum")
        assert told["sum"] in {140.0, 120.0, 100.0, 80.0, 60.0}
    ended = [told for told in batches(query) if told["numInputRows"]]
    truth = [ahead(told, "endOffset", "latestOffset") for told in ended]
    assert truth[:2] == [140, 120]
    # Between two looks there may have been more than one batch.
    for told in (seen, backlogs):
        assert told
        assert [rows for rows in truth if rows in told] == list(told)
