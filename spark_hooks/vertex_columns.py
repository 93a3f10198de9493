"""What a vertex tells of its subtasks: groups of columns, each with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.counts import TOTALS
from spark_hooks.metrics import Counts, Rates
from spark_hooks.time_shares import TimeShares
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
            names.NUM_BYTES_SPILLED,
        ),
        strict=True,
    )
)
_SHUFFLE_INPUT = frozenset({"bytes_in_local", "bytes_in_remote", "buffers_in_local", "buffers_in_remote"})


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


def groups(vertex: JobVertex) -> Iterator[Group]:
    """Return everything that a vertex with subtasks can tell."""
    shown, rates = vertex.counters.shown(), vertex.views.rates()
    yield Group("counts", (shown.tobytes(), rates.tobytes()), lambda: _counts(vertex, shown, rates))
    yield Group("time", vertex.shares.revision, lambda: _time(vertex.shares, vertex.size))
    # Of a vertex that only the driver has executed, or that no task of has run yet, nothing waits.
    if vertex.start_ms >= 0:
        yield Group("buffers", vertex.buffers.revision, lambda: _buffers(vertex))
        yield Group("alignment", vertex.alignment.revision, lambda: _alignment(vertex))
    sources = vertex.sources.state()
    if sources is not None:
        ran = vertex.starts_ms >= 0
        told = vertex.sources.columns
        yield Group("sources", (sources, ran.tobytes()), lambda: (Told(*each) for each in told(ran)))
    state = vertex.state
    yield Group("state", (state.revision, vertex.size), lambda: (Told(*each) for each in state.columns(vertex.size)))
    timers = vertex.timers
    if timers is not None:
        yield Group("timers", timers.state(), lambda: (Told(*each) for each in timers.columns()))
    if vertex.split_watermark_ms is not None:
        by_splits = np.full(vertex.size, vertex.split_watermark_ms)
        yield Group(
            "split watermark", vertex.split_watermark_ms, lambda: [Told("", names.CURRENT_SPLIT_WATERMARK, by_splits)]
        )
    marks, source = vertex.watermarks, vertex.is_source
    yield Group(
        "watermarks", (marks.state(), source), lambda: (Told(*each) for each in marks.columns(vertex.size, source))
    )


def _buffers(vertex: JobVertex) -> Iterator[Told]:
    for metric, prefix, values, present in vertex.buffers.columns():
        yield Told("", prefix + metric, values, present)
        yield Told("", names.OLD_BUFFERS + metric, values, present)


def _alignment(vertex: JobVertex) -> Iterator[Told]:
    for metric, values, present in vertex.alignment.columns():
        yield Told("", metric, values, present)


def _counts(vertex: JobVertex, shown: Counts, rates: Rates) -> Iterator[Told]:
    def both(operator: str, metric: str, column: int) -> Iterator[Told]:
        yield Told(operator, metric, shown[:, column])
        yield Told(operator, metric + names.PER_SECOND, rates[:, column])

    for index, operator in enumerate(vertex.operators):
        for column, metric in ((2 * index, names.NUM_RECORDS_IN), (2 * index + 1, names.NUM_RECORDS_OUT)):
            if vertex.known[column]:
                yield from both(operator.id, metric, column)
    first_total = 2 * len(vertex.operators)
    for column, place in enumerate(vertex.late, first_total + len(TOTALS)):
        yield from both(vertex.operators[place].id, names.NUM_LATE_RECORDS_DROPPED, column)
    unknown = np.full(vertex.size, np.nan)
    for column, total in enumerate(TOTALS, first_total):
        if vertex.known[column]:
            yield from both("", _TOTALS[total], column)
            if total in _SHUFFLE_INPUT:
                yield from both("", names.SHUFFLE_INPUT + _TOTALS[total], column)
        elif total == "records_in":
            yield Told("", names.NUM_RECORDS_IN + names.PER_SECOND, unknown)


def _time(found: TimeShares, size: int) -> Iterator[Told]:
    """Tell time shares of `size` subtasks, some of which may not have been seen yet."""
    shares = found.shares()
    if shares is None or not shares.present.any():
        # Readers want these of every vertex, also where they are not known.
        for metric in (names.BUSY_TIME, names.BACK_PRESSURED_TIME):
            yield Told("", metric, np.full(size, np.nan))
    else:
        present = _padded(shares.present, size)
        yield Told("", names.BUSY_TIME, np.where(present, _padded(shares.busy, size), np.nan))
        for metric, values in (
            (names.IDLE_TIME, shares.idle),
            (names.BACK_PRESSURED_TIME, shares.back_pressured),
            (names.SLOT_WAIT_TIME, shares.slot_wait),
        ):
            yield Told("", metric, _padded(values, size), present)
    if found.size:
        seen = np.arange(size) < found.size
        times = found.accumulated()
        yield Told("", names.ACCUMULATED_BUSY_TIME, _padded(times.busy.astype(np.float64), size), seen)
        yield Told("", names.ACCUMULATED_IDLE_TIME, _padded(times.idle, size), seen)
        yield Told("", names.ACCUMULATED_BACK_PRESSURED_TIME, _padded(times.back_pressured, size), seen)
        yield Told("", names.IS_BACK_PRESSURED, _padded(found.is_back_pressured.astype(np.int64), size), seen)


def _padded(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    return np.pad(values, (0, size - values.size))
