"""A vertex, over its subtasks and over the executors that ran them: /jobs/:jobid/vertices/:vertexid."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from collector.store import JobState, VertexState
from collector.tasks import ExecutionState
from service.flink import io, subtasks
from service.flink.ids import Id
from service.flink.query import Query
from service.flink.states import MAX_PARALLELISM, UNKNOWN_MS, ByState, Span, by_state, subtask_state
from service.flink.subtasks import UNASSIGNED, Aggregated, Subtask


class VertexDetail(TypedDict):
    """The body of /jobs/:jobid/vertices/:vertexid."""

    id: Id
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[Subtask]
    aggregated: Aggregated


VertexTaskManager = TypedDict(
    "VertexTaskManager",
    {
        "endpoint": str,
        "status": ExecutionState,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": io.Io,
        "status-counts": ByState,
        "taskmanager-id": str,
        "aggregated": Aggregated,
    },
)


class VertexTaskManagers(TypedDict):
    """The body of …/taskmanagers of a vertex."""

    id: str
    name: str
    now: int
    taskmanagers: list[VertexTaskManager]


def detail(query: Query) -> VertexDetail:
    """
    Answer /jobs/:jobid/vertices/:vertexid.

    Every subtask that any stage of the vertex had is listed: those past the
    parallelism keep their counts, so that the subtasks' sums are the vertex's.

    Raises:
        UnknownJob: never seen, or evicted.
        UnknownVertex: the job has none of this id.
    """
    job, vertex = query.job(), query.vertex()
    return {
        "id": vertex.vertex.id,
        "name": vertex.vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": MAX_PARALLELISM,
        "now": query.now_ms,
        "subtasks": subtasks.rows(query, job, vertex, io.ALL),
        "aggregated": subtasks.aggregated(vertex, subtasks.spans(job, vertex, query.now_ms, io.ALL), io.ALL),
    }


def taskmanagers(query: Query) -> VertexTaskManagers:
    """
    Answer …/taskmanagers of a vertex: its subtasks by the executor that ran their latest tasks.

    The counts of a subtask are with its latest task's executor, whoever ran the tasks before it.

    Raises:
        UnknownJob: never seen, or evicted.
        UnknownVertex: the job has none of this id.
    """
    job, vertex = query.job(), query.vertex()
    return {
        "id": vertex.vertex.id,
        "name": vertex.vertex.name,
        "now": query.now_ms,
        "taskmanagers": [
            _taskmanager(query, job, vertex, executor_id, chosen)
            for executor_id, chosen in _by_executor(vertex).items()
        ],
    }


def _by_executor(vertex: VertexState) -> dict[str, npt.NDArray[np.intp]]:
    """Return the subtasks of each executor; those that have not run are with UNASSIGNED, first."""
    if vertex.subtasks is None:
        return {UNASSIGNED: np.arange(vertex.size)} if vertex.size else {}
    held = vertex.subtasks.executor
    ids = vertex.subtasks.executors
    return {
        ids[number] if number >= 0 else UNASSIGNED: np.flatnonzero(held == number)
        for number in np.unique(held).tolist()
    }


def _taskmanager(
    query: Query, job: JobState, vertex: VertexState, executor_id: str, chosen: npt.NDArray[np.intp]
) -> VertexTaskManager:
    states = Counter(subtask_state(job, vertex, index) for index in chosen.tolist())
    spans = subtasks.spans(job, vertex, query.now_ms, chosen)
    starts = [span.start_ms for span in spans if span.start_ms != UNKNOWN_MS]
    # Every subtask ends with its vertex.
    span = Span.of(min(starts, default=UNKNOWN_MS), spans[0].end_ms, query.now_ms)
    return {
        "endpoint": subtasks.endpoint(query, job, executor_id),
        # As of a vertex: one subtask that failed makes it FAILED.
        "status": "FAILED" if states["FAILED"] else next(iter(states)),
        **span.body(),
        "metrics": io.of_vertex(vertex, chosen),
        "status-counts": by_state(states),
        "taskmanager-id": executor_id,
        "aggregated": subtasks.aggregated(vertex, spans, chosen),
    }
