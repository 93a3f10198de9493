"""Graphs of plans: vertices, chains, edges and names."""

from __future__ import annotations

import itertools

import pytest

from spark_hooks import plan
from spark_hooks.operator_names import short_name
from spark_hooks.records import PlanNode
from tests.unit.spark_hooks.spark_plans import (
    AGGREGATION_3,
    AGGREGATION_4,
    BROADCAST_FINAL,
    BROADCAST_FIRST,
    RATE,
    analyse,
    chains,
    ids,
    node,
    tree,
)

# ---- Vertices and chains


@pytest.mark.parametrize("text", [AGGREGATION_3, AGGREGATION_4], ids=["3.5.9", "4.3.0"])
def test_an_aggregation_is_two_vertices(text: str) -> None:
    """A segment ends at an exchange; wrappers of code generation are no operators."""
    assert chains(analyse(text)) == [
        "Source: RateStream -> Filter -> Project -> EventTimeWatermark -> Filter 2 -> HashAggregate",
        "HashAggregate -> StateStoreRestore -> HashAggregate 2 -> StateStoreSave -> HashAggregate 3 -> Sink: Noop",
    ]


def test_versions_agree_where_their_plans_do() -> None:
    """An upgrade of Spark, with other batches and partition counts, renames nothing."""
    assert ids(analyse(AGGREGATION_3)) == ids(analyse(AGGREGATION_4))


def test_adaptive_execution_renames_nothing() -> None:
    """The final plan has stages, code generation and other numbers, but the same vertices."""
    first, final = analyse(BROADCAST_FIRST), analyse(BROADCAST_FINAL)
    assert chains(first) == [
        "Source: ExistingRDD -> Filter",
        "Source: RateStream -> Project -> BroadcastHashJoin -> Project 2 -> Generate",
        "Sink: Noop",
    ]
    assert ids(final) == ids(first)
    assert chains(final) == chains(first)


def test_edges_lead_to_the_vertices_that_write_them() -> None:
    """A broadcast side is a vertex of its own, read by the join's vertex."""
    small, stream, sink = analyse(BROADCAST_FIRST).vertices
    (broadcast,) = stream.reads
    (shuffle,) = sink.reads
    assert (broadcast.source, broadcast.ship_strategy, broadcast.shuffles) == (small, "BROADCAST", False)
    assert (shuffle.source, shuffle.ship_strategy, shuffle.shuffles) == (stream, "REBALANCE", True)
    assert (small.shuffles, stream.shuffles, sink.shuffles) == (False, True, False)
    assert sink.writes is None
    assert small.writes is broadcast


@pytest.mark.parametrize(
    ("partitioning", "strategy"),
    [
        ("hashpartitioning(k#1, 3), ENSURE_REQUIREMENTS", "HASH"),
        ("rangepartitioning(k#1 ASC NULLS FIRST, 3), REPARTITION_BY_COL", "RANGE"),
        ("RoundRobinPartitioning(2), REPARTITION_BY_NUM", "REBALANCE"),
        ("SinglePartition, ENSURE_REQUIREMENTS", "GLOBAL"),
        ("UnknownPartitioning(3)", "CUSTOM"),
    ],
)
def test_partitioning_is_the_ship_strategy(partitioning: str, strategy: str) -> None:
    """In Flink's words."""
    text = f"Filter\n  Exchange | Exchange {partitioning}, [plan_id=4]\n    Range | Range (0, 9, step=1, splits=2)"
    assert [found.ship_strategy for found in analyse(text, None).vertices[1].reads] == [strategy]


@pytest.mark.parametrize(
    ("partitioning", "partitions"),
    [
        ("hashpartitioning(cast(k#1 as decimal(10, 2)), 3), ENSURE_REQUIREMENTS", 3),
        ("rangepartitioning(k#1 ASC NULLS FIRST, 200), REPARTITION_BY_COL", 200),
        ("RoundRobinPartitioning(2), REPARTITION_BY_NUM", 2),
        ("SinglePartition, ENSURE_REQUIREMENTS", 1),
        ("of another kind", 0),
    ],
)
def test_partitions_are_what_the_partitioning_says(partitioning: str, partitions: int) -> None:
    """Its last number; 0 where it tells none."""
    text = f"Filter\n  Exchange | Exchange {partitioning}, [plan_id=4]\n    Range | Range (0, 9, step=1, splits=2)"
    assert [found.partitions for found in analyse(text, None).vertices[1].reads] == [partitions]


def test_scopes_are_what_the_stages_of_a_vertex_carry() -> None:
    """RDD scopes name the code-generation stage, or the node itself outside of any."""
    upstream, last = analyse(AGGREGATION_3).vertices
    assert upstream.scopes == {
        "MicroBatchScan",
        "WholeStageCodegen (1)",
        "EventTimeWatermark",
        "WholeStageCodegen (2)",
        "Exchange",
    }
    assert last.scopes == {
        "Exchange",
        "WholeStageCodegen (3)",
        "StateStoreRestore",
        "WholeStageCodegen (4)",
        "StateStoreSave",
        "WholeStageCodegen (5)",
        "WriteToDataSourceV2",
    }


def test_a_union_has_several_sources_in_one_vertex() -> None:
    """4.3.0 puts a union into one stage of code generation, 3.5.9 its branches; the chain is the same."""
    branches = f"""
          Project | Project [value#1L]
            InputAdapter
              MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}
"""
    new = f"WholeStageCodegen (1)\n  Union{branches}{branches}"
    old = f"Union\n  WholeStageCodegen (1){branches}\n  WholeStageCodegen (2){branches}"
    expected = ["Source: RateStream -> Project -> Source: RateStream 2 -> Project 2 -> Union"]
    assert chains(analyse(new, None)) == chains(analyse(old, None)) == expected
    assert ids(analyse(new, None)) == ids(analyse(old, None))


def test_an_empty_relation_keeps_what_ran() -> None:
    """Adaptive execution found no rows: what it had planned stands below."""
    below = """
  HashAggregate | HashAggregate(keys=[g#11L], functions=[count(1)])
    Exchange | Exchange hashpartitioning(g#11L, 3), ENSURE_REQUIREMENTS, [plan_id=41]
      Project | Project [(value#1L % 3) AS g#11L]
        Scan ExistingRDD | Scan ExistingRDD[timestamp#0,value#1L]
"""
    whole = "AdaptiveSparkPlan | AdaptiveSparkPlan isFinalPlan=false\n" + below
    empty = (
        "AdaptiveSparkPlan | AdaptiveSparkPlan isFinalPlan=true\n  ResultQueryStage | ResultQueryStage 1\n"
        " EmptyRelation | EmptyRelation [plan_id=48]\n  LogicalQueryStage | LogicalQueryStage Aggregate [g#11L]\n"
    )
    lines = [" " * 3 + line for line in below.splitlines()]
    assert ids(analyse(empty + "\n".join(lines), None)) == ids(analyse(whole, None))


def test_a_plan_that_was_given_up_is_no_chain_of_operators() -> None:
    """Nodes of the logical plan never ran; the stages that fed them did, and stay."""
    empty = """
Filter
  EmptyRelation | EmptyRelation [plan_id=48]
    Join | Join Inner, (id#6L = other#3L)
      LogicalQueryStage | LogicalQueryStage Filter, ShuffleQueryStage 0
        Exchange | Exchange hashpartitioning(k, 3)
          Filter
            Scan json t
      Project | Project [a]
        LogicalQueryStage | LogicalQueryStage Filter, ShuffleQueryStage 1
          Exchange | Exchange hashpartitioning(k, 3)
            Scan json u
"""
    graph = analyse(empty, None)
    assert chains(graph) == ["Source: json t -> Filter", "Source: json u", "EmptyRelation -> Filter"]
    assert len(graph.vertices[-1].reads) == 2
    assert graph.vertices[-1].empty
    assert not graph.vertices[0].empty
    assert not any(operator.is_source for operator in graph.vertices[-1].operators)


def test_plan_later_is_no_input() -> None:
    """A fake child of Spark's says nothing."""
    graph = analyse("Project\n  PlanLater | PlanLater Filter (a#1 > 2)", None)
    assert [operator.node for operator in graph.vertices[0].operators] == ["Project"]


FOREACH_BATCH = """
OverwriteByExpression noop-table | OverwriteByExpression noop-table NoopWrite
  Project | Project [(value#1L % 3) AS g#11L]
    Scan ExistingRDD | Scan ExistingRDD[timestamp#0,value#1L]
"""


def test_the_stream_below_a_foreach_batch_is_a_plan_of_its_own() -> None:
    """Spark 4.1 and later show it under the RDD that fed the write; earlier ones do not."""
    stream = "      Project | Project [timestamp#0]\n        MicroBatchScan | MicroBatchScan[timestamp#0] " + RATE
    shown, hidden = analyse(FOREACH_BATCH + stream, None), analyse(FOREACH_BATCH, None)
    assert chains(shown) == ["Source: ExistingRDD -> Project -> Sink: OverwriteByExpression noop-table"]
    assert ids(shown) == ids(hidden)
    assert shown.accumulators == hidden.accumulators == plan.accumulators(tree(FOREACH_BATCH + stream))


def test_accumulators_are_told_once() -> None:
    """A reused exchange repeats them."""
    exchange = tree("Exchange | Exchange hashpartitioning(k#1, 3)\n  Range | Range (0, 9, step=1, splits=2)")
    root = PlanNode("Union", "Union", (), (exchange, PlanNode("ReusedExchange", "ReusedExchange", (), (exchange,))))
    assert plan.accumulators(root) == tuple(range(1, 10))
    assert plan.analyse(root).accumulators == tuple(range(1, 10))


def _reused() -> PlanNode:
    exchange = tree("Exchange | Exchange hashpartitioning(k#1, 3)\n  Range | Range (0, 9, step=1, splits=2)")
    reused = PlanNode("ReusedExchange", "ReusedExchange [k#9], Exchange hashpartitioning(k#1, 3)", (), (exchange,))
    numbers = itertools.count(100)
    sides = [node("Sort", f"Sort [k#{side} ASC]", [one], numbers) for side, one in enumerate((exchange, reused))]
    return node("SortMergeJoin", "SortMergeJoin [k#1], [k#9], Inner", sides, numbers)


def test_a_reused_exchange_is_one_vertex() -> None:
    """It repeats a subtree with the same accumulators, which ran once; it is one edge, too."""
    graph = plan.analyse(_reused())
    assert chains(graph) == ["Source: Range", "Sort -> Sort 2 -> SortMergeJoin"]
    assert [found.source for found in graph.vertices[1].reads] == [graph.vertices[0]]


def test_equal_exchanges_that_both_run_are_two_vertices() -> None:
    """Without reuse the same subtree runs twice, on accumulators of its own."""
    side = "\n  Exchange | Exchange hashpartitioning(k#1, 3)\n    Range | Range (0, 9, step=1, splits=2)"
    graph = analyse("SortMergeJoin | SortMergeJoin [k#1], [k#2]" + side + side, None)
    assert chains(graph) == ["Source: Range", "Source: Range", "SortMergeJoin"]
    assert len({vertex.id for vertex in graph.vertices}) == 3


SUBQUERY = """
Filter | Filter (value#1L > scalar-subquery#9 [])
  {0}
  Subquery | Subquery subquery#9, [id=#34]
    HashAggregate | HashAggregate(keys=[], functions=[max(id#5L)])
      Exchange | Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=30]
        Range | Range (0, 9, step=1, splits=2)
"""


def test_a_subquery_is_a_vertex_that_hands_on_a_value() -> None:
    """Its rows are nobody's input; the driver broadcasts its result."""
    graph = analyse(SUBQUERY.format("LocalTableScan | LocalTableScan [value#1L]"), None)
    assert chains(graph) == ["Source: Range", "HashAggregate", "Source: LocalTableScan -> Filter"]
    (edge,) = graph.vertices[2].reads
    assert (edge.source, edge.ship_strategy) == (graph.vertices[1], "BROADCAST")


def test_a_scan_that_a_subquery_prunes_is_a_source_still() -> None:
    """Dynamic partition pruning hangs a subquery below the scan; rows come in at the scan."""
    graph = analyse(
        """
Filter | Filter isnotnull(a#1)
  Scan parquet db.t | FileScan parquet db.t[a#1] PartitionFilters: [p#2 IN dynamicpruning#3]
    SubqueryBroadcast | SubqueryBroadcast dynamicpruning#3, 0, [p#4], [id=#50]
      BroadcastExchange | BroadcastExchange HashedRelationBroadcastMode(List(input[0, int, false]),false), [plan_id=49]
        LocalTableScan | LocalTableScan [p#4]
""",
        None,
    )
    last = graph.vertices[-1]
    assert last.name == "Source: parquet db.t -> Filter"
    assert [operator.is_source for operator in last.operators] == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Filter\n  Exchange | Exchange hashpartitioning(k, 3)\n    Exchange | Exchange RoundRobinPartitioning(2)\n"
            "      Scan json t",
            ["Source: json t", "Exchange", "Filter"],
        ),
        ("AdaptiveSparkPlan\n  Exchange | Exchange SinglePartition\n    Scan json t", ["Source: json t", "Exchange"]),
        (
            "SubqueryBroadcast | SubqueryBroadcast dynamicpruning#3, [id=#5]\n  BroadcastExchange\n    Scan json t",
            ["Source: json t", "BroadcastExchange", "SubqueryBroadcast"],
        ),
        ("AdaptiveSparkPlan\n  EmptyRelation | EmptyRelation [plan_id=48]", ["EmptyRelation"]),
    ],
    ids=["exchange over exchange", "exchange at the root", "broadcast below a subquery", "nothing left"],
)
def test_no_vertex_is_without_an_operator(text: str, expected: list[str]) -> None:
    """A collector refuses a vertex without a name, and the whole push with it."""
    assert chains(analyse(text, None)) == expected


# ---- Names


def test_names_are_unique_and_at_most_80_characters() -> None:
    """The second of a name gets ' 2'; a long one is cut so that the number still fits."""
    long = "Scan parquet " + "x" * 200
    graph = analyse(f"Union\n  {long}\n  {long}\n  {long}", None)
    names = [operator.name for operator in graph.vertices[0].operators[:3]]
    cut = ("Source: parquet " + "x" * 200)[:80]
    assert names == [cut, cut[:78] + " 2", cut[:78] + " 3"]


def test_chains_and_descriptions_are_cut() -> None:
    """A union of many branches, or a huge expression, must not cost the push that tells of it."""
    scan = f"\n  Scan parquet {'x' * 80}"
    graph = analyse("Union" + 100 * scan, None)
    assert len(graph.vertices[0].operators) == 101
    assert len(graph.vertices[0].name) == plan.CHAIN_LENGTH
    expression = "CASE WHEN a#1 THEN b " * 10_000
    one, other = (analyse(f"Project | Project [{expression}{end}]\n  Scan t", None) for end in "xy")
    assert len(one.vertices[0].operators[1].description) == plan.DESCRIPTION_LENGTH
    assert one.vertices[0].id != other.vertices[0].id


def test_a_name_that_looks_counted_does_not_clash() -> None:
    """'A', 'A' and a node that Spark calls 'A 2' are three names."""
    graph = analyse("Union\n  Scan csv t\n  Scan csv t\n  Scan csv t 2", None)
    assert [operator.name for operator in graph.vertices[0].operators[:3]] == [
        "Source: csv t",
        "Source: csv t 2",
        "Source: csv t 2 2",
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}", "Source: RateStream"),
        (
            "MicroBatchScan | MicroBatchScan[key#7] class org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaScan",
            "Source: Kafka",
        ),
        (
            "RealTimeStreamScan | RealTimeStreamScan[v#1] class a.b.LowLatencyMemoryStream@4f",
            "Source: LowLatencyMemoryStream",
        ),
        ("MicroBatchScan | MicroBatchScan[a#1] IcebergScan(table=t)", "Source: MicroBatchScan"),
        ("Scan json  | FileScan json [id#8L] Batched: false", "Source: json"),
        ("LocalTableScan | LocalTableScan [k#0]", "Source: LocalTableScan"),
    ],
)
def test_a_source_is_named_after_what_it_reads(line: str, name: str) -> None:
    """Spark calls most of them MicroBatchScan, and some names end in a space."""
    assert chains(analyse(line, None)) == [name]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org.apache.spark.sql.execution.datasources.noop.NoopTable$@1f", "Noop"),
        ("FileSink[file:/data/out]", "File"),
        ("ForeachBatchSink", "ForeachBatch"),
        ("org.apache.spark.sql.execution.streaming.ConsoleTable$@5ffead27", "Console"),
        ("org.apache.spark.sql.execution.streaming.MemoryStreamingWrite@67879ff0", "Memory"),
        ("a.b.RateStreamTable$$anon$1", "RateStream"),
        ("Table", "Table"),
        ("[x]", "[x]"),
        ("", ""),
        ("y" * 99, "y" * 80),
    ],
)
def test_short_names_are_what_people_call_it(text: str, name: str) -> None:
    """No package, address, path or word that every such class has."""
    assert short_name(text) == name


@pytest.mark.parametrize(
    "node_name",
    [
        "WriteToDataSourceV2",
        "AppendData",
        "OverwriteByExpression noop-table",
        "OverwritePartitionsDynamic t",
        "Execute InsertIntoHadoopFsRelationCommand",
        "WriteFiles",
    ],
)
def test_a_writing_node_ends_a_plan_in_a_sink(node_name: str) -> None:
    """Of a streaming query it bears the name of the query's sink, else its own."""
    text = f"{node_name}\n  Project\n    Scan json t"
    own = f"Sink: {node_name.removeprefix('Execute ')}"
    assert chains(analyse(text, None)) == [f"Source: json t -> Project -> {own}"]
    assert chains(analyse(text, "a.b.ConsoleTable$@7")) == ["Source: json t -> Project -> Sink: Console"]


def test_a_streaming_plan_without_a_writing_node_ends_in_a_sink_all_the_same() -> None:
    """The streaming file sink has none, nor has foreachBatch."""
    text = "MapInArrow | MapInArrow f(id#8L)#5, [id#6L], false\n  Scan json  | FileScan json [id#8L]"
    last = analyse(text, "FileSink[file:/data/out]").vertices[-1]
    assert last.name == "Source: json -> MapInArrow -> Sink: File"
    assert (last.operators[-1].sink, last.operators[-1].inputs) == (True, (last.operators[-2],))
    assert chains(analyse(text, None)) == ["Source: json -> MapInArrow"]


def test_a_sink_may_stand_right_behind_an_exchange() -> None:
    """A streaming query may end in a repartition."""
    last = analyse("Exchange | Exchange RoundRobinPartitioning(2)\n  Scan json t", "FileSink[x]").vertices[-1]
    assert last.name == "Sink: File"
    assert last.operators[0].inputs == tuple(last.reads)
