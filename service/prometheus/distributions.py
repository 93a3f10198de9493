"""Distributions over records and timers in both expositions: histograms of the run, and summaries as of Flink's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from collector.histogram import BOUNDS_MS, histogram
from collector.store import VertexState
from service.flink.tap_metrics import statistics
from service.prometheus.blocks import Blocks
from service.prometheus.labels import Around, around
from service.prometheus.text import Exposition, Lines, histogram_lines, summary_lines
from streamgauge import names, wire

TAIL = " Values past the last bound are in +Inf; those past 70 minutes are not in the sum."
"""What every histogram's help ends in."""

_BOUNDS_SECONDS = tuple(bound / 1_000 for bound in BOUNDS_MS)
SERIES = len(BOUNDS_MS) + 3
"""Of a histogram: a series for each bound, +Inf, count and sum."""

QUANTILES = ((0.5, "median"), (0.75, "p75"), (0.95, "p95"), (0.98, "p98"), (0.99, "p99"), (0.999, "p999"))
"""Of a summary, and the statistic of each. Source: Flink's Prometheus reporter, seen on 2.3."""


@dataclass(frozen=True, slots=True)
class DistributionFamily:
    """A family of histograms in /metrics."""

    name: str
    help: str


FAMILIES: Mapping[str, DistributionFamily] = {
    names.TIMER_LATENESS: DistributionFamily(
        "streamgauge_operator_timer_lateness_seconds",
        "Time from when a timer was due to when it fired, in this run." + TAIL,
    ),
    names.RECORD_LATENCY: DistributionFamily(
        "streamgauge_tap_record_latency_seconds",
        "Time from when a record was made to the end of its micro-batch, in this run." + TAIL,
    ),
    names.RECORD_QUEUEING: DistributionFamily(
        "streamgauge_tap_record_queueing_seconds",
        "Of the latency of a record, the time until its micro-batch's trigger." + TAIL,
    ),
}
"""Metric of the catalogue → family."""


def bucket_lines(name: str, told: wire.Buckets) -> Lines:
    """
    Return the samples of a histogram of a family of seconds, their labels left out; any thread.

    Negative values are in every bucket, as they are below every bound.
    """
    read = histogram(told)
    below, above = read.buckets.below, read.buckets.above
    buckets = zip(_BOUNDS_SECONDS, [below + count for count in read.counts_up_to(BOUNDS_MS)], strict=True)
    return histogram_lines(name, buckets, below + read.count + above, read.buckets.sum_ms / 1_000)


def expose_distributions(exposition: Exposition, vertex: VertexState, whose: Mapping[str, str], blocks: Blocks) -> None:
    """
    Add a vertex' distributions: one for each operator and metric, none by subtask.

    Args:
        whose: Labels of the vertex.
    """
    called = {operator.id: operator.name for operator in vertex.vertex.operators}
    for (operator, metric), told in vertex.taps.distributions.items():
        family = FAMILIES[metric]
        pairs = {**whose, "operator_name": called[operator]}
        own = blocks.get((metric, *whose.values(), operator), pairs, partial(around, pairs, "le"))
        exposition.add_block(family.name, "histogram", family.help, own, bucket_lines(family.name, told))


def expose_distribution_summaries(
    exposition: Exposition, scope: str, vertex: VertexState, operator: str, task: Around
) -> None:
    """
    Add the distributions of an operator as Flink's reporter tells histograms: as summaries, ms; none of no value.

    Args:
        scope: The operator's, in front of the names.
        operator: Its id.
        task: Labels of the operator in subtask 0, to which they are put, as they belong to none.
    """
    for (whose, metric), told in vertex.taps.distributions.items():
        figures = statistics(told) if whose == operator else {}
        if figures:
            name = f"flink_{scope}_{metric}"
            quantiles = ((rank, figures[statistic]) for rank, statistic in QUANTILES)
            lines = summary_lines(name, quantiles, histogram(told).count)
            exposition.add_block(name, "summary", f"{metric} (scope: {scope})", task, lines)
