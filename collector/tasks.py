"""The states of a job's tasks, in Flink's words: what a vertex' and a subtask's state is, and how many are in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from collector.store import JobState, VertexState
from streamgauge import wire

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
EXECUTION_STATES: tuple[ExecutionState, ...] = get_args(ExecutionState)

_VERTEX_STATES: dict[wire.JobState, ExecutionState] = {
    "CREATED": "CREATED",
    "RUNNING": "RUNNING",
    "RESTARTING": "CREATED",
    "SUSPENDED": "RECONCILING",
    "FINISHED": "FINISHED",
    "CANCELED": "CANCELED",
    "FAILED": "CANCELED",
}


def failure_of(job: JobState) -> wire.Failure | None:
    """Return what ended a FAILED job; None of any other, and where its driver has not told."""
    return job.failures.latest[0] if job.state == "FAILED" and job.failures.latest else None


def vertex_state(job: JobState, vertex: VertexState) -> ExecutionState:
    """
    Return a vertex's state, one of EXECUTION_STATES.

    A vertex that is no longer in the plan is FINISHED. Any other is RUNNING while the job is, also between
    batches, and ends with it. Of a FAILED job the vertex whose task failed it is FAILED, any other CANCELED: it has
    been stopped; so are all where it was no task that failed. While its driver is silent a vertex is RECONCILING,
    Flink's word for a task of which it is not known whether it still runs.
    """
    if failed_subtask(job, vertex) is not None:
        return "FAILED"
    return _VERTEX_STATES[job.state] if vertex.vertex.current else "FINISHED"


def failed_subtask(job: JobState, vertex: VertexState) -> int | None:
    """Return the subtask whose failure ended the job; None where it was none of this vertex."""
    failure = failure_of(job)
    if failure is None or failure.vertex != vertex.vertex.id or not 0 <= failure.subtask < vertex.size:
        return None
    return failure.subtask


def task_counts(job: JobState, vertices: Iterable[VertexState]) -> Counter[ExecutionState]:
    """Return how many tasks of the vertices' latest stages are in each state; absent is 0."""
    counts: Counter[ExecutionState] = Counter()
    for vertex in vertices:
        failed = failed_subtask(job, vertex)
        if failed is not None and failed < vertex.parallelism:
            counts.update({"FAILED": 1, "CANCELED": vertex.parallelism - 1})
        else:
            counts[vertex_state(job, vertex)] += vertex.parallelism
    return counts
