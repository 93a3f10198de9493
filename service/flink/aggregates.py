"""Aggregated metrics: every `…/metrics` whose answer is minimum, maximum, mean, sum and skew over many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
from typing_extensions import NotRequired, TypedDict

from collector import columns
from service.cluster import connected, executors
from service.flink import latency_metrics
from service.flink.numbers import Double, json_double
from service.flink.query import Query
from service.flink.vertex_metrics import NotNumeric, VertexMetrics
from service.lifetime import job_metrics
from streamgauge.wire import Scalar

Floats = npt.NDArray[np.float64]


class Aggregate(TypedDict):
    """A metric's id, and of its aggregates those that were asked for."""

    id: str
    min: NotRequired[Double]
    max: NotRequired[Double]
    avg: NotRequired[Double]
    sum: NotRequired[Double]
    skew: NotRequired[Double]


Body = list[Aggregate]


def jobs(query: Query) -> Body:
    """
    Answer /jobs/metrics over all jobs, or those of `jobs`; unknown ones are ignored.

    Raises:
        UnresolvableParameter: an id in `jobs` is malformed, or an aggregate is unknown.
    """
    chosen = query.ids("jobs")
    known = query.snapshot.jobs
    states = known.values() if chosen is None else [known[jid] for jid in dict.fromkeys(chosen) if jid in known]
    return _over_scalars(query, [job_metrics(state, query.now_ms) for state in states])


def taskmanagers(query: Query) -> Body:
    """
    Answer /taskmanagers/metrics over all executors, or those of `taskmanagers`; unknown ones are ignored.

    Raises:
        UnresolvableParameter: an aggregate is unknown.
    """
    chosen = query.words("taskmanagers")
    known = executors(connected(query.snapshot))
    return _over_scalars(query, [each.metrics for each in known if chosen is None or each.id in chosen])


def subtasks(query: Query) -> Body:
    """
    Answer …/subtasks/metrics over all subtasks, or those of `subtasks`; an unknown vertex has none.

    Raises:
        UnresolvableParameter: an aggregate is unknown.
    """
    modes = query.aggregates()
    state = query.known_vertex()
    if state is None:
        return []
    asked = query.metrics()
    chosen = query.subtasks(state.size)
    metrics = VertexMetrics(state, latency_metrics.granularity(query))
    if asked is None:
        return [{"id": name} for name in metrics.names(chosen)]
    return _answer(asked, modes, lambda name: metrics.numbers(name, chosen))


def _over_scalars(query: Query, stores: list[Mapping[str, Scalar]]) -> Body:
    modes = query.aggregates()
    asked = query.metrics()
    if asked is None:
        return [{"id": name} for name in dict.fromkeys(name for store in stores for name in store)]

    def values(name: str) -> Floats:
        found = [store[name] for store in stores if name in store]
        if any(isinstance(value, bool | str) for value in found):
            raise NotNumeric(name)
        return np.array(found, dtype=np.float64)

    return _answer(asked, modes, values)


def _answer(asked: Iterable[str], modes: tuple[str, ...], values_of: Callable[[str], Floats]) -> Body:
    answer: Body = []
    for name in asked:
        try:
            summary = columns.summarize(values_of(name))
        except NotNumeric:
            continue
        if summary is None:
            # One metric that nobody has makes the whole answer empty, as in Flink.
            return []
        told = {mode: json_double(getattr(summary, mode)) for mode in modes}
        answer.append(cast(Aggregate, {"id": name, **told}))
    return answer
