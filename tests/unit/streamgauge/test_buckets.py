"""HdrHistogram's layout against the package itself; the window against plain lists."""

import math
import statistics
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from streamgauge import buckets
from streamgauge.buckets import HdrBuckets, HdrCounts, ValueWindow, WindowStatistics, statistics_of, statistics_of_rows

# Around every power of two the layout changes; hypothesis alone would seldom look there.
edges = st.sampled_from([2**n + d for n in range(24) for d in (-1, 0, 1)])
latencies = st.integers(0, 2000) | st.integers(0, buckets.HIGHEST_COUNTED_MS + 10) | edges | st.integers(-10, -1)


def _package() -> HdrHistogram:
    return HdrHistogram(buckets.LOWEST_DISCERNIBLE_MS, buckets.HIGHEST_TRACKABLE_MS, buckets.SIGNIFICANT_FIGURES)


def _dense(read: HdrBuckets) -> list[int]:
    counts = np.zeros(buckets.BUCKET_COUNT, dtype=np.int64)
    counts[read.indices] = read.counts
    return counts.tolist()  # type: ignore[no-any-return]


def test_the_layout_has_the_packages_length_and_reach() -> None:
    """As many counts, and the same greatest value, as an HdrHistogram with the same three arguments."""
    package = _package()
    assert package.counts_len == buckets.BUCKET_COUNT
    assert package.record_value(buckets.HIGHEST_COUNTED_MS)
    assert not package.record_value(buckets.HIGHEST_COUNTED_MS + 1)


def test_every_bucket_has_the_packages_bounds() -> None:
    """Lowest, highest and median equivalent value of each index."""
    package = _package()
    indices = np.arange(buckets.BUCKET_COUNT)
    lowest = [package.get_value_from_index(index) for index in range(buckets.BUCKET_COUNT)]
    assert buckets.bucket_lowest(indices).tolist() == lowest
    assert buckets.bucket_highest(indices).tolist() == [package.get_highest_equivalent_value(value) for value in lowest]
    assert buckets.bucket_median(indices).tolist() == [package._hdr_median_equiv_value(value) for value in lowest]


def test_every_value_from_lowest_to_highest_has_its_buckets_index() -> None:
    """The layout leaves no value out: of all 4,194,304 each is in the bucket whose bounds enclose it."""
    values = np.arange(buckets.HIGHEST_COUNTED_MS + 1)
    indices = buckets.bucket_index(values)
    assert (buckets.bucket_lowest(indices) <= values).all()
    assert (values <= buckets.bucket_highest(indices)).all()
    assert np.array_equal(np.unique(indices), np.arange(buckets.BUCKET_COUNT))


def test_two_digits_are_kept() -> None:
    """A bucket from 100 ms up is less than a hundredth of its values wide."""
    indices = np.arange(100, buckets.BUCKET_COUNT)
    lowest, highest = buckets.bucket_lowest(indices), buckets.bucket_highest(indices)
    assert ((highest - lowest) * 100 < lowest).all()


@given(st.lists(latencies, max_size=60), st.lists(st.floats(0, 110) | st.sampled_from([0.0, 50.0, 99.9, 100.0])))
@example([], [0.0, 50.0, 100.0])
@example([0], [0.0, 50.0, 100.0])
@example([buckets.HIGHEST_COUNTED_MS, buckets.HIGHEST_COUNTED_MS + 1, -1], [0.0, 50.0, 100.0])
def test_counts_and_percentiles_equal_the_packages(values: list[int], percentiles: list[float]) -> None:
    """Index for index and percentile for percentile; what the package refuses is counted apart."""
    package = _package()
    refused = [value for value in values if not package.record_value(value)]
    counts = HdrCounts()
    counts.add(values)
    read = counts.read()
    assert _dense(read) == list(package.counts)
    assert read.total_count == package.get_total_count()
    assert read.below == sum(value < 0 for value in refused)
    assert read.above == sum(value > 0 for value in refused)
    assert read.values_at_percentiles(percentiles).tolist() == [
        package.get_value_at_percentile(percentile) for percentile in percentiles
    ]


@given(st.lists(st.lists(latencies, max_size=20), max_size=6))
def test_merging_equals_counting_together(batches: list[list[int]]) -> None:
    """Histograms of subtasks or of times merge into the one of all values, in any order, the outsiders included."""
    together, merged, backwards = HdrCounts(), HdrCounts(), HdrCounts()
    reads = []
    for batch in batches:
        together.add(batch)
        single = HdrCounts()
        single.add(batch)
        reads.append(single.read())
    for read in reads:
        merged.merge(read)
    for read in reversed(reads):
        backwards.merge(read)
    expected = together.read()
    for found in (merged.read(), backwards.read()):
        assert _dense(found) == _dense(expected)
        assert (found.below, found.above) == (expected.below, expected.above)


@given(st.lists(st.lists(latencies, max_size=10), max_size=6))
def test_counting_in_parts_equals_counting_at_once(batches: list[list[int]]) -> None:
    """It does not matter how values are cut into arrays."""
    parts, whole = HdrCounts(), HdrCounts()
    for batch in batches:
        parts.add(batch)
    whole.add([value for batch in batches for value in batch])
    assert _dense(parts.read()) == _dense(whole.read())


@given(st.lists(st.lists(latencies, max_size=20), max_size=6))
def test_the_sum_is_that_of_the_values_in_buckets(batches: list[list[int]]) -> None:
    """Exact, whether values were counted or merged; what no bucket takes is not in it."""
    counts, merged = HdrCounts(), HdrCounts()
    for batch in batches:
        counts.add(batch)
        single = HdrCounts()
        single.add(batch)
        merged.merge(single.read())
    expected = sum(value for batch in batches for value in batch if 0 <= value <= buckets.HIGHEST_COUNTED_MS)
    assert counts.read().sum_ms == merged.read().sum_ms == expected


@given(st.lists(st.lists(latencies, max_size=20), min_size=3, max_size=3))
def test_merging_is_associative(batches: list[list[int]]) -> None:
    """(a + b) + c is a + (b + c), in every number."""
    reads = []
    for batch in batches:
        single = HdrCounts()
        single.add(batch)
        reads.append(single.read())

    def merge(one: HdrBuckets, other: HdrBuckets) -> HdrBuckets:
        both = HdrCounts()
        both.merge(one)
        both.merge(other)
        return both.read()

    a, b, c = reads
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    assert _dense(left) == _dense(right)
    assert (left.below, left.above, left.sum_ms) == (right.below, right.above, right.sum_ms)


def test_an_export_holds_no_empty_bucket() -> None:
    """Sparse: ascending indices of what was hit, and how often."""
    counts = HdrCounts()
    counts.add([300, 1, 301, 1, 5_000])
    read = counts.read()
    assert read.indices.tolist() == sorted(set(buckets.bucket_index(np.array([1, 300, 5_000])).tolist()))
    assert read.counts.tolist() == [2, 2, 1]
    assert (read.indices.dtype, read.counts.dtype) == (np.int64, np.int64)


def test_an_empty_histogram_has_zero_percentiles() -> None:
    """As the package: 0 where nothing was counted, whatever lies outside."""
    counts = HdrCounts()
    assert counts.read().values_at_percentiles([0, 50, 100]).tolist() == [0, 0, 0]
    counts.add([-5])
    assert counts.read().total_count == 0
    assert counts.read().values_at_percentiles([0, 50, 100]).tolist() == [0, 0, 0]


def test_outsiders_are_counted_apart_not_lost() -> None:
    """Negative values, as a clock that goes back makes, and values past the layout's end."""
    counts = HdrCounts()
    counts.add([-1, -(2**63), 5, buckets.HIGHEST_COUNTED_MS, buckets.HIGHEST_COUNTED_MS + 1, 2**63 - 1])
    counts.add([-7])
    read = counts.read()
    assert (read.below, read.total_count, read.above) == (3, 2, 2)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", ">i8", "?"])
def test_any_integers_within_int64_may_be_added(dtype: str) -> None:
    """Width and byte order do not matter."""
    counts = HdrCounts()
    counts.add(np.array([[0, 1], [1, 1]], dtype=dtype))
    assert counts.read().counts.tolist() == [1, 3]


@pytest.mark.parametrize(
    "values", [[1.5], [float("nan")], [2**63], [2**70], ["5"], [None], np.array([1], dtype=np.uint64)], ids=repr
)
def test_what_is_no_int64_is_refused(values: object) -> None:
    """Nothing is cut to an integer in silence, and nothing was counted."""
    counts = HdrCounts()
    with pytest.raises(TypeError):
        counts.add(values)  # type: ignore[arg-type]
    assert counts.read().total_count == 0


def _buckets(indices: list[int], counts: list[int], below: int = 0, above: int = 0) -> HdrBuckets:
    return HdrBuckets(np.array(indices, dtype=np.int64), np.array(counts, dtype=np.int64), below, above)


@pytest.mark.parametrize(
    ("indices", "counts", "message"),
    [
        ([1, 2], [1], r"shape \(2,\) and counts of shape \(1,\)"),
        ([-1], [1], "do not ascend within 0 to 2047"),
        ([2048], [1], "do not ascend within 0 to 2047"),
        ([5, 5], [1, 1], "do not ascend"),
        ([6, 5], [1, 1], "do not ascend"),
        ([5], [0], "reach from 0 to 0"),
        ([5, 6], [1, -1], "reach from -1 to 1"),
        ([5], [2**53 + 1], "not within 1 to 9007199254740992"),
    ],
)
def test_buckets_that_nobody_can_have_read_are_refused(indices: list[int], counts: list[int], message: str) -> None:
    """What comes over the wire is checked where it is taken in."""
    with pytest.raises(ValueError, match=message):
        _buckets(indices, counts)


@pytest.mark.parametrize(("below", "above"), [(-1, 0), (0, -1), (2**53 + 1, 0), (0, 2**53 + 1)])
def test_impossible_outsiders_are_refused(below: int, above: int) -> None:
    """Counts are not negative."""
    with pytest.raises(ValueError, match=f"{below} values below and {above} above"):
        _buckets([], [], below, above)


def test_a_negative_sum_is_refused() -> None:
    """Values in buckets are not negative."""
    with pytest.raises(ValueError, match="a sum of -1 ms"):
        HdrBuckets(np.array([1]), np.array([1]), sum_ms=-1)


def test_other_types_and_shapes_are_refused() -> None:
    """Only one-dimensional int64 arrays."""
    with pytest.raises(ValueError, match="indices are int32 and counts int64"):
        HdrBuckets(np.array([1], dtype=np.int32), np.array([1]))
    with pytest.raises(ValueError, match=r"shape \(1, 1\)"):
        HdrBuckets(np.array([[1]]), np.array([[1]]))


def test_a_read_holds_what_it_read() -> None:
    """Later writes change no earlier read."""
    counts = HdrCounts()
    counts.add([1, 2])
    read = counts.read()
    counts.add([1, 2, 3])
    counts.merge(read)
    assert read.counts.tolist() == [1, 1]
    assert counts.read().counts.tolist() == [3, 3, 1]


def test_reads_during_writes_see_whole_batches() -> None:
    """Any thread may read while one writes: each read is the state between two writes."""
    counts = HdrCounts()
    batch = np.arange(1000)
    seen: list[int] = []
    began = threading.Event()
    over = threading.Event()

    def write() -> None:
        began.wait(10)
        for _ in range(500):
            counts.add(batch)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    began.set()
    while not over.is_set():
        read = counts.read()
        assert read.total_count % 1000 == 0
        seen.append(read.total_count)
    writer.join(30)
    assert seen == sorted(seen)
    assert counts.read().total_count == 500_000


def test_the_module_needs_numpy_only() -> None:
    """A driver has no HdrHistogram package, and nothing else of ours is needed either."""
    program = (
        "import sys, streamgauge; before = set(sys.modules); import streamgauge.buckets; "
        "print(sorted(name for name in set(sys.modules) - before "
        "if name.split('.')[0] not in sys.stdlib_module_names | {'numpy'}))"
    )
    root = Path(__file__).parents[3]
    printed = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, check=True, text=True)
    assert printed.stdout.strip() == "['streamgauge.buckets']"


class WindowAgainstDeque(RuleBasedStateMachine):
    """The window holds what a bounded deque does, and tells the figures of a sorted list."""

    def __init__(self) -> None:
        super().__init__()
        self.window = ValueWindow(5)
        self.model: deque[int] = deque(maxlen=5)
        self.recorded = 0

    @rule(value=st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1))
    def record(self, value: int) -> None:
        self.window.record(value)
        self.model.append(value)
        self.recorded += 1

    @rule(values=st.lists(st.integers(0, 100), max_size=12))
    def record_all(self, values: list[int]) -> None:
        self.window.record_all(values)
        self.model.extend(values)
        self.recorded += len(values)

    @rule(value=st.integers(2**63, 2**65) | st.integers(-(2**65), -(2**63) - 1))
    def record_too_much(self, value: int) -> None:
        with pytest.raises(OverflowError):
            self.window.record(value)

    @rule(value=st.sampled_from([1.5, "1", None]))
    def record_no_integer(self, value: object) -> None:
        with pytest.raises(TypeError):
            self.window.record(value)  # type: ignore[arg-type]

    @invariant()
    def holds_the_last_values(self) -> None:
        assert sorted(self.window.values().tolist()) == sorted(self.model)
        assert self.window.count == self.recorded
        assert self.window.size == 5

    @invariant()
    def tells_least_and_greatest_exactly(self) -> None:
        told = self.window.statistics()
        assert (told.min, told.max) == ((min(self.model), max(self.model)) if self.model else (0, 0))


TestWindowAgainstDeque = WindowAgainstDeque.TestCase


def _percentile(ordered: list[int], percentile: float) -> float:
    """
    Commons Math's LEGACY estimate, written down from its documentation: position p · (n + 1) / 100.
    """
    position = percentile * (len(ordered) + 1) / 100
    if position < 1:
        return ordered[0]
    if position >= len(ordered):
        return ordered[-1]
    below = math.floor(position)
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


@given(st.lists(st.integers(-1000, 10_000_000), min_size=1, max_size=300))
def test_the_eleven_figures_equal_exact_ones_of_the_last_values(values: list[int]) -> None:
    """Percentiles as Flink's library has them, the standard deviation of a sample, over the last 128 values."""
    window = ValueWindow()
    window.record_all(values)
    last = sorted(values[-128:])
    told = window.statistics()
    assert (told.min, told.max) == (last[0], last[-1])
    assert told.mean == pytest.approx(statistics.fmean(last))
    assert told.stddev == pytest.approx(statistics.stdev(last) if len(last) > 1 else 0.0, abs=1e-6)
    expected = [_percentile(last, percentile) for percentile in (50, 75, 90, 95, 98, 99, 99.9)]
    assert [told.median, told.p75, told.p90, told.p95, told.p98, told.p99, told.p999] == pytest.approx(expected)
    assert window.count == len(values)


@given(
    st.lists(st.lists(st.integers(-10, 10) | st.integers(0, 100_000_000), max_size=128), min_size=1, max_size=8),
    st.integers(0, 3),
)
def test_windows_side_by_side_have_the_figures_that_they_have_alone(rows: list[list[int]], more: int) -> None:
    """To the bit, however long the others are; what stands behind a row's values means nothing."""
    width = max(map(len, rows)) + more
    windows = np.full((len(rows), width), 77, dtype=np.int64)
    for row, values in zip(windows, rows, strict=True):
        row[: len(values)] = values
    told = statistics_of_rows(windows, np.array([len(values) for values in rows]))
    for column, values in zip(told.T.tolist(), rows, strict=True):
        alone = statistics_of(np.array(values, dtype=np.int64))
        if values:
            assert column == [getattr(alone, name) for name in WindowStatistics.__slots__]
        else:
            assert all(math.isnan(figure) for figure in column)


@given(st.lists(st.integers(-1000, 10_000_000), min_size=1, max_size=200))
def test_percentiles_equal_numpys_to_the_bit(values: list[int]) -> None:
    """`numpy.percentile(…, method="weibull")`, which is what Flink's library computes."""
    told = statistics_of(np.array(values, dtype=np.int64))
    asked = (50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9)
    expected = np.percentile(np.array(values), asked, method="weibull").tolist()
    assert [told.median, told.p75, told.p90, told.p95, told.p98, told.p99, told.p999] == expected


def test_figures_of_one_to_hundred_are_known() -> None:
    """Worked by hand: p of 1 … 100 is p · 101 / 100, and no more than the greatest."""
    told = statistics_of(np.arange(1, 101))
    assert (told.min, told.max, told.mean) == (1, 100, 50.5)
    assert told.stddev == pytest.approx(math.sqrt(101 * 100 / 12))
    upper = [told.median, told.p75, told.p90, told.p95, told.p98, told.p99, told.p999]
    assert upper == pytest.approx([50.5, 75.75, 90.9, 95.95, 98.98, 99.99, 100.0])


def test_one_value_is_every_percentile_and_does_not_deviate() -> None:
    """Standard deviation 0 for one value."""
    window = ValueWindow()
    window.record(42)
    assert window.statistics() == WindowStatistics(42, 42, 42.0, 42.0, 0.0, 42.0, 42.0, 42.0, 42.0, 42.0, 42.0)


def test_of_no_value_the_integers_are_zero_and_the_rest_is_nan() -> None:
    """As Flink: NaN cast to a long is 0, and every double stays NaN."""
    told = ValueWindow().statistics()
    assert (told.min, told.max) == (0, 0)
    rest = [getattr(told, name) for name in WindowStatistics.__slots__ if name not in ("min", "max")]
    assert len(rest) == 9
    assert all(math.isnan(value) for value in rest)


def test_the_figures_have_the_names_that_flinks_rest_gives_them() -> None:
    """Eleven ids a histogram, no count."""
    assert WindowStatistics.__slots__ == (
        *("min", "max", "mean", "median", "stddev"),
        *("p75", "p90", "p95", "p98", "p99", "p999"),
    )


def test_the_window_keeps_128_values_by_default_and_never_grows() -> None:
    """Flink's metrics.latency.history-size; the ring is allocated once."""
    window = ValueWindow()
    assert window.size == 128
    before = sys.getsizeof(window._ring)
    window.record_all(range(1000))
    assert sys.getsizeof(window._ring) == before
    assert sorted(window.values().tolist()) == list(range(872, 1000))


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_window_is_refused(size: int) -> None:
    """The message tells the size."""
    with pytest.raises(ValueError, match=f"a window of {size} values, but at least 1"):
        ValueWindow(size)


def test_a_read_is_a_copy() -> None:
    """What was read does not change."""
    window = ValueWindow(2)
    window.record_all([1, 2])
    values = window.values()
    window.record_all([3, 4])
    assert values.tolist() == [1, 2]


def test_numpy_integers_may_be_recorded() -> None:
    """Whatever is an integer to Python."""
    window = ValueWindow(3)
    window.record_all(np.array([1, 2, 3], dtype=np.int32))
    assert window.values().tolist() == [1, 2, 3]


def test_reads_during_records_see_consecutive_values() -> None:
    """A read never blocks a record: each copy holds values that were the last ones at one moment."""
    window = ValueWindow(64)
    over = threading.Event()
    total = 200_000

    def write() -> None:
        for value in range(total):
            window.record(value)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        seen = sorted(window.values().tolist())
        assert len(seen) <= 64
        assert seen == [seen[0] + n for n in range(len(seen))]
    writer.join(30)
    assert sorted(window.values().tolist()) == list(range(total - 64, total))
