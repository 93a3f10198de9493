"""Whether the latencies of a vertex may come in: everything that they alone can tell."""

from __future__ import annotations

import numpy as np

from collector.checks import Checks, shown
from streamgauge import names, wire
from streamgauge.buckets import BUCKET_COUNT, HIGHEST_COUNTED_MS, MAX_COUNT
from streamgauge.errors import MalformedFrame

GREATEST_MS = 2**53
"""Of a statistic, either side of 0: what a float64 still tells to the millisecond."""

_STATISTICS = len(names.LATENCY_STATISTICS)


class LatencyAdmission(Checks):
    """
    Checks latencies and their histograms against the wire format and the limits.

    Holds no state but the limits: any thread.
    """

    def check(self, where: str, vertex: wire.VertexColumns) -> None:
        """
        Check the latencies of one vertex.

        Args:
            where: Names the vertex in messages.
            vertex: Its size is checked already.

        Raises:
            MalformedFrame: lengths, ids or numbers are not as `wire` says, or two tell of the same.
            FrameTooLarge: past a limit.
        """
        self._bound(where, "latencies", vertex.latencies)
        told: set[tuple[str, int, str]] = set()
        for latency in vertex.latencies:
            place = f"{where}: latency of source {shown(latency.source)}"
            self._whose(place, latency)
            self._operators(place, latency.operators)
            for operator in latency.operators:
                key = (latency.source, latency.source_subtask, operator)
                if key in told:
                    raise MalformedFrame(
                        f"{place}, subtask {latency.source_subtask}: operator {shown(operator)} is there twice, "
                        "expected once"
                    )
                told.add(key)
            self._window(place, latency, vertex.size)
        self._bound(where, "latencies", vertex.histograms)
        seen: set[tuple[str, str]] = set()
        for histogram in vertex.histograms:
            place = f"{where}: latency histogram of source {shown(histogram.source)}"
            self._id(place, "source", histogram.source)
            self._operators(place, histogram.operators)
            for operator in histogram.operators:
                if (histogram.source, operator) in seen:
                    raise MalformedFrame(f"{place}: operator {shown(operator)} is there twice, expected once")
                seen.add((histogram.source, operator))
            for part in ("total", "queueing", "processing"):
                _check_buckets(f"{place}: {part}", getattr(histogram, part))

    def _whose(self, where: str, latency: wire.Latency) -> None:
        if latency.source:
            self._id(where, "source", latency.source)
        greatest = self._limits.subtasks - 1 if latency.source else -1
        if not -1 <= latency.source_subtask <= greatest:
            raise MalformedFrame(
                f"{where}: source_subtask is {latency.source_subtask}, expected -1 to {greatest}: -1 stands for all of "
                "a source's subtasks, and for those of all sources"
            )

    def _operators(self, where: str, operators: tuple[str, ...]) -> None:
        self._bound(where, "operators", operators)
        for operator in operators:
            self._id(where, "operator", operator)

    def _window(self, where: str, latency: wire.Latency, size: int) -> None:
        for field, wanted in (("counts", size * 8), ("statistics", size * 8 * _STATISTICS)):
            data: bytes = getattr(latency, field)
            if len(data) != wanted:
                raise MalformedFrame(
                    f"{where}: {field} has {len(data)} bytes for {size} subtasks, expected {wanted}: 8 bytes a subtask "
                    f"and figure, of which the statistics have {_STATISTICS}"
                )
        if not size:
            return
        counts = np.frombuffer(latency.counts, dtype="<i8")
        if counts.min() < 0:
            raise MalformedFrame(f"{where}: {counts.min()} values recorded, expected 0 or more")
        recorded = np.frombuffer(latency.statistics, dtype="<f8").reshape(_STATISTICS, size)[:, counts > 0]
        # Written so that NaN is refused too.
        if not (np.abs(recorded) <= GREATEST_MS).all():
            raise MalformedFrame(
                f"{where}: a statistic of values that were recorded is no number of at most {GREATEST_MS} ms"
            )


def _check_buckets(where: str, told: wire.Buckets) -> None:
    filled, odd = divmod(len(told.indices), 2)
    if odd or len(told.counts) != 8 * filled:
        raise MalformedFrame(
            f"{where}: {len(told.indices)} bytes of indices and {len(told.counts)} of counts, expected 2 and 8 for "
            "each bucket"
        )
    for field in ("below", "above"):
        value: int = getattr(told, field)
        if not 0 <= value <= MAX_COUNT:
            raise MalformedFrame(f"{where}: {value} values {field}, expected 0 to {MAX_COUNT}")
    count = 0
    if filled:
        indices = np.frombuffer(told.indices, dtype="<u2").astype(np.int64)
        if indices[-1] >= BUCKET_COUNT or not (np.diff(indices) > 0).all():
            raise MalformedFrame(f"{where}: the buckets' indices do not ascend within 0 to {BUCKET_COUNT - 1}")
        counts = np.frombuffer(told.counts, dtype="<i8")
        if counts.min() < 1 or counts.max() > MAX_COUNT:
            raise MalformedFrame(
                f"{where}: the buckets' counts reach from {counts.min()} to {counts.max()}, expected 1 to {MAX_COUNT}"
            )
        # At most 2,048 counts of at most 2^53 are less than 2^64 and, as float64, near enough to tell.
        if counts.sum(dtype=np.float64) > MAX_COUNT:
            raise MalformedFrame(f"{where}: more than {MAX_COUNT} values in all buckets together")
        count = int(counts.sum())
    greatest = min(count * HIGHEST_COUNTED_MS, 2**63 - 1)
    if not 0 <= told.sum_ms <= greatest:
        raise MalformedFrame(
            f"{where}: the sum of {count} values is {told.sum_ms} ms, expected 0 to {greatest}: each is at most "
            f"{HIGHEST_COUNTED_MS} ms"
        )
