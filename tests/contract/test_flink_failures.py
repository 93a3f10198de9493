"""A job that a task failed reads as the recorded one does: values too, where Spark has them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamgauge import codec, wire
from tests.conftest import job_frame, recorded_failures, recording

JOB = recording("fail__job.json")
PATH = f"/jobs/{JOB['jid']}"


@pytest.fixture
def failed(client: Any) -> Any:
    """The recorded job, of which the driver knows which task failed it."""
    frame = job_frame(JOB, seq=2)
    [top] = recorded_failures().latest
    [task] = top.concurrent
    place = {field: getattr(task, field) for field in ("vertex", "subtask", "attempt", "executor", "endpoint")}
    failures = wire.Failures((msgspec.structs.replace(top, **place),))
    assert client.push(codec.encode([msgspec.structs.replace(frame, failures=failures)])).status_code == 202
    return client


def test_history_is_the_recorded_one(client: Any) -> None:
    """Word for word, in the same order of keys."""
    for name, query in (("fail__exceptions.json", ""), ("fail__exceptions_max1.json", "?maxExceptions=1")):
        got = client.get(f"{PATH}/exceptions{query}").json()
        assert got.pop("streamgauge") == {"forgotten": 0}
        recorded = recording(name)
        assert got == recorded
        for ours, theirs in zip(
            got["exceptionHistory"]["entries"], recorded["exceptionHistory"]["entries"], strict=True
        ):
            assert list(ours) == list(theirs)


def test_place_of_the_task_is_told_with_the_jobs_failure(failed: Any) -> None:
    """As Flink does where one task's failure is the job's."""
    [top] = failed.get(f"{PATH}/exceptions").json()["exceptionHistory"]["entries"]
    [below] = top["concurrentExceptions"]
    for key in ("taskName", "endpoint", "taskManagerId"):
        assert top[key] == below[key]
    assert top["taskName"] == "Count Map (1/1) - execution #0"


def test_states_are_the_recorded_ones(failed: Any) -> None:
    """One vertex FAILED, all others CANCELED; counts of vertices and of tasks; the subtask."""
    body = failed.get(PATH).json()
    assert body["status-counts"] == JOB["status-counts"]
    for key in ("status", "tasks"):
        assert [vertex[key] for vertex in body["vertices"]] == [vertex[key] for vertex in JOB["vertices"]]
    vertex = recording("fail__v1.json")
    path = f"{PATH}/vertices/{vertex['id']}"
    subtasks = failed.get(path).json()["subtasks"]
    assert [row["status"] for row in subtasks] == [row["status"] for row in vertex["subtasks"]] == ["FAILED"]
    assert failed.get(f"{path}/subtasks/0").json()["status"] == "FAILED"
    [executor] = failed.get(f"{path}/taskmanagers").json()["taskmanagers"]
    [recorded] = recording("fail__v1__taskmanagers.json")["taskmanagers"]
    for key in ("status", "status-counts"):
        assert executor[key] == recorded[key]
    [times] = failed.get(f"{path}/subtasktimes").json()["subtasks"]
    assert times["timestamps"]["FAILED"] > times["timestamps"]["CANCELED"] == 0
    [row] = [row for row in failed.get("/jobs/overview").json()["jobs"] if row["jid"] == JOB["jid"]]
    [recorded] = [row for row in recording("jobs_overview.json")["jobs"] if row["jid"] == JOB["jid"]]
    assert row["tasks"] == recorded["tasks"]


def test_job_was_failing_from_the_tasks_failure_on(failed: Any) -> None:
    """Flink's own mark comes some milliseconds later, when the job has been told."""
    [top] = recording("fail__exceptions.json")["exceptionHistory"]["entries"]
    [below] = top["concurrentExceptions"]
    failing = failed.get(PATH).json()["timestamps"]["FAILING"]
    assert failing == below["timestamp"] <= JOB["timestamps"]["FAILING"] <= JOB["timestamps"]["FAILED"]
