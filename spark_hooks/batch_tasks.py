"""What the tasks of one micro-batch did, vertex by vertex."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from streamgauge import wire

if TYPE_CHECKING:
    from spark_hooks.stages import Execution, Stage, Won
    from spark_hooks.vertex import Bound

SUBTASKS = 20_000
VERTICES = 500
"""Of one micro-batch that are told; vertices that are seen when there is no room any more are left out."""

_START, _END, _STATE, _COMMIT = range(4)

_Table = npt.NDArray[np.int64]
"""Shape (4, subtasks): launch, end, state bytes, commit ms; −1 where not known."""


class BatchTasks:
    """
    The tasks of one micro-batch. Not thread safe.

    While an execution of the batch runs its stages are looked at when somebody asks, for until it has ended it may
    turn out that a stage executes another vertex than it seemed to. Of an execution that has ended only the figures
    are held. Where several stages executed one vertex, as with two writes in foreachBatch, the last one is told.
    """

    def __init__(self) -> None:
        self._running: dict[Execution, None] = {}
        self._ended: dict[str, _Table] = {}
        self._told: tuple[wire.CheckpointTasks, ...] | None = ()

    def join(self, execution: Execution) -> None:
        """An execution belongs to the batch."""
        self._running[execution] = None
        self._told = None

    def leave(self, execution: Execution) -> None:
        """An execution has ended; one that is not there changes nothing."""
        if execution in self._running:
            del self._running[execution]
            _take(self._ended, execution.stages)
            self._told = None

    def note(self, stage: Stage) -> None:
        """A task of a stage was launched, or won its partition."""
        self._told = None
        if stage.execution not in self._running:
            _take(self._ended, (stage,))

    def told(self) -> tuple[wire.CheckpointTasks, ...]:
        """Return it as it travels; the same object while nothing has changed."""
        if self._told is None:
            tables = self._ended
            if self._running:
                tables = {vertex: table.copy() for vertex, table in tables.items()}
                for execution in self._running:
                    _take(tables, execution.stages)
            self._told = tuple(
                wire.CheckpointTasks(vertex, *(row.astype("<i8").tobytes() for row in table))
                for vertex, table in tables.items()
            )
        return self._told


def _take(tables: dict[str, _Table], stages: Iterable[Stage]) -> None:
    """Write what the tasks of `stages` did into the tables of the vertices that they execute."""
    for stage in stages:
        for bound in stage.vertices():
            if stage.starts or stage.won:
                _take_vertex(tables, stage, bound)


def _take_vertex(tables: dict[str, _Table], stage: Stage, bound: Bound) -> None:
    started, won = _column(stage.starts), list(stage.won.values())
    subtasks = _column(stage.won)
    size = 1 + max(stage.tasks - 1, *(int(found.max()) for found in (started, subtasks) if found.size))
    table = _table(tables, bound.vertex.id, size)
    if table is None:
        return
    table[_START, started] = _column(stage.starts.values())
    table[_START, subtasks] = _column(each.launch_ms for each in won)
    table[_END, subtasks] = _column(each.finish_ms for each in won)
    for row, accumulators in ((_STATE, bound.state), (_COMMIT, bound.commits)):
        if accumulators:
            table[row, subtasks] = _sums(won, accumulators)


def _table(tables: dict[str, _Table], vertex: str, size: int) -> _Table | None:
    """Return a vertex's table of at least `size` subtasks; None where there is no room for it."""
    table = tables.get(vertex)
    held = 0 if table is None else table.shape[1]
    if table is not None and held >= size:
        return table
    if sum(each.shape[1] for each in tables.values()) - held + size > SUBTASKS or len(tables) - bool(held) >= VERTICES:
        return None
    grown = np.full((4, size), -1, dtype=np.int64)
    if table is not None:
        grown[:, :held] = table
    tables[vertex] = grown
    return grown


def _column(values: Iterable[int]) -> _Table:
    return np.fromiter(values, dtype=np.int64)


def _sums(won: list[Won], accumulators: Sequence[int]) -> _Table:
    # Zero is never sent.
    return _column(sum(each.updates.get(accumulator, 0) for accumulator in accumulators) for each in won)
