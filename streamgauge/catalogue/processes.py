"""What is told of executors, of the driver, of the hooks in it, and of all of them together."""

from __future__ import annotations

from streamgauge import names
from streamgauge.catalogue.metric import METER, Metric, Scope, Type

_HEARTBEAT = "ExecutorMetricsUpdate"
_BEANS = "the driver's MX beans, read every 5 s"
_LOCAL = f"in local mode, where they are one JVM, {_BEANS}"
_RECORDER = "the recorder, in the driver's JVM"
_AGENT = "the hooks' agent, which drains it"
_SENDER = "the hooks' sender"
_PEAK = "the peak since the heartbeat before"

_JVM: tuple[tuple[str, Type, str, str, str], ...] = (
    (names.HEAP_USED, "gauge", "bytes", "Heap in use.", ""),
    (names.HEAP_COMMITTED, "gauge", "bytes", "Heap committed.", ""),
    (names.HEAP_MAX, "gauge", "bytes", "Greatest heap.", ""),
    (names.NON_HEAP_USED, "gauge", "bytes", "Non-heap memory in use.", ""),
    (names.NON_HEAP_COMMITTED, "gauge", "bytes", "Non-heap memory committed.", ""),
    (names.NON_HEAP_MAX, "gauge", "bytes", "Greatest non-heap memory; −1 where unlimited.", ""),
    (names.METASPACE_USED, "gauge", "bytes", "Metaspace in use.", ""),
    (names.METASPACE_COMMITTED, "gauge", "bytes", "Metaspace committed.", ""),
    (names.METASPACE_MAX, "gauge", "bytes", "Greatest metaspace; −1 where unlimited.", ""),
    (names.DIRECT_COUNT, "gauge", "", "Direct buffers.", ""),
    (names.DIRECT_USED, "gauge", "bytes", "Memory in direct buffers.", ""),
    (names.DIRECT_CAPACITY, "gauge", "bytes", "Capacity of direct buffers.", ""),
    (names.MAPPED_COUNT, "gauge", "", "Mapped buffers.", ""),
    (names.MAPPED_USED, "gauge", "bytes", "Memory in mapped buffers.", ""),
    (names.MAPPED_CAPACITY, "gauge", "bytes", "Capacity of mapped buffers.", ""),
    (names.THREADS, "gauge", "", "Live threads.", ""),
    (names.CPU_LOAD, "gauge", "", "Recent processor use of the JVM, 0 to 1.", ""),
    (names.CPU_TIME, "counter", "ns", "Processor time of the JVM.", ""),
    (names.CLASSES_LOADED, "counter", "", "Classes loaded since the start.", ""),
    (names.CLASSES_UNLOADED, "counter", "", "Classes unloaded since the start.", ""),
    (names.FILES_OPEN, "gauge", "", "Open file descriptors; absent on Windows.", ""),
    (names.FILES_MAX, "gauge", "", "File descriptors allowed; absent on Windows.", ""),
    (names.GC_COUNT_ALL, "counter", "", "Collections of all collectors.", "Σ over collectors"),
    (names.GC_TIME_ALL, "counter", "ms", "Time in collections of all collectors.", "Σ over collectors"),
    (names.GC_RATE_ALL, "gauge", "ms/s", "Time in collections a second, last 60 s; 0 when the hooks came.", METER),
    (names.MEMORY_TOTAL, "gauge", "bytes", "Memory of the machine or container.", ""),
)
_EXECUTORS: tuple[tuple[str, Type, str, str, str, str], ...] = (
    (names.HEAP_USED, "gauge", "bytes", _HEARTBEAT, f"Heap in use, {_PEAK}; NaN before the first.", "JVMHeapMemory"),
    (
        names.HEAP_MAX,
        "gauge",
        "bytes",
        "EnvironmentUpdate: spark.executor.memory",
        "Greatest heap; NaN for an executor with a resource profile of its own.",
        "",
    ),
    (names.NON_HEAP_USED, "gauge", "bytes", _HEARTBEAT, f"Non-heap memory in use, {_PEAK}.", "JVMOffHeapMemory"),
    (names.METASPACE_USED, "gauge", "bytes", _LOCAL, "Metaspace in use; NaN where Spark does not tell.", ""),
    (names.DIRECT_USED, "gauge", "bytes", _HEARTBEAT, f"Memory in direct buffers, {_PEAK}.", "DirectPoolMemory"),
    (names.MAPPED_USED, "gauge", "bytes", _HEARTBEAT, f"Memory in mapped buffers, {_PEAK}.", "MappedPoolMemory"),
    (
        names.GC_COUNT_ALL,
        "counter",
        "",
        _HEARTBEAT,
        "Collections of the collectors that Spark takes for young and old ones.",
        "MinorGCCount + MajorGCCount",
    ),
    (names.GC_TIME_ALL, "counter", "ms", _HEARTBEAT, "Time in these collections.", "MinorGCTime + MajorGCTime"),
    (names.GC_RATE_ALL, "gauge", "ms/s", _HEARTBEAT, "Time in collections a second, last 60 s.", METER),
    (
        names.MANAGED_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        f"Memory in use for storage and execution, {_PEAK}; NaN before the first.",
        "OnHeapUnifiedMemory + OffHeapUnifiedMemory",
    ),
    (names.MANAGED_TOTAL, "gauge", "bytes", "BlockManagerAdded", "Memory for storage and execution.", "maxMem"),
    (
        names.SHUFFLE_MEMORY_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        f"Memory in use for execution, out of which shuffles, sorts and joins are served, {_PEAK}.",
        "OnHeapExecutionMemory + OffHeapExecutionMemory",
    ),
    (
        names.SHUFFLE_MEMORY_AVAILABLE,
        "gauge",
        "bytes",
        f"{_HEARTBEAT}, BlockManagerAdded",
        "What execution could use beyond that, were nothing stored.",
        f"{names.SHUFFLE_MEMORY_TOTAL} − {names.SHUFFLE_MEMORY_USED}, at least 0",
    ),
    (
        names.SHUFFLE_MEMORY_TOTAL,
        "gauge",
        "bytes",
        "BlockManagerAdded",
        "Memory for storage and execution, which Spark does not part.",
        "maxMem",
    ),
)
_CLUSTER: tuple[tuple[str, str, str, str], ...] = (
    (
        names.TASK_SLOTS_TOTAL,
        "ExecutorAdded, ExecutorRemoved",
        "Task slots of all executors of connected drivers.",
        "Σ cores // spark.task.cpus",
    ),
    (
        names.TASK_SLOTS_AVAILABLE,
        "TaskStart, TaskEnd, ExecutorAdded, ExecutorRemoved",
        "Task slots without a running task.",
        "Σ slots − tasks that run, at least 0",
    ),
    (names.NUM_TASK_MANAGERS, "ExecutorAdded, ExecutorRemoved", "Executors of connected drivers.", ""),
    (names.NUM_RUNNING_JOBS, "SQLExecutionStart, QueryIdleEvent, JobStart", "Jobs that run.", ""),
)
_HOOKS: tuple[tuple[str, Type, str, str, str], ...] = (
    (names.HOOKS_EVENTS, "counter", "", _RECORDER, "Listener events that the recorder took."),
    (names.HOOKS_RECORD_TIME, "counter", "ns", _RECORDER, "Time that the recorder spent in them."),
    (names.HOOKS_DRAIN_TIME, "gauge", "ns", _AGENT, "Time that the latest drain took."),
    (names.HOOKS_BYTES, "counter", "bytes", _AGENT, "Bytes drained from the recorder."),
    (
        names.HOOKS_DROPPED_RECORDS,
        "counter",
        "",
        _RECORDER,
        "Records given up for want of room: counts are too small.",
    ),
    (
        names.HOOKS_DROPPED_LIVE,
        "counter",
        "",
        _RECORDER,
        "Live updates given up for want of room; the task's end tells the same.",
    ),
    (names.HOOKS_FAULTS, "counter", "", _AGENT, "Events that the hooks could not take in."),
    (names.HOOKS_SENT_BYTES, "counter", "bytes", _SENDER, "Bytes of all pushes."),
    (names.HOOKS_FRAME_BYTES, "gauge", "bytes", _SENDER, "Bytes of the push before this one; absent in the first."),
    (
        names.HOOKS_ACKNOWLEDGED_AGE,
        "gauge",
        "ms",
        _SENDER,
        "Time since the collector took the frames before these; absent until it has taken some.",
    ),
)
_PUSHED = {
    "accepted": "the collector took in",
    "resend": "lacked what they build on, so that all is sent again",
    "rejected": "the collector can take in neither now nor later",
    "refused": "were refused, as all are with a wrong token",
    "overloaded": "the collector had no room for",
    "unreachable": "reached no collector",
}
_JVMS: tuple[tuple[Scope, str], ...] = (("executor", _LOCAL), ("driver", _BEANS))


def _collector(scope: Scope, source: str, suffix: str, kind: Type, unit: str, text: str, formula: str = "") -> Metric:
    return Metric(f"{names.GARBAGE_COLLECTOR}<collector>{suffix}", kind, unit, scope, source, text, formula)


METRICS: tuple[Metric, ...] = (
    *(Metric(name, "gauge", "", "cluster", source, text, formula) for name, source, text, formula in _CLUSTER),
    *(
        Metric(name, kind, unit, "executor", source, text, formula)
        for name, kind, unit, source, text, formula in _EXECUTORS
    ),
    *(
        Metric(name, kind, unit, "executor", _LOCAL, text, formula)
        for name, kind, unit, text, formula in _JVM
        if name not in {row[0] for row in _EXECUTORS}
    ),
    *(Metric(name, kind, unit, "driver", _BEANS, text, formula) for name, kind, unit, text, formula in _JVM),
    *(Metric(name, kind, unit, "hooks", source, text) for name, kind, unit, source, text in _HOOKS),
    *(
        Metric(name, "counter", "", "hooks", _SENDER, f"Pushes that {_PUSHED[outcome]}.")
        for outcome, name in names.HOOKS_PUSHES.items()
    ),
)

PATTERNS: tuple[Metric, ...] = tuple(
    metric
    for scope, source in _JVMS
    for metric in (
        _collector(scope, source, names.GARBAGE_COUNT, "counter", "", "Collections of one collector."),
        _collector(scope, source, names.GARBAGE_TIME, "counter", "ms", "Time in collections of one collector."),
        _collector(
            scope,
            source,
            names.GARBAGE_TIME + names.MS_PER_SECOND,
            "gauge",
            "ms/s",
            "Time in collections of one collector a second, last 60 s.",
            METER,
        ),
    )
)
