"""The input and output of vertices and subtasks: Flink's `metrics` object of a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from collector.store import VertexState
from streamgauge import names

Whole = npt.NDArray[np.int64]
Io = TypedDict(
    "Io",
    {
        "read-bytes": int,
        "read-bytes-complete": bool,
        "write-bytes": int,
        "write-bytes-complete": bool,
        "read-records": int,
        "read-records-complete": bool,
        "write-records": int,
        "write-records-complete": bool,
        "accumulated-backpressured-time": int,
        "accumulated-idle-time": int,
        "accumulated-busy-time": float,
    },
)


class Spread(TypedDict):
    """Whole numbers over the subtasks of a vertex, in brief."""

    min: int
    max: int
    avg: int
    sum: int
    median: int
    p25: int
    p75: int
    p95: int


Spreads = TypedDict(
    "Spreads",
    {
        "read-bytes": Spread,
        "write-bytes": Spread,
        "read-records": Spread,
        "write-records": Spread,
        "accumulated-backpressured-time": Spread,
        "accumulated-idle-time": Spread,
        "accumulated-busy-time": Spread,
    },
)

COUNTS = {
    "read-bytes": names.NUM_BYTES_IN,
    "write-bytes": names.NUM_BYTES_OUT,
    "read-records": names.NUM_RECORDS_IN,
    "write-records": names.NUM_RECORDS_OUT,
}
_LONG = 2.0**63
Chosen = slice | npt.NDArray[np.intp]
"""Subtasks of a vertex, as an index of its columns."""
ALL = slice(None)

_BUSY = "accumulated-busy-time"
_TIMES = {
    "accumulated-backpressured-time": names.ACCUMULATED_BACK_PRESSURED_TIME,
    "accumulated-idle-time": names.ACCUMULATED_IDLE_TIME,
    _BUSY: names.ACCUMULATED_BUSY_TIME,
}
"""0 where they are not known: Flink has no word for that. The busy time is a double, as in Flink."""


@dataclass(frozen=True, slots=True)
class Count:
    """
    One count over a vertex's subtasks.

    Args:
        values: int64, shape (size,), 0 where it is not known.
        known: Shape (size,).
    """

    values: Whole
    known: npt.NDArray[np.bool_]


def counts(state: VertexState, chosen: Chosen = ALL) -> dict[str, Count]:
    """Return the counts of a vertex's chosen subtasks by Flink's key."""
    return {key: _count(state, metric, chosen) for key, metric in COUNTS.items()}


def _times(state: VertexState, chosen: Chosen) -> dict[str, Whole]:
    """Return the accumulated times of a vertex's chosen subtasks by Flink's key, ms."""
    return {key: _count(state, metric, chosen).values for key, metric in _TIMES.items()}


def _count(state: VertexState, metric: str, chosen: Chosen) -> Count:
    column = state.columns.get(metric)
    if column is None:
        none = np.zeros(state.size, dtype=np.int64)[chosen]
        # What feeds no other vertex sends it nothing, and no more than that is what Flink counts.
        is_known = metric == names.NUM_BYTES_OUT and not state.feeds
        return Count(none, np.full(len(none), is_known))
    values = column.values[chosen]
    # A count that came as a float and is none, NaN or past a Java long, is not known.
    known = np.abs(values) < _LONG if values.dtype.kind == "f" else np.ones(len(values), dtype=np.bool_)
    if column.present is not None:
        known = known & column.present[chosen]
    return Count(np.where(known, values, 0).astype(np.int64), known)


def of_vertex(state: VertexState, chosen: Chosen = ALL) -> Io:
    """
    Return the sums over a vertex's chosen subtasks.

    A count is complete if every subtask has a value; what has none counts as 0, as in Flink.
    """
    body: dict[str, int | float] = {}
    for key, count in counts(state, chosen).items():
        body[key] = int(count.values.sum())
        # Without a single subtask nothing is known, though nothing is missing either.
        body[f"{key}-complete"] = bool(count.known.size and count.known.all())
    for key, times in _times(state, chosen).items():
        body[key] = float(times.sum()) if key == _BUSY else int(times.sum())
    return cast(Io, body)


def of_subtasks(state: VertexState, chosen: Chosen = ALL) -> list[Io]:
    """Return each chosen subtask's counts and times; a count that it does not have is 0 and not complete."""
    told, times = counts(state, chosen), _times(state, chosen)
    keys = [*(key for name in told for key in (name, f"{name}-complete")), *times]
    values = [each.tolist() for count in told.values() for each in (count.values, count.known)]
    values += [(found.astype(np.float64) if key == _BUSY else found).tolist() for key, found in times.items()]
    return [cast(Io, dict(zip(keys, row, strict=True))) for row in zip(*values, strict=True)]


def spreads(state: VertexState, chosen: Chosen = ALL) -> Spreads:
    """Return the spread of each figure over the chosen subtasks."""
    values = {key: count.values for key, count in counts(state, chosen).items()} | _times(state, chosen)
    return cast(Spreads, {key: spread(found) for key, found in values.items()})


def spread(values: Whole) -> Spread:
    """
    Return the spread of whole numbers over subtasks, shape (n,), as the `aggregated` object has it; 0 for none.

    Fractions are cut off.

    Source: recorded answers of Flink 2.3; its percentiles are Commons Math's, that is NumPy's 'weibull'.
    """
    if not len(values):
        return {"min": 0, "max": 0, "avg": 0, "sum": 0, "median": 0, "p25": 0, "p75": 0, "p95": 0}
    median, p25, p75, p95 = np.percentile(values, (50, 25, 75, 95), method="weibull")
    return {
        "min": int(values.min()),
        "max": int(values.max()),
        "avg": int(values.sum() / len(values)),
        "sum": int(values.sum()),
        "median": int(median),
        "p25": int(p25),
        "p75": int(p75),
        "p95": int(p95),
    }
