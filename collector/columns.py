"""Reading columns: the values that are there, and Flink's five aggregates over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collector.store import Column


@dataclass(frozen=True, slots=True)
class Summary:
    """
    Flink's aggregates over values of different subtasks, vertices, jobs or executors.

    Args:
        min, max, sum, avg: As they say; NaN if any value is NaN.
        skew: Percent, at most 100: mean distance from the average over the average; 0 if that is 0.
            It is negative where the average is.

    Source: Flink 2.3, `DoubleAccumulator`.
    """

    min: float
    max: float
    avg: float
    sum: float
    skew: float


def value(column: Column, subtask: int) -> int | float | None:
    """
    Return one subtask's value, an int of an int64 column and a float of a float64 one.

    Args:
        column: Looked into.
        subtask: Any integer.

    Returns:
        None where the column has no such subtask or the subtask has no value.

    Any thread.
    """
    if not 0 <= subtask < len(column.values):
        return None
    if column.present is not None and not column.present[subtask]:
        return None
    found: int | float = column.values[subtask].item()
    return found


def subtasks(column: Column) -> npt.NDArray[np.intp]:
    """Return the subtasks that have a value, ascending, shape (n,), owned by the caller; any thread."""
    if column.present is None:
        return np.arange(len(column.values))
    return np.flatnonzero(column.present)


def values(column: Column, selected: Sequence[int] | None = None) -> npt.NDArray[np.float64]:
    """
    Return the values that are there as numbers, shape (n,), by ascending subtask.

    Args:
        column: Looked into.
        selected: Subtasks to look at, in any order; those that the column does not have are passed over
            and each counts once. None for all.

    Returns:
        float64, owned by the caller; an int64 beyond 2^53 is rounded, as Flink's parsing rounds it.

    Any thread.
    """
    if selected is None:
        return (column.values if column.present is None else column.values[column.present]).astype(np.float64)
    there = subtasks(column)
    return column.values[there[np.isin(there, np.asarray(selected, dtype=np.int64))]].astype(np.float64)


def summarize(numbers: npt.NDArray[np.float64]) -> Summary | None:
    """
    Return the aggregates of numbers of shape (n,), or None where there are none.

    Any thread.

    Source: Flink 2.3, `DoubleAccumulator`; recorded answers of its REST for skew and NaN.
    """
    if not numbers.size:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        total = _sum(numbers)
        average = total / numbers.size
        return Summary(
            min=float(numbers.min()),
            max=float(numbers.max()),
            avg=average,
            sum=total,
            skew=_skew(numbers, average),
        )


def _skew(numbers: npt.NDArray[np.float64], average: float) -> float:
    if average == 0:
        return 0.0
    distance = _sum(np.abs(numbers - average)) / numbers.size
    # The division comes first, as in Flink: the other way round differs in the last digit.
    skew = 100.0 * (distance / average)
    # Written so that NaN stays NaN, as in Java's Math.min.
    return 100.0 if skew > 100.0 else skew


def _sum(numbers: npt.NDArray[np.float64]) -> float:
    # One after another, as Flink adds: NumPy's pairwise sum differs from it in the last digits.
    return float(np.cumsum(numbers)[-1])
