"""Executors as TaskManagers."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink import taskmanagers
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownTaskManager
from streamgauge.sizes import GIB, MIB


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


def test_digest_has_the_memory_that_shuffles_are_served_from(states: Any) -> None:
    """As the metrics have it; Spark's is not in segments."""
    metrics = {names.SHUFFLE_MEMORY_USED: 5, names.SHUFFLE_MEMORY_AVAILABLE: 7, names.SHUFFLE_MEMORY_TOTAL: 12}
    body = detail(states, states.executor(metrics=metrics))["metrics"]
    told = {key: value for key, value in body.items() if key.startswith("nettyShuffle") and value}
    assert told == {
        "nettyShuffleMemoryUsed": 5,
        "nettyShuffleMemoryAvailable": 7,
        "nettyShuffleMemoryTotal": 12,
    }


def test_each_collector_is_told_where_the_driver_knows_them(states: Any) -> None:
    """In local mode; all of them together come first."""
    young = f"{names.GARBAGE_COLLECTOR}G1_Young_Generation"
    metrics = {
        f"{young}{names.GARBAGE_COUNT}": 2,
        f"{young}{names.GARBAGE_TIME}": 30,
        names.GC_COUNT_ALL: 3,
        names.GC_TIME_ALL: 40,
    }
    body = detail(states, states.executor(metrics=metrics))["metrics"]
    assert body["garbageCollectors"] == [
        {"name": "All", "count": 3, "time": 40},
        {"name": "G1_Young_Generation", "count": 2, "time": 30},
    ]


def test_memory_is_divided_as_the_application_is_set(states: Any) -> None:
    """What free slots hold is their share of it, in MiB; `freeMemory` is Flink's word for the greatest heap."""
    metrics = {names.HEAP_MAX: 1024 * MIB, names.MEMORY_TOTAL: 8 * GIB}
    executor = states.executor(memory_bytes=500 * MIB, metrics=metrics, running={"d" * 32: 1})
    app = states.app(
        executor,
        configuration={
            "spark.master": "yarn",
            "spark.executor.memoryOverhead": "400m",
            "spark.executor.pyspark.memory": "80m",
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": str(100 * MIB),
        },
    )
    body: Any = taskmanagers.detail(Query.parse(states.snapshot(app), 5_000, {"taskmanagerid": executor.id}, b""))
    assert {part: value // MIB for part, value in body["memoryConfiguration"].items()} == {
        "frameworkHeap": 300,
        "taskHeap": 1024 - 300 - 400,
        "frameworkOffHeap": 0,
        "taskOffHeap": 80,
        "networkMemory": 0,
        "managedMemory": 500,
        "jvmMetaspace": -1,
        "jvmOverhead": 400,
        "totalFlinkMemory": 1024 + 100 + 80,
        "totalProcessMemory": 1024 + 100 + 80 + 400,
    }
    assert body["freeResource"]["taskHeapMemory"] == 324 * 3 // 4
    assert body["allocatedSlots"][0]["resource"]["taskOffHeapMemory"] == 20
    assert (body["hardware"]["freeMemory"], body["hardware"]["physicalMemory"]) == (1024 * MIB, 8 * GIB)


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
