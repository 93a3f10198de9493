"""The latencies of one vertex, as they are held: windows of the latest values and histograms of all."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from collector.checks import shown
from streamgauge import names, wire
from streamgauge.errors import MalformedFrame

_FIGURES = 1 + len(names.LATENCY_STATISTICS)


class LatencyKey(NamedTuple):
    """
    Where latencies were recorded, and of which markers.

    Args:
        operator: Id of an operator of the vertex.
        source: Id of the source vertex; '' for all sources together.
        source_subtask: −1 for all of them together.
    """

    operator: str
    source: str
    source_subtask: int


@dataclass(frozen=True, slots=True)
class LatencyWindow:
    """
    The latest latencies at an operator, subtask by subtask; read-only arrays.

    Args:
        counts: int64, shape (size,): values recorded in the run.
        statistics: float64, shape (11, size), ms, rows as in `names.LATENCY_STATISTICS`; meaningless where the
            count is 0.
    """

    counts: npt.NDArray[np.int64]
    statistics: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Latencies:
    """
    What is held of a vertex.

    Args:
        windows: Operators that see the same markers share one window.
        histograms: (operator's id, source vertex' id) → histogram, shared likewise. As it travelled: 10 bytes a bucket.
        series: Values held, and keys by which they are found.

    Any thread, since nobody changes it once it is made.
    """

    windows: Mapping[LatencyKey, LatencyWindow] = field(default_factory=dict)
    histograms: Mapping[tuple[str, str], wire.LatencyHistogram] = field(default_factory=dict)
    series: int = 0

    def after(
        self, where: str, figures: wire.VertexColumns, operators: Container[str], vertices: Container[str]
    ) -> Latencies:
        """
        Return what is held after admitted figures of the vertex: what they tell stands in place of what was there.

        Args:
            where: Names the vertex in messages.
            operators: Ids of the vertex' operators.
            vertices: Ids of the job's vertices.

        Raises:
            MalformedFrame: an operator or a source is not in the plan.
        """
        if not (figures.latencies or figures.histograms):
            return self
        windows, histograms = dict(self.windows), dict(self.histograms)
        for latency in figures.latencies:
            _check_known(where, latency.operators, operators, latency.source, vertices)
            window = LatencyWindow(
                np.frombuffer(latency.counts, dtype="<i8"),
                np.frombuffer(latency.statistics, dtype="<f8").reshape(len(names.LATENCY_STATISTICS), -1),
            )
            for operator in latency.operators:
                windows[LatencyKey(operator, latency.source, latency.source_subtask)] = window
        for histogram in figures.histograms:
            _check_known(where, histogram.operators, operators, histogram.source, vertices)
            for operator in histogram.operators:
                histograms[operator, histogram.source] = histogram
        return _counted(windows, histograms)

    def within(self, operators: Container[str], vertices: Container[str]) -> Latencies:
        """Return what is held of these operators and sources, when a plan no longer has the others."""
        windows = {
            key: window
            for key, window in self.windows.items()
            if key.operator in operators and (not key.source or key.source in vertices)
        }
        histograms = {key: one for key, one in self.histograms.items() if key[0] in operators and key[1] in vertices}
        if len(windows) == len(self.windows) and len(histograms) == len(self.histograms):
            return self
        return _counted(windows, histograms)

    def check_size(self, where: str, before: int, size: int) -> None:
        """
        Check that every window has the vertex' new size.

        Raises:
            MalformedFrame: one has not.
        """
        for key, window in self.windows.items():
            if len(window.counts) != size:
                raise MalformedFrame(
                    f"{where}: size changed from {before} to {size}, but latencies of operator {shown(key.operator)} "
                    "were not sent: send them with every column of a vertex whose size changes"
                )


def _check_known(
    where: str, told: tuple[str, ...], operators: Container[str], source: str, vertices: Container[str]
) -> None:
    for operator in told:
        if operator not in operators:
            raise MalformedFrame(
                f"{where}: operator {shown(operator)} of a latency is not in the vertex's plan: send the plan with the "
                "first frame that names a new operator"
            )
    if source and source not in vertices:
        raise MalformedFrame(
            f"{where}: source {shown(source)} of a latency is not in the job's plan: send the plan with the first "
            "frame that names a new vertex"
        )


def _counted(
    windows: dict[LatencyKey, LatencyWindow], histograms: dict[tuple[str, str], wire.LatencyHistogram]
) -> Latencies:
    found = Latencies(windows, histograms)
    series = len(windows) + len(histograms)
    series += _FIGURES * sum(len(window.counts) for window in {id(one): one for one in windows.values()}.values())
    for histogram in {id(one): one for one in histograms.values()}.values():
        for buckets in (histogram.total, histogram.queueing, histogram.processing):
            # Each has a count of those below, of those above and a sum, too.
            series += len(buckets.indices) // 2 + 3
    return replace(found, series=series)
