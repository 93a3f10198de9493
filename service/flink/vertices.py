"""A vertex and its subtasks: /jobs/:jobid/vertices/:vertexid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

import numpy as np
from typing_extensions import TypedDict

from collector.store import JobState, VertexState
from service.flink import io
from service.flink.ids import Id
from service.flink.query import Query
from service.flink.states import UNKNOWN_MS, ExecutionState, Span, vertex_span, vertex_state
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


class VertexDetail(TypedDict):
    """The body of /jobs/:jobid/vertices/:vertexid."""

    id: Id
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[Subtask]
    aggregated: Aggregated


def detail(query: Query) -> VertexDetail:
    """
    Answer /jobs/:jobid/vertices/:vertexid.

    Every subtask that any stage of the vertex had is listed, in the vertex's state: those past the
    parallelism keep their counts, so that the subtasks' sums are the vertex's.

    Raises:
        UnknownJob: never seen, or evicted.
        UnknownVertex: the job has none of this id.
    """
    job, vertex = query.job(), query.vertex()
    spans = _spans(job, vertex, query.now_ms)
    return {
        "id": vertex.vertex.id,
        "name": vertex.vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": -1,
        "now": query.now_ms,
        "subtasks": _subtasks(query, job, vertex, spans),
        "aggregated": {"metrics": io.spreads(vertex), "status-duration": _stage_spreads(spans)},
    }


def _spans(job: JobState, vertex: VertexState, now_ms: int) -> list[Span]:
    whole = vertex_span(job, vertex, now_ms)
    if vertex.subtasks is None:
        return [whole] * vertex.size
    # Between batches a subtask is RUNNING though its latest task has ended, so it ends with its vertex.
    return [Span.of(start_ms, whole.end_ms, now_ms) for start_ms in vertex.subtasks.start_ms.tolist()]


def _subtasks(query: Query, job: JobState, vertex: VertexState, spans: list[Span]) -> list[Subtask]:
    app = query.snapshot.apps.get(job.app.id)
    executors: Mapping[str, Executor] = {} if app is None else app.executors
    state = vertex_state(job, vertex)
    rows = zip(spans, _places(vertex), io.of_subtasks(vertex), strict=True)
    return [
        {
            "subtask": index,
            "status": state,
            "attempt": attempt,
            "endpoint": executors[executor_id].endpoint if executor_id in executors else UNASSIGNED,
            **span.body(),
            "metrics": counts,
            "taskmanager-id": executor_id,
            "status-duration": cast(StageDurations, {**_NO_STAGES, "RUNNING": span.duration_ms}),
            "start_time": span.start_ms,
        }
        for index, (span, (attempt, executor_id), counts) in enumerate(rows)
    ]


def _places(vertex: VertexState) -> list[tuple[int, str]]:
    """Return each subtask's attempt and executor."""
    if vertex.subtasks is None:
        return [(0, UNASSIGNED)] * vertex.size
    ids = vertex.subtasks.executors
    pairs = zip(vertex.subtasks.attempt.tolist(), vertex.subtasks.executor.tolist(), strict=True)
    return [(attempt, ids[number] if number >= 0 else UNASSIGNED) for attempt, number in pairs]


def _stage_spreads(spans: list[Span]) -> StageSpreads:
    running = io.spread(np.array([span.duration_ms for span in spans], dtype=np.int64))
    unknown = io.spread(np.full(len(spans), UNKNOWN_MS, dtype=np.int64))
    return cast(StageSpreads, {**dict.fromkeys(_STAGES, unknown), "RUNNING": running})
