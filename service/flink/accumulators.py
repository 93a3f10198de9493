"""Accumulators: what `observe()` saw in a job, and Spark's native SQL metrics of its vertices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from collector.store import Accumulated, VertexState
from service.flink import io
from service.flink.numbers import double, text
from service.flink.query import Query
from service.flink.subtasks import endpoint, places
from streamgauge.accumulators import AVERAGE_SCALE, Rule, rule, unit
from streamgauge.errors import UnknownAttempt, UnknownSubtask
from streamgauge.wire import Scalar

_EXCHANGE = "Exchange"
"""Stands for an operator's name where a metric is of the exchanges that a vertex reads or writes."""

_TYPES: dict[Rule, str] = {
    "flow": "LongCounter",
    "level": "LongGauge",
    "peak": "LongMaximum",
    "average": "DoubleGauge",
}
_SPREAD = "DoubleSpread"


class Accumulator(TypedDict):
    """
    An accumulator in every body of them; all of it is text.

    `type` is the simple name of a class, as in Flink. Of what `observe()` saw it is that of the value: Long, Double,
    Boolean, String. Of a native metric: Flink's LongCounter of what was done and LongMaximum of a peak; LongGauge of
    what is there, DoubleGauge of an average, DoubleSpread of several subtasks' averages, for which Flink has no class.
    """

    name: str
    type: str
    value: str


JobAccumulators = TypedDict(
    "JobAccumulators",
    {
        "job-accumulators": list[Accumulator],
        "user-task-accumulators": list[Accumulator],
        "serialized-user-task-accumulators": dict[str, str],
    },
)


class Units(TypedDict):
    """What is not in Flink's body: name → bytes, ms or ns, for those that have a unit."""

    units: dict[str, str]


VertexAccumulators = TypedDict(
    "VertexAccumulators", {"id": str, "user-accumulators": list[Accumulator], "streamgauge": Units}
)
SubtaskAccumulators = TypedDict(
    "SubtaskAccumulators", {"subtask": int, "attempt": int, "endpoint": str, "user-accumulators": list[Accumulator]}
)


class SubtasksAccumulators(TypedDict):
    """The body of …/subtasks/accumulators."""

    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


AttemptAccumulators = TypedDict(
    "AttemptAccumulators", {"subtask": int, "attempt": int, "id": str, "user-accumulators": list[Accumulator]}
)


def job(query: Query) -> JobAccumulators:
    """
    Answer /jobs/:jobid/accumulators: what `observe()` saw in the latest batch, by '<name>.<column>'.

    `includeSerializedValue` brings nothing: it asks for Java objects in Java's serialization, and there are none.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    observed = query.job().observed
    return {
        "job-accumulators": [],
        "user-task-accumulators": [
            {"name": name, "type": _type(observed[name]), "value": text(observed[name])} for name in sorted(observed)
        ],
        "serialized-user-task-accumulators": {},
    }


def vertex(query: Query) -> VertexAccumulators:
    """
    Answer …/accumulators: native metrics as '<operator>.<metric>', over all subtasks.

    What was done and what is there is summed, with what the driver itself told; of peaks it is the greatest; of
    averages the least, the median and the greatest, as Spark's own page has them. One that has no value is left out.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    state = query.job_vertex()
    named = dict(_named(state))
    told = (_whole(name, metric, found) for name, (metric, found) in named.items())
    return {
        "id": state.vertex.id,
        "user-accumulators": [accumulator for accumulator in told if accumulator is not None],
        "streamgauge": {"units": {name: word for name, (_, found) in named.items() if (word := unit(found.kind))}},
    }


def subtasks(query: Query) -> SubtasksAccumulators:
    """
    Answer …/subtasks/accumulators: native metrics of every subtask that any stage had.

    What the driver told is in none of them.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    state = query.job_vertex()
    job = query.job()
    rows = zip(places(state, io.ALL), _of_subtasks(state), strict=True)
    return {
        "id": state.vertex.id,
        "parallelism": state.parallelism,
        "subtasks": [
            {
                "subtask": index,
                "attempt": attempt,
                "endpoint": endpoint(query, job, executor),
                "user-accumulators": metrics,
            }
            for index, ((attempt, executor), metrics) in enumerate(rows)
        ],
    }


def attempt(query: Query) -> AttemptAccumulators:
    """
    Answer …/subtasks/:subtaskindex/attempts/:attempt/accumulators.

    Of a subtask only the latest task's attempt is held; its metrics are those of all that the subtask has done.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
        UnknownSubtask: the vertex has none of this index.
        UnknownAttempt: it is another one.
    """
    state, index, asked = query.job_vertex(), query.subtask(), query.attempt()
    if index >= state.size:
        raise UnknownSubtask(state.vertex.id)
    ((latest, _),) = places(state, slice(index, index + 1))
    if asked != latest:
        raise UnknownAttempt(asked, latest, f"{state.vertex.name} ({index + 1}/{state.parallelism})")
    return {
        "subtask": index,
        "attempt": latest,
        "id": f"{query.job().job.jid}_{state.vertex.id}_{index}_{latest}",
        "user-accumulators": _of_subtasks(state, index)[0],
    }


def _type(value: Scalar) -> str:
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int):
        return "Long"
    return "Double" if isinstance(value, float) else "String"


def _named(state: VertexState) -> Iterator[tuple[str, tuple[str, Accumulated]]]:
    """Yield (name, (metric, figures)) of a vertex, sorted by name."""
    names = {operator.id: operator.name for operator in state.vertex.operators}
    found = {
        f"{names[operator] if operator else _EXCHANGE}.{metric}": (metric, held)
        for (operator, metric), held in state.accumulators.items()
        if not operator or operator in names
    }
    yield from sorted(found.items())


def _rule(metric: str, found: Accumulated) -> Rule:
    # The number that makes a name unique is no part of it.
    plain, _, number = metric.rpartition(" ")
    return rule(found.kind, plain if plain and number.isdecimal() else metric)


def _whole(name: str, metric: str, found: Accumulated) -> Accumulator | None:
    kept = _rule(metric, found)
    values: npt.NDArray[np.int64] = found.column.values.astype(np.int64, copy=False)
    if found.column.present is not None:
        values = values[found.column.present]
    if kept == "average":
        return _averages(name, np.sort(values[values > 0]))
    value = max(int(values.max(initial=0)), found.driver) if kept == "peak" else int(values.sum()) + found.driver
    return {"name": name, "type": _TYPES[kept], "value": text(value)}


def _averages(name: str, values: npt.NDArray[np.int64]) -> Accumulator | None:
    if not len(values):
        return None
    if len(values) == 1:
        return {"name": name, "type": _TYPES["average"], "value": _average(int(values[0]))}
    # Source: Spark, `SQLMetrics.stringValue`.
    least, median, greatest = (_average(int(values[place])) for place in (0, len(values) // 2, -1))
    return {"name": name, "type": _SPREAD, "value": f"(min, med, max): ({least}, {median}, {greatest})"}


def _average(tenths: int) -> str:
    return double(tenths / AVERAGE_SCALE)


def _of_subtasks(state: VertexState, only: int | None = None) -> list[list[Accumulator]]:
    """Return the metrics of every subtask, or of one."""
    chosen = slice(None) if only is None else slice(only, only + 1)
    rows: list[list[Accumulator]] = [[] for _ in range(state.size)[chosen]]
    for name, (metric, found) in _named(state):
        kept = _rule(metric, found)
        present = found.column.present
        held = [True] * len(rows) if present is None else present[chosen].tolist()
        for row, value, there in zip(rows, found.column.values[chosen].tolist(), held, strict=True):
            if kept != "average" and there:
                row.append({"name": name, "type": _TYPES[kept], "value": text(int(value))})
            elif there and value > 0:
                row.append({"name": name, "type": _TYPES[kept], "value": _average(int(value))})
    return rows
