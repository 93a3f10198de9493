"""The timers of a vertex' stateful operators: what Spark counts of them, and what timer services report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.accumulators import Accumulators
from spark_hooks.metrics import Counters, Counts, MeterViews, Rates
from spark_hooks.plan import Operator
from spark_hooks.timer_reports import TimerReport
from streamgauge import names, wire
from streamgauge.buckets import HIGHEST_COUNTED_MS, HdrCounts

NODE = "TransformWithState"
"""Spark's name of the node; those of Python's flavours go on after it."""

REGISTERED = "Number of registered timers"
DELETED = "Number of deleted timers"
EXPIRED = "Number of expired timers"
TOOK_MS = "Number of milliseconds taken to process all timers"
KEYS = "RocksDB: number of internal keys for internal column families"
FAMILIES = "RocksDB: number of internal column families"
"""Spark's display names."""

KEYS_A_TIMER = 2
"""
A timer stands in the state store twice, by its key and by its time, each in a column family of Spark's own.

Source: Spark 4.3.0, `TimerStateImpl`; a test holds it.
"""

_TIMED = re.compile(", (?:EventTime|ProcessingTime),")

WAITING = 5_000
"""Tasks whose reports are held until Spark tells of their end; the oldest leave, for a task may never win."""

_REGISTERED, _DELETED, _FIRED, _CALLBACK_NS = range(4)
_VERTEX = ""

_NS_PER_MS = 1_000_000

Present = npt.NDArray[np.bool_]


def has_timers(operator: Operator) -> bool:
    """Whether an operator may have timers: its query has a time mode."""
    return operator.node.startswith(NODE) and _TIMED.search(operator.description) is not None


class WaitingReports:
    """Reports of tasks that Spark has not told the end of. Not thread safe."""

    def __init__(self) -> None:
        self._tasks: dict[int, list[TimerReport]] = {}

    def hold(self, report: TimerReport) -> None:
        """Hold a report of a task that is known by its id."""
        if report.task not in self._tasks and len(self._tasks) >= WAITING:
            del self._tasks[next(iter(self._tasks))]
        self._tasks.setdefault(report.task, []).append(report)

    def claim(self, task: int, stage: int, partition: int) -> list[TimerReport]:
        """Return a task's reports, and hold them no more; ids of tasks begin anew in another application."""
        if not self._tasks:
            return []
        held = self._tasks.pop(task, ())
        return [report for report in held if (report.stage, report.partition) == (stage, partition)]


class Figure(NamedTuple):
    """A column: `operator` '' for the vertex' own, `present` None where every subtask has a value."""

    operator: str
    metric: str
    values: Counts | Rates
    present: Present | None


class VertexTimers:
    """
    The timers of one vertex over all batches of a run. Not thread safe.

    `revision` counts what was reported. `keys_told` is to be set once a task has told how many keys its store has: a
    query may keep no count of them, and no word of it is no 0.

    Spark's own counts are calls: registering a timer that is there counts, and so does deleting one that is not; a
    timer that fires counts as deleted. Only Scala's and Java's flavour is told how many fired. Where a timer service
    reports, what it says goes before all of this, subtask by subtask. Of several operators in Python nobody tells
    which one reported, and only the vertex, each task of which runs one of them, tells what fired.

    Args:
        operators: Those of the vertex that `has_timers`, at least one.
        accumulators: The vertex' native metrics.
    """

    def __init__(self, operators: Iterable[Operator], accumulators: Accumulators) -> None:
        self.revision = 0
        self.keys_told = False
        self._accumulators = accumulators
        self._fires = {operator.id: operator.node == NODE for operator in operators}
        in_python = [operator for operator, fires in self._fires.items() if not fires]
        self._service = in_python[0] if len(in_python) == 1 else None
        self._places = {operator: place for place, operator in enumerate((*self._fires, _VERTEX))}
        self._reported = Counters(4)
        self._reports = np.zeros(0, dtype=np.int64)
        self._late: Counter[int] = Counter()
        self._views = MeterViews(len(self._places))

    def register(self, rows: int) -> None:
        """Have `rows` subtasks at least."""
        self._reported.register(rows)
        self._views.register(rows)
        self._reports = np.pad(self._reports, (0, max(rows - self._reports.size, 0)))

    def add(self, subtask: int, report: TimerReport) -> None:
        """Add what a task of a registered subtask did."""
        self._reported.add(subtask, _row(report))
        self._count(subtask, report, 1)

    def take_out(self, subtask: int, report: TimerReport) -> None:
        """Take out again what `add` has added, with the same arguments."""
        self._reported.subtract(subtask, _row(report))
        self._count(subtask, report, -1)

    def _count(self, subtask: int, report: TimerReport, times: int) -> None:
        self._reports[subtask] += times
        for late_ms, timers in report.lateness.items():
            # What is above all buckets is told as one number; kept apart it would not be bounded.
            self._late[min(max(late_ms, 0), HIGHEST_COUNTED_MS + 1)] += times * timers
        self.revision += 1

    def tick(self) -> None:
        """Update the rates, once every 5 s."""
        table = np.zeros((self._reports.size, len(self._places)), dtype=np.int64)
        for operator, (fired, _) in self._fired().items():
            table[:, self._places[operator]] = fired
        self._views.update(table)

    def state(self) -> object:
        """Return what the columns are made of; while it compares equal, so do they."""
        return self._accumulators.revision, self.revision, self._views.rates().tobytes()

    def columns(self) -> Iterator[Figure]:
        """Yield what is known, one value a subtask."""
        rates = self._views.rates()
        for operator, (fired, present) in self._fired().items():
            yield Figure(operator, names.NUM_FIRED_TIMERS, fired, present)
            yield Figure(operator, names.NUM_FIRED_TIMERS + names.PER_SECOND, rates[:, self._places[operator]], present)
        for operator in self._fires:
            yield from self._operator(operator)

    def lateness(self) -> wire.Distribution | None:
        """Return how late timers fired; None where nothing has told, or nobody tells of which operator."""
        if self._service is None or not self._reports.any():
            return None
        late = sorted((late_ms, timers) for late_ms, timers in self._late.items() if timers)
        values, times = np.array(late, dtype=np.int64).reshape(-1, 2).T
        counts = HdrCounts()
        counts.add_times(values, times)
        return wire.Distribution(self._service, names.TIMER_LATENESS, wire.Buckets.of(counts.read()))

    def _operator(self, operator: str) -> Iterator[Figure]:
        reported = self._reports > 0
        if operator == self._service and reported.any():
            table = self._reported.shown()
            yield Figure(operator, names.NUM_REGISTERED_TIMERS, table[:, _REGISTERED], reported)
            yield Figure(operator, names.NUM_DELETED_TIMERS, table[:, _DELETED], reported)
            yield Figure(operator, names.TIMER_TIME, table[:, _CALLBACK_NS] // _NS_PER_MS, reported)
        else:
            native = [(names.NUM_REGISTERED_TIMERS, REGISTERED), (names.NUM_DELETED_TIMERS, DELETED)]
            native += [(names.TIMER_TIME, TOOK_MS)] * self._fires[operator]
            for metric, display in native:
                values = self._native(operator, display)
                if values is not None:
                    yield Figure(operator, metric, values, None)
        keys, families = self._native(operator, KEYS), self._native(operator, FAMILIES)
        if self.keys_told and keys is not None and families is not None:
            # With more families some keys are no timers: lists, and state that expires, have such too.
            yield Figure(operator, names.NUM_PENDING_TIMERS, keys // KEYS_A_TIMER, families == KEYS_A_TIMER)

    def _fired(self) -> dict[str, tuple[Counts, Present | None]]:
        """Return how many timers have fired, and of which subtasks that is known, by operator; '' for the vertex."""
        reported, fired = self._reports > 0, self._reported.shown()[:, _FIRED]
        found: dict[str, tuple[Counts, Present | None]] = {}
        for operator, fires in self._fires.items():
            values = self._native(operator, EXPIRED) if fires else None
            if values is not None:
                found[operator] = values, None
        if not reported.any():
            if len(found) == len(self._fires):
                found[_VERTEX] = np.sum([values for values, _ in found.values()], axis=0), None
            return found
        if self._service is not None:
            found[self._service] = fired, reported
        found[_VERTEX] = fired, reported
        return found

    def _native(self, operator: str, metric: str) -> Counts | None:
        return self._accumulators.values(operator, metric, self._reports.size)


def _row(report: TimerReport) -> tuple[int, int, int, int]:
    fired = report.fired_event + report.fired_processing
    return report.registered, report.deleted, fired, report.callback_ns
