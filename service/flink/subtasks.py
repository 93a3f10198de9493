"""Subtasks, one and all: where and when the latest task of each ran, and what it read and wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

import numpy as np
from typing_extensions import TypedDict

from collector.store import JobState, VertexState
from collector.tasks import ExecutionState
from service.flink import io
from service.flink.query import Query
from service.flink.states import UNKNOWN_MS, ByState, Span, by_state, subtask_state, vertex_span
from streamgauge.errors import UnknownAttempt, UnknownSubtask
from streamgauge.wire import Executor

UNASSIGNED = "(unassigned)"
"""Flink's word for the place of a task that has none."""
Stage = Literal["INITIALIZING", "RUNNING", "CREATED", "SCHEDULED", "DEPLOYING"]
_STAGES: tuple[Stage, ...] = get_args(Stage)
_NO_STAGES = dict.fromkeys(_STAGES, UNKNOWN_MS)


class StageDurations(TypedDict):
    """How long a subtask was in each stage of its life, milliseconds; −1 where not known."""

    INITIALIZING: int
    RUNNING: int
    CREATED: int
    SCHEDULED: int
    DEPLOYING: int


class StageSpreads(TypedDict):
    """The spread of `StageDurations` over subtasks."""

    INITIALIZING: io.Spread
    RUNNING: io.Spread
    CREATED: io.Spread
    SCHEDULED: io.Spread
    DEPLOYING: io.Spread


Aggregated = TypedDict("Aggregated", {"metrics": io.Spreads, "status-duration": StageSpreads})
Subtask = TypedDict(
    "Subtask",
    {
        "subtask": int,
        "status": ExecutionState,
        "attempt": int,
        "endpoint": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": io.Io,
        "taskmanager-id": str,
        "status-duration": StageDurations,
        "start_time": int,
    },
)


class SubtaskTimes(TypedDict):
    """A subtask in the body of …/subtasktimes."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: ByState


class SubtasksTimes(TypedDict):
    """The body of …/subtasktimes."""

    id: str
    name: str
    now: int
    subtasks: list[SubtaskTimes]


def current(query: Query) -> Subtask:
    """
    Answer …/subtasks/:subtaskindex: its latest task's attempt.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
        UnknownSubtask: the vertex has none of this index.
    """
    return _row(query, query.job(), query.job_vertex())


def attempt(query: Query) -> Subtask:
    """
    Answer …/subtasks/:subtaskindex/attempts/:attempt; earlier attempts are not held.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
        UnknownSubtask: the vertex has none of this index.
        UnknownAttempt: it is another one.
    """
    vertex = query.job_vertex()
    row = _row(query, query.job(), vertex)
    asked = query.attempt()
    if asked != row["attempt"]:
        raise UnknownAttempt(asked, row["attempt"], f"{vertex.vertex.name} ({row['subtask'] + 1}/{vertex.parallelism})")
    return row


def _row(query: Query, job: JobState, vertex: VertexState) -> Subtask:
    index = query.subtask()
    if index >= vertex.size:
        raise UnknownSubtask(vertex.vertex.id)
    return rows(query, job, vertex, slice(index, index + 1))[0]


def times(query: Query) -> SubtasksTimes:
    """
    Answer …/subtasktimes: of Flink's states those that Spark tells, the latest task's launch and its vertex's end.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    job, vertex = query.job(), query.job_vertex()
    endpoints = [endpoint(query, job, executor_id) for _, executor_id in places(vertex, io.ALL)]
    return {
        "id": vertex.vertex.id,
        "name": vertex.vertex.name,
        "now": query.now_ms,
        "subtasks": [
            {
                "subtask": index,
                "endpoint": place,
                "duration": span.duration_ms,
                "timestamps": _timestamps(subtask_state(job, vertex, index), span),
            }
            for index, (span, place) in enumerate(zip(spans(job, vertex, query.now_ms, io.ALL), endpoints, strict=True))
        ],
    }


def _timestamps(state: ExecutionState, span: Span) -> ByState:
    told: dict[ExecutionState, int] = {"RUNNING": max(0, span.start_ms)}
    if span.end_ms != UNKNOWN_MS:
        told[state] = span.end_ms
    return by_state(told)


def rows(query: Query, job: JobState, vertex: VertexState, chosen: io.Chosen) -> list[Subtask]:
    """Return the chosen subtasks of a vertex."""
    indices = np.arange(vertex.size)[chosen].tolist()
    told = zip(
        indices,
        spans(job, vertex, query.now_ms, chosen),
        places(vertex, chosen),
        io.of_subtasks(vertex, chosen),
        strict=True,
    )
    return [
        {
            "subtask": index,
            "status": subtask_state(job, vertex, index),
            "attempt": number,
            "endpoint": endpoint(query, job, executor_id),
            **span.body(),
            "metrics": counts,
            "taskmanager-id": executor_id,
            "status-duration": cast(StageDurations, {**_NO_STAGES, "RUNNING": span.duration_ms}),
            "start_time": span.start_ms,
        }
        for index, span, (number, executor_id), counts in told
    ]


def spans(job: JobState, vertex: VertexState, now_ms: int, chosen: io.Chosen) -> list[Span]:
    """
    Return when the chosen subtasks ran: from the launch of the latest task to the vertex's end.

    Between batches a subtask is RUNNING though its latest task has ended, so it ends with its vertex.
    """
    whole = vertex_span(job, vertex, now_ms)
    if vertex.subtasks is None:
        return [whole] * len(np.arange(vertex.size)[chosen])
    return [Span.of(start_ms, whole.end_ms, now_ms) for start_ms in vertex.subtasks.start_ms[chosen].tolist()]


def places(vertex: VertexState, chosen: io.Chosen) -> list[tuple[int, str]]:
    """Return the chosen subtasks' attempts, of the latest task of each, and executors."""
    if vertex.subtasks is None:
        return [(0, UNASSIGNED)] * len(np.arange(vertex.size)[chosen])
    ids = vertex.subtasks.executors
    pairs = zip(vertex.subtasks.attempt[chosen].tolist(), vertex.subtasks.executor[chosen].tolist(), strict=True)
    return [(number, ids[executor] if executor >= 0 else UNASSIGNED) for number, executor in pairs]


def endpoint(query: Query, job: JobState, executor_id: str) -> str:
    """Return host:port of the executor that ran a task of `job`; UNASSIGNED where it is not known any more."""
    app = query.app(job)
    executors: Mapping[str, Executor] = {} if app is None else app.executors
    return executors[executor_id].endpoint if executor_id in executors else UNASSIGNED


def aggregated(vertex: VertexState, told: list[Span], chosen: io.Chosen) -> Aggregated:
    """Return the spread of the chosen subtasks' figures and of their times, which are `told`."""
    running = io.spread(np.array([span.duration_ms for span in told], dtype=np.int64))
    unknown = io.spread(np.full(len(told), UNKNOWN_MS, dtype=np.int64))
    durations = cast(StageSpreads, {**dict.fromkeys(_STAGES, unknown), "RUNNING": running})
    return {"metrics": io.spreads(vertex, chosen), "status-duration": durations}
