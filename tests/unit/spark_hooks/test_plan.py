"""
Graphs of plans as Spark 3.5.9 and 4.3.0 were seen to print them: vertices, chains, names, edges and ids.

Plans are written as Spark prints them: two spaces a level, 'node name | description'. The description is the
node's name where it is left out. Accumulators are dealt out as Spark does, new ones for every plan.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks import counts, plan
from spark_hooks.records import PlanNode

EXCHANGE_METRICS = (
    counts.WRITTEN_RECORDS,
    counts.WRITTEN_BYTES,
    counts.READ_RECORDS,
    counts.READ_LOCAL_BYTES,
    counts.READ_REMOTE_BYTES,
    counts.READ_LOCAL_BLOCKS,
    counts.READ_REMOTE_BLOCKS,
)
WITHOUT_ROWS = ("Project", "InputAdapter", "EventTimeWatermark", "AdaptiveSparkPlan", "Sort", "PlanLater", "LocalLimit")


def metrics(name: str, numbers: Iterator[int]) -> tuple[str | int, ...]:
    if name == "Exchange":
        found: tuple[str, ...] = EXCHANGE_METRICS
    elif name.startswith(WITHOUT_ROWS) or name.endswith("QueryStage"):
        found = ()
    elif name.startswith("WholeStageCodegen"):
        found = ("duration",)
    elif name.startswith("Subquery"):
        found = ("time to collect",)
    elif name.startswith("StateStoreSave"):
        found = (plan.ROWS, "number of removed state rows", plan.ROWS)
    else:
        found = ("spill size", plan.ROWS)
    return tuple(part for metric in found for part in (metric, next(numbers)))


def node(name: str, description: str, children: list[PlanNode], numbers: Iterator[int]) -> PlanNode:
    return PlanNode(name, description, metrics(name, numbers), tuple(children))


def tree(text: str, numbers: Iterator[int] | None = None) -> PlanNode:
    numbers = numbers or itertools.count(1)
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines() if line.strip()]

    def build(index: int) -> tuple[PlanNode, int]:
        depth, line = lines[index]
        name, _, description = line.partition(" | ")
        own = metrics(name, numbers)
        children: list[PlanNode] = []
        index += 1
        while index < len(lines) and lines[index][0] > depth:
            child, index = build(index)
            children.append(child)
        return PlanNode(name, description or name, own, tuple(children)), index

    return build(0)[0]


def chains(graph: plan.Graph) -> list[str]:
    return [vertex.name for vertex in graph.vertices]


def ids(graph: plan.Graph) -> list[list[str]]:
    return [[vertex.id, *(operator.id for operator in vertex.operators)] for vertex in graph.vertices]


def changed(graph: plan.Graph, other: plan.Graph) -> list[int]:
    """Which vertices have another id; both graphs have as many."""
    assert len(graph.vertices) == len(other.vertices)
    return [i for i, (one, two) in enumerate(zip(ids(graph), ids(other), strict=True)) if one[0] != two[0]]


SINK = "org.apache.spark.sql.execution.datasources.noop.NoopTable$@1f2e3d4c"
RATE = "class org.apache.spark.sql.execution.streaming.sources.RateStreamTable$$anon$1"

AGGREGATION_3 = f"""
WriteToDataSourceV2 | WriteToDataSourceV2 MicroBatchWrite[epoch: 0, writer: org.apache.spark.sql.execution.datasources.noop.NoopStreamingWrite$@47b45e0f], org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$$Lambda$2066/0x00007f65b4b23e08@1c3f0401
  WholeStageCodegen (5)
    HashAggregate | HashAggregate(keys=[window#14-T1000ms, k#4L], functions=[count(1)])
      InputAdapter
        StateStoreSave | StateStoreSave [window#14-T1000ms, k#4L], state info [ checkpoint = file:/data/tmpsrgj77yg/cp/state, runId = 56586eae-6914-4208-9d5b-1eea6350a829, opId = 0, ver = 0, numPartitions = 3], Append, 0, 0, 2
          WholeStageCodegen (4)
            HashAggregate | HashAggregate(keys=[window#14-T1000ms, k#4L], functions=[merge_count(1)])
              InputAdapter
                StateStoreRestore | StateStoreRestore [window#14-T1000ms, k#4L], state info [ checkpoint = file:/data/tmpsrgj77yg/cp/state, runId = 56586eae-6914-4208-9d5b-1eea6350a829, opId = 0, ver = 0, numPartitions = 3], 2
                  WholeStageCodegen (3)
                    HashAggregate | HashAggregate(keys=[window#14-T1000ms, k#4L], functions=[merge_count(1)])
                      InputAdapter
                        Exchange | Exchange hashpartitioning(window#14-T1000ms, k#4L, 3), ENSURE_REQUIREMENTS, [plan_id=75]
                          WholeStageCodegen (2)
                            HashAggregate | HashAggregate(keys=[window#14-T1000ms, k#4L], functions=[partial_count(1)])
                              Filter | Filter isnotnull(timestamp#0-T1000ms)
                                InputAdapter
                                  EventTimeWatermark | EventTimeWatermark timestamp#0: timestamp, 1 seconds
                                    WholeStageCodegen (1)
                                      Project | Project [timestamp#0, (value#1L % 5) AS k#4L]
                                        Filter | Filter (isnotnull(value#1L) AND ((value#1L % 2) = 0))
                                          InputAdapter
                                            MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}
"""  # noqa: E501

AGGREGATION_4 = f"""
WriteToDataSourceV2 | WriteToDataSourceV2 MicroBatchWrite[epoch: 7, writer: NoopStreamingWrite]
  WholeStageCodegen (5)
    HashAggregate | HashAggregate(keys=[window#8-T1000ms, k#2L], functions=[count(1)])
      InputAdapter
        StateStoreSave | StateStoreSave [window#8-T1000ms, k#2L], state info [ checkpoint = file:/data/tmpnvf_cy7j/cp/state, runId = a2571c0b-89cc-4f8a-954d-77b98d606195, opId = 0, ver = 7, numPartitions = 200] stateStoreCkptIds = None, Append, 1795257770000, 1795257769000, 2
          WholeStageCodegen (4)
            HashAggregate | HashAggregate(keys=[window#8-T1000ms, k#2L], functions=[merge_count(1)])
              InputAdapter
                StateStoreRestore | StateStoreRestore [window#8-T1000ms, k#2L], state info [ checkpoint = file:/data/tmpnvf_cy7j/cp/state, runId = a2571c0b-89cc-4f8a-954d-77b98d606195, opId = 0, ver = 7, numPartitions = 200] stateStoreCkptIds = None, 2
                  WholeStageCodegen (3)
                    HashAggregate | HashAggregate(keys=[window#8-T1000ms, k#2L], functions=[merge_count(1)])
                      InputAdapter
                        Exchange | Exchange hashpartitioning(window#8-T1000ms, k#2L, 200), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=1189]
                          WholeStageCodegen (2)
                            HashAggregate | HashAggregate(keys=[window#8-T1000ms, k#2L], functions=[partial_count(1)])
                              Filter | Filter isnotnull(timestamp#0-T1000ms)
                                InputAdapter
                                  EventTimeWatermark | EventTimeWatermark 9bdbeca8-7a75-4551-8a2a-ff1760c5e321, timestamp#0: timestamp, 1 seconds
                                    WholeStageCodegen (1)
                                      Project | Project [timestamp#0, (value#1L % 5) AS k#2L]
                                        Filter | Filter (isnotnull(value#1L) AND ((value#1L % 2) = 0))
                                          InputAdapter
                                            MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}
"""  # noqa: E501

BROADCAST_FIRST = f"""
WriteToDataSourceV2 | WriteToDataSourceV2 MicroBatchWrite[epoch: 0, writer: NoopStreamingWrite]
  AdaptiveSparkPlan | AdaptiveSparkPlan isFinalPlan=false
    Exchange | Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM, [plan_id=40]
      Generate | Generate explode(array(cast(n#3 as bigint), value#1L)), false, [col#5L]
        Project | Project [value#1L, n#3]
          BroadcastHashJoin | BroadcastHashJoin [k#4], [k#2], Inner, BuildRight, false, false
            Project | Project [value#1L, cast((value#1L % 7) as int) AS k#4]
              MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}
            BroadcastExchange | BroadcastExchange HashedRelationBroadcastMode(List(cast(input[0, int, false] as bigint)),false), [plan_id=36]
              Filter | Filter isnotnull(k#2)
                Scan ExistingRDD | Scan ExistingRDD[k#2,n#3]
"""  # noqa: E501

BROADCAST_FINAL = f"""
WriteToDataSourceV2 | WriteToDataSourceV2 MicroBatchWrite[epoch: 0, writer: NoopStreamingWrite]
  AdaptiveSparkPlan | AdaptiveSparkPlan isFinalPlan=true
    ResultQueryStage | ResultQueryStage 2
      AQEShuffleRead | AQEShuffleRead coalesced
        ShuffleQueryStage | ShuffleQueryStage 1
          Exchange | Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM, [plan_id=100]
            WholeStageCodegen (2)
              Generate | Generate explode(array(cast(n#3 as bigint), value#1L)), false, [col#5L]
                Project | Project [value#1L, n#3]
                  BroadcastHashJoin | BroadcastHashJoin [k#4], [k#2], Inner, BuildRight, false, false
                    Project | Project [value#1L, cast((value#1L % 7) as int) AS k#4]
                      InputAdapter
                        MicroBatchScan | MicroBatchScan[timestamp#0, value#1L] {RATE}
                    InputAdapter
                      BroadcastQueryStage | BroadcastQueryStage 0
                        BroadcastExchange | BroadcastExchange HashedRelationBroadcastMode(List(cast(input[0, int, false] as bigint)),false), [plan_id=59]
                          WholeStageCodegen (1)
                            Filter | Filter isnotnull(k#2)
                              Scan ExistingRDD | Scan ExistingRDD[k#2,n#3]
"""  # noqa: E501

LEFT = """
  Exchange | Exchange hashpartitioning(k#{0}, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=58]
    Filter | Filter isnotnull(t#{0}-T10000ms)
      EventTimeWatermark | EventTimeWatermark 3e180203-9c89-4880-81f4-0ca219d12bf6, t#{0}: timestamp, 10 seconds
        {1}
"""
RIGHT = """
  Exchange | Exchange hashpartitioning(k2#7, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=63]
    Project | Project [k#3 AS k2#7, t#4-T10000ms AS t2#6-T10000ms]
      EventTimeWatermark | EventTimeWatermark 3df93fb5-6fa5-48b3-b8da-01228a0b4c39, t#4: timestamp, 10 seconds
        {0}
"""
JOIN = (
    "StreamingSymmetricHashJoin | StreamingSymmetricHashJoin [k#12], [k2#7], Inner, condition = [ both = (t2 >= t) ],"
    " state info [ checkpoint = file:/data/cp, opId = 0, ver = {0}, numPartitions = 2], 0, 0, 2"
)
EMPTY = "LocalTableScan | LocalTableScan <empty>, [k#3, t#4]"
JSON = (
    "Scan json  | FileScan json [k#12,t#13] Batched: false, Format: JSON, Location: InMemoryFileIndex(1 paths)"
    "[file:/data/{0}], PartitionFilters: [], ReadSchema: struct<k:int>"
)


def analyse(text: str, sink: str | None = SINK) -> plan.Graph:
    return plan.analyse(tree(text), sink)


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
    assert plan.short_name(text) == name


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


# ---- Ids

SAME = [
    ("expression ids", "Filter (value#1L > k#22)", "Filter (value#101L > k#9)"),
    ("plan id", "Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=75]", "Exchange SinglePartition"),
    ("subquery id", "Subquery subquery#9, [id=#34]", "Subquery subquery#19, [id=#340]"),
    ("hash partitions", "Exchange hashpartitioning((k#1 % 5), 3)", "Exchange hashpartitioning((k#1 % 5), 200)"),
    (
        "range partitions",
        "Exchange rangepartitioning(k#1 ASC NULLS FIRST, 3), REPARTITION_BY_NUM, [plan_id=1]",
        "Exchange rangepartitioning(k#1 ASC NULLS FIRST, 40), ENSURE_REQUIREMENTS, [plan_id=1]",
    ),
    ("round robin partitions", "Exchange RoundRobinPartitioning(2)", "Exchange RoundRobinPartitioning(16)"),
    (
        "who asked for an exchange",
        "Exchange hashpartitioning(k#1, 3), ENSURE_REQUIREMENTS, [plan_id=1]",
        "Exchange hashpartitioning(k#1, 3), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=1]",
    ),
    (
        "state info",
        "StreamingDeduplicate [v#1L], state info [ checkpoint = file:/a, opId = 0, ver = 0, numPartitions = 3], 0, 0",
        "StreamingDeduplicate [v#9L], state info [ checkpoint = s3:/b, opId = 0, ver = 17, numPartitions = 200]"
        " stateStoreCkptIds = None, 1795257770000, 1795257769000",
    ),
    (
        "watermark uuid",
        "EventTimeWatermark 9bdbeca8-7a75-4551-8a2a-ff1760c5e321, t#0: timestamp, 1 seconds",
        "EventTimeWatermark t#4: timestamp, 1 seconds",
    ),
    ("epoch", "Write MicroBatchWrite[epoch: 1, writer: W]", "Write MicroBatchWrite[epoch: 22, writer: W]"),
    (
        "lambda",
        "MapElements a.B$$Lambda$2066/0x00007f65b4b23e08@1c3f0401, obj#3",
        "MapElements a.B$$Lambda/0x00007f3744baad50@47b, obj#3",
    ),
    ("address", "Foo a.b.Bar@47b45e0f, 1", "Foo a.b.Bar@6704af9, 1"),
    (
        "current_timestamp()",
        "Project [2026-11-21 10:42:48.662 AS now#1]",
        "Project [2026-11-22 10:42:49 AS now#1]",
    ),
    ("current_date()", "Filter (d#1 >= 2026-11-21)", "Filter (d#1 >= 2026-11-22)"),
    ("unix_timestamp()", "Filter (s#1L < 1795257769)", "Filter (s#1L < 1795257770)"),
    ("unix_millis()", "Filter (s#1L < 1795257769084)", "Filter (s#1L < 1795257770001)"),
    ("unix_micros()", "Filter (s#1L < 1795257769084000)", "Filter (s#1L < 1795257770000000)"),
    ("rand()", "Project [rand(-5862441267331) AS r#1]", "Project [rand(7) AS r#1]"),
    ("uuid()", "Project [uuid(Some(-586244126733198)) AS u#1]", "Project [uuid(Some(11)) AS u#1]"),
    ("sample()", "Sample 0.0, 0.1, false, -5862441267331", "Sample 0.0, 0.1, false, 8"),
    ("other seeds", "Project [randstr(5, 5862441267331984421)]", "Project [randstr(5, -862441267331984421)]"),
    ("splits", "Range (0, 100, step=1, splits=Some(2))", "Range (0, 100, step=1, splits=16)"),
    ("skew", "SortMergeJoin(skew=true) [k#1], [k#2], Inner", "SortMergeJoin [k#1], [k#2], Inner"),
    (
        "paths",
        "FileScan json [k#1] Format: JSON, Location: InMemoryFileIndex(1 paths)[file:/data/a], PartitionFilters: []",
        "FileScan json [k#1] Format: JSON, Location: InMemoryFileIndex(2 paths)[file:/b, ...], PartitionFilters: []",
    ),
    (
        "a path that Spark cut",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/data/a], PartitionFilters: [], ReadSchema: s",
        "FileScan json [k#1] Location: InMemoryFileIndex(2 paths)[file:/data/part-00001-425e5ec3-1d79-451e-..., "
        "PartitionFilters: [], ReadSchema: s",
    ),
    (
        "a filter that Spark cut",
        "FileScan json [k#98] Batched: false, DataFilters: [isnotnull(k#98), (k#98 > 3), (k..., Format: JSON",
        "FileScan json [k#101] Batched: false, DataFilters: [isnotnull(k#101), (k#101 > 3)..., Format: JSON",
    ),
]


@pytest.mark.parametrize(("one", "other"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_what_is_volatile_is_in_no_id(one: str, other: str) -> None:
    """Batches, restarts, machines, partition counts and versions differ in these."""
    assert plan.stable(one) == plan.stable(other)


DIFFERENT = [
    ("constant", "Filter (value#1L > 3)", "Filter (value#1L > 4)"),
    ("column", "Project [a#1]", "Project [b#1]"),
    ("key", "Exchange hashpartitioning(a#1, 3)", "Exchange hashpartitioning(b#1, 3)"),
    ("hash or range", "Exchange hashpartitioning(a#1, 3)", "Exchange rangepartitioning(a#1, 3)"),
    ("join type", "SortMergeJoin [k#1], [k#2], Inner", "SortMergeJoin [k#1], [k#2], LeftOuter"),
    ("watermark delay", "EventTimeWatermark t#0: timestamp, 1 seconds", "EventTimeWatermark t#0: timestamp, 2 seconds"),
    ("window of minutes", "Project [(t#1 % 1800000000)]", "Project [(t#1 % 1900000000)]"),
    ("window of weeks", "Project [(t#1 % 1209600000000)]", "Project [(t#1 % 1814400000000)]"),
    ("coalesce", "Coalesce 2", "Coalesce 3"),
    ("sample", "Sample 0.0, 0.1, false, 8", "Sample 0.0, 0.2, false, 8"),
    ("a scan's filter", "FileScan json [k#1] DataFilters: [a#1]", "FileScan json [k#1] DataFilters: [b#1]"),
    (
        "what stands behind a path",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/a], PartitionFilters: [p#1]",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/a], PartitionFilters: [q#1]",
    ),
    ("state keys", "StateStoreSave [a#1], state info [ x", "StateStoreSave [b#1], state info [ x"),
]


@pytest.mark.parametrize(("one", "other"), [case[1:] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT])
def test_other_code_has_other_ids(one: str, other: str) -> None:
    """What the user wrote is what tells operators apart."""
    assert plan.stable(one) != plan.stable(other)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("> 3)", "> 4)"), [1]),
        (("explode(", "explode_outer("), [1]),
        (("isnotnull(k#2)", "isnull(k#2)"), [0]),
        (("RoundRobinPartitioning(2)", "SinglePartition"), [2]),
    ],
    ids=["filter", "generator", "broadcast side", "partitioning"],
)
def test_a_change_renames_its_own_vertex_alone(change: tuple[str, str], expected: list[int]) -> None:
    """An id does not depend on the segments before; an exchange's partitioning belongs to its reader."""
    text = BROADCAST_FIRST.replace("cast((value#1L % 7) as int)", "(value#1L > 3)")
    assert changed(analyse(text), analyse(text.replace(*change))) == expected


def test_a_skew_join_keeps_its_id() -> None:
    """Spark tells the skew in the node's name, too."""
    text = "SortMergeJoin{0} | SortMergeJoin{0} [k#1], [k#2], Inner\n  Scan a\n  Scan b"
    plain, skewed = analyse(text.format(""), None), analyse(text.format("(skew=true)"), None)
    assert ids(skewed) == ids(plain)
    assert chains(skewed) == chains(plain)


def test_equal_siblings_get_ordinals() -> None:
    """Two equal scans in one vertex, and two equal vertices, have ids of their own, the same in every batch."""
    scan = f"\n    Scan a\n    MicroBatchScan | MicroBatchScan[v#1] {RATE}"
    side = f"\n  Exchange | Exchange hashpartitioning(k#1, 3)\n    Union{scan.replace('    ', '      ')}"
    text = f"SortMergeJoin{side}{side}"
    graph = analyse(text, None)
    left, right, join = graph.vertices
    assert left.id != right.id
    assert [operator.id for operator in left.operators] == [operator.id for operator in right.operators]
    assert len(join.operators) == 1
    one_vertex = analyse("Union\n  Scan a\n  Scan a\n  Scan a", None).vertices[0]
    assert len({operator.id for operator in one_vertex.operators}) == 4
    assert ids(analyse(text.replace("#1", "#77"), None)) == ids(graph)


@pytest.mark.parametrize("empty_side", [0, 1], ids=["left", "right"])
def test_an_empty_side_of_a_join_renames_nothing_else(empty_side: int) -> None:
    """Spark puts LocalTableScan <empty> in its place and prunes above it; join and other side stay."""
    full = analyse(JOIN.format(0) + LEFT.format(13, JSON.format("f1")) + RIGHT.format(JSON.format("g1")))
    left = LEFT.format(0, EMPTY) if empty_side == 0 else LEFT.format(13, JSON.format("a/f2"))
    right = RIGHT.format(EMPTY) if empty_side == 1 else RIGHT.format(JSON.format("b/g2"))
    batch = analyse(JOIN.format(5) + left + right)
    assert changed(full, batch) == [empty_side]
    assert [vertex.empty for vertex in batch.vertices] == [empty_side == 0, empty_side == 1, False]
    assert [vertex.position for vertex in batch.vertices] == [vertex.position for vertex in full.vertices]
    assert not any(vertex.empty for vertex in full.vertices)


def test_sinks_keep_their_id_whatever_their_description() -> None:
    """Writers print addresses and lambdas; of a sink its node and what it reads count."""
    text = "OverwriteByExpression | OverwriteByExpression {0}\n  Scan json t"
    assert ids(analyse(text.format("x$$Lambda$22/0x7@5, Write@1"), None)) == ids(analyse(text.format("other"), None))


def test_ids_are_what_they_always_were() -> None:
    """A new release renames no vertex of a running job: change these only with a note to the users."""
    assert [vertex.id for vertex in analyse(AGGREGATION_4).vertices] == GOLDEN


GOLDEN = ["bd51612aef68684ef7c3bb9a3a0d26d9", "da7a441a65f9001ce93a597bfa6cfa27"]


# ---- Any plan

UNARY = {
    "Filter": "Filter (isnotnull(value#{e}L) AND (value#{e}L > {code}))",
    "Project": "Project [value#{e}L, ({code} + value#{e}L) AS v#{e}L, 1795257{ms:06d} AS now#{e}]",
    "HashAggregate": "HashAggregate(keys=[k#{e}L], functions=[sum({code})])",
    "StreamingDeduplicate": "StreamingDeduplicate [c{code}#{e}], state info [ checkpoint = /{ms}, ver = {e}], {e}, 0",
    "MapElements": "MapElements a.F{code}$$Lambda${e}/0x{ms:x}@{ms:x}, obj#{e}",
}
LEAVES = {
    "MicroBatchScan": "MicroBatchScan[c{code}#{e}] " + RATE,
    "Scan json ": "FileScan json [c{code}#{e}] Location: InMemoryFileIndex({e} paths)[file:/{ms}], ReadSchema: s",
    "Scan ExistingRDD": "Scan ExistingRDD[c{code}#{e}]",
}
SHUFFLES = {
    "Exchange": "Exchange hashpartitioning(c{code}#{e}, {e}), ENSURE_REQUIREMENTS, [plan_id={ms}]",
    "BroadcastExchange": "BroadcastExchange HashedRelationBroadcastMode(List(c{code}#{e})), [plan_id={ms}]",
}
BINARY = {"Union": "Union", "SortMergeJoin": "SortMergeJoin [a{code}#{e}], [b#{e}], Inner"}

Shape = tuple[str, str, int, tuple["Shape", ...]]


def shapes() -> st.SearchStrategy[Shape]:
    def kind(table: dict[str, str], children: st.SearchStrategy[tuple[Shape, ...]]) -> st.SearchStrategy[Shape]:
        return st.sampled_from(sorted(table.items())).flatmap(
            lambda item: st.tuples(st.just(item[0]), st.just(item[1]), st.integers(0, 2), children)
        )

    leaves = kind(LEAVES, st.just(()))
    return st.recursive(
        leaves,
        lambda below: kind({**UNARY, **SHUFFLES}, st.tuples(below)) | kind(BINARY, st.tuples(below, below)),
        max_leaves=12,
    )


def rendered(shape: Shape, seed: int) -> PlanNode:
    """A plan of this shape in some batch: other numbers, and wrapped as code generation and AQE please."""
    noise, numbers = random.Random(seed), itertools.count(seed % 1000)

    def render(one: Shape) -> PlanNode:
        name, description, code, children = one
        text = description.format(e=noise.randrange(1, 400), ms=noise.randrange(1_000, 999_999), code=code)
        found = node(name, text, [render(child) for child in children], numbers)
        for wrapper in noise.sample(["InputAdapter", "WholeStageCodegen (3)", "ShuffleQueryStage"], noise.randrange(3)):
            found = node(wrapper, wrapper, [found], numbers)
        return found

    return render(shape)


@given(shapes(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_ids_and_names_are_the_same_in_every_batch(shape: Shape, one: int, other: int) -> None:
    """Whatever the plan, what is volatile changes neither graph nor names."""
    first, second = plan.analyse(rendered(shape, one), SINK), plan.analyse(rendered(shape, other), SINK)
    assert ids(first) == ids(second)
    assert chains(first) == chains(second)
    assert [[read.source.id for read in vertex.reads] for vertex in first.vertices] == [
        [read.source.id for read in vertex.reads] for vertex in second.vertices
    ]


@given(shapes(), st.integers(0, 10**6), st.sampled_from([None, SINK]))
def test_graphs_are_in_order_and_without_doubles(shape: Shape, seed: int, sink: str | None) -> None:
    """Sources first, operators after their inputs, every id and name once."""
    graph = plan.analyse(rendered(shape, seed), sink)
    assert len({vertex.id for vertex in graph.vertices}) == len(graph.vertices)
    seen: set[plan.Vertex] = set()
    for vertex in graph.vertices:
        before: set[plan.Operator] = set()
        assert vertex.name
        assert vertex.operators
        for operator in vertex.operators:
            assert {found for found in operator.inputs if isinstance(found, plan.Operator)} <= before
            assert {found for found in operator.inputs if isinstance(found, plan.Exchange)} <= set(vertex.reads)
            before.add(operator)
        assert {read.source for read in vertex.reads} <= seen
        assert len({operator.name for operator in before}) == len(before)
        assert len({operator.id for operator in before}) == len(before)
        assert all(len(operator.name) <= plan.NAME_LENGTH for operator in before)
        seen.add(vertex)
    assert all(read.source.writes is read for vertex in graph.vertices for read in vertex.reads)


@given(shapes(), st.integers(0, 10**6), st.data())
def test_a_change_of_code_reaches_an_id(shape: Shape, seed: int, data: st.DataObject) -> None:
    """Not one constant of the user's may be lost."""
    places = list(_places(shape))
    place = data.draw(st.sampled_from(places))
    name, description, code, children = place(shape, None)
    if "{code}" not in description:
        return
    other = place(shape, (name, description, code + 1, children))
    assert ids(plan.analyse(rendered(shape, seed), SINK)) != ids(plan.analyse(rendered(other, seed), SINK))


Place = Callable[[Shape, Shape | None], Shape]


def _places(shape: Shape) -> Iterator[Place]:
    """For every node of a shape, what reads it, or the whole shape with another node in its place."""
    yield lambda whole, new: whole if new is None else new
    for index, child in enumerate(shape[3]):
        for below in _places(child):

            def place(whole: Shape, new: Shape | None, index: int = index, below: Place = below) -> Shape:
                inner = below(whole[3][index], new)
                if new is None:
                    return inner
                return (*whole[:3], (*whole[3][:index], inner, *whole[3][index + 1 :]))

            yield place


@given(shapes(), st.integers(0, 10**6))
def test_analysis_depends_on_nothing_but_its_arguments(shape: Shape, seed: int) -> None:
    """The plan is read, never changed."""
    root = rendered(shape, seed)
    before = msgspec.msgpack.encode(root)
    assert ids(plan.analyse(root)) == ids(plan.analyse(root))
    assert msgspec.msgpack.encode(root) == before
