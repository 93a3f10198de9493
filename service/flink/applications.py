"""Spark applications, Flink's applications: /applications/overview and /applications/:applicationid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from typing_extensions import TypedDict

from collector.segment import Entry
from collector.store import AppState, JobState
from service import cluster
from service.flink.jobs import JobSummary, application_of, listed, summaries
from service.flink.query import Query
from service.flink.states import Span
from streamgauge import wire

ApplicationStatus = Literal["RUNNING", "FINISHED", "FAILED"]


class ApplicationAdditions(TypedDict):
    """What Flink has no place for: Spark's id, and whether nothing is heard of the driver."""

    application: str
    silent: bool


Application = TypedDict(
    "Application",
    {
        "id": str,
        "name": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "status": ApplicationStatus,
        "jobs": dict[wire.JobState, int],
        "streamgauge": ApplicationAdditions,
    },
)


class Applications(TypedDict):
    """The body of /applications/overview."""

    applications: list[Application]


class ApplicationTimestamps(TypedDict):
    """When an application came into each of Flink's states, wall time in milliseconds; 0 for never."""

    CREATED: int
    RUNNING: int
    FAILING: int
    FAILED: int
    CANCELING: int
    CANCELED: int
    FINISHED: int


ApplicationDetail = TypedDict(
    "ApplicationDetail",
    {
        "id": str,
        "name": str,
        "status": ApplicationStatus,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "timestamps": ApplicationTimestamps,
        "jobs": list[JobSummary],
        "streamgauge": ApplicationAdditions,
    },
)


def overview(query: Query) -> Applications:
    """Answer /applications/overview: those that are held, the latest started first."""
    jobs: dict[str, list[JobState | Entry]] = {}
    for job in listed(query):
        jobs.setdefault(application_of(job), []).append(job)
    held = cluster.applications(query.snapshot)
    return {"applications": [_application(app, jobs.get(app.app.id, []), query.now_ms) for app in held]}


def _application(app: AppState, jobs: list[JobState | Entry], now_ms: int) -> Application:
    return {
        "id": cluster.application_id(app.app.id),
        "name": app.app.name,
        **_span(app, now_ms).body(),
        "status": _status(app, jobs),
        "jobs": dict(Counter(job.state for job in jobs)),
        "streamgauge": _additions(app),
    }


def detail(query: Query) -> ApplicationDetail:
    """
    Answer /applications/:applicationid, Flink's id or Spark's.

    Raises:
        Missing: never seen, or evicted.
        UnresolvableParameter: it is no id.
    """
    app = query.application()
    jobs = [job for job in listed(query) if application_of(job) == app.app.id]
    status = _status(app, jobs)
    span = _span(app, query.now_ms)
    return {
        "id": cluster.application_id(app.app.id),
        "name": app.app.name,
        "status": status,
        **span.body(),
        "timestamps": {
            "CREATED": span.start_ms,
            "RUNNING": span.start_ms,
            "FAILING": 0,
            "FAILED": span.end_ms if status == "FAILED" else 0,
            "CANCELING": 0,
            "CANCELED": 0,
            "FINISHED": span.end_ms if status == "FINISHED" else 0,
        },
        "jobs": summaries(query, jobs),
        "streamgauge": _additions(app),
    }


def _span(app: AppState, now_ms: int) -> Span:
    return Span.of(app.app.start_ms, app.end_ms, now_ms)


def _status(app: AppState, jobs: Iterable[JobState | Entry]) -> ApplicationStatus:
    """
    Return an application's state.

    Spark tells that an application has ended, not how: it FAILED if a job of it did, as its last word. Flink has
    no word for an application of which nothing is heard: as the driver has told no end, it is RUNNING still.
    """
    if app.end_ms < 0:
        return "RUNNING"
    return "FAILED" if any(job.state == "FAILED" for job in jobs) else "FINISHED"


def _additions(app: AppState) -> ApplicationAdditions:
    return {"application": app.app.id, "silent": app.suspended}
