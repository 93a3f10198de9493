"""Drained bytes → typed events; the kinds and their fields are Recorder.java's, and change together with it."""

from __future__ import annotations

from typing import Any

import msgspec


class _Record(msgspec.Struct, array_like=True):
    """Every record is an array whose first element, the tag, is its kind."""


class ApplicationEnd(_Record, tag=0):
    """The SparkContext stopped."""

    time_ms: int


class PlanNode(msgspec.Struct, frozen=True, array_like=True):
    """
    A node of Spark's physical plan.

    Args:
        name: As Spark has it; some end in a space.
        description: Spark's simpleString.
        metrics: [display name, accumulator id, …]; names repeat on stateful nodes.
        children: Subqueries come after the node's own children.
        kinds: A letter for each metric: s sum, b size, t timing, n nsTiming, a average.
    """

    name: str
    description: str
    metrics: tuple[Any, ...]
    children: tuple[PlanNode, ...]
    kinds: str = ""


class ExecutionStart(_Record, tag=1):
    """A SQL execution; `root` is its own id where it is the outermost."""

    execution: int
    root: int
    time_ms: int
    description: str | None
    plan: PlanNode


class PlanUpdate(_Record, tag=2):
    """Adaptive execution replaced the plan."""

    execution: int
    plan: PlanNode


class ExecutionEnd(_Record, tag=3):
    """A SQL execution ended; `error` is None or empty where it succeeded, else the exception with its stack."""

    execution: int
    time_ms: int
    error: str | None


class DriverUpdates(_Record, tag=4):
    """SQL metrics that the driver itself set: [accumulator id, value, …]."""

    execution: int
    updates: tuple[int, ...]


class Stage(msgspec.Struct, frozen=True, array_like=True):
    """
    A stage attempt.

    Args:
        shuffle: Spark's id of the shuffle that it writes (a map stage), −1 for none.
        scopes: Distinct names of its RDDs' scopes: names of plan nodes, 'WholeStageCodegen (n)'.
    """

    stage: int
    attempt: int
    tasks: int
    shuffle: int
    parents: tuple[int, ...]
    scopes: tuple[str, ...]

    @property
    def shuffles(self) -> bool:
        """Whether it writes a shuffle."""
        return self.shuffle >= 0


class JobStart(_Record, tag=5):
    """
    A Spark job.

    Args:
        execution: Its SQL execution, −1 for none.
        query: Streaming query id as a UUID, or None.
        group: Job group; of a streaming query the run id.
        batch: −1 outside streaming.
    """

    job: int
    time_ms: int
    execution: int
    query: str | None
    group: str | None
    batch: int
    stages: tuple[Stage, ...]


class JobEnd(_Record, tag=6):
    """A Spark job ended."""

    job: int
    time_ms: int
    succeeded: bool


class StageSubmitted(_Record, tag=7):
    """A stage attempt begins; −1 where Spark told no time."""

    time_ms: int
    stage: Stage


class StageCompleted(_Record, tag=8):
    """A stage attempt ended; `failure` is None where it succeeded."""

    stage: int
    attempt: int
    time_ms: int
    failure: str | None


class TaskStart(_Record, tag=9):
    """A task attempt was launched; `attempt` counts the attempts of its partition, from 0."""

    stage: int
    stage_attempt: int
    task: int
    partition: int
    attempt: int
    launch_ms: int
    executor: str


class TaskEnd(_Record, tag=10):
    """
    A task attempt ended.

    Args:
        bytes_written: By its sink.
        peak_bytes: Execution memory that it held at most.
        spilled_bytes: To disk.
        updates: Its SQL metrics: [accumulator id, value, …], none after a failure.
    """

    stage: int
    stage_attempt: int
    task: int
    partition: int
    attempt: int
    launch_ms: int
    executor: str
    finish_ms: int
    succeeded: bool
    bytes_written: int
    peak_bytes: int
    spilled_bytes: int
    updates: tuple[int, ...]


class TaskFailure(_Record, tag=21):
    """
    A task attempt failed; one that was killed, or was denied to commit, did not.

    Args:
        name: Class of the exception, else Spark's of the reason; None where there were too many at once.
        text: With its stack; None likewise.
    """

    stage: int
    stage_attempt: int
    task: int
    partition: int
    attempt: int
    executor: str
    time_ms: int
    name: str | None
    text: str | None


class LiveUpdate(_Record, tag=11):
    """SQL metrics of a running task, as its last heartbeat told: cumulative values, not differences."""

    stage: int
    stage_attempt: int
    task: int
    updates: tuple[int, ...]


class ExecutorMemory(_Record, tag=12):
    """
    What an executor's heartbeat told of its memory; peaks since the stage began.

    Args:
        values: Heap, non-heap, direct and mapped bytes; minor collections and ms; major ones and ms; memory in use
            for storage and execution, on the heap and off it; of this for execution, likewise.
    """

    executor: str
    time_ms: int
    values: tuple[int, int, int, int, int, int, int, int, int, int, int, int]


class ExecutorAdded(_Record, tag=13):
    """An executor registered; `profile` is Spark's id of its resource profile, 0 for the default one."""

    executor: str
    host: str
    cores: int
    time_ms: int
    profile: int


class ExecutorRemoved(_Record, tag=14):
    """An executor is gone."""

    executor: str
    time_ms: int


class BlockManagerAdded(_Record, tag=15):
    """An executor's block manager registered."""

    executor: str
    endpoint: str
    memory_bytes: int


class QueryStarted(_Record, tag=16):
    """
    A streaming query started a run.

    Args:
        id, run: UUIDs.
        timestamp: ISO 8601, UTC; None where unknown.
        trigger, sink: In Spark's words; None where the query was out of reach.
        checkpoint: Where it keeps its offsets and state; None likewise.
        batch: Latest micro-batch that had ended before it was first seen, −1 for none.
    """

    id: str
    run: str
    name: str | None
    timestamp: str | None
    trigger: str | None
    sink: str | None
    checkpoint: str | None
    batch: int


class QueryProgress(_Record, tag=17):
    """A micro-batch ended; Spark's own JSON."""

    json: str


class QueryTerminated(_Record, tag=18):
    """A run ended; `exception` is None unless it failed."""

    id: str
    run: str
    time_ms: int
    exception: str | None


class QueryIdle(_Record, tag=20):
    """A run waits for rows; Spark says so about 10 s after the last ones."""

    id: str
    run: str
    time_ms: int


class Environment(_Record, tag=22):
    """
    What the driver's process is, and how the application is set; Spark has redacted settings and arguments.

    Args:
        java: '<name> - <vendor> - <specification>/<version>' of the virtual machine.
    """

    java: str
    architecture: str
    arguments: tuple[str, ...]
    class_path: tuple[str, ...]
    settings: dict[str, str]


class Configuration(_Record, tag=23):
    """
    The settings of a query's run, or of an outermost execution, that are not the application's; redacted by Spark.

    Args:
        run: UUID, None where an execution is told of.
        execution: −1 where a run is.
    """

    run: str | None
    execution: int
    settings: dict[str, str]


class Observed(_Record, tag=24):
    """What observe() saw in a SQL execution, just before its end: [name, the row as Spark's JSON, …]."""

    execution: int
    rows: tuple[str, ...]


class SourceBacklog(_Record, tag=25):
    """
    The streams of files among a query's sources, looked at when the first Spark job of a micro-batch began.

    Args:
        run: UUID.
        sources: [description, files listed and not read, the source's own offset, …], from left to right; −1 where
            Spark keeps no listing.
    """

    run: str
    batch: int
    sources: tuple[Any, ...]


class Fault(_Record, tag=19):
    """The recorder itself failed on an event."""

    text: str


Record = (
    ApplicationEnd
    | ExecutionStart
    | PlanUpdate
    | ExecutionEnd
    | DriverUpdates
    | JobStart
    | JobEnd
    | StageSubmitted
    | StageCompleted
    | TaskStart
    | TaskEnd
    | TaskFailure
    | LiveUpdate
    | ExecutorMemory
    | ExecutorAdded
    | ExecutorRemoved
    | BlockManagerAdded
    | QueryStarted
    | QueryProgress
    | QueryTerminated
    | QueryIdle
    | Environment
    | Configuration
    | Observed
    | SourceBacklog
    | Fault
)


class Drained(msgspec.Struct, frozen=True):
    """
    One drain.

    Args:
        events: Listener events since the recorder was made.
        record_ns: Time that the recorder spent in them.
        dropped_records, dropped_live: What it gave up for want of room, since it was made.
        wall_ms, monotonic_ns: The moment of the drain on the JVM's two clocks.
        records: In the order Spark told them; live updates last.
    """

    events: int
    record_ns: int
    dropped_records: int
    dropped_live: int
    wall_ms: int
    monotonic_ns: int
    records: list[Record]


_raw = msgspec.msgpack.Decoder(list[msgspec.Raw])
_record = msgspec.msgpack.Decoder(Record)
_integer = msgspec.msgpack.Decoder(int)


def decode(drained: bytes) -> Drained:
    """
    Read what `Recorder.drain` handed over.

    Raises:
        msgspec.DecodeError: the bytes are not the recorder's; the two were not built together.
    """
    try:
        parts = _raw.decode(drained)
        if len(parts) < 6:
            raise msgspec.ValidationError(f"a drain of {len(parts)} values: expected six numbers, then records")
        events, record_ns, dropped_records, dropped_live, wall_ms, monotonic_ns = map(_integer.decode, parts[:6])
        found = [_record.decode(part) for part in parts[6:]]
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"a drain with a string that is no UTF-8: {error}") from error
    except RecursionError as error:
        raise msgspec.DecodeError("a drain that is nested too deeply") from error
    return Drained(events, record_ns, dropped_records, dropped_live, wall_ms, monotonic_ns, found)
