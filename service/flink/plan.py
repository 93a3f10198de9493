"""A job's graph as Flink draws it."""

from __future__ import annotations

import html

from collector.store import JobState, VertexState
from service.flink.query import Query
from streamgauge import wire

_EXCHANGE = "blocking"
"""Flink's word for a result that is written whole before it is read, as every Spark shuffle is."""


def job_plan(query: Query) -> dict[str, object]:
    """
    Answer /jobs/:jobid/plan.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    return {"plan": plan(query.job())}


def plan(state: JobState) -> dict[str, object]:
    """
    Return a job's graph, sinks first.

    Every vertex that any of the run's plans had is in it. Text of the user's is escaped, for Flink's page
    shows a description as HTML.
    """
    nodes = [_node(vertex) for vertex in reversed(list(state.vertices.values()))]
    return {"jid": state.job.jid, "name": state.job.name, "type": state.job.type, "nodes": nodes}


def _node(vertex: VertexState) -> dict[str, object]:
    node: dict[str, object] = {
        "id": vertex.vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": description(vertex.vertex),
        "optimizer_properties": {},
    }
    if vertex.vertex.inputs:
        node["inputs"] = [
            {"id": edge.source, "num": number, "exchange": _EXCHANGE, "ship_strategy": edge.ship_strategy}
            for number, edge in enumerate(vertex.vertex.inputs)
        ]
    return node


def description(vertex: wire.Vertex) -> str:
    """
    Return a vertex's operators, a line each, as HTML.

    Source: Flink's `JsonPlanGenerator` for the escaping, its `VertexDescriptionMode.TREE` for the layout.
    """
    lines = []
    for depth, operator in enumerate(vertex.operators):
        indent = "" if depth == 0 else "   " * (depth - 1) + "+- "
        text = operator.description or operator.name
        lines.append(f"{indent}{html.escape(text)}".replace("\\", "&#92;").replace("\n", "<br/>") + "<br/>")
    return "".join(lines)
