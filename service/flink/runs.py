"""The runs of a job: /jobs/:jobid/runs, ours in Flink's manner."""

from __future__ import annotations

from typing_extensions import TypedDict

from collector.segment import Entry, run_id
from collector.store import JobState
from service.flink.ids import Id
from service.flink.query import Query, live
from service.flink.states import UNKNOWN_MS, Span
from streamgauge import wire
from streamgauge.errors import UnknownJob
from streamgauge.wire import ENDED_STATES

JobRun = TypedDict(
    "JobRun",
    {
        "id": Id,
        "name": str,
        "application": str,
        "state": wire.JobState,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "restarts": int,
        "archived": bool,
    },
)
"""
One run. `id` may stand for the job's id in every path of a job.

`start-time` is its own, not that of the job's first run; `end-time` is −1 while it runs, and where no end was told: its
duration is then up to when its driver fell silent. `archived` is false of the live one.
"""


class JobRuns(TypedDict):
    """The body of …/runs: those that are known of a job, newest first."""

    jid: Id
    runs: list[JobRun]


def of_job(query: Query) -> JobRuns:
    """
    Answer /jobs/:jobid/runs.

    Raises:
        UnknownJob: neither live nor archived.
    """
    asked = query.path["jobid"]
    state = live(query.snapshot, asked)
    entry = query.entries.find(asked)
    if state is not None:
        jid = state.job.jid
    elif entry is not None:
        jid = entry.jid
        state = query.snapshot.jobs.get(jid)
    else:
        raise UnknownJob(asked)
    running = None if state is None else _live(state, query.now_ms)
    archived = [_archived(each) for each in query.runs(jid) if running is None or each.run != running["id"]]
    return {"jid": jid, "runs": archived if running is None else [running, *archived]}


def _live(state: JobState, now_ms: int) -> JobRun:
    end_ms = state.job.end_ms if state.state in ENDED_STATES else UNKNOWN_MS
    return {
        "id": run_id(state),
        "name": state.job.name,
        "application": state.app.id,
        "state": state.state,
        **Span.of(state.attempt.start_ms, end_ms, now_ms).body(),
        "restarts": state.restarts,
        "archived": False,
    }


def _archived(entry: Entry) -> JobRun:
    end_ms = entry.end_ms if entry.ended else UNKNOWN_MS
    return {
        "id": entry.run,
        "name": entry.name,
        "application": entry.application,
        "state": entry.state,
        **Span.of(entry.attempt.start_ms, end_ms, entry.modified_ms).body(),
        "restarts": entry.restarts,
        "archived": True,
    }
