"""Micro-batches, which Flink calls checkpoints."""

from __future__ import annotations

from typing import Literal

import msgspec


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
