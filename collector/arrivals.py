"""Latency markers that arrived at a vertex between two looks: histograms of a run are cumulative, these are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from collector.histogram import Histogram, histogram, merge
from collector.store import VertexState
from streamgauge import wire
from streamgauge.buckets import BUCKET_COUNT, HdrBuckets


class Arrived(NamedTuple):
    """
    What arrived, from all sources together.

    Args:
        total: From when a marker was due to when it was through.
        queueing: Of it the wait for the micro-batch.
        processing: Of it the rest.
    """

    total: Histogram
    queueing: Histogram
    processing: Histogram

    @classmethod
    def of(cls, several: Iterable[Arrived]) -> Arrived:
        """Return what arrived at several places as one; any thread."""
        held = list(several)
        return cls(*(merge(getattr(one, part) for one in held) for part in cls._fields))


class Arrivals:
    """
    Remembers what one vertex had told at the last look. Not thread safe.

    A marker is counted where it leaves the vertex: at the last of its operators that has any.
    """

    def __init__(self) -> None:
        self._before: Mapping[tuple[str, str], wire.LatencyHistogram] | None = None
        self._run = ""

    def look(self, vertex: VertexState, run_id: str) -> Arrived | None:
        """
        Return what has arrived since the last look.

        Args:
            run_id: Of the job's run; each counts from 0.

        Returns:
            None at the first look: when that arrived which is there by then, nobody knows. And where none is emitted.
        """
        now = _leaving(vertex)
        before = self._before if run_id == self._run else ({} if self._before is not None else None)
        self._before, self._run = now, run_id
        if before is None or not now:
            return None
        # Where nothing arrived the very same object is held.
        changed = [(one, before.get(key)) for key, one in now.items() if before.get(key) is not one]
        return Arrived(*(merge(_difference(part, one, last) for one, last in changed) for part in Arrived._fields))


def _leaving(vertex: VertexState) -> dict[tuple[str, str], wire.LatencyHistogram]:
    """Return the histograms of the last operator that has any."""
    held = vertex.latencies.histograms
    for operator in reversed(vertex.vertex.operators):
        if found := {key: one for key, one in held.items() if key[0] == operator.id}:
            return found
    return {}


def _difference(part: str, now: wire.LatencyHistogram, before: wire.LatencyHistogram | None) -> Histogram:
    """Return what was counted since; all of it where it is less than before, for then it has begun anew."""
    told = histogram(getattr(now, part))
    if before is None:
        return told
    last = histogram(getattr(before, part)).buckets
    counts = np.zeros(BUCKET_COUNT, dtype=np.int64)
    counts[told.buckets.indices] = told.buckets.counts
    counts[last.indices] -= last.counts
    below, above = told.buckets.below - last.below, told.buckets.above - last.above
    sum_ms = told.buckets.sum_ms - last.sum_ms
    if min(below, above, sum_ms, int(counts.min())) < 0:
        return told
    indices = np.flatnonzero(counts).astype(np.int64, copy=False)
    return Histogram(HdrBuckets(indices, counts[indices], below, above, sum_ms))
