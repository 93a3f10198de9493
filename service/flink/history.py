"""
The last 15 minutes: /jobs/:jobid/history, …/vertices/:vertexid/history and /jobs/history, ours in Flink's manner.

`get` chooses figures, `since` (Unix ms) leaves out what the asker has: `timestamps` of the answer before, the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from collector.histogram import BOUNDS_MS
from collector.history import SAMPLE_INTERVAL_MS, Course
from service.flink.ids import Id
from service.flink.jobs import in_order
from service.flink.query import Query

HEAT = "latency-heat"
"""What `get` calls the heat map of latencies."""


class Series(TypedDict):
    """A figure at each of `timestamps`; null where it was not known."""

    id: str
    values: list[float | None]


JobHistory = TypedDict("JobHistory", {"now": int, "interval-ms": int, "timestamps": list[int], "series": list[Series]})
"""Oldest first; a figure that was never known is left out, as is a moment at which nobody knew anything."""

Heat = TypedDict("Heat", {"timestamps": list[int], "bounds-ms": list[int], "counts": list[list[int]]})
"""
For each of `timestamps` how many markers left the vertex since the one before: up to each of `bounds-ms`, past the
bound before it, and last past all.
"""

VertexHistory = TypedDict(
    "VertexHistory",
    {"now": int, "interval-ms": int, "timestamps": list[int], "series": list[Series], "latency-heat": Heat | None},
)
"""As of a job; `latency-heat` is null where it was not asked for, and where no marker has been seen to arrive."""


class JobSeries(TypedDict):
    """As in the history of a job."""

    id: Id
    timestamps: list[int]
    series: list[Series]


JobsHistory = TypedDict("JobsHistory", {"now": int, "interval-ms": int, "jobs": list[JobSeries]})
"""Of every job that has any history, in the order of /jobs."""


def job(query: Query) -> JobHistory:
    """
    Answer /jobs/:jobid/history.

    Raises:
        UnknownJob: never seen, or evicted.
        UnresolvableParameter: `since` is no Java long.
    """
    query.job()
    course = query.course(query.since_ms())
    return {"now": query.now_ms, "interval-ms": SAMPLE_INTERVAL_MS, **_body(course, query.metrics())}


def vertex(query: Query) -> VertexHistory:
    """
    Answer …/vertices/:vertexid/history.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
        UnresolvableParameter: `since` is no Java long.
    """
    state, since_ms, asked = query.job_vertex(), query.since_ms(), query.metrics()
    heat = query.heat(state.vertex.id, since_ms) if asked is None or HEAT in asked else None
    return {
        "now": query.now_ms,
        "interval-ms": SAMPLE_INTERVAL_MS,
        **_body(query.vertex_course(state.vertex.id, since_ms), asked),
        "latency-heat": None
        if heat is None
        else {
            "timestamps": heat.times_ms.tolist(),
            "bounds-ms": list(BOUNDS_MS),
            "counts": heat.counts.tolist(),
        },
    }


def jobs(query: Query) -> JobsHistory:
    """
    Answer /jobs/history.

    Raises:
        UnresolvableParameter: `since` is no Java long.
    """
    since_ms, asked = query.since_ms(), query.metrics()
    courses = ((state.job.jid, query.history.job(state.job.jid, since_ms)) for state in in_order(query.snapshot))
    return {
        "now": query.now_ms,
        "interval-ms": SAMPLE_INTERVAL_MS,
        "jobs": [{"id": jid, **_body(course, asked)} for jid, course in courses if course is not None],
    }


class _Body(TypedDict):
    timestamps: list[int]
    series: list[Series]


def _body(course: Course | None, asked: Iterable[str] | None) -> _Body:
    if course is None:
        return {"timestamps": [], "series": []}
    return {"timestamps": course.times_ms.tolist(), "series": _series(course.figures, asked)}


def _series(figures: Mapping[str, npt.NDArray[np.float32]], asked: Iterable[str] | None) -> list[Series]:
    chosen = figures if asked is None else [name for name in dict.fromkeys(asked) if name in figures]
    return [{"id": name, "values": _values(figures[name])} for name in chosen]


def _values(values: npt.NDArray[np.float32]) -> list[float | None]:
    # A float32 holds seven digits; what else it has as a float64 is noise.
    return [None if math.isnan(value) else float(f"{value:.7g}") for value in values.tolist()]
