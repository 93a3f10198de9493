"""
What travels from the hooks to the collector: frames, one per job and push, in MessagePack.

The body of a push is one MessagePack array of frames. A frame holds a job's state as it is now, never
samples: cumulative counts and current values, so that a lost frame costs nothing and a repeated one
changes nothing. One metric of one vertex or operator is one column over the vertex's subtasks.

Ordering. `attempt` names one run of a query: the greater (start_ms, run_id) wins. Within a run `seq`
counts up from 1. A full frame (`base` 0) replaces all; a delta (`base` > 0) holds what has changed since
frame `base`, which the collector acknowledged; it applies to any state of this run with seq ≥ base.

A frame whose `job` is None is the application's own: executors and driver figures. Its attempt is
(application start, application id).
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from streamgauge.errors import MalformedFrame

WIRE_VERSION = 1
"""Raised by every change that an older collector would misread."""

CONTENT_TYPE = "application/msgpack"
PUSH_PATH = "/push/v1/frames"

# Made once: NumPy takes longer to parse a type's name than to make the view.
_INT64 = np.dtype("<i8")
_FLOAT64 = np.dtype("<f8")

Scalar = bool | int | float | str
"""A metric without subtasks: of a job, an executor or the driver."""

Array = npt.NDArray[np.int64] | npt.NDArray[np.float64]

JobState = Literal["CREATED", "RUNNING", "FAILED", "FINISHED", "CANCELED", "RESTARTING", "SUSPENDED"]
"""Flink's words; SUSPENDED and RESTARTING are also set by the collector itself."""

ENDED_STATES: frozenset[str] = frozenset({"FAILED", "FINISHED", "CANCELED"})


class Column(msgspec.Struct, frozen=True, array_like=True):
    """
    One metric over the subtasks of one vertex or operator.

    Args:
        metric: Flink's name, without subtask and operator.
        dtype: 'i8' int64 or 'f8' float64, little-endian. Booleans travel as 0 and 1; the catalogue
            knows their type.
        data: 8 bytes a subtask, subtask 0 first.
        present: None where every subtask has a value; else a bitmap, bit i of byte i // 8 (least
            significant first) set where subtask i has one. What is not known is absent.
    """

    metric: str
    dtype: Literal["i8", "f8"]
    data: bytes
    present: bytes | None = None

    def values(self) -> Array:
        """
        Return the column's values, shape (subtasks,), a read-only view of `data`.

        Raises:
            MalformedFrame: `data` is not a whole number of 8-byte values.
        """
        if len(self.data) % 8:
            raise MalformedFrame(f"column {self.metric!r}: {len(self.data)} bytes are no whole number of 8-byte values")
        if self.dtype == "i8":
            return np.frombuffer(self.data, dtype=_INT64)
        return np.frombuffer(self.data, dtype=_FLOAT64)

    def mask(self, subtasks: int) -> npt.NDArray[np.bool_] | None:
        """
        Return which of `subtasks` subtasks have a value, shape (subtasks,), or None for all.

        Raises:
            MalformedFrame: the bitmap is not ceil(subtasks / 8) bytes long.
        """
        if self.present is None:
            return None
        if len(self.present) != math.ceil(subtasks / 8):
            raise MalformedFrame(
                f"column {self.metric!r}: a bitmap of {len(self.present)} bytes cannot tell {subtasks} subtasks"
            )
        bits = np.unpackbits(np.frombuffer(self.present, dtype=np.uint8), count=subtasks, bitorder="little")
        return bits.astype(np.bool_)


def column(metric: str, values: Array, present: npt.NDArray[np.bool_] | None = None) -> Column:
    """
    Build a column from values of shape (subtasks,), integers as int64 and the rest as float64.

    Args:
        metric: Flink's name, without subtask and operator.
        values: Integer or floating point, any width.
        present: Same shape; None, or all true, where every subtask has a value.
    """
    whole = np.issubdtype(values.dtype, np.integer)
    bitmap = None
    if present is not None and not present.all():
        bitmap = np.packbits(present, bitorder="little").tobytes()
    return Column(metric, "i8" if whole else "f8", values.astype("<i8" if whole else "<f8").tobytes(), bitmap)


class App(msgspec.Struct, frozen=True):
    """The Spark application that speaks; `id` is Spark's application id, `host` the driver's."""

    id: str
    name: str
    start_ms: int
    host: str
    spark_version: str
    hooks_version: str


class Attempt(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One run of a query (start of the run, Spark's run_id); runs are ordered by it."""

    start_ms: int
    run_id: str


class Operator(msgspec.Struct, frozen=True):
    """
    One operator of a vertex.

    Args:
        id: 32 hex digits, the same in every batch and after every restart.
        name: Unique in its vertex; 'Source: …' and 'Sink: …' at the ends.
        node: Spark's node name; empty for a sink that Spark's plan does not show.
        description: Spark's one-line description, redacted.
    """

    id: str
    name: str
    node: str
    description: str


class Edge(msgspec.Struct, frozen=True):
    """
    An exchange that a vertex reads.

    Args:
        source: Id of the vertex that writes it.
        ship_strategy: HASH, RANGE, REBALANCE, GLOBAL or BROADCAST.
        description: Spark's description of the exchange, redacted.
    """

    source: str
    ship_strategy: str
    description: str


class Vertex(msgspec.Struct, frozen=True):
    """
    A vertex of the job's graph.

    Args:
        id: 32 hex digits, deterministic.
        name: Its operators' names from source to sink, joined by ' -> '.
        operators: From source to sink.
        inputs: Exchanges read, in the plan's order; none for a source vertex.
        current: Whether the query's latest plan has it.
    """

    id: str
    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[Edge, ...]
    current: bool = True


class Plan(msgspec.Struct, frozen=True):
    """A job's graph: every vertex that any of its plans had, sources first."""

    vertices: tuple[Vertex, ...]


class Subtasks(msgspec.Struct, frozen=True):
    """
    Where and when the latest task of each subtask ran; int64 columns, one value a subtask.

    Args:
        attempt: Number of the task attempt, 0 for the first.
        executor: Index into `executors`, −1 where no task has started yet.
        start_ms: Launch of the latest task, wall time; −1 where none has started yet.
        end_ms: Its end, −1 while it runs.
        executors: Executor ids as in `Executor.id`.
    """

    attempt: bytes
    executor: bytes
    start_ms: bytes
    end_ms: bytes
    executors: tuple[str, ...]


class OperatorColumns(msgspec.Struct, frozen=True, array_like=True):
    """The changed columns of one operator."""

    operator: str
    columns: tuple[Column, ...]


LatencyGranularity = Literal["single", "operator", "subtask"]
"""
What latencies are told apart by, beside the operator and its subtask: nothing, the source, or the source's subtask too.

Source: Flink, `metrics.latency.granularity`.
"""

AccumulatorKind = Literal["sum", "size", "timing", "nsTiming", "average"]
"""Spark's kinds of SQL metrics: a plain number, bytes, ms, ns, and ten times an average."""


class Accumulator(msgspec.Struct, frozen=True, array_like=True):
    """
    One native SQL metric of a vertex over its subtasks.

    Args:
        operator: Id of the operator whose metric it is; '' for an exchange that the vertex reads or writes.
        kind: Spark's; tells what the numbers are.
        column: int64; `column.metric` is Spark's display name, unique among those of one operator.
        driver: What the driver itself set, which is of no subtask: files listed, what was broadcast.
    """

    operator: str
    kind: AccumulatorKind
    column: Column
    driver: int = 0


class Coordinator(msgspec.Struct, frozen=True, array_like=True):
    """What the driver itself knows of a source operator, by metric name without 'coordinator.'."""

    operator: str
    metrics: dict[str, Scalar]


class Latency(msgspec.Struct, frozen=True, array_like=True):
    """
    The latest latencies of markers at operators of a vertex that all see the same ones, subtask by subtask.

    Args:
        source: Id of the source vertex that emitted them; '' for those of all sources together.
        source_subtask: The one that emitted them; −1 for those of all of them together.
        operators: Ids of operators of the vertex.
        counts: int64, values recorded in the run, one a subtask.
        statistics: float64, `names.LATENCY_STATISTICS` one after the other, each one value a subtask, ms; NaN where
            the count is 0.
    """

    source: str
    source_subtask: int
    operators: tuple[str, ...]
    counts: bytes
    statistics: bytes


class Buckets(msgspec.Struct, frozen=True, array_like=True):
    """
    An HDR histogram's buckets that are not empty; see `streamgauge.buckets` for the layout.

    Args:
        indices: uint16, ascending.
        counts: int64, each at least 1, of as many buckets.
        below, above: Values that no bucket takes.
        sum_ms: Of the values that are in buckets.
    """

    indices: bytes
    counts: bytes
    below: int = 0
    above: int = 0
    sum_ms: int = 0


class LatencyHistogram(msgspec.Struct, frozen=True, array_like=True):
    """
    All latencies of one source's markers in this run at operators of a vertex that all see the same ones.

    Args:
        source: Id of the source vertex that emitted them.
        operators: Ids of operators of the vertex.
        total: From when a marker was due to when it arrived.
        queueing: Of this, until the micro-batch began that carried it.
        processing: The rest.
    """

    source: str
    operators: tuple[str, ...]
    total: Buckets
    queueing: Buckets
    processing: Buckets


class VertexColumns(msgspec.Struct, frozen=True):
    """
    A vertex's figures.

    Args:
        id: Id of a vertex of the plan.
        parallelism: Tasks of its latest stage.
        size: Subtasks that any of its stages had, ≥ parallelism: the length of every column.
        start_ms: First task launch of this run, wall time; −1 before it.
        columns: Changed columns of vertex scope.
        operators: Changed columns of its operators.
        subtasks: None where nothing has changed.
        accumulators: Changed ones.
        coordinators: Of its source operators; None where nothing has changed.
        latencies, histograms: Changed ones.
    """

    id: str
    parallelism: int
    size: int
    start_ms: int
    columns: tuple[Column, ...] = ()
    operators: tuple[OperatorColumns, ...] = ()
    subtasks: Subtasks | None = None
    accumulators: tuple[Accumulator, ...] = ()
    coordinators: tuple[Coordinator, ...] | None = None
    latencies: tuple[Latency, ...] = ()
    histograms: tuple[LatencyHistogram, ...] = ()


class CheckpointTasks(msgspec.Struct, frozen=True):
    """
    What the tasks of one vertex did in one micro-batch; int64 columns, one value a subtask.

    Args:
        vertex: Id of a vertex of the plan.
        start_ms: Launch, wall time; −1 where it has not been launched.
        end_ms: End of the success that counts, −1 before it.
        state_bytes: Memory of its state stores; −1 where it has none or Spark told nothing.
        commit_ms: Time that it took to commit them; −1 likewise.
    """

    vertex: str
    start_ms: bytes
    end_ms: bytes
    state_bytes: bytes
    commit_ms: bytes


class Checkpoint(msgspec.Struct, frozen=True):
    """
    One micro-batch, in Flink's words a checkpoint; −1 is what Spark has not told.

    Args:
        id: The batch id.
        trigger_ms: When it began, wall time.
        end_ms: −1 while it runs.
        duration_ms: Of the whole trigger.
        state_bytes: Memory of all state stores.
        checkpointed_bytes: Of the state that was written, where the state store tells.
        input_rows: Rows read, as Spark's progress tells them.
        output_rows: Rows written, as the sink tells them.
        phases: Spark's phases of the trigger, ms.
        failure: Why it FAILED, redacted; '' otherwise.
        tasks: Of the vertices that ran in it.
    """

    id: int
    status: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    trigger_ms: int
    end_ms: int = -1
    duration_ms: int = -1
    state_bytes: int = -1
    checkpointed_bytes: int = -1
    input_rows: int = -1
    output_rows: int = -1
    phases: dict[str, int] = {}
    failure: str = ""
    tasks: tuple[CheckpointTasks, ...] = ()


class Spread(msgspec.Struct, frozen=True, array_like=True):
    """A figure over the completed micro-batches of a run: all of them, its quantiles over the latest 10,000."""

    min: int
    max: int
    avg: int
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float


class Checkpoints(msgspec.Struct, frozen=True):
    """
    The micro-batches of a run.

    Args:
        completed, failed: Counts of this run.
        held: Ids of those that are held, newest first: the latest ten, and the latest completed and failed ones.
        latest_completed, latest_failed: Ids, −1 where there is none.
        restored: The one from which this run went on, −1 where it began anew.
        restored_ms: When it did, wall time; −1 likewise.
        duration_ms, state_bytes, checkpointed_bytes: None where no completed one has told.
        changed: Those of `held` that are new or have changed.
    """

    completed: int = 0
    failed: int = 0
    held: tuple[int, ...] = ()
    latest_completed: int = -1
    latest_failed: int = -1
    restored: int = -1
    restored_ms: int = -1
    duration_ms: Spread | None = None
    state_bytes: Spread | None = None
    checkpointed_bytes: Spread | None = None
    changed: tuple[Checkpoint, ...] = ()


FAILURES = 16
"""Held of a job, and below one of them. Source: Flink's default of web.exception-history-size."""


class Failure(msgspec.Struct, frozen=True):
    """
    A failure of a task, a stage or the whole run; texts are redacted.

    Args:
        name: Class of the exception.
        trace: Its text and stack, root causes included.
        time_ms: Wall time.
        vertex: Id of the vertex whose task failed; '' where that is not known, or no task did.
        subtask, attempt: Of that task, −1 likewise.
        executor: As in `Executor.id`; '' likewise.
        endpoint: host:port of its block manager; '' likewise.
        concurrent: What failed with it: below a run's failure its tasks' and stages'.
    """

    name: str
    trace: str
    time_ms: int
    vertex: str = ""
    subtask: int = -1
    attempt: int = -1
    executor: str = ""
    endpoint: str = ""
    concurrent: tuple[Failure, ...] = ()


class Failures(msgspec.Struct, frozen=True):
    """
    What failed in a run.

    Args:
        latest: Newest first.
        forgotten: How many older ones are not held any more.
    """

    latest: tuple[Failure, ...] = ()
    forgotten: int = 0

    def after(self, earlier: Failures) -> Failures:
        """Return both, those of `earlier` behind these; of more than FAILURES the oldest are forgotten."""
        both = self.latest + earlier.latest
        held = both[: max(FAILURES, len(self.latest))]
        return Failures(held, self.forgotten + earlier.forgotten + len(both) - len(held))


class Environment(msgspec.Struct, frozen=True):
    """
    The driver's process, redacted.

    Args:
        java_version: As in Flink: vendor, version and release of the virtual machine.
        architecture: Of the processor.
        java_options: Arguments of the virtual machine.
        class_path: In its order.
    """

    java_version: str
    architecture: str
    java_options: tuple[str, ...]
    class_path: tuple[str, ...]


class Executor(msgspec.Struct, frozen=True):
    """
    An executor, as it is now.

    Args:
        id: '<application id>-<Spark's executor id>'.
        endpoint: host:port of its block manager.
        cores: Cores it offers; slots = cores // spark.task.cpus.
        running: Tasks that run on it, by jid ('' for tasks outside any job).
        memory_bytes: Memory for storage and execution.
        added_ms: Wall time.
        heartbeat_ms: Wall time of the last sign of life.
        metrics: Flink's Status.* names.
        gone: It was removed; the collector drops it.
    """

    id: str
    endpoint: str
    cores: int
    slots: int
    running: dict[str, int]
    memory_bytes: int
    added_ms: int
    heartbeat_ms: int
    metrics: dict[str, Scalar]
    gone: bool = False


class Job(msgspec.Struct, frozen=True):
    """
    A job's own figures.

    Args:
        jid: 32 hex digits.
        name: For people and labels.
        type: STREAMING, or BATCH for a SQL execution outside any streaming query.
        state: As the driver sees it.
        since_ms: For each state that this run has been in, when it last came into it, wall time.
        end_ms: −1 while it runs.
        trigger: Spark's trigger in words, '' where unknown.
        level: What can be told: 'task' from the listener bus, 'query' over Spark Connect.
        metrics: Job scope.
        failure: Root cause of FAILED, redacted; '' otherwise.
        checkpoint_path: Where the query keeps its offsets and state, redacted; '' where unknown.
        latency: What latencies are told apart by; None where no markers are emitted.
    """

    jid: str
    name: str
    type: Literal["STREAMING", "BATCH"]
    state: JobState
    since_ms: dict[str, int]
    end_ms: int
    trigger: str
    level: Literal["task", "query"]
    metrics: dict[str, Scalar]
    failure: str = ""
    checkpoint_path: str = ""
    latency: LatencyGranularity | None = None


class Incomplete(msgspec.Struct, frozen=True):
    """What the hooks had to drop since they were attached; all 0 in health."""

    records: int = 0
    live_updates: int = 0
    unknown_updates: int = 0


class Frame(msgspec.Struct, frozen=True):
    """
    One job's, or the application's, state; see the module's text for ordering.

    Args:
        version: WIRE_VERSION of the writer.
        seq: ≥ 1, counts up within the attempt.
        base: 0 for a full frame, else the acknowledged seq that this one builds on.
        sent_at_ms: Wall time of the driver.
        interval_ms: The push interval; silence is measured by it.
        job: None for the application's own frame.
        plan: None where it has not changed.
        executors: Application frames only: all that are known and those just gone.
        driver: Application frames only: the driver's Status.* metrics.
        hooks: Application frames only: the hooks' own figures, by metric name.
        end_ms: Application frames only: when it ended, wall time; −1 while it runs.
        configuration: The application's, or the query's own where it differs; redacted. None where it has not
            changed.
        environment: Application frames only; None where it has not changed.
        observed: Job frames only: what the query's `observe()` has told last, by '<name>.<column>'; None where it
            has not changed.
        checkpoints: Job frames only; None where nothing has changed.
        failures: Job frames only; None where nothing has changed.
    """

    version: int
    app: App
    attempt: Attempt
    seq: int
    base: int
    sent_at_ms: int
    interval_ms: int
    job: Job | None = None
    plan: Plan | None = None
    vertices: tuple[VertexColumns, ...] = ()
    executors: tuple[Executor, ...] = ()
    driver: dict[str, Scalar] = {}
    hooks: dict[str, Scalar] = {}
    incomplete: Incomplete = Incomplete()
    end_ms: int = -1
    configuration: dict[str, str] | None = None
    environment: Environment | None = None
    observed: dict[str, Scalar] | None = None
    checkpoints: Checkpoints | None = None
    failures: Failures | None = None
