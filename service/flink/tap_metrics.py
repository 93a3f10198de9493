"""What taps and timers tell as metrics of an operator: Flink's gauges of each split, and histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collector.histogram import histogram
from collector.store import VertexState
from collector.taps import figures
from streamgauge import names, wire
from streamgauge.wire import Scalar

_DOUBLES = frozenset({names.SPLIT_ACTIVE_TIME, names.SPLIT_ACCUMULATED_ACTIVE_TIME})
"""Source: Flink 2.3, recorded answers: what is left of a split's time is a double, all else of it a long."""

PERCENTILES: Mapping[str, float] = {
    "median": 50.0,
    "p75": 75.0,
    "p90": 90.0,
    "p95": 95.0,
    "p98": 98.0,
    "p99": 99.0,
    "p999": 99.9,
}
"""Which of a histogram's statistics are percentiles."""


def gauges(vertex: VertexState) -> dict[str, dict[int, Scalar]]:
    """
    Return id without the subtask → subtask → value.

    The split of a subtask is that subtask's; any other, and a histogram, is subtask 0's, as it belongs to none. Where
    two taps have splits of one name at one operator, the first is told. Any thread.

    Source: Flink, `InternalSourceSplitMetricGroup`, seen on 2.3: `<operator>.split.<id>.watermark.currentWatermark`.
    """
    found: dict[str, dict[int, Scalar]] = {}
    for operator in vertex.vertex.operators:
        prefix = names.filtered(operator.name)
        for tap in vertex.taps.taps:
            if tap.operator == operator.id:
                for subtask, split, metric, value in split_gauges(vertex, tap):
                    name = f"{prefix}.{names.SPLIT}{names.filtered(split)}.{metric}"
                    found.setdefault(name, {}).setdefault(subtask, value)
        for metric in sorted(names.DISTRIBUTIONS):
            told = vertex.taps.distributions.get((operator.id, metric))
            for statistic, value in {} if told is None else statistics(told).items():
                found.setdefault(f"{prefix}.{metric}_{statistic}", {}).setdefault(0, value)
    return found


def split_gauges(vertex: VertexState, tap: wire.Tap) -> Iterator[tuple[int, str, str, bool | int | float]]:
    """
    Yield (subtask, split, metric, value) of a tap; any thread.

    Of a stream that is not parted there is nothing: its one split has no name, and so would have no id.
    """
    for metric, values in figures(tap).items():
        for place, value in enumerate(values):
            if value is not None and tap.splits[place]:
                subtask = place if tap.by_subtask and place < vertex.size else 0
                yield subtask, tap.splits[place], metric, _java(metric, value)


def statistics(told: wire.Buckets) -> dict[str, int | float]:
    """
    Return a histogram's statistics by `names.LATENCY_STATISTICS`, ms; none of no value. Any thread.

    They are of the whole run: where Flink looks at the latest values, nothing is forgotten here.
    """
    read = histogram(told)
    least, greatest, mean, deviation = read.min_ms, read.max_ms, read.mean_ms, read.stddev_ms
    percentiles = read.percentiles_ms(list(PERCENTILES.values()))
    if least is None or greatest is None or mean is None or deviation is None or percentiles is None:
        return {}
    found = {"min": least, "max": greatest, "mean": mean, "stddev": deviation}
    found |= {name: float(value) for name, value in zip(PERCENTILES, percentiles, strict=True)}
    return {name: found[name] for name in names.LATENCY_STATISTICS}


def _java(metric: str, value: int | float) -> bool | int | float:
    if metric == names.SPLIT_IDLE:
        return bool(value)
    return float(value) if metric in _DOUBLES else value
