"""
The way of timer reports from a task to the driver: an accumulator of Spark's, whose value a worker sends as its task
ends.
"""

from __future__ import annotations

from typing import Any

from spark_hooks.timer_reports import REPORTS, TimerReport

_GREATEST_MS = 2**63 - 1
_EXACT_BITS = 8
"""Values of so many bits are told exactly, longer ones by so many leading bits."""


def cut(lateness_ms: int) -> int:
    """
    Return the lowest value of a lateness' HDR bucket; `streamgauge.buckets` has the layout.

    Args:
        lateness_ms: Any; what is negative counts as 0. Past the end of that layout the buckets go on
            doubling, up to what an int64 holds.
    """
    lateness_ms = min(max(lateness_ms, 0), _GREATEST_MS)
    shift = max(lateness_ms.bit_length() - _EXACT_BITS, 0)
    return lateness_ms >> shift << shift


class TaskCounts:
    """
    What the timers of one task have done so far.

    It is an accumulator's value while the task runs, and pickles as a `TimerReport`: a worker pickles it once, as the
    task ends. Not thread safe.
    """

    __slots__ = (
        "_task",
        "callback_ns",
        "deleted",
        "fired_event",
        "fired_processing",
        "lateness",
        "registered",
        "service",
    )

    def __init__(self, service: str) -> None:
        from pyspark import TaskContext

        # Held from here on, for a worker has none any more when it pickles what its accumulators hold.
        self._task = TaskContext.get()
        self.service = service
        self.fired_event = self.fired_processing = 0
        self.registered = self.deleted = 0
        self.callback_ns = 0
        self.lateness: dict[int, int] = {}

    def fire(self, event_time: bool, lateness_ms: int) -> None:
        """Count a timer that fires, and how late."""
        if event_time:
            self.fired_event += 1
        else:
            self.fired_processing += 1
        bucket = cut(lateness_ms)
        self.lateness[bucket] = self.lateness.get(bucket, 0) + 1

    def report(self) -> TimerReport:
        """Return what was done so far, with the task in which this was made."""
        task = self._task
        stage, partition, attempt, number = (-1, -1, -1, -1)
        if task is not None:
            stage, partition, attempt = task.stageId(), task.partitionId(), task.attemptNumber()
            number = task.taskAttemptId()
        return TimerReport(
            self.service,
            stage,
            -1,
            partition,
            attempt,
            self.fired_event,
            self.fired_processing,
            self.callback_ns,
            self.lateness,
            self.registered,
            self.deleted,
            number,
        )

    def __reduce__(self) -> tuple[type[TimerReport], tuple[Any, ...]]:
        return TimerReport, tuple(self.report())


class _Held:
    """In a worker: holds what a task has counted, until Spark sends it."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, held: list[Any], more: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        return held + more


class _HandedOver:
    """In the driver: hands reports over to the hooks, and holds none; what a worker gets of it is `_Held`."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, held: list[Any], more: list[TimerReport | TaskCounts]) -> list[Any]:  # noqa: N802 - Spark's
        # Where user code tries its processor out in the driver itself there is no task, and nothing to report.
        REPORTS.add([each for each in more if isinstance(each, TimerReport)])
        return held

    def __reduce__(self) -> tuple[type[_Held], tuple[()]]:
        return _Held, ()


def open_channel() -> Any:
    """
    Return a new accumulator that takes `TaskCounts` in workers and hands their reports to `REPORTS` in the driver.

    None where this process has no classic SparkContext, as over Spark Connect. The driver's thread.
    """
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    # Spark asks of an accumulator's parameter what these two methods are, and for no base class.
    return None if context is None else context.accumulator([], _HandedOver())
