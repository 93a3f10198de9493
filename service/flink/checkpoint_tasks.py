"""What the tasks of one vertex did in one micro-batch: …/checkpoints/details/:checkpointid/subtasks/:vertexid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import NotRequired, TypedDict

from service.errors import NOT_FOUND, Missing
from service.flink.numbers import Double
from service.flink.query import Query
from service.flink.states import UNKNOWN_MS
from streamgauge import wire

UNKNOWN = -1
"""Flink's word for a number that is not known."""

_LONG_MAX = 2**63 - 1

Status = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
Whole = npt.NDArray[np.int64]


class Spread(TypedDict):
    """A figure over micro-batches, or over the subtasks of one; of nothing, zeros and 'NaN'."""

    min: int
    max: int
    avg: int
    p50: Double
    p90: Double
    p95: Double
    p99: Double
    p999: Double


class TaskCheckpoint(TypedDict):
    """A vertex's part in a micro-batch."""

    id: int
    status: Status
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


Phases = TypedDict("Phases", {"sync": int, "async": int})
PhaseSpreads = TypedDict("PhaseSpreads", {"sync": Spread, "async": Spread})


class Alignment(TypedDict):
    """Of one subtask; Spark's tasks have no barriers to wait for and no data in flight at a batch's end."""

    buffered: int
    processed: int
    persisted: int
    duration: int


class AlignmentSpreads(TypedDict):
    """The spread of `Alignment` over subtasks."""

    buffered: Spread
    processed: Spread
    persisted: Spread
    duration: Spread


class Subtask(TypedDict):
    """A subtask; one that has not done its part, or not yet, has its index alone."""

    className: Literal["completed", "pending"]
    index: int
    ack_timestamp: NotRequired[int]
    end_to_end_duration: NotRequired[int]
    checkpointed_size: NotRequired[int]
    state_size: NotRequired[int]
    checkpoint: NotRequired[Phases]
    alignment: NotRequired[Alignment]
    start_delay: NotRequired[int]
    unaligned_checkpoint: NotRequired[bool]
    aborted: NotRequired[bool]
    status: Literal["completed", "pending_or_failed"]


class TaskSummary(TypedDict):
    """Figures over the subtasks that have done their part; Flink tells no quantiles of them."""

    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    checkpoint_duration: PhaseSpreads
    alignment: AlignmentSpreads
    start_delay: Spread


class TaskDetail(TaskCheckpoint):
    """The body of /jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid."""

    summary: TaskSummary
    subtasks: list[Subtask]


ALIGNED: Spread = {"min": 0, "max": 0, "avg": 0, "p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0, "p999": 0.0}
"""What Flink tells of data that is buffered for alignment, which it has given up: zero, also of nothing."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """
    The tasks of one vertex in one micro-batch.

    Args:
        taking_part: Indices of the subtasks, shape (n,). All of its stage while the batch runs or where it broke off;
            of a completed one those that ran, for a limit may have spared the rest.
        done: Whether each of them has done its part, shape (n,).
        start_ms, end_ms, state_bytes, commit_ms: Of each of those that have, shape (done.sum(),).
    """

    taking_part: Whole
    done: npt.NDArray[np.bool_]
    start_ms: Whole
    end_ms: Whole
    state_bytes: Whole
    commit_ms: Whole

    @classmethod
    def of(cls, checkpoint: wire.Checkpoint, tasks: wire.CheckpointTasks) -> Tasks:
        """Read what travelled."""
        told = (tasks.start_ms, tasks.end_ms, tasks.state_bytes, tasks.commit_ms)
        start_ms, end_ms, state_bytes, commit_ms = (np.frombuffer(column, dtype="<i8") for column in told)
        launched = start_ms >= 0 if checkpoint.status == "COMPLETED" else np.ones(len(start_ms), dtype=np.bool_)
        done = end_ms >= 0
        return cls(
            np.flatnonzero(launched),
            done[launched],
            start_ms[launched & done],
            end_ms[launched & done],
            state_bytes[launched & done],
            commit_ms[launched & done],
        )

    @classmethod
    def of_vertex(cls, checkpoint: wire.Checkpoint, vertex_id: str) -> Tasks:
        """Read what travelled of one vertex; one that had nothing to do in the micro-batch has no tasks."""
        nothing = wire.CheckpointTasks(vertex_id, b"", b"", b"", b"")
        return cls.of(checkpoint, next((told for told in checkpoint.tasks if told.vertex == vertex_id), nothing))

    @property
    def latest_ack_ms(self) -> int:
        """End of the last one that has done its part; UNKNOWN_MS where none has."""
        return int(self.end_ms.max(initial=UNKNOWN_MS))

    @property
    def state_size(self) -> int:
        """Bytes of state; a task that has ended and tells none has none."""
        return int(np.maximum(self.state_bytes, 0).sum())

    @property
    def written(self) -> Whole:
        """Bytes of state that each has written: 0 without state, else UNKNOWN, for Spark tells the whole query's."""
        return np.where(self.state_bytes < 0, 0, UNKNOWN)

    def body(self, checkpoint: wire.Checkpoint) -> TaskCheckpoint:
        """Return it as it stands in Flink's bodies."""
        written = self.written
        return {
            "id": checkpoint.id,
            "status": checkpoint.status,
            "latest_ack_timestamp": self.latest_ack_ms,
            "checkpointed_size": UNKNOWN if (written < 0).any() else 0,
            "state_size": self.state_size,
            "end_to_end_duration": between(checkpoint.trigger_ms, self.latest_ack_ms),
            "alignment_buffered": 0,
            "processed_data": 0,
            "persisted_data": 0,
            "num_subtasks": len(self.taking_part),
            "num_acknowledged_subtasks": int(self.done.sum()),
        }


def between(start_ms: int, end_ms: int) -> int:
    """Return how long something took, at least 0; UNKNOWN_MS where it has not ended."""
    return UNKNOWN_MS if end_ms < 0 else max(end_ms - start_ms, 0)


def detail(query: Query) -> TaskDetail:
    """
    Answer /jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job is no streaming query, the micro-batch has not begun or is held no more, or neither it nor the
            job has such a vertex.
    """
    checkpoint = query.checkpoint()
    vertex_id = query.path["vertexid"]
    if vertex_id not in query.job().vertices and all(told.vertex != vertex_id for told in checkpoint.tasks):
        raise Missing(NOT_FOUND, f"There is no checkpoint statistics for task {vertex_id}.")
    tasks = Tasks.of_vertex(checkpoint, vertex_id)
    return {
        **tasks.body(checkpoint),
        "summary": _summary(checkpoint, tasks),
        "subtasks": list(_subtasks(checkpoint, tasks)),
    }


def _summary(checkpoint: wire.Checkpoint, tasks: Tasks) -> TaskSummary:
    written = tasks.written
    nothing = _spread(np.zeros(len(tasks.end_ms), dtype=np.int64))
    return {
        "checkpointed_size": _spread(written[written >= 0]),
        "state_size": _spread(np.maximum(tasks.state_bytes, 0)),
        "end_to_end_duration": _spread(_since(checkpoint, tasks.end_ms)),
        "checkpoint_duration": {"sync": _spread(np.maximum(tasks.commit_ms, 0)), "async": nothing},
        "alignment": {"buffered": ALIGNED, "processed": nothing, "persisted": nothing, "duration": nothing},
        "start_delay": _spread(_since(checkpoint, tasks.start_ms)),
    }


def _since(checkpoint: wire.Checkpoint, times_ms: Whole) -> Whole:
    # A driver may tell of a time that no 64 bits hold.
    return np.maximum(times_ms - min(max(checkpoint.trigger_ms, 0), _LONG_MAX), 0)


def _spread(values: Whole) -> Spread:
    found = bool(len(values))
    return {
        "min": int(values.min()) if found else 0,
        "max": int(values.max()) if found else 0,
        "avg": int(values.sum()) // len(values) if found else 0,
        "p50": "NaN",
        "p90": "NaN",
        "p95": "NaN",
        "p99": "NaN",
        "p999": "NaN",
    }


def _subtasks(checkpoint: wire.Checkpoint, tasks: Tasks) -> Iterable[Subtask]:
    columns = (tasks.start_ms, tasks.end_ms, tasks.state_bytes, tasks.commit_ms, tasks.written)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for index, done in zip(tasks.taking_part.tolist(), tasks.done.tolist(), strict=True):
        if not done:
            yield {"className": "pending", "index": index, "status": "pending_or_failed"}
            continue
        start_ms, end_ms, state_bytes, commit_ms, written = next(rows)
        yield {
            "className": "completed",
            "index": index,
            "ack_timestamp": end_ms,
            "end_to_end_duration": between(checkpoint.trigger_ms, end_ms),
            "checkpointed_size": written,
            "state_size": max(state_bytes, 0),
            # A task commits its state before it ends.
            "checkpoint": {"sync": max(commit_ms, 0), "async": 0},
            "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 0},
            "start_delay": max(start_ms - checkpoint.trigger_ms, 0),
            "unaligned_checkpoint": False,
            "aborted": False,
            "status": "completed",
        }
