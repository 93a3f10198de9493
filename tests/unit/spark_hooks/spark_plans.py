"""
Plans as Spark 3.5.9 and 4.3.0 were seen to print them, and what their graphs are compared by.

Plans are written as Spark prints them: two spaces a level, 'node name | description'. The description is the
node's name where it is left out. Accumulators are dealt out as Spark does, new ones for every plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

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


def analyse(text: str, sink: str | None = SINK) -> plan.Graph:
    return plan.analyse(tree(text), sink)
