"""What record taps tell of the splits of a stream, and what is distributed over all records or timers of a run."""

from __future__ import annotations

import msgspec

from streamgauge.wire.columns import Column
from streamgauge.wire.latencies import Buckets


class Tap(msgspec.Struct, frozen=True, array_like=True):
    """
    A tap of a vertex, with its splits.

    Args:
        name: The user's, redacted; unique in its job.
        operator: Id of the operator of the vertex whose splits these are: the source, or where the vertex has several
            or none, the tap itself.
        watermark_ms: Of all its splits together, Unix time; −2⁶³ before there is one, 2⁶³ − 1 at the end of input.
        idle: Whether all of its splits are.
        max_out_of_orderness_ms: By how much a watermark is behind the latest event time.
        idleness_ms: Without records for that long a split is idle; −1 for never.
        by_subtask: Whether split i is what subtask i reads.
        unwatched: Records of splits that the tap does not watch, for they are past its bound.
        splits: Their names, redacted; as many as every one of `columns` has values.
        columns: `names.SPLIT_…`, one value a split.
    """

    name: str
    operator: str
    watermark_ms: int
    idle: bool
    max_out_of_orderness_ms: int
    idleness_ms: int
    by_subtask: bool
    unwatched: int
    splits: tuple[str, ...]
    columns: tuple[Column, ...]


class Distribution(msgspec.Struct, frozen=True, array_like=True):
    """
    How a time is distributed over all records, or timers, of this run at an operator.

    Args:
        operator: Id of an operator of the vertex.
        metric: `names.DISTRIBUTIONS`, ms.
    """

    operator: str
    metric: str
    buckets: Buckets
