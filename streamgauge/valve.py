"""The watermark of an operator with several inputs, some of which may be idle."""

from __future__ import annotations

from streamgauge.heap import NOT_IN_HEAP, HeapElement, IndexedHeap
from streamgauge.watermarks import NO_WATERMARK_MS


class _Channel(HeapElement):
    """An input; while it is aligned the valve's heap holds it, and `priority` is its watermark."""

    __slots__ = ("idle",)

    def __init__(self) -> None:
        super().__init__(NO_WATERMARK_MS)
        self.idle = False


class StatusWatermarkValve:
    """
    Lets the least watermark of the aligned channels pass, when it is greater than the last one that did.

    A channel is aligned while it is active and not behind what the valve has put out. Channels begin active, and the
    watermark is NO_WATERMARK_MS before any. Not thread safe.

    `watermark_ms` is what was put out last, `idle` whether all channels are; then the watermark stays.

    Args:
        channels: How many there are at first, at least 0.

    Source: Flink, `StatusWatermarkValve`; channels that come later are ours: they begin as those that turn active do.
    """

    def __init__(self, channels: int = 0) -> None:
        self.watermark_ms = NO_WATERMARK_MS
        self.idle = False
        self._channels: list[_Channel] = []
        self._aligned: IndexedHeap[_Channel] = IndexedHeap()
        for _ in range(channels):
            self.add()

    def add(self) -> int:
        """Add a channel, active and without a watermark; return its number: they count from 0."""
        channel = _Channel()
        self._channels.append(channel)
        self._align(channel)
        self.idle = False
        return len(self._channels) - 1

    def input_watermark(self, channel: int, watermark_ms: int) -> bool:
        """
        A channel has a watermark; of one that is idle, or that has been as far, it is ignored.

        Returns:
            Whether the valve has put a watermark out.

        Raises:
            IndexError: there is no such channel.
        """
        found = self._channels[channel]
        if found.idle or watermark_ms <= found.priority:
            return False
        if found.index != NOT_IN_HEAP:
            self._aligned.adjust(found, watermark_ms)
        else:
            found.priority = watermark_ms
            self._align(found)
        return self._put_out_least()

    def input_status(self, channel: int, idle: bool) -> bool:
        """
        A channel turns idle or active; what it is already changes nothing.

        Returns:
            Whether the valve has put a watermark out: when the channel that held the others up turns idle, and when
            the last one does, for then nothing can be waited for, and the greatest of all passes.

        Raises:
            IndexError: there is no such channel.
        """
        found = self._channels[channel]
        if idle == found.idle:
            return False
        found.idle = idle
        if not idle:
            self._align(found)
            self.idle = False
            return False
        if found.index != NOT_IN_HEAP:
            self._aligned.remove(found)
        self.idle = all(each.idle for each in self._channels)
        if found.priority != self.watermark_ms:
            return False
        return self._put_out(max(each.priority for each in self._channels)) if self.idle else self._put_out_least()

    def _align(self, channel: _Channel) -> None:
        if channel.priority >= self.watermark_ms:
            self._aligned.add(channel)

    def _put_out_least(self) -> bool:
        least = self._aligned.peek()
        return least is not None and self._put_out(least.priority)

    def _put_out(self, watermark_ms: int) -> bool:
        if watermark_ms <= self.watermark_ms:
            return False
        self.watermark_ms = watermark_ms
        return True
