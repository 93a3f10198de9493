"""The ways through a query's plan."""

from __future__ import annotations

from spark_hooks import plan
from spark_hooks.routes import Routes
from spark_hooks.vertex import JobVertex
from tests.unit.spark_hooks.marker_runs import TWO_VERTICES
from tests.unit.spark_hooks.spark_plans import SINK, tree

FIRST, SECOND = "Source: RateStream -> Project", "HashAggregate -> Sink: Noop"


def vertices(text: str) -> dict[str, plan.Vertex]:
    return {vertex.name: vertex for vertex in plan.analyse(tree(text), SINK).vertices}


def linked(*found: plan.Vertex) -> dict[str, JobVertex]:
    told: dict[str, JobVertex] = {}
    for vertex in found:
        known = told.setdefault(vertex.id, JobVertex(vertex))
        known.link(vertex)
    return told


def test_a_vertex_seen_first_with_an_empty_source_is_entered_where_the_real_one_feeds_it() -> None:
    """A query's first batch may have no rows: the vertex behind is known by a plan with Spark's stand-in."""
    before = vertices(
        TWO_VERTICES.replace(
            "MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable",
            "LocalTableScan | LocalTableScan <empty>, [a#1]",
        )
    )
    after = vertices(TWO_VERTICES)
    assert before[SECOND].id == after[SECOND].id
    told = linked(before[SECOND], after[FIRST], after[SECOND])
    routes = Routes(told)
    first, second = after[FIRST].id, after[SECOND].id
    assert routes.readers(first) == [second]
    assert routes.writers(second) == [first]
    aggregate, sink = (operator.id for operator in told[second].operators)
    assert [station.operators for station in routes.stations(second, first)] == [(aggregate,), (sink,)]
    assert (routes.ends(first), routes.ends(second)) == (False, True)


def test_what_no_operator_reads_ends_in_the_sink() -> None:
    """What Spark found to be empty keeps its stages, and no operator that reads them."""
    after = vertices(TWO_VERTICES)
    routes = Routes(linked(after[SECOND]))
    sink = after[SECOND].operators[-1].id
    assert [station.operators for station in routes.stations(after[SECOND].id, "elsewhere")] == [(sink,)]
    assert Routes(linked(after[FIRST])).stations(after[FIRST].id, "elsewhere") == []


def test_vertices_of_other_plans_are_no_readers() -> None:
    """A vertex that the plan does not have is on no way."""
    after = vertices(TWO_VERTICES)
    told = linked(after[FIRST], after[SECOND])
    only = {after[FIRST].id: told[after[FIRST].id]}
    assert Routes(only).readers(after[FIRST].id) == []
    assert Routes({}).stations("unknown", "elsewhere") == []
