"""Jobs: /jobs, /jobs/overview and /jobs/:jobid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from typing_extensions import TypedDict

from collector.archive import Entries
from collector.bottleneck import backlogged, bottleneck
from collector.segment import Entry, run_id
from collector.store import JobState, Snapshot
from collector.tasks import ExecutionState, task_counts, vertex_state
from service.cluster import application_id
from service.flink import io
from service.flink.ids import Id
from service.flink.plan import Plan, plan
from service.flink.query import Query
from service.flink.states import (
    MAX_PARALLELISM,
    ByState,
    Timestamps,
    by_state,
    entry_span,
    job_span,
    timestamps,
    vertex_span,
)
from streamgauge import wire
from streamgauge.wire import ENDED_STATES

Scheduler = Literal["Default"]
_SCHEDULER: Scheduler = "Default"
"""Flink's default; the adaptive one would bring buttons that change the parallelism."""


class JobId(TypedDict):
    """A job in the list of ids."""

    id: Id
    status: wire.JobState


class JobIds(TypedDict):
    """The body of /jobs."""

    jobs: list[JobId]


class TaskCounts(TypedDict):
    """How many tasks are in each state, and all together."""

    total: int
    created: int
    scheduled: int
    deploying: int
    initializing: int
    running: int
    finished: int
    canceling: int
    canceled: int
    failed: int
    reconciling: int


class SummaryAdditions(TypedDict):
    """What Flink has no place for: the id of the run, and whether it is told from the archive."""

    run: Id
    archived: bool


JobSummary = TypedDict(
    "JobSummary",
    {
        "jid": Id,
        "name": str,
        "jobType": Literal["STREAMING", "BATCH"],
        "schedulerType": Scheduler,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "state": wire.JobState,
        "last-modification": int,
        "tasks": TaskCounts,
        "pending-operators": int,
        "streamgauge": SummaryAdditions,
    },
)


class JobsOverview(TypedDict):
    """The body of /jobs/overview."""

    jobs: list[JobSummary]


JobVertex = TypedDict(
    "JobVertex",
    {
        "id": Id,
        "slotSharingGroupId": Id,
        "name": str,
        "maxParallelism": int,
        "parallelism": int,
        "status": ExecutionState,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "tasks": ByState,
        "metrics": io.Io,
    },
)


class Incomplete(TypedDict):
    """What the hooks had to drop; all 0 in health."""

    records: int
    live_updates: int
    unknown_updates: int


JobBottleneck = TypedDict("JobBottleneck", {"id": Id, "name": str, "busy-ratio": float})
"""The vertex that holds a job up."""


class JobAdditions(TypedDict):
    """What Flink has no place for."""

    application: str
    run: Id
    archived: bool
    level: Literal["task", "query"]
    trigger: str
    failure: str
    incomplete: Incomplete
    backlogged: bool | None
    bottleneck: JobBottleneck | None


JobDetail = TypedDict(
    "JobDetail",
    {
        "jid": Id,
        "application-id": Id,
        "name": str,
        "isStoppable": bool,
        "state": wire.JobState,
        "job-type": Literal["STREAMING", "BATCH"],
        "schedulerType": Scheduler,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "maxParallelism": int,
        "now": int,
        "timestamps": Timestamps,
        "vertices": list[JobVertex],
        "status-counts": ByState,
        "plan": Plan,
        "pending-operators": int,
        "streamgauge": JobAdditions,
    },
)


def ids(query: Query) -> JobIds:
    """Answer /jobs."""
    return {
        "jobs": [
            {"id": job.jid if isinstance(job, Entry) else job.job.jid, "status": job.state} for job in listed(query)
        ]
    }


def overview(query: Query) -> JobsOverview:
    """Answer /jobs/overview."""
    return {"jobs": summaries(query, listed(query))}


def listed(query: Query) -> list[JobState | Entry]:
    """Return all jobs, live ones and those of which only the archive tells, in the order of `in_order`."""
    held: list[JobState | Entry] = [*in_order(query.snapshot)]
    archived = query.archived_jobs()
    return sorted([*held, *archived], key=_place) if archived else held


def _place(job: JobState | Entry) -> tuple[bool, int]:
    return isinstance(job, Entry) or job.state in ENDED_STATES, -job.first_start_ms


def application_of(job: JobState | Entry) -> str:
    """Return Spark's id of the application that runs a job, or ran it."""
    return job.application if isinstance(job, Entry) else job.app.id


def summaries(query: Query, jobs: Iterable[JobState | Entry]) -> list[JobSummary]:
    """Return jobs as they stand in lists of jobs."""
    archived = _archived(query.entries)
    return [archived[job.jid] if isinstance(job, Entry) else summary(job, query.now_ms) for job in jobs]


@lru_cache(maxsize=2)
def _archived(entries: Entries) -> dict[str, JobSummary]:
    """Return the summaries of what is archived: they do not change, and a page asks for them every few seconds."""
    return {entry.jid: _summary(entry) for entry in entries.jobs}


def in_order(snapshot: Snapshot) -> list[JobState]:
    """Return the jobs that have not ended, then those that have; the latest started first, as in Flink."""
    return sorted(snapshot.jobs.values(), key=lambda state: (state.state in ENDED_STATES, -state.first_start_ms))


def summary(state: JobState, now_ms: int) -> JobSummary:
    """Return a job as it stands in lists of jobs."""
    counts = task_counts(state, state.vertices.values())
    return {
        "jid": state.job.jid,
        "name": state.job.name,
        "jobType": state.job.type,
        "schedulerType": _SCHEDULER,
        **job_span(state, now_ms).body(),
        "state": state.state,
        "last-modification": state.modified_ms,
        "tasks": _tasks(counts),
        "pending-operators": 0,
        "streamgauge": {"run": run_id(state), "archived": False},
    }


def _summary(entry: Entry) -> JobSummary:
    return {
        "jid": entry.jid,
        "name": entry.name,
        "jobType": entry.type,
        "schedulerType": _SCHEDULER,
        **entry_span(entry).body(),
        "state": entry.state,
        "last-modification": entry.modified_ms,
        "tasks": _tasks(Counter(entry.tasks)),
        "pending-operators": 0,
        "streamgauge": {"run": entry.run, "archived": True},
    }


def _tasks(counts: Counter[ExecutionState]) -> TaskCounts:
    return {
        "total": counts.total(),
        "created": counts["CREATED"],
        "scheduled": counts["SCHEDULED"],
        "deploying": counts["DEPLOYING"],
        "initializing": counts["INITIALIZING"],
        "running": counts["RUNNING"],
        "finished": counts["FINISHED"],
        "canceling": counts["CANCELING"],
        "canceled": counts["CANCELED"],
        "failed": counts["FAILED"],
        "reconciling": counts["RECONCILING"],
    }


def detail(query: Query) -> JobDetail:
    """
    Answer /jobs/:jobid.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    state = query.job()
    states = Counter(vertex_state(state, vertex) for vertex in state.vertices.values())
    return {
        "jid": state.job.jid,
        "application-id": application_id(state.app.id),
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
        "status-counts": by_state(states),
        "plan": plan(state),
        "pending-operators": 0,
        "streamgauge": _additions(state, query.archived is not None),
    }


def _vertices(state: JobState, now_ms: int) -> list[JobVertex]:
    return [
        {
            "id": vertex.vertex.id,
            # All tasks of an application share its executors' slots.
            "slotSharingGroupId": state.job.jid,
            "name": vertex.vertex.name,
            "maxParallelism": MAX_PARALLELISM,
            "parallelism": vertex.parallelism,
            "status": vertex_state(state, vertex),
            **vertex_span(state, vertex, now_ms).body(),
            "tasks": by_state(task_counts(state, [vertex])),
            "metrics": io.of_vertex(vertex),
        }
        for vertex in state.vertices.values()
    ]


def _additions(state: JobState, archived: bool) -> JobAdditions:
    incomplete = state.incomplete
    return {
        "application": state.app.id,
        "run": run_id(state),
        "archived": archived,
        "level": state.job.level,
        "trigger": state.job.trigger,
        "failure": state.job.failure,
        "incomplete": {
            "records": incomplete.records,
            "live_updates": incomplete.live_updates,
            "unknown_updates": incomplete.unknown_updates,
        },
        "backlogged": backlogged(state),
        "bottleneck": _bottleneck(state),
    }


def _bottleneck(state: JobState) -> JobBottleneck | None:
    found = bottleneck(state)
    if found is None:
        return None
    return {"id": found.vertex.vertex.id, "name": found.vertex.vertex.name, "busy-ratio": found.busy_ratio}
