"""The watermarks of a vertex and its operators, as columns over its subtasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spark_hooks.plan_watermarks import Mark
from streamgauge import names, wire
from streamgauge.watermarks import NO_WATERMARK_MS


class VertexWatermarks:
    """
    What the latest plan tells of a vertex: `input_ms` of what it reads, `operators` by operator id. Not thread safe.

    A column that has been told and is not known any more is told once more, without values: else the collector would
    keep the last ones.
    """

    def __init__(self) -> None:
        self.input_ms: int | None = None
        self.operators: dict[str, Mark] = {}
        self._lags_ms: dict[str, int] = {}
        self._told: dict[tuple[str, str], None] = {}

    def mark(self, operator: str, mark: Mark) -> None:
        """The watermarks of an operator are these now; most have none."""
        if mark == Mark():
            self.operators.pop(operator, None)
        else:
            self.operators[operator] = mark

    def lag_behind(self, now_ms: int | None) -> None:
        """See how far each operator is behind the driver's clock, wall time; None for a vertex of no latest plan."""
        self._lags_ms = {
            operator: now_ms - mark.input_ms
            for operator, mark in self.operators.items()
            if now_ms is not None and mark.input_ms is not None and mark.input_ms != NO_WATERMARK_MS
        }

    def state(self) -> object:
        """Return what the columns are made of, beside the subtasks and whether the vertex is a source."""
        return (self.input_ms, tuple(self.operators.items()), tuple(self._lags_ms.items()))

    def columns(self, size: int, source: bool) -> Iterator[tuple[str, str, wire.Array, npt.NDArray[np.bool_] | None]]:
        """
        Yield operator, metric, values and which of them are there, None for all, both of shape (subtasks,).

        Args:
            size: Subtasks.
            source: The vertex reads no shuffle, so nothing is told of what it reads.
        """
        known = dict(self._known(source))
        gone = [key for key in self._told if key not in known]
        for (operator, metric), value in known.items():
            self._told[operator, metric] = None
            yield operator, metric, np.full(size, value, dtype=np.int64), None
        for operator, metric in gone:
            yield operator, metric, np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)

    def _known(self, source: bool) -> Iterator[tuple[tuple[str, str], int]]:
        if not source:
            read_ms = NO_WATERMARK_MS if self.input_ms is None else self.input_ms
            yield ("", names.CURRENT_INPUT_WATERMARK), read_ms
            yield ("", names.CURRENT_LOW_WATERMARK), read_ms
        for operator, mark in self.operators.items():
            if mark.input_ms is not None:
                yield (operator, names.CURRENT_INPUT_WATERMARK), mark.input_ms
            if mark.output_ms is not None:
                yield (operator, names.CURRENT_OUTPUT_WATERMARK), mark.output_ms
        for operator, lag_ms in self._lags_ms.items():
            yield (operator, names.WATERMARK_LAG), lag_ms
