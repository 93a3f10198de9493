"""Cached tables: what fills one runs once, in whichever stage and query comes first; who reads it reads it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.e2e.conftest import Rest
from tests.e2e.figures import EventLog, Session, assert_same, ids, input_rows, noop, settings, stream, table

pytestmark = pytest.mark.spark

FILES = ((0, 100), (100, 150))
ROWS = ids(FILES)
KEPT = [row for row in ROWS if row % 7 > 1]


@pytest.fixture
def session(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> Session:
    return Session(attached, rest, EventLog(attached, event_log), tmp_path)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    frame.cache()
    try:
        yield frame
    finally:
        frame.unpersist(True)


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("reader", ["aggregation", "sort", "union"])
def test_first_reader_fills_and_the_second_reads(session: Session, reader: str, adaptive: str) -> None:
    """The scan's rows are counted once over both jobs; the cache's own are counted by each."""
    source = table(session.spark, session.folder / "in", FILES).where("k > 1")
    with settings(session.spark, adaptive__enabled=adaptive), cached(source) as rows:
        frame = {
            "aggregation": rows.groupBy("k").count(),
            "sort": rows.where("k > 2").orderBy("id"),
            "union": rows.select("id").union(rows.where("k > 2").select("id")),
        }[reader]
        name = f"cache {reader} {adaptive}"
        first = session.batch(f"{name} 1", lambda: noop(frame))
        second = session.batch(f"{name} 2", lambda: noop(frame))
    readers = 2 if reader == "union" else 1
    for (told, work), fills in ((first, True), (second, False)):
        found, _ = told.nodes()
        assert found["json"] == work.rows["json"] == len(KEPT) * fills
        assert found["InMemoryTableScan"] == readers * len(KEPT)
        sinks = [vertex.rows["out"] for vertex in told.vertices if "Sink: " in vertex.name]
        fewer = sum(row % 7 > 2 for row in KEPT)
        assert sinks == [{"aggregation": 5, "sort": fewer, "union": len(KEPT) + fewer}[reader]]
        # Sampling reads the cache once more.
        if reader != "sort":
            assert_same(told, work)


def test_cached_aggregation_is_filled_stage_by_stage(session: Session) -> None:
    """A cached plan with an exchange is planned adaptively on its own; count() reads it through one more."""
    source = table(session.spark, session.folder / "in", FILES).where("k > 1").groupBy("k").count()
    with cached(source) as rows:
        told, work = session.batch("cached aggregation 1", rows.count)
        again, work_again = session.batch("cached aggregation 2", lambda: noop(rows.where("count > 0")))
    assert told.vertex("Source: json -> Filter -> HashAggregate").rows["in"] == len(KEPT)
    middle = told.vertex("HashAggregate -> InMemoryTableScan -> HashAggregate 2")
    assert middle.rows["HashAggregate.out"] == middle.rows["InMemoryTableScan.out"] == 5
    assert told.vertex("HashAggregate").parallelism == 1
    assert again.nodes()[0] == {"InMemoryTableScan": 5, "Filter": 5, "HashAggregate": 0}
    assert_same(told, work)
    assert_same(again, work_again)


def test_plan_without_adaptive_execution_knows_what_its_cache_planned(session: Session) -> None:
    """Spark then never tells the nodes of the new accumulators in the execution that updates them."""
    source = table(session.spark, session.folder / "in", FILES).where("k > 1").groupBy("k").count()
    with cached(source) as rows, settings(session.spark, adaptive__enabled="false"):
        told, work = session.batch("cache planned apart 1", lambda: noop(rows))
        session.batch("cache planned apart 2", lambda: noop(rows))
        # The second plan's nodes are what the oracle knows the first one's accumulators by.
        work = session.work(told)
    assert "SparkListenerSQLAdaptiveSQLMetricUpdates" in work.kinds
    assert "SparkListenerSQLAdaptiveExecutionUpdate" not in work.kinds
    assert told.vertex("Source: json -> Filter -> HashAggregate").rows["Filter.out"] == len(KEPT)
    assert_same(told, work)


def test_stateful_stream_counts_what_fills_the_table_it_joins(session: Session) -> None:
    """Stateful streams are not planned adaptively, the cached table below them is; it is filled in the first batch."""
    names = table(session.spark, session.folder / "names", ((0, 7),)).where("k > 1")
    files = ((0, 40), (40, 95))
    with cached(names.groupBy("k").agg(f.max("id").alias("n"))) as rows:
        frame = stream(session.spark, session.folder / "in", files).join(rows, "k").groupBy("n").count()
        told, work, progress = session.streaming("stateful with cache", frame, mode="update")
    assert "SparkListenerSQLAdaptiveSQLMetricUpdates" in work.kinds
    filling = told.vertex("Source: json -> Filter -> HashAggregate")
    assert [filling.rows[label] for label in ("in", "Filter.out", "out")] == [5, 5, 5]
    # Once a batch for the broadcast.
    reading = told.vertex("HashAggregate -> InMemoryTableScan -> Filter")
    assert [reading.rows[label] for label in ("in", "HashAggregate.out", "Filter.out")] == [5, 5, 5 * len(progress)]
    [main] = [vertex for vertex in told.vertices if "BroadcastHashJoin" in vertex.operators]
    assert main.rows["in"] == input_rows(progress) == len(ids(files))
    assert main.rows["BroadcastHashJoin.out"] == sum(row % 7 > 1 for row in ids(files))
    assert_same(told, work)


def test_two_queries_at_once_do_not_share_figures(session: Session) -> None:
    """They read the same files, and one cached table that either of them fills: each has what its own tasks did."""
    files = ((0, 40), (40, 95), (95, 130))
    names = table(session.spark, session.folder / "names", ((0, 70),)).where("k > 1")
    source = stream(session.spark, session.folder / "in", files)
    with settings(session.spark, autoBroadcastJoinThreshold="-1"), cached(names.groupBy("k").agg(f.max("id"))) as rows:
        first = session.start("at once 1", source.where("k > 2").join(f.broadcast(rows), "k"), None, "append")
        second = session.start("at once 2", source.where("id % 2 = 0").join(rows, "k"), None, "append")
        told = [session.end("at once 1", first), session.end("at once 2", second)]
    streamed = ids(files)
    kept = [sum(row % 7 > 2 for row in streamed), sum(row % 2 == 0 and row % 7 > 1 for row in streamed)]
    filled = 0
    for (job, work), query, expected in zip(told, (first, second), kept, strict=True):
        assert sum(each["sink"]["numOutputRows"] for each in query.recentProgress) == expected
        [sink] = [vertex for vertex in job.vertices if vertex.name.endswith("Sink: Noop")]
        assert sink.rows["Sink: Noop.in"] == expected
        filling = job.vertex("Source: json -> Filter -> HashAggregate").rows.get("in", 0)
        # Files are read with the filter, so Spark counts what passed it.
        assert job.nodes()[0]["json"] == filling + input_rows(query.recentProgress)
        filled += filling
        assert_same(job, work)
    assert filled == sum(row % 7 > 1 for row in range(70))
    # What one has and the other has not never changes sides.
    assert not any("BroadcastHashJoin" in vertex.operators for vertex in told[1][0].vertices)
    assert not any("SortMergeJoin" in vertex.operators for vertex in told[0][0].vertices)
