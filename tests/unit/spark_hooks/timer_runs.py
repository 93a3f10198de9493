"""A query with timers: its plan, its tasks' updates, what its timer service reports, and what is told of it."""

from __future__ import annotations

from typing import Any

from spark_hooks import records, vertex_timers
from spark_hooks.records import PlanNode
from spark_hooks.timer_reports import TimerReport
from spark_hooks.vertex import JobVertex
from spark_hooks.vertex_columns import groups
from streamgauge import wire
from tests.unit.spark_hooks.spark_events import Run, Task, scan, sink, updates

PYTHON = "TransformWithStateInPySpark"
JVM = "TransformWithState"
METRICS = (
    vertex_timers.REGISTERED,
    vertex_timers.DELETED,
    vertex_timers.EXPIRED,
    vertex_timers.TOOK_MS,
    vertex_timers.KEYS,
    vertex_timers.FAMILIES,
)


class TimerRun(Run):
    """A query `scan -> filter -> exchange -> transformWithState -> sink` whose first batch has begun."""

    def __init__(self, node: str = PYTHON, mode: str = "EventTime", operators: int = 1) -> None:
        self.node, self.mode, self.operators = node, mode, operators
        super().__init__()

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        plan = self.ids.shuffle(self.ids.node("Filter", source or scan(self.ids)))
        for number in range(self.operators):
            description = f"{self.node} process{number}(k#1), [k#2], Append, {self.mode}, state info [ opId = {number}"
            plan = self.ids.node(self.node, plan, metrics=METRICS, description=description)
        return sink(self.ids, plan)

    def reading(self, tasks: int = 2) -> records.Stage:
        """A stage of the vertex with the timers."""
        found = records.Stage(next(self.ids.stages), 0, tasks, -1, (), ())
        self.stages(found)
        return found

    def told(self, **figures: int) -> tuple[int, ...]:
        """Updates of a task: registered, deleted, expired, took_ms, keys and families, and a row that it put out."""
        told = {f"{self.node}.{getattr(vertex_timers, name.upper())}": value for name, value in figures.items()}
        return updates(self.plan, {self.node: 1, **told})

    @property
    def vertex(self) -> JobVertex:
        [found] = [each for each in self.job.graph.vertices.values() if each.timers is not None]
        return found

    def shown(self) -> dict[str, list[float | None]]:
        """Every figure of timers, '<place of the operator>.<metric>' or the vertex' own → value a subtask."""
        places = {"": ""} | {each.id: f"{place}." for place, each in enumerate(self.vertex.operators)}
        found: dict[str, list[float | None]] = {}
        for told in (each for group in groups(self.vertex) if group.name == "timers" for each in group.columns()):
            there = [True] * self.vertex.size if told.present is None else told.present.tolist()
            values = zip(told.values.tolist(), there, strict=True)
            found[places[told.operator] + told.metric] = [value if known else None for value, known in values]
        return found

    def lateness(self) -> dict[int, int]:
        """Index of a bucket → timers that were so late."""
        timers = self.vertex.timers
        told = None if timers is None else timers.lateness()
        return {} if told is None else counted(told.buckets)


def counted(buckets: wire.Buckets) -> dict[int, int]:
    """Index of a bucket → its count."""
    return dict(
        zip(memoryview(buckets.indices).cast("H").tolist(), memoryview(buckets.counts).cast("q").tolist(), strict=True)
    )


def report(task: Task, fired: int = 0, **more: Any) -> TimerReport:
    """What a task's timer service reports; `fired` of event time."""
    given: dict[str, Any] = {
        "service": "overdue",
        "stage": task.stage.stage,
        "stage_attempt": -1,
        "partition": task.partition,
        "attempt": task.attempt,
        "fired_event": fired,
        "fired_processing": 0,
        "callback_ns": 0,
        "lateness": {},
        "task": task.id,
    }
    return TimerReport(**given | more)
