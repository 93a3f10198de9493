"""Numbers as Java writes them."""

from __future__ import annotations

import json
import math
import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.flink.numbers import double, json_double, text

JAVA = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+(E-?[1-9][0-9]*)?")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1000.4666666666667, "1000.4666666666667"),
        (0.001, "0.001"),
        (math.nextafter(0.001, 0), "9.999999999999998E-4"),
        (0.0001, "1.0E-4"),
        (math.nextafter(1e7, 0), "9999999.999999998"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (1e10, "1.0E10"),
        (1795248800595.0, "1.795248800595E12"),
        (4.046854696393738e-07, "4.046854696393738E-7"),
        (1e16, "1.0E16"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (2e23, "2.0E23"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_double_is_written_as_java_writes_it(value: float, written: str) -> None:
    """Double.toString: plain from 1e-3 to below 1e7, else one digit before the point and an exponent."""
    assert double(value) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e-3)
@example(1e7)
@example(5e-324)
def test_double_reads_back_as_the_same_value(value: float) -> None:
    """The digits are enough to tell the value, and the form is Java's."""
    written = double(value)
    assert JAVA.fullmatch(written)
    assert float(written) == value
    assert ("E" in written) == (value != 0 and not 1e-3 <= abs(value) < 1e7)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_is_the_shortest_that_reads_back(value: float) -> None:
    """No fewer digits would do, but that Java always has one after the point."""
    digits = re.sub(r"[^0-9]", "", double(value).partition("E")[0]).strip("0")
    shortest = re.sub(r"[^0-9]", "", repr(value).partition("e")[0]).strip("0")
    assert len(digits) <= max(len(shortest), 2)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (False, "false"),
        (126568, "126568"),
        (2**63 - 1, "9223372036854775807"),
        (2.0, "2.0"),
        ("x", "x"),
    ],
)
def test_text_is_to_string_of_the_java_value(value: bool | int | float | str, written: str) -> None:
    """Longs plain, booleans in lower case, strings as they are."""
    assert text(value) == written


@given(st.floats())
def test_json_double_is_json_and_the_same_value(value: float) -> None:
    """What is not finite is quoted, for JSON has no word for it."""
    read = json.loads(msgspec.json.encode([json_double(value)]))[0]
    if math.isfinite(value):
        assert isinstance(read, float)
        assert read == value
    else:
        assert read == double(value)
