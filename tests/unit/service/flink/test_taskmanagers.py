"""Executors as TaskManagers."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink import taskmanagers
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownTaskManager


def detail(states: Any, executor: Any) -> Any:
    snapshot = states.snapshot(states.app(executor))
    return taskmanagers.detail(Query.parse(snapshot, 5_000, {"taskmanagerid": executor.id}, b""))


def test_slots_and_heartbeat_are_the_executors(states: Any) -> None:
    """`timeSinceLastHeartbeat` is a time of day in Flink; a slot is allocated for every task of a job."""
    body = detail(states, states.executor(running={"d" * 32: 2, "": 1}))
    told = [body[key] for key in ("slotsNumber", "freeSlots", "assignedTasks", "timeSinceLastHeartbeat", "dataPort")]
    assert told == [4, 1, 3, 4_321, 7079]
    assert [slot["jobId"] for slot in body["allocatedSlots"]] == ["d" * 32] * 2
    assert body["totalResource"]["cpuCores"] == 4.0
    assert (body["freeResource"]["cpuCores"], body["freeResource"]["managedMemory"]) == (1.0, 100)


def test_executor_of_which_little_is_known(states: Any) -> None:
    """No slots, no port, no metrics: Flink's −1 and 0."""
    body = detail(
        states,
        states.executor(
            cores=0, slots=0, endpoint="local", metrics={names.HEAP_USED: "?", names.HEAP_MAX: float("inf")}
        ),
    )
    assert (body["dataPort"], body["totalResource"]["cpuCores"], body["metrics"]["heapUsed"]) == (-1, 0.0, 0)
    assert body["metrics"]["heapMax"] == 0


def test_digest_of_metrics(states: Any) -> None:
    """Under the names of Flink's page."""
    metrics = {names.HEAP_USED: 5, names.GC_COUNT_ALL: 3, names.GC_TIME_ALL: 40}
    body = detail(states, states.executor(metrics=metrics))["metrics"]
    assert body["heapUsed"] == 5
    assert body["garbageCollectors"] == [{"name": "All", "count": 3, "time": 40}]


def test_unknown_executor_is_not_found(states: Any) -> None:
    """Also one whose driver is silent, for nobody knows whether it is still there."""
    silent = states.app(states.executor("x"), suspended=True)
    with pytest.raises(UnknownTaskManager):
        taskmanagers.detail(Query.parse(states.snapshot(silent), 0, {"taskmanagerid": "x"}, b""))


def test_unknown_executor_answers_404_where_flink_has_500(client: Any) -> None:
    """The one deliberate difference."""
    answer = client.get("/taskmanagers/nope")
    message = "org.apache.flink.runtime.rest.NotFoundException: TaskManager nope not found"
    assert (answer.status_code, answer.json()) == (404, {"errors": [message]})
