"""What executors tell of their JVMs: what the autoscaler asks for is always there, and nothing is made up."""

from __future__ import annotations

import math

import pytest

from spark_hooks import records
from spark_hooks.executors import Executors
from streamgauge import catalogue, names, wire
from streamgauge.clock import ManualClock
from streamgauge.sizes import GIB, MIB

ASKED = (names.HEAP_MAX, names.HEAP_USED, names.MANAGED_USED, names.METASPACE_USED)
BEANS = {names.HEAP_MAX: 7, names.HEAP_USED: 5, names.METASPACE_USED: 3, names.GC_TIME_ALL: 100, names.THREADS: 9}


@pytest.fixture
def executors() -> Executors:
    return Executors("app-7", 1, ManualClock())


def added(executor: str = "1", profile: int = 0) -> records.ExecutorAdded:
    return records.ExecutorAdded(executor, "host", 2, 0, profile)


def environment(**settings: str) -> records.Environment:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return records.Environment("VM - V - 17/17", "amd64", (), (), named)


def heartbeat(executor: str = "1", collecting_ms: int = 0) -> records.ExecutorMemory:
    return records.ExecutorMemory(executor, 5, (10, 20, 30, 40, 1, collecting_ms, 0, 0, 600, 66, 500, 50))


def metrics(executors: Executors) -> dict[str, wire.Scalar]:
    (found,) = executors.frames()
    return found.metrics


@pytest.mark.parametrize("executor", ["1", "driver"])
def test_what_the_autoscaler_asks_for_is_there_from_the_start(executors: Executors, executor: str) -> None:
    """Were one absent Flink's aggregate would be empty; NaN where Spark has told nothing."""
    executors.apply(added(executor))
    found = [metrics(executors)[name] for name in ASKED]
    assert all(isinstance(value, float) and math.isnan(value) for value in found)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, GIB), ({"spark_executor_memory": "600m"}, 600 * MIB), ({"spark_executor_memory": "2048"}, 2 * GIB)],
    ids=["default", "suffix", "MiB without one"],
)
def test_greatest_heap_is_what_the_configuration_gives(
    executors: Executors, settings: dict[str, str], expected: int
) -> None:
    """The executor is started with it as -Xmx."""
    executors.apply(environment(**settings))
    executors.apply(added())
    assert metrics(executors)[names.HEAP_MAX] == expected


def test_heap_of_another_resource_profile_is_unknown(executors: Executors) -> None:
    """Its own memory replaces the configuration's."""
    executors.apply(environment())
    executors.apply(added(profile=1))
    assert math.isnan(float(metrics(executors)[names.HEAP_MAX]))


def test_heap_that_is_redacted_is_unknown(executors: Executors) -> None:
    """A regex may hide any setting."""
    executors.apply(environment(spark_executor_memory="*********(redacted)"))
    executors.apply(added())
    assert math.isnan(float(metrics(executors)[names.HEAP_MAX]))


def test_heartbeats_tell_unified_memory(executors: Executors) -> None:
    """On the heap and off it; its total is the block manager's."""
    executors.apply(added())
    executors.apply(records.BlockManagerAdded("1", "host:1", 1000))
    executors.apply(heartbeat())
    found = metrics(executors)
    assert (found[names.MANAGED_USED], found[names.MANAGED_TOTAL]) == (666, 1000)


def test_memory_for_execution_is_what_shuffles_are_served_from(executors: Executors) -> None:
    """On the heap and off it; what is left of unified memory is what it could use. Storage may hold more than all."""
    executors.apply(added())
    executors.apply(heartbeat())
    found = metrics(executors)
    assert (found[names.SHUFFLE_MEMORY_USED], names.SHUFFLE_MEMORY_AVAILABLE in found) == (550, False)
    assert names.SHUFFLE_MEMORY_TOTAL not in found
    for memory_bytes, left in ((1000, 450), (500, 0)):
        executors.apply(records.BlockManagerAdded("1", "host:1", memory_bytes))
        found = metrics(executors)
        assert (found[names.SHUFFLE_MEMORY_TOTAL], found[names.SHUFFLE_MEMORY_AVAILABLE]) == (memory_bytes, left)


@pytest.mark.parametrize(
    ("task_cpus", "memory_bytes", "share"),
    [(1, 1000, 500.0), (2, 1000, 1000.0), (4, 1000, 1000.0), (1, 0, 0.0), (1, -1, math.nan)],
    ids=["two slots", "one slot", "less than one", "no memory", "unknown"],
)
def test_a_slot_has_its_share_of_memory(task_cpus: int, memory_bytes: int, share: float) -> None:
    """Also on an executor that is gone, until the collector was told so; of one never seen it is unknown."""
    executors = Executors("app-7", task_cpus, ManualClock())
    executors.apply(added())
    executors.apply(records.BlockManagerAdded("1", "host:1", memory_bytes))
    assert executors.slot_bytes("1") == pytest.approx(share, nan_ok=True)
    executors.apply(records.ExecutorRemoved("1", 6))
    # An executor of less than one slot is told to have none.
    assert executors.slot_bytes("1") == pytest.approx(share, nan_ok=True)
    executors.forget_gone(executors.frames())
    assert math.isnan(executors.slot_bytes("1"))


def test_in_local_mode_the_drivers_beans_tell_of_the_executor(executors: Executors) -> None:
    """It is one JVM: they are as it is now, a heartbeat's are peaks; unified memory only a heartbeat tells."""
    executors.apply(environment())
    executors.apply(added("driver"))
    executors.apply(heartbeat("driver"))
    executors.tick(BEANS)
    found = metrics(executors)
    assert found.items() >= {**BEANS, names.NON_HEAP_USED: 20, names.MANAGED_USED: 666}.items()


def test_outside_local_mode_the_drivers_beans_are_its_own(executors: Executors) -> None:
    """Another JVM's threads are nobody's guess."""
    executors.apply(added())
    executors.tick(BEANS)
    assert names.THREADS not in metrics(executors)


def test_the_rate_of_collections_is_a_meter_view(executors: Executors) -> None:
    """600 ms more within a minute are 10 ms a second; what was before the hooks came counts in no rate."""
    executors.apply(added())
    executors.apply(heartbeat(collecting_ms=5_000))
    for _ in range(2):
        executors.tick({})
    assert metrics(executors)[names.GC_RATE_ALL] == 0.0
    executors.apply(heartbeat(collecting_ms=5_600))
    executors.tick({})
    assert metrics(executors)[names.GC_RATE_ALL] == 10.0


def test_the_driver_tells_the_rate_of_each_collector(executors: Executors) -> None:
    """As many as its JVM has, and all together."""
    young = f"{names.GARBAGE_COLLECTOR}G1_Young_Generation{names.GARBAGE_TIME}"
    for time_ms in (50, 50, 80):
        told = executors.tick({**BEANS, young: time_ms})
    assert told[f"{young}{names.MS_PER_SECOND}"] == 0.5
    assert told[names.GC_RATE_ALL] == 0.0
    assert told[names.THREADS] == 9


def test_every_metric_is_in_the_catalogue(executors: Executors) -> None:
    """Of the executors' scope, and of the driver's."""
    executors.apply(added("driver"))
    executors.apply(records.BlockManagerAdded("driver", "host:1", 1000))
    executors.apply(heartbeat("driver"))
    told = executors.tick({metric.name: 1 for metric in catalogue.METRICS if metric.scope == "driver"})
    assert all(catalogue.find("executor", metric) for metric in metrics(executors))
    assert all(catalogue.find("driver", metric) for metric in told)
