"""Timers of a vertex' operators: …/vertices/:vertexid/timers, ours in Flink's manner."""

from __future__ import annotations

import numpy as np
from typing_extensions import TypedDict

from collector import columns
from collector.histogram import BOUNDS_MS, histogram
from collector.store import Columns
from service.flink.distributions import Distribution, distribution
from service.flink.ids import Id
from service.flink.numbers import Double, json_double
from service.flink.query import Query
from streamgauge import names

OperatorTimers = TypedDict(
    "OperatorTimers",
    {
        "operator-id": Id,
        "operator-name": str,
        "registered": int | None,
        "deleted": int | None,
        "pending": int | None,
        "fired": int | None,
        "fired-per-second": Double | None,
        "processing-ms": int | None,
        "lateness": Distribution | None,
    },
)
"""
Of all subtasks together; what is not told is null. `processing-ms` is the time in callbacks, `lateness` from when
timers were due to when they fired.
"""

VertexTimers = TypedDict("VertexTimers", {"bounds-ms": list[int], "operators": list[OperatorTimers]})

_TOLD = (
    names.NUM_REGISTERED_TIMERS,
    names.NUM_DELETED_TIMERS,
    names.NUM_PENDING_TIMERS,
    names.NUM_FIRED_TIMERS,
    names.TIMER_TIME,
)


def vertex(query: Query) -> VertexTimers:
    """
    Answer …/vertices/:vertexid/timers: those of its operators that have any, from source to sink.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    state = query.job_vertex()
    found: list[OperatorTimers] = []
    for operator in state.vertex.operators:
        told = state.operators.get(operator.id, {})
        lateness = state.taps.distributions.get((operator.id, names.TIMER_LATENESS))
        if lateness is not None or any(name in told for name in _TOLD):
            rate = _sum(told, names.NUM_FIRED_TIMERS + names.PER_SECOND)
            found.append(
                {
                    "operator-id": operator.id,
                    "operator-name": operator.name,
                    "registered": _whole(told, names.NUM_REGISTERED_TIMERS),
                    "deleted": _whole(told, names.NUM_DELETED_TIMERS),
                    "pending": _whole(told, names.NUM_PENDING_TIMERS),
                    "fired": _whole(told, names.NUM_FIRED_TIMERS),
                    "fired-per-second": None if rate is None else json_double(float(rate)),
                    "processing-ms": _whole(told, names.TIMER_TIME),
                    "lateness": None if lateness is None else distribution(histogram(lateness)),
                }
            )
    return {"bounds-ms": list(BOUNDS_MS), "operators": found}


def _sum(told: Columns, metric: str) -> int | float | None:
    column = told.get(metric)
    there = None if column is None else column.values[columns.subtasks(column)]
    if there is None or not there.size:
        return None
    with np.errstate(all="ignore"):
        total: int | float = there.sum().item()
    return total


def _whole(told: Columns, metric: str) -> int | None:
    total = _sum(told, metric)
    return total if isinstance(total, int) else None
