"""The catalogue: what every metric is, its type, unit, scope, source and meaning on Spark."""

from __future__ import annotations

from streamgauge.catalogue import jobs, processes, sources, splits, states, timers, vertices, watermarks
from streamgauge.catalogue.metric import Metric, Scope, Type

__all__ = ["METRICS", "PATTERNS", "Metric", "Scope", "Type", "find"]

METRICS: tuple[Metric, ...] = (
    *vertices.METRICS,
    *watermarks.METRICS,
    *sources.METRICS,
    *splits.METRICS,
    *states.METRICS,
    *timers.METRICS,
    *jobs.METRICS,
    *processes.METRICS,
)
"""Every metric whose name is known beforehand, each once a scope."""

PATTERNS: tuple[Metric, ...] = (*vertices.PATTERNS, *sources.PATTERNS, *splits.PATTERNS, *processes.PATTERNS)
"""Those whose names have parts that ids, a JVM or a connector fill; such a part stands as '<…>'."""

_INDEX: dict[tuple[Scope, str], Metric] = {(metric.scope, metric.name): metric for metric in METRICS}


def find(scope: Scope, name: str) -> Metric | None:
    """Return the entry of METRICS, or None for a name that is not in it."""
    return _INDEX.get((scope, name))
