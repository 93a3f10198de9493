"""A job's graph: vertices, their operators, and the exchanges between them."""

from __future__ import annotations

import msgspec


class Operator(msgspec.Struct, frozen=True):
    """
    One operator of a vertex.

    Args:
        id: 32 hex digits, the same in every batch and after every restart.
        name: Unique in its vertex; 'Source: …' and 'Sink: …' at the ends.
        node: Spark's node name; empty for a sink that Spark's plan does not show.
        description: Spark's one-line description, redacted.
    """

    id: str
    name: str
    node: str
    description: str


BROADCAST = "BROADCAST"
"""The ship strategy of what is sent whole to every reader: it joins a stream of records, and is none."""


class Edge(msgspec.Struct, frozen=True):
    """
    An exchange that a vertex reads.

    Args:
        source: Id of the vertex that writes it.
        ship_strategy: HASH, RANGE, REBALANCE, GLOBAL, CUSTOM or BROADCAST.
        description: Spark's description of the exchange, redacted.
    """

    source: str
    ship_strategy: str
    description: str


class Vertex(msgspec.Struct, frozen=True):
    """
    A vertex of the job's graph.

    Args:
        id: 32 hex digits, deterministic.
        name: Its operators' names from source to sink, joined by ' -> '.
        operators: From source to sink.
        inputs: Exchanges read, in the plan's order; of a vertex that begins with a source none but broadcasts.
        current: Whether the query's latest plan has it.
    """

    id: str
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[Edge, ...]
    current: bool = True

    @property
    def is_source(self) -> bool:
        """Whether it begins with a source: what it reads of other vertices only joins that."""
        return all(edge.ship_strategy == BROADCAST for edge in self.inputs)


class Plan(msgspec.Struct, frozen=True):
    """A job's graph: every vertex that any of its plans had, sources first."""

    vertices: tuple[Vertex, ...]
