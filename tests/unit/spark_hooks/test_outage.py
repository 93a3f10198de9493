"""What the log says of a collector that does not take pushes."""

from __future__ import annotations

import logging

import pytest

from spark_hooks.outage import QUIET_S, REMIND_S, Outage
from streamgauge.clock import ManualClock


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def outage(manual_clock: ManualClock) -> Outage:
    return Outage("there", manual_clock)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert all(record.levelno == logging.WARNING and record.exc_info is None for record in caplog.records)
    return [message.removeprefix("streamgauge ") for message in caplog.messages]


def begun(words: str) -> str:
    return f"cannot push to there ({words}): the job runs on, its figures follow once it is back"


def test_it_is_one_line_whatever_the_reasons(
    outage: Outage, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The end counts by kind, and says how long it took."""
    for kind, words in (("unreachable", "down"), ("refused", "HTTP 401"), ("unreachable", "down")):
        outage.fail(kind, words)
        manual_clock.advance(1500)
    outage.work()
    outage.work()
    assert lines(caplog) == [
        begun("down"),
        "reaches there again: 3 pushes were not taken in 4 s (2 unreachable, 1 refused)",
    ]


def test_a_long_one_is_recalled_with_counts_and_the_latest_reason(
    outage: Outage, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever looks at night sees that it lasts, and why it does now."""
    for _ in range(2 * REMIND_S // 100):
        manual_clock.advance(100_000)
        outage.fail("unreachable", "down")
    outage.fail("refused", "HTTP 401")
    manual_clock.advance(100_000)
    outage.fail("refused", "HTTP 401")
    assert lines(caplog) == [
        begun("down"),
        "still cannot push to there (down): 37 pushes were not taken in 3600 s (37 unreachable)",
        "still cannot push to there (HTTP 401): 74 pushes were not taken in 7200 s (72 unreachable, 2 refused)",
    ]


def test_one_that_comes_and_goes_does_not_fill_the_log(
    outage: Outage, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """After it was told to be over, it is counted for QUIET_S, and told again with all of the count."""
    for _ in range(QUIET_S + 1):
        outage.fail("unreachable", "down")
        outage.work()
        manual_clock.advance(1000)
    assert lines(caplog) == [
        begun("down"),
        "reaches there again: 1 push was not taken in 0 s (1 unreachable)",
        begun("down"),
        f"reaches there again: {QUIET_S} pushes were not taken in {QUIET_S - 1} s ({QUIET_S} unreachable)",
    ]


def test_one_that_begins_in_the_quiet_and_lasts_is_told(
    outage: Outage, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Quiet delays the line; it does not lose it."""
    outage.fail("unreachable", "down")
    outage.work()
    manual_clock.advance(1000 * QUIET_S - 1)
    outage.fail("refused", "HTTP 401")
    assert len(lines(caplog)) == 2
    manual_clock.advance(1)
    outage.fail("refused", "HTTP 401")
    assert lines(caplog)[2:] == [begun("HTTP 401")]


def test_leaving_tells_what_the_collector_may_lack(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    """Once and for all: a push that ends afterwards says nothing any more."""
    outage.fail("overloaded", "")
    outage.close(answered=False)
    outage.fail("unreachable", "down")
    outage.work()
    assert lines(caplog) == [
        begun("overloaded"),
        "leaves before there is back (overloaded): 1 push was not taken in 0 s (1 overloaded)",
    ]


def test_leaving_tells_of_a_push_that_was_never_answered(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing had failed yet, but nothing is known to have arrived."""
    outage.close(answered=False)
    assert lines(caplog) == ["leaves before there has answered: it may lack the last figures"]


def test_leaving_in_health_is_silent(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    """Also after an outage that is over."""
    outage.fail("unreachable", "down")
    outage.work()
    caplog.clear()
    outage.close(answered=True)
    assert lines(caplog) == []


def test_a_reason_is_one_line(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    """Some exceptions tell theirs in many."""
    outage.fail("refused", "ValueError: one\n  two\r\n")
    assert lines(caplog) == [begun("ValueError: one two")]
