"""Durations as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spark_hooks.durations import duration_ms
from streamgauge.errors import TapError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("10 seconds", 10_000),
        ("1 second", 1_000),
        ("0 seconds", 0),
        ("  2   Minutes ", 120_000),
        ("interval 2 hours", 7_200_000),
        ("INTERVAL 1 week 1 day", 8 * 86_400_000),
        ("1 minute 30 seconds", 90_000),
        ("1 minute -30 seconds", 30_000),
        ("+1.5 seconds", 1_500),
        ("0.001 seconds", 1),
        ("0.0019999 seconds", 1),
        ("200 milliseconds", 200),
        ("1999 microseconds", 1),
        (timedelta(seconds=1.25), 1_250),
        (timedelta(0), 0),
        (timedelta(days=36_500), 36_500 * 86_400_000),
    ],
)
def test_text_and_timedelta_become_milliseconds(value: object, expected: int) -> None:
    """As Spark's `withWatermark` reads them; what is less than a millisecond is cut off."""
    assert duration_ms("idleness", value) == expected


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "expected a duration"),
        ("interval", "expected a duration"),
        ("10", "expected a duration"),
        ("10seconds", "expected a duration"),
        ("seconds", "expected a duration"),
        ("10 secondss", "expected a duration"),
        ("10 seconds and more", "expected a duration"),
        ("1 month", "expected a duration"),
        ("1.5 minutes", "expected a duration"),
        ("٣ seconds", "expected a duration"),
        (10, "expected a duration"),
        (1.5, "expected a duration"),
        (True, "expected a duration"),
        (b"10 seconds", "expected a duration"),
        ("-10 seconds", "must not be negative"),
        ("1 second -2 seconds", "must not be negative"),
        (timedelta(microseconds=-1), "must not be negative"),
        ("36501 days", "must not be longer"),
        ("999999999999999999 weeks", "must not be longer"),
        (timedelta.max, "must not be longer"),
    ],
)
def test_what_is_no_duration_is_refused(value: object, rule: str) -> None:
    """The message names the argument, the value and the rule; a bare number has no unit, a month no length."""
    with pytest.raises(TapError, match=rule) as caught:
        duration_ms("max_out_of_orderness", value)
    assert f"tap(max_out_of_orderness={value!r})" in str(caught.value)
