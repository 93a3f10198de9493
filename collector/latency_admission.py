"""Whether the latencies of a vertex may come in: everything that they alone can tell."""

from __future__ import annotations

import numpy as np

from collector.bucket_admission import check_buckets
from collector.checks import Checks, shown
from streamgauge import names, wire
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
                check_buckets(f"{place}: {part}", getattr(histogram, part))

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
