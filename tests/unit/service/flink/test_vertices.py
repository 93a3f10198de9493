"""A vertex and its subtasks."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink import vertices
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownJob, UnknownVertex

PATH = {"jobid": "d" * 32, "vertexid": "c" * 32}


def test_subtask_tells_where_its_latest_task_ran(states: Any) -> None:
    """Executor, address, attempt, start; and Flink's words where nothing ran yet, or the executor is gone."""
    times = states.times(
        3, attempt=[2, 0, 0], executor=[0, 1, -1], start_ms=[3_000, 3_500, -1], executors=("app-1-0", "app-1-9")
    )
    vertex = states.vertex(3, parallelism=2, subtasks=times, columns={names.NUM_RECORDS_IN: states.column(5, 7, 9)})
    snapshot = states.snapshot(states.job(vertex), states.app(states.executor("app-1-0")))
    body: Any = vertices.detail(Query.parse(snapshot, 5_000, PATH, b""))
    told = [
        [
            row[key]
            for key in ("attempt", "endpoint", "taskmanager-id", "start-time", "start_time", "duration", "status")
        ]
        for row in body["subtasks"]
    ]
    assert told == [
        [2, "10.0.0.7:7079", "app-1-0", 3_000, 3_000, 2_000, "RUNNING"],
        [0, "(unassigned)", "app-1-9", 3_500, 3_500, 1_500, "RUNNING"],
        [0, "(unassigned)", "(unassigned)", -1, -1, -1, "RUNNING"],
    ]
    assert body["parallelism"] == 2
    assert body["aggregated"]["metrics"]["read-records"]["sum"] == 21
    assert body["aggregated"]["status-duration"]["RUNNING"]["max"] == 2_000
    assert body["aggregated"]["status-duration"]["CREATED"]["max"] == -1


def test_subtasks_end_with_their_job(states: Any) -> None:
    """And before any task was seen they have the vertex's times."""
    job = states.job(states.vertex(1, start_ms=2_000), state="CANCELED", end_ms=4_000)
    body: Any = vertices.detail(Query.parse(states.snapshot(job), 5_000, PATH, b""))
    row = body["subtasks"][0]
    assert (row["status"], row["start-time"], row["end-time"], row["duration"]) == ("CANCELED", 2_000, 4_000, 2_000)


def test_unknown_job_and_vertex_are_told_apart(states: Any) -> None:
    """The job is looked for first."""
    with pytest.raises(UnknownJob):
        vertices.detail(Query.parse(states.snapshot(), 0, PATH, b""))
    with pytest.raises(UnknownVertex):
        vertices.detail(Query.parse(states.snapshot(states.job()), 0, PATH, b""))


def test_taskmanagers_have_the_subtasks_that_ran_on_them(states: Any) -> None:
    """Their sums, spreads and times; those that have not run are by themselves."""
    times = states.times(
        4, executor=[1, 0, 1, -1], start_ms=[4_000, 2_500, 3_000, -1], executors=("app-1-0", "app-1-9")
    )
    vertex = states.vertex(4, subtasks=times, columns={names.NUM_RECORDS_IN: states.column(5, 7, None, 1)})
    snapshot = states.snapshot(states.job(vertex), states.app(states.executor("app-1-0")))
    body: Any = vertices.taskmanagers(Query.parse(snapshot, 6_000, PATH, b""))
    told = {row["taskmanager-id"]: row for row in body["taskmanagers"]}
    assert {
        executor_id: (
            row["endpoint"],
            row["start-time"],
            row["end-time"],
            row["duration"],
            row["metrics"]["read-records"],
        )
        for executor_id, row in told.items()
    } == {
        "(unassigned)": ("(unassigned)", -1, -1, -1, 1),
        "app-1-0": ("10.0.0.7:7079", 2_500, -1, 3_500, 7),
        "app-1-9": ("(unassigned)", 3_000, -1, 3_000, 5),
    }
    assert [told[executor_id]["metrics"]["read-records-complete"] for executor_id in ("app-1-0", "app-1-9")] == [
        True,
        False,
    ]
    assert told["app-1-9"]["status-counts"] == {**dict.fromkeys(told["app-1-9"]["status-counts"], 0), "RUNNING": 2}
    spreads = told["app-1-9"]["aggregated"]
    assert (spreads["metrics"]["read-records"]["sum"], spreads["status-duration"]["RUNNING"]["sum"]) == (5, 5_000)


@pytest.mark.parametrize(("size", "listed"), [(2, ["(unassigned)"]), (0, [])])
def test_vertex_whose_tasks_were_not_seen_has_no_taskmanager(states: Any, size: int, listed: list[str]) -> None:
    """Its subtasks, if there are any, have no place; their times are the vertex's."""
    job = states.job(states.vertex(size, start_ms=2_000), state="FINISHED", end_ms=4_000)
    body: Any = vertices.taskmanagers(Query.parse(states.snapshot(job), 5_000, PATH, b""))
    assert [row["taskmanager-id"] for row in body["taskmanagers"]] == listed
    assert [(row["status"], row["end-time"], row["duration"]) for row in body["taskmanagers"]] == [
        ("FINISHED", 4_000, 2_000)
    ] * len(listed)


def test_sums_over_taskmanagers_are_the_vertex(states: Any) -> None:
    """No subtask is lost or counted twice."""
    times = states.times(5, executor=[0, 1, 1, -1, 0], executors=("a", "b"))
    vertex = states.vertex(5, subtasks=times, columns={names.NUM_RECORDS_IN: states.column(1, 2, 4, 8, 16)})
    query = Query.parse(states.snapshot(states.job(vertex)), 6_000, PATH, b"")
    rows: Any = vertices.taskmanagers(query)["taskmanagers"]
    assert sum(row["metrics"]["read-records"] for row in rows) == 31
    assert sum(row["status-counts"]["RUNNING"] for row in rows) == 5
