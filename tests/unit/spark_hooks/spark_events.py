"""Spark's events as the recorder tells them, built by hand: plans with accumulators of their own, stages, tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from spark_hooks import records
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.job import Job
from spark_hooks.records import PlanNode
from streamgauge import wire
from streamgauge.clock import ManualClock

APP = wire.App("app-7", "flights", 1_000_000, "driver.test", "4.3.0", "0.1.0")

SHUFFLE_METRICS = (
    "shuffle records written",
    "shuffle bytes written",
    "records read",
    "local bytes read",
    "remote bytes read",
    "local blocks read",
    "remote blocks read",
    "fetch wait time",
)
TOTALS = ("records_in", "records_out", "bytes_in", "bytes_local", "bytes_remote", "blocks_local", "blocks_remote")

Figures = dict[str, int]
"""What a task did: '<node>' → rows of that node, '<exchange>.<metric>' → what it wrote or read."""


def new_model(clock: ManualClock | None = None) -> Model:
    return Model(APP, Executors(APP.id, 1, clock or ManualClock(now_ms=APP.start_ms)))


def query_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012x}"


def run_id(number: int) -> str:
    return f"10000000-0000-0000-0000-{number:012x}"


def jid(number: int) -> str:
    return query_id(number).replace("-", "")


class Ids:
    """Spark's counters: every execution, stage, task, job and accumulator of the application is numbered once."""

    def __init__(self) -> None:
        self.executions, self.jobs, self.stages, self.shuffles, self.tasks = (count() for _ in range(5))
        self._accumulators = count(1)

    def node(
        self, name: str, *children: PlanNode, rows: bool = True, metrics: Sequence[str] = (), description: str = ""
    ) -> PlanNode:
        """A node with a row metric and others, each with an accumulator of its own."""
        told: list[str | int] = []
        for metric in (*(["number of output rows"] if rows else []), *metrics):
            told += [metric, next(self._accumulators)]
        return PlanNode(name, description or f"{name} [value#{next(self._accumulators)}L]", tuple(told), children)

    def shuffle(self, child: PlanNode, partitioning: str = "hashpartitioning(value#1L, 3)") -> PlanNode:
        return self.node("Exchange", child, rows=False, metrics=SHUFFLE_METRICS, description=f"Exchange {partitioning}")


def scan(ids: Ids) -> PlanNode:
    description = "MicroBatchScan[value#1L] class org.apache.spark.sql.RateStreamTable$$anon$1"
    return ids.node("MicroBatchScan", description=description)


def empty(ids: Ids) -> PlanNode:
    return ids.node("LocalTableScan", rows=True, description="LocalTableScan <empty>, [value#9L]")


def sink(ids: Ids, child: PlanNode) -> PlanNode:
    return ids.node("WriteToDataSourceV2", child)


def adaptive(child: PlanNode, final: bool = False) -> PlanNode:
    return PlanNode("AdaptiveSparkPlan", f"AdaptiveSparkPlan isFinalPlan={str(final).lower()}", (), (child,))


def walk(root: PlanNode) -> Iterator[PlanNode]:
    yield root
    for child in root.children:
        yield from walk(child)


def accumulator(root: PlanNode, node: str, metric: str = "number of output rows") -> int:
    """The accumulator of a metric of the only node of that name."""
    [found] = {each for each in walk(root) if each.name == node}
    return int(found.metrics[found.metrics.index(metric) + 1])


def updates(root: PlanNode, figures: Mapping[str, int]) -> tuple[int, ...]:
    """A task's updates: zero is never sent. '<node>' or '<node>.<metric>' → value."""
    told: list[int] = []
    for what, value in figures.items():
        node, _, metric = what.partition(".")
        if value:
            told += [accumulator(root, node, metric or "number of output rows"), value]
    return tuple(told)


@dataclass
class Query:
    """A streaming query's events; `run` counts its runs."""

    number: int
    run: int = 0
    name: str | None = "departures"
    trigger: str = "ProcessingTimeTrigger(0)"
    sink: str = "NoopTable"
    checkpoint: str = "file:/data/departures"
    ended_before: int = -1
    batch: int = field(default=-1, init=False)

    @property
    def jid(self) -> str:
        return jid(self.number)

    @property
    def run_id(self) -> str:
        return run_id(1000 * self.number + self.run)

    def started(self, timestamp: str | None = "2026-11-21T10:00:00.000Z") -> records.QueryStarted:
        return records.QueryStarted(
            query_id(self.number),
            self.run_id,
            self.name,
            timestamp,
            self.trigger,
            self.sink,
            self.checkpoint,
            self.ended_before,
        )

    def describe(self) -> str:
        return f"{self.name}\nid = {query_id(self.number)}\nrunId = {self.run_id}\nbatch = {self.batch}"

    def progress(self, rows: int = 0, out: int = -1, **more: object) -> records.QueryProgress:
        told = {
            "id": query_id(self.number),
            "runId": self.run_id,
            "batchId": max(self.batch, 0),
            "timestamp": "2026-11-21T10:00:01.000Z",
            "numInputRows": rows,
            "durationMs": {"triggerExecution": 250},
            "sink": {"description": self.sink, "numOutputRows": out},
        }
        return records.QueryProgress(json.dumps(told | more))

    def terminated(self, time_ms: int = 9_000_000, exception: str | None = None) -> records.QueryTerminated:
        return records.QueryTerminated(query_id(self.number), self.run_id, time_ms, exception)


@dataclass
class Execution:
    """One SQL execution's events."""

    ids: Ids
    plan: PlanNode
    description: str
    root: int | None = None
    id: int = field(init=False)

    def __post_init__(self) -> None:
        self.id = next(self.ids.executions)

    def start(self, time_ms: int = 5_000_000) -> records.ExecutionStart:
        root = self.id if self.root is None else self.root
        return records.ExecutionStart(self.id, root, time_ms, self.description, self.plan)

    def replan(self, plan: PlanNode) -> records.PlanUpdate:
        self.plan = plan
        return records.PlanUpdate(self.id, plan)

    def end(self, time_ms: int = 6_000_000, error: str = "") -> records.ExecutionEnd:
        return records.ExecutionEnd(self.id, time_ms, error)

    def job(self, *stages: records.Stage) -> records.JobStart:
        return records.JobStart(next(self.ids.jobs), 5_000_000, self.id, None, None, 0, stages)

    def driver(self, figures: Mapping[str, int]) -> records.DriverUpdates:
        return records.DriverUpdates(self.id, updates(self.plan, figures))


def stage(ids: Ids, tasks: int, shuffles: bool = False, scopes: Sequence[str] = (), attempt: int = 0) -> records.Stage:
    return records.Stage(next(ids.stages), attempt, tasks, next(ids.shuffles) if shuffles else -1, (), tuple(scopes))


@dataclass
class Task:
    """One task attempt's events."""

    ids: Ids
    stage: records.Stage
    partition: int
    attempt: int = 0
    stage_attempt: int = 0
    launch_ms: int = 5_000_000
    executor: str = "1"
    id: int = field(init=False)

    def __post_init__(self) -> None:
        self.id = next(self.ids.tasks)

    def start(self) -> records.TaskStart:
        return records.TaskStart(
            self.stage.stage,
            self.stage_attempt,
            self.id,
            self.partition,
            self.attempt,
            self.launch_ms,
            self.executor,
        )

    def live(self, told: tuple[int, ...]) -> records.LiveUpdate:
        return records.LiveUpdate(self.stage.stage, self.stage_attempt, self.id, told)

    def end(
        self,
        told: tuple[int, ...] = (),
        succeeded: bool = True,
        bytes_written: int = 0,
        peak_bytes: int = 0,
        spilled_bytes: int = 0,
        took_ms: int = 100,
    ) -> records.TaskEnd:
        return records.TaskEnd(
            self.stage.stage,
            self.stage_attempt,
            self.id,
            self.partition,
            self.attempt,
            self.launch_ms,
            self.executor,
            self.launch_ms + took_ms,
            succeeded,
            bytes_written,
            peak_bytes,
            spilled_bytes,
            told if succeeded else (),
        )

    def failed(self, name: str | None, text: str | None, time_ms: int) -> records.TaskFailure:
        return records.TaskFailure(
            self.stage.stage,
            self.stage_attempt,
            self.id,
            self.partition,
            self.attempt,
            self.executor,
            time_ms,
            name,
            text,
        )


def submitted(told: records.Stage) -> records.StageSubmitted:
    return records.StageSubmitted(5_000_000, told)


def completed(told: records.Stage, attempt: int = 0, failure: str | None = None) -> records.StageCompleted:
    return records.StageCompleted(told.stage, attempt, 5_000_000, failure)


Shown = dict[tuple[str, int, str], int]
"""(vertex name, subtask, '<operator>.in' | '<operator>.out' | total) → count; zeros left out."""


def shown(job: Job) -> Shown:
    """Every count that a job shows and knows, without zeros."""
    found: Shown = {}
    for vertex in job.graph.vertices.values():
        table = vertex.counters.shown().tolist()
        labels = [f"{operator.name}.{way}" for operator in vertex.operators for way in ("in", "out")]
        labels += [*TOTALS, "bytes_out", "bytes_spilled"]
        for subtask, row in enumerate(table):
            for label, value, known in zip(labels, row, vertex.known, strict=True):
                if value:
                    assert known, f"{vertex.name} {label} counts, but is not known"
                    found[vertex.name, subtask, label] = value
    return found


SOURCE = "Source: RateStream -> Filter"
READER = "HashAggregate -> Sink: Noop"


class Run:
    """A query `scan -> filter -> exchange -> aggregate -> sink` whose first batch has begun."""

    def __init__(self, model: Model | None = None, wrap: bool = False) -> None:
        self.ids = Ids()
        self.model = model or new_model()
        self.query = Query(1)
        self.apply(self.query.started())
        self.begin(wrap)

    def begin(self, wrap: bool = False, source: PlanNode | None = None) -> None:
        """The next batch begins."""
        self.query.batch += 1
        self.plan = self.new_plan(source, wrap)
        self.execution = Execution(self.ids, self.plan, self.query.describe())
        self.apply(self.execution.start())

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        ids = self.ids
        below = ids.node("Filter", source or scan(ids))
        plan = ids.node("HashAggregate", ids.shuffle(below))
        return sink(ids, adaptive(plan) if wrap else plan)

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def stages(self, *stages: records.Stage) -> None:
        self.apply(self.execution.job(*stages), *map(submitted, stages))

    def map_stage(self, tasks: int = 2) -> records.Stage:
        found = stage(self.ids, tasks, shuffles=True)
        self.stages(found)
        return found

    def read(self, rows: int, kept: int) -> tuple[int, ...]:
        """Updates of a task of the map stage that wrote as many records as its filter kept."""
        return updates(self.plan, {"MicroBatchScan": rows, "Filter": kept, "Exchange.shuffle records written": kept})

    def task(self, of: records.Stage, partition: int = 0, **more: int) -> Task:
        task = Task(self.ids, of, partition, **more)
        self.apply(task.start())
        return task

    @property
    def job(self):
        return self.model.jobs[self.query.jid]

    def counts(self, vertex: str = SOURCE, label: str = "records_in") -> list[int]:
        """A count of a vertex, subtask by subtask."""
        [found] = [each for each in self.job.graph.vertices.values() if each.name == vertex]
        table = shown(self.job)
        return [table.get((vertex, subtask, label), 0) for subtask in range(found.size)]
