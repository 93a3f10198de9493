"""
Every metric's name; what each is stands in the catalogue.

Names are Flink's, exactly (Source: Flink 2.3, `MetricNames.java`, and recorded answers of its REST). A
metric-name literal anywhere else is a defect.
"""

from __future__ import annotations

PER_SECOND = "PerSecond"

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
SLOT_WAIT_TIME = "slotWaitTimeMsPerSecond"
ACCUMULATED_BUSY_TIME = "accumulateBusyTimeMs"
ACCUMULATED_IDLE_TIME = "accumulateIdleTimeMs"
ACCUMULATED_BACK_PRESSURED_TIME = "accumulateBackPressuredTimeMs"
IS_BACK_PRESSURED = "isBackPressured"
CURRENT_INPUT_WATERMARK = "currentInputWatermark"
CURRENT_OUTPUT_WATERMARK = "currentOutputWatermark"
CURRENT_LOW_WATERMARK = "currentLowWatermark"
"""What Flink 1.2 called a vertex' input watermark."""
CURRENT_SPLIT_WATERMARK = "currentSplitWatermark"
"""What a vertex' input watermark would be if it followed the slowest split, as Flink's does, and not the fastest."""
NUM_LATE_RECORDS_DROPPED = "numLateRecordsDropped"

NUM_STATE_ROWS = "numStateRows"
NUM_STATE_ROWS_UPDATED = "numStateRowsUpdated"
NUM_STATE_ROWS_REMOVED = "numStateRowsRemoved"
STATE_MEMORY_USED = "stateMemoryUsed"
STATE_COMMIT_TIME = "stateCommitTimeMs"

NUM_REGISTERED_TIMERS = "numRegisteredTimers"
NUM_DELETED_TIMERS = "numDeletedTimers"
NUM_PENDING_TIMERS = "numPendingTimers"
NUM_FIRED_TIMERS = "numFiredTimers"
TIMER_TIME = "timerProcessingTimeMs"
TIMER_LATENESS = "timerLateness"
RECORD_LATENCY = "recordLatency"
RECORD_QUEUEING = "recordQueueing"
DISTRIBUTIONS = frozenset({TIMER_LATENESS, RECORD_LATENCY, RECORD_QUEUEING})
"""Told as buckets of a whole run, by operator."""

SPLIT = "split."
"""Stands before a split's id, which stands before the names below; Flink has them at a source operator."""
SPLIT_CURRENT_WATERMARK = "watermark.currentWatermark"
SPLIT_ACTIVE_TIME = "watermark.activeTimeMsPerSecond"
SPLIT_PAUSED_TIME = "watermark.pausedTimeMsPerSecond"
SPLIT_IDLE_TIME = "watermark.idleTimeMsPerSecond"
SPLIT_ACCUMULATED_ACTIVE_TIME = "watermark.accumulatedActiveTimeMs"
SPLIT_ACCUMULATED_PAUSED_TIME = "watermark.accumulatedPausedTimeMs"
SPLIT_ACCUMULATED_IDLE_TIME = "watermark.accumulatedIdleTimeMs"
SPLIT_IDLE = "isIdle"
SPLIT_WATERMARK_DRIFT = "splitWatermarkDrift"
SPLIT_RECORDS = "numRecordsIn"
SPLIT_RECORDS_AT_RISK = "numRecordsAtRisk"
SPLIT_METRICS = (
    SPLIT_CURRENT_WATERMARK,
    SPLIT_ACTIVE_TIME,
    SPLIT_PAUSED_TIME,
    SPLIT_IDLE_TIME,
    SPLIT_ACCUMULATED_ACTIVE_TIME,
    SPLIT_ACCUMULATED_PAUSED_TIME,
    SPLIT_ACCUMULATED_IDLE_TIME,
    SPLIT_IDLE,
    SPLIT_WATERMARK_DRIFT,
    SPLIT_RECORDS,
    SPLIT_RECORDS_AT_RISK,
)

TRANSIENT = frozenset(
    {BUSY_TIME, BACK_PRESSURED_TIME, IDLE_TIME, SLOT_WAIT_TIME, SPLIT_ACTIVE_TIME, SPLIT_PAUSED_TIME, SPLIT_IDLE_TIME}
)
"""Taken away when a job ends, as Flink's store does."""

OUTPUT_QUEUE_LENGTH = "outputQueueLength"
OUTPUT_QUEUE_SIZE = "outputQueueSize"
OUT_POOL_USAGE = "outPoolUsage"
INPUT_QUEUE_LENGTH = "inputQueueLength"
INPUT_QUEUE_SIZE = "inputQueueSize"
IN_POOL_USAGE = "inPoolUsage"
OUTPUT_BUFFERS = "Shuffle.Netty.Output.Buffers."
INPUT_BUFFERS = "Shuffle.Netty.Input.Buffers."
OLD_BUFFERS = "buffers."
"""Flink tells of buffers under the first two prefixes; Flink 1.2 told the same under the third."""
NUM_BYTES_SPILLED = "numBytesSpilled"

CHECKPOINT_ALIGNMENT_TIME = "checkpointAlignmentTime"
CHECKPOINT_START_DELAY = "checkpointStartDelayNanos"

PENDING_RECORDS = "pendingRecords"
UNREAD_FILES = "unreadFiles"
FETCH_LAG = "currentFetchEventTimeLag"
EMIT_LAG = "currentEmitEventTimeLag"
WATERMARK_LAG = "watermarkLag"
SOURCE_IDLE_TIME = "sourceIdleTime"
"""How far behind a source is; readers ask for them, and show nothing where they are absent."""

LATENCY = "latency"
LATENCY_STATISTICS = ("min", "max", "mean", "median", "stddev", "p75", "p90", "p95", "p98", "p99", "p999")
"""Suffixes of a histogram's eleven ids. Source: Flink, seen on 2.3."""

UPTIME = "uptime"
RUNNING_TIME = "runningTime"
RESTARTING_TIME = "restartingTime"
DOWNTIME = "downtime"
NUM_RESTARTS = "numRestarts"
FULL_RESTARTS = "fullRestarts"
"""The same by the name that it had before; only /metrics/flink tells it, for dashboards ask for it."""
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
TRIGGER_INTERVAL = "triggerIntervalMs"
BACKLOGGED = "backlogged"
KEEP_UP_RATIO = "processedToInputRatio"
BACKLOG_ROWS = "backlogRows"
BACKLOG_ROWS_TREND = "backlogRowsTrend"
BACKLOG_TIME = "backlogTimeMs"
BACKLOG_TIME_TREND = "backlogTimeTrend"
MARKERS_EMITTED = "latencyMarkersEmitted"
MARKERS_RECORDED = "latencyMarkersRecorded"
MARKERS_IN_FLIGHT = "latencyMarkersInFlight"
MARKERS_DROPPED_BY = {
    "idle": "latencyMarkersDroppedIdle",
    "ended": "latencyMarkersDroppedEnded",
    "lost": "latencyMarkersDroppedLost",
    "crowded": "latencyMarkersDroppedCrowded",
}
"""
Why a marker was dropped → the counter of such. idle: no batch began for it, so no record waited; ended: the run, or the
batch that carried it, ended first; lost: its batch ran nothing that would hand it on; crowded: too many wait already.
"""
INPUT_RATE = "inputRowsPerSecond"
PROCESSED_RATE = "processedRowsPerSecond"
COORDINATOR = "coordinator."
"""Stands before the names of a coordinator's metrics, after its operator's."""

TASK_SLOTS_TOTAL = "taskSlotsTotal"
TASK_SLOTS_AVAILABLE = "taskSlotsAvailable"
AVAILABLE_SLOTS = "Status.NumAvailableSlots"
"""TASK_SLOTS_AVAILABLE of one executor; only /metrics/flink tells it, for dashboards ask for it."""
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
SHUFFLE_MEMORY_USED = "Status.Shuffle.Netty.UsedMemory"
SHUFFLE_MEMORY_AVAILABLE = "Status.Shuffle.Netty.AvailableMemory"
SHUFFLE_MEMORY_TOTAL = "Status.Shuffle.Netty.TotalMemory"
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


def filtered(name: str) -> str:
    """
    Return an operator's name as it stands in a metric id: ' ', '.', ':' and ',' become '_'.

    Source: Flink's `QueryScopeInfo` filter, seen on 2.3 (`Source: datagen` → `Source__datagen`).
    """
    return name.translate(_FILTER)


_FILTER = str.maketrans(" .:,", "____")
