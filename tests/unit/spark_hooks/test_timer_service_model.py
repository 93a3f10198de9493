"""The timer service on Spark's timers against the internal timer service, which is in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgauge
from spark_hooks.key_timers import KeyTimers, TimeMode
from streamgauge.clock import ManualClock
from streamgauge.keyed_timers import InternalTimerService, KeyedTimer, KeyGroups
from streamgauge.timers import ProcessingTimeService
from tests.unit.spark_hooks.spark_timers import SparkTimers

KEYS = (("a",), (float("nan"), 1), (["array"],))
"""Among them what is unequal to itself and what has no hash; told apart by their repr."""

Fires = dict[str, list[tuple[str, int]]]
"""Key → what fired of it, in order."""


class Op(NamedTuple):
    registers: bool
    namespace: str
    timestamp_ms: int


Scripts = dict[tuple[str, str, int], list[Op]]
"""What a timer's callback does, the first time that it fires: key, namespace and timestamp → operations."""


class Batch(NamedTuple):
    rows: list[tuple[int, Op]]
    advance_ms: int


class Scripted:
    """A processor whose rows are operations and whose callbacks follow a script."""

    def __init__(self, mode: TimeMode, namespaces: bool, scripts: Scripts) -> None:
        self.timers = streamgauge.TimerService("scripted", mode, namespaces, ManualClock())
        self.scripts = scripts

    def init(self, handle: Any) -> None:
        self.timers.open(handle, self)

    def handleInputRows(self, key: Any, rows: Iterator[Op], timerValues: Any) -> Iterator[Any]:
        timers = self.timers.at(key, timerValues)
        for op in rows:
            self.apply(timers, op)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        yield from self.timers.fire(key, timerValues, expiredTimerInfo)

    def on_event_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterator[Any]:
        yield timer
        for op in self.scripts.pop((repr(timer.key), timer.namespace, timer.timestamp_ms), []):
            self.apply(timers, op)

    on_processing_time = on_event_time

    def apply(self, timers: KeyTimers, op: Op) -> None:
        name = "event" if self.timers.time_mode == "EventTime" else "processing"
        act = getattr(timers, f"{'register' if op.registers else 'delete'}_{name}_time_timer")
        if op.namespace:
            act(op.timestamp_ms, op.namespace)
        else:
            act(op.timestamp_ms)


class Model:
    """The same rows and the same script on the in-memory service."""

    def __init__(self, mode: TimeMode, scripts: Scripts) -> None:
        self.event = mode == "EventTime"
        # Flink's timers fire 1 ms after their time, and those of the past 1 ms from now; Spark's time stands still
        # within a batch. So a millisecond of Spark's is a second here.
        self.scale = 1 if self.event else 1000
        self.scripts = dict(scripts)
        self.clock = ManualClock()
        self.processing_time = ProcessingTimeService(self.clock, self.fail)
        self.service: InternalTimerService[str, str] = InternalTimerService(
            "", KeyGroups.of_subtask(0, 1), self.processing_time, self, self.fail
        )
        self.fired: Fires = defaultdict(list)

    def fail(self, error: Exception) -> None:
        raise error

    def apply(self, key: str, op: Op) -> None:
        self.service.current_key = key
        name = "event" if self.event else "processing"
        getattr(self.service, f"{'register' if op.registers else 'delete'}_{name}_time_timer")(
            op.namespace, op.timestamp_ms * self.scale
        )

    def on_event_time(self, timer: KeyedTimer[str, str]) -> None:
        timestamp_ms = timer.timestamp_ms // self.scale
        self.fired[timer.key].append((timer.namespace, timestamp_ms))
        for op in self.scripts.pop((timer.key, timer.namespace, timestamp_ms), []):
            self.apply(timer.key, op)

    on_processing_time = on_event_time

    def batch(self, rows: Iterable[tuple[str, Op]], now_ms: int) -> Fires:
        self.fired = defaultdict(list)
        for key, op in rows:
            self.apply(key, op)
        if self.event:
            self.service.advance_watermark(now_ms)
        else:
            self.clock.advance(max(now_ms * self.scale - self.clock.now_ms(), 0))
            runs = 1
            while runs:
                self.clock.advance(1)
                runs = self.processing_time.run_due()
        return self.fired

    @property
    def pending(self) -> int:
        return self.service.event_time_timers if self.event else self.service.processing_time_timers


def ops(namespaces: bool) -> st.SearchStrategy[Op]:
    names = st.sampled_from(["", "a", "b"]) if namespaces else st.just("")
    return st.builds(Op, st.integers(0, 3).map(bool), names, st.integers(0, 24))


@st.composite
def courses(draw: st.DrawFn, namespaces: bool) -> tuple[list[Batch], Scripts]:
    op = ops(namespaces)
    rows = st.lists(st.tuples(st.integers(0, len(KEYS) - 1), op), max_size=12)
    batches = draw(st.lists(st.builds(Batch, rows, st.integers(0, 12)), min_size=1, max_size=5))
    timers = st.tuples(
        st.sampled_from(KEYS).map(repr), st.sampled_from(["", "a", "b"] if namespaces else [""]), st.integers(0, 24)
    )
    return batches, draw(st.dictionaries(timers, st.lists(op, min_size=1, max_size=4), max_size=30))


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "plain"])
@pytest.mark.parametrize("mode", ["EventTime", "ProcessingTime"])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_the_same_timers_fire_in_the_same_order_as_in_memory(
    mode: TimeMode, namespaces: bool, data: st.DataObject
) -> None:
    """None twice, none lost; rows before timers, a key's timers by timestamp, then as they were registered."""
    batches, scripts = data.draw(courses(namespaces))
    processor = Scripted(mode, namespaces, dict(scripts))
    left = processor.scripts
    spark = SparkTimers(processor, mode == "EventTime")
    model = Model(mode, scripts)
    registered = deleted = fired = now_ms = 0
    for batch in batches:
        now_ms += batch.advance_ms
        rows: dict[int, list[Op]] = defaultdict(list)
        for key, op in batch.rows:
            rows[key].append(op)

        def follow(task: Any, left: Scripts = left) -> None:
            # A task is a new process: what was done of the script is what was done before.
            task.scripts = left

        task, out = spark.batch([(KEYS[key], ops) for key, ops in rows.items()], now_ms, follow)
        left = task.scripts
        found: Fires = defaultdict(list)
        for timer in out:
            found[repr(timer.key)].append((timer.namespace, timer.timestamp_ms))
        assert found == model.batch([(repr(KEYS[key]), op) for key, ops in rows.items() for op in ops], now_ms)
        told = task.timers._counts.report()
        registered, deleted = registered + told.registered, deleted + told.deleted
        fired += told.fired_event + told.fired_processing
        assert sum(told.lateness.values()) == told.fired_event + told.fired_processing == len(out)
        assert registered - deleted - fired == model.pending
    assert spark.warnings == 0, "Spark was told to register what was there, or to delete what was not"
    rows_left = spark.states["streamgauge_timers"]
    assert all(
        at_ms in spark.timers[key] and row != ([""],)
        for key, held in rows_left.items()
        for (at_ms,), row in held.items()
    )
