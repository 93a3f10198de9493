"""A job's graph as Flink draws it."""

from __future__ import annotations

import html
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from collector.store import JobState, VertexState
from service.flink.ids import Id
from service.flink.query import Query
from streamgauge import wire

Exchange = Literal["blocking"]
_EXCHANGE: Exchange = "blocking"
"""Flink's word for a result that is written whole before it is read, as every Spark shuffle is."""


class Input(TypedDict):
    """An edge that ends in a node."""

    id: Id
    num: int
    exchange: Exchange
    ship_strategy: str


class OptimizerProperties(TypedDict):
    """Of Flink's DataSets, which are no more: always empty."""


class Node(TypedDict):
    """A vertex in the graph; a source has no `inputs`."""

    id: Id
    operator: str
    parallelism: int
    operator_strategy: str
    description: str
    optimizer_properties: OptimizerProperties
    inputs: NotRequired[list[Input]]


class Plan(TypedDict):
    """A job's graph."""

    jid: Id
    name: str
    type: Literal["STREAMING", "BATCH"]
    nodes: list[Node]


class JobPlan(TypedDict):
    """The body of /jobs/:jobid/plan."""

    plan: Plan


def job_plan(query: Query) -> JobPlan:
    """
    Answer /jobs/:jobid/plan.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    return {"plan": plan(query.job())}


def plan(state: JobState) -> Plan:
    """
    Return a job's graph, sinks first.

    Every vertex that any of the run's plans had is in it. Text of the user's is escaped, for Flink's page
    shows a description as HTML.
    """
    nodes = [_node(vertex) for vertex in reversed(list(state.vertices.values()))]
    return {"jid": state.job.jid, "name": state.job.name, "type": state.job.type, "nodes": nodes}


def _node(vertex: VertexState) -> Node:
    node: Node = {
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
