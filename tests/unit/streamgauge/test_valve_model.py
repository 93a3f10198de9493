"""
The valve against a brute-force model: what is known of the channels is read out of all that ever happened.

Flink's rules in words, no aligned set kept and no heap: a channel's watermark is the greatest that came while it was
active; it is aligned while it is active and its watermark is not behind the output; the least of the aligned ones
is looked for when a watermark comes that counts, and when a channel turns idle that stood where the output does.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.valve import StatusWatermarkValve
from streamgauge.watermarks import NO_WATERMARK_MS

CHANNELS = 4
"""More would have no watermark, and nothing would ever pass."""


class Event(NamedTuple):
    """`kind`: watermark, idle, active, or add, which is of no channel."""

    kind: str
    channel: int = 0
    watermark_ms: int = 0


def events() -> st.SearchStrategy[list[Event]]:
    channels, moments = st.integers(0, CHANNELS - 1), st.integers(0, 9)
    return st.lists(
        st.one_of(
            st.builds(Event, st.just("watermark"), channels, moments),
            st.builds(Event, st.sampled_from(["idle", "active"]), channels),
            st.just(Event("add")),
        ),
        max_size=60,
    )


class Model:
    """Everything that happened, and the output so far."""

    def __init__(self) -> None:
        self.history: list[Event] = []
        self.output_ms = NO_WATERMARK_MS

    @property
    def channels(self) -> range:
        return range(sum(event.kind == "add" for event in self.history))

    def is_idle(self, channel: int) -> bool:
        told = [event.kind for event in self.history if event.channel == channel and event.kind in ("idle", "active")]
        return told[-1:] == ["idle"]

    def watermark_of(self, channel: int) -> int:
        idle, found = False, NO_WATERMARK_MS
        for event in self.history:
            if event.channel == channel and event.kind == "watermark" and not idle:
                found = max(found, event.watermark_ms)
            elif event.channel == channel and event.kind in ("idle", "active"):
                idle = event.kind == "idle"
        return found

    @property
    def idle(self) -> bool:
        return bool(self.channels) and all(self.is_idle(channel) for channel in self.channels)

    def happen(self, event: Event) -> None:
        was_idle = event.kind != "add" and self.is_idle(event.channel)
        before_ms = NO_WATERMARK_MS if event.kind == "add" else self.watermark_of(event.channel)
        self.history.append(event)
        counts = event.kind == "watermark" and not was_idle and event.watermark_ms > before_ms
        stood_there = event.kind == "idle" and not was_idle and before_ms == self.output_ms
        marks = {channel: self.watermark_of(channel) for channel in self.channels}
        if stood_there and self.idle:
            self.output_ms = max(self.output_ms, *marks.values())
        elif counts or stood_there:
            # A channel that has just come past the output was behind it when it came, and is aligned all the same.
            aligned = [marks[each] for each in marks if not self.is_idle(each) and marks[each] >= self.output_ms]
            self.output_ms = max(self.output_ms, min(aligned, default=NO_WATERMARK_MS))


@given(st.integers(0, CHANNELS), events())
def test_valve_equals_its_rules_over_all_that_happened(channels: int, planned: list[Event]) -> None:
    """Channels go idle and back, fall behind, catch up and come anew: output and status are the model's throughout."""
    valve, model = StatusWatermarkValve(channels), Model()
    for _ in range(channels):
        model.happen(Event("add"))
    for event in planned:
        if len(model.channels) == CHANNELS if event.kind == "add" else event.channel not in model.channels:
            continue
        before_ms = model.output_ms
        model.happen(event)
        if event.kind == "add":
            assert valve.add() == model.channels[-1]
        elif event.kind == "watermark":
            assert valve.input_watermark(event.channel, event.watermark_ms) == (model.output_ms > before_ms)
        else:
            told = valve.input_status(event.channel, idle=event.kind == "idle")
            assert told == (model.output_ms > before_ms)
        assert (valve.watermark_ms, valve.idle) == (model.output_ms, model.idle)
