"""Plain metrics: every `…/metrics` whose answer is ids, or values as strings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from typing_extensions import NotRequired, TypedDict

from collector import columns
from service.cluster import driver_metrics, find_executor
from service.flink import latency_metrics
from service.flink.numbers import text
from service.flink.query import Query
from service.flink.vertex_metrics import VertexMetrics
from service.lifetime import job_metrics
from streamgauge import names
from streamgauge.wire import Scalar


class Metric(TypedDict):
    """A metric's id, and its value where it was asked for."""

    id: str
    value: NotRequired[str]


Body = list[Metric]
_INDEX = re.compile(r"[0-9]{1,10}")


def job(query: Query) -> Body:
    """Answer /jobs/:jobid/metrics; an unknown job has none."""
    state = query.known_job()
    return _scalars(query, {} if state is None else job_metrics(state, query.now_ms))


def jobmanager(query: Query) -> Body:
    """Answer /jobmanager/metrics; see `driver_metrics` for whose they are."""
    return _scalars(query, driver_metrics(query.snapshot))


def taskmanager(query: Query) -> Body:
    """Answer /taskmanagers/:taskmanagerid/metrics; an unknown executor has none."""
    executor = find_executor(query.snapshot, query.path["taskmanagerid"])
    return _scalars(query, {} if executor is None else executor.metrics)


def _scalars(query: Query, values: Mapping[str, Scalar]) -> Body:
    asked = query.metrics()
    if asked is None:
        return [{"id": name} for name in values]
    return [{"id": name, "value": text(values[name])} for name in dict.fromkeys(asked) if name in values]


def vertex(query: Query) -> Body:
    """Answer …/vertices/:vertexid/metrics: '<subtask>.<metric>', '<subtask>.<operator>.<metric>'."""
    state = query.known_vertex()
    if state is None:
        return []
    asked = query.metrics()
    metrics = VertexMetrics(state, latency_metrics.granularity(query))
    if asked is None:
        return [{"id": f"{index}.{name}"} for index, name in metrics.ids()]
    answer: Body = []
    for metric_id in dict.fromkeys(asked):
        index, _, name = metric_id.partition(".")
        value = metrics.value(name, int(index)) if _INDEX.fullmatch(index) else None
        if value is not None:
            answer.append({"id": metric_id, "value": text(value)})
    return answer


def subtask(query: Query) -> Body:
    """Answer …/subtasks/:subtaskindex/metrics, ids without the subtask."""
    state = query.known_vertex()
    index = query.subtask()
    if state is None:
        return []
    asked = query.metrics()
    metrics = VertexMetrics(state, latency_metrics.granularity(query))
    if asked is None:
        return [{"id": name} for name in metrics.names([index])]
    found = ((name, metrics.value(name, index)) for name in dict.fromkeys(asked))
    return [{"id": name, "value": text(value)} for name, value in found if value is not None]


def coordinators(query: Query) -> Body:
    """
    Answer …/vertices/:vertexid/jm-operator-metrics, ids '<operator>.coordinator.<metric>': the driver's own
    figures of its sources.

    Where two operators' names are the same once filtered, the one nearer to the source is told. An unknown vertex has
    none.
    """
    state = query.known_vertex()
    if state is None:
        return []
    values: dict[str, Scalar] = {}
    for operator in state.vertex.operators:
        prefix = f"{names.filtered(operator.name)}.{names.COORDINATOR}"
        for name, value in state.coordinators.get(operator.id, {}).items():
            values.setdefault(prefix + name, value)
    return _scalars(query, values)


def watermarks(query: Query) -> Body:
    """
    Answer …/vertices/:vertexid/watermarks; a subtask that has none, as a source's, is left out.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    column = query.job_vertex().columns.get(names.CURRENT_INPUT_WATERMARK)
    if column is None:
        return []
    known = columns.subtasks(column)
    return [
        {"id": f"{index}.{names.CURRENT_INPUT_WATERMARK}", "value": text(value)}
        for index, value in zip(known.tolist(), column.values[known].tolist(), strict=True)
    ]
