"""Whatever a model does and a network loses, what was acknowledged is what the collector holds."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
from hypothesis import given, settings

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import Columns, MetricStore
from spark_hooks import plan, records
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.job import Job
from spark_hooks.redaction import Redaction
from spark_hooks.vertex import JobVertex
from streamgauge import codec, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import NeedsFullFrame
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Task,
    accumulator,
    scan,
    sink,
    stage,
    submitted,
)

TOTALS = {
    "numRecordsIn": (),
    "numRecordsOut": (),
    "numBytesIn": (),
    "numBytesInLocal": ("Shuffle.Netty.Input.numBytesInLocal",),
    "numBytesInRemote": ("Shuffle.Netty.Input.numBytesInRemote",),
    "numBuffersInLocal": ("Shuffle.Netty.Input.numBuffersInLocal",),
    "numBuffersInRemote": ("Shuffle.Netty.Input.numBuffersInRemote",),
    "numBytesOut": (),
    "numBytesSpilled": (),
}
"""A vertex's totals in the order of its counters, with the other name of each."""

TRANSIENT = (
    "busyTimeMsPerSecond",
    "idleTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    "slotWaitTimeMsPerSecond",
)
WHOLE_SHARES = ("idleTimeMsPerSecond", "backPressuredTimeMsPerSecond", "slotWaitTimeMsPerSecond")
ABSENT = "absent"

Table = dict[tuple[str, str], list[float | str]]
"""(operator id or '', metric) → a value a subtask; NaN and none as words, since NaN equals nothing."""


def plain(values: Any) -> list[float | str]:
    listed = np.asarray(values).tolist()
    return ["NaN" if isinstance(value, float) and math.isnan(value) else value for value in listed]


def told(values: Any, present: Any) -> list[float | str]:
    return plain(values if present is None else np.where(present, values.astype(object), ABSENT))


def known(table: Table) -> Table:
    """What has a value: a column that is not known any more is told without any."""
    return {key: values for key, values in table.items() if set(values) != {ABSENT}}


def expected_columns(job: Job, vertex: JobVertex, ended: bool) -> Table:
    """Every column that a vertex has, from its counters and rates and what its plans tell."""
    found: Table = {}
    if not vertex.size:
        return found
    counts, rates = vertex.counters.shown(), vertex.views.rates()
    pairs = [(operator.id, (name,)) for operator in vertex.operators for name in ("numRecordsIn", "numRecordsOut")]
    pairs += [("", (name, *others)) for name, others in TOTALS.items()]
    for column, (operator, metrics) in enumerate(pairs):
        for metric in metrics if vertex.known[column] else ():
            found[operator, metric] = plain(counts[:, column])
            found[operator, metric + "PerSecond"] = plain(rates[:, column])
    found.setdefault(("", "numRecordsInPerSecond"), ["NaN"] * vertex.size)
    for column, place in enumerate(vertex.late, len(pairs)):
        found[vertex.operators[place].id, "numLateRecordsDropped"] = plain(counts[:, column])
        found[vertex.operators[place].id, "numLateRecordsDroppedPerSecond"] = plain(rates[:, column])
    for operator, metric, values, present in vertex.watermarks.columns(vertex.size, vertex.is_source):
        found[operator, metric] = told(values, present)
    for metric, values in time_columns(vertex).items():
        if not (ended and metric in TRANSIENT):
            found["", metric] = plain(values) + [ABSENT] * (vertex.size - len(values))
    if vertex.start_ms >= 0:
        for metric, prefix, values, present in vertex.buffers.columns():
            found["", prefix + metric] = found["", "buffers." + metric] = told(values, present)
        for metric, values, present in vertex.alignment.columns():
            found["", metric] = told(values, present)
    for operator, metric, values, present in vertex.sources.columns(vertex.starts_ms >= 0):
        found[operator, metric] = told(values, present)
    return known(found)


def time_columns(vertex: JobVertex) -> dict[str, Any]:
    """What its time shares tell; of subtasks that they have not seen they tell nothing."""
    shares, times, unknown = vertex.shares.shares(), vertex.shares.accumulated(), np.full(vertex.size, np.nan)
    found: dict[str, Any] = {"busyTimeMsPerSecond": unknown, "backPressuredTimeMsPerSecond": unknown}
    if shares is not None and shares.present.any():
        busy = np.where(shares.present, shares.busy, np.nan)
        found["busyTimeMsPerSecond"] = np.pad(busy, (0, vertex.size - len(busy)), constant_values=np.nan)
        for metric, values in zip(WHOLE_SHARES, (shares.idle, shares.back_pressured, shares.slot_wait), strict=True):
            found[metric] = np.where(shares.present, values.astype(object), ABSENT)
    if vertex.shares.size:
        found["accumulateBusyTimeMs"], found["accumulateIdleTimeMs"] = times.busy, times.idle
        found["accumulateBackPressuredTimeMs"] = times.back_pressured
        found["isBackPressured"] = vertex.shares.is_back_pressured
    return found


def held_columns(groups: dict[str, Columns]) -> Table:
    return known(
        {
            (operator, metric): told(column.values, column.present)
            for operator, columns in groups.items()
            for metric, column in columns.items()
        }
    )


def times(vertex: JobVertex) -> tuple[list[int], ...]:
    return tuple(
        column.tolist() for column in (vertex.attempts, vertex.executor_indices, vertex.starts_ms, vertex.ends_ms)
    )


def coordinators(job: Job, vertex: JobVertex) -> dict[str, Any]:
    return {operator: told for (owner, operator), told in job.course.coordinators().items() if owner == vertex.id}


def graph(job: Job) -> list[tuple[str, str, bool, list[str], list[str]]]:
    return [
        (
            vertex.id,
            vertex.name,
            vertex.id in job.graph.current,
            [one.id for one in vertex.operators],
            list(vertex.inputs),
        )
        for vertex in job.graph.vertices.values()
    ]


class Driver:
    """A driver whose queries do as they like, its frames, and a collector behind a bad network."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ids = Ids()
        self.clock = ManualClock(now_ms=2_000_000)
        self.executors = Executors(APP.id, 1, self.clock)
        self.model = Model(APP, self.executors)
        self.frames = Frames(APP, 1000, self.clock, Redaction())
        self.queries = [Query(1), Query(2, name=None)]
        self.batch: dict[int, tuple[Execution, int]] = {}
        self.history: dict[tuple[str, wire.Attempt], list[dict[Any, Any]]] = {}
        self.gone_and_told: set[str] = set()
        self.new_collector()
        self.apply(*(query.started() for query in self.queries))

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    # ---- What a driver does

    def begin_batch(self) -> None:
        """One of three plans; two have a vertex more, one of these keeps state and knows event time."""
        query, ids = self.random.choice(self.queries), self.ids
        below = ids.node("Filter", scan(ids))
        kind = self.random.random()
        if kind < 0.35:
            below = ids.node("HashAggregate", ids.shuffle(below))
        elif kind < 0.7:
            late, eviction = sorted(self.random.choices((0, 1_795_255_259_000, 1_795_255_260_000), k=2))
            told = f"StateStoreSave [k#1], state info [ opId = 0 ], Append, {late}, {eviction}, 2"
            below = ids.shuffle(ids.node("EventTimeWatermark", below, rows=False))
            below = ids.node("StateStoreSave", below, metrics=[plan.LATE], description=told)
        query.batch += 1
        execution = Execution(ids, sink(ids, below), query.describe())
        self.apply(execution.start())
        self.batch[query.number] = (execution, query.run)

    def work(self) -> None:
        """A stage of a running batch; the tasks start, tell and end."""
        if not self.batch:
            return
        execution, _ = self.random.choice(list(self.batch.values()))
        rows = accumulator(execution.plan, "MicroBatchScan")
        last = execution.plan.children[0].name
        shuffles, late = last != "Filter", ()
        if shuffles and self.random.random() < 0.4:
            rows, shuffles = accumulator(execution.plan, last), False
            if last == "StateStoreSave":
                late = (accumulator(execution.plan, last, plan.LATE), self.random.randint(0, 3))
        told = stage(self.ids, self.random.randint(1, 4), shuffles=shuffles)
        self.apply(execution.job(told), submitted(told))
        for partition in range(told.tasks):
            executor = str(self.random.randint(1, 3))
            task = Task(self.ids, told, partition, executor=executor, launch_ms=self.random.randint(1, 10**6))
            self.apply(task.start())
            self.apply(task.live((rows, self.random.randint(0, 5), *late)))
            if self.random.random() < 0.7:
                self.apply(task.end((rows, self.random.randint(0, 9), *late), succeeded=self.random.random() < 0.8))

    def tick(self) -> None:
        self.clock.advance(5000)
        self.model.time.look(self.clock.now_ms(), self.clock.monotonic_ns())
        self.model.tick()

    def end_batch(self) -> None:
        if self.batch:
            number = self.random.choice(list(self.batch))
            execution, _ = self.batch.pop(number)
            rows = self.random.randint(0, 3)
            watermark = {"watermark": f"2026-11-21T10:00:0{self.random.randint(0, 2)}.000Z"}
            query = self.queries[number - 1]
            self.apply(execution.end(), query.progress(rows, sources=[{"numInputRows": rows}], eventTime=watermark))

    def end_query(self) -> None:
        """A query stops or fails; it starts anew, at once or before the next of them ends."""
        index = self.random.randrange(len(self.queries))
        query = self.queries[index]
        self.batch.pop(query.number, None)
        self.apply(query.terminated(exception=self.random.choice((None, "it broke"))))
        if self.random.random() < 0.5:
            self.queries[index] = Query(query.number, query.run + 1, query.name)
            self.apply(self.queries[index].started(f"2026-11-21T1{min(query.run + 1, 9)}:00:00.000Z"))

    def change_executors(self) -> None:
        name = str(self.random.randint(1, 3))
        if self.random.random() < 0.5:
            self.apply(records.ExecutorAdded(name, "worker.test", 2, 5, 0))
        else:
            self.apply(records.ExecutorRemoved(name, 6))

    # ---- The way to the collector

    def new_collector(self) -> None:
        """The collector starts anew, with nothing."""
        self.store = MetricStore()
        self.ingest = Ingest(self.store, self.clock, Limits())

    def build(self) -> list[wire.Frame]:
        told = {frame.attempt: frame for frame in self.frames.build(self.model, self.executors, {}, {})}
        jobs = {job.attempt: job for job in self.model.jobs.values()}
        assert told.keys() == {wire.Attempt(APP.start_ms, APP.id)} | jobs.keys()
        for attempt, job in jobs.items():
            self.check_delta(job, told[attempt])
        return list(told.values())

    def check_delta(self, job: Job, frame: wire.Frame) -> None:
        """A frame holds exactly what has changed in any frame after the one that it builds on."""
        checkpoints = job.checkpoints.told()
        now: dict[Any, Any] = {"plan": graph(job)} | ({"checkpoints": checkpoints} if job.kind == "STREAMING" else {})
        now |= {("checkpoint", each.id): each for each in checkpoints.changed}
        for vertex in job.graph.vertices.values():
            now[vertex.id, "times"] = times(vertex)
            now[vertex.id, "coordinators"] = coordinators(job, vertex)
            now |= {(vertex.id, *key): values for key, values in expected_columns(job, vertex, ended=False).items()}
        past = self.history.setdefault((job.jid, job.attempt), [{}])
        past.append(now)
        assert frame.seq == len(past) - 1
        since = past[frame.base :] if frame.base else [{}, *past[1:]]
        changed = {
            key
            for key, value in now.items()
            if not frame.base or any(one.get(key) != other.get(key) for one, other in pairwise(since))
        }
        sent = {"plan"} if frame.plan is not None else set()
        if frame.checkpoints is not None:
            sent |= {"checkpoints"} | {("checkpoint", each.id) for each in frame.checkpoints.changed}
        for figures in frame.vertices:
            sent |= {(figures.id, "times")} if figures.subtasks is not None else set()
            sent |= {(figures.id, "coordinators")} if figures.coordinators is not None else set()
            sent |= {(figures.id, "", column.metric) for column in figures.columns}
            sent |= {
                (figures.id, each.operator, column.metric) for each in figures.operators for column in each.columns
            }
        # What is known no more is told once, without values, and again with everything.
        gone = {key for one in past for key in one if key not in now}
        assert changed <= sent <= changed | gone
        assert {key for key in gone if len(key) == 3 and frame.base and key in since[0]} <= sent

    def push(self) -> None:
        """Frames arrive and are acknowledged; or they, or the answer, are lost."""
        frames = self.build()
        fate = self.random.choice(("lost", "unanswered", "answered", "answered", "answered"))
        if fate == "lost":
            return
        try:
            self.ingest.push(codec.encode(frames))
        except NeedsFullFrame:
            if fate == "answered":
                self.frames.start_over()
                self.push_through()
            return
        if fate == "answered":
            self.acknowledged(frames)

    def push_through(self) -> None:
        """A push over a good network is always taken, in full if need be."""
        frames = self.build()
        try:
            self.ingest.push(codec.encode(frames))
        except NeedsFullFrame:
            self.frames.start_over()
            frames = self.build()
            assert all(frame.base == 0 for frame in frames)
            self.ingest.push(codec.encode(frames))
        self.acknowledged(frames)

    def acknowledged(self, frames: list[wire.Frame]) -> None:
        self.check_held()
        self.frames.acknowledge(frames, self.model, self.executors)
        told = {frame.job.jid for frame in frames if frame.job is not None and frame.job.state in wire.ENDED_STATES}
        assert not told & self.model.jobs.keys(), "an ended job that was told is forgotten"
        assert not any(job.state in wire.ENDED_STATES for job in self.model.jobs.values())
        assert not any(executor.gone for executor in self.executors.frames()), "a gone executor is told once"
        held = {(job.jid, job.attempt) for job in self.model.jobs.values()}
        assert self.frames._channels.keys() == held | {("", wire.Attempt(APP.start_ms, APP.id))}

    def check_held(self) -> None:
        """What the collector holds of every job that the model has is what the model shows."""
        for job in self.model.jobs.values():
            held = self.store.snapshot().job(job.jid)
            assert (held.state, held.attempt, held.job.name) == (job.state, job.attempt, job.name)
            assert dict(held.job.metrics) == job.metrics()
            checkpoints = job.checkpoints.told()
            assert held.checkpoints.totals == msgspec.structs.replace(checkpoints, changed=())
            assert list(held.checkpoints.held.values()) == list(checkpoints.changed)
            assert [
                (
                    one.vertex.id,
                    one.vertex.name,
                    one.vertex.current,
                    list(one.operators),
                    [e.source for e in one.vertex.inputs],
                )
                for one in held.vertices.values()
            ] == graph(job)
            for vertex in job.graph.vertices.values():
                one = held.vertices[vertex.id]
                assert (one.size, one.parallelism, one.start_ms) == (vertex.size, vertex.parallelism, vertex.start_ms)
                assert held_columns({"": one.columns, **one.operators}) == expected_columns(
                    job, vertex, job.state in wire.ENDED_STATES
                )
                assert one.coordinators == coordinators(job, vertex)
                told = one.subtasks
                assert told is not None
                assert tuple(
                    column.tolist() for column in (told.attempt, told.executor, told.start_ms, told.end_ms)
                ) == times(vertex)
        executors = self.store.snapshot().apps[APP.id].executors
        assert set(executors) == {one.id for one in self.executors.frames() if not one.gone}


STEPS = {
    "begin_batch": 3,
    "work": 6,
    "tick": 2,
    "end_batch": 2,
    "end_query": 1,
    "change_executors": 1,
    "push": 8,
    "new_collector": 1,
}


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32).map(Random),
    st.lists(st.sampled_from([step for step in STEPS for _ in range(STEPS[step])]), min_size=20, max_size=60),
)
def test_collector_holds_what_it_acknowledged(random: Random, steps: list[str]) -> None:
    """Pushes are lost, refused and taken: after one that is taken the store's columns are the model's."""
    driver = Driver(random)
    for step in steps:
        getattr(driver, step)()
    driver.push_through()
