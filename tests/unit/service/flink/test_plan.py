"""The graph as Flink draws it."""

from __future__ import annotations

from typing import Any

from service.flink.plan import description, plan
from streamgauge import wire


def test_nodes_come_sinks_first_with_the_exchanges_they_read(states: Any) -> None:
    """A source has no `inputs` at all."""
    edge = wire.Edge("a" * 32, "HASH", "hashpartitioning(x)")
    source, sink = states.vertex(3, id="a" * 32), states.vertex(2, id="b" * 32, inputs=(edge, edge))
    told = plan(states.job(source, sink))
    nodes: Any = told["nodes"]
    assert [(node["id"], node["parallelism"]) for node in nodes] == [("b" * 32, 2), ("a" * 32, 3)]
    assert nodes[0]["inputs"] == [
        {"id": "a" * 32, "num": number, "exchange": "blocking", "ship_strategy": "HASH"} for number in (0, 1)
    ]
    assert "inputs" not in nodes[1]


def test_description_is_a_tree_of_operators(states: Any) -> None:
    """A line each, as Flink's TREE mode; an operator without a description is told by its name."""
    vertex = states.vertex(operators={"Scan": {}, "Filter": {}}).vertex
    bare = wire.Operator("f" * 32, "Sink: console", "", "")
    vertex = wire.Vertex(vertex.id, vertex.name, (*vertex.operators, bare), ())
    assert description(vertex) == "Scan described<br/>+- Filter described<br/>   +- Sink: console<br/>"


def test_text_of_the_users_is_harmless_in_the_page() -> None:
    """A column name may hold anything; Flink's page shows a description as HTML."""
    hostile = wire.Operator("f" * 32, "x", "", "Filter <img src=x onerror='alert(\"1\")'> & \\ \n end")
    assert description(wire.Vertex("a" * 32, "x", (hostile,), ())) == (
        "Filter &lt;img src=x onerror=&#x27;alert(&quot;1&quot;)&#x27;&gt; &amp; &#92; <br/> end<br/>"
    )
