"""Executors: /taskmanagers and /taskmanagers/:taskmanagerid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from typing_extensions import TypedDict

from service.cluster import connected, employers, find_employer, free_slots, running_tasks
from service.flink.ids import Id
from service.flink.memory import UNKNOWN, Memory, heap_bytes, host_bytes, memory
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownTaskManager
from streamgauge.sizes import MIB
from streamgauge.wire import Executor, Scalar


class ExtendedResources(TypedDict):
    """Of Flink's external resources, such as GPUs: Spark tells of none."""


class Resource(TypedDict):
    """What slots hold; memory in MiB."""

    cpuCores: float
    taskHeapMemory: int
    taskOffHeapMemory: int
    managedMemory: int
    networkMemory: int
    extendedResources: ExtendedResources


class Hardware(TypedDict):
    """The machine; memory in bytes, −1 where not known."""

    cpuCores: int
    physicalMemory: int
    freeMemory: int
    managedMemory: int


class TaskManager(TypedDict):
    """An executor; `timeSinceLastHeartbeat` is, as in Flink, when the last one came: Unix milliseconds."""

    id: str
    path: str
    dataPort: int
    jmxPort: int
    timeSinceLastHeartbeat: int
    slotsNumber: int
    freeSlots: int
    assignedTasks: int
    totalResource: Resource
    freeResource: Resource
    hardware: Hardware
    memoryConfiguration: Memory


class TaskManagers(TypedDict):
    """The body of /taskmanagers."""

    taskmanagers: list[TaskManager]


class Slot(TypedDict):
    """A slot that a task of a job holds."""

    jobId: Id
    resource: Resource
    assignedTasks: int


class GarbageCollector(TypedDict):
    """Collections so far, and the milliseconds that they took."""

    name: str
    count: int
    time: int


class Digest(TypedDict):
    """An executor's metrics in Flink's own digest, bytes and counts."""

    heapUsed: int
    heapCommitted: int
    heapMax: int
    nonHeapUsed: int
    nonHeapCommitted: int
    nonHeapMax: int
    directCount: int
    directUsed: int
    directMax: int
    mappedCount: int
    mappedUsed: int
    mappedMax: int
    nettyShuffleMemorySegmentsAvailable: int
    nettyShuffleMemorySegmentsUsed: int
    nettyShuffleMemorySegmentsTotal: int
    nettyShuffleMemoryAvailable: int
    nettyShuffleMemoryUsed: int
    nettyShuffleMemoryTotal: int
    garbageCollectors: list[GarbageCollector]


class TaskManagerDetail(TaskManager):
    """The body of /taskmanagers/:taskmanagerid."""

    allocatedSlots: list[Slot]
    metrics: Digest


_METRICS = {
    "heapUsed": names.HEAP_USED,
    "heapCommitted": names.HEAP_COMMITTED,
    "heapMax": names.HEAP_MAX,
    "nonHeapUsed": names.NON_HEAP_USED,
    "nonHeapCommitted": names.NON_HEAP_COMMITTED,
    "nonHeapMax": names.NON_HEAP_MAX,
    "directCount": names.DIRECT_COUNT,
    "directUsed": names.DIRECT_USED,
    "directMax": names.DIRECT_CAPACITY,
    "mappedCount": names.MAPPED_COUNT,
    "mappedUsed": names.MAPPED_USED,
    "mappedMax": names.MAPPED_CAPACITY,
    "nettyShuffleMemoryAvailable": names.SHUFFLE_MEMORY_AVAILABLE,
    "nettyShuffleMemoryUsed": names.SHUFFLE_MEMORY_USED,
    "nettyShuffleMemoryTotal": names.SHUFFLE_MEMORY_TOTAL,
}
_SEGMENTS = (
    "nettyShuffleMemorySegmentsAvailable",
    "nettyShuffleMemorySegmentsUsed",
    "nettyShuffleMemorySegmentsTotal",
)
"""Pieces of Flink's network memory; Spark's is not in pieces."""


def overview(query: Query) -> TaskManagers:
    """Answer /taskmanagers: the executors of the drivers that speak."""
    known = employers(connected(query.snapshot))
    return {"taskmanagers": [_body(app.executors[found], app.configuration) for found, app in known.items()]}


def detail(query: Query) -> TaskManagerDetail:
    """
    Answer /taskmanagers/:taskmanagerid.

    A slot is told as allocated for each running task of a job, for that is what a Spark task holds.

    Raises:
        UnknownTaskManager: never seen, gone, or of a driver that is silent. Flink answers 500 there.
    """
    executor_id = query.path["taskmanagerid"]
    app = find_employer(query.snapshot, executor_id)
    if app is None:
        raise UnknownTaskManager(executor_id)
    found = app.executors[executor_id]
    share = _resource(found, 1, memory(found, app.configuration))
    slots: list[Slot] = [
        {"jobId": jid, "resource": share, "assignedTasks": 1}
        for jid, tasks in found.running.items()
        if jid
        for _ in range(tasks)
    ]
    return {**_body(found, app.configuration), "allocatedSlots": slots, "metrics": _metrics(found.metrics)}


def _body(executor: Executor, settings: Mapping[str, str]) -> TaskManager:
    model = memory(executor, settings)
    _, _, port = executor.endpoint.rpartition(":")
    return {
        "id": executor.id,
        "path": executor.endpoint,
        "dataPort": int(port) if port.isascii() and port.isdigit() else UNKNOWN,
        "jmxPort": UNKNOWN,
        "timeSinceLastHeartbeat": executor.heartbeat_ms,
        "slotsNumber": executor.slots,
        "freeSlots": free_slots(executor),
        "assignedTasks": running_tasks(executor),
        "totalResource": _resource(executor, executor.slots, model),
        "freeResource": _resource(executor, free_slots(executor), model),
        "hardware": {
            "cpuCores": executor.cores,
            "physicalMemory": host_bytes(executor),
            # Flink's word for the greatest heap of its JVM.
            "freeMemory": heap_bytes(executor),
            "managedMemory": executor.memory_bytes,
        },
        "memoryConfiguration": model,
    }


def _resource(executor: Executor, slots: int, model: Memory) -> Resource:
    """Return what `slots` of an executor's slots hold; memory in MiB, as in Flink."""
    share = slots / executor.slots if executor.slots else 0.0

    def part(all_bytes: int) -> int:
        return int(all_bytes * share) // MIB if all_bytes >= 0 else UNKNOWN

    return {
        "cpuCores": float(executor.cores * share),
        "taskHeapMemory": part(model["taskHeap"]),
        "taskOffHeapMemory": part(model["taskOffHeap"]),
        "managedMemory": part(model["managedMemory"]),
        "networkMemory": 0,
        "extendedResources": {},
    }


def _metrics(metrics: dict[str, Scalar]) -> Digest:
    """Return Flink's digest of an executor's metrics; 0 for what is not known, as Flink has it."""
    # Where it is the driver's JVM, each collector is told.
    others = [
        name.removeprefix(names.GARBAGE_COLLECTOR).removesuffix(names.GARBAGE_COUNT)
        for name in metrics
        if name.startswith(names.GARBAGE_COLLECTOR) and name.endswith(names.GARBAGE_COUNT)
    ]
    collectors: list[GarbageCollector] = [
        {
            "name": name,
            "count": _whole(metrics, f"{names.GARBAGE_COLLECTOR}{name}{names.GARBAGE_COUNT}"),
            "time": _whole(metrics, f"{names.GARBAGE_COLLECTOR}{name}{names.GARBAGE_TIME}"),
        }
        for name in dict.fromkeys(["All", *others])
    ]
    counts = {key: _whole(metrics, name) for key, name in _METRICS.items()}
    return cast(Digest, {**counts, **dict.fromkeys(_SEGMENTS, 0), "garbageCollectors": collectors})


def _whole(metrics: dict[str, Scalar], name: str) -> int:
    value = metrics.get(name, 0)
    if isinstance(value, str) or not math.isfinite(value):
        return 0
    return int(value)
