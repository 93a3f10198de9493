"""What user code runs in foreachBatch counts in the stream and in its own plans, however its plans change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.e2e.conftest import Rest, eventually
from tests.e2e.figures import EventLog, Session, assert_same, ids, input_rows, noop, settings, stream, table

pytestmark = pytest.mark.spark

FILES = ((0, 40), (40, 95), (95, 130))
STREAMED = ids(FILES)
KEPT = [row for row in STREAMED if row % 3 == 0]


@pytest.fixture
def session(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> Session:
    return Session(attached, rest, EventLog(attached, event_log), tmp_path)


@pytest.mark.parametrize("persisted", [False, True], ids=["read again", "persisted"])
def test_work_done_twice_counts_twice(session: Session, persisted: bool) -> None:
    """Two writes and a join of the batch with itself read the stream four times, or once if it is kept."""
    groups, rows = str(session.folder / "groups"), str(session.folder / "rows")

    def write(batch: DataFrame, _: int) -> None:
        if persisted:
            batch.persist()
        batch.groupBy("k").count().write.mode("append").parquet(groups)
        batch.where("k > 3").write.mode("append").parquet(rows)
        noop(batch.alias("a").join(batch.alias("b"), "id"))
        batch.unpersist()

    source = stream(session.spark, session.folder / "in", FILES).where("id % 3 = 0")
    name = f"two writes, persisted: {persisted}"
    told, work, progress = session.streaming(name, source, write)
    times = 1 if persisted else 4
    outer = told.vertex("Source: json -> Filter -> Sink: ForeachBatch")
    assert input_rows(progress) in (len(STREAMED), times * len(STREAMED))
    assert outer.rows["in"] == work.rows["json"] == times * len(STREAMED)
    assert outer.rows["Filter.out"] == outer.rows["out"] == times * len(KEPT)
    assert told.nodes()[0]["ExistingRDD"] == work.rows["ExistingRDD"] == times * len(KEPT)
    if persisted:
        assert told.nodes()[0]["InMemoryTableScan"] == work.rows["InMemoryTableScan"] == 4 * len(KEPT)
    written = [vertex.rows["out"] for vertex in told.vertices if "InsertInto" in vertex.name]
    assert sorted(written) == sorted(session.spark.read.parquet(path).count() for path in (groups, rows))
    assert_same(told, work)
    cache = " -> InMemoryTableScan" if persisted else ""
    filtered = " -> Filter" if persisted else ""
    read = f"Source: ExistingRDD{cache}"
    sink = "Sink: WriteFiles -> Sink: InsertIntoHadoopFsRelationCommand"
    # Three batches, and no vertex under two ids.
    assert told.names() == sorted(
        [
            outer.name,
            f"{read} -> HashAggregate" if persisted else f"{read} -> Project -> HashAggregate",
            f"HashAggregate -> {sink}",
            f"{read} -> Filter -> {sink}",
            f"{read}{filtered}",
            f"{read}{filtered} -> BroadcastHashJoin -> Project -> Sink: OverwriteByExpression",
        ]
    )
    assert {vertex.status for vertex in told.vertices} == {"FINISHED"}


STATEFUL = ((0, 40), (40, 95), (400, 410))
WRITES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "as it is": lambda batch: batch,
    "sorted": lambda batch: batch.orderBy("count"),
    "persisted and sorted": lambda batch: batch.persist().orderBy("count"),
    "aggregated": lambda batch: batch.groupBy("count").agg(f.count("*").alias("n")),
}


@pytest.mark.parametrize("how", WRITES)
def test_stateful_stream_counts_as_often_as_its_rows_are_asked_for(session: Session, how: str) -> None:
    """Its first batch waits for the watermark and hands on nothing, its last reads nothing; sampling counts nothing."""
    frame = stream(session.spark, session.folder / "in", STATEFUL).withWatermark("t", "5 seconds")
    frame = frame.groupBy(f.window("t", "10 seconds")).count()

    def write(batch: DataFrame, _: int) -> None:
        noop(WRITES[how](batch))
        batch.unpersist()

    told, work, progress = session.streaming(f"stateful {how}", frame, write)
    state = "HashAggregate -> StateStoreRestore -> HashAggregate 2 -> StateStoreSave -> HashAggregate 3"
    outer = told.vertex(f"{state} -> Sink: ForeachBatch")
    below = told.vertex("Source: json -> EventTimeWatermark -> Filter -> Project -> HashAggregate")
    # Windows of ten seconds, and batches that begin and end within one.
    groups = sum(len({row // 10 for row in range(*file)}) for file in STATEFUL)
    closed = len({row // 10 for row in ids(STATEFUL[:2])})
    assert len(progress) == len(STATEFUL) + 1
    assert below.rows["in"] == below.rows["Filter.out"] == input_rows(progress) == len(ids(STATEFUL))
    assert below.rows["out"] == outer.rows["in"] == groups
    assert outer.rows["StateStoreSave.out"] == outer.rows["out"] == closed
    if how == "sorted":
        # Every row of the state is asked for twice, first to sample, and the accumulators have it twice.
        assert work.rows["StateStoreSave"] == 2 * closed
    else:
        assert work.rows["StateStoreSave"] == closed
    if how in ("as it is", "aggregated"):
        assert_same(told, work)


def test_plan_that_changes_between_batches_adds_vertices(session: Session) -> None:
    """Adaptive execution broadcasts a small batch, sorts a large one, gives an empty one up: none renames another."""
    files = ((0, 10), (10, 400), (1000, 1001), (20, 30))
    other = table(session.spark, session.folder / "other", ((0, 200),)).selectExpr("id AS other", "k AS k2")
    other = other.where("other % 2 = 0").repartition(3)
    source = stream(session.spark, session.folder / "in", files).where("k > 1 AND id < 1000")
    sink = "Sink: OverwriteByExpression"
    small, large = f"BroadcastHashJoin -> {sink}", f"Sort -> Sort 2 -> SortMergeJoin -> {sink}"

    def write(batch: DataFrame, number: int) -> None:
        noop(batch.join(other, f.expr("id = other")))
        if number in (1, 3):
            running, ended = (large, small) if number == 1 else (small, large)
            expected = {running: "RUNNING", ended: "FINISHED"}
            eventually(lambda: session.statuses("changing plan").items() >= expected.items())

    with settings(session.spark, autoBroadcastJoinThreshold="2000"):
        told, work, progress = session.streaming("changing plan", source, write)
    assert len(progress) == len(files)
    kept = [[row for row in range(*file) if row % 7 > 1 and row < 1000] for file in files]
    assert [bool(batch) for batch in kept] == [True, True, False, True]
    assert told.vertex("Source: json -> Filter -> Sink: ForeachBatch").rows["out"] == sum(map(len, kept))
    matches = [sum(row < 200 and row % 2 == 0 for row in batch) for batch in kept]
    assert told.vertex(large).rows["SortMergeJoin.out"] == told.vertex(large).rows["out"] == matches[1]
    assert told.vertex(small).rows["BroadcastHashJoin.out"] == told.vertex(small).rows["out"] == matches[0] + matches[3]
    # The large batch alone shuffles the other table a second time, by key; it is read again in every batch.
    assert told.vertex("Exchange").rows["out"] == 100
    assert told.vertex("Source: json -> Filter -> Project").rows["in"] == 200 * len(files)
    assert told.names() == sorted(
        [
            "Source: json -> Filter -> Sink: ForeachBatch",
            "Source: json -> Filter -> Project",
            "Source: ExistingRDD -> Filter",
            "Exchange",
            small,
            large,
            *([f"EmptyRelation -> {sink}"] if session.spark.version >= "4" else []),
        ]
    )
    assert_same(told, work)
