"""How long a vertex waits within a micro-batch: for its turn, and for the last part of its input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spark_hooks.shuffles import Ran, Shuffles
from streamgauge import names

if TYPE_CHECKING:
    from spark_hooks.timeline import Batch
    from spark_hooks.vertex import JobVertex

MS_IN_NS = 1_000_000

Times = npt.NDArray[np.int64]
Column = tuple[str, Times, npt.NDArray[np.bool_]]


class Alignment:
    """
    A vertex's alignment and start delay by subtask, of the latest micro-batch that told each. Not thread safe.

    `revision` grows with every change.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._state: object = None
        self._aligned_ns = np.zeros(0, dtype=np.int64)
        self._delay_ns = np.zeros(0, dtype=np.int64)

    def register(self, rows: int) -> None:
        """Have `rows` subtasks at least; of a new one nothing is known."""
        more = rows - self._aligned_ns.size
        if more > 0:
            unknown = np.full(more, -1, dtype=np.int64)
            self._aligned_ns = np.concatenate([self._aligned_ns, unknown])
            self._delay_ns = np.concatenate([self._delay_ns, unknown])
            self.revision += 1

    def moved(self, state: object) -> bool:
        """Remember what the figures are made of; return whether it is not what it was."""
        if state == self._state:
            return False
        self._state = state
        return True

    def note(self, subtasks: int, aligned_ms: int | None, delay_ms: int | None) -> None:
        """Take in what a micro-batch tells of the first `subtasks`; None where it tells nothing."""
        for column, told_ms in ((self._aligned_ns, aligned_ms), (self._delay_ns, delay_ms)):
            told = column[:subtasks]
            if told_ms is not None and (told != told_ms * MS_IN_NS).any():
                told[:] = told_ms * MS_IN_NS
                self.revision += 1

    def columns(self) -> Iterator[Column]:
        """Return what is known: metric, values, whether there is one; arrays are the caller's."""
        for metric, values in (
            (names.CHECKPOINT_ALIGNMENT_TIME, self._aligned_ns),
            (names.CHECKPOINT_START_DELAY, self._delay_ns),
        ):
            present = values >= 0
            if present.any():
                yield metric, np.where(present, values, 0), present


def align(shuffles: Shuffles, batch: Batch, vertices: Iterable[JobVertex], now_ms: int | None) -> None:
    """
    Take in what a micro-batch tells of the vertices' alignment so far.

    Alignment is last − first finish of the tasks whose shuffles a vertex reads, and first finish to now while they
    have not all finished; start delay is the vertex's first launch − the batch's begin.

    Args:
        now_ms: Steady, not past the end of the batch's executions; None while no clock was looked at.
    """
    for vertex in vertices:
        ran = shuffles.ran(vertex.id)
        sources = shuffles.sources(vertex)
        writers = [writer for source in sources if (writer := shuffles.writer(source)) is not None]
        if not ran and not writers:
            continue
        started = bool(writers) and shuffles.reader(vertex.id, max(writers, key=_launched)) is not None
        awaited = not started and any(map(shuffles.awaited, sources))
        first_ms = ran[0].stage.first_ms if ran else None
        state = (batch.id, batch.begin_ms, first_ms, started, awaited, *(writer.state for writer in writers))
        grows = awaited or any(_unfinished(writer, started) for writer in writers)
        if vertex.alignment.moved((now_ms, state) if grows else state):
            delay_ms = None if first_ms is None else max(first_ms - batch.begin_ms, 0)
            aligned_ms = _aligned_ms(shuffles, writers, now_ms if grows else None) if writers else None
            vertex.alignment.note(ran[-1].stage.tasks if ran else vertex.parallelism, aligned_ms, delay_ms)


def _launched(ran: Ran) -> int:
    return ran.stage.first_ms


def _unfinished(writer: Ran, started: bool) -> bool:
    """Whether a stage's output is still to grow; once it is read only where some of it was lost."""
    stage = writer.stage
    # One of which adaptive execution has no need any more ends before all of its tasks have.
    waits = not started and len(stage.won) < stage.tasks
    return stage.completed_ms < 0 and (waits or bool(stage.running))


def _aligned_ms(shuffles: Shuffles, writers: Iterable[Ran], now_ms: int | None) -> int:
    """Return how long the vertex's input has been complete in part only; it still is where `now_ms` is told."""
    finishes = [won.finished_ms for writer in writers for won in shuffles.finished(writer)]
    if not finishes:
        return 0
    last_ms = max(finishes)
    return (last_ms if now_ms is None else max(last_ms, now_ms)) - min(finishes)
