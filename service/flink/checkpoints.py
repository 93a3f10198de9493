"""Micro-batches as Flink's checkpoints: /jobs/:jobid/checkpoints and …/details/:checkpointid."""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from collector.store import JobState
from service.flink.checkpoint_tasks import ALIGNED, UNKNOWN, Spread, Status, TaskCheckpoint, Tasks, between
from service.flink.numbers import json_double
from service.flink.query import Query
from streamgauge import wire

HISTORY = 10
"""Micro-batches that are listed. Source: Flink, `web.checkpoints.history`."""

_RETAINED = "spark.sql.streaming.minBatchesToRetain"
_RETAINED_DEFAULT = 100
ClassName = Literal["completed", "in_progress", "failed"]
_CLASSES: dict[Status, ClassName] = {"IN_PROGRESS": "in_progress", "COMPLETED": "completed", "FAILED": "failed"}
_COUNT = re.compile(r"[0-9]{1,9}")
# Spark makes a directory of this name where the user gave none, and deletes it when the query is stopped.
_TEMPORARY = re.compile(r"/temporary-[0-9a-f-]{36}/?")


class Additions(TypedDict):
    """
    What Spark tells of a micro-batch and Flink has no word for.

    Args:
        input_rows, output_rows: None where Spark did not tell.
        input_rows_per_second: Rows read over the duration of the trigger; None likewise.
        phases: Spark's phases of the trigger, ms.
    """

    input_rows: int | None
    output_rows: int | None
    input_rows_per_second: float | None
    phases: dict[str, int]


class Checkpoint(TypedDict):
    """
    A micro-batch.

    Args:
        className: By `status`.
        external_path, discarded: Of one that Spark has committed.
        failure_timestamp, failure_message: Of one that was broken off.
    """

    className: ClassName
    id: int
    status: Status
    is_savepoint: bool
    savepointFormat: None
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: Literal["CHECKPOINT"]
    tasks: dict[str, TaskCheckpoint]
    streamgauge: Additions
    external_path: NotRequired[str | None]
    discarded: NotRequired[bool]
    failure_timestamp: NotRequired[int]
    failure_message: NotRequired[str]


class RestoredCheckpoint(TypedDict):
    """The micro-batch from which a run went on."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str | None


class Counts(TypedDict):
    """Micro-batches of this run."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class Summary(TypedDict):
    """Over the completed micro-batches of this run."""

    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    alignment_buffered: Spread
    processed_data: Spread
    persisted_data: Spread


class Latest(TypedDict):
    """The latest micro-batches, each None where there is none; Spark has no savepoints."""

    completed: Checkpoint | None
    savepoint: None
    failed: Checkpoint | None
    restored: RestoredCheckpoint | None


class Checkpoints(TypedDict):
    """The body of /jobs/:jobid/checkpoints."""

    counts: Counts
    summary: Summary
    latest: Latest
    history: list[Checkpoint]


def overview(query: Query) -> Checkpoints:
    """
    Answer /jobs/:jobid/checkpoints.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job is no streaming query.
    """
    state = query.streaming_job("Checkpointing has not been enabled.")
    totals, held = state.checkpoints.totals, state.checkpoints.held
    in_progress = sum(checkpoint.status == "IN_PROGRESS" for checkpoint in held.values())
    # Nothing was in flight at the end of any of them.
    nothing = _spread(wire.Spread(0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0) if totals.completed else None)
    completed, failed = held.get(totals.latest_completed), held.get(totals.latest_failed)
    return {
        "counts": {
            "restored": int(totals.restored >= 0),
            "total": totals.completed + totals.failed + in_progress,
            "in_progress": in_progress,
            "completed": totals.completed,
            "failed": totals.failed,
        },
        "summary": {
            "checkpointed_size": _spread(totals.checkpointed_bytes),
            "state_size": _spread(totals.state_bytes),
            "end_to_end_duration": _spread(totals.duration_ms),
            "alignment_buffered": ALIGNED,
            "processed_data": nothing,
            "persisted_data": nothing,
        },
        "latest": {
            "completed": None if completed is None else _body(query, state, completed, {}),
            "savepoint": None,
            "failed": None if failed is None else _body(query, state, failed, {}),
            "restored": _restored(state),
        },
        "history": [_body(query, state, checkpoint, {}) for checkpoint in list(held.values())[:HISTORY]],
    }


def detail(query: Query) -> Checkpoint:
    """
    Answer /jobs/:jobid/checkpoints/details/:checkpointid.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job is no streaming query, or the micro-batch has not begun, or is held no more.
    """
    checkpoint = query.checkpoint()
    state = query.job()
    # Flink's page reads every vertex of the job here, and breaks over one that is missing.
    vertices = dict.fromkeys([*(told.vertex for told in checkpoint.tasks), *state.vertices])
    tasks = {vertex: Tasks.of_vertex(checkpoint, vertex).body(checkpoint) for vertex in vertices}
    return _body(query, state, checkpoint, tasks)


def _spread(told: wire.Spread | None) -> Spread:
    if told is None:
        return {"min": 0, "max": 0, "avg": 0, "p50": "NaN", "p90": "NaN", "p95": "NaN", "p99": "NaN", "p999": "NaN"}
    return {
        "min": told.min,
        "max": told.max,
        "avg": told.avg,
        "p50": json_double(told.p50),
        "p90": json_double(told.p90),
        "p95": json_double(told.p95),
        "p99": json_double(told.p99),
        "p999": json_double(told.p999),
    }


def _restored(state: JobState) -> RestoredCheckpoint | None:
    totals = state.checkpoints.totals
    if totals.restored < 0:
        return None
    return {
        "id": totals.restored,
        "restore_timestamp": totals.restored_ms,
        "is_savepoint": False,
        "external_path": _path(state, totals.restored),
    }


def _body(query: Query, state: JobState, told: wire.Checkpoint, tasks: dict[str, TaskCheckpoint]) -> Checkpoint:
    body = _common(told, tasks)
    if told.status == "COMPLETED":
        return {**body, "external_path": _path(state, told.id), "discarded": _discarded(query, state, told.id)}
    if told.status == "FAILED":
        return {**body, "failure_timestamp": told.end_ms, "failure_message": told.failure}
    return body


def _common(told: wire.Checkpoint, tasks: dict[str, TaskCheckpoint]) -> Checkpoint:
    parts = [Tasks.of(told, each) for each in told.tasks]
    completed = told.status == "COMPLETED"
    # As Flink has it: of a completed one the commit is the last sign, of any other that of its last task.
    ack_ms = told.end_ms if completed else max((part.latest_ack_ms for part in parts), default=UNKNOWN)
    running_ms = between(told.trigger_ms, ack_ms)
    return {
        "className": _CLASSES[told.status],
        "id": told.id,
        "status": told.status,
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": told.trigger_ms,
        "latest_ack_timestamp": ack_ms,
        "checkpointed_size": told.checkpointed_bytes,
        "state_size": told.state_bytes if completed else sum(part.state_size for part in parts),
        "end_to_end_duration": running_ms if told.status == "IN_PROGRESS" else told.duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": sum(len(part.taking_part) for part in parts),
        "num_acknowledged_subtasks": sum(int(part.done.sum()) for part in parts),
        "checkpoint_type": "CHECKPOINT",
        "tasks": tasks,
        "streamgauge": _additions(told),
    }


def _additions(told: wire.Checkpoint) -> Additions:
    rated = told.input_rows >= 0 and told.duration_ms > 0
    return {
        "input_rows": told.input_rows if told.input_rows >= 0 else None,
        "output_rows": told.output_rows if told.output_rows >= 0 else None,
        "input_rows_per_second": 1_000 * told.input_rows / told.duration_ms if rated else None,
        "phases": told.phases,
    }


def _path(state: JobState, checkpoint_id: int) -> str | None:
    """Where Spark notes that it has committed a micro-batch; None where it keeps it is not known."""
    root = state.job.checkpoint_path.rstrip("/")
    return f"{root}/commits/{checkpoint_id}" if root else None


def temporary(state: JobState) -> bool:
    """Return whether Spark deletes the query's checkpoints when it is stopped: the user named no place for them."""
    return _TEMPORARY.search(state.job.checkpoint_path) is not None


def _discarded(query: Query, state: JobState, checkpoint_id: int) -> bool:
    """
    Whether Spark no longer keeps what it needs to go on from a micro-batch.

    When it begins one it deletes what is older than so many before it.
    Source: Spark, `MicroBatchExecution.constructNextBatch`, and the files that were seen to be there.
    """
    if temporary(state) and state.state in ("FINISHED", "CANCELED"):
        return True
    told = query.setting(state, _RETAINED)
    retained = int(told) if _COUNT.fullmatch(told) else _RETAINED_DEFAULT
    return checkpoint_id < max(state.checkpoints.held, default=checkpoint_id) - retained
