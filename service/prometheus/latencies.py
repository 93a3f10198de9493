"""Latencies in both expositions: of a whole run as histograms, of the latest values as the summaries of Flink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from collector.latencies import LatencyKey, LatencyWindow
from collector.store import JobState, VertexState
from service.flink.latency_metrics import windows
from service.prometheus.blocks import Blocks
from service.prometheus.distributions import QUANTILES, TAIL, bucket_lines
from service.prometheus.labels import Around, around, pair
from service.prometheus.tasks import Task
from service.prometheus.text import Exposition, Lines, summary_lines
from streamgauge import names, wire


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


def expose_histograms(
    exposition: Exposition, job: JobState, vertex: VertexState, whose: Mapping[str, str], blocks: Blocks
) -> None:
    """
    Add a vertex' histograms: one for each source and operator, none by subtask.

    Args:
        whose: Labels of the vertex.
    """
    called = {operator.id: operator.name for operator in vertex.vertex.operators}
    for (operator, source), one in vertex.latencies.histograms.items():
        emitter = job.vertices.get(source)
        pairs = {
            **whose,
            "source_id": source,
            "source_name": "" if emitter is None else emitter.vertex.name,
            "operator_name": called[operator],
        }
        own = blocks.get(("latency", *whose.values(), operator, source), pairs, partial(around, pairs, "le"))
        # Operators that see the same markers share a histogram: what it tells is written once.
        lines = blocks.get(("histogram", id(one)), one, partial(_histograms, one))
        for family, told in zip(FAMILIES, lines, strict=True):
            exposition.add_block(family.name, "histogram", family.help, own, told)


def _histograms(one: wire.LatencyHistogram) -> list[Lines]:
    return [bucket_lines(family.name, getattr(one, family.part)) for family in FAMILIES]


def expose_summaries(
    exposition: Exposition, job: JobState, vertex: VertexState, tasks: Sequence[Task], blocks: Blocks
) -> None:
    """
    Add what Flink's reporter tells of a vertex' latencies: a summary for each subtask that has recorded any, ms.

    Args:
        tasks: Labels of each subtask.

    Source: Flink 2.3's `PrometheusReporter`; its name and labels follow from the granularity that is set.
    """
    known: dict[int, dict[int, Lines]] = {}
    for key, window in windows(vertex, job.job.latency):
        groups = {"source_id": bool(key.source), "source_subtask_index": key.source_subtask >= 0}
        told = [group for group, is_told in groups.items() if is_told]
        scope = "_".join([names.LATENCY, *told, "operator_id", "operator_subtask_index"])
        name = f"flink_taskmanager_job_task_{scope}_{names.LATENCY}"
        help_text = f"{names.LATENCY} (scope: taskmanager_job_task_{scope})"
        own = blocks.get((job.job.jid, vertex.vertex.id, key), tasks, partial(_around, key, tasks))
        if id(window) not in known:
            known[id(window)] = _summaries(name, window)
        for subtask, lines in known[id(window)].items():
            exposition.add_block(name, "summary", help_text, own[subtask], lines)


def summary_series(job: JobState, vertex: VertexState) -> int:
    """Return how many series `expose_summaries` adds, at most."""
    recorded = sum(int(np.count_nonzero(window.counts)) for _, window in windows(vertex, job.job.latency))
    return (len(QUANTILES) + 1) * recorded


def _summaries(name: str, window: LatencyWindow) -> dict[int, Lines]:
    counts, quantiles = window.counts.tolist(), window.statistics[_ROWS].T.tolist()
    found = {}
    for subtask in window.counts.nonzero()[0].tolist():
        # OpenMetrics knows no quantile below 0.
        told = [(rank, value) for rank, value in zip(_RANKS, quantiles[subtask], strict=True) if not value < 0]
        found[subtask] = summary_lines(name, told, counts[subtask])
    return found


def _around(key: LatencyKey, tasks: Sequence[Task]) -> list[Around]:
    """Return each subtask's labels around `quantile`."""
    lower = pair("operator_id", key.operator)
    upper = [pair("source_id", key.source)] if key.source else []
    if key.source_subtask >= 0:
        upper.append(pair("source_subtask_index", str(key.source_subtask)))
    found = []
    for index, task in enumerate(tasks):
        before = f'{task.head},{lower},operator_subtask_index="{index}"'
        after = ",".join([*upper, task.tail])
        found.append(Around(f"{before},", f",{after}", f"{before},{after}"))
    return found
