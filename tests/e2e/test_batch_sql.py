"""Batch SQL outside any stream: adaptive joins, sampling, limits, reuse, subqueries; every figure is Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.e2e.conftest import Rest
from tests.e2e.figures import EventLog, Session, assert_same, ids, noop, settings, table

pytestmark = pytest.mark.spark

FILES = ((0, 100), (100, 150))
ROWS = ids(FILES)
KEPT = [row for row in ROWS if row % 7 > 1]
SINK = "Sink: OverwriteByExpression"


@pytest.fixture
def session(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> Session:
    return Session(attached, rest, EventLog(attached, event_log), tmp_path)


def test_skewed_join_counts_what_was_read_again(session: Session) -> None:
    """A skewed partition is split, and the other side's is read by every part: more is read than was written."""
    many, few = ids(((0, 1200),)), ids(((0, 70),))
    keys = {row: 1 if row % 10 < 8 else row % 7 for row in many}
    left = table(session.spark, session.folder / "many", tuple((each, each + 200) for each in range(0, 1200, 200)))
    right = table(session.spark, session.folder / "few", ((0, 70),)).selectExpr("id AS other", "k")
    joined = left.selectExpr("id", "IF(id % 10 < 8, 1, k) AS k").join(right, "k")
    with settings(
        session.spark,
        autoBroadcastJoinThreshold="-1",
        adaptive__skewJoin__skewedPartitionFactor="1",
        adaptive__skewJoin__skewedPartitionThresholdInBytes="100",
        adaptive__advisoryPartitionSizeInBytes="500",
    ):
        told, work = session.batch("skewed join", lambda: noop(joined))
    assert any("skew=true" in node["nodeName"] for node in work.final_nodes())
    assert work.read > work.written == len(many) + len(few)
    join = told.vertex(f"Sort -> Sort 2 -> SortMergeJoin -> Project -> {SINK}")
    assert join.rows["in"] == join.rows["SortMergeJoin.in"] == work.read
    assert join.rows[f"{SINK}.in"] == sum(other % 7 == keys[row] for row in many for other in few)
    sources = [vertex for vertex in told.vertices if vertex.name.startswith("Source: ")]
    assert sorted(vertex.rows["out"] for vertex in sources) == [len(few), len(many)]
    assert_same(told, work)


def test_coalesced_shuffle_is_read_by_fewer_subtasks(session: Session) -> None:
    """Three partitions of some bytes become one; all records are read."""
    frame = table(session.spark, session.folder / "in", FILES).where("k > 1").groupBy("k").count()
    told, work = session.batch("coalesced", lambda: noop(frame))
    assert any("AQEShuffleRead coalesced" in node["simpleString"] for node in work.final_nodes())
    reader = told.vertex(f"HashAggregate -> {SINK}")
    assert (reader.parallelism, reader.rows["in"], reader.rows["out"]) == (1, work.read, 5)
    assert told.vertex("Source: json -> Filter -> HashAggregate").rows["Filter.out"] == len(KEPT)
    assert_same(told, work)


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("how", ["orderBy", "repartitionByRange"])
def test_sampling_for_a_range_partitioning_counts_nothing(session: Session, how: str, adaptive: str) -> None:
    """Spark's own accumulators have every row twice: a job of its own samples them before the shuffle."""
    frame = table(session.spark, session.folder / "in", FILES).where("k > 1")
    frame = frame.orderBy("id") if how == "orderBy" else frame.repartitionByRange(3, "id")
    with settings(session.spark, adaptive__enabled=adaptive):
        told, work = session.batch(f"{how} {adaptive}", lambda: noop(frame))
    assert work.rows["Filter"] == 2 * len(KEPT)
    rows, _ = told.nodes()
    assert {stage["Filter"] for stage in work.stages.values() if stage["Filter"]} == {len(KEPT)} == {rows["Filter"]}
    assert {stage["json"] for stage in work.stages.values() if stage["json"]} == {rows["json"]}
    [reader] = [vertex for vertex in told.vertices if vertex.name.endswith(SINK)]
    assert reader.rows["in"] == reader.rows["out"] == work.written == work.read == len(KEPT)


def take(frame: DataFrame) -> None:
    """Collect in the JVM; Python's collect() leaves a socket to the garbage collector in Spark 3.5."""
    assert frame._jdf.collectAsList().size() > 0


def test_limit_counts_what_its_jobs_have_read(session: Session) -> None:
    """take() reads one partition, then more; how many rows CollectLimit lets through nobody tells."""
    frame = table(session.spark, session.folder / "in", tuple((each, each + 20) for each in range(0, 1200, 100)))
    with settings(session.spark, files__maxPartitionBytes="1100", files__openCostInBytes="1"):
        told, work = session.batch("take", lambda: take(frame.where("k >= 0").limit(50)))
    [vertex] = told.vertices
    assert len(work.stages) > 1
    assert 50 <= vertex.rows["Filter.out"] == work.rows["Filter"] < 240
    assert vertex.rows["CollectLimit.in"] == work.rows["Filter"]
    assert vertex.rows.keys().isdisjoint({"CollectLimit.out", "out"})
    assert_same(told, work)


def test_top_rows_are_unknown_and_what_feeds_them_is_not(session: Session) -> None:
    """TakeOrderedAndProject has no row metric, and does not hand on what it gets."""
    frame = table(session.spark, session.folder / "in", FILES).where("k > 1")
    told, work = session.batch("top", lambda: take(frame.orderBy("id").limit(5)))
    [vertex] = told.vertices
    assert vertex.rows["TakeOrderedAndProject.in"] == vertex.rows["Filter.out"] == len(KEPT)
    assert vertex.rows.keys().isdisjoint({"TakeOrderedAndProject.out", "out"})
    assert_same(told, work)


def test_global_limit_is_unknown_until_the_next_metric(session: Session) -> None:
    """LocalLimit is known by what it wrote, not all of which is read; the next metric is known again."""
    frame = table(session.spark, session.folder / "in", FILES).where("k > 1").limit(10).groupBy("k").count()
    told, work = session.batch("global limit", lambda: noop(frame))
    [reader] = [vertex for vertex in told.vertices if vertex.operators[0] == "GlobalLimit"]
    assert reader.rows["in"] == work.read < work.written
    assert reader.rows.keys().isdisjoint({"GlobalLimit.out", "HashAggregate.in"})
    assert reader.rows["HashAggregate.out"] == reader.rows["out"] == 5
    [source] = [vertex for vertex in told.vertices if vertex is not reader]
    assert source.rows["LocalLimit.out"] == source.rows["out"] == work.written
    assert_same(told, work)


def test_exchange_that_is_read_twice_is_written_once(session: Session) -> None:
    """Both readers share its accumulators: their sum is known, and what each of them read is not."""
    counted = table(session.spark, session.folder / "in", FILES).groupBy("k").count()
    joined = counted.alias("a").join(counted.alias("b"), f.expr("a.k = b.k AND a.count >= b.count"))
    with settings(session.spark, autoBroadcastJoinThreshold="-1"):
        told, work = session.batch("reused exchange", lambda: noop(joined))
    assert any(node["nodeName"] == "ReusedExchange" for node in work.final_nodes())
    writer, reader = sorted(told.vertices, key=lambda vertex: not vertex.name.startswith("Source: "))
    assert writer.rows["Source: json.in"] == len(ROWS)
    assert writer.rows["out"] == work.written
    assert reader.rows["in"] == work.read == 2 * work.written
    assert reader.rows.keys().isdisjoint({"HashAggregate.in", "HashAggregate 2.in"})
    assert reader.rows["SortMergeJoin.in"] == 14
    assert reader.rows["out"] == 7
    assert_same(told, work)


def test_scalar_subquery_is_a_graph_of_its_own(session: Session) -> None:
    """Adaptive execution plans it anew and tells its accumulators without nodes; its rows are no operator's input."""
    table(session.spark, session.folder / "in", FILES).createOrReplaceTempView("numbers")
    average = "SELECT avg(n) FROM (SELECT k, count(*) AS n FROM numbers GROUP BY k)"
    told, work = session.batch(
        "scalar subquery", lambda: noop(session.spark.sql(f"SELECT id FROM numbers WHERE id > ({average})"))
    )
    assert "SparkListenerSQLAdaptiveSQLMetricUpdates" in work.kinds
    kept = [row for row in ROWS if row > len(ROWS) / 7]
    main = told.vertex(f"Source: json -> Filter -> {SINK}")
    assert [main.rows[label] for label in ("in", "Filter.in", "Filter.out", "out")] == [150, 150, len(kept), len(kept)]
    assert told.vertex("Source: json -> HashAggregate").rows["in"] == len(ROWS)
    assert told.nodes()[0]["json"] == 2 * len(ROWS)
    assert_same(told, work)


def test_written_table_has_as_many_rows_as_its_sink(session: Session) -> None:
    """Creating a table is an execution that encloses the one that writes; it counts once."""
    frame = table(session.spark, session.folder / "in", FILES).where("k > 1")
    told, work = session.batch("save as table", lambda: frame.write.mode("overwrite").saveAsTable("written"))
    assert session.spark.table("written").count() == len(KEPT)
    session.spark.sql("DROP TABLE written")
    [vertex] = [vertex for vertex in told.vertices if vertex.name.startswith("Source: json")]
    assert vertex.rows["in"] == vertex.rows["out"] == len(KEPT)
    assert_same(told, work)
