"""
The two forms in which a latency is kept: HdrHistogram's buckets, and the window of the last values.

A driver has no HdrHistogram package, and its `record_value` takes one value at a time. So values are counted
here with NumPy into that package's layout; whoever has the package may put the counts into one of its
histograms, index for index.

Each form is two types, one that is recorded into and one that was read: `HdrCounts` and `HdrBuckets`,
`ValueWindow` and `WindowStatistics`.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LOWEST_DISCERNIBLE_MS = 1
HIGHEST_TRACKABLE_MS = 3_600_000
SIGNIFICANT_FIGURES = 2
"""What to make an HdrHistogram with, so that it has this layout."""

_SUB_BUCKETS_BITS = 8
_HALF_BITS = _SUB_BUCKETS_BITS - 1
_HALF = 1 << _HALF_BITS
_BUCKETS = 15

BUCKET_COUNT = (_BUCKETS + 1) * _HALF
"""Counts of the layout: 256 of 1 ms, then for each power of two 128, each as wide as a 128th of it."""

HIGHEST_COUNTED_MS = (1 << (_SUB_BUCKETS_BITS + _BUCKETS - 1)) - 1
"""The greatest value that has a bucket; as in the package, the last buckets reach past what was asked for."""

MAX_COUNT = 2**53
"""Greatest count that a bucket may hold when it is merged in: what a float64 can still tell exactly."""

# A float64 is sign, 11 bits of exponent (biased by 1023) and 52 of mantissa. Cut behind the 7 leading bits of
# the mantissa, it reads (exponent + 1023) · 128 + those 7 bits: for a value from 128 on, the bucket's index but
# for a constant. That is one shift instead of a logarithm, and exact, since such values convert exactly.
_CUT_BITS = 52 - _HALF_BITS
_CUT_AT_128 = (1023 + _HALF_BITS) << _HALF_BITS

DEFAULT_HISTORY_SIZE = 128
"""Flink's `metrics.latency.history-size`."""

_SHARES = np.array([50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9]) / 100


def bucket_index(values: Integers) -> Integers:
    """
    Return the index of each value's bucket, same shape.

    Args:
        values: int64, 0 to HIGHEST_COUNTED_MS; what is outside gets an index that means nothing.

    Source: HdrHistogram, `countsArrayIndex`.
    """
    cut = values.astype(np.float64).view(np.int64) >> _CUT_BITS
    return np.where(values < _HALF, values, cut - (_CUT_AT_128 - _HALF))


def bucket_lowest(indices: Integers) -> Integers:
    """Return the least value of each bucket, ms, int64 of the same shape; indices 0 to BUCKET_COUNT − 1."""
    shift = _shift(indices)
    lowest: Integers = (indices - (shift << _HALF_BITS)) << shift
    return lowest


def bucket_highest(indices: Integers) -> Integers:
    """Return the greatest value of each bucket, ms, int64 of the same shape; indices 0 to BUCKET_COUNT − 1."""
    return bucket_lowest(indices) + (np.int64(1) << _shift(indices)) - 1


def bucket_median(indices: Integers) -> Integers:
    """
    Return the middle of each bucket, which stands for it in a mean, ms, int64 of the same shape.

    Args:
        indices: 0 to BUCKET_COUNT − 1.

    Source: HdrHistogram, `medianEquivalentValue`: lowest + width // 2.
    """
    return bucket_lowest(indices) + ((np.int64(1) << _shift(indices)) >> 1)


def _shift(indices: Integers) -> Integers:
    shift: Integers = np.maximum((indices >> _HALF_BITS) - 1, 0)
    return shift


@dataclass(frozen=True, slots=True, eq=False)
class HdrBuckets:
    """
    What an `HdrCounts` held when it was read: the buckets that are not empty.

    Args:
        indices: int64, shape (n,), ascending, 0 to BUCKET_COUNT − 1.
        counts: int64, shape (n,), each 1 to MAX_COUNT.
        below: Values that were negative, 0 to MAX_COUNT.
        above: Values past HIGHEST_COUNTED_MS, 0 to MAX_COUNT.
        sum_ms: Of the values that are in buckets, exact; not negative.

    Raises:
        ValueError: an array or a number is not as above; the message says which.

    Any thread, since nobody changes the arrays once it is made.
    """

    indices: Integers
    counts: Integers
    below: int = 0
    above: int = 0
    sum_ms: int = 0

    def __post_init__(self) -> None:
        indices, counts = self.indices, self.counts
        if indices.ndim != 1 or indices.shape != counts.shape:
            raise ValueError(f"indices of shape {indices.shape} and counts of shape {counts.shape}, not both (n,)")
        if indices.dtype != np.int64 or counts.dtype != np.int64:
            raise ValueError(f"indices are {indices.dtype} and counts {counts.dtype}, not int64")
        if indices.size and not (indices[0] >= 0 and indices[-1] < BUCKET_COUNT and (np.diff(indices) > 0).all()):
            raise ValueError(f"indices do not ascend within 0 to {BUCKET_COUNT - 1}")
        if counts.size and not (counts.min() >= 1 and counts.max() <= MAX_COUNT):
            raise ValueError(f"counts reach from {counts.min()} to {counts.max()}, not within 1 to {MAX_COUNT}")
        if not (0 <= self.below <= MAX_COUNT and 0 <= self.above <= MAX_COUNT):
            raise ValueError(f"{self.below} values below and {self.above} above, not within 0 to {MAX_COUNT}")
        if self.sum_ms < 0:
            raise ValueError(f"a sum of {self.sum_ms} ms of values that are not negative")

    @property
    def total_count(self) -> int:
        """Return how many values are in buckets; `below` and `above` are apart."""
        return int(self.counts.sum())

    def values_at_percentiles(self, percentiles: Sequence[float]) -> Integers:
        """
        Return the value at each percentile, ms.

        Args:
            percentiles: 0 to 100; what is greater counts as 100.

        Returns:
            int64, shape (len(percentiles),): the greatest value of the bucket that reaches the percentile, the
            least one for percentile 0. 0 where nothing was counted.

        Source: HdrHistogram, `getValueAtPercentile`.
        """
        asked = np.asarray(percentiles, dtype=np.float64)
        if not self.indices.size:
            return np.zeros(asked.shape, dtype=np.int64)
        reached = np.cumsum(self.counts)
        wanted = np.maximum(np.minimum(asked, 100.0) * reached[-1] / 100 + 0.5, 1).astype(np.int64)
        found = self.indices[np.searchsorted(reached, wanted)]
        return np.where(asked == 0, bucket_lowest(found), bucket_highest(found))


class HdrCounts:
    """
    Counts values from 1 ms to 1 h with 2 significant digits, in HdrHistogram's layout; 16 KiB.

    One thread at a time may `add` and `merge`; any may `read` meanwhile, without waiting and without a lock:
    a write puts a new array in the old one's place and never changes one that a reader may hold.
    """

    def __init__(self) -> None:
        self._held: tuple[Integers, int, int, int] = (np.zeros(BUCKET_COUNT, dtype=np.int64), 0, 0, 0)

    def add(self, values: npt.ArrayLike) -> None:
        """
        Count values.

        Args:
            values: Integers, milliseconds, any shape. Those outside 0 to HIGHEST_COUNTED_MS are counted apart.

        Raises:
            TypeError: they are no integers that an int64 can hold; nothing was counted.
        """
        given = np.asarray(values)
        if not given.size:
            return
        flat = given.astype(np.int64, casting="safe", copy=False).ravel()
        below = above = 0
        if flat.min() < 0 or flat.max() > HIGHEST_COUNTED_MS:
            below, above = int((flat < 0).sum()), int((flat > HIGHEST_COUNTED_MS).sum())
            flat = flat[(flat >= 0) & (flat <= HIGHEST_COUNTED_MS)]
        fresh = np.bincount(bucket_index(flat), minlength=BUCKET_COUNT).astype(np.int64, copy=False)
        self._grow(fresh, below, above, int(flat.sum()))

    def add_times(self, values: Integers, times: Integers) -> None:
        """
        Count values that came many times.

        Args:
            values: int64, milliseconds, shape (n,). Those outside 0 to HIGHEST_COUNTED_MS are counted apart.
            times: int64, same shape: how often each came, 0 to MAX_COUNT; all together MAX_COUNT at most.
        """
        below, above = values < 0, values > HIGHEST_COUNTED_MS
        inside = ~(below | above)
        counted, weights = values[inside], times[inside]
        # Sums of whole numbers that a float64 can tell are exact.
        fresh = np.bincount(bucket_index(counted), weights, BUCKET_COUNT).astype(np.int64)
        total_ms = sum(value * often for value, often in zip(counted.tolist(), weights.tolist(), strict=True))
        self._grow(fresh, int(times[below].sum()), int(times[above].sum()), total_ms)

    def merge(self, buckets: HdrBuckets) -> None:
        """Count what was read from another: of another subtask, another source or another time."""
        fresh = np.zeros(BUCKET_COUNT, dtype=np.int64)
        fresh[buckets.indices] = buckets.counts
        self._grow(fresh, buckets.below, buckets.above, buckets.sum_ms)

    def read(self) -> HdrBuckets:
        """Return what was counted by every write that is over, as copies."""
        counts, below, above, sum_ms = self._held
        indices = np.flatnonzero(counts).astype(np.int64, copy=False)
        return HdrBuckets(indices, counts[indices], below, above, sum_ms)

    def _grow(self, fresh: Integers, below: int, above: int, sum_ms: int) -> None:
        counts, old_below, old_above, old_sum_ms = self._held
        fresh += counts
        self._held = (fresh, old_below + below, old_above + above, old_sum_ms + sum_ms)


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """
    Flink's eleven figures of a histogram, under the names that its REST gives them.

    Percentiles are `numpy.percentile(…, method="weibull")`, which is what Flink's library computes; `stddev` is
    a sample's (divided by n − 1), 0 for one value. Of no value, `min` and `max` are 0 and the rest is NaN, as in
    Flink.

    Source: Flink, `DescriptiveStatisticsHistogramStatistics`; Commons Math, `Percentile` (LEGACY).
    """

    min: int
    max: int
    mean: float
    median: float
    stddev: float
    p75: float
    p90: float
    p95: float
    p98: float
    p99: float
    p999: float


class ValueWindow:
    """
    Keeps the last values in a ring that is as long at first as it will ever be.

    One thread at a time may record; any may read meanwhile. Neither waits for the other: the ring is an
    `array`, whose item assignment and whose copying are each one call under the GIL, so a reader copies whole
    values, then computes on its copy. (A NumPy copy may let go of the GIL in between.) A value recorded while
    a reader is between its two looks may push the oldest one of its window out.

    Args:
        size: Values kept, at least 1.

    Raises:
        ValueError: the size is less than 1.

    Source: Flink's `DescriptiveStatisticsHistogram`.
    """

    def __init__(self, size: int = DEFAULT_HISTORY_SIZE) -> None:
        if size < 1:
            raise ValueError(f"a window of {size} values, but at least 1 was expected")
        self._ring = array("q", bytes(8 * size))
        self._count = 0

    @property
    def size(self) -> int:
        """Return how many values it keeps at most."""
        return len(self._ring)

    @property
    def count(self) -> int:
        """Return how many values were ever recorded, those that have left the window included."""
        return self._count

    def record(self, value: SupportsIndex) -> None:
        """
        Take one value in; the oldest leaves if the window is full.

        Raises:
            TypeError: it is no integer.
            OverflowError: it does not fit an int64.
        """
        # The value first, the count second: what the count covers is there.
        self._ring[self._count % len(self._ring)] = operator.index(value)
        self._count += 1

    def record_all(self, values: Iterable[SupportsIndex]) -> None:
        """Take values in, one after the other; raises as `record`, those before the bad one are in."""
        for value in values:
            self.record(value)

    def values(self) -> Integers:
        """Return the window's values, int64, shape (n,), in no particular order; a copy, n ≤ `size`."""
        held = self._count
        copied = np.frombuffer(self._ring.tobytes(), dtype=np.int64)
        return copied[:held]

    def statistics(self) -> WindowStatistics:
        """Return the figures of the values that are in the window now."""
        return statistics_of(self.values())


def statistics_of(values: Integers) -> WindowStatistics:
    """Return the figures of int64 values of shape (n,), n may be 0; see `WindowStatistics`."""
    if not values.size:
        return WindowStatistics(0, 0, *[float("nan")] * 9)
    _, _, *rest = statistics_of_rows(values[None, :], np.array([values.size]))[:, 0].tolist()
    # As integers, for a float64 cannot tell all of them.
    return WindowStatistics(int(values.min()), int(values.max()), *rest)


def statistics_of_rows(windows: Integers, counts: Integers) -> Floats:
    """
    Return the figures of many windows at once; each is the same as if it were alone.

    Args:
        windows: int64, shape (rows, n); a row's values come first, in any order, what is behind them means nothing.
        counts: int64, shape (rows,): how many values each row has, 0 to n.

    Returns:
        float64, shape (11, rows), in the order of `WindowStatistics`; NaN for a row without values.
    """
    rows, width = windows.shape
    told = np.full((len(WindowStatistics.__slots__), rows), np.nan)
    some = np.flatnonzero(counts)
    if not some.size:
        return told
    counts = counts[some]
    here = np.arange(width) < counts[:, None]
    ordered = np.sort(np.where(here, windows[some], np.iinfo(np.int64).max), axis=1)
    each = np.arange(some.size)
    last = ordered[each, counts - 1]
    # Summed up one after the other, so that what a row is padded with changes no bit of its sum.
    mean = np.add.accumulate(np.where(here, ordered, 0.0), axis=1)[:, -1] / counts
    squares = np.add.accumulate(np.where(here, ordered - mean[:, None], 0.0) ** 2, axis=1)[:, -1]
    told[0, some], told[1, some], told[2, some] = ordered[:, 0], last, mean
    told[4, some] = np.sqrt(squares / np.maximum(counts - 1, 1))
    for place, share in zip((3, *range(5, 11)), _SHARES, strict=True):
        position = np.clip(counts * share + share - 1, 0, counts - 1)
        below = np.floor(position).astype(np.int64)
        low, high = ordered[each, below], ordered[each, np.minimum(below + 1, counts - 1)]
        told[place, some] = _between(low, high, position - below)
    return told


def _between(low: Integers, high: Integers, part: Floats) -> Floats:
    """Interpolate from whichever end is nearer, to the bit as `numpy.percentile` does."""
    width = high - low
    found: Floats = np.where(part < 0.5, low + width * part, high - width * (1 - part))
    return found
