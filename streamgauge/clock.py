"""Time as it is injected everywhere: wall time in milliseconds and a monotonic reading in nanoseconds."""

import time
from typing import Protocol


class Clock(Protocol):
    """
    What tells the time. Both readings may be taken by any thread.
    """

    def now_ms(self) -> int:
        """Return wall time, Unix milliseconds UTC. It may jump, in both directions."""

    def monotonic_ns(self) -> int:
        """Return a reading in nanoseconds that never goes back; only differences mean anything."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return wall time, Unix milliseconds UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Return the machine's monotonic reading, nanoseconds."""
        return time.monotonic_ns()


class ManualClock:
    """
    A clock that moves only when told to, for tests and for replaying a log.

    Not thread safe: advance it from one thread.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ns = 0

    def now_ms(self) -> int:
        """Return the wall time that was set, milliseconds."""
        return self._now_ms

    def monotonic_ns(self) -> int:
        """Return the sum of all advances, nanoseconds."""
        return self._monotonic_ns

    def advance(self, ms: int) -> None:
        """
        Move both readings on.

        Args:
            ms: At least 0.

        Raises:
            ValueError: ms is negative; use `step_wall` to set wall time back.
        """
        if ms < 0:
            raise ValueError(f"a clock cannot be advanced by {ms} ms; step_wall() sets wall time back")
        self._now_ms += ms
        self._monotonic_ns += ms * 1_000_000

    def step_wall(self, ms: int) -> None:
        """Move wall time alone by `ms` (any sign), as an administrator or NTP would."""
        self._now_ms += ms
