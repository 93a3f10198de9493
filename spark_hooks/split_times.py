"""How the splits of a stream spend their time: active or idle; all times are steady, see `steady`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

SNAPSHOTS = 13
"""Of 12 spans of 5 s. Source: Flink, `TimerGauge`."""


class SplitTime(NamedTuple):
    """
    Of one split, as of the last tick.

    Args:
        idle_per_second: ms, 0 to 1000, over the last 60 s or as long as the split has been there; None before that is
            at all.
        idle_ms, active_ms: Since it has been there.
    """

    idle_per_second: int | None
    idle_ms: int
    active_ms: int


class SplitTimes:
    """
    The times of a tap's splits, by their places. A clock that goes back stands still here. Not thread safe.

    Source: Flink, `InternalSourceSplitMetricGroup`: active is what is neither idle nor paused, and Spark pauses no
    split for being ahead of the others.
    """

    def __init__(self) -> None:
        self._since_ms: list[int] = []
        self._idle_ms: list[int] = []
        self._idle: list[bool] = []
        self._now_ms = -(2**63)
        self._ring: deque[tuple[int, list[int]]] = deque(maxlen=SNAPSHOTS)

    def turn(self, now_ms: int, idle: Sequence[bool]) -> None:
        """
        Splits are idle, or not, from now on.

        Args:
            idle: Of every split; those past the ones that were there are new.
        """
        self._pass(now_ms)
        new = len(idle) - len(self._idle)
        self._since_ms += [self._now_ms] * new
        self._idle_ms += [0] * new
        self._idle = list(idle)

    def tick(self, now_ms: int) -> None:
        """Look at what has passed, once every 5 s, and at the end."""
        self._pass(now_ms)
        if not self._ring or self._ring[-1][0] < self._now_ms:
            self._ring.append((self._now_ms, self._idle_ms.copy()))

    def told(self) -> list[SplitTime]:
        """Return the times of the splits that there were at the last tick."""
        if not self._ring:
            return []
        now_ms, newest = self._ring[-1]
        before_ms, before = self._ring[0] if len(self._ring) == SNAPSHOTS else (-(2**63), [])
        return [
            _time(now_ms, since_ms, idle_ms, before_ms, before[place] if place < len(before) else 0)
            for place, (idle_ms, since_ms) in enumerate(zip(newest, self._since_ms, strict=False))
        ]

    def _pass(self, now_ms: int) -> None:
        passed_ms = max(now_ms - self._now_ms, 0)
        self._now_ms += passed_ms
        self._idle_ms = [idle_ms + passed_ms * idle for idle_ms, idle in zip(self._idle_ms, self._idle, strict=True)]


def _time(now_ms: int, since_ms: int, idle_ms: int, before_ms: int, idle_before_ms: int) -> SplitTime:
    window_ms = now_ms - max(since_ms, before_ms)
    share = round(1000 * (idle_ms - idle_before_ms) / window_ms) if window_ms > 0 else None
    return SplitTime(share, idle_ms, now_ms - since_ms - idle_ms)
