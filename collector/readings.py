"""What a vertex and a job are at one moment, a number for each figure: what a history is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from collector import columns
from collector.arrivals import Arrived
from collector.histogram import Histogram
from collector.store import Column, JobState, VertexState
from streamgauge import names

Floats = npt.NDArray[np.float64]
_Reading = Callable[[Floats], float]

_MAX, _MEAN, _SKEW = ".max", ".avg", ".skew"
"""Behind a metric's name where it is not the subtasks' sum that is told."""
_RECORDS_IN, _RECORDS_OUT = names.NUM_RECORDS_IN + names.PER_SECOND, names.NUM_RECORDS_OUT + names.PER_SECOND
_LATE = names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND
_LATENCIES = {
    "total": {f"{names.LATENCY}.p{share}": share for share in (50, 95, 99)},
    "queueing": {"queueing.p99": 99},
    "processing": {"processing.p99": 99},
}
"""Part of what arrived → figure → percentile."""
_LATENCY_FIGURES = tuple(figure for figures in _LATENCIES.values() for figure in figures)


def _sum(values: Floats) -> float:
    return float(values.sum())


def _max(values: Floats) -> float:
    return float(values.max())


def _mean(values: Floats) -> float:
    return float(values.mean())


def _skew(values: Floats) -> float:
    found = columns.summarize(values)
    return math.nan if found is None else found.skew


_OF_VERTEX: dict[str, tuple[str, _Reading]] = {
    _RECORDS_IN: (_RECORDS_IN, _sum),
    _RECORDS_OUT: (_RECORDS_OUT, _sum),
    _RECORDS_IN + _SKEW: (_RECORDS_IN, _skew),
    names.NUM_BYTES_IN + names.PER_SECOND: (names.NUM_BYTES_IN + names.PER_SECOND, _sum),
    names.NUM_BYTES_OUT + names.PER_SECOND: (names.NUM_BYTES_OUT + names.PER_SECOND, _sum),
    names.BUSY_TIME + _MAX: (names.BUSY_TIME, _max),
    names.BUSY_TIME + _MEAN: (names.BUSY_TIME, _mean),
    names.BACK_PRESSURED_TIME + _MAX: (names.BACK_PRESSURED_TIME, _max),
    names.BACK_PRESSURED_TIME + _MEAN: (names.BACK_PRESSURED_TIME, _mean),
    names.IDLE_TIME + _MEAN: (names.IDLE_TIME, _mean),
    names.IN_POOL_USAGE + _MAX: (names.INPUT_BUFFERS + names.IN_POOL_USAGE, _max),
    names.OUT_POOL_USAGE + _MAX: (names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE, _max),
    names.INPUT_QUEUE_LENGTH: (names.INPUT_BUFFERS + names.INPUT_QUEUE_LENGTH, _sum),
    names.OUTPUT_QUEUE_LENGTH: (names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH, _sum),
}
"""Figure → column of the vertex, and what is made of its subtasks."""

_OF_OPERATORS: dict[str, _Reading] = {
    names.PENDING_RECORDS: _sum,
    names.UNREAD_FILES: _sum,
    names.WATERMARK_LAG: _max,
    _LATE: _sum,
    names.NUM_STATE_ROWS: _sum,
    names.STATE_MEMORY_USED: _sum,
    names.NUM_PENDING_TIMERS: _sum,
    names.NUM_FIRED_TIMERS + names.PER_SECOND: _sum,
}
"""Metric of operators → what is made of the subtasks of all of them."""

_OF_JOB = (
    names.BACKLOGGED,
    names.BACKLOG_ROWS,
    names.BACKLOG_TIME,
    names.KEEP_UP_RATIO,
    names.LAST_CHECKPOINT_DURATION,
    names.LAST_CHECKPOINT_SIZE,
    names.TRIGGER_INTERVAL,
)
"""The job's own metrics."""

_OF_ALL: dict[str, _Reading] = {
    names.BUSY_TIME + _MAX: _max,
    names.BACK_PRESSURED_TIME + _MAX: _max,
    names.WATERMARK_LAG: _max,
    names.PENDING_RECORDS: _sum,
    _LATE: _sum,
    names.NUM_STATE_ROWS: _sum,
    names.STATE_MEMORY_USED: _sum,
}
"""Figure of vertices → what is made of all of them."""

VERTEX_FIGURES = (*_OF_VERTEX, *_OF_OPERATORS, *_LATENCY_FIGURES)
"""
Figures of a vertex: a metric's name is its sum over the subtasks, behind a dot stands what else is made of them.
Latencies, ms, are percentiles of the markers that have arrived since the figures before.
"""

JOB_FIGURES = (_RECORDS_IN, _RECORDS_OUT, *_OF_JOB, *_OF_ALL, *_LATENCY_FIGURES)
"""
Figures of a job: its own metrics; records are those of its sources and of its sinks, latencies those of its sinks;
the rest is of all its vertices together.
"""


def read_vertex(vertex: VertexState, arrived: Arrived | None) -> dict[str, float]:
    """
    Return the figures of a vertex that are known, by VERTEX_FIGURES; any thread.

    Args:
        arrived: Markers since the figures before; None where nobody knows.
    """
    found: dict[str, float] = {}
    for figure, (metric, made) in _OF_VERTEX.items():
        _put(found, figure, made, [vertex.columns.get(metric)])
    for metric, made in _OF_OPERATORS.items():
        _put(found, metric, made, [told.get(metric) for told in vertex.operators.values()])
    return found | _latencies(arrived)


def read_job(state: JobState, vertices: Mapping[str, Mapping[str, float]], arrived: Arrived | None) -> dict[str, float]:
    """
    Return the figures of a job that are known, by JOB_FIGURES; any thread.

    Args:
        vertices: Of each vertex of its latest plan, by id, what `read_vertex` returned.
        arrived: Markers at its sinks since the figures before; None where nobody knows.
    """
    found: dict[str, float] = {}
    ends = {
        _RECORDS_IN: [read for vertex, read in vertices.items() if state.vertices[vertex].vertex.is_source],
        _RECORDS_OUT: [read for vertex, read in vertices.items() if not state.vertices[vertex].feeds],
    }
    for figure, reads in ends.items():
        _gather(found, figure, _sum, reads)
    for metric in _OF_JOB:
        value = state.job.metrics.get(metric)
        if isinstance(value, int | float):
            found[metric] = float(value)
    for figure, made in _OF_ALL.items():
        _gather(found, figure, made, vertices.values())
    return found | _latencies(arrived)


def _put(found: dict[str, float], figure: str, made: _Reading, told: Iterable[Column | None]) -> None:
    """Put in what is made of the subtasks' values, where there are any that are numbers."""
    parts = [columns.values(column) for column in told if column is not None]
    if not parts:
        return
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if not values.size:
        return
    value = made(values)
    if not math.isfinite(value):
        values = values[np.isfinite(values)]
        if not values.size:
            return
        value = made(values)
    found[figure] = value


def _gather(found: dict[str, float], figure: str, made: _Reading, vertices: Iterable[Mapping[str, float]]) -> None:
    told = [read[figure] for read in vertices if figure in read]
    if told:
        found[figure] = made(np.array(told))


def _latencies(arrived: Arrived | None) -> dict[str, float]:
    return {} if arrived is None else dict(_percentiles(arrived))


def _percentiles(arrived: Arrived) -> Iterator[tuple[str, float]]:
    for part, figures in _LATENCIES.items():
        one: Histogram = getattr(arrived, part)
        told = one.percentiles_ms(list(figures.values()))
        if told is not None:
            yield from zip(figures, map(float, told), strict=True)
