"""The latest rows of figures, each with its time: what is past the capacity is overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

CAPACITY = 180


class Ring:
    """
    At most CAPACITY rows, the oldest leave first. Not thread safe.

    Args:
        width: Figures in a row.
        dtype: Of the figures.
    """

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        self._times_ms = np.zeros(CAPACITY, dtype=np.int64)
        self._rows = np.zeros((CAPACITY, width), dtype=dtype)
        self._added = 0

    @property
    def nbytes(self) -> int:
        """Return what it takes, however many rows there are."""
        return self._times_ms.nbytes + self._rows.nbytes

    def add(self, time_ms: int, row: npt.ArrayLike) -> None:
        """Add a row of `width` figures; times need not ascend, for clocks are set."""
        place = self._added % CAPACITY
        self._times_ms[place] = time_ms
        self._rows[place] = row
        self._added += 1

    def since(self, time_ms: int | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """
        Return times, shape (n,), and rows, shape (n, width), in the order in which they were added; the caller's own.

        Args:
            time_ms: Of rows after that alone; None for all.
        """
        start = max(self._added - CAPACITY, 0)
        places = np.arange(start, self._added) % CAPACITY
        if time_ms is not None:
            places = places[self._times_ms[places] > time_ms]
        return self._times_ms[places], self._rows[places]
