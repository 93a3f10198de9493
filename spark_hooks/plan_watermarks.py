"""How far event time is at the operators and vertices of a plan, as Spark itself has it flow through a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spark_hooks.plan import BROADCAST, Exchange, Graph, Operator, Vertex
from streamgauge.watermarks import NO_WATERMARK_MS

ASSIGNER = "EventTimeWatermark"
"""The node of withWatermark()."""


class Mark(NamedTuple):
    """
    The watermarks of an operator, Unix ms.

    Args:
        input_ms: None where it has none, or Spark does not say.
        output_ms: Likewise.
    """

    input_ms: int | None = None
    output_ms: int | None = None


class Marks(NamedTuple):
    """
    The watermarks of a plan.

    Args:
        operators: Of every operator.
        vertices: What each vertex reads, Unix ms: NO_WATERMARK_MS where that has no watermark; None for a vertex that
            reads no shuffle.
    """

    operators: Mapping[Operator, Mark]
    vertices: Mapping[Vertex, int | None]


def propagate(graph: Graph, query_ms: int) -> Marks:
    """
    Return the watermarks of a plan's operators and vertices.

    What withWatermark() puts out is the query's one watermark, however many of them the plan has. An operator passes on
    the least of what its inputs have; one that keeps state, what Spark prints at it. A vertex has the least of what
    comes in, and of what Spark prints at the stateful operators that this comes to first.

    Args:
        query_ms: The query's watermark where the plan does not print it, NO_WATERMARK_MS before there is one.

    Any thread; depends on nothing but its arguments.

    Source: Spark, `WatermarkPropagator`, 3.5.9 and 4.3.0.
    """
    origin_ms = _origin(graph, query_ms)
    operators: dict[Operator, Mark] = {}
    outputs: dict[Operator | Vertex, int | None] = {}
    vertices: dict[Vertex, int | None] = {}
    for vertex in graph.vertices:
        unkept: set[Operator] = set()
        first: list[int] = []
        for operator in vertex.operators:
            came_ms = _least(outputs[each] for each in _inputs(operator))
            mark = _mark(operator, came_ms, origin_ms)
            operators[operator] = mark
            outputs[operator] = mark.output_ms if _ends(operator) else came_ms
            if any(each in unkept or (isinstance(each, Exchange) and each.shuffles) for each in operator.inputs):
                if not _ends(operator):
                    unkept.add(operator)
                elif mark.input_ms is not None:
                    first.append(mark.input_ms)
        outputs[vertex] = outputs[vertex.operators[-1]]
        vertices[vertex] = _read(vertex, first, outputs)
    return Marks(operators, vertices)


def _ends(operator: Operator) -> bool:
    """Whether what it puts out has another watermark than what it reads."""
    return operator.thresholds is not None or operator.node == ASSIGNER


def _mark(operator: Operator, came_ms: int | None, origin_ms: int) -> Mark:
    if operator.node == ASSIGNER:
        return Mark(output_ms=origin_ms)
    told = operator.thresholds
    if told is None:
        return Mark()
    if came_ms is None:
        # Spark prints 0 where it knows of none; it has seen more of the plan than is left where a side is empty.
        return Mark(told.eviction_ms, told.output_ms) if told.eviction_ms else Mark()
    if told.eviction_ms <= 0 and origin_ms == NO_WATERMARK_MS:
        return Mark(NO_WATERMARK_MS, None if told.output_ms is None else NO_WATERMARK_MS)
    return Mark(told.eviction_ms, told.output_ms)


def _origin(graph: Graph, query_ms: int) -> int:
    """
    Return the query's watermark of this micro-batch: the threshold of a stateful operator that has none below it.

    Its progress tells the same, at its end.
    """
    marked: set[Operator | Vertex] = set()
    for vertex in graph.vertices:
        for operator in vertex.operators:
            if operator.node == ASSIGNER:
                marked.add(operator)
            elif not marked.isdisjoint(_inputs(operator)):
                # Every operator comes after its inputs, so the first one is such.
                if operator.thresholds is not None:
                    return operator.thresholds.eviction_ms or NO_WATERMARK_MS
                marked.add(operator)
        if vertex.operators[-1] in marked:
            marked.add(vertex)
    return query_ms


def _inputs(operator: Operator) -> Iterable[Operator | Vertex]:
    """Return what it reads: operators of its vertex, and vertices behind exchanges; subqueries are values."""
    for found in operator.inputs:
        if isinstance(found, Operator):
            yield found
        elif found.shuffles or found.node == BROADCAST:
            yield found.source


def _read(vertex: Vertex, first: list[int], outputs: Mapping[Operator | Vertex, int | None]) -> int | None:
    sources = [exchange.source for exchange in vertex.reads if exchange.shuffles]
    if not sources:
        return None
    came_ms = _least([*first, *(outputs[source] for source in sources)])
    return NO_WATERMARK_MS if came_ms is None else came_ms


def _least(found: Iterable[int | None]) -> int | None:
    return min((each for each in found if each is not None), default=None)
