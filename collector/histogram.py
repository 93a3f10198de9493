"""Histograms as they are read: merged, percentiles, counts within bounds, and HdrHistogram's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from streamgauge import wire
from streamgauge.buckets import (
    BUCKET_COUNT,
    HIGHEST_TRACKABLE_MS,
    LOWEST_DISCERNIBLE_MS,
    MAX_COUNT,
    SIGNIFICANT_FIGURES,
    HdrBuckets,
    bucket_highest,
    bucket_index,
    bucket_lowest,
    bucket_median,
)

Integers = npt.NDArray[np.int64]

_ROUND_MS = (1, 2, 5, 10, 20, 50, 100, 200)
BOUNDS_MS: tuple[int, ...] = (*_ROUND_MS, 499, *(1_000 * 2**power - 1 for power in range(13)))
"""
Where latencies are parted for heat maps and for Prometheus, ms, inclusive: 1 ms to 68 min, each about twice the last.

Every one is the greatest value of an HDR bucket, so the count up to it is exact. Below 256 ms buckets are 1 ms wide and
any whole number will do. From there on they are 2, 4, 8, … ms wide: 500 ms shares its bucket with 501, but 500 ms,
1 s, 2 s, 4 s and so on each begin one, as every power of two times 250 does. So 999 stands for "less than 1 s".
"""


@dataclass(frozen=True, slots=True)
class Histogram:
    """
    Values that were counted, in HdrHistogram's layout.

    Args:
        buckets: What was counted; see `streamgauge.buckets`.

    Any thread.
    """

    buckets: HdrBuckets

    @property
    def count(self) -> int:
        """Return how many values are in buckets; those out of range are apart."""
        return self.buckets.total_count

    @property
    def min_ms(self) -> int | None:
        """Return the least value that the lowest bucket stands for; None of no value."""
        return int(bucket_lowest(self.buckets.indices[:1])[0]) if self.buckets.indices.size else None

    @property
    def max_ms(self) -> int | None:
        """Return the greatest value that the highest bucket stands for; None of no value."""
        return int(bucket_highest(self.buckets.indices[-1:])[0]) if self.buckets.indices.size else None

    @property
    def mean_ms(self) -> float | None:
        """Return the mean, exact; None of no value."""
        return self.buckets.sum_ms / self.count if self.buckets.indices.size else None

    @property
    def stddev_ms(self) -> float | None:
        """
        Return the standard deviation from the exact mean, each value taken for the middle of its bucket; None of none.

        Source: HdrHistogram, `getStdDeviation`, but for the mean.
        """
        if not self.buckets.indices.size:
            return None
        away = bucket_median(self.buckets.indices) - self.buckets.sum_ms / self.count
        return math.sqrt(float((away * away * self.buckets.counts).sum()) / self.count)

    def percentiles_ms(self, percentiles: Sequence[float]) -> list[int] | None:
        """
        Return the value at each percentile.

        Args:
            percentiles: 0 to 100.

        Returns:
            Values past 255 ms are at most 1/128 too great: the greatest that its bucket stands for. None of no value.
        """
        if not self.buckets.indices.size:
            return None
        found: list[int] = self.buckets.values_at_percentiles(percentiles).tolist()
        return found

    def counts_up_to(self, bounds_ms: Sequence[int]) -> list[int]:
        """
        Return how many values in buckets are at most each bound; exact where a bound is a bucket's greatest value.

        Args:
            bounds_ms: Ascending, 0 to HIGHEST_COUNTED_MS. Of the bucket that a bound falls into all values count.
        """
        last = bucket_index(np.asarray(bounds_ms, dtype=np.int64))
        reached = np.concatenate(([0], np.cumsum(self.buckets.counts)))
        found: list[int] = reached[np.searchsorted(self.buckets.indices, last, side="right")].tolist()
        return found

    def hdr(self) -> HdrHistogram:
        """Return the package's histogram of the same counts, index for index; what is out of range it cannot hold."""
        histogram = HdrHistogram(LOWEST_DISCERNIBLE_MS, HIGHEST_TRACKABLE_MS, SIGNIFICANT_FIGURES)
        indices: list[int] = self.buckets.indices.tolist()
        for index, count in zip(indices, self.buckets.counts.tolist(), strict=True):
            histogram.counts[index] = count
        if indices:
            # Index 0 holds the value 0, which the package leaves out of its least value.
            least = next((index for index in indices if index), -1)
            histogram.set_internal_tacking_values(least, indices[-1], self.count)
        return histogram

    def encoded(self) -> str:
        """
        Return the histogram as HdrHistogram's V2 encoding: compressed, in base64, as every port of it reads.

        Source: HdrHistogram, `encodeIntoCompressedByteBuffer`, V2.
        """
        text: str = self.hdr().encode().decode("ascii")
        return text


def histogram(told: wire.Buckets) -> Histogram:
    """Return buckets that were admitted as a histogram; any thread."""
    indices = np.frombuffer(told.indices, dtype="<u2").astype(np.int64)
    counts = np.frombuffer(told.counts, dtype="<i8").astype(np.int64, copy=False)
    return Histogram(HdrBuckets(indices, counts, told.below, told.above, told.sum_ms))


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """
    Return all of them as one: of other operators, subtasks or runs; in whatever order, the result is the same.

    Args:
        histograms: At most 1,000 that were admitted, so that no sum passes an int64. A count that would pass MAX_COUNT
            stays there.

    Any thread.
    """
    counts = np.zeros(BUCKET_COUNT, dtype=np.int64)
    below = above = sum_ms = 0
    for one in histograms:
        counts[one.buckets.indices] = np.minimum(counts[one.buckets.indices] + one.buckets.counts, MAX_COUNT)
        below = min(below + one.buckets.below, MAX_COUNT)
        above = min(above + one.buckets.above, MAX_COUNT)
        sum_ms += one.buckets.sum_ms
    indices = np.flatnonzero(counts).astype(np.int64, copy=False)
    return Histogram(HdrBuckets(indices, counts[indices], below, above, sum_ms))
