"""The two clocks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_tells_unix_milliseconds() -> None:
    """Wall time lies between two readings of the machine's."""
    before = time.time_ns() // 1_000_000
    told = SystemClock().now_ms()
    assert before <= told <= time.time_ns() // 1_000_000


def test_the_system_clock_tells_the_monotonic_reading() -> None:
    """Nanoseconds of `time.monotonic_ns`, which never go back."""
    before = time.monotonic_ns()
    told = SystemClock().monotonic_ns()
    assert before <= told <= time.monotonic_ns()


def test_a_manual_clock_stands_still() -> None:
    """It moves only when told to."""
    clock = ManualClock(5)
    assert [(clock.now_ms(), clock.monotonic_ns()) for _ in range(3)] == [(5, 0)] * 3


@given(
    start_ms=st.integers(-(2**62), 2**62),
    moves=st.lists(st.tuples(st.booleans(), st.integers(0, 2**40) | st.integers(0, 3))),
    back=st.booleans(),
)
def test_advancing_moves_both_readings_and_stepping_only_wall_time(
    start_ms: int, moves: list[tuple[bool, int]], back: bool
) -> None:
    """Wall time is the start and every move; the monotonic reading is the sum of the advances."""
    clock = ManualClock(start_ms)
    wall_ms, elapsed_ms = start_ms, 0
    for advance, ms in moves:
        if advance:
            clock.advance(ms)
            elapsed_ms += ms
            wall_ms += ms
        else:
            step_ms = -ms if back else ms
            clock.step_wall(step_ms)
            wall_ms += step_ms
        assert (clock.now_ms(), clock.monotonic_ns()) == (wall_ms, elapsed_ms * 1_000_000)


def test_a_manual_clock_cannot_be_advanced_backwards() -> None:
    """The message tells the value and the way to do it; nothing has moved."""
    clock = ManualClock(10)
    with pytest.raises(ValueError, match=r"advanced by -1 ms; step_wall\(\) sets wall time back"):
        clock.advance(-1)
    assert (clock.now_ms(), clock.monotonic_ns()) == (10, 0)


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()], ids=["system", "manual"])
def test_both_are_clocks(clock: Clock) -> None:
    """Either may be injected where a Clock is asked for: both readings are integers."""
    assert isinstance(clock.now_ms(), int)
    assert isinstance(clock.monotonic_ns(), int)
