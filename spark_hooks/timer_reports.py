"""What timer services on executors report to the driver: one report a task, through an accumulator of Spark's."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

HELD = 10_000
"""Reports that wait for hooks; where none are attached, the oldest go."""


class TimerReport(NamedTuple):
    """
    What one task did with a timer service.

    Args:
        service: The service's name.
        stage, stage_attempt, partition, attempt: Of the task; Python is not told the stage's attempt, which is −1:
            `task` tells the task.
        fired_event, fired_processing: Timers that fired, of event time and of processing time.
        callback_ns: Time in their callbacks.
        lateness: Milliseconds from when a timer was due → how many fired so late; the milliseconds are cut to the
            lowest value of their HDR bucket, so that there are few.
        registered, deleted: Timers that were registered and were not there before, and that were deleted and were
            there: what is left of them when those that fired are taken away is pending.
        task: Spark's id of the task, which it has once in an application; −1 where it is not known.
    """

    service: str
    stage: int
    stage_attempt: int
    partition: int
    attempt: int
    fired_event: int
    fired_processing: int
    callback_ns: int
    lateness: dict[int, int]
    registered: int = 0
    deleted: int = 0
    task: int = -1


class TimerReports:
    """Reports on their way from Spark's accumulators to the hooks. Any thread."""

    def __init__(self) -> None:
        self._held: deque[TimerReport] = deque(maxlen=HELD)
        self._lock = threading.Lock()

    def add(self, reports: list[TimerReport]) -> None:
        """Hold reports until they are taken."""
        with self._lock:
            self._held.extend(reports)

    def take(self) -> list[TimerReport]:
        """Return what is held, and hold it no more."""
        with self._lock:
            taken = list(self._held)
            self._held.clear()
        return taken


REPORTS = TimerReports()
"""Those of this driver's process."""
