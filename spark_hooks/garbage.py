"""How much of its time a JVM spends in collecting garbage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spark_hooks.metrics import MeterViews
from streamgauge import names, wire


class GarbageRates:
    """
    Flink's TimeMsPerSecond of each collector: a MeterView over its time. Not thread safe.

    What a JVM has spent before the first look was spent at no time that is known, so it counts in no rate. (Flink
    looks from the start of the JVM.)

    Source: Flink 2.3, `MetricUtils.instantiateGarbageCollectorMetrics`.
    """

    def __init__(self) -> None:
        self._collectors: tuple[str, ...] = ()
        self._first: list[int] = []
        self._views = MeterViews(0)

    def update(self, figures: Mapping[str, wire.Scalar]) -> None:
        """
        Look again, once every 5 s.

        Args:
            figures: By Flink's names; of them each collector's time so far, ms.
        """
        found = {name: int(value) for name, value in figures.items() if _is_time(name)}
        if not found:
            return
        if tuple(found) != self._collectors:
            self._collectors, self._first = tuple(found), list(found.values())
            self._views = MeterViews(len(found))
            self._views.register(1)
        since = [now - first for now, first in zip(found.values(), self._first, strict=True)]
        self._views.update(np.array([since], dtype=np.int64))

    def rates(self) -> dict[str, wire.Scalar]:
        """Return the rates by Flink's names, ms a second; none before the first look."""
        if not self._collectors:
            return {}
        rates = self._views.rates()[0].tolist()
        return {f"{name}{names.MS_PER_SECOND}": rate for name, rate in zip(self._collectors, rates, strict=True)}


def _is_time(name: str) -> bool:
    return name.startswith(names.GARBAGE_COLLECTOR) and name.endswith(names.GARBAGE_TIME)
