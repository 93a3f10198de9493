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

from typing import Literal

import msgspec

from streamgauge.wire.checkpoints import Checkpoints
from streamgauge.wire.failures import Failures
from streamgauge.wire.graph import Plan
from streamgauge.wire.latencies import LatencyGranularity
from streamgauge.wire.vertices import Scalar, VertexColumns

WIRE_VERSION = 1
"""Raised by every change that an older collector would misread."""

CONTENT_TYPE = "application/msgpack"
PUSH_PATH = "/push/v1/frames"

JobState = Literal["CREATED", "RUNNING", "FAILED", "FINISHED", "CANCELED", "RESTARTING", "SUSPENDED"]
"""Flink's words; SUSPENDED and RESTARTING are also set by the collector itself."""

ENDED_STATES: frozenset[str] = frozenset({"FAILED", "FINISHED", "CANCELED"})


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
