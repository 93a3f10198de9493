"""One subtask, its attempts, and the times of all."""

from __future__ import annotations

from typing import Any

import pytest

from service.errors import Missing
from service.flink import subtasks, vertices
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownSubtask

PATH = {"jobid": "d" * 32, "vertexid": "c" * 32}


@pytest.fixture
def snapshot(states: Any) -> Any:
    times = states.times(3, attempt=[2, 0, 0], executor=[0, 0, -1], start_ms=[3_000, 3_500, -1])
    vertex = states.vertex(3, subtasks=times, columns={names.NUM_RECORDS_IN: states.column(5, None, 9)})
    return states.snapshot(states.job(vertex), states.app(states.executor("app-1-0")))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_subtask_is_its_row_of_the_vertex(snapshot: Any, index: int) -> None:
    """Nothing else is told of it alone than among the others."""
    path = {**PATH, "subtaskindex": str(index)}
    alone = subtasks.current(Query.parse(snapshot, 5_000, path, b""))
    assert alone == vertices.detail(Query.parse(snapshot, 5_000, path, b""))["subtasks"][index]
    assert alone["subtask"] == index


def test_subtask_past_the_last_is_unknown(snapshot: Any) -> None:
    """Flink's words name the vertex."""
    with pytest.raises(UnknownSubtask):
        subtasks.current(Query.parse(snapshot, 5_000, {**PATH, "subtaskindex": "3"}, b""))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1", "Attempt 1 not found in subtask Scan -> Filter (1/3)"),
        ("3", "Invalid attempt num 3"),
        ("-1", "Invalid attempt num -1"),
    ],
)
def test_attempt_that_is_not_the_latest_is_missing(snapshot: Any, number: str, words: str) -> None:
    """An earlier one was there, a later one was not."""
    path = {**PATH, "subtaskindex": "0", "attempt": number}
    with pytest.raises(Missing) as error:
        subtasks.attempt(Query.parse(snapshot, 5_000, path, b""))
    assert str(error.value).endswith(f"RestHandlerException: {words}")


def test_latest_attempt_is_the_subtask(snapshot: Any) -> None:
    """As `current` has it."""
    query = Query.parse(snapshot, 5_000, {**PATH, "subtaskindex": "0", "attempt": "2"}, b"")
    assert subtasks.attempt(query) == subtasks.current(query)


def test_times_tell_what_spark_tells(snapshot: Any, states: Any) -> None:
    """The launch of the latest task, and 0 for states that nobody saw."""
    body: Any = subtasks.times(Query.parse(snapshot, 5_000, PATH, b""))
    assert [(row["endpoint"], row["duration"], row["timestamps"]["RUNNING"]) for row in body["subtasks"]] == [
        ("10.0.0.7:7079", 2_000, 3_000),
        ("10.0.0.7:7079", 1_500, 3_500),
        ("(unassigned)", -1, 0),
    ]
    assert sum(body["subtasks"][0]["timestamps"].values()) == 3_000


def test_times_tell_the_end_under_its_state(states: Any) -> None:
    """It is the vertex's."""
    ended = states.job(states.vertex(1, subtasks=states.times(1)), state="CANCELED", end_ms=4_000)
    body: Any = subtasks.times(Query.parse(states.snapshot(ended), 5_000, PATH, b""))
    told = {state: when for state, when in body["subtasks"][0]["timestamps"].items() if when}
    assert (told, body["subtasks"][0]["duration"]) == ({"RUNNING": 2_000, "CANCELED": 4_000}, 2_000)


@pytest.mark.parametrize("handler", [subtasks.current, subtasks.attempt, subtasks.times])
def test_unknown_vertex_is_refused_in_flinks_other_words(states: Any, handler: Any) -> None:
    """They differ from those of the vertex's own page."""
    path = {**PATH, "subtaskindex": "0", "attempt": "0"}
    with pytest.raises(Missing, match=f"No vertex with ID '{'c' * 32}' exists."):
        handler(Query.parse(states.snapshot(states.job()), 0, path, b""))
