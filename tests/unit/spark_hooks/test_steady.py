"""Wall times on a timeline that no setting of the clock moves."""

from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.steady import SteadyTime

HOUR_MS = 3_600_000
FIVE_TO_NOON = 1_795_000_000_000 - 300_000
NS = 1_000_000


def test_wall_times_are_steady_until_the_clocks_were_looked_at() -> None:
    """Nothing is known of the monotonic clock before."""
    time = SteadyTime()
    assert (time.of(FIVE_TO_NOON), time.now_ms, time.shift_ms) == (FIVE_TO_NOON, None, 0)


def test_steady_time_begins_as_wall_time() -> None:
    """Where nobody sets the clock the two are one."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 7 * NS)
    time.look(FIVE_TO_NOON + 1_000, 1_007 * NS)
    assert (time.of(FIVE_TO_NOON + 900), time.now_ms, time.shift_ms) == (FIVE_TO_NOON + 900, FIVE_TO_NOON + 1_000, 0)


def test_a_clock_set_back_an_hour_moves_nothing() -> None:
    """What was told before the step and after it stand as far apart as they happened."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 0)
    time.look(FIVE_TO_NOON + 10_000 - HOUR_MS, 10_000 * NS)
    launched, finished = FIVE_TO_NOON + 2_000, FIVE_TO_NOON + 9_000 - HOUR_MS
    assert (time.of(launched), time.of(finished)) == (FIVE_TO_NOON + 2_000, FIVE_TO_NOON + 9_000)
    assert (time.now_ms, time.shift_ms) == (FIVE_TO_NOON + 10_000, HOUR_MS)


def test_a_clock_set_forward_an_hour_moves_nothing() -> None:
    """A time that would lie in the future is of the span after the step."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 0)
    time.look(FIVE_TO_NOON + 10_000 + HOUR_MS, 10_000 * NS)
    launched, finished = FIVE_TO_NOON + 2_000, FIVE_TO_NOON + 9_000 + HOUR_MS
    assert (time.of(launched), time.of(finished)) == (FIVE_TO_NOON + 2_000, FIVE_TO_NOON + 9_000)


def test_drift_is_followed() -> None:
    """A clock that is slewed runs a little fast or slow for hours; that adds up, but is no step."""
    time = SteadyTime()
    for second in range(3_600):
        time.look(FIVE_TO_NOON + second * 1_001, second * 1_000 * NS)
    assert abs(time.of(FIVE_TO_NOON + 3_599 * 1_001) - (FIVE_TO_NOON + 3_599_000)) <= 1


def test_clocks_that_are_read_to_the_millisecond_do_not_part() -> None:
    """Where the one ticks just before a look and the other just after it, durations stay what Spark says."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 0)
    time.look(FIVE_TO_NOON + 1_000, 1_001 * NS)
    assert time.of(FIVE_TO_NOON + 900) == FIVE_TO_NOON + 900


def test_a_time_that_no_span_holds_is_of_the_latest() -> None:
    """A clock of another machine may run ahead."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 0)
    time.look(FIVE_TO_NOON + 1_000 - HOUR_MS, 1_000 * NS)
    assert time.of(FIVE_TO_NOON + 2 * HOUR_MS) == FIVE_TO_NOON + 3 * HOUR_MS


def test_what_is_told_late_is_of_the_span_that_it_lies_in() -> None:
    """Spark tells of a trigger when its batch is done, and meanwhile the clock may have been set by less than that."""
    time = SteadyTime()
    for second in range(30):
        time.look(FIVE_TO_NOON + second * 1_000, second * 1_000 * NS)
    for second in range(30, 61):
        time.look(FIVE_TO_NOON + second * 1_000 - 10_000, second * 1_000 * NS)
    assert time.of(FIVE_TO_NOON + 1_000) == FIVE_TO_NOON + 1_000
    assert time.of(FIVE_TO_NOON + 49_500) == FIVE_TO_NOON + 59_500


def test_a_setting_of_the_clock_is_over_some_day() -> None:
    """Long after a clock was set forward, what happened a minute ago did so a minute ago."""
    time = SteadyTime()
    time.look(FIVE_TO_NOON, 0)
    for second in range(1, 1_000):
        time.look(FIVE_TO_NOON + second * 1_000 + 30_000, second * 1_000 * NS)
    assert time.of(FIVE_TO_NOON + 999_000 + 30_000 - 60_000) == FIVE_TO_NOON + 999_000 - 60_000


# Where a step is shorter than the time between two looks nobody can tell its two sides apart.
STEPS = st.integers(-3, 3).map(lambda hours: hours * HOUR_MS)


@given(st.lists(st.tuples(st.integers(1, 5_000), STEPS), max_size=7), st.data())
def test_what_happens_stays_where_it_happened(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    """However the clock is set between two looks, of an event that is told at the next one."""
    time, steady, offset = SteadyTime(), FIVE_TO_NOON, 0
    time.look(steady, 0)
    for passed, step in steps:
        stepped = data.draw(st.integers(steady, steady + passed))
        before = data.draw(st.integers(steady, stepped))
        after = data.draw(st.integers(stepped, steady + passed))
        steady += passed
        time.look(steady + offset + step, (steady - FIVE_TO_NOON) * NS)
        assert time.now_ms == steady
        assert (time.of(before + offset), time.of(after + offset + step)) == (before, after)
        offset += step
