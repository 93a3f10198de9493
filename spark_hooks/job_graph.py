"""The graph of a job: its vertices over all plans that its batches had."""

from __future__ import annotations

from collections.abc import Iterable

from spark_hooks import plan
from spark_hooks.counts import TOTALS, late
from spark_hooks.plan_watermarks import propagate
from spark_hooks.vertex import Bound, JobVertex

VERTICES = 500
"""Held of one run. User code in foreachBatch may plan differently in every batch; the oldest plans leave."""


class JobGraph:
    """
    The vertices of one run. Not thread safe.

    `vertices` are all of them, by id, `current` the ids of those that the latest plans have; `revision` grows with
    whatever changes in the graph.
    """

    def __init__(self) -> None:
        self.vertices: dict[str, JobVertex] = {}
        self.current: set[str] = set()
        self.revision = 0
        self._positions: dict[tuple[int, ...], str] = {}

    @property
    def own(self) -> dict[str, JobVertex]:
        """The vertices of the query's latest own plan, by id."""
        own = self.current.intersection(self._positions.values())
        return {vertex_id: self.vertices[vertex_id] for vertex_id in own.intersection(self.vertices)}

    def merge(self, graph: plan.Graph, own: bool) -> None:
        """
        Take a plan's vertices into the graph; a vertex that is there stays as it is.

        Args:
            own: It is the query's own plan, not one that user code ran within a batch.
        """
        for vertex in graph.vertices:
            if vertex.empty and not vertex.operators[-1].sink:
                continue
            self.bind(vertex, own)

    def bind(self, vertex: plan.Vertex, own: bool, only: frozenset[int] | None = None) -> Bound:
        """
        Return the job's vertex that `vertex` is, added if it is new.

        Args:
            only: Accumulators that count; None for all.

        Where Spark shows an empty source in place of the real one, the vertex at the same place of the
        plan is meant: a batch without rows renames nothing.
        """
        known = self._known(vertex, own)
        if known is not None and known.id != vertex.id:
            return _bound(vertex, known, only)
        if known is None:
            self._make_room()
            known = self.vertices[vertex.id] = JobVertex(vertex)
            self.revision += 1
        if known.link(vertex):
            self.revision += 1
        if own and not vertex.empty:
            self._positions[vertex.position] = vertex.id
        return _bound(vertex, known, only)

    def bound(self, vertex: plan.Vertex, own: bool) -> Bound | None:
        """Return the job's vertex that `vertex` is; None where it has none."""
        known = self._known(vertex, own)
        return None if known is None else _bound(vertex, known)

    def mark(self, graph: plan.Graph, query_ms: int) -> None:
        """
        Tell every vertex how far event time is at it.

        Args:
            graph: The query's own plan of the micro-batch that ran last, or runs.
            query_ms: The query's watermark, NO_WATERMARK_MS before there is one.
        """
        marks = propagate(graph, query_ms)
        for vertex in graph.vertices:
            known = self._known(vertex, own=True)
            if known is None:
                continue
            known.watermarks.input_ms = marks.vertices[vertex]
            places = range(len(vertex.operators)) if known.id == vertex.id else _matched(vertex, known)
            for operator, place in zip(vertex.operators, places, strict=True):
                if place is not None:
                    known.watermarks.mark(known.operators[place].id, marks.operators[operator])

    def show(self, graphs: Iterable[tuple[plan.Graph, bool]]) -> None:
        """
        Tell which vertices the latest plans have; where Spark shows an empty source, what was there stays.

        Args:
            graphs: Each with whether it is the query's own plan.
        """
        vertices = (self._known(vertex, own) for graph, own in graphs for vertex in graph.vertices)
        found = {vertex.id for vertex in vertices if vertex is not None}
        if found and found != self.current:
            self.current = found
            self.revision += 1

    def _known(self, vertex: plan.Vertex, own: bool) -> JobVertex | None:
        known = self.vertices.get(vertex.id)
        if known is None and vertex.empty and own:
            known = self.vertices.get(self._positions.get(vertex.position, ""))
        return known

    def _make_room(self) -> None:
        """Let the oldest vertex go that no latest plan has, where there are too many."""
        if len(self.vertices) >= VERTICES:
            oldest = next((vertex_id for vertex_id in self.vertices if vertex_id not in self.current), None)
            if oldest is not None:
                del self.vertices[oldest]


def _bound(vertex: plan.Vertex, known: JobVertex, only: frozenset[int] | None = None) -> Bound:
    columns = tuple(range(len(known.known))) if known.id == vertex.id else _columns(vertex, known)
    return Bound(vertex, known, columns, only)


def _columns(vertex: plan.Vertex, known: JobVertex) -> tuple[int | None, ...]:
    """Match the counters of a plan with an empty source to the real ones."""
    matched, operators = _matched(vertex, known), 2 * len(known.operators)
    columns: list[int | None] = []
    for place in matched:
        columns += [None, None] if place is None else [2 * place, 2 * place + 1]
    columns += range(operators, operators + len(TOTALS))
    dropped = {place: operators + len(TOTALS) + number for number, place in enumerate(known.late)}
    return (*columns, *(dropped.get(-1 if (place := matched[own]) is None else place) for own in late(vertex)))


def _matched(vertex: plan.Vertex, known: JobVertex) -> list[int | None]:
    """Match the operators of a plan with an empty source to the real ones, by node and from the sink."""
    free = list(range(len(known.operators)))
    matched: list[int | None] = []
    for operator in reversed(vertex.operators):
        found = next((index for index in reversed(free) if _same(known.operators[index], operator)), None)
        if found is not None:
            free.remove(found)
        matched.append(found)
    matched.reverse()
    return matched


def _same(one: plan.Operator, other: plan.Operator) -> bool:
    return one.node == other.node or (one.is_source and other.is_source)
