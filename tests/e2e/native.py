"""Every native SQL metric of a job, as Spark's event log has it and as REST tells it, in one shape."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.e2e import event_log
from tests.e2e.conftest import Rest

Key = tuple[str, str]
"""(node, metric): names that Spark shows; of equal names in a node the second one ends in ' 2'."""

Table = dict[int, str]
"""Partition → value, as REST writes it; zeros left out."""

PEAKS = {"peak memory"}
LEVELS = {
    "number of total state rows",
    "memory used by state",
    "estimated size of state only on current version",
    "count of cache hit on states cache in provider",
    "count of cache miss on states cache in provider",
    "number of shuffle partitions",
    "number of state store instances",
    "number of partitions",
    "RocksDB: memory usage for pinned blocks",
    "RocksDB: number of external column families",
    "RocksDB: number of internal column families",
    "RocksDB: number of internal keys for internal column families",
    "RocksDB: size of all SST files",
}
SINKS = re.compile("WriteToDataSourceV2|OverwriteByExpression|AppendData|Execute InsertInto|WriteFiles")
CODEGEN = "WholeStageCodegen"
TOGETHER = ("Exchange", CODEGEN)
"""
Added up over all nodes: what is read of an exchange is told of its reader as a whole, and the numbers of pieces of
generated code are others in every batch.
"""
NOT_TOLD = re.compile(r"AdaptiveSparkPlan|AQEShuffleRead|ReusedExchange|\w*QueryStage")
VOLATILE = re.compile(
    r"#\d+L?|, state info.*|Location.*|plan_id=\d+|\[id=#\d+\]|epoch: \d+|EventTimeWatermark \S+|\(\d+\)"
)


@dataclass
class Metrics:
    """
    Args:
        subtasks: Every operator's; those of TOGETHER are added up.
        driver: What the driver told of sums, sizes and times, over all nodes of a name.
    """

    subtasks: dict[Key, list[Table]]
    driver: dict[Key, int]


@dataclass
class _Metric:
    kind: str
    ids: list[int] = field(default_factory=list)
    nodes: list[set[int]] = field(default_factory=list)


def logged(spark: SparkSession, folder: Path, jid: str, run_id: str = "") -> Metrics:
    """Return what the event log has of a job; without `run_id` it is a batch."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty(30_000)
    events = event_log.logged(folder)
    roots = set()
    for event in events:
        if event["Event"].endswith("SQLExecutionStart"):
            root = event.get("rootExecutionId", event["executionId"])
            digest = hashlib.md5(f"{context.applicationId}:{root}".encode()).hexdigest()
            if digest == jid or root in roots or (run_id and f"runId = {run_id}" in event["description"]):
                roots.add(event["executionId"])
    assert roots, f"Spark's event log has nothing of {jid}"
    return _logged(events, roots)


def _logged(events: list[dict[str, Any]], executions: set[int]) -> Metrics:
    metrics: dict[tuple[Key, str], _Metric] = {}
    seen: set[int] = set()
    for event in events:
        if event.get("executionId") in executions and "sparkPlanInfo" in event:
            equals: Counter[tuple[str, str]] = Counter()
            for node in _walk(event["sparkPlanInfo"]):
                place = (node["nodeName"].strip(), VOLATILE.sub("", node["simpleString"]))
                ids = {metric["accumulatorId"] for metric in node["metrics"]}
                if ids and not ids & seen and not NOT_TOLD.match(place[0]):
                    _take(metrics, node, f"{place[1]} {equals[place]}", ids)
                equals[place] += bool(ids)
                seen |= ids
    tasks = _winners(events, executions)
    ran: dict[int, set[int]] = defaultdict(set)
    for stage, _, updates in tasks:
        ran[stage] |= updates.keys()
    found: dict[Key, list[Table]] = defaultdict(list)
    together: dict[Key, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    driver: dict[Key, int] = defaultdict(int)
    told = [event for event in events if event["Event"].endswith("DriverAccumUpdates")]
    told = [event for event in told if event["executionId"] in executions]
    for (key, _), metric in metrics.items():
        plain = re.sub(r" \d+$", "", key[1])
        table: dict[int, int] = defaultdict(int)
        for accumulator, node_ids in zip(metric.ids, metric.nodes, strict=True):
            for stage, partition, updates in tasks:
                value = max(updates.get(accumulator, 0), 0)
                if plain in LEVELS or metric.kind == "average":
                    table[partition] = value if ran[stage] & node_ids else table[partition]
                else:
                    table[partition] = max(table[partition], value) if plain in PEAKS else table[partition] + value
        if key[0] in TOGETHER:
            for partition, value in table.items():
                together[key][partition] += value
        else:
            found[key].append(_written(table, metric.kind))
        values = [value for event in told for each, value in event["accumUpdates"] if each in metric.ids and value >= 0]
        driver[key] += sum(values[-1:] if plain in LEVELS else values)
    for key, table in together.items():
        found[key] = [_written(table, "sum")]
    return Metrics(found, {key: value for key, value in driver.items() if value})


def _take(metrics: dict[tuple[Key, str], _Metric], node: dict[str, Any], place: str, ids: set[int]) -> None:
    name = node_name(node["nodeName"])
    times: Counter[str] = Counter()
    for metric in node["metrics"]:
        shown = metric["name"]
        times[shown] += 1
        number = f" {times[shown]}" if times[shown] > 1 else ""
        key = (name, f"{shown}{number}")
        found = metrics.setdefault((key, place), _Metric(metric["metricType"]))
        found.ids.append(metric["accumulatorId"])
        found.nodes.append(ids)


def node_name(shown: str) -> str:
    """
    Return a node's name without what is volatile.

    All sinks have one name, for REST calls them by what they write, and so have all exchanges.
    """
    name = shown.strip().removeprefix("Scan ").removesuffix("(skew=true)")
    if SINKS.match(name):
        return "Sink"
    if name.startswith(CODEGEN):
        return CODEGEN
    return "Exchange" if name == "BroadcastExchange" else name


def _winners(events: list[dict[str, Any]], executions: set[int]) -> list[tuple[int, int, dict[int, int]]]:
    """Every (stage, partition, updates) that counts, in the order of stages."""
    stages: set[int] = set()
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            execution = event["Properties"].get("spark.sql.execution.id")
            if execution is not None and int(execution) in executions:
                stages.update(event["Stage IDs"])
    won: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            key = (event["Stage ID"], event["Task Info"]["Partition ID"])
            if key[0] in stages and (key not in won or event["Stage Attempt ID"] > won[key][0]):
                told = event["Task Info"]["Accumulables"]
                updates = {each["ID"]: int(each["Update"]) for each in told if each.get("Metadata") == "sql"}
                won[key] = (event["Stage Attempt ID"], updates)
    return [(*key, updates) for key, (_, updates) in sorted(won.items(), key=lambda each: each[0])]


def _written(table: dict[int, int], kind: str) -> Table:
    return {
        partition: str(value / 10) if kind == "average" else str(value)
        for partition, value in sorted(table.items())
        if value
    }


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def told(rest: Rest, jid: str) -> Metrics:
    """Return what REST tells of a job."""
    found: dict[Key, list[Table]] = defaultdict(list)
    together: dict[Key, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    driver: dict[Key, int] = defaultdict(int)
    for vertex in rest.get(f"/jobs/{jid}")["vertices"]:
        path = f"/jobs/{jid}/vertices/{vertex['id']}"
        tables: dict[str, Table] = defaultdict(dict)
        for subtask in rest.get(f"{path}/subtasks/accumulators")["subtasks"]:
            for each in subtask["user-accumulators"]:
                if each["value"] not in ("0", "NaN"):
                    tables[each["name"]][subtask["subtask"]] = each["value"]
        for each in rest.get(f"{path}/accumulators")["user-accumulators"]:
            key, table = _key(each["name"]), tables[each["name"]]
            if key[0] in TOGETHER:
                for partition, value in table.items():
                    together[key][partition] += int(value)
                found[key] = [_written(together[key], "sum")]
            else:
                found[key].append(table)
            if each["type"] in ("LongCounter", "LongGauge"):
                driver[key] += int(each["value"]) - sum(map(int, table.values()))
    return Metrics(found, {key: value for key, value in driver.items() if value})


def _key(name: str) -> Key:
    operator, _, metric = name.partition(".")
    if metric.startswith(CODEGEN):
        return CODEGEN, metric.removeprefix(f"{CODEGEN} ")
    return "Sink" if operator.startswith("Sink: ") else re.sub(r" \d+$", "", operator).removeprefix("Source: "), metric


Page = dict[Key, tuple[str, list[str]]]
"""(node, metric) → kind, and the totals of all nodes of that name."""


def page(spark: SparkSession, description: str) -> Page:
    """Return what Spark's SQL page says of the nodes of an execution."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty(30_000)
    store = spark._jsparkSession.sharedState().statusStore()
    executions = _each(store.executionsList())
    [execution] = [each.executionId() for each in executions if each.description() == description]
    values = store.executionMetrics(execution)
    found: Page = {}
    for node in _each(store.planGraph(execution).allNodes()):
        name = node_name(node.name())
        if NOT_TOLD.match(name) or name == CODEGEN:
            continue
        for metric in _each(node.metrics()):
            told = values.get(metric.accumulatorId())
            # The page adds peaks up.
            if told.isDefined() and metric.name() not in PEAKS:
                # '<total> (<least>, …)' on a second line, or the total alone; an average has no total.
                text = told.get().partition("\n")[2] or told.get()
                average = metric.metricType() == "average"
                text = re.sub(r" \(stage [^)]*\)", "", text) if average else text.split(" (")[0]
                # The page has 0 where no task told an average.
                if not (average and text == "0"):
                    found.setdefault((name, metric.name()), (metric.metricType(), []))[1].append(text)
    return {key: (kind, sorted(texts)) for key, (kind, texts) in found.items()}


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def totals(rest: Rest, jid: str, spark: SparkSession, page: Page) -> dict[Key, list[str]]:
    """Return what REST tells of a job's vertices, of the metrics of `page` alone and written as there."""
    utils = spark._jvm.org.apache.spark.util.Utils
    write = {
        "sum": lambda value: f"{int(value):,}",
        "size": lambda value: utils.bytesToString(int(value)),
        "timing": lambda value: utils.msDurationToString(int(value)),
        "nsTiming": lambda value: utils.msDurationToString(int(value) // 1_000_000),
        "average": lambda value: value.rpartition(": ")[2].replace(".0", ""),
    }
    found: dict[Key, list[str]] = defaultdict(list)
    for vertex in rest.get(f"/jobs/{jid}")["vertices"]:
        for each in rest.get(f"/jobs/{jid}/vertices/{vertex['id']}/accumulators")["user-accumulators"]:
            key = _key(each["name"])
            if key in page:
                found[key].append(write[page[key][0]](each["value"]))
    return {key: sorted(texts) for key, texts in found.items()}


def assert_same(rest: Metrics, log: Metrics) -> None:
    """Node by node, metric by metric, subtask by subtask; and what the driver told."""
    keys = rest.subtasks.keys() | log.subtasks.keys()
    pairs = {key: (_ordered(rest.subtasks.get(key, [])), _ordered(log.subtasks.get(key, []))) for key in keys}
    different = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    assert not different, f"REST, event log: {different}"
    assert rest.driver == log.driver, f"{rest.driver} != {log.driver}"


def _ordered(tables: list[Table]) -> list[list[tuple[int, str]]]:
    return sorted(sorted(table.items()) for table in tables if table)
