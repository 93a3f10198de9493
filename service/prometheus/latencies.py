"""Latencies in both expositions: of a whole run as histograms, of the latest values as the summaries of Flink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.latencies import LatencyKey, LatencyWindow
from collector.store import JobState, VertexState
from service.flink.latency_metrics import windows
from service.prometheus.distributions import QUANTILES, TAIL, bucket_lines
from service.prometheus.text import Exposition, labels, summary_lines
from streamgauge import names


@dataclass(frozen=True, slots=True)
class LatencyFamily:
    """
    A family of latency histograms in /metrics.

    Args:
        part: Of `wire.LatencyHistogram`.
    """

    name: str
    part: str
    help: str


FAMILIES = (
    LatencyFamily(
        "streamgauge_latency_seconds",
        "total",
        "Time from when a latency marker was due at its source to when it reached the operator, in this run." + TAIL,
    ),
    LatencyFamily(
        "streamgauge_latency_queueing_seconds",
        "queueing",
        "Of the latency, the time until the micro-batch began that carried the marker." + TAIL,
    ),
    LatencyFamily(
        "streamgauge_latency_processing_seconds",
        "processing",
        "Of the latency, the time from when that micro-batch began." + TAIL,
    ),
)

_RANKS = tuple(rank for rank, _ in QUANTILES)
_ROWS = [names.LATENCY_STATISTICS.index(name) for _, name in QUANTILES]


def expose_histograms(exposition: Exposition, job: JobState, vertex: VertexState, whose: Mapping[str, str]) -> None:
    """
    Add a vertex' histograms: one for each source and operator, none by subtask.

    Args:
        whose: Labels of the vertex.
    """
    called = {operator.id: operator.name for operator in vertex.vertex.operators}
    # Operators that see the same markers share a histogram: what it tells is written once.
    known: dict[int, tuple[str, ...]] = {}
    for (operator, source), one in vertex.latencies.histograms.items():
        if id(one) not in known:
            known[id(one)] = tuple(bucket_lines(family.name, getattr(one, family.part)) for family in FAMILIES)
        emitter = job.vertices.get(source)
        pairs = labels(
            {
                **whose,
                "source_id": source,
                "source_name": "" if emitter is None else emitter.vertex.name,
                "operator_name": called[operator],
            }
        )
        for family, lines in zip(FAMILIES, known[id(one)], strict=True):
            exposition.add_block(family.name, "histogram", family.help, pairs, lines)


def expose_summaries(exposition: Exposition, job: JobState, vertex: VertexState, tasks: Sequence[str]) -> None:
    """
    Add what Flink's reporter tells of a vertex' latencies: a summary for each subtask that has recorded any, ms.

    Args:
        tasks: Labels of each subtask.

    Source: Flink 2.3's `PrometheusReporter`; its name and labels follow from the granularity that is set.
    """
    known: dict[int, dict[int, str]] = {}
    for key, window in windows(vertex, job.job.latency):
        scope, pairs = _scope(key)
        name = f"flink_taskmanager_job_task_{scope}_{names.LATENCY}"
        help_text = f"{names.LATENCY} (scope: taskmanager_job_task_{scope})"
        if id(window) not in known:
            known[id(window)] = _summaries(name, window)
        for subtask, lines in known[id(window)].items():
            whose = f'{tasks[subtask]},{pairs},operator_subtask_index="{subtask}"'
            exposition.add_block(name, "summary", help_text, whose, lines)


def _summaries(name: str, window: LatencyWindow) -> dict[int, str]:
    counts, quantiles = window.counts.tolist(), window.statistics[_ROWS].T.tolist()
    return {
        subtask: summary_lines(name, zip(_RANKS, quantiles[subtask], strict=True), counts[subtask])
        for subtask in window.counts.nonzero()[0].tolist()
    }


def _scope(key: LatencyKey) -> tuple[str, str]:
    """Return what the groups make of the name, and the labels that they add but for the operator's subtask."""
    groups: dict[str, str] = {}
    if key.source:
        groups["source_id"] = key.source
    if key.source_subtask >= 0:
        groups["source_subtask_index"] = str(key.source_subtask)
    groups["operator_id"] = key.operator
    return "_".join([names.LATENCY, *groups, "operator_subtask_index"]), labels(groups)
