"""A stateful processor with timers, as executors import it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pandas
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import streamgauge
from tests.e2e.timer_model import AFTER_MS

Mode = Literal["EventTime", "ProcessingTime"]


class Reminders(StatefulProcessor):
    """
    Registers a timer for each row, unless the row says which one to delete; what fires is put out.

    Args:
        mode: Of the service.
        calls: The kind of timers that it registers.
    """

    def __init__(self, mode: Mode = "EventTime", calls: Mode = "EventTime") -> None:
        self._timers = streamgauge.TimerService("reminders", time_mode=mode)
        self._event = calls == "EventTime"

    def init(self, handle: Any) -> None:
        self._timers.open(handle, self)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N803
        timers = self._timers.at(key, timerValues)
        register = timers.register_event_time_timer if self._event else timers.register_processing_time_timer
        for frame in rows:
            for at, deleted in zip(frame["at_ms"], frame["deletes_ms"], strict=True):
                if deleted:
                    timers.delete_event_time_timer(int(deleted))
                else:
                    register(int(at) + AFTER_MS)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N803
        yield from self._timers.fire(key, timerValues, expiredTimerInfo)

    def on_event_time(self, timer: Any, timers: Any) -> Iterator[Any]:
        yield pandas.DataFrame({"split": [timer.key[0]], "due_ms": [timer.timestamp_ms]})

    def on_processing_time(self, timer: Any, timers: Any) -> Iterator[Any]:
        yield from self.on_event_time(timer, timers)
