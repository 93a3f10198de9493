"""A vertex's native SQL metrics over its subtasks: what the tasks that count have told of each."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spark_hooks.native import READ, NativeMetric
from spark_hooks.plan import Vertex
from streamgauge import wire
from streamgauge.accumulators import Rule, rule

EXCHANGE = ""
"""Stands for an operator's id where a metric is an exchange's."""

COLUMNS = 1000
"""Held of one vertex; what comes past them is left out."""

RECENT = 3
"""Tasks of a subtask whose levels are held, in case that the latest does not count after all."""

_LONG_MAX = 2**63 - 1

Run = tuple[int, int]
"""(stage id, stage attempt): the greater one ran later."""


@dataclass(frozen=True, slots=True)
class Reading:
    """
    Which of a task's updates go where.

    Args:
        flows: Accumulator → column. Several go to one where a vertex reads several exchanges.
        levels: Accumulators of all else, and in the same order their `columns`.
        peaks: Places among `levels` of those that are peaks.
    """

    flows: Mapping[int, int]
    levels: Sequence[int]
    columns: Sequence[int]
    peaks: Sequence[int]


@dataclass(slots=True)
class _Kept:
    operator: str
    metric: NativeMetric
    rule: Rule
    driver: int = 0


@dataclass(slots=True)
class _Subtask:
    """
    One subtask's values.

    Args:
        row: By column, as they are shown.
        recent: (run, how it is read, values) of the latest tasks' levels, the latest last.
        settled: Column → peak of the tasks before those.
    """

    row: list[int]
    recent: list[tuple[Run, Reading, list[int]]] = field(default_factory=list)
    settled: dict[int, int] = field(default_factory=dict)


class Accumulators:
    """
    A table of metrics, a row a subtask; each metric is kept as `streamgauge.accumulators.rule` says.

    Only tasks that have ended are in it, each once; what a running one tells is not. `revision` counts the changes. Not
    thread safe.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._kept: list[_Kept] = []
        self._columns: dict[tuple[str, str], int] = {}
        self._peaks: set[int] = set()
        self._subtasks: list[_Subtask] = []
        self._changed: set[int] = set()
        self._table = np.zeros((0, 0), dtype=np.int64)

    def reading(self, vertex: Vertex, operators: Sequence[str | None], only: Container[int] | None) -> Reading:
        """
        Return how tasks that execute a plan's vertex tell these metrics; what is new gets a column.

        Args:
            operators: For each operator of `vertex`, the id that it has here; None for one that is left out.
            only: Accumulators that count; None for all.
        """
        flows: dict[int, int] = {}
        levels: dict[int, int] = {}
        for operator, metric in _told(vertex, operators):
            if only is not None and metric.accumulator not in only:
                continue
            column = self._column(operator, metric)
            if column is None:
                continue
            if self._kept[column].rule == "flow":
                flows[metric.accumulator] = column
            else:
                levels[metric.accumulator] = column
        columns = tuple(levels.values())
        peaks = tuple(place for place, column in enumerate(columns) if column in self._peaks)
        return Reading(flows, tuple(levels), columns, peaks)

    def add(self, subtask: int, run: Run, reading: Reading, updates: Mapping[int, int]) -> None:
        """Add what a task of a subtask has told; what it did not tell is 0."""
        row = self._row(subtask)
        column_of = reading.flows.get
        for accumulator, value in updates.items():
            column = column_of(accumulator)
            # Below 0 is Spark's word for a size or time that was never set.
            if column is not None and value > 0:
                row[column] += value
        if reading.levels:
            told = updates.get
            values = [told(accumulator, 0) for accumulator in reading.levels]
            self._enter(self._subtasks[subtask], run, reading, values)

    def take_out(self, subtask: int, run: Run, reading: Reading, updates: Mapping[int, int]) -> None:
        """Take out again what `add` has added, with the same arguments."""
        row = self._row(subtask)
        for accumulator, value in updates.items():
            if accumulator in reading.flows and value > 0:
                row[reading.flows[accumulator]] -= value
        if reading.levels:
            self._leave(self._subtasks[subtask], run, reading.columns)

    def add_driver(self, reading: Reading, updates: Mapping[int, int]) -> set[int]:
        """Add what the driver itself set in one execution; return the accumulators that are of this vertex."""
        found = set()
        for accumulator, column in (*reading.flows.items(), *zip(reading.levels, reading.columns, strict=True)):
            value = updates.get(accumulator, -1)
            if value < 0:
                continue
            kept = self._kept[column]
            if kept.rule == "flow":
                kept.driver += value
            else:
                kept.driver = max(value, kept.driver) if kept.rule == "peak" else value
            found.add(accumulator)
            self.revision += 1
        return found

    def columns(self, size: int) -> Iterator[wire.Accumulator]:
        """
        Yield every metric over `size` subtasks, as it travels.

        What the driver alone has told has no value in any subtask.
        """
        table = self._shown(size)
        nowhere = np.zeros(size, dtype=np.bool_)
        for column, kept in enumerate(self._kept):
            values = table[:, column]
            present = nowhere if kept.driver and not values.any() else None
            yield wire.Accumulator(
                kept.operator,
                kept.metric.kind,
                wire.column(kept.metric.name, values, present),
                min(kept.driver, _LONG_MAX),
            )

    def values(self, operator: str, metric: str, size: int) -> npt.NDArray[np.int64] | None:
        """
        Return one metric of an operator.

        Returns:
            int64, shape (size,), a copy; None where no plan has it.
        """
        column = self._columns.get((operator, metric))
        return None if column is None else self._shown(size)[:, column].copy()

    def ended(self, size: int) -> npt.NDArray[np.bool_]:
        """Return which of `size` subtasks have a task that counts and has ended; bool, shape (size,)."""
        found = np.zeros(size, dtype=np.bool_)
        found[[place for place, subtask in enumerate(self._subtasks[:size]) if subtask.recent]] = True
        return found

    def _column(self, operator: str, metric: NativeMetric) -> int | None:
        key = (operator, metric.name)
        column = self._columns.get(key)
        if column is None and len(self._kept) < COLUMNS:
            column = self._columns[key] = len(self._kept)
            kept = _Kept(operator, metric, rule(metric.kind, metric.plain))
            self._kept.append(kept)
            if kept.rule == "peak":
                self._peaks.add(column)
            for subtask in self._subtasks:
                subtask.row.append(0)
            self.revision += 1
        return column

    def _row(self, subtask: int) -> list[int]:
        while len(self._subtasks) <= subtask:
            self._subtasks.append(_Subtask([0] * len(self._kept)))
        self._changed.add(subtask)
        self.revision += 1
        return self._subtasks[subtask].row

    def _enter(self, subtask: _Subtask, run: Run, reading: Reading, values: list[int]) -> None:
        row, recent = subtask.row, subtask.recent
        place = len(recent)
        while place and recent[place - 1][0] > run:
            place -= 1
        latest = place == len(recent)
        reached = [row[reading.columns[peak]] for peak in reading.peaks]
        recent.insert(place, (run, reading, values))
        if len(recent) > RECENT:
            _, settled, peaks = recent.pop(0)
            for peak in settled.peaks:
                column = settled.columns[peak]
                subtask.settled[column] = max(peaks[peak], subtask.settled.get(column, 0))
        if not latest:
            self._show(subtask, reading.columns)
            return
        for column, value in zip(reading.columns, values, strict=True):
            row[column] = value if value > 0 else 0
        for peak, before in zip(reading.peaks, reached, strict=True):
            if before > values[peak]:
                row[reading.columns[peak]] = before

    def _leave(self, subtask: _Subtask, run: Run, columns: Sequence[int]) -> None:
        for place, (held, *_) in enumerate(subtask.recent):
            if held == run:
                del subtask.recent[place]
                break
        self._show(subtask, columns)

    def _show(self, subtask: _Subtask, columns: Sequence[int]) -> None:
        told: dict[int, list[int]] = {column: [0] for column in columns}
        for _, reading, values in subtask.recent:
            for column, value in zip(reading.columns, values, strict=True):
                if column in told:
                    told[column].append(max(value, 0))
        for column, values in told.items():
            peak = column in self._peaks
            subtask.row[column] = max(*values, subtask.settled.get(column, 0)) if peak else values[-1]

    def _shown(self, size: int) -> npt.NDArray[np.int64]:
        if self._table.shape != (size, len(self._kept)):
            self._table = np.zeros((size, len(self._kept)), dtype=np.int64)
            self._changed.update(range(len(self._subtasks)))
        changed = list(self._changed)
        if changed:
            rows = [self._subtasks[subtask].row for subtask in changed]
            try:
                self._table[changed] = rows
            except OverflowError:
                self._table[changed] = [[min(value, _LONG_MAX) for value in row] for row in rows]
            self._changed.clear()
        return self._table


def _told(vertex: Vertex, operators: Sequence[str | None]) -> Iterator[tuple[str, NativeMetric]]:
    """
    Yield the metrics of a plan's vertex: its operators', and its side of its exchanges.

    Of several exchanges that it reads, what is read is added up: nothing in their metrics' names tells them apart.
    """
    for operator, found in zip(operators, vertex.operators, strict=True):
        if operator is not None:
            yield from ((operator, metric) for metric in found.native)
    for exchange in vertex.reads:
        yield from ((EXCHANGE, metric) for metric in exchange.native if exchange.shuffles and metric.plain in READ)
    if vertex.writes is not None:
        written = vertex.writes
        yield from ((EXCHANGE, metric) for metric in written.native if metric.plain not in READ or not written.shuffles)
