"""Flink's states and times of jobs and vertices, as a Spark query has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from typing_extensions import TypedDict

from collector.store import JobState, VertexState
from streamgauge import wire
from streamgauge.wire import ENDED_STATES

UNKNOWN_MS = -1
"""Flink's word for a time that is not known or not yet there."""

MAX_PARALLELISM = 32_768
"""
What a vertex's parallelism may grow to: Spark sets no bound, so Flink's own. The autoscaler takes −1 for a bound, and
would have every vertex come down to it.

Source: Flink's `KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM`.
"""

_LONG_MAX = 2**63 - 1

FlinkJobState = Literal[
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
]
ExecutionState = Literal[
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
]
JOB_STATES: tuple[FlinkJobState, ...] = get_args(FlinkJobState)
EXECUTION_STATES: tuple[ExecutionState, ...] = get_args(ExecutionState)

SpanBody = TypedDict("SpanBody", {"start-time": int, "end-time": int, "duration": int})


class Timestamps(TypedDict):
    """When a job last came into each of Flink's states, wall time in milliseconds; 0 for never."""

    INITIALIZING: int
    CREATED: int
    RUNNING: int
    FAILING: int
    FAILED: int
    CANCELLING: int
    CANCELED: int
    FINISHED: int
    RESTARTING: int
    SUSPENDED: int
    RECONCILING: int


class ByState(TypedDict):
    """A whole number for each of Flink's states: how many are in it, or when one came into it."""

    CREATED: int
    SCHEDULED: int
    DEPLOYING: int
    INITIALIZING: int
    RUNNING: int
    FINISHED: int
    CANCELING: int
    CANCELED: int
    FAILED: int
    RECONCILING: int


_VERTEX_STATES: dict[wire.JobState, ExecutionState] = {
    "CREATED": "CREATED",
    "RUNNING": "RUNNING",
    "RESTARTING": "CREATED",
    "SUSPENDED": "RECONCILING",
    "FINISHED": "FINISHED",
    "CANCELED": "CANCELED",
    "FAILED": "CANCELED",
}


@dataclass(frozen=True, slots=True)
class Span:
    """
    When something ran, wall time in milliseconds.

    Args:
        start_ms: UNKNOWN_MS before it started.
        end_ms: UNKNOWN_MS while it runs.
        duration_ms: Up to the end, or to now; UNKNOWN_MS before it started, else at least 0.
    """

    start_ms: int
    end_ms: int
    duration_ms: int

    @classmethod
    def of(cls, start_ms: int, end_ms: int, now_ms: int) -> Span:
        """Return the span from `start_ms` to `end_ms`; what is below 0 is unknown, what no Java long holds is cut."""
        if start_ms < 0:
            return cls(UNKNOWN_MS, UNKNOWN_MS, UNKNOWN_MS)
        start_ms, end_ms = min(start_ms, _LONG_MAX), max(UNKNOWN_MS, min(end_ms, _LONG_MAX))
        until_ms = now_ms if end_ms == UNKNOWN_MS else end_ms
        return cls(start_ms, end_ms, max(0, until_ms - start_ms))

    def body(self) -> SpanBody:
        """Return it as it stands in Flink's bodies."""
        return {"start-time": self.start_ms, "end-time": self.end_ms, "duration": self.duration_ms}


def job_span(state: JobState, now_ms: int) -> Span:
    """Return when a job ran, from the first run that was seen."""
    return Span.of(state.first_start_ms, _job_end_ms(state), now_ms)


def _job_end_ms(state: JobState) -> int:
    return state.job.end_ms if state.state in ENDED_STATES else UNKNOWN_MS


def failure_of(job: JobState) -> wire.Failure | None:
    """Return what ended a FAILED job; None of any other, and where its driver has not told."""
    return job.failures.latest[0] if job.state == "FAILED" and job.failures.latest else None


def timestamps(state: JobState) -> Timestamps:
    """
    Return when this run last came into each of Flink's job states, 0 for never.

    INITIALIZING is the start of the first run that was seen, FAILING the first failure in the batch that broke.
    """
    told: dict[str, int] = {**dict.fromkeys(JOB_STATES, 0), "INITIALIZING": state.first_start_ms, **state.since_ms}
    failure = failure_of(state)
    if failure is not None:
        told["FAILING"] = min(each.time_ms for each in (failure, *failure.concurrent))
    return cast(Timestamps, told)


def vertex_state(job: JobState, vertex: VertexState) -> ExecutionState:
    """
    Return a vertex's state, one of EXECUTION_STATES.

    A vertex that is no longer in the plan is FINISHED. Any other is RUNNING while the job is, also between
    batches, and ends with it. Of a FAILED job the vertex whose task failed it is FAILED, any other CANCELED: it has
    been stopped; so are all where it was no task that failed. While its driver is silent a vertex is RECONCILING,
    Flink's word for a task of which it is not known whether it still runs.
    """
    if _failed_subtask(job, vertex) is not None:
        return "FAILED"
    return _VERTEX_STATES[job.state] if vertex.vertex.current else "FINISHED"


def subtask_state(job: JobState, vertex: VertexState, subtask: int) -> ExecutionState:
    """Return the state of one subtask: that of its vertex, but of a FAILED one only the one that failed is."""
    failed = _failed_subtask(job, vertex)
    if failed is None or failed == subtask:
        return vertex_state(job, vertex)
    return "CANCELED"


def _failed_subtask(job: JobState, vertex: VertexState) -> int | None:
    failure = failure_of(job)
    if failure is None or failure.vertex != vertex.vertex.id or not 0 <= failure.subtask < vertex.size:
        return None
    return failure.subtask


def vertex_span(job: JobState, vertex: VertexState, now_ms: int) -> Span:
    """Return when a vertex ran in this run of its job: from its first task to the job's end, or its own."""
    end_ms = _job_end_ms(job)
    if not vertex.vertex.current and vertex.subtasks is not None and vertex.subtasks.end_ms.size:
        end_ms = int(vertex.subtasks.end_ms.max())
    return Span.of(vertex.start_ms, end_ms, now_ms)


def task_counts(job: JobState, vertices: Iterable[VertexState]) -> Counter[ExecutionState]:
    """Return how many tasks of the vertices' latest stages are in each state; absent is 0."""
    counts: Counter[ExecutionState] = Counter()
    for vertex in vertices:
        failed = _failed_subtask(job, vertex)
        if failed is not None and failed < vertex.parallelism:
            counts.update({"FAILED": 1, "CANCELED": vertex.parallelism - 1})
        else:
            counts[vertex_state(job, vertex)] += vertex.parallelism
    return counts


def by_state(counts: Mapping[ExecutionState, int]) -> ByState:
    """Return a number for every state, 0 where there is none."""
    return cast(ByState, {state: counts.get(state, 0) for state in EXECUTION_STATES})
