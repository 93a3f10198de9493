"""Flink's valve, rule by rule."""

from __future__ import annotations

import pytest

from streamgauge.valve import StatusWatermarkValve
from streamgauge.watermarks import NO_WATERMARK_MS


def valve(*watermarks_ms: int) -> StatusWatermarkValve:
    """Channels that have had these watermarks, in their order."""
    made = StatusWatermarkValve(len(watermarks_ms))
    for channel, watermark_ms in enumerate(watermarks_ms):
        made.input_watermark(channel, watermark_ms)
    return made


def turn_idle(of: StatusWatermarkValve, *channels: int) -> bool:
    return [of.input_status(channel, idle=True) for channel in channels][-1]


def test_nothing_passes_before_every_channel_has_a_watermark() -> None:
    """Channels begin active, at the least watermark."""
    made = StatusWatermarkValve(2)
    assert not made.input_watermark(0, 10)
    assert made.watermark_ms == NO_WATERMARK_MS
    assert made.input_watermark(1, 5)
    assert (made.watermark_ms, made.idle) == (5, False)


def test_least_of_the_channels_passes() -> None:
    """When it grows, and not when another one does."""
    made = valve(10, 5)
    assert not made.input_watermark(0, 20)
    assert made.input_watermark(1, 15)
    assert made.watermark_ms == 15


def test_watermark_that_does_not_grow_is_ignored() -> None:
    """The greatest one of a channel counts."""
    made = valve(10)
    assert not made.input_watermark(0, 10)
    assert not made.input_watermark(0, 7)
    assert made.watermark_ms == 10
    other = valve(5, 9)
    other.input_watermark(1, 7)
    other.input_watermark(0, 9)
    assert other.watermark_ms == 9


def test_watermark_that_does_not_grow_puts_nothing_out_that_waits() -> None:
    """A channel that turns active ahead of the output passes with its next watermark, and with no repetition."""
    made = valve(20, 25, 10)
    for channel in (2, 1):
        made.input_status(channel, idle=True)
    made.input_status(2, idle=False)
    made.input_status(0, idle=True)
    made.input_status(2, idle=True)
    assert (made.watermark_ms, made.idle) == (20, True)
    made.input_status(1, idle=False)
    assert not made.input_watermark(1, 25)
    assert made.watermark_ms == 20
    assert made.input_watermark(1, 26)


def test_watermark_on_an_idle_channel_is_ignored() -> None:
    """It must turn active first."""
    made = valve(10, 20)
    turn_idle(made, 0)
    assert not made.input_watermark(0, 99)
    made.input_status(0, idle=False)
    made.input_watermark(1, 60)
    assert made.watermark_ms == 60


def test_idle_channel_that_held_the_others_up_lets_them_pass() -> None:
    """Its watermark was the last output."""
    made = valve(10, 20, 30)
    assert turn_idle(made, 0)
    assert (made.watermark_ms, made.idle) == (20, False)


def test_idle_channel_that_held_nobody_up_changes_nothing() -> None:
    """The least is still there."""
    made = valve(10, 20)
    assert not turn_idle(made, 1)
    assert (made.watermark_ms, made.idle) == (10, False)


def test_last_channel_to_turn_idle_flushes_the_greatest_watermark() -> None:
    """Nothing more can come, so what the idle ones were told counts."""
    made = valve(10, 40, 20)
    turn_idle(made, 1)
    assert made.watermark_ms == 10
    assert turn_idle(made, 0)
    assert made.watermark_ms == 20
    assert turn_idle(made, 2)
    assert (made.watermark_ms, made.idle) == (40, True)


def test_last_channel_to_turn_idle_behind_the_output_flushes_nothing() -> None:
    """Only the one that held the output up does; this one was not aligned."""
    made = valve(10, 40, 20)
    turn_idle(made, 1)
    turn_idle(made, 0)
    made.input_status(0, idle=False)
    made.input_status(2, idle=True)
    assert made.watermark_ms == 20
    assert not turn_idle(made, 0)
    assert (made.watermark_ms, made.idle) == (20, True)


def test_channel_that_turns_active_behind_the_output_is_not_waited_for() -> None:
    """It is not aligned until it has caught up; then it counts again."""
    made = valve(10, 20)
    turn_idle(made, 0)
    made.input_status(0, idle=False)
    assert not made.input_watermark(0, 15)
    assert made.input_watermark(1, 30)
    assert made.watermark_ms == 30
    assert not made.input_watermark(0, 30)
    assert not made.input_watermark(1, 50)
    assert made.watermark_ms == 30
    assert made.input_watermark(0, 40)
    assert made.watermark_ms == 40


def test_channel_that_turns_active_at_the_output_or_past_it_is_aligned_at_once() -> None:
    """It is waited for, and puts nothing out by itself."""
    made = valve(10, 20, 10)
    turn_idle(made, 1)
    assert not made.input_status(1, idle=False)
    made.input_watermark(0, 50)
    made.input_watermark(2, 50)
    assert made.watermark_ms == 20


def test_valve_is_active_as_soon_as_one_channel_is() -> None:
    """Its output stays where it was."""
    made = valve(10, 20)
    turn_idle(made, 0, 1)
    assert (made.watermark_ms, made.idle) == (20, True)
    made.input_status(0, idle=False)
    assert (made.watermark_ms, made.idle) == (20, False)


def test_status_that_a_channel_has_already_changes_nothing() -> None:
    """A second idle is no news, nor is a second active."""
    made = valve(10, 20)
    assert not made.input_status(0, idle=False)
    assert turn_idle(made, 0)
    assert not turn_idle(made, 0)
    assert made.watermark_ms == 20


def test_added_channel_takes_nothing_back_and_is_waited_for_once_it_has_caught_up() -> None:
    """It begins as a channel that turns active without a watermark."""
    made = valve(10)
    assert made.add() == 1
    assert made.input_watermark(0, 20)
    assert not made.input_watermark(1, 25)
    assert not made.input_watermark(1, 26)
    assert made.input_watermark(0, 30)
    assert made.watermark_ms == 26


def test_channel_added_before_any_output_is_waited_for() -> None:
    """It is not behind."""
    made = StatusWatermarkValve(1)
    made.add()
    assert not made.input_watermark(0, 10)
    assert made.input_watermark(1, 5)


def test_channel_added_to_an_idle_valve_makes_it_active() -> None:
    """At least one channel is."""
    made = valve(10)
    turn_idle(made, 0)
    made.add()
    assert not made.idle


def test_unknown_channel_is_refused() -> None:
    """There is nothing to say it of."""
    with pytest.raises(IndexError):
        StatusWatermarkValve(1).input_watermark(1, 5)
