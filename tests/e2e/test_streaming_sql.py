"""SQL that streams have in common with batches: sampling, limits, subqueries; and batches with nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tests.e2e.conftest import Rest
from tests.e2e.figures import EventLog, Session, assert_same, ids, input_rows, stream, table

pytestmark = pytest.mark.spark

FILES = ((0, 40), (40, 95), (95, 130))
STREAMED = ids(FILES)
KEPT = [row for row in STREAMED if row % 7 > 1]


@pytest.fixture
def session(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> Session:
    return Session(attached, rest, EventLog(attached, event_log), tmp_path)


def test_sampling_counts_nothing_in_a_stream_either(session: Session) -> None:
    """Every batch is sampled first; the source's rows are those of the progress."""
    frame = stream(session.spark, session.folder / "in", FILES).where("k > 1").repartitionByRange(3, "id")
    told, work, progress = session.streaming("stream by range", frame)
    assert work.rows["Filter"] == 2 * len(KEPT)
    source, sink = told.vertex("Source: json -> Filter"), told.vertex("Sink: Noop")
    # Files are read with the filter, so the scan's rows are those that passed it.
    assert source.rows["in"] == source.rows["Filter.in"] == len(KEPT)
    assert source.rows["Filter.out"] == work.written == sink.rows["in"] == sink.rows["out"] == len(KEPT)
    assert sum(each["sink"]["numOutputRows"] for each in progress) == len(KEPT)


def test_limit_of_a_stream_is_known(session: Session) -> None:
    """The streaming limit keeps state and has a metric, as the batch's has not."""
    frame = stream(session.spark, session.folder / "in", FILES).where("k > 1").limit(50)
    told, work, progress = session.streaming("stream with limit", frame)
    limit = told.vertex("StreamingGlobalLimit -> Sink: Noop")
    assert limit.rows["StreamingGlobalLimit.out"] == limit.rows["out"] == 50
    assert limit.rows["in"] == work.read
    assert sum(each["sink"]["numOutputRows"] for each in progress) == 50
    assert told.vertex("Source: json -> Filter -> LocalLimit").rows["out"] == work.written
    assert_same(told, work)


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_subquery_of_a_stream_runs_once_a_batch(session: Session, stateful: bool) -> None:
    """Its scan is no part of the stream's input."""
    static = ((0, 100), (100, 150))
    table(session.spark, session.folder / "static", static).createOrReplaceTempView("static_numbers")
    stream(session.spark, session.folder / "in", FILES).createOrReplaceTempView("streamed_numbers")
    average = "SELECT avg(n) FROM (SELECT k, count(*) AS n FROM static_numbers GROUP BY k)"
    frame = session.spark.sql(f"SELECT * FROM streamed_numbers WHERE id > ({average})")
    frame = frame.groupBy("k").count() if stateful else frame
    told, work, progress = session.streaming(
        f"stream with subquery {stateful}", frame, mode="update" if stateful else "append"
    )
    kept = sum(row > len(ids(static)) / 7 for row in STREAMED)
    [main] = [vertex for vertex in told.vertices if vertex.name.startswith("Source: json -> Filter")]
    assert main.rows["in"] == len(STREAMED)
    assert main.rows["Filter.out"] == kept
    assert told.vertex("Source: json -> HashAggregate").rows["in"] == len(ids(static)) * len(progress)
    # Spark's own figure has the scans of both.
    assert input_rows(progress) == len(STREAMED)
    assert len(told.names()) == len(set(told.names()))
    assert_same(told, work)


def test_batches_without_rows_change_no_vertex(session: Session) -> None:
    """A file without rows, and the batch without data that the last watermark asks for."""
    files = ((0, 40), (40, 40), (40, 95), (400, 410))
    frame = stream(session.spark, session.folder / "in", files).withWatermark("t", "5 seconds")
    told, work, progress = session.streaming("batches without rows", frame.groupBy(f.window("t", "10 seconds")).count())
    assert [each["numInputRows"] for each in progress] == [40, 0, 55, 10, 0]
    state = "HashAggregate -> StateStoreRestore -> HashAggregate 2 -> StateStoreSave -> HashAggregate 3"
    source = "Source: json -> EventTimeWatermark -> Filter -> Project -> HashAggregate"
    assert told.names() == sorted([source, f"{state} -> Sink: Noop"])
    assert told.vertex(source).rows["in"] == input_rows(progress)
    sink = told.vertex(f"{state} -> Sink: Noop")
    assert sink.rows["out"] == sum(each["sink"]["numOutputRows"] for each in progress) == len({*range(10)})
    assert_same(told, work)
