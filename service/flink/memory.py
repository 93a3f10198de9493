"""Flink's memory model of an executor, from what Spark's configuration and block managers tell."""

from __future__ import annotations

import math
from collections.abc import Mapping

from typing_extensions import TypedDict

from streamgauge import names
from streamgauge.sizes import MIB, size
from streamgauge.wire import Executor

UNKNOWN = -1
"""Flink's word for a size that is not known, or has no bound."""

_RESERVED_BYTES = 300 * MIB
"""Source: Spark, `UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES`."""
_OVERHEAD_BYTES = 384 * MIB
_OVERHEAD_FACTOR = 0.1
"""Source: Spark's defaults of spark.executor.minMemoryOverhead and spark.executor.memoryOverheadFactor on YARN."""


class Memory(TypedDict):
    """Flink's memory model, bytes; −1 where not known or without a bound, 0 where there is none."""

    frameworkHeap: int
    taskHeap: int
    frameworkOffHeap: int
    taskOffHeap: int
    networkMemory: int
    managedMemory: int
    jvmMetaspace: int
    jvmOverhead: int
    totalFlinkMemory: int
    totalProcessMemory: int


def memory(executor: Executor, settings: Mapping[str, str]) -> Memory:
    """
    Return what an executor's memory is divided into.

    Spark's unified memory, on the heap and off it, is Flink's managed memory; what Spark keeps back of the heap for
    itself is the framework's, and what is left is the tasks'. Python's share, where it has a bound, is the tasks'
    off the heap. Overhead is asked of YARN and Kubernetes alone.

    Args:
        settings: Of its application; where they are not told, what rests on them is left out.
    """
    heap = heap_bytes(executor)
    master = settings.get("spark.master", "")
    off_heap = settings.get("spark.memory.offHeap.enabled") == "true"
    off_heap_bytes = _setting(settings, "spark.memory.offHeap.size", 1) if off_heap else 0
    framework = task = UNKNOWN
    if heap != UNKNOWN and executor.memory_bytes >= 0 and off_heap_bytes != UNKNOWN:
        framework = min(_RESERVED_BYTES, heap)
        task = max(0, heap - framework - max(0, executor.memory_bytes - off_heap_bytes))
    python = 0 if master.startswith("local[") else _setting(settings, "spark.executor.pyspark.memory", MIB, 0)
    metaspace = _metric(executor, names.METASPACE_MAX)
    overhead = _overhead(settings, master, heap)
    flink = sum(max(0, part) for part in (framework, task, python, executor.memory_bytes))
    return {
        "frameworkHeap": framework,
        "taskHeap": task,
        "frameworkOffHeap": 0,
        "taskOffHeap": python,
        "networkMemory": 0,
        "managedMemory": executor.memory_bytes,
        "jvmMetaspace": metaspace,
        "jvmOverhead": overhead,
        "totalFlinkMemory": flink,
        "totalProcessMemory": flink + max(0, metaspace) + max(0, overhead),
    }


def heap_bytes(executor: Executor) -> int:
    """Return an executor's greatest heap, UNKNOWN where Spark has not told."""
    return _metric(executor, names.HEAP_MAX)


def host_bytes(executor: Executor) -> int:
    """Return the memory of an executor's host, UNKNOWN where Spark has not told."""
    return _metric(executor, names.MEMORY_TOTAL)


def _metric(executor: Executor, name: str) -> int:
    value = executor.metrics.get(name, UNKNOWN)
    if isinstance(value, str) or not math.isfinite(value):
        return UNKNOWN
    return max(UNKNOWN, int(value))


def _overhead(settings: Mapping[str, str], master: str, heap: int) -> int:
    if not master.startswith(("yarn", "k8s")):
        return 0 if master else UNKNOWN
    told = _setting(settings, "spark.executor.memoryOverhead", MIB)
    # Kubernetes has another factor for Python, which a driver does not tell.
    if told != UNKNOWN or heap == UNKNOWN or not master.startswith("yarn"):
        return told
    least = _setting(settings, "spark.executor.minMemoryOverhead", MIB, _OVERHEAD_BYTES)
    try:
        factor = float(settings.get("spark.executor.memoryOverheadFactor", _OVERHEAD_FACTOR))
    except ValueError:
        return UNKNOWN
    return max(int(heap * factor), least) if 0 < factor < 1_000 else UNKNOWN


def _setting(settings: Mapping[str, str], name: str, unit: int, default: int = UNKNOWN) -> int:
    if name not in settings:
        return default
    found = size(settings[name], unit)
    return UNKNOWN if found is None else found
