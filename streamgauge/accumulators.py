"""What Spark's native SQL metrics are: how each is kept over the tasks of a run, in the one place that says so."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from streamgauge.wire import AccumulatorKind

Rule = Literal["flow", "level", "peak", "average"]
"""
How a metric is kept, and what it is over several subtasks.

flow: What was done: rows, bytes, time. Summed over the tasks of a run, and over subtasks.
level: What is there: of a subtask's latest task; summed over subtasks.
peak: The greatest of a run; the greatest of all subtasks.
average: Of a subtask's latest task, ten times as much; 0 where it has none. Averages are not added up.
"""

AVERAGE_SCALE = 10
"""Spark keeps an average as a whole number of tenths. Source: Spark, `SQLMetrics.baseForAvgMetric`."""

_PEAKS = frozenset({"peak memory"})

_LEVELS = frozenset(
    {
        # Of a state store as its task left it.
        "number of total state rows",
        "memory used by state",
        "estimated size of state only on current version",
        "RocksDB: memory usage for pinned blocks",
        "RocksDB: size of all SST files",
        "RocksDB: number of internal keys for internal column families",
        "RocksDB: number of external column families",
        "RocksDB: number of internal column families",
        # Counted up by a state store for as long as it is loaded, and told anew by every task that uses it.
        "count of cache hit on states cache in provider",
        "count of cache miss on states cache in provider",
        # Every task counts what the operator has, which is the same in every batch.
        "number of shuffle partitions",
        "number of state store instances",
        "Number of value state variables",
        "Number of list state variables",
        "Number of map state variables",
        "Number of value state variables with TTL",
        "Number of list state variables with TTL",
        "Number of map state variables with TTL",
        # The driver tells with every plan how wide an exchange is.
        "number of partitions",
    }
)
"""
Kinds do not tell a level from a flow: state in memory and bytes sent are both sizes.

RocksDB's other figures are flows, for Spark resets them with every batch unless `resetStatsOnLoad` is off.

Source: Spark 3.5.9 and 4.3.0, metrics of all nodes of `sql.execution` and of both state stores.
"""

_UNITS: dict[AccumulatorKind, str] = {"size": "bytes", "timing": "ms", "nsTiming": "ns"}


@lru_cache(maxsize=4096)
def rule(kind: AccumulatorKind, name: str) -> Rule:
    """
    Return how a metric is kept.

    Args:
        kind: Spark's.
        name: Spark's display name, without a number that makes it unique.

    A metric that is not known here falls under its kind: averages are averages, all else flows. Any thread.
    """
    if kind == "average":
        return "average"
    if name in _PEAKS:
        return "peak"
    return "level" if name in _LEVELS else "flow"


def unit(kind: AccumulatorKind) -> str:
    """Return the unit of a metric's values: 'bytes', 'ms', 'ns', or '' for a plain number or an average. Any thread."""
    return _UNITS.get(kind, "")
