"""All metrics of one vertex by their ids without the subtask: columns, latencies, split gauges, histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from collector import columns
from collector.store import Column, VertexState
from service.flink import latency_metrics, tap_metrics
from streamgauge import catalogue, names, wire
from streamgauge.wire import Scalar


class NotNumeric(Exception):
    """A metric's values are no numbers: it is left out of an aggregated answer."""


class VertexMetrics:
    """
    The metrics of one vertex, for one request; not thread safe.

    Where two operators' names are the same once filtered, the one nearer to the source is told.

    Args:
        state: The vertex.
        told_apart: What latencies of its job are told apart by.
    """

    def __init__(self, state: VertexState, told_apart: wire.LatencyGranularity | None) -> None:
        self._state = state
        self._told_apart = told_apart
        self._made: Mapping[str, Mapping[int, Scalar]] | None = None

    def ids(self) -> Iterator[tuple[int, str]]:
        """Yield (subtask, id without it) of all that has a value."""
        for name, column in _series(self._state):
            yield from ((index, name) for index in columns.subtasks(column).tolist())
        yield from latency_metrics.ids(self._state, self._told_apart)
        for name, made in self._gauges().items():
            yield from ((index, name) for index in made)

    def names(self, chosen: Sequence[int] | None) -> Iterator[str]:
        """Yield each id without the subtask by which any subtask has a value, or any of those that are `chosen`."""
        for name, column in _series(self._state):
            if columns.values(column, chosen).size:
                yield name
        among = None if chosen is None else frozenset(chosen)
        yield from {name: 0 for _, name in latency_metrics.ids(self._state, self._told_apart, among)}
        for name, made in self._gauges().items():
            if among is None or not among.isdisjoint(made):
                yield name

    def value(self, name: str, subtask: int) -> Scalar | None:
        """Return one subtask's value; None where it has none."""
        found = self._find(name)
        if found is not None:
            column, is_bool = found
            value = columns.value(column, subtask)
            return bool(value) if is_bool and value is not None else value
        told = latency_metrics.value(self._state, self._told_apart, name, subtask)
        return self._gauges().get(name, {}).get(subtask) if told is None else told

    def numbers(self, name: str, chosen: Sequence[int] | None) -> npt.NDArray[np.float64]:
        """
        Return the values of all subtasks, or those that are `chosen`, shape (n,).

        Raises:
            NotNumeric: they are texts or booleans.
        """
        found = self._find(name)
        if found is not None:
            column, is_bool = found
            if is_bool:
                raise NotNumeric(name)
            return columns.values(column, chosen)
        told: list[Scalar] = [*latency_metrics.values(self._state, self._told_apart, name, chosen)]
        made = self._gauges().get(name, {})
        told += [value for index, value in made.items() if chosen is None or index in chosen]
        if any(isinstance(value, bool | str) for value in told):
            raise NotNumeric(name)
        return np.array(told, dtype=np.float64)

    def _find(self, name: str) -> tuple[Column, bool] | None:
        """Return a column by its id, and whether its values are booleans."""
        if name in self._state.columns:
            return self._state.columns[name], _is_bool("vertex", name)
        head, _, metric = name.partition(".")
        for operator in self._state.vertex.operators:
            found = self._state.operators.get(operator.id, {})
            if metric in found and names.filtered(operator.name) == head:
                return found[metric], _is_bool("operator", metric)
        return None

    def _gauges(self) -> Mapping[str, Mapping[int, Scalar]]:
        # Most requests ask for columns, and need none of these.
        if self._made is None:
            self._made = tap_metrics.gauges(self._state)
        return self._made


def _series(state: VertexState) -> Iterator[tuple[str, Column]]:
    yield from state.columns.items()
    for operator in state.vertex.operators:
        prefix = names.filtered(operator.name)
        for name, column in state.operators.get(operator.id, {}).items():
            yield f"{prefix}.{name}", column


def _is_bool(scope: catalogue.Scope, name: str) -> bool:
    metric = catalogue.find(scope, name)
    return metric is not None and metric.type == "bool"
