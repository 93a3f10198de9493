"""Median and spread of a few measurements, without a guess at how they are distributed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class Spread:
    """
    Args:
        low, high: An interval for the true median.
        confidence: With what probability such an interval holds it, 0 to 1.
    """

    median: float
    least: float
    greatest: float
    low: float
    high: float
    confidence: float


def spread(values: Sequence[float], confidence: float = 0.95) -> Spread:
    """
    Return the spread of independent measurements.

    The interval is the narrowest between two of the measurements, equally far from both ends of their order, that
    holds the median with at least `confidence`; where there are too few measurements, from the least to the greatest.

    Raises:
        ValueError: there are none.

    Source: the sign test's interval, order statistics with a binomial distribution of 1/2.
    """
    if not values:
        raise ValueError("there are no measurements")
    ordered, size = sorted(values), len(values)
    outside = 0
    cut = 0
    for rank in range((size + 1) // 2):
        outside += comb(size, rank)
        if rank and 1 - 2 * outside / 2**size < confidence:
            break
        cut, covered = rank, 1 - 2 * outside / 2**size
    return Spread(
        statistics.median(ordered), ordered[0], ordered[-1], ordered[cut], ordered[size - 1 - cut], max(covered, 0.0)
    )
