"""How the subtasks of a vertex spend their time: busy, idle or back-pressured; all times are steady, see `steady`."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.spans import Flags, Spans, Spent, Whole

SNAPSHOTS = 13
"""Of 12 spans of 5 s. Source: Flink, `TimerGauge`."""

PLANNING_MS = 5000
"""
From a batch's trigger to its first execution; longer ones are rare. A source that keeps up has its idle time
accumulated that much later, for the next batch may have begun already, and turn out to be backlogged.
"""

_BUSY, _SLOT_WAIT, _BACK_PRESSURED = range(3)
_IDLE = 1
"""Takes the slot wait's place where times are accumulated: that is a part of the busy time."""
_LONG_AGO_MS = -(2**62)

Doubles = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """
    Parts of a second as of the last tick, ms, shape (subtasks,).

    Args:
        present: Of which subtasks there are figures; those of the others are 0.
        busy: Whole numbers; 1000.0 less the next two.
        slot_wait: The part of `busy` before a subtask's own launch.
    """

    present: Flags
    busy: Doubles
    idle: Whole
    back_pressured: Whole
    slot_wait: Whole


class Accumulated(NamedTuple):
    """Time since the subtasks were first seen, ms, shape (subtasks,), as far as it is known what it was."""

    busy: Whole
    idle: Whole
    back_pressured: Whole


class TimeShares:
    """
    The time shares of a vertex. Not thread safe.

    Busy and back-pressured time are summed up, all else since a subtask was first seen is idle: so the three add up,
    however little of the events came. The sums are those of the batches that have ended, and of the one under
    way what follows from what is known of it. When that one has ended, what was read meanwhile is put right: only then
    it is known whether time in which a subtask was held was back-pressured, and whose stage it was.

    `revision` rises with every look that tells something new.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.is_back_pressured: Flags = np.zeros(0, dtype=np.bool_)
        self._since_ms: Whole = np.zeros(0, dtype=np.int64)
        self._settled: Whole = np.zeros((3, 0), dtype=np.int64)
        self._settled_ms = _LONG_AGO_MS
        self._accumulated: Whole = np.zeros((3, 0), dtype=np.int64)
        self._ring: deque[tuple[int, Whole]] = deque(maxlen=SNAPSHOTS)

    @property
    def size(self) -> int:
        """Subtasks that have been seen."""
        return self._since_ms.size

    def tick(self, now_ms: int, size: int, under_way: Spans | None, backlogged: bool, is_source: bool = False) -> None:
        """
        Look at what has been spent, once every 5 s; a clock that stands still tells nothing.

        Args:
            size: Subtasks that there are.
            under_way: What the vertex does in the batch under way; None between two.
            backlogged: Whether the query was when that was last told.
            is_source: It is held from a batch's trigger on, which is told when the batch has ended.
        """
        if not size or (self._ring and now_ms <= self._ring[-1][0]):
            return
        begin_ms = now_ms if under_way is None else min(under_way.begin_ms, now_ms)
        self._see(size, begin_ms)
        spent = None if under_way is None else under_way.spent(now_ms, self._from_ms())
        self._ring.append((now_ms, self._sum(spent, backlogged)))
        self.is_back_pressured = np.zeros(self.size, dtype=np.bool_) if spent is None else spent.is_held & backlogged
        # What a held subtask was is not known before the batch has ended.
        unknown: Whole | int = 0 if spent is None else spent.held
        if is_source:
            before = np.maximum(begin_ms - self._from_ms(), 0)
            unknown = unknown + (before if backlogged else np.minimum(before, PLANNING_MS))
        self._accumulate(now_ms, self._sum(spent, False), unknown)
        self.revision += 1

    def settle(self, batch: Spans, size: int, backlogged: bool) -> None:
        """
        A batch has ended; it is told which time of it was back-pressured.

        Args:
            size: Subtasks that there are.
            backlogged: Whether the query was when it was triggered.
        """
        was_read = bool(self._ring) and self._ring[-1][0] > batch.begin_ms
        if size and (batch.stages or was_read):
            self._see(size, batch.begin_ms)
            from_ms = self._from_ms()
            for index, (now_ms, _) in enumerate(self._ring):
                if now_ms > batch.begin_ms:
                    self._ring[index] = (now_ms, self._sum(batch.spent(now_ms, from_ms), backlogged))
            self._settled = self._sum(batch.spent(batch.end_ms, from_ms), backlogged)
        self._settled_ms = max(self._settled_ms, batch.end_ms)

    def end(self, time_ms: int) -> None:
        """The run ended, and with it its last batch, which has been settled."""
        if self.size:
            self.is_back_pressured = np.zeros(self.size, dtype=np.bool_)
            self._accumulate(time_ms, self._settled, 0)
            self.revision += 1

    def shares(self) -> Shares | None:
        """Return the parts of a second over the ring, or since a subtask was seen; None before the first tick."""
        if not self._ring:
            return None
        now_ms, newest = self._ring[-1]
        before_ms, before = self._ring[0] if len(self._ring) == SNAPSHOTS else (_LONG_AGO_MS, newest[:, :0])
        spent = _rows(newest, self.size) - _rows(before, self.size)
        passed = now_ms - np.maximum(self._since_ms, before_ms)
        present = passed > 0
        passed = np.where(present, passed, 1)
        back_pressured = np.clip(spent[_BACK_PRESSURED], 0, passed)
        busy = np.clip(spent[_BUSY], 0, passed - back_pressured)
        slot_wait = np.clip(spent[_SLOT_WAIT], 0, busy)
        told, worked, waited = (
            np.where(present, np.rint(1000 * part / passed), 0).astype(np.int64)
            for part in (back_pressured, busy, slot_wait)
        )
        idle = np.where(present, np.maximum(1000 - told - worked, 0), 0)
        return Shares(present, np.where(present, 1000.0 - (idle + told), 0.0), idle, told, waited)

    def accumulated(self) -> Accumulated:
        """Return the accumulated times as of the last tick, or of the run's end; copies."""
        return Accumulated(*(self._accumulated[row].copy() for row in (_BUSY, _IDLE, _BACK_PRESSURED)))

    def _see(self, size: int, since_ms: int) -> None:
        """Have `size` subtasks at least; new ones are there since `since_ms`."""
        more = size - self.size
        if more > 0:
            self.revision += 1
            self._since_ms = np.concatenate([self._since_ms, np.full(more, since_ms, dtype=np.int64)])
            self.is_back_pressured = np.pad(self.is_back_pressured, (0, more))
            self._settled, self._accumulated = (_rows(each, size) for each in (self._settled, self._accumulated))

    def _from_ms(self) -> Whole:
        """Return from when on time is not settled."""
        return np.maximum(self._since_ms, self._settled_ms)

    def _sum(self, spent: Spent | None, backlogged: bool) -> Whole:
        """Return what is settled and what was spent since, shape (3, subtasks)."""
        total = self._settled.copy()
        if spent is not None:
            total[_BUSY] += spent.run
            total[_SLOT_WAIT] += spent.slot_wait
            if backlogged:
                total[_BACK_PRESSURED] += spent.held
        return total

    def _accumulate(self, now_ms: int, total: Whole, unknown_ms: Whole | int) -> None:
        """
        Bring the accumulated times up to `now_ms`, less what is not known yet.

        They never go back: what was told as busy and turns out to have been another vertex's stage stays, and what
        comes next makes up for it.
        """
        known = np.maximum(now_ms, self._settled_ms) - self._since_ms - unknown_ms
        left = np.maximum(known - self._accumulated.sum(axis=0), 0)
        for row in (_BUSY, _BACK_PRESSURED):
            more = np.clip(total[row] - self._accumulated[row], 0, left)
            self._accumulated[row] += more
            left -= more
        self._accumulated[_IDLE] += left


def _rows(table: Whole, size: int) -> Whole:
    """Return a table of `size` subtasks at least; new ones have spent nothing."""
    more = size - table.shape[1]
    return np.pad(table, ((0, 0), (0, more))) if more > 0 else table
