"""Durations as users write them in a call: text as Spark's `withWatermark` takes it, or a `timedelta`."""

from __future__ import annotations

import re
from datetime import timedelta

from streamgauge.errors import TapError

_UNITS = {
    "week": "weeks",
    "day": "days",
    "hour": "hours",
    "minute": "minutes",
    "second": "seconds",
    "millisecond": "milliseconds",
    "microsecond": "microseconds",
}
_PART = re.compile(rf"\s*([+-]?)\s*(\d{{1,18}})(\.\d{{1,9}})?\s+({'|'.join(_UNITS)})s?\b", re.ASCII | re.IGNORECASE)
_LONGEST = timedelta(days=36_500)


def duration_ms(argument: str, value: object) -> int:
    """
    Return a duration in whole milliseconds; what is less is cut off.

    Args:
        argument: The parameter's name, for the message.
        value: A `timedelta`, or text: '10 seconds', '1 minute 30 seconds', 'interval 2 hours'. A month has no fixed
            length, and a bare number no unit. Only seconds may have a fraction, as in Spark.

    Returns:
        0 or more, a hundred years at most.

    Raises:
        TapError: it is none, negative, or too long.

    Any thread.
    """
    try:
        duration = value if isinstance(value, timedelta) else _parse(value)
    except OverflowError:
        duration = timedelta.max
    if duration is None:
        raise TapError(
            f"tap({argument}={value!r}): expected a duration: text such as '10 seconds' or '1 minute 30 seconds', of "
            "weeks to microseconds, or a timedelta"
        )
    if duration < timedelta(0):
        raise TapError(f"tap({argument}={value!r}): a duration must not be negative")
    if duration > _LONGEST:
        raise TapError(f"tap({argument}={value!r}): a duration must not be longer than {_LONGEST.days} days")
    return duration // timedelta(milliseconds=1)


def _parse(value: object) -> timedelta | None:
    """Return what a text says; None where it says no duration."""
    if not isinstance(value, str):
        return None
    text = re.sub(r"^\s*interval\s", "", value, flags=re.IGNORECASE)
    total, end = timedelta(0), 0
    while found := _PART.match(text, end):
        sign, whole, fraction, unit = found[1], found[2], found[3] or "", _UNITS[found[4].lower()]
        if fraction and unit != "seconds":
            return None
        # A fraction of a second in whole microseconds: a float would be off by one of them now and then.
        part = timedelta(**{unit: int(whole)}) + timedelta(microseconds=int(f"{fraction[1:]:0<6}"[:6]))
        total += -part if sign == "-" else part
        end = found.end()
    return total if end and not text[end:].strip() else None
