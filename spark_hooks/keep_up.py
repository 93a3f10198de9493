"""Whether a query keeps up: what it can process over what arrives, and where its backlog is going."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from streamgauge import names, wire

WINDOW_MS = 60_000

BATCHES = 1024
"""Held at most; a query with more of them in 60 s is judged by a shorter time."""


class _Batch(NamedTuple):
    """
    A micro-batch that has ended; rows and time are sums since the run was first seen.

    Args:
        left: Rows that its sources had beyond those that it took; None where not known.
        backlog: The same, where a source tells it in rows.
        backlog_ms: Time to work it off, as it was reckoned then.
    """

    begin_ms: int
    end_ms: int
    rows: int
    busy_ms: int
    left: int | None
    backlog: int | None
    backlog_ms: float | None


class KeepUp:
    """
    The latest micro-batches of one run: those that began within 60 s before the last one, and always the last two,
    for a trigger may be longer than that. All times are steady. Not thread safe.

    A source says at a batch's trigger what it has, so what arrived between two triggers is what was read meanwhile and
    what the backlog grew by. Where the batch took all there was, that is known of any source, whatever it counts by.
    Nothing is told of rates once there has been no batch for 60 s, nor for twice as long as these cover: nobody knows
    then what comes.
    """

    def __init__(self) -> None:
        self._batches: deque[_Batch] = deque(maxlen=BATCHES)

    def complete(self, begin_ms: int, end_ms: int, rows: int, backlog: int | None, caught_up: bool) -> None:
        """
        A micro-batch ended.

        Args:
            rows: That it read.
            backlog: Rows that its sources had beyond those, None where any of them is not known.
            caught_up: It took all that they had.
        """
        batches = self._batches
        before = batches[-1] if batches else None
        batch = _Batch(
            begin_ms,
            end_ms,
            rows + (before.rows if before else 0),
            max(end_ms - begin_ms, 0) + (before.busy_ms if before else 0),
            0 if caught_up else backlog,
            backlog,
            None,
        )
        batches.append(batch)
        while len(batches) > 2 and batches[0].begin_ms < begin_ms - WINDOW_MS:
            batches.popleft()
        batches[-1] = batch._replace(backlog_ms=self._backlog_ms())

    def metrics(self, now_ms: int, running: bool) -> dict[str, wire.Scalar]:
        """
        Return what is known of it.

        Args:
            now_ms: Steady.
            running: A micro-batch is under way.
        """
        found: dict[str, wire.Scalar] = {}
        if not self._batches:
            return found
        first, last = self._batches[0], self._batches[-1]
        if last.backlog is not None:
            found[names.BACKLOG_ROWS] = last.backlog
        elapsed_ms = last.begin_ms - first.begin_ms
        if elapsed_ms <= 0 or (not running and now_ms - last.end_ms > max(WINDOW_MS, 2 * elapsed_ms)):
            return found
        rate = self._rate()
        if rate is not None and first.left is not None and last.left is not None:
            arrived = last.rows - first.rows + last.left - first.left
            if arrived > 0:
                found[names.KEEP_UP_RATIO] = rate * elapsed_ms / arrived
        if first.backlog is not None and last.backlog is not None:
            found[names.BACKLOG_ROWS_TREND] = (last.backlog - first.backlog) * 1000 / elapsed_ms
        if last.backlog_ms is not None:
            found[names.BACKLOG_TIME] = last.backlog_ms
            # The first batch of all had none before it to tell a rate by.
            known = first if first.backlog_ms is not None else self._batches[1]
            if known.backlog_ms is not None and known.begin_ms < last.begin_ms:
                grown = last.backlog_ms - known.backlog_ms
                found[names.BACKLOG_TIME_TREND] = grown * 1000 / (last.begin_ms - known.begin_ms)
        return found

    def _rate(self) -> float | None:
        """Return the rows that are processed a millisecond of batch time, all batches after the first together."""
        first, last = self._batches[0], self._batches[-1]
        busy_ms = last.busy_ms - first.busy_ms
        return (last.rows - first.rows) / busy_ms if busy_ms else None

    def _backlog_ms(self) -> float | None:
        backlog, rate = self._batches[-1].backlog, self._rate()
        if backlog == 0:
            return 0.0
        return backlog / rate if backlog is not None and rate else None
