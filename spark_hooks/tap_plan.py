"""What a tap must know of the plan that it is put on: the observations in it, and whether its tasks read the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_NARROW = frozenset(
    {
        "CollectMetrics",
        "DeserializeToObject",
        "EventTimeWatermark",
        "Filter",
        "Generate",
        "MapElements",
        "MapPartitions",
        "Project",
        "ResolvedHint",
        "SerializeFromObject",
        "StreamingExecutionRelation",
        "StreamingRelation",
        "StreamingRelationV2",
        "SubqueryAlias",
        "TypedFilter",
        "View",
    }
)
"""Nodes whose output partitions are their one input's, or the source's."""


class Plan:
    """
    A frame's logical plan.

    Args:
        frame: A classic DataFrame: one with a JVM in reach.

    Not thread safe, as Py4J's objects are.
    """

    def __init__(self, frame: Any) -> None:
        root = frame._jdf.queryExecution().analyzed()
        self._nodes = tuple((node.getClass().getSimpleName(), node) for node in _walk(root))

    def observes(self, name: str) -> bool:
        """Return whether an `observe()` of this name is in it."""
        return any(kind == "CollectMetrics" and node.name() == name for kind, node in self._nodes)

    def parting(self) -> str | None:
        """Return what may part rows anew between the source and here, by its node's name; None where nothing does."""
        return next((kind for kind, _ in self._nodes if kind not in _NARROW), None)


def _walk(root: Any) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting.extend(children.apply(index) for index in range(children.size()))
