"""Counters and rates over the subtasks of a vertex, as NumPy columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

UPDATE_INTERVAL_S = 5
"""Source: Flink, `View.UPDATE_INTERVAL_SECONDS`."""

DEFAULT_SPAN_S = 60

Counts = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]


class MeterViews:
    """
    Flink's MeterView for every cell of a table of counters.

    A ring of span / 5 + 1 counts, all zero at first; rate = (newest − oldest) / span, also while the ring
    fills, so that a rate climbs for the first minute. A row that is registered between two ticks is
    adopted at the next one and updated from the one after. Not thread safe.

    Source: Flink 2.3, `MeterView`, `ViewUpdater`.
    """

    def __init__(self, columns: int, span_s: int = DEFAULT_SPAN_S) -> None:
        """
        Make views for `columns` counters and, so far, no rows.

        Args:
            columns: Counters a row.
            span_s: Seconds, rounded down to a multiple of 5, at least 5.
        """
        self.span_s = max(span_s - span_s % UPDATE_INTERVAL_S, UPDATE_INTERVAL_S)
        self._ring = np.zeros((self.span_s // UPDATE_INTERVAL_S + 1, 0, columns), dtype=np.int64)
        self._adopted = np.zeros(0, dtype=np.bool_)
        self._newest = 0

    def register(self, rows: int) -> None:
        """Have views for `rows` rows at least."""
        more = rows - self._adopted.size
        if more > 0:
            slots, _, columns = self._ring.shape
            self._ring = np.concatenate([self._ring, np.zeros((slots, more, columns), dtype=np.int64)], axis=1)
            self._adopted = np.concatenate([self._adopted, np.zeros(more, dtype=np.bool_)])

    def update(self, counts: Counts) -> None:
        """
        Tick, once every 5 s.

        Args:
            counts: int64, shape (rows registered, columns), as they are now.
        """
        self._newest = (self._newest + 1) % len(self._ring)
        self._ring[self._newest] = np.where(self._adopted[:, None], counts, 0)
        self._adopted[:] = True

    def rates(self) -> Rates:
        """Return the rates a second, float64, shape (rows, columns), as of the last tick."""
        oldest = (self._newest + 1) % len(self._ring)
        rates: Rates = (self._ring[self._newest] - self._ring[oldest]) / float(self.span_s)
        return rates


class Counters:
    """
    A table of counters, one row a subtask, that never go back.

    What a task has finished is added; what a running one told is shown on top of it and replaced by its
    next word. Of several attempts that run at once, as speculation has them, the furthest is shown: they do
    the same work. A task that fails takes its live values away again: the greatest count that was ever
    shown stands until the retry passes it. Not thread safe.
    """

    def __init__(self, columns: int) -> None:
        self._done = np.zeros((0, columns), dtype=np.int64)
        self._shown = np.zeros((0, columns), dtype=np.int64)
        self._live: dict[tuple[int, int], dict[int, Counts]] = {}

    @property
    def rows(self) -> int:
        """Subtasks so far."""
        return len(self._done)

    def register(self, rows: int) -> None:
        """Have `rows` rows at least."""
        more = rows - self.rows
        if more > 0:
            blank = np.zeros((more, self._done.shape[1]), dtype=np.int64)
            self._done = np.concatenate([self._done, blank])
            self._shown = np.concatenate([self._shown, blank])

    def add(self, row: int, counts: Sequence[int]) -> None:
        """Add what a task has done to its subtask."""
        self._done[row] += np.asarray(counts, dtype=np.int64)

    def subtract(self, row: int, counts: Sequence[int]) -> None:
        """Take a task's counts out again; another execution of it replaces them."""
        self._done[row] -= np.asarray(counts, dtype=np.int64)

    def show_live(self, stage: int, row: int, task: int, counts: Sequence[int]) -> None:
        """Show what a running task of a subtask has done so far, in place of its last word."""
        self._live.setdefault((stage, row), {})[task] = np.asarray(counts, dtype=np.int64)

    def drop_live(self, stage: int, row: int, task: int | None = None) -> None:
        """Forget what a task told while it ran; None for all attempts of the subtask in this stage."""
        attempts = self._live.get((stage, row))
        if attempts is None:
            return
        if task is not None:
            attempts.pop(task, None)
        if task is None or not attempts:
            del self._live[stage, row]

    def shown(self) -> Counts:
        """Return the counts to show, int64, shape (rows, columns); a view, valid until the next call."""
        now = self._done.copy()
        for (_, row), attempts in self._live.items():
            now[row] += np.max(list(attempts.values()), axis=0)
        np.maximum(self._shown, now, out=self._shown)
        return self._shown
