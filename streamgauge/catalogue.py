"""The catalogue: what every metric is, its type, unit, scope, source and meaning on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge import names

Type = Literal["counter", "meter", "gauge", "bool", "string", "histogram"]
"""
counter: int64 that only grows within a run. meter: a rate over 60 s. gauge: int64 or float64. histogram: the eleven
statistics of the latest values.
"""

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
        formula: How it follows from what Spark tells; '' where it is told as it is.
        estimate: It is not exact; the formula says why.
    """

    name: str
    type: Type
    unit: str
    scope: Scope
    source: str
    help: str
    formula: str = ""
    estimate: bool = False


_SQL = "SQL metrics of the tasks' accumulator updates"
_EXCHANGE = "SQL metrics of the exchange node"
_PROGRESS = "QueryProgressEvent"
_TASK_END = "TaskEnd"
_TASKS = "TaskStart, TaskEnd, StageCompleted and QueryProgressEvent"
_HEARTBEAT = "ExecutorMetricsUpdate (heartbeat)"
_BEANS = "the driver's MX beans"
_LOCAL = "in local mode the driver's MX beans, for they are one JVM"

_COUNTED: tuple[tuple[str, str, str, str], ...] = (
    (
        names.NUM_RECORDS_IN,
        "records",
        _SQL,
        "Records read: of a source the rows read, behind an exchange the shuffle records read.",
    ),
    (names.NUM_RECORDS_OUT, "records", _SQL, "Records put out: before an exchange the shuffle records written."),
)
_SHUFFLED: tuple[tuple[str, str, str, str], ...] = (
    (names.NUM_BYTES_IN_LOCAL, "bytes", _EXCHANGE, "Shuffle bytes read from the task's own executor."),
    (names.NUM_BYTES_IN_REMOTE, "bytes", _EXCHANGE, "Shuffle bytes read from other executors."),
    (names.NUM_BUFFERS_IN_LOCAL, "buffers", _EXCHANGE, "Shuffle blocks read from the task's own executor."),
    (names.NUM_BUFFERS_IN_REMOTE, "buffers", _EXCHANGE, "Shuffle blocks fetched from other executors."),
)
_TOTALS: tuple[tuple[str, str, str, str], ...] = (
    (
        names.NUM_BYTES_IN,
        "bytes",
        _EXCHANGE,
        "Shuffle bytes read, local and remote; 0 for a source vertex, as in Flink.",
    ),
    (
        names.NUM_BYTES_OUT,
        "bytes",
        _EXCHANGE,
        "Shuffle bytes written; of a sink vertex the bytes that Spark counts as written.",
    ),
)

_TIME: tuple[tuple[str, Type, str, str, str], ...] = (
    (names.BUSY_TIME, "gauge", "ms/s", _TASKS, "Busy time a second; NaN where unknown."),
    (names.IDLE_TIME, "gauge", "ms/s", _TASKS, "Idle time a second."),
    (names.BACK_PRESSURED_TIME, "gauge", "ms/s", _TASKS, "Back-pressured time a second; NaN where unknown."),
    (names.SLOT_WAIT_TIME, "gauge", "ms/s", _TASKS, "The part of its busy time in which it waited for a slot."),
    (names.ACCUMULATED_BUSY_TIME, "gauge", "ms", _TASKS, "Busy time since the subtask was first seen."),
    (names.ACCUMULATED_IDLE_TIME, "gauge", "ms", _TASKS, "Idle time since the subtask was first seen."),
    (names.ACCUMULATED_BACK_PRESSURED_TIME, "gauge", "ms", _TASKS, "Back-pressured time since it was first seen."),
    (names.IS_BACK_PRESSURED, "bool", "", _TASKS, "Whether it was back-pressured when this was last looked at."),
)
_BUFFERS: tuple[tuple[str, Type, str, str, str, str], ...] = (
    (
        names.OUTPUT_QUEUE_LENGTH,
        "gauge",
        "buffers",
        _TASK_END,
        "Shuffle blocks that it has written and that unfinished downstream tasks have yet to read.",
        names.OUTPUT_BUFFERS,
    ),
    (
        names.OUTPUT_QUEUE_SIZE,
        "gauge",
        "bytes",
        _TASK_END,
        "Bytes that it has written and that unfinished downstream tasks have yet to read.",
        names.OUTPUT_BUFFERS,
    ),
    (
        names.OUT_POOL_USAGE,
        "gauge",
        "",
        _TASK_END,
        "Execution memory that its latest task peaked at, over its slot's share of the executor's, 0 to 1.",
        names.OUTPUT_BUFFERS,
    ),
    (
        names.INPUT_QUEUE_LENGTH,
        "gauge",
        "buffers",
        _TASK_END,
        "Shuffle blocks on other executors that wait for it; 0 where there is one executor, as in local mode.",
        names.INPUT_BUFFERS,
    ),
    (
        names.INPUT_QUEUE_SIZE,
        "gauge",
        "bytes",
        _TASK_END,
        "Bytes on other executors that wait for it; 0 where there is one executor, as in local mode.",
        names.INPUT_BUFFERS,
    ),
    (
        names.IN_POOL_USAGE,
        "gauge",
        "",
        _TASK_END,
        "Bytes that wait for it over spark.reducer.maxSizeInFlight, 0 to 1, mean of the last 60 s.",
        names.INPUT_BUFFERS,
    ),
)
_SOURCE: tuple[tuple[str, Type, str, str], ...] = (
    (names.PENDING_RECORDS, "gauge", "records", "Records that the source has beyond what was read; at subtask 0."),
    (names.UNREAD_FILES, "gauge", "", "Files that the source has listed and not read yet; at subtask 0."),
    (names.FETCH_LAG, "gauge", "ms", "From the latest event time in a micro-batch to the batch's beginning."),
    (names.EMIT_LAG, "gauge", "ms", "From the latest event time in a micro-batch to the batch's end."),
    (names.WATERMARK_LAG, "gauge", "ms", "By how much the query's watermark is behind the driver's clock."),
    (names.SOURCE_IDLE_TIME, "gauge", "ms", "Time since a micro-batch last read rows from the source; 0 during one."),
)
_QUERY: tuple[tuple[str, Type, str, str], ...] = (
    (
        names.BACKLOGGED,
        "bool",
        "",
        "Whether the query cannot keep up: its source had more than the last batch took, "
        "or its batches run past their slots, or grow.",
    ),
    (names.KEEP_UP_RATIO, "gauge", "", "Rows that it can process a second over rows that arrive a second, last 60 s."),
    (names.BACKLOG_ROWS, "gauge", "records", "Rows that its sources have beyond what was read."),
    (names.BACKLOG_ROWS_TREND, "gauge", "records/s", "By how much the backlog grew a second, last 60 s."),
    (names.BACKLOG_TIME, "gauge", "ms", "Time that it would take to work the backlog off, at the rate of its batches."),
    (names.BACKLOG_TIME_TREND, "gauge", "ms/s", "By how much that time grew a second, last 60 s."),
)
_MARKERS: tuple[tuple[str, Type, str], ...] = (
    (names.MARKERS_EMITTED, "counter", "Latency markers that came due at a source subtask."),
    (names.MARKERS_RECORDED, "counter", "Latency markers that reached a sink."),
    (names.MARKERS_IN_FLIGHT, "gauge", "Latency markers whose fate is not known yet."),
    *(
        (name, "counter", f"Latency markers that were dropped: {reason}.")
        for name, reason in (
            (names.MARKERS_DROPPED_BY["idle"], "no micro-batch began for them, so no record waited"),
            (names.MARKERS_DROPPED_BY["ended"], "the run, or the batch that carried them, ended first"),
            (names.MARKERS_DROPPED_BY["lost"], "the batch that carried them ran nothing that hands them on"),
            (names.MARKERS_DROPPED_BY["crowded"], "too many wait already"),
        )
    ),
)

_DRIVER: tuple[tuple[str, Type, str, str], ...] = (
    (names.HEAP_USED, "gauge", "bytes", "Heap in use."),
    (names.HEAP_COMMITTED, "gauge", "bytes", "Heap committed."),
    (names.HEAP_MAX, "gauge", "bytes", "Greatest heap."),
    (names.NON_HEAP_USED, "gauge", "bytes", "Non-heap memory in use."),
    (names.NON_HEAP_COMMITTED, "gauge", "bytes", "Non-heap memory committed."),
    (names.NON_HEAP_MAX, "gauge", "bytes", "Greatest non-heap memory; −1 where unlimited."),
    (names.METASPACE_USED, "gauge", "bytes", "Metaspace in use."),
    (names.METASPACE_COMMITTED, "gauge", "bytes", "Metaspace committed."),
    (names.METASPACE_MAX, "gauge", "bytes", "Greatest metaspace; −1 where unlimited."),
    (names.DIRECT_COUNT, "gauge", "", "Direct buffers."),
    (names.DIRECT_USED, "gauge", "bytes", "Memory in direct buffers."),
    (names.DIRECT_CAPACITY, "gauge", "bytes", "Capacity of direct buffers."),
    (names.MAPPED_COUNT, "gauge", "", "Mapped buffers."),
    (names.MAPPED_USED, "gauge", "bytes", "Memory in mapped buffers."),
    (names.MAPPED_CAPACITY, "gauge", "bytes", "Capacity of mapped buffers."),
    (names.THREADS, "gauge", "", "Live threads."),
    (names.CPU_LOAD, "gauge", "", "Recent processor use of the JVM, 0 to 1."),
    (names.CPU_TIME, "counter", "ns", "Processor time of the JVM."),
    (names.CLASSES_LOADED, "counter", "", "Classes loaded since the start."),
    (names.CLASSES_UNLOADED, "counter", "", "Classes unloaded since the start."),
    (names.FILES_OPEN, "gauge", "", "Open file descriptors."),
    (names.FILES_MAX, "gauge", "", "File descriptors allowed."),
    (names.GC_COUNT_ALL, "counter", "", "Collections of all collectors."),
    (names.GC_TIME_ALL, "counter", "ms", "Time in collections of all collectors."),
    (
        names.GC_RATE_ALL,
        "gauge",
        "ms/s",
        "Time in collections a second, over the last 60 s (Flink's MeterView); 0 when the hooks came.",
    ),
    (names.MEMORY_TOTAL, "gauge", "bytes", "Memory of the machine or container."),
)
_EXECUTOR: tuple[tuple[str, Type, str, str, str], ...] = (
    (
        names.HEAP_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        "Heap in use; the peak since the stage began. NaN before the first.",
    ),
    (
        names.HEAP_MAX,
        "gauge",
        "bytes",
        "spark.executor.memory",
        "Greatest heap; NaN with a resource profile of its own.",
    ),
    (names.NON_HEAP_USED, "gauge", "bytes", _HEARTBEAT, "Non-heap memory in use; the peak since the stage began."),
    (names.METASPACE_USED, "gauge", "bytes", _LOCAL, "Metaspace in use; NaN where Spark does not tell."),
    (names.DIRECT_USED, "gauge", "bytes", _HEARTBEAT, "Direct buffers; the peak since the stage began."),
    (names.MAPPED_USED, "gauge", "bytes", _HEARTBEAT, "Mapped buffers; the peak since the stage began."),
    (names.GC_COUNT_ALL, "counter", "", _HEARTBEAT, "Collections, minor and major."),
    (names.GC_TIME_ALL, "counter", "ms", _HEARTBEAT, "Time in collections."),
    (names.GC_RATE_ALL, "gauge", "ms/s", _HEARTBEAT, "Time in collections a second, over the last 60 s."),
    (
        names.MANAGED_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        "Memory in use for storage and execution; the peak since the stage began. NaN before the first.",
    ),
    (names.MANAGED_TOTAL, "gauge", "bytes", "BlockManagerAdded", "Memory for storage and execution."),
    (
        names.SHUFFLE_MEMORY_USED,
        "gauge",
        "bytes",
        _HEARTBEAT,
        "Memory in use for execution, out of which shuffles and sorts are served; the peak since the stage began.",
    ),
    (names.SHUFFLE_MEMORY_AVAILABLE, "gauge", "bytes", _HEARTBEAT, "What execution could use beyond that."),
    (names.SHUFFLE_MEMORY_TOTAL, "gauge", "bytes", "BlockManagerAdded", "Memory for storage and execution."),
)


def _metered(rows: tuple[tuple[str, str, str, str], ...], scope: Scope, prefix: str = "") -> list[Metric]:
    found: list[Metric] = []
    for name, unit, source, text in rows:
        found.append(Metric(prefix + name, "counter", unit, scope, source, text))
        rate = f"Rate of {prefix}{name} over the last 60 s (Flink's MeterView)."
        found.append(Metric(prefix + name + names.PER_SECOND, "meter", f"{unit}/s", scope, source, rate))
    return found


METRICS: tuple[Metric, ...] = (
    *_metered(_COUNTED, "vertex"),
    *_metered(_TOTALS, "vertex"),
    *_metered(_SHUFFLED, "vertex"),
    *_metered(_SHUFFLED, "vertex", names.SHUFFLE_INPUT),
    *(Metric(name, kind, unit, "vertex", source, text) for name, kind, unit, source, text in _TIME),
    *(
        Metric(prefix + name, kind, unit, "vertex", source, text)
        for name, kind, unit, source, text, new_prefix in _BUFFERS
        for prefix in (new_prefix, names.OLD_BUFFERS)
    ),
    *_metered(((names.NUM_BYTES_SPILLED, "bytes", _TASK_END, "Bytes that its tasks spilled to disk."),), "vertex"),
    Metric(
        names.CHECKPOINT_ALIGNMENT_TIME,
        "gauge",
        "ns",
        "vertex",
        _TASK_END,
        "How long the subtask's input was complete in part only: from the first of its upstream tasks that finished to "
        "the last one, growing meanwhile.",
    ),
    Metric(
        names.CHECKPOINT_START_DELAY,
        "gauge",
        "ns",
        "vertex",
        "TaskStart",
        "From the beginning of the micro-batch to that of the vertex's stage.",
    ),
    Metric(
        names.LATENCY,
        "histogram",
        "ms",
        "vertex",
        "the course of micro-batches",
        "Time from when a latency marker was due at a source to when it reached an operator.",
        estimate=True,
    ),
    Metric(
        names.CURRENT_INPUT_WATERMARK,
        "gauge",
        "ms",
        "vertex",
        _PROGRESS,
        "The query's watermark, Unix milliseconds; −2^63 before there is one. A source vertex has none.",
    ),
    *_metered(_COUNTED, "operator"),
    Metric(
        names.UPTIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time since the job last came to run; 0 once it has ended.",
    ),
    Metric(
        names.RUNNING_TIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time that the job has been running without a break; 0 when it does not run.",
    ),
    Metric(
        names.RESTARTING_TIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time since the job began to restart; 0 when it does not.",
    ),
    Metric(
        names.DOWNTIME,
        "gauge",
        "ms",
        "job",
        "QueryStartedEvent",
        "Time since a restarting or suspended job last ran; 0 while it runs, −1 once it has ended.",
    ),
    Metric(
        names.NUM_RESTARTS, "gauge", "", "job", "QueryStartedEvent", "Runs of the query after the first that was seen."
    ),
    Metric(
        names.NUM_COMPLETED_CHECKPOINTS, "counter", "", "job", _PROGRESS, "Micro-batches that this run has completed."
    ),
    Metric(
        names.NUM_FAILED_CHECKPOINTS,
        "counter",
        "",
        "job",
        "QueryTerminatedEvent",
        "Micro-batches that were broken off.",
    ),
    Metric(names.NUM_IN_PROGRESS_CHECKPOINTS, "gauge", "", "job", "JobStart", "1 while a micro-batch runs."),
    Metric(names.TOTAL_CHECKPOINTS, "counter", "", "job", _PROGRESS, "Micro-batches begun."),
    Metric(
        names.LAST_COMPLETED_CHECKPOINT_ID, "gauge", "", "job", _PROGRESS, "Batch id of the last completed micro-batch."
    ),
    Metric(
        names.LAST_CHECKPOINT_DURATION, "gauge", "ms", "job", _PROGRESS, "Duration of its trigger (triggerExecution)."
    ),
    Metric(
        names.LAST_CHECKPOINT_SIZE, "gauge", "bytes", "job", _PROGRESS, "Memory used by the query's state operators."
    ),
    Metric(names.LAST_CHECKPOINT_COMPLETED, "gauge", "ms", "job", _PROGRESS, "When it ended, Unix milliseconds."),
    Metric(names.LAST_CHECKPOINT_PROCESSED, "gauge", "records", "job", _PROGRESS, "Rows that it read."),
    Metric(
        names.INPUT_ROWS,
        "counter",
        "records",
        "job",
        _PROGRESS,
        "Rows read by this run, as Spark's progress tells them.",
    ),
    Metric(
        names.OUTPUT_ROWS,
        "counter",
        "records",
        "job",
        _PROGRESS,
        "Rows written by this run, as the sink tells them; absent where it does not.",
    ),
    Metric(
        names.INPUT_ROWS,
        "counter",
        "records",
        "coordinator",
        _PROGRESS,
        "Rows that this run has read of the source, as Spark's progress tells them.",
    ),
    Metric(
        names.INPUT_RATE,
        "gauge",
        "records/s",
        "coordinator",
        _PROGRESS,
        "Spark's own rate of rows into the last batch; it divides by the time since the last, perhaps empty, poll.",
    ),
    Metric(
        names.PROCESSED_RATE,
        "gauge",
        "records/s",
        "coordinator",
        _PROGRESS,
        "Spark's own rate at which the last batch went through them.",
    ),
    *(Metric(name, kind, unit, "operator", _PROGRESS, text) for name, kind, unit, text in _SOURCE),
    *(Metric(name, kind, unit, "job", _PROGRESS, text) for name, kind, unit, text in _QUERY),
    *(Metric(name, kind, "", "job", "the course of micro-batches", text) for name, kind, text in _MARKERS),
    Metric(names.TASK_SLOTS_TOTAL, "gauge", "", "cluster", "executor events", "Task slots of all executors."),
    Metric(names.TASK_SLOTS_AVAILABLE, "gauge", "", "cluster", "task events", "Task slots without a running task."),
    Metric(names.NUM_TASK_MANAGERS, "gauge", "", "cluster", "executor events", "Executors."),
    Metric(names.NUM_RUNNING_JOBS, "gauge", "", "cluster", "QueryStartedEvent", "Jobs that run."),
    *(Metric(name, kind, unit, "executor", source, text) for name, kind, unit, source, text in _EXECUTOR),
    *(
        Metric(name, kind, unit, "executor", _LOCAL, text)
        for name, kind, unit, text in _DRIVER
        if name not in {row[0] for row in _EXECUTOR}
    ),
    *(Metric(name, kind, unit, "driver", _BEANS, text) for name, kind, unit, text in _DRIVER),
    Metric(names.HOOKS_EVENTS, "counter", "", "hooks", "Recorder.java", "Listener events that the recorder took."),
    Metric(names.HOOKS_RECORD_TIME, "counter", "ns", "hooks", "Recorder.java", "Time that the recorder spent in them."),
    Metric(names.HOOKS_DRAIN_TIME, "gauge", "ns", "hooks", "agent", "Time of the last drain."),
    Metric(names.HOOKS_BYTES, "counter", "bytes", "hooks", "agent", "Bytes drained from the recorder."),
    Metric(
        names.HOOKS_DROPPED_RECORDS,
        "counter",
        "",
        "hooks",
        "Recorder.java",
        "Records given up for want of room: counts are too small.",
    ),
    Metric(
        names.HOOKS_DROPPED_LIVE,
        "counter",
        "",
        "hooks",
        "Recorder.java",
        "Live updates given up; the task's end tells the same.",
    ),
    Metric(names.HOOKS_FAULTS, "counter", "", "hooks", "agent", "Events that the hooks could not take in."),
    Metric(names.HOOKS_SENT_BYTES, "counter", "bytes", "hooks", "pusher", "Bytes of all pushes."),
    Metric(names.HOOKS_FRAME_BYTES, "gauge", "bytes", "hooks", "pusher", "Bytes of the push before this one."),
    Metric(
        names.HOOKS_ACKNOWLEDGED_AGE,
        "gauge",
        "ms",
        "hooks",
        "pusher",
        "Time since the collector took the frames before these; absent in the first.",
    ),
    *(
        Metric(name, "counter", "", "hooks", "pusher", f"Pushes that were {outcome}, so far; see Outcome.")
        for outcome, name in names.HOOKS_PUSHES.items()
    ),
)

_INDEX: dict[tuple[Scope, str], Metric] = {(metric.scope, metric.name): metric for metric in METRICS}


def find(scope: Scope, name: str) -> Metric | None:
    """Return the catalogue's entry, or None for a name that is not in it."""
    return _INDEX.get((scope, name))
