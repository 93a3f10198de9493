"""Whether a query keeps up, against sources that are known to the row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.keep_up import BATCHES, WINDOW_MS, KeepUp
from streamgauge import names

RATES = (names.KEEP_UP_RATIO, names.BACKLOG_ROWS_TREND, names.BACKLOG_TIME, names.BACKLOG_TIME_TREND)


@dataclass(frozen=True)
class Ran:
    """One micro-batch: when, what it read, and what its source had beyond that."""

    begin_ms: int
    end_ms: int
    rows: int
    backlog: int | None
    caught_up: bool = False


def kept(*batches: Ran) -> KeepUp:
    found = KeepUp()
    for each in batches:
        found.complete(each.begin_ms, each.end_ms, each.rows, each.backlog, each.caught_up)
    return found


def metrics(*batches: Ran, after_ms: int = 0) -> dict[str, object]:
    return kept(*batches).metrics(batches[-1].end_ms + after_ms, running=False)


def test_query_that_is_too_slow() -> None:
    """It takes 100 rows a second, 250 arrive; after 20 s 3,000 more are left, 30 s of work, which grow by 1.5 s a s."""
    slow = [Ran(second * 1000, second * 1000 + 1000, 100, 150 * second) for second in range(21)]
    assert metrics(*slow) == {
        names.BACKLOG_ROWS: 3000,
        names.BACKLOG_ROWS_TREND: 150.0,
        names.KEEP_UP_RATIO: pytest.approx(100 / 250),
        names.BACKLOG_TIME: pytest.approx(30_000),
        names.BACKLOG_TIME_TREND: pytest.approx(1500),
    }


def test_query_that_has_time_left() -> None:
    """Batches of 2 s every 10 s that take all: it could process five times what arrives."""
    easy = [Ran(slot * 10_000, slot * 10_000 + 2000, 400, 0, True) for slot in range(4)]
    assert metrics(*easy) == {
        names.BACKLOG_ROWS: 0,
        names.BACKLOG_ROWS_TREND: 0.0,
        names.KEEP_UP_RATIO: pytest.approx(5.0),
        names.BACKLOG_TIME: 0.0,
        names.BACKLOG_TIME_TREND: 0.0,
    }


def test_query_that_works_a_backlog_off() -> None:
    """The trends are negative, and what it can is more than what comes."""
    found = metrics(*(Ran(second * 1000, second * 1000 + 500, 200, 1000 - 100 * second) for second in range(5)))
    assert found[names.BACKLOG_ROWS_TREND] == -100.0
    assert found[names.KEEP_UP_RATIO] == pytest.approx(400 / 100)
    assert found[names.BACKLOG_TIME] == pytest.approx(600 / 400 * 1000)


def test_source_that_counts_by_something_else_is_judged_while_it_is_read_to_its_end() -> None:
    """What arrived is what was read then; how many rows are left nobody could say."""
    seconds = [Ran(slot * 1000, slot * 1000 + 250, 10, None, caught_up=True) for slot in range(4)]
    assert metrics(*seconds) == {names.KEEP_UP_RATIO: pytest.approx(4.0)}


def test_nothing_is_told_of_a_backlog_that_is_not_known() -> None:
    """Neither that there is none, nor that the query keeps up."""
    assert metrics(*(Ran(slot * 1000, slot * 1000 + 250, 10, None) for slot in range(4))) == {}


def test_one_batch_tells_its_backlog_alone() -> None:
    """A rate needs two."""
    assert metrics(Ran(0, 500, 10, 7)) == {names.BACKLOG_ROWS: 7}
    assert KeepUp().metrics(0, running=False) == {}


def test_batches_that_begin_at_once_tell_no_rate() -> None:
    """No time went by between them."""
    assert metrics(Ran(5, 5, 10, 7), Ran(5, 5, 10, 8)) == {names.BACKLOG_ROWS: 8}


def test_nothing_arrived() -> None:
    """The ratio has no meaning then; the backlog still has a trend."""
    found = metrics(Ran(0, 500, 10, 100), Ran(1000, 1500, 10, 90))
    assert names.KEEP_UP_RATIO not in found
    assert found[names.BACKLOG_ROWS_TREND] == -10.0


def test_rows_that_are_gone_have_not_arrived() -> None:
    """A source may drop what is too old before it is read: then the backlog shrinks by more than was read."""
    assert names.KEEP_UP_RATIO not in metrics(Ran(0, 500, 10, 100), Ran(1000, 1500, 10, 50))


def test_nothing_was_processed() -> None:
    """A backlog that nothing works off has no end."""
    found = metrics(Ran(0, 500, 0, 100), Ran(1000, 1500, 0, 200))
    assert found == {names.BACKLOG_ROWS: 200, names.BACKLOG_ROWS_TREND: 100.0, names.KEEP_UP_RATIO: 0.0}


def test_batches_of_the_last_minute_count() -> None:
    """A burst that is older than 60 s is forgotten."""
    burst = [Ran(0, 1000, 9000, 0), Ran(1000, 2000, 9000, 9000)]
    calm = [Ran(slot * 10_000, slot * 10_000 + 1000, 100, 0) for slot in range(2, 9)]
    assert metrics(*burst, *calm) == metrics(*calm)


def test_last_two_count_however_far_apart() -> None:
    """A trigger may be longer than a minute: 600 rows in 5 min, of which each needs a tenth of a second."""
    found = metrics(Ran(0, 60_000, 600, 0), Ran(300_000, 360_000, 600, 0))
    assert found[names.KEEP_UP_RATIO] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("apart_ms", "after_ms", "known"),
    [(1000, WINDOW_MS, True), (1000, WINDOW_MS + 1, False), (300_000, 600_000, True), (300_000, 600_001, False)],
    ids=["a minute", "more", "long trigger", "missed twice"],
)
def test_rates_are_unknown_after_a_pause(apart_ms: int, after_ms: int, known: bool) -> None:
    """What has come since nobody knows; what was left at the last batch is told still."""
    batches = [Ran(0, 100, 10, 0), Ran(apart_ms, apart_ms + 100, 10, 4)]
    found = metrics(*batches, after_ms=after_ms)
    assert {name: name in found for name in RATES} == dict.fromkeys(RATES, known)
    assert found[names.BACKLOG_ROWS] == 4


def test_long_batch_is_no_pause() -> None:
    """While one is under way the ones before it are the latest that is known."""
    found = kept(Ran(0, 100, 10, 0), Ran(1000, 1100, 10, 4)).metrics(10**7, running=True)
    assert found.keys() == {names.BACKLOG_ROWS, *RATES}


def test_backlog_that_is_known_at_last_has_a_trend_once_it_is_known_at_both_ends() -> None:
    """A trend from nothing would be the backlog itself."""
    unknown = [Ran(0, 100, 10, None), Ran(1000, 1100, 10, 5)]
    assert names.BACKLOG_ROWS_TREND not in metrics(*unknown)
    assert names.KEEP_UP_RATIO not in metrics(*unknown)


def test_what_is_held_is_bounded() -> None:
    """A query with more batches a minute is judged by the latest of them."""
    found = kept(*(Ran(ms, ms + 1, 1, ms) for ms in range(3 * BATCHES)))
    assert len(found._batches) == BATCHES
    assert found.metrics(3 * BATCHES, running=False)[names.BACKLOG_ROWS_TREND] == 1000.0


SECONDS = st.integers(0, 200)
HISTORY = st.lists(st.tuples(SECONDS, st.integers(1, 40), st.integers(0, 500), st.integers(0, 500)), max_size=25)
"""Of each batch: pause before it, its duration, rows that arrived since the one before, rows that it takes at most."""


@given(HISTORY, st.integers(0, 300))
def test_figures_are_those_of_a_source_that_is_known_to_the_row(
    history: list[tuple[int, int, int, int]], after: int
) -> None:
    """Against a slow model that goes over all batches, across pauses of any length."""
    batches: list[Ran] = []
    now = there = 0
    arrivals: list[int] = []
    for pause, lasts, arrived, most in history:
        now += pause * 1000
        arrivals.append(arrived)
        there += arrived
        taken = min(there, most)
        there -= taken
        batches.append(Ran(now, now + lasts * 1000, taken, there, there == 0))
        now += lasts * 1000
    if not batches:
        return
    now += after * 1000
    found = kept(*batches).metrics(now, running=False)
    inside = [each for each in batches if each.begin_ms >= batches[-1].begin_ms - WINDOW_MS]
    inside = inside if len(inside) > 1 else batches[-2:]
    elapsed_ms = inside[-1].begin_ms - inside[0].begin_ms
    expected: dict[str, float] = {names.BACKLOG_ROWS: there}
    if len(inside) > 1 and now - batches[-1].end_ms <= max(WINDOW_MS, 2 * elapsed_ms):
        later = len(inside) - 1
        came, read = sum(arrivals[-later:]), sum(each.rows for each in inside[1:])
        busy_ms = sum(each.end_ms - each.begin_ms for each in inside[1:])
        expected[names.BACKLOG_ROWS_TREND] = 1000 * (came - read) / elapsed_ms
        if came > 0:
            expected[names.KEEP_UP_RATIO] = (read / busy_ms) / (came / elapsed_ms)
        if there == 0 or read:
            expected[names.BACKLOG_TIME] = there * busy_ms / read if there else 0.0
    found.pop(names.BACKLOG_TIME_TREND, None)
    assert found == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 100)), min_size=2, max_size=20), st.integers(1, 100))
def test_backlog_of_even_work_grows_in_time_as_in_rows(steps: list[tuple[int, int]], rate: int) -> None:
    """Where every row takes as long, a backlog's time is its rows over that rate, and so are the trends."""
    begins = list(accumulate(each for each, _ in steps))
    batches = [
        Ran(begin * 1000, begin * 1000 + 1000, rate, backlog)
        for begin, (_, backlog) in zip(begins, steps, strict=True)
        if begin <= 60
    ]
    if len(batches) < 3:
        return
    found = metrics(*batches)
    assert found[names.BACKLOG_TIME] == pytest.approx(batches[-1].backlog / rate * 1000)
    first = batches[0] if batches[0].backlog == 0 else batches[1]
    grown = (batches[-1].backlog - first.backlog) / rate * 1000
    expected = grown * 1000 / (batches[-1].begin_ms - first.begin_ms)
    assert found[names.BACKLOG_TIME_TREND] == pytest.approx(expected)


def test_time_of_a_backlog_has_a_trend_from_the_second_batch_on() -> None:
    """By what rate the first one is to be worked off nothing tells; of no backlog every rate tells."""
    assert names.BACKLOG_TIME_TREND not in metrics(Ran(0, 500, 10, 5), Ran(1000, 1500, 10, 10))
    assert metrics(Ran(0, 500, 10, 0), Ran(1000, 1500, 10, 10))[names.BACKLOG_TIME_TREND] == pytest.approx(500)
