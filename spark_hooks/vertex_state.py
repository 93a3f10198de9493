"""The state of a vertex' stateful operators, as its stores told it when their tasks committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.accumulators import Accumulators
from streamgauge import names

_LEVELS = {
    names.NUM_STATE_ROWS: "number of total state rows",
    names.STATE_MEMORY_USED: "memory used by state",
}
_FLOWS = {
    names.NUM_STATE_ROWS_UPDATED: "number of updated state rows",
    names.NUM_STATE_ROWS_REMOVED: "number of removed state rows",
    names.STATE_COMMIT_TIME: "time to commit changes",
}
"""Metric → Spark's display name, of every stateful operator and both state stores."""


class Figure(NamedTuple):
    """A column of an operator, one value a subtask; `present` tells which subtasks have one."""

    operator: str
    metric: str
    values: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]


class VertexState:
    """
    What the state stores of one vertex told. Not thread safe.

    A store that is set to count no rows, or that does not know its memory, tells 0: a level is absent until one of the
    operator's stores told more.

    Args:
        operators: Ids of the vertex' operators.
        accumulators: The vertex' native metrics.
    """

    def __init__(self, operators: Sequence[str], accumulators: Accumulators) -> None:
        self._operators = operators
        self._accumulators = accumulators
        self._known: set[tuple[str, str]] = set()
        self._shown: dict[tuple[str, str], npt.NDArray[np.int64]] = {}

    @property
    def revision(self) -> int:
        """While it compares equal, so do the columns."""
        return self._accumulators.revision

    def columns(self, size: int) -> Iterator[Figure]:
        """Yield what is known of `size` subtasks; nothing of operators without state."""
        ended = self._accumulators.ended(size)
        if not ended.any():
            return
        for operator in self._operators:
            for metric, display in _LEVELS.items():
                values = self._accumulators.values(operator, display, size)
                if values is not None and (values.any() or (operator, metric) in self._known):
                    self._known.add((operator, metric))
                    yield Figure(operator, metric, values, ended)
            for metric, display in _FLOWS.items():
                values = self._accumulators.values(operator, display, size)
                if values is not None:
                    yield Figure(operator, metric, self._grown((operator, metric), values), ended)

    def _grown(self, key: tuple[str, str], values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return values that are not below what was told: an attempt that is replaced is told until it is passed."""
        before = self._shown.get(key)
        if before is not None:
            shared = values[: before.size]
            np.maximum(shared, before[: shared.size], out=shared)
        self._shown[key] = values
        return values
