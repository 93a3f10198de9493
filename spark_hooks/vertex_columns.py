"""What a vertex tells of its subtasks: groups of columns, each with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.counts import TOTALS
from spark_hooks.metrics import Counts, Rates
from spark_hooks.vertex import JobVertex
from streamgauge import names, wire

_TOTALS = dict(
    zip(
        TOTALS,
        (
            names.NUM_RECORDS_IN,
            names.NUM_RECORDS_OUT,
            names.NUM_BYTES_IN,
            names.NUM_BYTES_IN_LOCAL,
            names.NUM_BYTES_IN_REMOTE,
            names.NUM_BUFFERS_IN_LOCAL,
            names.NUM_BUFFERS_IN_REMOTE,
            names.NUM_BYTES_OUT,
        ),
        strict=True,
    )
)
_SHUFFLE_INPUT = frozenset({"bytes_in_local", "bytes_in_remote", "buffers_in_local", "buffers_in_remote"})
_ALWAYS_THERE = (names.BUSY_TIME, names.BACK_PRESSURED_TIME)


class Told(NamedTuple):
    """A column of a vertex: `operator` '' for vertex scope, `present` None where every subtask has a value."""

    operator: str
    metric: str
    values: wire.Array
    present: npt.NDArray[np.bool_] | None = None


class Group(NamedTuple):
    """
    Columns that move together.

    Args:
        name: Tells it from the other groups of the vertex.
        state: What its columns are made of; while it compares equal, so do they.
        columns: Makes them.
    """

    name: str
    state: object
    columns: Callable[[], Iterable[Told]]


def groups(vertex: JobVertex, watermark_ms: int) -> Iterator[Group]:
    """
    Return everything that a vertex with subtasks can tell.

    Args:
        watermark_ms: The query's.
    """
    shown, rates = vertex.counters.shown(), vertex.views.rates()
    yield Group("counts", (shown.tobytes(), rates.tobytes()), lambda: _counts(vertex, shown, rates))
    sources = vertex.sources.state()
    if sources is not None:
        ran = vertex.starts_ms >= 0
        told = vertex.sources.columns
        yield Group("sources", (sources, ran.tobytes()), lambda: (Told(*each) for each in told(ran)))
    if vertex.inputs:
        watermark = np.full(vertex.size, watermark_ms)
        yield Group("watermark", watermark_ms, lambda: [Told("", names.CURRENT_INPUT_WATERMARK, watermark)])


def _counts(vertex: JobVertex, shown: Counts, rates: Rates) -> Iterator[Told]:
    def both(operator: str, metric: str, column: int) -> Iterator[Told]:
        yield Told(operator, metric, shown[:, column])
        yield Told(operator, metric + names.PER_SECOND, rates[:, column])

    for index, operator in enumerate(vertex.operators):
        for column, metric in ((2 * index, names.NUM_RECORDS_IN), (2 * index + 1, names.NUM_RECORDS_OUT)):
            if vertex.known[column]:
                yield from both(operator.id, metric, column)
    first_total = 2 * len(vertex.operators)
    unknown = np.full(vertex.size, np.nan)
    for column, total in enumerate(TOTALS, first_total):
        if vertex.known[column]:
            yield from both("", _TOTALS[total], column)
            if total in _SHUFFLE_INPUT:
                yield from both("", names.SHUFFLE_INPUT + _TOTALS[total], column)
        elif total == "records_in":
            yield Told("", names.NUM_RECORDS_IN + names.PER_SECOND, unknown)
    for metric in _ALWAYS_THERE:
        yield Told("", metric, unknown)
