"""The driver's wall clock as a timeline that no setting of the clock moves."""

from __future__ import annotations

from dataclasses import dataclass

STEP_MS = 100
"""A wall clock that runs this far from the monotonic one between two looks was set; less is drift, and followed."""

_GRAIN_MS = 1
"""Both clocks are read to the millisecond: where they part by this much, they may not have parted at all."""

_SPANS = 8
"""Latest settings of the clock that times may be told from."""


@dataclass(slots=True)
class _Span:
    """
    The time between two settings of the wall clock.

    Args:
        shift_ms: What makes a steady time of a wall time.
        from_ms: The look before the setting, steady: the clock was set at some moment after it.
        seen_ms: The look after the setting, steady: the clock had been set by then.
    """

    shift_ms: int
    from_ms: int
    seen_ms: int


class SteadyTime:
    """
    Turns wall times into steady ones: milliseconds that begin as wall time and go on as the monotonic clock does.

    Spark tells wall times only. Both clocks are looked at together, now and then; between two settings of the wall
    clock they differ by one number, the shift. A time that is told belongs to the latest of these spans in which it
    can lie: after a clock was set back an hour, five past eleven is five past twelve, and five to twelve, told a
    little later, is five to twelve still.

    Until it has looked at the clocks, steady times are wall times. Not thread safe.
    """

    def __init__(self) -> None:
        self._spans = [_Span(0, -(2**63), -(2**63))]
        self._first: tuple[int, int] | None = None
        self._now_ms: int | None = None

    @property
    def now_ms(self) -> int | None:
        """The moment of the latest look, steady; None before the first."""
        return self._now_ms

    @property
    def shift_ms(self) -> int:
        """What makes a steady time of one that the wall clock tells now."""
        return self._spans[0].shift_ms

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
        now_ms = first_ms + (monotonic_ns - first_ns) // 1_000_000
        shift_ms = now_ms - wall_ms
        if abs(shift_ms - self.shift_ms) >= STEP_MS:
            before_ms = now_ms if self._now_ms is None else self._now_ms
            self._spans.insert(0, _Span(shift_ms, before_ms, now_ms))
            del self._spans[_SPANS:]
        elif abs(shift_ms - self.shift_ms) > _GRAIN_MS:
            self._spans[0].shift_ms = shift_ms
        self._now_ms = now_ms

    def of(self, wall_ms: int) -> int:
        """Return the steady time of a wall time that is not older than the eighth last setting of the clock."""
        newest, *older = self._spans
        steady_ms = wall_ms + newest.shift_ms
        if not older or self._now_ms is None:
            return steady_ms
        until_ms = self._now_ms
        for span in self._spans:
            found_ms = wall_ms + span.shift_ms
            if span.from_ms - STEP_MS < found_ms < until_ms + STEP_MS:
                return found_ms
            until_ms = span.seen_ms
        return steady_ms
