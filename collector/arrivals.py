"""Latency markers that arrived at a vertex between two looks: histograms of a run are cumulative, these are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from collector.histogram import Histogram, merge
from collector.store import VertexState
from streamgauge import wire
from streamgauge.buckets import BUCKET_COUNT, MAX_COUNT, HdrBuckets


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
        now = leaving(vertex)
        before = self._before if run_id == self._run else ({} if self._before is not None else None)
        self._before, self._run = now, run_id
        if before is None or not now:
            return None
        # Where nothing arrived the very same object is held.
        changed = [key for key, one in now.items() if before.get(key) is not one]
        told, last = [now[key] for key in changed], [before[key] for key in changed if key in before]
        return Arrived(*(_since(part, told, last) for part in Arrived._fields))


def leaving(vertex: VertexState) -> dict[tuple[str, str], wire.LatencyHistogram]:
    """
    Return the histograms of the last operator that has any: a marker is counted where it leaves the vertex.

    Returns:
        By operator and source, as in `Latencies.histograms`; empty where none is emitted. Any thread.
    """
    held = vertex.latencies.histograms
    for operator in reversed(vertex.vertex.operators):
        if found := {key: one for key, one in held.items() if key[0] == operator.id}:
            return found
    return {}


def _since(part: str, told: Sequence[wire.LatencyHistogram], last: Sequence[wire.LatencyHistogram]) -> Histogram:
    """Return what was counted since; all of it where it is less than before, for then it has begun anew."""
    counts = np.zeros(BUCKET_COUNT, dtype=np.int64)
    below = above = sum_ms = 0
    for sign, several in ((1, told), (-1, last)):
        for one in several:
            buckets: wire.Buckets = getattr(one, part)
            counts[np.frombuffer(buckets.indices, dtype="<u2")] += sign * np.frombuffer(buckets.counts, dtype="<i8")
            below += sign * buckets.below
            above += sign * buckets.above
            sum_ms += sign * buckets.sum_ms
    if last and min(below, above, sum_ms, int(counts.min())) < 0:
        return _since(part, told, ())
    indices = np.flatnonzero(counts).astype(np.int64, copy=False)
    found = np.minimum(counts[indices], MAX_COUNT)
    return Histogram(HdrBuckets(indices, found, min(below, MAX_COUNT), min(above, MAX_COUNT), sum_ms))
