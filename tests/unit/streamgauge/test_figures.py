"""Figures: short, never wrong by more than their last digit, '-' for what is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.figures import age, count, duration, quantity, share

_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (0.001, "<0.01"),
        (-0.001, ">-0.01"),
        (0.25, "0.25"),
        (9.996, "10.0"),
        (12.5, "12.5"),
        (99.96, "100"),
        (999, "999"),
        (999.5, "1.00k"),
        (1234, "1.23k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (-12_345, "-12.3k"),
        (1e30, ">999E"),
        (-1e30, "<-999E"),
    ],
)
def test_quantity_has_three_digits(value: float | None, shown: str) -> None:
    """Rounding carries into the next prefix."""
    assert quantity(value) == shown


def test_quantity_has_its_unit_behind() -> None:
    """Unknown has none."""
    assert (quantity(8123, "B"), quantity(None, "B")) == ("8.12kB", "-")


@given(st.floats(min_value=0.01, max_value=1e20))
def test_quantity_reads_back_within_a_hundredth(value: float) -> None:
    """Three digits are off by 0.5 % at most; below 0.1 there are fewer."""
    shown = quantity(value)
    read = float(shown.rstrip("kMGTPE")) * _PREFIXES.get(shown[-1], 1.0)
    assert len(shown) <= 5
    assert read == pytest.approx(value, rel=0.006, abs=0.005)


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (None, "-"),
        (0, "0ms"),
        (0.7, "0.7ms"),
        (182, "182ms"),
        (999.5, "1.0s"),
        (4_200, "4.2s"),
        (59_949, "59.9s"),
        (59_960, "1m00s"),
        (192_000, "3m12s"),
        (3_599_600, "1h00m"),
        (18_420_000, "5h07m"),
        (12 * 86_400_000 + 3 * 3_600_000, "12d03h"),
        (5_000 * 86_400_000, "5000d"),
        (2**63, ">99999d"),
        (-4_200, "-4.2s"),
    ],
)
def test_duration_has_two_units(ms: float | None, shown: str) -> None:
    """Rounding carries into the next unit."""
    assert duration(ms) == shown


def test_age_is_told_in_whole_seconds() -> None:
    """It is not known any better."""
    assert [age(None), age(999), age(61_900), age(10_400)] == ["-", "0s", "1m01s", "10s"]


def test_share_is_held_to_percent() -> None:
    """A rounding above 1 is no share."""
    assert [share(None), share(0.374), share(1.2), share(-0.1)] == ["-", "37%", "100%", "0%"]


def test_count_has_all_its_digits() -> None:
    """A batch id is looked up elsewhere."""
    assert [count(None), count(0), count(1234567)] == ["-", "0", "1234567"]
