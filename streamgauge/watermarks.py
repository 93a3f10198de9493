"""Watermarks as a Flink source makes them: a generator and an idleness timer for each split, and what combines them."""

from __future__ import annotations

from collections.abc import Callable

NO_WATERMARK_MS = -(2**63)
"""Before there is a watermark. Source: Flink, `Watermark.UNINITIALIZED`."""

END_OF_INPUT_MS = 2**63 - 1
"""Source: Flink, `Watermark.MAX_WATERMARK`."""


class BoundedOutOfOrderness:
    """
    Makes the watermarks of a stream whose records are late by a bounded time. Not thread safe.

    Args:
        delay_ms: The bound, at least 0.

    Raises:
        ValueError: it is negative.

    Source: Flink, `BoundedOutOfOrdernessWatermarks`.
    """

    def __init__(self, delay_ms: int) -> None:
        if delay_ms < 0:
            raise ValueError(f"records out of order by {delay_ms} ms, but at least 0 was expected")
        self._delay_ms = delay_ms
        # So that before any record the watermark is the least one, and not one that has wrapped around.
        self._greatest_ms = NO_WATERMARK_MS + delay_ms + 1

    @property
    def watermark_ms(self) -> int:
        """What is emitted next: the greatest event time less the delay less 1, NO_WATERMARK_MS before any record."""
        return self._greatest_ms - self._delay_ms - 1

    def observe(self, event_ms: int) -> None:
        """A record, or the latest of many, has this event time, Unix time."""
        self._greatest_ms = max(self._greatest_ms, event_ms)


class IdlenessTimer:
    """
    Tells whether there have been no records for longer than a timeout. Not thread safe.

    It is a look that starts the clock: the first one that finds no record since the look before.

    Args:
        timeout_ms: At least 0; None for never idle.
        now_ms: A clock that never goes back, and that stands still while no record could have come.

    Raises:
        ValueError: the timeout is negative.

    Source: Flink, `WatermarksWithIdleness.IdlenessTimer`.
    """

    def __init__(self, timeout_ms: int | None, now_ms: Callable[[], int]) -> None:
        if timeout_ms is not None and timeout_ms < 0:
            raise ValueError(f"an idleness timeout of {timeout_ms} ms, but at least 0 was expected")
        self._timeout_ms = timeout_ms
        self._now_ms = now_ms
        self._active = False
        self._since_ms: int | None = None

    def activity(self) -> None:
        """There has been a record."""
        self._active = True

    def is_idle(self) -> bool:
        """Look; return whether the timeout has passed since the first look without a record."""
        if self._timeout_ms is None:
            return False
        if self._active:
            self._active, self._since_ms = False, None
            return False
        if self._since_ms is None:
            self._since_ms = self._now_ms()
        return self._now_ms() - self._since_ms > self._timeout_ms


class _Output:
    """The watermark of one split, and whether the split is idle."""

    __slots__ = ("idle", "watermark_ms")

    def __init__(self) -> None:
        self.watermark_ms = NO_WATERMARK_MS
        self.idle = False


class WatermarkMultiplexer:
    """
    Combines the watermarks of splits into one: the least of those that are not idle. Not thread safe.

    What splits do takes effect at the next `combine`, as what is emitted periodically does in Flink. No watermark goes
    back: not a split's, nor the combined one, also where a split is added that is behind. Where all splits are idle so
    is the whole, and the watermark stays.

    `watermark_ms` is the combined one, `idle` whether all splits were at the last `combine`.

    Source: Flink, `WatermarkOutputMultiplexer` and `CombinedWatermarkStatus`.
    """

    def __init__(self) -> None:
        self.watermark_ms = NO_WATERMARK_MS
        self.idle = False
        self._outputs: dict[str, _Output] = {}

    def __contains__(self, split: str) -> bool:
        return split in self._outputs

    def add(self, split: str) -> None:
        """
        A split begins: active, without a watermark.

        Raises:
            ValueError: it is there already.
        """
        if split in self._outputs:
            raise ValueError(f"split {split!r} is there already")
        self._outputs[split] = _Output()

    def remove(self, split: str) -> None:
        """
        A split is done with, and holds nothing up any more.

        Raises:
            KeyError: it is not there.
        """
        del self._outputs[split]

    def emit(self, split: str, watermark_ms: int) -> None:
        """A split has a watermark, which counts if it is greater than the one before, and with it is active."""
        output = self._outputs[split]
        output.idle = False
        output.watermark_ms = max(output.watermark_ms, watermark_ms)

    def mark_idle(self, split: str) -> None:
        """A split is idle until it has a watermark again."""
        self._outputs[split].idle = True

    def combine(self) -> bool:
        """
        Look at all splits; return whether the combined watermark has grown.

        Without any split nothing changes, nor after the end of input.
        """
        if not self._outputs or self.watermark_ms == END_OF_INPUT_MS:
            return False
        active = [output.watermark_ms for output in self._outputs.values() if not output.idle]
        self.idle = not active
        if not active or min(active) <= self.watermark_ms:
            return False
        self.watermark_ms = min(active)
        return True

    def end(self) -> None:
        """The input has ended: no record can come that would be late. The splits keep what they had."""
        self.watermark_ms, self.idle = END_OF_INPUT_MS, False

    def watermark_of(self, split: str) -> int:
        """Return a split's watermark, Unix time, NO_WATERMARK_MS before it has one; KeyError where it is not there."""
        return self._outputs[split].watermark_ms

    def is_idle(self, split: str) -> bool:
        """Return whether a split is idle; KeyError where it is not there."""
        return self._outputs[split].idle

    def drifts_ms(self) -> dict[str, int | None]:
        """
        Return by how much each split is behind the one that is furthest of those that are not idle.

        Returns:
            Below 0 where a split is idle and ahead of them all; None where it has no watermark, or all are idle.

        Source: Flink, watermark alignment: how far a split is from the others is what it is paused for, there the
        ones that are ahead.
        """
        furthest = max((each.watermark_ms for each in self._outputs.values() if not each.idle), default=NO_WATERMARK_MS)
        return {
            split: None if NO_WATERMARK_MS in (each.watermark_ms, furthest) else furthest - each.watermark_ms
            for split, each in self._outputs.items()
        }
