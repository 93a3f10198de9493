"""Numbers as Java writes them: what `Double.toString` and Jackson make of a value."""

from __future__ import annotations

import math
from typing import Literal, cast

import msgspec

from streamgauge.wire import Scalar

Double = float | Literal["NaN", "Infinity", "-Infinity"]
"""A double in a JSON body: what is not finite is quoted."""

_PLAIN_FROM = 1e-3
_PLAIN_BELOW = 1e7


def double(value: float) -> str:
    """
    Return `value` as `Double.toString` does.

    The shortest digits that read back as the same value, at least one after the point; plain for
    1e-3 ≤ |value| < 1e7, else with an exponent: '1.0E10', '1.0E-4'. 'NaN', 'Infinity', '-Infinity', '-0.0'.

    Source: java.lang.Double.toString, JDK 19 and later.
    """
    if _PLAIN_FROM <= value < _PLAIN_BELOW or value == 0 or _PLAIN_FROM <= -value < _PLAIN_BELOW:
        return repr(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if value < 0 else ""
    digits, exponent = _scientific(abs(value))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _scientific(value: float) -> tuple[str, int]:
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1
    if whole == "0":
        power -= len(fraction) - len(fraction.lstrip("0")) + 1
    digits = digits.rstrip("0")
    if len(digits) == 1:
        # Java looks for the nearest of two digits where one would do: 4.9E-324, not 5.0E-324.
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        return mantissa.replace(".", ""), int(exponent)
    return digits, power


def text(value: Scalar) -> str:
    """Return a metric's value as Flink's REST tells it: `toString` of the Java value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double(value)
    return str(value)


def json_double(value: float) -> Double:
    """Return `value` as Jackson writes a double into JSON; what is not finite is quoted."""
    written = double(value)
    raw = msgspec.Raw((written if math.isfinite(value) else f'"{written}"').encode())
    # Raw is how the encoder is told the digits; to whoever reads the body it is a number or a word.
    return cast(Double, raw)
