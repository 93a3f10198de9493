"""Flink's timer service on Spark's transformWithState."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from spark_hooks.key_timers import KeyTimers, TimeMode
from spark_hooks.timer_channel import TaskCounts, open_channel
from spark_hooks.timer_store import TimerStore
from streamgauge.clock import Clock, SystemClock
from streamgauge.errors import TimerError
from streamgauge.keyed_timers import KeyedTimer

_CALLBACKS = {"EventTime": "on_event_time", "ProcessingTime": "on_processing_time"}
"""Time mode → the processor's method."""

LONGEST_NAME = 64
"""Characters of a service's name."""

_FIRST_SPARK = 4
_FRAMES = 16
"""How far up from `open` Spark's own frame is looked for: a processor's `init` may call others."""


class EventTimeTarget(Protocol):
    """A processor whose timers are of event time."""

    def on_event_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterable[Any] | None:
        """Take a timer that the watermark has reached, and return or yield what the operator puts out."""


class ProcessingTimeTarget(Protocol):
    """A processor whose timers are of processing time."""

    def on_processing_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterable[Any] | None:
        """Take a timer whose processing time has come, and return or yield what the operator puts out."""


class TimerService:
    """
    Timers of a stateful processor's keys, as Flink has them, on Spark's own timers and their state store.

        class Overdue(StatefulProcessor):
            def __init__(self):
                self.timers = streamgauge.TimerService("overdue")

            def init(self, handle):
                self.timers.open(handle, self)

            def handleInputRows(self, key, rows, timerValues):
                timers = self.timers.at(key, timerValues)
                for frame in rows:
                    for due_ms in frame["due_ms"]:
                        timers.register_event_time_timer(int(due_ms))
                yield from ()

            def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
                yield from self.timers.fire(key, timerValues, expiredTimerInfo)

            def on_event_time(self, timer, timers):
                yield pandas.DataFrame({"key": [timer.key[0]], "due_ms": [timer.timestamp_ms]})

    Works with `transformWithStateInPandas` and with `transformWithState`: callbacks put out what the processor's other
    methods do. A callback's exception fails the task, as in Flink. Within a batch all rows of all keys come first, then
    the timers that are due, those of one key in the order of their timestamps, then of their registration. What has
    fired, and what has not, is kept with Spark's checkpoint: a query that starts again from it loses no timer, and
    fires none twice.

    It is made in the driver, with the processor, before the query starts; it travels to the executors with it, and they
    need the wheel. Each task reports through Spark how many timers fired, how long they took and how late they were:
    what `streamgauge.attach` shows of them. Over Spark Connect all works but these reports.

    A processor has one service: Spark has one set of timers for each key of it.

    Args:
        name: What the service is called in figures, 1 to 64 characters.
        time_mode: As the query's: 'EventTime' or 'ProcessingTime'.
        namespaces: Whether a key may have several timers at one timestamp, told apart by a namespace. Each timer that
            fires costs one look into the state store more. It may be turned on later; turned off, timers that are
            pending lose theirs.
        clock: What times callbacks.

    Raises:
        TimerError: this Spark has no transformWithState.
        TypeError: the name is no text.
        ValueError: the name is empty or too long, or the time mode is none.

    Not thread safe: one task uses it, in one thread.

    Source: Flink's `TimerService`, `InternalTimerService` and `KeyedProcessFunction.onTimer`.
    """

    def __init__(
        self,
        name: str,
        time_mode: TimeMode = "EventTime",
        namespaces: bool = False,
        clock: Clock | None = None,
    ) -> None:
        _check_spark()
        if not isinstance(name, str):
            raise TypeError(f"a TimerService's name is text, not {name!r:.40} of type {type(name).__name__}")
        if not 1 <= len(name) <= LONGEST_NAME:
            raise ValueError(f"a TimerService's name has 1 to {LONGEST_NAME} characters, not {len(name)}")
        if time_mode not in _CALLBACKS:
            raise ValueError(f"time_mode={time_mode!r}, but {' or '.join(map(repr, _CALLBACKS))} was expected")
        self.name = name
        self.time_mode = time_mode
        self.namespaces = namespaces
        self._clock = clock or SystemClock()
        self._channel = open_channel()

    def open(self, handle: Any, processor: EventTimeTarget | ProcessingTimeTarget) -> None:
        """
        Take Spark's handle; for the processor's `init`.

        Args:
            handle: Spark's StatefulProcessorHandle.
            processor: Has `on_event_time`, or `on_processing_time` where that is the time mode.

        Raises:
            TimerError: the query's time mode is not the service's; in tasks.
            TypeError: the processor has no such method; in tasks.
        """
        from pyspark import TaskContext

        # Spark tries a processor out in the driver too, before the query starts, and tells of whatever it raises there
        # that a worker crashed. What a task raises is told in its own words.
        if TaskContext.get() is not None:
            self._check(processor)
        self._processor: Any = processor
        self._store = TimerStore(handle, self.namespaces)
        self._counts = TaskCounts(self.name)
        self._turn: KeyTimers | None = None
        # Their repr, since a key may hold what is not hashable, as an array, or unequal to itself, as NaN.
        self._fired_ahead: set[str] = set()
        if self._channel is not None:
            self._channel.add([self._counts])

    def at(self, key: Any, timerValues: Any) -> KeyTimers:  # noqa: N803 - as Spark calls it
        """
        Return the timers of the key that Spark is at; for `handleInputRows` and `handleInitialState`.

        Args:
            key: As Spark gives it.
            timerValues: As Spark gives them.

        Raises:
            TimerError: `open` was not called, or the query has no timers.
        """
        return self._begin(timerValues)

    def fire(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N803
        """
        Call back a timer that Spark says has expired; for `handleExpiredTimer`, with `yield from`.

        Callbacks get the timer as a `KeyedTimer`, and the timers of its key.

        Args:
            key, timerValues, expiredTimerInfo: As Spark gives them.

        Yields:
            What the callbacks put out.

        Raises:
            TimerError: as `at`.
        """
        if self._fired_ahead and repr(key) in self._fired_ahead:
            return
        timers = self._begin(timerValues)
        due = timers.fire(expiredTimerInfo.getExpiryTimeInMs())
        for timestamp_ms, namespace in due:
            self._counts.fire(self.time_mode == "EventTime", due.limit_ms - timestamp_ms)
            yield from self._call_back(KeyedTimer(key, namespace, timestamp_ms), timers)
        timers.end()
        if due.read_ahead:
            self._fired_ahead.add(repr(key))

    def _check(self, processor: object) -> None:
        told = _told_time_mode()
        if told is not None and told.lower() != self.time_mode.lower():
            raise TimerError(
                f"TimerService({self.name!r}) is of time mode {self.time_mode!r}, but the query's timeMode is "
                f"{told!r}: a query of Spark's has one time mode, and they must be the same"
            )
        callback = _CALLBACKS[self.time_mode]
        if not callable(getattr(processor, callback, None)):
            raise TypeError(f"{type(processor).__name__} has no method {callback}(timer, timers), which timers call")

    def _begin(self, values: Any) -> KeyTimers:
        if self._turn is not None:
            self._turn.end()
        self._store.turn()
        watermark_ms, processing_ms = values.getCurrentWatermarkInMs(), values.getCurrentProcessingTimeInMs()
        if processing_ms < 0:
            raise TimerError(
                f"TimerService({self.name!r}) is of time mode {self.time_mode!r}, but Spark tells no time: the query's "
                "timeMode must be the same"
            )
        self._turn = KeyTimers(self.time_mode, self.namespaces, watermark_ms, processing_ms, self._store, self._counts)
        return self._turn

    def _call_back(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterator[Any]:
        # Only the callback's own time: between two of its rows the worker does Spark's work.
        begun_ns = self._clock.monotonic_ns()
        try:
            callback = getattr(self._processor, _CALLBACKS[self.time_mode])
            for row in callback(timer, timers) or ():
                self._counts.callback_ns += self._clock.monotonic_ns() - begun_ns
                yield row
                begun_ns = self._clock.monotonic_ns()
        finally:
            self._counts.callback_ns += self._clock.monotonic_ns() - begun_ns


def _check_spark() -> None:
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < _FIRST_SPARK:
        raise TimerError(
            f"TimerService stands on transformWithState, which Spark {pyspark.__version__} does not have; "
            "it needs Spark 4.0 or later"
        )


def _told_time_mode() -> str | None:
    """
    Return the time mode that the query was started with, None where it cannot be found.

    Spark gives a processor the times of both modes, and tells it the mode nowhere; but the caller of `init` has it.
    """
    frame = sys._getframe(1).f_back
    for _ in range(_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name.startswith("transformWithState"):
            mode = getattr(frame.f_locals.get("self"), "_time_mode", None)
            return mode if isinstance(mode, str) else None
        frame = frame.f_back
    return None
