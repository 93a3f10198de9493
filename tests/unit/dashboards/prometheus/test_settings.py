"""Settings of the rules: durations, ranges, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dashboards.prometheus.settings import Duration, Range, Settings
from streamgauge.errors import SettingError


@pytest.mark.parametrize(
    ("text", "seconds", "shortest"),
    [
        ("15s", 15, "15s"),
        ("90s", 90, "1m30s"),
        ("10m", 600, "10m"),
        ("1h30m", 5400, "1h30m"),
        ("25h", 90_000, "1d1h"),
        ("2d3h4m5s", 183_845, "2d3h4m5s"),
        ("0s", 0, "0s"),
    ],
)
def test_durations_are_read_and_written_as_prometheus_does(text: str, seconds: int, shortest: str) -> None:
    """The text says the same, in the greatest units."""
    read = Duration.read(text)
    assert read == Duration(seconds)
    assert str(read) == shortest
    assert Duration.read(shortest) == read


@pytest.mark.parametrize("text", ["", "15", "s", "1.5m", "-1s", "1m 30s", "30s1m", "1w", "10ms", "15S"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Prometheus would take none of these, or what it takes is not meant."""
    with pytest.raises(SettingError, match="is no duration"):
        Duration.read(text)


def test_a_year_is_the_longest_duration() -> None:
    """Prometheus would refuse to load what is much longer."""
    assert str(Duration.read("365d")) == "365d"
    with pytest.raises(SettingError, match="'365d1s' is longer than a year"):
        Duration.read("365d1s")


@pytest.mark.parametrize(
    ("values", "inside", "outside", "words"),
    [
        (Range(0, 1), (0, 0.5), (-0.1, 1, math.nan), "0 or more, and below 1"),
        (Range(1, is_open=True), (1.1, 99), (1, 0, math.nan, math.inf), "above 1"),
    ],
    ids=["half-open", "open"],
)
def test_ranges_hold_what_they_say(
    values: Range, inside: tuple[float, ...], outside: tuple[float, ...], words: str
) -> None:
    """Bounds are as in the words; NaN is nowhere."""
    assert all(each in values for each in inside)
    assert not any(each in values for each in outside)
    assert str(values) == words


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"utilization": 1.0}, "--utilization 1: a number above 0, and below 1 is expected"),
        ({"late_ratio": math.nan}, "--late-ratio nan: a number 0 or more, and below 1 is expected"),
        ({"skew": 1.0}, "--skew 1: a number above 1 is expected"),
        ({"restarts": 1.0}, "--restarts 1: a number 2 or more is expected"),
        ({"events_dropped": -1.0}, "--events-dropped -1: a number 0 or more is expected"),
        ({"latency_p99": Duration(0)}, "--latency-p99 0s: 1s or more is expected"),
        ({"interval": Duration(0)}, "--interval 0s: 1s or more is expected"),
        ({"scrape_job": " "}, "--scrape-job is empty: some text is expected"),
        ({"window": Duration(119)}, "--window 1m59s: at an --interval of 30s a window of 2m or more is expected"),
        (
            {"interval": Duration(600), "window": Duration(7200)},
            "--restart-window 30m: at an --interval of 10m a window of 40m or more is expected",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    """The message names the setting, its value and what is expected."""
    with pytest.raises(SettingError) as refused:
        Settings(**given)
    assert str(refused.value) == message


def test_nothing_may_be_added_to_the_intervals_of_a_stall() -> None:
    """Of all spans, this one may be nothing."""
    assert str(Settings(stall_extra=Duration(0)).stall_extra) == "0s"
