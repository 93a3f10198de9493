"""Latencies of markers, and the buckets of what is distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from streamgauge.buckets import HdrBuckets

LatencyGranularity = Literal["single", "operator", "subtask"]
"""
What latencies are told apart by, beside the operator and its subtask: nothing, the source, or the source's subtask too.

Source: Flink, `metrics.latency.granularity`.
"""


class Latency(msgspec.Struct, frozen=True, array_like=True):
    """
    The latest latencies of markers at operators of a vertex that all see the same ones, subtask by subtask.

    Args:
        source: Id of the source vertex that emitted them; '' for those of all sources together.
        source_subtask: The one that emitted them; −1 for those of all of them together.
        operators: Ids of operators of the vertex.
        counts: int64, values recorded in the run, one a subtask.
        statistics: float64, `names.LATENCY_STATISTICS` one after the other, each one value a subtask, ms; NaN where
            the count is 0.
    """

    source: str
    source_subtask: int
    operators: tuple[str, ...]
    counts: bytes
    statistics: bytes


class Buckets(msgspec.Struct, frozen=True, array_like=True):
    """
    An HDR histogram's buckets that are not empty; see `streamgauge.buckets` for the layout.

    Args:
        indices: uint16, ascending.
        counts: int64, each at least 1, of as many buckets.
        below, above: Values that no bucket takes.
        sum_ms: Of the values that are in buckets.
    """

    indices: bytes
    counts: bytes
    below: int = 0
    above: int = 0
    sum_ms: int = 0

    @classmethod
    def of(cls, read: HdrBuckets) -> Buckets:
        """Return what was read from a histogram, as it travels. Any thread."""
        indices, counts = read.indices.astype("<u2").tobytes(), read.counts.astype("<i8").tobytes()
        return cls(indices, counts, read.below, read.above, read.sum_ms)


class LatencyHistogram(msgspec.Struct, frozen=True, array_like=True):
    """
    All latencies of one source's markers in this run at operators of a vertex that all see the same ones.

    Args:
        source: Id of the source vertex that emitted them.
        operators: Ids of operators of the vertex.
        total: From when a marker was due to when it arrived.
        queueing: Of this, until the micro-batch began that carried it.
        processing: The rest.
    """

    source: str
    operators: tuple[str, ...]
    total: Buckets
    queueing: Buckets
    processing: Buckets
