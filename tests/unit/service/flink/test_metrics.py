"""Plain metrics: ids, values as strings, what is not known left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.flink import metrics
from service.flink.query import Query
from streamgauge import catalogue, names

JID, VERTEX = "d" * 32, "c" * 32
VALUES = st.none() | st.integers(-(2**63), 2**63 - 1)


def ask(states: Any, vertex: Any, query_string: str = "", **path: str) -> Query:
    snapshot = states.snapshot(states.job(vertex))
    return Query.parse(snapshot, 5_000, {"jobid": JID, "vertexid": VERTEX, **path}, query_string.encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES, min_size=1, max_size=5), st.lists(VALUES, min_size=1, max_size=5))
def test_every_listed_id_has_a_value_and_no_other(states: Any, task: list[int | None], chain: list[int | None]) -> None:
    """The list of ids and the answers to them are the values that are there: a plain dictionary's."""
    size = min(len(task), len(chain))
    model = {f"{index}.a.b": value for index, value in enumerate(task[:size]) if value is not None}
    model |= {f"{index}.Map_1.c": value for index, value in enumerate(chain[:size]) if value is not None}
    operators = {"Map:1": {"c": states.column(*chain[:size])}}
    vertex = states.vertex(size, columns={"a.b": states.column(*task[:size])}, operators=operators)

    assert [each["id"] for each in metrics.vertex(ask(states, vertex))] == list(model)
    wanted = [f"{index}.{name}" for index in range(size + 1) for name in ("a.b", "Map_1.c", "c", "Map:1.c")]
    answer = metrics.vertex(ask(states, vertex, "get=" + ",".join(wanted)))
    assert {each["id"]: each["value"] for each in answer} == {key: str(value) for key, value in model.items()}
    for index in range(size + 1):
        query = ask(states, vertex, subtaskindex=str(index))
        ids = [key.partition(".")[2] for key in model if key.startswith(f"{index}.")]
        assert [each["id"] for each in metrics.subtask(query)] == ids
        query = ask(states, vertex, "get=a.b,Map_1.c,nope", subtaskindex=str(index))
        assert [each["id"] for each in metrics.subtask(query)] == ids


@pytest.mark.parametrize(
    "metric_id", ["a", ".a", "x.a", "-1.a", "0", "0.", "0.nope", "99.a", "\u0660.a", " 0.a", f"{'9' * 5_000}.a"]
)
def test_unknown_metric_is_left_out(states: Any, metric_id: str) -> None:
    """Whatever is wrong with an id, the others are answered."""
    vertex = states.vertex(columns={"a": states.column(1, 2)})
    answer = metrics.vertex(ask(states, vertex, f"get={metric_id},1.a"))
    assert answer == [{"id": "1.a", "value": "2"}]


def test_values_are_written_as_java_writes_them(states: Any) -> None:
    """Longs plain, doubles as Double.toString."""
    columns = {"long": states.column(1, 0), "double": states.column(1e10, 0.5), "nan": states.column(float("nan"), 1.0)}
    answer = metrics.vertex(ask(states, states.vertex(columns=columns), "get=0.long,0.double,1.double,0.nan"))
    assert [each["value"] for each in answer] == ["1", "1.0E10", "0.5", "NaN"]


def test_booleans_travel_as_numbers_and_are_told_as_words(states: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue knows which they are."""
    known = catalogue.Metric("isIt", "bool", "", "vertex", "", "")
    monkeypatch.setattr(catalogue, "find", lambda scope, name: known if (scope, name) == ("vertex", "isIt") else None)
    vertex = states.vertex(columns={"isIt": states.column(1, 0)})
    answer = metrics.vertex(ask(states, vertex, "get=0.isIt,1.isIt"))
    assert [each["value"] for each in answer] == ["true", "false"]


def test_vertex_metric_goes_before_an_operators(states: Any) -> None:
    """'Shuffle.x' of the vertex is not x of an operator called Shuffle."""
    operators = {"Shuffle": {"x": states.column(2, 2), "y": states.column(3, 3)}}
    vertex = states.vertex(columns={"Shuffle.x": states.column(1, 1)}, operators=operators)
    answer = metrics.vertex(ask(states, vertex, "get=0.Shuffle.x,0.Shuffle.y"))
    assert [each["value"] for each in answer] == ["1", "3"]


def test_operators_whose_filtered_names_agree_both_answer(states: Any) -> None:
    """'a b' and 'a.b' are the same in an id: the first that has the metric is told."""
    operators = {"a b": {"x": states.column(1, 1)}, "a.b": {"x": states.column(2, 2), "y": states.column(3, 3)}}
    answer = metrics.vertex(ask(states, states.vertex(operators=operators), "get=0.a_b.x,0.a_b.y"))
    assert [each["value"] for each in answer] == ["1", "3"]


def test_metrics_of_the_cluster_and_of_a_job(client: Any) -> None:
    """The driver that started last is the JobManager; times of a job come from the clock."""
    answer = client.get("/jobmanager/metrics?get=taskSlotsTotal,numRunningJobs,Status.JVM.Memory.Heap.Used").json()
    assert [each["value"] for each in answer] == ["4", "3", "71618048"]
    main = "9e283f61da6ac64998d5e31ca6520bee"
    answer = client.get(f"/jobs/{main}/metrics?get=uptime,numberOfCompletedCheckpoints,downtime").json()
    assert [each["value"] for each in answer] == [str(1795248821802 - 1795248586220), "47", "0"]


def test_watermarks_are_those_that_are_known_in_order(states: Any) -> None:
    """Whole numbers as text; without the column, as of a source, none."""
    path = {"jobid": "d" * 32, "vertexid": "c" * 32}
    column = states.column(1_795_248_818_500, None, -(2**63))
    told = states.snapshot(states.job(states.vertex(3, columns={names.CURRENT_INPUT_WATERMARK: column})))
    assert metrics.watermarks(Query.parse(told, 0, path, b"")) == [
        {"id": "0.currentInputWatermark", "value": "1795248818500"},
        {"id": "2.currentInputWatermark", "value": "-9223372036854775808"},
    ]
    assert metrics.watermarks(Query.parse(states.snapshot(states.job(states.vertex())), 0, path, b"")) == []


def test_what_the_driver_knows_of_a_source_is_told_under_its_operator(states: Any) -> None:
    """Of two sources of one name the first; an unknown vertex has none."""
    path = {"jobid": "d" * 32, "vertexid": "c" * 32}
    columns: Any = {"Source: files": {}, "Source. files": {}, "Filter": {}}
    known = {f"{0:032x}": {names.INPUT_ROWS: 7, names.INPUT_RATE: 2.5}, f"{1:032x}": {names.INPUT_ROWS: 9}}
    told = states.snapshot(states.job(states.vertex(operators=columns, coordinators=known)))
    prefix = "Source__files.coordinator."
    assert metrics.coordinators(Query.parse(told, 0, path, b"")) == [
        {"id": f"{prefix}numInputRows"},
        {"id": f"{prefix}inputRowsPerSecond"},
    ]
    asked = f"get={prefix}inputRowsPerSecond,nope,{prefix}numInputRows".encode()
    assert metrics.coordinators(Query.parse(told, 0, path, asked)) == [
        {"id": f"{prefix}inputRowsPerSecond", "value": "2.5"},
        {"id": f"{prefix}numInputRows", "value": "7"},
    ]
    assert metrics.coordinators(Query.parse(states.snapshot(), 0, path, b"")) == []
