"""Histograms against the package itself, against sorted values, and merged."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.histogram import BOUNDS_MS, Histogram, histogram, merge
from streamgauge.buckets import (
    BUCKET_COUNT,
    HIGHEST_COUNTED_MS,
    HIGHEST_TRACKABLE_MS,
    LOWEST_DISCERNIBLE_MS,
    MAX_COUNT,
    SIGNIFICANT_FIGURES,
    HdrBuckets,
    bucket_highest,
    bucket_index,
)

PERCENTILES = (0.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0)
VALUES = st.lists(st.integers(0, 300) | st.integers(0, 100_000) | st.integers(0, HIGHEST_COUNTED_MS), max_size=60)


@pytest.fixture(scope="module")
def of(frames):
    def make(*values: int) -> Histogram:
        return histogram(frames.buckets(*values))

    return make


def package(values: list[int]) -> HdrHistogram:
    made = HdrHistogram(LOWEST_DISCERNIBLE_MS, HIGHEST_TRACKABLE_MS, SIGNIFICANT_FIGURES)
    for value in values:
        assert made.record_value(value)
    return made


def same(one: Histogram, other: Histogram) -> bool:
    return (
        one.buckets.indices.tolist() == other.buckets.indices.tolist()
        and one.buckets.counts.tolist() == other.buckets.counts.tolist()
        and (one.buckets.below, one.buckets.above, one.buckets.sum_ms)
        == (other.buckets.below, other.buckets.above, other.buckets.sum_ms)
    )


@settings(deadline=None)
@given(VALUES)
def test_the_package_has_the_same_counts_index_for_index(of, values):
    """What we hold and what the package records of the same values cannot be told apart."""
    ours, theirs = of(*values).hdr(), package(values)
    assert list(ours.counts) == list(theirs.counts)
    assert ours.total_count == theirs.total_count
    assert (ours.get_min_value(), ours.get_max_value()) == (theirs.get_min_value(), theirs.get_max_value())
    assert ours.get_mean_value() == theirs.get_mean_value()


@settings(deadline=None)
@given(VALUES.filter(bool))
def test_deviation_is_that_of_the_values(of, values):
    """A value is at most half a bucket, which is 1/256 of it, from the middle of its own."""
    assert of(*values).stddev_ms == pytest.approx(float(np.std(values)), abs=max(values) / 256 + 1e-6)


def test_deviation_of_one_value_and_of_none(of):
    """Exact where buckets are 1 ms wide; of no value there is none."""
    assert of(200, 200).stddev_ms == 0.0
    assert of(10, 20).stddev_ms == 5.0
    assert of(-1).stddev_ms is None


@settings(deadline=None)
@given(VALUES.filter(bool))
def test_figures_are_the_packages(of, values):
    """Percentiles, least and greatest, without the package's 2,048 steps a percentile."""
    ours, theirs = of(*values), package(values)
    assert ours.percentiles_ms(PERCENTILES) == [theirs.get_value_at_percentile(one) for one in PERCENTILES]
    assert (ours.min_ms, ours.max_ms) == (theirs.get_min_value(), theirs.get_max_value())
    assert ours.mean_ms == pytest.approx(sum(values) / len(values), rel=1e-15)


@settings(deadline=None)
@given(VALUES.filter(bool))
def test_percentiles_are_within_two_digits_of_a_sorted_array(of, values):
    """The value of that rank, or the greatest one of its bucket: at most 1/128 more."""
    ordered = sorted(values)
    for percentile, found in zip(PERCENTILES[1:], of(*values).percentiles_ms(PERCENTILES[1:]), strict=True):
        exact = ordered[max(int(percentile * len(values) / 100 + 0.5), 1) - 1]
        assert exact <= found <= exact + exact // 128


@settings(deadline=None)
@given(VALUES)
def test_encoding_reads_back(of, values):
    """V2, as any port of HdrHistogram reads it."""
    ours = of(*values)
    read = HdrHistogram.decode(ours.encoded())
    assert ours.encoded().startswith("HISTF")
    assert [read.get_count_at_index(index) for index in range(BUCKET_COUNT)] == list(ours.hdr().counts)
    assert read.get_total_count() == len(values)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=5), st.randoms(use_true_random=False))
def test_merging_is_associative_and_any_order_will_do(of, several, shuffler: random.Random):
    """Of operators, subtasks and runs: as if one had counted all of it."""
    parts = [of(*values) for values in several]
    whole = of(*(value for values in several for value in values))
    assert same(merge(parts), whole)
    shuffled = shuffler.sample(parts, len(parts))
    at = shuffler.randint(0, len(parts))
    assert same(merge([merge(shuffled[:at]), merge(shuffled[at:])]), whole)


@settings(deadline=None)
@given(VALUES)
def test_counts_up_to_the_bounds_are_exact(of, values):
    """No value's bucket lies across a bound: the count is that of the values themselves."""
    assert of(*values).counts_up_to(BOUNDS_MS) == [sum(value <= bound for value in values) for bound in BOUNDS_MS]


def test_bounds_are_where_buckets_end():
    """Ascending from 1 ms to past an hour; at any other the count would be an estimate."""
    bounds = np.array(BOUNDS_MS)
    assert bucket_highest(bucket_index(bounds)).tolist() == list(BOUNDS_MS)
    assert (np.diff(bounds) > 0).all()
    assert (BOUNDS_MS[0], BOUNDS_MS[-2] < 3_600_000 < BOUNDS_MS[-1]) == (1, True)
    assert (bounds[1:] / bounds[:-1]).max() <= 2.5


def test_a_bound_within_a_bucket_has_all_of_it(of):
    """Which is why 500 ms is none of ours: it would count 501 ms too."""
    assert of(500, 501).counts_up_to([499, 500]) == [0, 2]


def test_nothing_counted(of):
    """Of no value no figure is known; the counts are 0."""
    empty = of()
    assert (empty.count, empty.min_ms, empty.max_ms, empty.mean_ms, empty.percentiles_ms([50.0])) == (0, *[None] * 4)
    assert empty.counts_up_to(BOUNDS_MS) == [0] * len(BOUNDS_MS)
    assert same(merge([]), empty)
    assert same(merge([empty, empty]), empty)
    assert HdrHistogram.decode(empty.encoded()).get_total_count() == 0


@pytest.mark.parametrize("value", [0, 1, 255, 256, 1_000, HIGHEST_COUNTED_MS])
def test_one_value(of, value):
    """Every percentile is its bucket's greatest value; the mean is exact."""
    one = of(value)
    assert one.percentiles_ms(PERCENTILES[1:]) == [one.max_ms] * 8
    assert one.min_ms <= value <= one.max_ms <= value + value // 128
    assert one.mean_ms == value


def test_values_out_of_range_are_apart(of):
    """Counted, merged, and in no figure."""
    read = of(-1, -7, 5, HIGHEST_COUNTED_MS + 1)
    assert (read.count, read.buckets.below, read.buckets.above, read.buckets.sum_ms) == (1, 2, 1, 5)
    assert (read.min_ms, read.max_ms, read.percentiles_ms([99.9])) == (5, 5, [5])
    assert same(merge([read, of(5)]), of(-1, -7, 5, 5, HIGHEST_COUNTED_MS + 1))


def test_counts_stay_at_the_greatest():
    """Where a merged count would pass what a float64 tells exactly; and in whatever order."""
    one = Histogram(HdrBuckets(np.array([5]), np.array([MAX_COUNT]), MAX_COUNT, MAX_COUNT - 1, 7))
    merged = merge([one, one, one])
    assert (merged.buckets.counts.tolist(), merged.buckets.below, merged.buckets.above) == (
        [MAX_COUNT],
        *[MAX_COUNT] * 2,
    )
    assert same(merge([one, merge([one, one])]), merged)


def test_a_thousand_greatest_histograms_merge_without_wrapping():
    """As many as a job has vertices: the count of all is still an int64, and so are the percentiles' ranks."""
    fill = MAX_COUNT // BUCKET_COUNT
    wide = Histogram(HdrBuckets(np.arange(BUCKET_COUNT), np.full(BUCKET_COUNT, fill), sum_ms=2**63 - 1))
    merged = merge([wide] * 1_000)
    assert merged.count == 1_000 * BUCKET_COUNT * fill
    assert merged.percentiles_ms([100.0]) == [HIGHEST_COUNTED_MS]
