"""A processor that follows a script on the timer service, and the same script on the in-memory one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import streamgauge
from spark_hooks.key_timers import KeyTimers, TimeMode
from streamgauge.clock import ManualClock
from streamgauge.keyed_timers import InternalTimerService, KeyedTimer, KeyGroups
from streamgauge.timers import ProcessingTimeService

Fires = dict[str, list[tuple[str, int]]]
"""Key → what fired of it, in order."""


class Op(NamedTuple):
    registers: bool
    namespace: str
    timestamp_ms: int


Scripts = dict[tuple[str, str, int], list[Op]]
"""What a timer's callback does, the first time in a task: key's repr, namespace and timestamp → operations."""


class Scripted:
    """A processor whose rows are operations and whose callbacks follow a script."""

    def __init__(self, mode: TimeMode, namespaces: bool, scripts: Scripts) -> None:
        self.timers = streamgauge.TimerService("scripted", mode, namespaces)
        self.scripts = scripts

    def init(self, handle: Any) -> None:
        self.timers.open(handle, self)

    def handleInputRows(self, key: Any, rows: Iterator[Op], values: Any) -> Iterator[Any]:
        timers = self.timers.at(key, values)
        for op in rows:
            self.apply(timers, op)
        yield from ()

    def handleExpiredTimer(self, **told: Any) -> Iterator[Any]:
        yield from self.timers.fire(**told)

    def on_event_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterator[Any]:
        yield self.row(timer, timers)
        for op in self.scripts.pop((repr(tuple(timer.key)), timer.namespace, timer.timestamp_ms), []):
            self.apply(timers, op)

    on_processing_time = on_event_time

    def row(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Any:
        """What the operator puts out for a timer that fires."""
        return timer

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
        self.scripts = scripts
        self.left: Scripts = {}
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
        for op in self.left.pop((timer.key, timer.namespace, timestamp_ms), []):
            self.apply(timer.key, op)

    on_processing_time = on_event_time

    def batch(self, rows: Iterable[tuple[str, Op]], now_ms: int) -> Fires:
        self.fired = defaultdict(list)
        self.left = dict(self.scripts)
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
