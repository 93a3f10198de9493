"""Flink's generator, idleness timer and multiplexer, rule by rule."""

from __future__ import annotations

import pytest

from streamgauge.watermarks import (
    END_OF_INPUT_MS,
    NO_WATERMARK_MS,
    BoundedOutOfOrderness,
    IdlenessTimer,
    WatermarkMultiplexer,
)


def test_generator_begins_at_the_least_watermark_whatever_its_delay() -> None:
    """Its greatest event time begins at MIN + delay + 1, so nothing wraps around."""
    assert BoundedOutOfOrderness(0).watermark_ms == NO_WATERMARK_MS
    assert BoundedOutOfOrderness(10_000).watermark_ms == NO_WATERMARK_MS


def test_generator_emits_the_greatest_event_time_less_delay_less_one() -> None:
    """A watermark of t says that no record of t or before is to come."""
    generator = BoundedOutOfOrderness(100)
    generator.observe(5000)
    assert generator.watermark_ms == 4899


def test_generator_ignores_records_out_of_order() -> None:
    """Only the greatest event time counts."""
    generator = BoundedOutOfOrderness(0)
    for event_ms in (50, 70, 60):
        generator.observe(event_ms)
    assert generator.watermark_ms == 69


def test_generator_refuses_a_negative_delay() -> None:
    """The message has the value and what is expected."""
    with pytest.raises(ValueError, match="by -1 ms, but at least 0"):
        BoundedOutOfOrderness(-1)


class Clock:
    """Milliseconds that a test sets."""

    def __init__(self) -> None:
        self.now_ms = 0


def timer(timeout_ms: int | None) -> tuple[IdlenessTimer, Clock]:
    clock = Clock()
    return IdlenessTimer(timeout_ms, lambda: clock.now_ms), clock


def test_idleness_counts_from_the_first_look_without_a_record() -> None:
    """Not from the last record: nobody has looked since."""
    idleness, clock = timer(1000)
    idleness.activity()
    assert not idleness.is_idle()
    clock.now_ms = 5000
    assert not idleness.is_idle()
    clock.now_ms = 6000
    assert not idleness.is_idle()
    clock.now_ms = 6001
    assert idleness.is_idle()


def test_idleness_ends_with_a_record() -> None:
    """And the timeout begins anew."""
    idleness, clock = timer(10)
    assert not idleness.is_idle()
    clock.now_ms = 11
    assert idleness.is_idle()
    idleness.activity()
    assert not idleness.is_idle()
    clock.now_ms = 22
    assert not idleness.is_idle()
    clock.now_ms = 33
    assert idleness.is_idle()


def test_idleness_without_a_timeout_never_comes() -> None:
    """As in Flink where withIdleness is not called."""
    idleness, clock = timer(None)
    idleness.is_idle()
    clock.now_ms = 2**62
    assert not idleness.is_idle()


def test_idleness_refuses_a_negative_timeout() -> None:
    """The message has the value and what is expected."""
    with pytest.raises(ValueError, match="of -5 ms, but at least 0"):
        timer(-5)


def multiplexer(**watermarks_ms: int) -> WatermarkMultiplexer:
    """Splits with their watermarks, combined."""
    combined = WatermarkMultiplexer()
    for split, watermark_ms in watermarks_ms.items():
        combined.add(split)
        combined.emit(split, watermark_ms)
    combined.combine()
    return combined


def test_combined_is_the_least_of_the_splits() -> None:
    """The slowest holds all up."""
    assert multiplexer(a=30, b=10, c=20).watermark_ms == 10


def test_combined_moves_at_a_look_only() -> None:
    """What is emitted waits for it."""
    combined = multiplexer(a=10)
    combined.emit("a", 20)
    assert combined.watermark_ms == 10
    assert combined.combine()
    assert combined.watermark_ms == 20
    assert not combined.combine()


def test_split_without_a_watermark_holds_all_up() -> None:
    """It may still have the oldest record of all."""
    combined = WatermarkMultiplexer()
    combined.add("a")
    combined.add("b")
    combined.emit("a", 10)
    assert not combined.combine()
    assert combined.watermark_ms == NO_WATERMARK_MS


def test_idle_split_holds_nothing_up() -> None:
    """The least of the others passes."""
    combined = multiplexer(a=30, b=10)
    combined.mark_idle("b")
    assert combined.combine()
    assert (combined.watermark_ms, combined.idle, combined.is_idle("b")) == (30, False, True)


def test_all_idle_is_idle_and_keeps_the_watermark() -> None:
    """The multiplexer flushes nothing; the valve does."""
    combined = multiplexer(a=30, b=10)
    combined.mark_idle("a")
    combined.mark_idle("b")
    assert not combined.combine()
    assert (combined.watermark_ms, combined.idle) == (10, True)


def test_watermark_wakes_an_idle_split_and_takes_nothing_back() -> None:
    """A split that returns far behind is the least again, but the combined watermark stays."""
    combined = multiplexer(a=30, b=10)
    combined.mark_idle("b")
    combined.combine()
    combined.emit("b", 12)
    assert not combined.combine()
    assert (combined.watermark_ms, combined.is_idle("b"), combined.watermark_of("b")) == (30, False, 12)
    combined.emit("a", 40)
    assert not combined.combine()
    combined.emit("b", 35)
    assert combined.combine()
    assert combined.watermark_ms == 35


def test_watermark_of_a_split_never_goes_back() -> None:
    """A lesser one that is emitted is no news."""
    combined = multiplexer(a=30)
    combined.emit("a", 20)
    assert combined.watermark_of("a") == 30


def test_added_split_takes_nothing_back() -> None:
    """It holds the combined watermark where it is until it has caught up."""
    combined = multiplexer(a=30)
    combined.add("b")
    combined.emit("a", 50)
    assert not combined.combine()
    assert combined.watermark_ms == 30
    combined.emit("b", 40)
    assert combined.combine()
    assert combined.watermark_ms == 40


def test_removed_split_holds_nothing_up() -> None:
    """A finished one has no more records."""
    combined = multiplexer(a=30, b=10)
    combined.remove("b")
    assert "b" not in combined
    assert combined.combine()
    assert combined.watermark_ms == 30


def test_without_splits_nothing_changes() -> None:
    """Not even to idle: there is nothing to say it of."""
    combined = multiplexer(a=30)
    combined.remove("a")
    assert not combined.combine()
    assert (combined.watermark_ms, combined.idle) == (30, False)


def test_split_is_added_once() -> None:
    """A second one of that name would take its place unseen."""
    with pytest.raises(ValueError, match="'a' is there already"):
        multiplexer(a=1).add("a")


def test_end_of_input_is_the_greatest_watermark_and_not_idle() -> None:
    """Also where all were idle: whoever waits need wait no more."""
    combined = multiplexer(a=30)
    combined.mark_idle("a")
    combined.combine()
    combined.end()
    assert (combined.watermark_ms, combined.idle) == (END_OF_INPUT_MS, False)
    assert not combined.combine()
    assert (combined.watermark_ms, combined.idle) == (END_OF_INPUT_MS, False)
    assert (combined.watermark_of("a"), combined.is_idle("a")) == (30, True)


def test_drift_is_the_distance_to_the_furthest_active_split() -> None:
    """So the furthest has none, and one that is idle holds no other up to its own."""
    combined = multiplexer(a=30, b=10, c=99)
    combined.mark_idle("c")
    combined.combine()
    assert combined.drifts_ms() == {"a": 0, "b": 20, "c": -69}


def test_drift_is_unknown_without_a_watermark_or_an_active_split() -> None:
    """Distances from the beginning of time say nothing."""
    combined = multiplexer(a=30)
    combined.add("b")
    assert combined.drifts_ms() == {"a": 0, "b": None}
    combined.mark_idle("a")
    assert combined.drifts_ms() == {"a": None, "b": None}
