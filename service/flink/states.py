"""Flink's states and times of jobs and vertices, as a Spark query has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from typing_extensions import TypedDict

from collector.segment import Entry
from collector.store import JobState, VertexState
from collector.tasks import EXECUTION_STATES, ExecutionState, failed_subtask, failure_of, vertex_state
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
JOB_STATES: tuple[FlinkJobState, ...] = get_args(FlinkJobState)

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


def entry_span(entry: Entry) -> Span:
    """Return when an archived job ran, likewise; up to when it fell silent where no end was told."""
    return Span.of(entry.first_start_ms, entry.end_ms if entry.ended else UNKNOWN_MS, entry.modified_ms)


def _job_end_ms(state: JobState) -> int:
    return state.job.end_ms if state.state in ENDED_STATES else UNKNOWN_MS


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


def subtask_state(job: JobState, vertex: VertexState, subtask: int) -> ExecutionState:
    """Return the state of one subtask: that of its vertex, but of a FAILED one only the one that failed is."""
    failed = failed_subtask(job, vertex)
    if failed is None or failed == subtask:
        return vertex_state(job, vertex)
    return "CANCELED"


def vertex_span(job: JobState, vertex: VertexState, now_ms: int) -> Span:
    """Return when a vertex ran in this run of its job: from its first task to the job's end, or its own."""
    end_ms = _job_end_ms(job)
    if not vertex.vertex.current and vertex.subtasks is not None and vertex.subtasks.end_ms.size:
        end_ms = int(vertex.subtasks.end_ms.max())
    return Span.of(vertex.start_ms, end_ms, now_ms)


def by_state(counts: Mapping[ExecutionState, int]) -> ByState:
    """Return a number for every state, 0 where there is none."""
    return cast(ByState, {state: counts.get(state, 0) for state in EXECUTION_STATES})
