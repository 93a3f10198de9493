"""Active and idle time of splits, as Flink's TimerGauge counts it."""

from __future__ import annotations

from spark_hooks.split_times import SplitTime, SplitTimes


def test_nothing_is_told_before_the_first_tick() -> None:
    """Flink's gauge reads 0 then; what has not been measured is absent here."""
    times = SplitTimes()
    times.turn(0, [True])
    assert times.told() == []


def test_share_is_of_the_time_that_has_passed() -> None:
    """It does not climb for a minute as a rate does."""
    times = SplitTimes()
    times.turn(0, [True, False])
    times.tick(5000)
    assert times.told() == [SplitTime(1000, 5000, 0), SplitTime(0, 0, 5000)]
    times.turn(5000, [False, False])
    times.tick(10_000)
    assert times.told() == [SplitTime(500, 5000, 5000), SplitTime(0, 0, 10_000)]


def test_share_is_of_the_last_minute() -> None:
    """Twelve spans of 5 s; accumulated times are of the whole run."""
    times = SplitTimes()
    times.turn(0, [True])
    times.tick(0)
    for tick in range(1, 14):
        times.tick(5000 * tick)
        if tick == 1:
            times.turn(5000, [False])
    assert times.told() == [SplitTime(0, 5000, 60_000)]
    times.turn(65_000, [True])
    for tick in range(14, 17):
        times.tick(5000 * tick)
    assert times.told() == [SplitTime(250, 20_000, 60_000)]


def test_second_look_at_the_same_moment_is_none() -> None:
    """It would push an older one out, and make the minute shorter."""
    times = SplitTimes()
    times.turn(0, [True])
    times.tick(5000)
    times.turn(5000, [False])
    for _ in range(20):
        times.tick(10_000)
    assert times.told() == [SplitTime(500, 5000, 5000)]


def test_split_that_comes_later_has_its_own_beginning() -> None:
    """Its share is of the time that it has been there; at its first moment there is none."""
    times = SplitTimes()
    times.turn(0, [False])
    times.turn(4000, [False, True])
    times.tick(4000)
    assert times.told() == [SplitTime(0, 0, 4000), SplitTime(None, 0, 0)]
    times.tick(5000)
    assert times.told() == [SplitTime(0, 0, 5000), SplitTime(1000, 1000, 0)]


def test_clock_that_goes_back_stands_still() -> None:
    """A batch's end may be told after a tick that came later than it."""
    times = SplitTimes()
    times.turn(0, [False])
    times.tick(5000)
    times.turn(4900, [True])
    times.tick(4950)
    times.tick(6000)
    assert times.told() == [SplitTime(167, 1000, 5000)]
