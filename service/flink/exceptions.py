"""What failed: /jobs/:jobid/exceptions, and an application's jobs together."""

from __future__ import annotations

import re

from typing_extensions import NotRequired, TypedDict

from collector.store import JobState
from collector.tasks import failure_of
from service.flink.query import Query
from streamgauge import wire
from streamgauge.errors import UnresolvableParameter

_LIMIT = "maxExceptions"
_LABELS = "failureLabelFilter"
_DEFAULT_LIMIT = 20
_MAX_INT = 2**31 - 1
_NUMBER = re.compile(r"\+?[0-9]{1,10}")
_LABEL = re.compile(r"[^:]*:[^:]+:*")
"""What Java's String.split(":") makes two words of."""


class ConcurrentException(TypedDict):
    """A failure; where it was is absent if that is not known."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    failureLabels: dict[str, str]
    taskName: NotRequired[str]
    endpoint: NotRequired[str]
    taskManagerId: NotRequired[str]


class RootException(ConcurrentException):
    """A failure, and those that came with it."""

    concurrentExceptions: list[ConcurrentException]


class ExceptionHistory(TypedDict):
    """Newest first; truncated where more are held than were asked for."""

    entries: list[RootException]
    truncated: bool


class ExceptionAdditions(TypedDict):
    """How many older failures there were that are not held any more."""

    forgotten: int


class JobExceptions(TypedDict):
    """The body of /jobs/:jobid/exceptions."""

    exceptionHistory: ExceptionHistory
    streamgauge: ExceptionAdditions


class ApplicationException(TypedDict):
    """What ended a job of an application."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    jobId: str


class ApplicationExceptionHistory(TypedDict):
    """Oldest first, as in Flink."""

    entries: list[ApplicationException]


class ApplicationExceptions(TypedDict):
    """The body of /applications/:applicationid/exceptions."""

    exceptionHistory: ApplicationExceptionHistory


def of_job(query: Query) -> JobExceptions:
    """
    Answer /jobs/:jobid/exceptions: what failed in all runs of the job that were seen.

    No failure has labels here, so that any filter by them selects none.

    Raises:
        UnknownJob: never seen, or evicted.
        UnresolvableParameter: `maxExceptions` is no Java int ≥ 0, or a filter is not of the form key:value.
    """
    limit, filtered = _limit(query), _filtered(query)
    state = query.job()
    history = state.failure_history()
    failures = () if filtered else history.latest
    return {
        "exceptionHistory": {
            "entries": [_root(state, failure) for failure in failures[:limit]],
            "truncated": len(failures) > limit,
        },
        "streamgauge": {"forgotten": history.forgotten},
    }


def of_application(query: Query) -> ApplicationExceptions:
    """
    Answer /applications/:applicationid/exceptions: what ended those of its jobs that FAILED.

    Raises:
        Missing: never seen, or evicted.
        UnresolvableParameter: it is no id.
    """
    application = query.application().app.id
    jobs = query.jobs_of(application)
    failed = [(job.job.jid, failure) for job in jobs if (failure := failure_of(job)) is not None]
    failed.sort(key=lambda each: each[1].time_ms)
    return {
        "exceptionHistory": {
            "entries": [
                {
                    "exceptionName": failure.name,
                    "stacktrace": failure.trace,
                    "timestamp": failure.time_ms,
                    "jobId": jid,
                }
                for jid, failure in failed
            ]
        }
    }


def _limit(query: Query) -> int:
    """
    Return how many failures are asked for, the first of several numbers; 0 is none.

    Flink fails on a number below 0, with 500; here it is refused.
    """
    words = query.words(_LIMIT)
    if not words:
        return _DEFAULT_LIMIT
    if any(_NUMBER.fullmatch(word) is None or int(word) > _MAX_INT for word in words):
        raise UnresolvableParameter("query", _LIMIT, ",".join(query.parameters[_LIMIT]))
    return int(words[0])


def _filtered(query: Query) -> bool:
    words = query.words(_LABELS)
    if words and any(_LABEL.fullmatch(word) is None for word in words):
        raise UnresolvableParameter("query", _LABELS, ",".join(query.parameters[_LABELS]))
    return bool(words)


def _root(state: JobState, failure: wire.Failure) -> RootException:
    return {
        **_exception(state, failure),
        "concurrentExceptions": [_exception(state, each) for each in failure.concurrent],
    }


def _exception(state: JobState, failure: wire.Failure) -> ConcurrentException:
    body: ConcurrentException = {
        "exceptionName": failure.name,
        "stacktrace": failure.trace,
        "timestamp": failure.time_ms,
        "failureLabels": {},
    }
    vertex = state.vertices.get(failure.vertex)
    if vertex is not None and failure.subtask >= 0:
        # The task may be of an earlier run, of which more subtasks ran.
        parallelism = max(vertex.parallelism, failure.subtask + 1)
        task = f"{vertex.vertex.name} ({failure.subtask + 1}/{parallelism})"
        body["taskName"] = f"{task} - execution #{failure.attempt}"
    if failure.endpoint:
        body["endpoint"] = failure.endpoint
    if failure.executor:
        body["taskManagerId"] = failure.executor
    return body
