"""The driver's wall clock as a timeline that no setting of the clock moves."""

from __future__ import annotations

STEP_MS = 100
"""A wall clock that runs this far from the monotonic one between two looks was set; less is drift, and followed."""

_EPOCHS = 8
"""Latest settings of the clock that times may be told from; an event is told seconds after it happened, not hours."""


class SteadyTime:
    """
    Turns wall times into steady ones: milliseconds that begin as wall time and go on as the monotonic clock does.

    Spark tells wall times only. Both clocks are looked at together, now and then; between two settings of the wall
    clock they differ by one number, the shift. A time that is told belongs to the latest of these spans in which it
    does not lie in the future: after a clock was set back an hour, five past eleven is five past twelve, and
    five to twelve, told a little later, is five to twelve still.

    Until it has looked at the clocks, steady times are wall times. Not thread safe.
    """

    def __init__(self) -> None:
        self._shifts = [0]
        self._first: tuple[int, int] | None = None
        self._now_ms: int | None = None

    @property
    def now_ms(self) -> int | None:
        """The moment of the latest look, steady; None before the first."""
        return self._now_ms

    @property
    def shift_ms(self) -> int:
        """What makes a steady time of one that the wall clock tells now."""
        return self._shifts[0]

    def look(self, wall_ms: int, monotonic_ns: int) -> None:
        """
        Take one moment in, as both clocks tell it.

        Args:
            wall_ms: Unix milliseconds.
            monotonic_ns: From any beginning; not less than at the look before.
        """
        if self._first is None:
            self._first = (wall_ms, monotonic_ns)
        first_ms, first_ns = self._first
        self._now_ms = first_ms + (monotonic_ns - first_ns) // 1_000_000
        shift = self._now_ms - wall_ms
        if abs(shift - self._shifts[0]) >= STEP_MS:
            self._shifts.insert(0, shift)
            del self._shifts[_EPOCHS:]
        else:
            self._shifts[0] = shift

    def of(self, wall_ms: int) -> int:
        """Return the steady time of a wall time that an event of these last moments tells."""
        newest, *older = self._shifts
        if not older or self._now_ms is None:
            return wall_ms + newest
        past = (wall_ms + shift for shift in self._shifts if wall_ms + shift < self._now_ms + STEP_MS)
        return max(past, default=wall_ms + newest)
