"""How a figure spreads over the micro-batches of a run: exact bounds and average, quantiles over the latest."""

from __future__ import annotations

import numpy as np

from streamgauge import wire

WINDOW = 10_000
"""Latest values that quantiles are taken over. Source: Flink 2.3, `StatsSummary`'s histogram window."""

_FIRST_ROOM = 64
_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


class Spread:
    """
    Of one figure, integers ≥ 0. Not thread safe.

    Holds 8 bytes a value, of the latest WINDOW values alone; the room grows with them.

    Source: Flink 2.3, `StatsSummary`: minimum, maximum and integer average over all values; quantiles as Commons
    Math's `Percentile` has them, NumPy's 'weibull'.
    """

    def __init__(self) -> None:
        self._ring = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self._count = 0
        self._sum = 0
        self._min = 0
        self._max = 0
        self._told: wire.Spread | None = None

    def add(self, value: int) -> None:
        """Take in the value of one more micro-batch."""
        if self._count == len(self._ring) < WINDOW:
            self._ring = np.concatenate([self._ring, np.zeros_like(self._ring)])[:WINDOW]
        self._ring[self._count % len(self._ring)] = value
        self._min = min(self._min, value) if self._count else value
        self._max = max(self._max, value)
        self._sum += value
        self._count += 1
        self._told = None

    def told(self) -> wire.Spread | None:
        """Return it as it travels; None before the first value."""
        if self._told is None and self._count:
            latest = self._ring[: min(self._count, len(self._ring))]
            quantiles = np.quantile(latest, _QUANTILES, method="weibull").tolist()
            self._told = wire.Spread(self._min, self._max, self._sum // self._count, *quantiles)
        return self._told
