"""Jobs: /jobs, /jobs/overview and /jobs/:jobid."""

from __future__ import annotations

from collections import Counter

import msgspec

from collector.store import JobState, Snapshot
from service.flink import io
from service.flink.plan import plan
from service.flink.query import Query
from service.flink.states import (
    EXECUTION_STATES,
    job_span,
    task_counts,
    timestamps,
    vertex_span,
    vertex_state,
)
from streamgauge.wire import ENDED_STATES

_SCHEDULER = "Default"
"""Flink's default; the adaptive one would bring buttons that change the parallelism."""


def ids(query: Query) -> dict[str, object]:
    """Answer /jobs."""
    return {"jobs": [{"id": state.job.jid, "status": state.state} for state in in_order(query.snapshot)]}


def overview(query: Query) -> dict[str, object]:
    """Answer /jobs/overview."""
    return {"jobs": [_summary(state, query.now_ms) for state in in_order(query.snapshot)]}


def in_order(snapshot: Snapshot) -> list[JobState]:
    """Return the jobs that have not ended, then those that have; the latest started first, as in Flink."""
    return sorted(snapshot.jobs.values(), key=lambda state: (state.state in ENDED_STATES, -state.first_start_ms))


def _summary(state: JobState, now_ms: int) -> dict[str, object]:
    counts = task_counts(state, list(state.vertices.values()))
    return {
        "jid": state.job.jid,
        "name": state.job.name,
        "jobType": state.job.type,
        "schedulerType": _SCHEDULER,
        **job_span(state, now_ms).body(),
        "state": state.state,
        "last-modification": state.modified_ms,
        "tasks": {"total": counts.total(), **{name.lower(): counts[name] for name in EXECUTION_STATES}},
        "pending-operators": 0,
    }


def detail(query: Query) -> dict[str, object]:
    """
    Answer /jobs/:jobid.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    state = query.job()
    states = Counter(vertex_state(state, vertex) for vertex in state.vertices.values())
    return {
        "jid": state.job.jid,
        "application-id": state.job.jid,
        "name": state.job.name,
        "isStoppable": False,
        "state": state.state,
        "job-type": state.job.type,
        "schedulerType": _SCHEDULER,
        **job_span(state, query.now_ms).body(),
        "maxParallelism": -1,
        "now": query.now_ms,
        "timestamps": timestamps(state),
        "vertices": _vertices(state, query.now_ms),
        "status-counts": _by_state(states),
        "plan": plan(state),
        "pending-operators": 0,
        "streamgauge": _additions(state),
    }


def _vertices(state: JobState, now_ms: int) -> list[dict[str, object]]:
    return [
        {
            "id": vertex.vertex.id,
            # All tasks of an application share its executors' slots.
            "slotSharingGroupId": state.job.jid,
            "name": vertex.vertex.name,
            "maxParallelism": -1,
            "parallelism": vertex.parallelism,
            "status": vertex_state(state, vertex),
            **vertex_span(state, vertex, now_ms).body(),
            "tasks": _by_state(task_counts(state, [vertex])),
            "metrics": io.of_vertex(vertex),
        }
        for vertex in state.vertices.values()
    ]


def _by_state(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in EXECUTION_STATES}


def _additions(state: JobState) -> dict[str, object]:
    return {
        "application": state.app.id,
        "level": state.job.level,
        "trigger": state.job.trigger,
        "failure": state.job.failure,
        "incomplete": msgspec.to_builtins(state.incomplete),
    }
