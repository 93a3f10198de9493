"""How a job stands and ended, for clients that wait for it: …/status and …/execution-result."""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import NotRequired, TypedDict

from collector.store import JobState
from collector.tasks import failure_of
from service.cluster import application_id
from service.errors import HANDLER, Missing
from service.flink.query import Query
from service.flink.states import job_span
from streamgauge import wire
from streamgauge.wire import ENDED_STATES

_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")
Outcome = Literal["SUCCEEDED", "FAILED", "CANCELED"]
_OUTCOMES: dict[str, Outcome] = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "CANCELED": "CANCELED"}


class JobStatus(TypedDict):
    """The body of …/status."""

    status: wire.JobState


class Progress(TypedDict):
    """Whether there is a result."""

    id: Literal["IN_PROGRESS", "COMPLETED"]


FailureCause = TypedDict("FailureCause", {"class": str, "stack-trace": str})
Result = TypedDict(
    "Result",
    {
        "id": str,
        "name": str,
        "application-status": Outcome,
        "accumulator-results": dict[str, str],
        "net-runtime": int,
        "failure-cause": NotRequired[FailureCause],
        "application-id": str,
        "start-time": int,
        "end-time": int,
    },
)
ExecutionResult = TypedDict("ExecutionResult", {"status": Progress, "job-execution-result": NotRequired[Result]})


def status(query: Query) -> JobStatus:
    """
    Answer …/status.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    return {"status": query.job().state}


def execution_result(query: Query) -> ExecutionResult:
    """
    Answer …/execution-result.

    Raises:
        Missing: the job was never seen, or is evicted.
    """
    jid = query.path["jobid"]
    state = query.known_job()
    if state is None:
        raise Missing(HANDLER, f"Could not find Flink job ({jid})")
    if state.state not in ENDED_STATES:
        return {"status": {"id": "IN_PROGRESS"}}
    return {"status": {"id": "COMPLETED"}, "job-execution-result": _result(state, query.now_ms)}


def _result(state: JobState, now_ms: int) -> Result:
    span = job_span(state, now_ms)
    result: Result = {
        "id": state.job.jid,
        "name": state.job.name,
        "application-status": _OUTCOMES[state.state],
        "accumulator-results": {},
        "net-runtime": span.duration_ms,
        "application-id": application_id(state.app.id),
        "start-time": span.start_ms,
        "end-time": span.end_ms,
    }
    if state.state == "FAILED":
        result["failure-cause"] = failure_cause(state)
    return result


def failure_cause(state: JobState) -> FailureCause:
    """
    Return why a FAILED job did, in the driver's words; of a cause without its stack the class is '' where it has none.

    Flink's `serialized-throwable`, an object of Java's, is not to be had.
    """
    failure = failure_of(state)
    if failure is not None:
        return {"class": failure.name, "stack-trace": failure.trace}
    text = state.job.failure
    found = _CLASS.match(text)
    named = found is not None and text[found.end() : found.end() + 1] in ("", ":", "\n")
    return {"class": found.group() if found is not None and named else "", "stack-trace": text}
