"""An executor's memory: what is not known is −1, what is not there 0."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink.memory import memory
from streamgauge import names
from streamgauge.sizes import GIB, MIB


def model(states: Any, heap: float | None = GIB, memory_bytes: int = 434 * MIB, **settings: str) -> dict[str, int]:
    metrics = {} if heap is None else {names.HEAP_MAX: heap}
    named = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
    found: dict[str, Any] = {**memory(states.executor(memory_bytes=memory_bytes, metrics=metrics), named)}
    return {part: value if value < MIB else value // MIB for part, value in found.items()}


def test_parts_of_the_heap_make_up_the_heap(states: Any) -> None:
    """What Spark keeps back, what it unifies, and what is left for the tasks' own."""
    found = model(states, master="local[2]")
    assert (found["frameworkHeap"], found["managedMemory"], found["taskHeap"]) == (300, 434, 290)
    assert (found["totalFlinkMemory"], found["totalProcessMemory"]) == (1024, 1024)


@pytest.mark.parametrize("heap", [None, float("nan")], ids=["absent", "NaN"])
def test_parts_of_an_unknown_heap_are_unknown(states: Any, heap: float | None) -> None:
    """Only the unified memory is known."""
    found = model(states, heap)
    assert (found["frameworkHeap"], found["taskHeap"], found["totalFlinkMemory"]) == (-1, -1, 434)


def test_size_that_is_hidden_leaves_its_parts_unknown(states: Any) -> None:
    """A regex may redact any setting."""
    hidden = {"memory_offHeap_enabled": "true", "memory_offHeap_size": "*********(redacted)"}
    assert model(states, **hidden)["taskHeap"] == -1


def test_off_heap_memory_counts_where_it_is_on(states: Any) -> None:
    """Its size alone switches nothing on."""
    assert model(states, memory_offHeap_size=str(100 * MIB))["taskHeap"] == 290
    on = model(states, memory_offHeap_enabled="true", memory_offHeap_size=str(100 * MIB))
    assert on["taskHeap"] == 390


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, -1),
        ({"master": "local[2]", "executor_memoryOverhead": "1g"}, 0),
        ({"master": "spark://h:1"}, 0),
        ({"master": "yarn"}, 384),
        ({"master": "yarn", "executor_memoryOverheadFactor": "0.5"}, 512),
        ({"master": "yarn", "executor_memoryOverheadFactor": "half"}, -1),
        ({"master": "yarn", "executor_memoryOverheadFactor": "nan"}, -1),
        ({"master": "yarn", "executor_minMemoryOverhead": "500m"}, 500),
        ({"master": "k8s://h", "executor_memoryOverhead": "700"}, 700),
        ({"master": "k8s://h"}, -1),
    ],
)
def test_overhead_is_asked_of_yarn_and_kubernetes(states: Any, settings: dict[str, str], expected: int) -> None:
    """Kubernetes has another default for Python, which is not told; others have none."""
    assert model(states, **settings)["jvmOverhead"] == expected


def test_memory_of_python_has_a_bound_only_where_set(states: Any) -> None:
    """In local mode the setting does nothing."""
    assert model(states, master="yarn", executor_pyspark_memory="80m")["taskOffHeap"] == 80
    assert model(states, master="local[2]", executor_pyspark_memory="80m")["taskOffHeap"] == 0
    assert model(states, master="yarn")["taskOffHeap"] == 0


def test_nothing_known_is_no_nonsense(states: Any) -> None:
    """Before the block manager has told, totals are of nothing."""
    found = model(states, None, -1)
    assert (found["managedMemory"], found["totalFlinkMemory"], found["totalProcessMemory"]) == (-1, 0, 0)
