"""No latency marker is lost sight of, whatever happens to the queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from spark_hooks import plan, records
from spark_hooks.counts import READ_RECORDS, WRITTEN_RECORDS
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.job import Job
from spark_hooks.markers import Emission
from spark_hooks.progress import milliseconds
from spark_hooks.records import PlanNode
from streamgauge import names, wire
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import APP, Execution, Ids, Query, Task, empty, scan, sink, stage

START = "2026-11-21T10:00:00.000Z"
HOUR_MS = 3_600_000


def _chain(ids: Ids) -> PlanNode:
    return ids.node("Filter", scan(ids))


def _shuffled(ids: Ids) -> PlanNode:
    return ids.node("HashAggregate", ids.shuffle(_chain(ids)))


def _join(ids: Ids) -> PlanNode:
    right = ids.shuffle(ids.node("Project", scan(ids)), "hashpartitioning(right#1L, 3)")
    return ids.node("StreamingSymmetricHashJoin", ids.shuffle(_chain(ids)), right)


def _one_sided(ids: Ids) -> PlanNode:
    right = ids.shuffle(ids.node("Project", empty(ids)), "hashpartitioning(right#1L, 3)")
    return ids.node("StreamingSymmetricHashJoin", ids.shuffle(_chain(ids)), right)


def _union(ids: Ids) -> PlanNode:
    return ids.node("Union", _chain(ids), ids.node("Project", scan(ids)))


def _reused(ids: Ids) -> PlanNode:
    both = ids.shuffle(_chain(ids))
    left = ids.shuffle(ids.node("Sort", both), "hashpartitioning(left#1L, 3)")
    return ids.node("SortMergeJoin", left, ids.shuffle(ids.node("Window", both), "hashpartitioning(right#1L, 3)"))


def _nothing(ids: Ids) -> PlanNode:
    return empty(ids)


Shape = Callable[[Ids], PlanNode]
SOURCES: Mapping[Shape, int] = {_chain: 1, _shuffled: 1, _join: 2, _union: 2, _reused: 1}
OTHERS: tuple[Shape, ...] = (_one_sided, _nothing, _chain)

_offsets = st.one_of(
    st.none(),
    st.integers(0, 30),
    st.fixed_dictionaries({"t": st.dictionaries(st.sampled_from("ab"), st.integers(0, 5))}),
    st.just("somewhere"),
)
_strange = st.lists(st.tuples(_offsets, _offsets, _offsets, st.integers(0, 3)), max_size=3)


@dataclass(frozen=True)
class Event:
    """
    What Spark tells next; of the other fields each kind of event takes what it needs.

    Args:
        other: The batch has another plan than the query mostly has; None for its own.
        reads, behind: Rows that it reads of each source, and leaves there.
        strange: In place of these, offsets of any kind; None mostly.
        tasks: Of each stage.
        seen: A bit for each vertex: whether it runs.
    """

    kind: str
    wait_ms: int
    stepped_ms: int
    other: Shape | None
    reads: tuple[int, int]
    behind: tuple[int, int]
    strange: list[tuple[object, object, object, int]] | None
    tasks: int
    seen: int
    odd: bool


_RARE = 12

_events = st.lists(
    st.builds(
        Event,
        st.sampled_from(
            [
                *["batch"] * 12,
                "begin",
                "run",
                "executed",
                *["progress"] * 2,
                *["idle"] * 2,
                *["drain"] * 3,
                "end",
                "start",
            ]
        ),
        st.sampled_from([0, 1, 90, 700, 2_000, 5_000, 40_000]),
        st.sampled_from([*[0] * _RARE, 50, -HOUR_MS, HOUR_MS]),
        st.sampled_from([*[None] * _RARE, *OTHERS]),
        st.tuples(st.integers(0, 5), st.integers(0, 5)),
        st.tuples(st.integers(0, 9), st.sampled_from([0, 0, 0, 4])),
        st.one_of(*[st.none()] * _RARE, _strange),
        st.sampled_from([1, 2, 3, 3, 0]),
        st.sampled_from([*[7] * _RARE, 6, 5, 3, 1, 0]),
        st.sampled_from([*[False] * 5, True]),
    ),
    max_size=40,
)


@dataclass
class Life:
    """One query's, told to a model."""

    shape: Shape
    trigger: str
    granularity: wire.LatencyGranularity
    ids: Ids = field(default_factory=Ids)
    now_ms: int = milliseconds(START)
    shifted_ms: int = 0
    began_ms: int = milliseconds(START)
    highest: dict[tuple[wire.Attempt, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        executors = Executors(APP.id, 1, ManualClock(now_ms=APP.start_ms))
        self.model = Model(APP, executors, emission=Emission(700, self.granularity, 16))
        self.query = Query(1, trigger=self.trigger)
        self.drain()
        self.start()
        self.plan = sink(self.ids, self.shape(self.ids))
        self.read = [0, 0]
        self.execution = self.new_execution()

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.shifted_ms

    def new_execution(self) -> Execution:
        return Execution(self.ids, self.plan, self.query.describe())

    def apply(self, *events: records.Record) -> None:
        for event in events:
            self.model.apply([event])
            assert self.model.faults == []
            for job in self.model.jobs.values():
                self.check(job)

    def check(self, job: Job) -> None:
        told = job.metrics()
        emitted, recorded = int(told[names.MARKERS_EMITTED]), int(told[names.MARKERS_RECORDED])
        flying = int(told[names.MARKERS_IN_FLIGHT])
        dropped = {reason: int(told[metric]) for reason, metric in names.MARKERS_DROPPED_BY.items()}
        assert emitted == recorded + sum(dropped.values()) + flying
        assert min(recorded, flying, *dropped.values()) >= 0
        assert not (job.state in wire.ENDED_STATES and flying)
        for name, value in {"emitted": emitted, "recorded": recorded, **dropped}.items():
            assert value >= self.highest.get((job.attempt, name), 0), name
            self.highest[job.attempt, name] = value
        assert recorded == self.at_sinks(job)

    def at_sinks(self, job: Job) -> int:
        """Markers in the windows and in the histograms of sinks; both hold them all."""
        assert job.course.markers is not None
        windows = histograms = 0
        for vertex in job.graph.vertices.values():
            sinks = {(operator.id,) for operator in vertex.operators if operator.sink}
            for each in job.course.markers.latencies.latencies(vertex.id, vertex.size + 3, lambda key, state: True):
                if each.operators in sinks and each.source_subtask < 0 and each.source:
                    windows += int(np.frombuffer(each.counts, dtype="<i8").sum())
            for found in job.course.markers.latencies.histograms(vertex.id, lambda key, state: True):
                if found.operators in sinks:
                    histograms += int(np.frombuffer(found.total.counts, dtype="<i8").sum())
                    histograms += found.total.below + found.total.above
        assert windows == histograms
        return windows

    def drain(self) -> None:
        self.model.time.look(self.wall_ms, self.now_ms * 1_000_000)
        for job in self.model.jobs.values():
            self.check(job)

    def start(self) -> None:
        self.apply(self.query.started(_iso(self.wall_ms)))

    def take(self, event: Event) -> None:
        self.now_ms += event.wait_ms
        self.shifted_ms += event.stepped_ms
        if event.kind in ("batch", "begin"):
            self.query.batch += 1 + (event.odd and event.kind == "begin")
            self.plan = sink(self.ids, (event.other or self.shape)(self.ids))
            self.execution = self.new_execution()
            self.began_ms = self.wall_ms
            self.apply(self.execution.start(self.wall_ms))
        if event.kind in ("batch", "run"):
            self.run(event)
        if event.kind in ("batch", "executed"):
            self.now_ms += 40
            self.apply(self.execution.end(self.wall_ms, "stopped" if event.odd and event.kind == "executed" else ""))
        if event.kind in ("batch", "progress"):
            self.drain()
            told = self.offsets(event) if event.strange is None else event.strange
            sources = [
                {"startOffset": start, "endOffset": end, "latestOffset": latest, "numInputRows": rows}
                for start, end, latest, rows in told
            ]
            more: Mapping[str, object] = {"timestamp": _iso(self.began_ms), "sources": sources}
            self.apply(self.query.progress(sum(rows for *_, rows in told), **more))
        if event.kind == "idle":
            self.apply(records.QueryIdle("q", self.query.run_id, self.wall_ms))
        if event.kind == "drain":
            self.drain()
        if event.kind == "end":
            self.apply(self.query.terminated(self.wall_ms, "java.lang.Oops" if event.odd else None))
        if event.kind == "start":
            self.query.run += 1
            self.query.batch -= event.odd and self.query.batch > 0
            self.start()

    def offsets(self, event: Event) -> list[tuple[object, object, object, int]]:
        """The sources read on."""
        before = self.read
        self.read = [read + rows for read, rows in zip(before, event.reads, strict=True)]
        found = zip(before, self.read, event.behind, event.reads, strict=True)
        told = [(start or None, end, end + behind, rows) for start, end, behind, rows in found]
        return told[: SOURCES[self.shape]]

    def run(self, event: Event) -> None:
        """Tasks of the plan's vertices run, of those that the bits of `seen` tell; an odd one brings no rows."""
        for number, vertex in enumerate(plan.analyse(self.plan, "Noop").vertices):
            if not event.seen >> number % 3 & 1:
                continue
            found = stage(self.ids, event.tasks, shuffles=vertex.writes is not None)
            self.apply(self.execution.job(found))
            told = {row: 5 for operator in vertex.operators for row in operator.rows}
            told |= {exchange.metrics[READ_RECORDS]: 5 for exchange in vertex.reads}
            if vertex.writes is not None and not event.odd:
                told[vertex.writes.metrics[WRITTEN_RECORDS]] = 5
            for partition in range(event.tasks):
                task = Task(self.ids, found, partition, launch_ms=self.wall_ms)
                self.now_ms += 7
                self.apply(task.start(), task.end(tuple(each for pair in told.items() for each in pair), took_ms=7))


def _iso(wall_ms: int) -> str:
    return (
        datetime.fromtimestamp(wall_ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


@settings(max_examples=300, deadline=None)
@given(
    _events,
    st.sampled_from(list(SOURCES)),
    st.sampled_from(["ProcessingTimeTrigger(0)", "ProcessingTimeTrigger(5000)", "AvailableNowTrigger", ""]),
    st.sampled_from(["single", "operator", "subtask"]),
)
def test_emitted_markers_are_recorded_dropped_or_in_flight(
    events: list[Event], shape: Shape, trigger: str, granularity: wire.LatencyGranularity
) -> None:
    """At every event: joins, unions, idle triggers, backlogs, failures, missing events, restarts, clock steps."""
    life = Life(shape, trigger, granularity)
    for event in events:
        life.take(event)
