"""How a time is distributed, as bodies tell it: percentiles, and counts for a heat map."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict

from collector.histogram import BOUNDS_MS, Histogram, histogram, merge
from streamgauge import wire

_PERCENTILES = (50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9)


class OutOfRange(TypedDict):
    """How many values no bucket takes: negative ones, and those past 70 minutes."""

    below: int
    above: int


Distribution = TypedDict(
    "Distribution",
    {
        "count": int,
        "min-ms": int | None,
        "max-ms": int | None,
        "mean-ms": float | None,
        "p50-ms": int | None,
        "p75-ms": int | None,
        "p90-ms": int | None,
        "p95-ms": int | None,
        "p98-ms": int | None,
        "p99-ms": int | None,
        "p999-ms": int | None,
        "buckets": list[int],
        "out-of-range": OutOfRange,
        "hdr": str,
    },
)
"""
A histogram of the run. `buckets` has how many values are up to each of `bounds-ms`, past the one before, and last how
many are past all; `out-of-range` are apart. `hdr` is HdrHistogram's V2 encoding. Of no value the figures are null.
"""


class Parts(TypedDict):
    """How many markers arrived, how long they took, and of it how long they waited for their micro-batch."""

    markers: int
    latency: Distribution
    queueing: Distribution
    processing: Distribution


def parts(several: Sequence[wire.LatencyHistogram]) -> Parts:
    """Return histograms of different operators as one; any thread."""
    total = merge(histogram(one.total) for one in several)
    return {
        "markers": total.count + total.buckets.below + total.buckets.above,
        "latency": distribution(total),
        "queueing": distribution(merge(histogram(one.queueing) for one in several)),
        "processing": distribution(merge(histogram(one.processing) for one in several)),
    }


def distribution(one: Histogram) -> Distribution:
    """Return a histogram as bodies tell it; any thread."""
    known: Sequence[int | None] = one.percentiles_ms(_PERCENTILES) or [None] * len(_PERCENTILES)
    p50, p75, p90, p95, p98, p99, p999 = known
    up_to = [*one.counts_up_to(BOUNDS_MS), one.count]
    return {
        "count": one.count,
        "min-ms": one.min_ms,
        "max-ms": one.max_ms,
        "mean-ms": one.mean_ms,
        "p50-ms": p50,
        "p75-ms": p75,
        "p90-ms": p90,
        "p95-ms": p95,
        "p98-ms": p98,
        "p99-ms": p99,
        "p999-ms": p999,
        "buckets": [upper - lower for lower, upper in zip([0, *up_to], up_to, strict=False)],
        "out-of-range": {"below": one.buckets.below, "above": one.buckets.above},
        "hdr": one.encoded(),
    }
