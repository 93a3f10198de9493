"""
The catalogue: every metric's name, type, unit, scope, source and meaning.

Names are Flink's, exactly (Source: Flink 2.3, `MetricNames.java`, and recorded answers of its REST). A
metric-name literal anywhere else is a defect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PER_SECOND = "PerSecond"

Type = Literal["counter", "meter", "gauge", "bool", "string"]
"""counter: int64 that only grows within a run. meter: a rate over 60 s. gauge: int64 or float64."""

Scope = Literal["job", "vertex", "operator", "coordinator", "executor", "driver", "cluster", "hooks"]
"""
Where a metric lives; vertex and operator metrics have one value a subtask. A coordinator's are what the driver knows of
a source.
"""


@dataclass(frozen=True, slots=True)
class Metric:
    """
    One metric of the catalogue.

    Args:
        name: Flink's, without subtask and operator.
        unit: records, bytes, buffers, ms, ms/s, 1/s, bytes/s, … ; '' for a plain number.
        source: What in Spark it is taken from.
        help: Its meaning on Spark, one sentence.
    """

    name: str
    type: Type
    unit: str
    scope: Scope
    source: str
    help: str


NUM_RECORDS_IN = "numRecordsIn"
NUM_RECORDS_OUT = "numRecordsOut"
NUM_BYTES_IN = "numBytesIn"
NUM_BYTES_IN_LOCAL = "numBytesInLocal"
NUM_BYTES_IN_REMOTE = "numBytesInRemote"
NUM_BUFFERS_IN_LOCAL = "numBuffersInLocal"
NUM_BUFFERS_IN_REMOTE = "numBuffersInRemote"
NUM_BYTES_OUT = "numBytesOut"
SHUFFLE_INPUT = "Shuffle.Netty.Input."
"""Flink tells what a task reads over the network twice: plainly, and under this prefix."""

BUSY_TIME = "busyTimeMsPerSecond"
BACK_PRESSURED_TIME = "backPressuredTimeMsPerSecond"
IDLE_TIME = "idleTimeMsPerSecond"
CURRENT_INPUT_WATERMARK = "currentInputWatermark"

TRANSIENT = frozenset({BUSY_TIME, BACK_PRESSURED_TIME, IDLE_TIME})
"""Taken away when a job ends, as Flink's store does."""

PENDING_RECORDS = "pendingRecords"
FETCH_LAG = "currentFetchEventTimeLag"
WATERMARK_LAG = "watermarkLag"
"""Flink's names for how far behind a source is; readers ask for them, and show nothing where they are absent."""

UPTIME = "uptime"
RUNNING_TIME = "runningTime"
RESTARTING_TIME = "restartingTime"
DOWNTIME = "downtime"
NUM_RESTARTS = "numRestarts"
NUM_COMPLETED_CHECKPOINTS = "numberOfCompletedCheckpoints"
NUM_FAILED_CHECKPOINTS = "numberOfFailedCheckpoints"
NUM_IN_PROGRESS_CHECKPOINTS = "numberOfInProgressCheckpoints"
TOTAL_CHECKPOINTS = "totalNumberOfCheckpoints"
LAST_COMPLETED_CHECKPOINT_ID = "lastCompletedCheckpointId"
LAST_CHECKPOINT_DURATION = "lastCheckpointDuration"
LAST_CHECKPOINT_SIZE = "lastCheckpointSize"
LAST_CHECKPOINT_COMPLETED = "lastCheckpointCompletedTimestamp"
LAST_CHECKPOINT_PROCESSED = "lastCheckpointProcessedRows"
INPUT_ROWS = "numInputRows"
OUTPUT_ROWS = "numOutputRows"
INPUT_RATE = "inputRowsPerSecond"
PROCESSED_RATE = "processedRowsPerSecond"
COORDINATOR = "coordinator."
"""Stands before the names of a coordinator's metrics, after its operator's."""

TASK_SLOTS_TOTAL = "taskSlotsTotal"
TASK_SLOTS_AVAILABLE = "taskSlotsAvailable"
NUM_TASK_MANAGERS = "numRegisteredTaskManagers"
NUM_RUNNING_JOBS = "numRunningJobs"

HEAP_USED = "Status.JVM.Memory.Heap.Used"
HEAP_COMMITTED = "Status.JVM.Memory.Heap.Committed"
HEAP_MAX = "Status.JVM.Memory.Heap.Max"
NON_HEAP_USED = "Status.JVM.Memory.NonHeap.Used"
NON_HEAP_COMMITTED = "Status.JVM.Memory.NonHeap.Committed"
NON_HEAP_MAX = "Status.JVM.Memory.NonHeap.Max"
METASPACE_USED = "Status.JVM.Memory.Metaspace.Used"
METASPACE_COMMITTED = "Status.JVM.Memory.Metaspace.Committed"
METASPACE_MAX = "Status.JVM.Memory.Metaspace.Max"
DIRECT_COUNT = "Status.JVM.Memory.Direct.Count"
DIRECT_USED = "Status.JVM.Memory.Direct.MemoryUsed"
DIRECT_CAPACITY = "Status.JVM.Memory.Direct.TotalCapacity"
MAPPED_COUNT = "Status.JVM.Memory.Mapped.Count"
MAPPED_USED = "Status.JVM.Memory.Mapped.MemoryUsed"
MAPPED_CAPACITY = "Status.JVM.Memory.Mapped.TotalCapacity"
THREADS = "Status.JVM.Threads.Count"
CPU_LOAD = "Status.JVM.CPU.Load"
CPU_TIME = "Status.JVM.CPU.Time"
CLASSES_LOADED = "Status.JVM.ClassLoader.ClassesLoaded"
CLASSES_UNLOADED = "Status.JVM.ClassLoader.ClassesUnloaded"
FILES_OPEN = "Status.JVM.FileDescriptor.Open"
FILES_MAX = "Status.JVM.FileDescriptor.Max"
GARBAGE_COLLECTOR = "Status.JVM.GarbageCollector."
GARBAGE_COUNT = ".Count"
GARBAGE_TIME = ".Time"
"""Each collector has its own, between this prefix and this suffix; 'All' is all of them together."""
MS_PER_SECOND = "MsPerSecond"
"""Behind GARBAGE_TIME it makes the rate of it."""
GC_COUNT_ALL = f"{GARBAGE_COLLECTOR}All{GARBAGE_COUNT}"
GC_TIME_ALL = f"{GARBAGE_COLLECTOR}All{GARBAGE_TIME}"
GC_RATE_ALL = GC_TIME_ALL + MS_PER_SECOND
MANAGED_USED = "Status.Flink.Memory.Managed.Used"
MANAGED_TOTAL = "Status.Flink.Memory.Managed.Total"
MEMORY_TOTAL = "System.Memory.Total"
"""Of the machine; Flink tells it where `metrics.system-resource` is on."""

HOOKS_EVENTS = "events"
HOOKS_DRAIN_TIME = "drainTimeNs"
HOOKS_RECORD_TIME = "recordTimeNs"
HOOKS_BYTES = "drainedBytes"
HOOKS_DROPPED_RECORDS = "droppedRecords"
HOOKS_DROPPED_LIVE = "droppedLiveUpdates"
HOOKS_FAULTS = "faults"
HOOKS_SENT_BYTES = "sentBytes"
HOOKS_FRAME_BYTES = "frameBytes"
HOOKS_ACKNOWLEDGED_AGE = "acknowledgedAgeMs"
HOOKS_PUSHES = {
    "accepted": "pushesAccepted",
    "resend": "pushesResend",
    "rejected": "pushesRejected",
    "refused": "pushesRefused",
    "overloaded": "pushesOverloaded",
    "unreachable": "pushesUnreachable",
}
"""What became of a push → the counter of such."""

_SQL = "SQL metrics of the tasks' accumulator updates"
_EXCHANGE = "SQL metrics of the exchange node"
_PROGRESS = "QueryProgressEvent"
_HEARTBEAT = "ExecutorMetricsUpdate (heartbeat)"
_BEANS = "the driver's MX beans"
_LOCAL = "in local mode the driver's MX beans, for they are one JVM"

_COUNTED: tuple[tuple[str, str, str, str], ...] = (
    (
        NUM_RECORDS_IN,
        "records",
        _SQL,
        "Records read: of a source the rows read, behind an exchange the shuffle records read.",
    ),
    (NUM_RECORDS_OUT, "records", _SQL, "Records put out: before an exchange the shuffle records written."),
)
_SHUFFLED: tuple[tuple[str, str, str, str], ...] = (
    (NUM_BYTES_IN_LOCAL, "bytes", _EXCHANGE, "Shuffle bytes read from the task's own executor."),
    (NUM_BYTES_IN_REMOTE, "bytes", _EXCHANGE, "Shuffle bytes read from other executors."),
    (NUM_BUFFERS_IN_LOCAL, "buffers", _EXCHANGE, "Shuffle blocks read from the task's own executor."),
    (NUM_BUFFERS_IN_REMOTE, "buffers", _EXCHANGE, "Shuffle blocks fetched from other executors."),
)
_TOTALS: tuple[tuple[str, str, str, str], ...] = (
    (NUM_BYTES_IN, "bytes", _EXCHANGE, "Shuffle bytes read, local and remote; 0 for a source vertex, as in Flink."),
    (
        NUM_BYTES_OUT,
        "bytes",
        _EXCHANGE,
        "Shuffle bytes written; of a sink vertex the bytes that Spark counts as written.",
    ),
)

_DRIVER: tuple[tuple[str, Type, str, str], ...] = (
    (HEAP_USED, "gauge", "bytes", "Heap in use."),
    (HEAP_COMMITTED, "gauge", "bytes", "Heap committed."),
    (HEAP_MAX, "gauge", "bytes", "Greatest heap."),
    (NON_HEAP_USED, "gauge", "bytes", "Non-heap memory in use."),
    (NON_HEAP_COMMITTED, "gauge", "bytes", "Non-heap memory committed."),
    (NON_HEAP_MAX, "gauge", "bytes", "Greatest non-heap memory; −1 where unlimited."),
    (METASPACE_USED, "gauge", "bytes", "Metaspace in use."),
    (METASPACE_COMMITTED, "gauge", "bytes", "Metaspace committed."),
    (METASPACE_MAX, "gauge", "bytes", "Greatest metaspace; −1 where unlimited."),
    (DIRECT_COUNT, "gauge", "", "Direct buffers."),
    (DIRECT_USED, "gauge", "bytes", "Memory in direct buffers."),
    (DIRECT_CAPACITY, "gauge", "bytes", "Capacity of direct buffers."),
    (MAPPED_COUNT, "gauge", "", "Mapped buffers."),
    (MAPPED_USED, "gauge", "bytes", "Memory in mapped buffers."),
    (MAPPED_CAPACITY, "gauge", "bytes", "Capacity of mapped buffers."),
    (THREADS, "gauge", "", "Live threads."),
    (CPU_LOAD, "gauge", "", "Recent processor use of the JVM, 0 to 1."),
    (CPU_TIME, "counter", "ns", "Processor time of the JVM."),
    (CLASSES_LOADED, "counter", "", "Classes loaded since the start."),
    (CLASSES_UNLOADED, "counter", "", "Classes unloaded since the start."),
    (FILES_OPEN, "gauge", "", "Open file descriptors."),
    (FILES_MAX, "gauge", "", "File descriptors allowed."),
    (GC_COUNT_ALL, "counter", "", "Collections of all collectors."),
    (GC_TIME_ALL, "counter", "ms", "Time in collections of all collectors."),
    (
        GC_RATE_ALL,
        "gauge",
        "ms/s",
        "Time in collections a second, over the last 60 s (Flink's MeterView); 0 when the hooks came.",
    ),
    (MEMORY_TOTAL, "gauge", "bytes", "Memory of the machine or container."),
)
_EXECUTOR: tuple[tuple[str, Type, str, str, str], ...] = (
    (HEAP_USED, "gauge", "bytes", _HEARTBEAT, "Heap in use; the peak since the stage began. NaN before the first."),
    (HEAP_MAX, "gauge", "bytes", "spark.executor.memory", "Greatest heap; NaN with a resource profile of its own."),
    (NON_HEAP_USED, "gauge", "bytes", _HEARTBEAT, "Non-heap memory in use; the peak since the stage began."),
    (METASPACE_USED, "gauge", "bytes", _LOCAL, "Metaspace in use; NaN where Spark does not tell."),
    (DIRECT_USED, "gauge", "bytes", _HEARTBEAT, "Direct buffers; the peak since the stage began."),
    (MAPPED_USED, "gauge", "bytes", _HEARTBEAT, "Mapped buffers; the peak since the stage began."),
    (GC_COUNT_ALL, "counter", "", _HEARTBEAT, "Collections, minor and major."),
    (GC_TIME_ALL, "counter", "ms", _HEARTBEAT, "Time in collections."),
    (GC_RATE_ALL, "gauge", "ms/s", _HEARTBEAT, "Time in collections a second, over the last 60 s."),
    (
        MANAGED_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        "Memory in use for storage and execution; the peak since the stage began. NaN before the first.",
    ),
    (MANAGED_TOTAL, "gauge", "bytes", "BlockManagerAdded", "Memory for storage and execution."),
)


def _metered(rows: tuple[tuple[str, str, str, str], ...], scope: Scope, prefix: str = "") -> list[Metric]:
    found: list[Metric] = []
    for name, unit, source, text in rows:
        found.append(Metric(prefix + name, "counter", unit, scope, source, text))
        rate = f"Rate of {prefix}{name} over the last 60 s (Flink's MeterView)."
        found.append(Metric(prefix + name + PER_SECOND, "meter", f"{unit}/s", scope, source, rate))
    return found


METRICS: tuple[Metric, ...] = (
    *_metered(_COUNTED, "vertex"),
    *_metered(_TOTALS, "vertex"),
    *_metered(_SHUFFLED, "vertex"),
    *_metered(_SHUFFLED, "vertex", SHUFFLE_INPUT),
    Metric(BUSY_TIME, "gauge", "ms/s", "vertex", "task launches and ends", "Busy time a second; NaN where unknown."),
    Metric(
        BACK_PRESSURED_TIME,
        "gauge",
        "ms/s",
        "vertex",
        "stage and batch ends",
        "Back-pressured time a second; NaN where unknown.",
    ),
    *_metered(_COUNTED, "operator"),
    Metric(
        UPTIME, "gauge", "ms", "job", "QueryStartedEvent", "Time since the job last came to run; 0 once it has ended."
    ),
    Metric(
        RUNNING_TIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time that the job has been running without a break; 0 when it does not run.",
    ),
    Metric(
        RESTARTING_TIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time since the job began to restart; 0 when it does not.",
    ),
    Metric(
        DOWNTIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time since a restarting or suspended job last ran; 0 while it runs, −1 once it has ended.",
    ),
    Metric(NUM_RESTARTS, "gauge", "", "job", "QueryStartedEvent", "Runs of the query after the first that was seen."),
    Metric(NUM_COMPLETED_CHECKPOINTS, "counter", "", "job", _PROGRESS, "Micro-batches that this run has completed."),
    Metric(
        NUM_FAILED_CHECKPOINTS, "counter", "", "job", "QueryTerminatedEvent", "Micro-batches that an exception ended."
    ),
    Metric(NUM_IN_PROGRESS_CHECKPOINTS, "gauge", "", "job", "JobStart", "1 while a micro-batch runs."),
    Metric(TOTAL_CHECKPOINTS, "counter", "", "job", _PROGRESS, "Micro-batches begun."),
    Metric(LAST_COMPLETED_CHECKPOINT_ID, "gauge", "", "job", _PROGRESS, "Batch id of the last completed micro-batch."),
    Metric(LAST_CHECKPOINT_DURATION, "gauge", "ms", "job", _PROGRESS, "Duration of its trigger (triggerExecution)."),
    Metric(LAST_CHECKPOINT_SIZE, "gauge", "bytes", "job", _PROGRESS, "Memory used by the query's state operators."),
    Metric(LAST_CHECKPOINT_COMPLETED, "gauge", "ms", "job", _PROGRESS, "When it ended, Unix milliseconds."),
    Metric(LAST_CHECKPOINT_PROCESSED, "gauge", "records", "job", _PROGRESS, "Rows that it read."),
    Metric(
        INPUT_ROWS, "counter", "records", "job", _PROGRESS, "Rows read by this run, as Spark's progress tells them."
    ),
    Metric(
        OUTPUT_ROWS,
        "counter",
        "records",
        "job",
        _PROGRESS,
        "Rows written by this run, as the sink tells them; absent where it does not.",
    ),
    Metric(
        INPUT_ROWS,
        "counter",
        "records",
        "coordinator",
        _PROGRESS,
        "Rows that this run has read of the source, as Spark's progress tells them.",
    ),
    Metric(
        INPUT_RATE,
        "gauge",
        "records/s",
        "coordinator",
        _PROGRESS,
        "Spark's own rate of rows into the last batch; it divides by the time since the last, perhaps empty, poll.",
    ),
    Metric(
        PROCESSED_RATE,
        "gauge",
        "records/s",
        "coordinator",
        _PROGRESS,
        "Spark's own rate at which the last batch went through them.",
    ),
    Metric(TASK_SLOTS_TOTAL, "gauge", "", "cluster", "executor events", "Task slots of all executors."),
    Metric(TASK_SLOTS_AVAILABLE, "gauge", "", "cluster", "task events", "Task slots without a running task."),
    Metric(NUM_TASK_MANAGERS, "gauge", "", "cluster", "executor events", "Executors."),
    Metric(NUM_RUNNING_JOBS, "gauge", "", "cluster", "QueryStartedEvent", "Jobs that run."),
    *(Metric(name, kind, unit, "executor", source, text) for name, kind, unit, source, text in _EXECUTOR),
    *(
        Metric(name, kind, unit, "executor", _LOCAL, text)
        for name, kind, unit, text in _DRIVER
        if name not in {row[0] for row in _EXECUTOR}
    ),
    *(Metric(name, kind, unit, "driver", _BEANS, text) for name, kind, unit, text in _DRIVER),
    Metric(HOOKS_EVENTS, "counter", "", "hooks", "Recorder.java", "Listener events that the recorder took."),
    Metric(HOOKS_RECORD_TIME, "counter", "ns", "hooks", "Recorder.java", "Time that the recorder spent in them."),
    Metric(HOOKS_DRAIN_TIME, "gauge", "ns", "hooks", "agent", "Time of the last drain."),
    Metric(HOOKS_BYTES, "counter", "bytes", "hooks", "agent", "Bytes drained from the recorder."),
    Metric(
        HOOKS_DROPPED_RECORDS,
        "counter",
        "",
        "hooks",
        "Recorder.java",
        "Records given up for want of room: counts are too small.",
    ),
    Metric(
        HOOKS_DROPPED_LIVE,
        "counter",
        "",
        "hooks",
        "Recorder.java",
        "Live updates given up; the task's end tells the same.",
    ),
    Metric(HOOKS_FAULTS, "counter", "", "hooks", "agent", "Events that the hooks could not take in."),
    Metric(HOOKS_SENT_BYTES, "counter", "bytes", "hooks", "pusher", "Bytes of all pushes."),
    Metric(HOOKS_FRAME_BYTES, "gauge", "bytes", "hooks", "pusher", "Bytes of the push before this one."),
    Metric(
        HOOKS_ACKNOWLEDGED_AGE,
        "gauge",
        "ms",
        "hooks",
        "pusher",
        "Time since the collector took the frames before these; absent in the first.",
    ),
    *(
        Metric(name, "counter", "", "hooks", "pusher", f"Pushes that were {outcome}, so far; see Outcome.")
        for outcome, name in HOOKS_PUSHES.items()
    ),
)

_INDEX: dict[tuple[Scope, str], Metric] = {(metric.scope, metric.name): metric for metric in METRICS}


def find(scope: Scope, name: str) -> Metric | None:
    """Return the catalogue's entry, or None for a name that is not in it."""
    return _INDEX.get((scope, name))


def filtered(name: str) -> str:
    """
    Return an operator's name as it stands in a metric id: ' ', '.', ':' and ',' become '_'.

    Source: Flink's `QueryScopeInfo` filter, seen on 2.3 (`Source: datagen` → `Source__datagen`).
    """
    return name.translate(_FILTER)


_FILTER = str.maketrans(" .:,", "____")
