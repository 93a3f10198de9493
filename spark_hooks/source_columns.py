"""The figures of a vertex's sources, as columns over its subtasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from spark_hooks.intake import Figures, Intake
from streamgauge import names, wire

_METRICS = {
    "pending": names.PENDING_RECORDS,
    "unread": names.UNREAD_FILES,
    "fetch_lag_ms": names.FETCH_LAG,
    "emit_lag_ms": names.EMIT_LAG,
    "watermark_lag_ms": names.WATERMARK_LAG,
    "idle_ms": names.SOURCE_IDLE_TIME,
}
_OF_THE_WHOLE = frozenset({"pending", "unread"})
"""Figures that subtasks must not repeat, for readers add them up: subtask 0 alone has them."""

_Mask = npt.NDArray[np.bool_]


class SourceColumns:
    """
    The sources that a vertex reads: `intakes`, by operator id. Not thread safe.

    A column that has been told and is not known any more is told once more, without values: else the collector
    would keep the last ones.
    """

    def __init__(self) -> None:
        self.intakes: dict[str, Intake] = {}
        self._told: set[tuple[str, str]] = set()

    def bind(self, intakes: Mapping[str, Intake]) -> None:
        """Operator id → what it takes in is this, and no operator else takes in anything."""
        self.intakes = dict(intakes)

    def state(self) -> tuple[tuple[str, Figures], ...] | None:
        """Return what the columns are made of, beside the subtasks that ran; None where there never were any."""
        if not self.intakes and not self._told:
            return None
        return tuple((operator, intake.figures) for operator, intake in self.intakes.items())

    def columns(self, ran: _Mask) -> Iterator[tuple[str, str, wire.Array, _Mask]]:
        """
        Yield operator, metric, values and which of them are there, both of shape (subtasks,).

        Args:
            ran: Which subtasks have run, shape (subtasks,).
        """
        first = np.zeros(len(ran), dtype=np.bool_)
        first[0] = True
        none = np.zeros(len(ran), dtype=np.bool_)
        unknown = set(self._told)
        for operator, intake in self.intakes.items():
            for figure, metric in _METRICS.items():
                value = getattr(intake.figures, figure)
                present = first if figure in _OF_THE_WHOLE else ran
                if value is not None and present.any():
                    unknown.discard((operator, metric))
                    self._told.add((operator, metric))
                    yield operator, metric, np.full(len(ran), value, dtype=np.int64), present
        for operator, metric in sorted(unknown):
            yield operator, metric, np.zeros(len(ran), dtype=np.int64), none
