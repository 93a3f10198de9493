"""Aggregated metrics: numbers over subtasks, jobs and executors."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.flink import aggregates
from service.flink.query import Query
from streamgauge import catalogue

JID, VERTEX = "d" * 32, "c" * 32


def ask(states: Any, vertex: Any, query_string: str) -> Any:
    snapshot = states.snapshot(states.job(vertex))
    query = Query.parse(snapshot, 5_000, {"jobid": JID, "vertexid": VERTEX}, query_string.encode())
    return json.loads(msgspec.json.encode(aggregates.subtasks(query)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.none() | st.integers(0, 10**15), min_size=1, max_size=8),
    st.none() | st.sets(st.integers(0, 9), min_size=1),
)
def test_aggregates_are_those_of_the_values_that_are_there(
    states: Any, values: list[int | None], chosen: set[int] | None
) -> None:
    """Over the selected subtasks that have one; none at all makes the answer empty."""
    vertex = states.vertex(len(values), columns={"x": states.column(*values)})
    selection = "" if chosen is None else "&subtasks=" + ",".join(map(str, chosen))
    there = [
        float(value) for index, value in enumerate(values) if value is not None and (chosen is None or index in chosen)
    ]
    answer = ask(states, vertex, f"get=x{selection}")
    if not there:
        assert answer == []
        return
    average = sum(there) / len(there)
    distance = sum(abs(value - average) for value in there) / len(there)
    assert answer[0] == {
        "id": "x",
        "min": min(there),
        "max": max(there),
        "avg": pytest.approx(average),
        "sum": pytest.approx(sum(there)),
        "skew": pytest.approx(min(100.0, 100.0 * distance / average) if average else 0.0),
    }
    assert ask(states, vertex, selection[1:]) == [{"id": "x"}]


def test_numbers_are_doubles_as_jackson_writes_them(states: Any) -> None:
    """Also whole ones, and big ones with an exponent; what is not finite is quoted."""
    vertex = states.vertex(
        1, columns={"x": states.column(126569), "y": states.column(10**12), "z": states.column(math.inf)}
    )
    query = Query.parse(
        states.snapshot(states.job(vertex)), 0, {"jobid": JID, "vertexid": VERTEX}, b"get=x,y,z&agg=max"
    )
    assert msgspec.json.encode(aggregates.subtasks(query)) == (
        b'[{"id":"x","max":126569.0},{"id":"y","max":1.0E12},{"id":"z","max":"Infinity"}]'
    )


def test_one_metric_without_a_value_empties_the_answer(states: Any) -> None:
    """As in Flink, though the others have one; with `subtasks` too."""
    vertex = states.vertex(columns={"x": states.column(1, 2), "y": states.column(1, None)})
    assert ask(states, vertex, "get=x,nope") == []
    assert len(ask(states, vertex, "get=x,y")) == 2
    assert ask(states, vertex, "get=x,y&subtasks=1") == []


def test_booleans_are_skipped_and_do_not_empty_the_answer(states: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no number cannot be aggregated, but it is there."""
    known = catalogue.Metric("isIt", "bool", "", "vertex", "", "")
    monkeypatch.setattr(catalogue, "find", lambda scope, name: known if name == "isIt" else None)
    vertex = states.vertex(columns={"isIt": states.column(1, 0), "x": states.column(1, 2)})
    assert [each["id"] for each in ask(states, vertex, "get=isIt,x")] == ["x"]
    assert ask(states, vertex, "get=isIt") == []


def test_text_among_the_values_of_jobs_is_skipped(states: Any) -> None:
    """One job's text makes the metric no number."""
    one = states.job(jid="1" * 32, metrics={"x": 1, "y": 5})
    other = states.job(jid="2" * 32, metrics={"x": "one", "y": 7})
    answer = aggregates.jobs(Query.parse(states.snapshot(one, other), 0, {}, b"get=x,y&agg=sum"))
    assert msgspec.json.encode(answer) == b'[{"id":"y","sum":12.0}]'


def test_unknown_jobs_and_executors_in_the_filter_are_passed_over(client: Any) -> None:
    """The known ones are aggregated."""
    main = "9e283f61da6ac64998d5e31ca6520bee"
    answer = client.get(f"/jobs/metrics?get=numRestarts&agg=sum&jobs={'0' * 32},{main.upper()}")
    assert answer.json() == [{"id": "numRestarts", "sum": 0.0}]
    answer = client.get(
        "/taskmanagers/metrics?get=Status.JVM.Memory.Heap.Used&agg=max&taskmanagers=nope,127.0.0.1:33695-4aa8b7"
    )
    assert answer.text == '[{"id":"Status.JVM.Memory.Heap.Used","max":2.52214273E8}]'
