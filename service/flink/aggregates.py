"""Aggregated metrics: every `…/metrics` whose answer is minimum, maximum, mean, sum and skew over many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from service.cluster import connected, executors
from service.flink.metrics import find, series
from service.flink.numbers import json_double
from service.flink.query import Query
from service.lifetime import job_metrics
from streamgauge.wire import Scalar

Floats = npt.NDArray[np.float64]
Body = list[dict[str, str | msgspec.Raw]]
_MAX_SKEW = 100.0


class NotNumeric(Exception):
    """A metric's values are no numbers: it is left out of the answer."""


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
    if asked is None:
        return [{"id": name} for name, column in series(state) if len(_selected(column.values, column.present, chosen))]

    def values(name: str) -> Floats:
        found = find(state, name)
        if found is None:
            return np.empty(0)
        column, is_bool = found
        if is_bool:
            raise NotNumeric(name)
        return _selected(column.values, column.present, chosen)

    return _answer(asked, modes, values)


def _selected(
    values: npt.NDArray[np.generic], present: npt.NDArray[np.bool_] | None, chosen: list[int] | None
) -> Floats:
    mask = np.ones(len(values), dtype=np.bool_) if present is None else present
    if chosen is not None:
        wanted = np.zeros(len(values), dtype=np.bool_)
        wanted[[index for index in chosen if index < len(values)]] = True
        mask = mask & wanted
    return values[mask].astype(np.float64)


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
            values = values_of(name)
        except NotNumeric:
            continue
        if not len(values):
            return []
        answer.append({"id": name, **aggregate(values, modes)})
    return answer


def aggregate(values: Floats, modes: tuple[str, ...]) -> dict[str, msgspec.Raw]:
    """
    Return the aggregates of `values`, shape (n,), n ≥ 1, in the order of `modes`.

    skew = min(100, 100·mean|v − avg| / avg) in percent, 0 where the mean is 0.

    Source: Flink's `DoubleAccumulator`.
    """
    with np.errstate(all="ignore"):
        total = values.sum()
        average = total / len(values)
        figures = {
            "min": values.min(),
            "max": values.max(),
            "avg": average,
            "sum": total,
            "skew": 0.0 if average == 0 else np.minimum(_MAX_SKEW, 100.0 * np.abs(values - average).mean() / average),
        }
    return {mode: json_double(float(figures[mode])) for mode in modes}
