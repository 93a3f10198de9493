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
