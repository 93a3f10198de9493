"""An interval for the median is what the binomial distribution says."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.spread import spread


@pytest.mark.parametrize(
    ("size", "low", "high", "confidence"),
    [
        (1, 1, 1, 0.0),
        (2, 1, 2, 0.5),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.96875),
        (7, 1, 7, 0.984375),
        (9, 2, 8, 0.9609375),
        (11, 2, 10, 0.98828125),
        (20, 6, 15, 0.958610534667969),
    ],
)
def test_the_interval_is_the_narrowest_that_holds(size: int, low: int, high: int, confidence: float) -> None:
    """Table values of the sign test; with too few measurements it is all of them, and says how little that is."""
    found = spread([float(value) for value in reversed(range(1, size + 1))])
    assert (found.low, found.high, found.confidence) == (low, high, pytest.approx(confidence))
    assert (found.least, found.greatest, found.median) == (1, size, (size + 1) / 2)


def test_confidence_is_the_share_of_equally_likely_orders_that_hold_the_median() -> None:
    """Counted: each of five measurements is above or below the true median, as a coin falls."""
    held = [0 < sum(below) < 5 for below in itertools.product((0, 1), repeat=5)]
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]).confidence == sum(held) / len(held)


def test_no_measurements_have_no_spread() -> None:
    """There is no figure that was not measured."""
    with pytest.raises(ValueError, match="no measurements"):
        spread([])
