"""How a query ends is told in Flink's words, whatever its trigger and its session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from tests.e2e.conftest import Rest, eventually, told
from tests.e2e.test_exact import SCHEMA, write

pytestmark = pytest.mark.spark

SLOW = "java_method('java.lang.Thread', 'sleep', 30000L + k * 0L) IS NOT NULL"
"""A row of it takes half a minute."""


@pytest.fixture(params=["own session", "new session"])
def session(request: pytest.FixtureRequest, attached: SparkSession) -> SparkSession:
    """The session that was attached, or another one of the same application."""
    return attached if request.param == "own session" else attached.newSession()


def start(stream: DataFrame, name: str, folder: Path, **trigger: Any) -> StreamingQuery:
    writer = stream.writeStream.format("noop").queryName(name).option("checkpointLocation", str(folder / name))
    return writer.trigger(**trigger).start()


def read(session: SparkSession, folder: Path) -> DataFrame:
    """Three files of 40 rows, a file a batch."""
    for file in range(3):
        write(folder / "in", file, range(40 * file, 40 * file + 40))
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def rows_read(job: dict[str, Any]) -> int:
    return sum(vertex["metrics"]["read-records"] for vertex in job["vertices"])


def rows_told(query: StreamingQuery) -> int:
    """What the query's progress says it has read."""
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def batches(rest: Rest, job: dict[str, Any]) -> dict[str, int]:
    names = ("numberOfCompletedCheckpoints", "numberOfFailedCheckpoints", "numberOfInProgressCheckpoints")
    return {each["id"]: int(each["value"]) for each in rest.get(f"/jobs/{job['jid']}/metrics?get={','.join(names)}")}


@pytest.mark.parametrize(
    ("trigger", "rows"), [({"availableNow": True}, 120), ({"once": True}, 120)], ids=["now", "once"]
)
def test_query_that_has_read_all_is_finished(
    session: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, trigger: Any, rows: int
) -> None:
    """It ends by itself; whichever session of the application it is in."""
    name = request.node.name
    query = start(read(session, tmp_path), name, tmp_path, **trigger)
    query.awaitTermination(60)
    assert query.exception() is None
    job = told(rest, name, "FINISHED")
    assert rows_read(job) == rows_told(query) == rows
    assert job["streamgauge"]["failure"] == ""


def test_query_that_is_stopped_is_canceled(
    session: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Between two batches, all that it was given read."""
    name = request.node.name
    query = start(read(session, tmp_path), name, tmp_path, processingTime="1 second")
    query.processAllAvailable()
    running = told(rest, name, "RUNNING")
    assert running["streamgauge"]["trigger"] == "ProcessingTimeTrigger(1000)"
    query.stop()
    assert query.exception() is None
    job = told(rest, name, "CANCELED")
    assert rows_read(job) == rows_told(query) == 120
    assert job["end-time"] >= job["start-time"] > 0


@pytest.mark.parametrize("trigger", [{"processingTime": "1 second"}, {"availableNow": True}], ids=["interval", "now"])
def test_query_that_is_stopped_within_a_batch_is_canceled(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, trigger: Any
) -> None:
    """Also one that would have ended by itself; the batch that was broken off has failed."""
    name = request.node.name
    query = start(read(attached, tmp_path).where(f"id < 40 OR {SLOW}"), name, tmp_path, **trigger)
    eventually(lambda: (job := rest.job(name)) and sum(batches(rest, job).values()) == 2)
    query.stop()
    assert query.exception() is None
    job = told(rest, name, "CANCELED")
    assert batches(rest, job) == {
        "numberOfCompletedCheckpoints": 1,
        "numberOfFailedCheckpoints": 1,
        "numberOfInProgressCheckpoints": 0,
    }
    assert rows_told(query) == 40


def test_query_that_fails_says_why(
    session: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The first batch counts, the one that fails does not, and the failure is Spark's own text."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 79 in batch["id"].to_pylist():
                raise RuntimeError("row 79 is one too many")

    name = request.node.name
    stream = read(session, tmp_path).select("id").mapInArrow(fail, "id BIGINT")
    query = start(stream, name, tmp_path, availableNow=True)
    with pytest.raises(StreamingQueryException, match="row 79 is one too many"):
        query.awaitTermination(60)
    job = told(rest, name, "FAILED")
    assert "row 79 is one too many" in job["streamgauge"]["failure"]
    assert rows_told(query) == 40
    assert batches(rest, job)["numberOfCompletedCheckpoints"] == 1
    assert batches(rest, job)["numberOfFailedCheckpoints"] == 1
    [vertex] = job["vertices"]
    columns = rest.columns(job["jid"], vertex["id"])
    assert sum(int(rows) for rows in columns["numRecordsOut"].values()) == 40


def test_query_that_runs_when_the_hooks_come_has_its_trigger(
    attached: SparkSession, service: str, rest: Rest, tmp_path: Path
) -> None:
    """In a session that is not the attached one too: its end is told as what it is."""
    streamgauge.detach()
    name = "was there before"
    query = start(
        read(attached.newSession(), tmp_path).where(f"id < 40 OR {SLOW}"), name, tmp_path, processingTime="7 seconds"
    )
    try:
        eventually(lambda: query.lastProgress)
        assert streamgauge.attach(attached, url=service)
        job = eventually(lambda: rest.job(name))
        assert rest.get(f"/jobs/{job['jid']}")["streamgauge"]["trigger"] == "ProcessingTimeTrigger(7000)"
    finally:
        query.stop()
        streamgauge.attach(attached, url=service)
    told(rest, name, "CANCELED")
