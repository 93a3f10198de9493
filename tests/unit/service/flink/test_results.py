"""What clients that wait for a job are told."""

from __future__ import annotations

from typing import Any

import pytest

from service.cluster import application_id
from service.errors import Missing
from service.flink import results
from service.flink.query import Query
from streamgauge.errors import UnknownJob

PATH = {"jobid": "d" * 32}


@pytest.mark.parametrize("state", ["CREATED", "RUNNING", "RESTARTING", "SUSPENDED"])
def test_job_that_has_not_ended_has_no_result(states: Any, state: str) -> None:
    """IN_PROGRESS, and nothing else."""
    query = Query.parse(states.snapshot(states.job(state=state)), 9_000, PATH, b"")
    assert results.execution_result(query) == {"status": {"id": "IN_PROGRESS"}}
    assert results.status(query) == {"status": state}


@pytest.mark.parametrize(("state", "outcome"), [("FINISHED", "SUCCEEDED"), ("CANCELED", "CANCELED")])
def test_result_tells_the_outcome_and_the_times(states: Any, state: str, outcome: str) -> None:
    """Of all its runs; without a cause."""
    job = states.job(state=state, end_ms=4_000)
    assert results.execution_result(Query.parse(states.snapshot(job), 9_000, PATH, b"")) == {
        "status": {"id": "COMPLETED"},
        "job-execution-result": {
            "id": "d" * 32,
            "name": "flights by hour",
            "application-status": outcome,
            "accumulator-results": {},
            "net-runtime": 2_500,
            "application-id": application_id("app-1"),
            "start-time": 1_500,
            "end-time": 4_000,
        },
    }


@pytest.mark.parametrize(
    ("failure", "named"),
    [
        ("org.apache.spark.SparkException: Job aborted\n\tat x", "org.apache.spark.SparkException"),
        ("java.lang.Outer$Inner", "java.lang.Outer$Inner"),
        ("ValueError\nTraceback", "ValueError"),
        ("it broke", ""),
        ("[UNRESOLVED] column", ""),
        ("", ""),
    ],
)
def test_failed_job_tells_why(states: Any, failure: str, named: str) -> None:
    """The class where the words begin with one."""
    job = states.job(state="FAILED", end_ms=4_000, failure=failure)
    body: Any = results.execution_result(Query.parse(states.snapshot(job), 9_000, PATH, b""))
    assert body["job-execution-result"]["application-status"] == "FAILED"
    assert body["job-execution-result"]["failure-cause"] == {"class": named, "stack-trace": failure}


def test_unknown_job_is_refused_in_flinks_words(states: Any) -> None:
    """Which differ between the two."""
    query = Query.parse(states.snapshot(), 0, PATH, b"")
    with pytest.raises(Missing, match=f"Could not find Flink job \\({'d' * 32}\\)"):
        results.execution_result(query)
    with pytest.raises(UnknownJob):
        results.status(query)
