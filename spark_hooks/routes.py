"""Where a latency marker goes: the operators that it passes within a vertex, and who reads what the vertex writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_hooks.plan import Exchange, Operator
from spark_hooks.vertex import JobVertex


@dataclass(frozen=True, slots=True)
class Station:
    """
    Operators of a vertex that the same markers pass.

    Args:
        operators: Their ids.
        entries: Where those markers come into the vertex: ids of its own source operators, and of vertices that write
            what it reads.
        sink: They end the query.
    """

    operators: tuple[str, ...]
    entries: frozenset[str]
    sink: bool


class Routes:
    """
    The ways through a query's own plan; nothing of it changes.

    Args:
        vertices: The plan's, by id.
    """

    def __init__(self, vertices: Mapping[str, JobVertex]) -> None:
        self._stations = {vertex_id: _stations(vertex) for vertex_id, vertex in vertices.items()}
        self._readers: dict[str, list[str]] = {vertex_id: [] for vertex_id in vertices}
        for vertex_id, vertex in vertices.items():
            for source in vertex.inputs:
                if source in self._readers and source != vertex_id:
                    self._readers[source].append(vertex_id)
        self.longest = len(vertices)

    def stations(self, vertex_id: str, entry: str) -> list[Station]:
        """
        Return what a marker passes that comes into a vertex at `entry`, on its way to the chain's end.

        What is read by no operator, as where Spark found the plan above it to be empty, still ends in the sink.
        """
        known = self._stations.get(vertex_id, ())
        passed = [station for station in known if entry in station.entries]
        return passed or [station for station in known if station.sink]

    def readers(self, vertex_id: str) -> list[str]:
        """Return the vertices that read what a vertex writes."""
        return self._readers.get(vertex_id, [])

    def writers(self, vertex_id: str) -> list[str]:
        """Return the vertices that write what a vertex reads."""
        return [writer for writer, readers in self._readers.items() if vertex_id in readers]

    def ends(self, vertex_id: str) -> bool:
        """Whether the query ends in a vertex."""
        return any(station.sink for station in self._stations.get(vertex_id, ()))


def _stations(vertex: JobVertex) -> tuple[Station, ...]:
    """Group the operators by what they read, which never changes; who writes that may be found later."""
    heads: dict[Operator, frozenset[Operator | Exchange]] = {}
    grouped: dict[tuple[frozenset[Operator | Exchange], bool], list[str]] = {}
    for operator in vertex.operators:
        found = frozenset[Operator | Exchange]()
        for read in operator.inputs:
            # A source operator puts markers out and, as in Flink, records none of its own.
            own = isinstance(read, Exchange) or read.is_source
            found = found.union([read] if own else (), () if isinstance(read, Exchange) else heads.get(read, ()))
        heads[operator] = found
        if found:
            grouped.setdefault((found, operator.sink), []).append(operator.id)
    return tuple(
        Station(tuple(operators), frozenset(entry for head in found for entry in _entries(vertex, head)), sink)
        for (found, sink), operators in grouped.items()
    )


def _entries(vertex: JobVertex, head: Operator | Exchange) -> Iterator[str]:
    """
    Yield the ids under which markers come in at a source operator or an exchange.

    The operators are those of the first plan that had the vertex. Another vertex may have written the exchange then:
    Spark's stand-in for a source without rows; it had the same place in the plan.
    """
    if isinstance(head, Operator):
        yield head.id
        return
    for source, exchange in vertex.inputs.items():
        if source == head.source.id or exchange.position == head.position:
            yield source
