"""The application's executors: who they are, what runs on them, how much memory they use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from spark_hooks import records
from spark_hooks.garbage import GarbageRates
from streamgauge import names, wire
from streamgauge.clock import Clock
from streamgauge.sizes import MIB, size

GONE_EXECUTORS = 100
"""How many that are gone are remembered until the collector was told. It takes one that a frame does not name for
gone, so no more is lost than the word."""

DRIVER = "driver"
"""Spark's id of the driver, which in local mode is the executor."""

EXECUTOR_MEMORY = "1g"
"""Spark's default of spark.executor.memory."""

IN_FLIGHT = "48m"
"""Spark's default of spark.reducer.maxSizeInFlight."""

_ASKED_TOGETHER = (names.HEAP_USED, names.HEAP_MAX, names.MANAGED_USED, names.METASPACE_USED)
"""Flink's autoscaler asks for these at once, and where one were absent it would be told none."""


@dataclass(slots=True, eq=False)
class _Executor:
    cores: int
    added_ms: int
    heartbeat_ms: int
    endpoint: str
    memory_bytes: int
    profile: int
    metrics: dict[str, wire.Scalar] = field(default_factory=dict)
    garbage: GarbageRates = field(default_factory=GarbageRates)


class Executors:
    """
    All executors of one application. Not thread safe.

    `in_flight_bytes` is what a task fetches from the others at once, NaN where it is not known.

    Args:
        app_id: Spark's application id, the first part of an executor's id.
        task_cpus: spark.task.cpus; slots = cores // task_cpus.
    """

    def __init__(self, app_id: str, task_cpus: int, clock: Clock) -> None:
        self._app_id = app_id
        self._task_cpus = max(task_cpus, 1)
        self._clock = clock
        self._executors: dict[str, _Executor] = {}
        self._gone: dict[str, wire.Executor] = {}
        self._tasks: dict[int, tuple[str, str]] = {}
        self._blocks: dict[str, tuple[str, int]] = {}
        self._heap_bytes: float = math.nan
        self.in_flight_bytes: float = math.nan
        self._driver: dict[str, wire.Scalar] = {}
        self._driver_garbage = GarbageRates()

    def apply(self, event: records.Record) -> None:
        """Apply an event about an executor; any other is none of its business."""
        if isinstance(event, records.ExecutorAdded):
            # The driver has a block manager too, but outside local mode it runs no task.
            if event.cores > 0 and event.executor in self._executors:
                # Told twice: what was there when the recorder came, and the event of the same.
                self._executors[event.executor].cores = event.cores
            elif event.cores > 0:
                endpoint, memory_bytes = self._blocks.pop(event.executor, (event.host, -1))
                self._executors[event.executor] = _Executor(
                    event.cores, event.time_ms, event.time_ms, endpoint, memory_bytes, event.profile
                )
                self._gone.pop(event.executor, None)
        elif isinstance(event, records.BlockManagerAdded):
            found = self._executors.get(event.executor)
            if found is None:
                self._blocks[event.executor] = (event.endpoint, event.memory_bytes)
            else:
                found.endpoint, found.memory_bytes = event.endpoint, event.memory_bytes
        elif isinstance(event, records.ExecutorRemoved):
            self._remove(event.executor)
        elif isinstance(event, records.ExecutorMemory):
            self._remember(event)
        elif isinstance(event, records.Environment):
            heap_bytes = size(event.settings.get("spark.executor.memory", EXECUTOR_MEMORY), MIB)
            self._heap_bytes = math.nan if heap_bytes is None else heap_bytes
            in_flight_bytes = size(event.settings.get("spark.reducer.maxSizeInFlight", IN_FLIGHT), MIB)
            self.in_flight_bytes = math.nan if in_flight_bytes is None else in_flight_bytes

    def tick(self, driver: Mapping[str, wire.Scalar]) -> dict[str, wire.Scalar]:
        """
        Update the rates, once every 5 s.

        Args:
            driver: The figures of the driver's JVM.

        Returns:
            These, and their rates.
        """
        self._driver_garbage.update(driver)
        self._driver = {**driver, **self._driver_garbage.rates()}
        for executor in self._executors.values():
            executor.garbage.update(executor.metrics)
        return dict(self._driver)

    def end(self) -> None:
        """The application ended, and all of its executors with it."""
        for executor in list(self._executors):
            self._remove(executor)

    def start_task(self, task: int, executor: str, jid: str) -> None:
        """A task was launched."""
        self._tasks[task] = (executor, jid)
        self._seen(executor)

    def end_task(self, task: int) -> None:
        """A task ended."""
        executor, _ = self._tasks.pop(task, ("", ""))
        self._seen(executor)

    def place(self, executor: str) -> tuple[str, str]:
        """Return an executor's id and endpoint as they travel; its endpoint is '' where it is not known."""
        name = f"{self._app_id}-{executor}"
        found = self._executors.get(executor) or self._gone.get(executor)
        return name, "" if found is None else found.endpoint

    @property
    def count(self) -> int:
        """Executors that there are."""
        return len(self._executors)

    def slot_bytes(self, executor: str) -> float:
        """Return a slot's share of an executor's memory for storage and execution; NaN where it is not known."""
        found = self._executors.get(executor)
        gone = self._gone.get(executor)
        if found is not None:
            memory_bytes, slots = found.memory_bytes, found.cores // self._task_cpus
        elif gone is not None:
            memory_bytes, slots = gone.memory_bytes, gone.slots
        else:
            return math.nan
        return memory_bytes / max(slots, 1) if memory_bytes >= 0 else math.nan

    def frames(self) -> tuple[wire.Executor, ...]:
        """Return every executor as it is now, and those that are gone and not yet forgotten."""
        running: dict[str, Counter[str]] = {}
        for executor, jid in self._tasks.values():
            running.setdefault(executor, Counter())[jid] += 1
        present = tuple(
            self._frame(name, found, dict(running.get(name, {}))) for name, found in self._executors.items()
        )
        return present + tuple(self._gone.values())

    def forget_gone(self, told: tuple[wire.Executor, ...]) -> None:
        """Drop the executors that are gone, now that the collector was told so."""
        for executor in told:
            if executor.gone:
                self._gone.pop(executor.id.removeprefix(f"{self._app_id}-"), None)

    def _frame(self, name: str, found: _Executor, running: dict[str, int]) -> wire.Executor:
        return wire.Executor(
            id=f"{self._app_id}-{name}",
            endpoint=found.endpoint,
            cores=found.cores,
            slots=found.cores // self._task_cpus,
            running=running,
            memory_bytes=found.memory_bytes,
            added_ms=found.added_ms,
            heartbeat_ms=found.heartbeat_ms,
            metrics=self._metrics(name, found),
        )

    def _metrics(self, name: str, found: _Executor) -> dict[str, wire.Scalar]:
        known: dict[str, wire.Scalar] = {**found.metrics, **found.garbage.rates()}
        if name == DRIVER:
            # One JVM: its beans tell all that heartbeats do, and as it is now.
            known |= self._driver
        elif found.profile == 0:
            known[names.HEAP_MAX] = self._heap_bytes
        if found.memory_bytes >= 0:
            known[names.MANAGED_TOTAL] = known[names.SHUFFLE_MEMORY_TOTAL] = found.memory_bytes
            if names.SHUFFLE_MEMORY_USED in found.metrics:
                used = found.metrics[names.SHUFFLE_MEMORY_USED]
                known[names.SHUFFLE_MEMORY_AVAILABLE] = max(found.memory_bytes - int(used), 0)
        return {**dict.fromkeys(_ASKED_TOGETHER, math.nan), **known}

    def _seen(self, executor: str) -> None:
        found = self._executors.get(executor)
        if found is not None:
            found.heartbeat_ms = self._clock.now_ms()

    def _remember(self, event: records.ExecutorMemory) -> None:
        found = self._executors.get(event.executor)
        if found is None:
            return
        heap, non_heap, direct, mapped, minor, minor_ms, major, major_ms, on_heap, off_heap, *execution = event.values
        found.heartbeat_ms = event.time_ms
        found.metrics = {
            names.HEAP_USED: heap,
            names.NON_HEAP_USED: non_heap,
            names.DIRECT_USED: direct,
            names.MAPPED_USED: mapped,
            names.GC_COUNT_ALL: minor + major,
            names.GC_TIME_ALL: minor_ms + major_ms,
            names.MANAGED_USED: on_heap + off_heap,
            names.SHUFFLE_MEMORY_USED: sum(execution),
        }

    def _remove(self, executor: str) -> None:
        found = self._executors.pop(executor, None)
        self._blocks.pop(executor, None)
        self._tasks = {task: place for task, place in self._tasks.items() if place[0] != executor}
        if found is not None:
            self._gone[executor] = msgspec.structs.replace(self._frame(executor, found, {}), gone=True)
            if len(self._gone) > GONE_EXECUTORS:
                del self._gone[next(iter(self._gone))]
