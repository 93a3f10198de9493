"""
Windows of event time and what makes them fire, for operators that keep windows by themselves.

Source: Flink's `TimeWindow`, `TumblingEventTimeWindows`, `Trigger`, `TriggerResult` and `EventTimeTrigger`.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple, Protocol

_NAMESPACE = re.compile(r"window (-?\d+) (-?\d+)")


class TimeWindow(NamedTuple):
    """
    What lies from `start_ms` to before `end_ms`; Unix milliseconds.
    """

    start_ms: int
    end_ms: int

    @classmethod
    def tumbling(cls, timestamp_ms: int, size_ms: int, offset_ms: int = 0) -> TimeWindow:
        """
        Return the window of a timestamp, where windows of one size lie side by side.

        Args:
            timestamp_ms: Unix ms, any sign.
            size_ms: At least 1.
            offset_ms: From the epoch to a window's start; its absolute value is less than the size.

        Raises:
            ValueError: size or offset is out of its range.
        """
        if abs(offset_ms) >= size_ms:
            raise ValueError(f"windows of {size_ms} ms at {offset_ms} ms, but abs(offset) < size was expected")
        start_ms = timestamp_ms - (timestamp_ms - offset_ms) % size_ms
        return cls(start_ms, start_ms + size_ms)

    @classmethod
    def of_namespace(cls, namespace: str) -> TimeWindow:
        """
        Return the window whose namespace this is.

        Raises:
            ValueError: it is that of no window.
        """
        found = _NAMESPACE.fullmatch(namespace)
        if found is None:
            raise ValueError(f"{namespace[:40]!r} is the namespace of no TimeWindow")
        return cls(int(found[1]), int(found[2]))

    @property
    def namespace(self) -> str:
        """What tells this window's timers from those of others."""
        return f"window {self.start_ms} {self.end_ms}"

    @property
    def max_timestamp_ms(self) -> int:
        """The last millisecond that is in the window."""
        return self.end_ms - 1


class TriggerResult(Enum):
    """What becomes of a window: whether it is put out, and whether its content is forgotten."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    @property
    def is_fire(self) -> bool:
        """Whether the window's result is put out now."""
        return self.value[0]

    @property
    def is_purge(self) -> bool:
        """Whether the window's content is forgotten now."""
        return self.value[1]


class EventTimeTimers(Protocol):
    """The timers of a key, as `TimerService.at` returns them."""

    def current_watermark(self) -> int:
        """Return the watermark, Unix ms."""

    def register_event_time_timer(self, timestamp_ms: int, namespace: str = "") -> None:
        """Fire once the watermark has reached a timestamp."""

    def delete_event_time_timer(self, timestamp_ms: int, namespace: str = "") -> None:
        """Forget a timer."""


class EventTimeTrigger:
    """
    Puts a window out once the watermark has passed its end, and again for each element that comes later than that.

    Each window's timer is in a namespace of its own: the timer service is made with `namespaces=True`, and
    `TimeWindow.of_namespace` tells whose a timer is.

    Source: Flink, `EventTimeTrigger`.
    """

    def on_element(self, window: TimeWindow, timers: EventTimeTimers) -> TriggerResult:
        """Take an element of a window: FIRE where the watermark is past the window, else wait for it."""
        if window.max_timestamp_ms <= timers.current_watermark():
            return TriggerResult.FIRE
        timers.register_event_time_timer(window.max_timestamp_ms, window.namespace)
        return TriggerResult.CONTINUE

    def on_event_time(self, timestamp_ms: int, window: TimeWindow) -> TriggerResult:
        """Take a timer of a window: FIRE if it is the one of its end; others of the namespace mean nothing here."""
        return TriggerResult.FIRE if timestamp_ms == window.max_timestamp_ms else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, timers: EventTimeTimers) -> None:
        """Wait for the end of a window that others were merged into; theirs are to be cleared."""
        if window.max_timestamp_ms > timers.current_watermark():
            timers.register_event_time_timer(window.max_timestamp_ms, window.namespace)

    def clear(self, window: TimeWindow, timers: EventTimeTimers) -> None:
        """Forget a window that was purged."""
        timers.delete_event_time_timer(window.max_timestamp_ms, window.namespace)
