"""Spark's applications as Flink's."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from service.errors import Missing
from service.flink import applications, jobs
from service.flink.query import Query
from streamgauge.errors import UnresolvableParameter

ID = hashlib.md5(b"app-1").hexdigest()


def detail(snapshot: Any, asked: str) -> Any:
    return applications.detail(Query.parse(snapshot, 9_000, {"applicationid": asked}, b""))


@pytest.mark.parametrize("asked", [ID, ID.upper(), "app-1"])
def test_application_is_found_by_either_id(states: Any, asked: str) -> None:
    """Flink's 32 hex digits in any case, and Spark's own."""
    body = detail(states.snapshot(states.app()), asked)
    assert (body["id"], body["name"], body["streamgauge"]) == (
        ID,
        "flights",
        {"application": "app-1", "silent": False},
    )


def test_malformed_id_is_refused_and_an_unknown_one_missing(states: Any) -> None:
    """400 and 404; an application's id that is not held is malformed to Flink."""
    with pytest.raises(UnresolvableParameter, match="Cannot resolve path parameter \\(applicationid\\)"):
        detail(states.snapshot(states.app()), "app-2")
    with pytest.raises(Missing, match=f"Could not find Flink application \\({'0' * 32}\\)"):
        detail(states.snapshot(states.app()), "0" * 32)


def test_job_names_its_application_by_the_same_id(states: Any) -> None:
    """So that one leads to the other."""
    snapshot = states.snapshot(states.app(), states.job())
    job = jobs.detail(Query.parse(snapshot, 9_000, {"jobid": "d" * 32}, b""))
    assert detail(snapshot, job["application-id"])["jobs"][0]["jid"] == job["jid"]


@pytest.mark.parametrize(
    ("end_ms", "suspended", "ends", "status", "duration"),
    [
        (-1, False, ["FAILED"], "RUNNING", 8_000),
        (-1, True, ["SUSPENDED"], "RUNNING", 8_000),
        (4_000, True, ["FINISHED", "FAILED"], "FAILED", 3_000),
        (4_000, False, ["FINISHED", "CANCELED"], "FINISHED", 3_000),
        (4_000, False, [], "FINISHED", 3_000),
    ],
)
def test_application_runs_until_it_has_ended(
    states: Any, end_ms: int, suspended: bool, ends: list[str], status: str, duration: int
) -> None:
    """Then a job that FAILED makes it so; a silent driver has told no end."""
    told = [states.job(jid=f"{number}" * 32, state=state) for number, state in enumerate(ends)]
    snapshot = states.snapshot(states.app(end_ms=end_ms, suspended=suspended), *told)
    body = detail(snapshot, ID)
    assert (body["status"], body["start-time"], body["end-time"], body["duration"]) == (status, 1_000, end_ms, duration)
    stamped = {state: when for state, when in body["timestamps"].items() if when}
    assert stamped == {"CREATED": 1_000, "RUNNING": 1_000} | ({} if end_ms < 0 else {status: end_ms})
    listed = applications.overview(Query.parse(snapshot, 9_000, {}, b""))["applications"]
    assert [(row["id"], row["status"], row["duration"]) for row in listed] == [(ID, status, duration)]


def test_jobs_are_counted_by_state_and_listed_as_elsewhere(states: Any) -> None:
    """Each with its own application."""
    other = states.job(jid="a" * 32, app=states.app(id="app-2").app)
    mine = [states.job(jid="b" * 32), states.job(jid="e" * 32, state="FAILED"), states.job(jid="f" * 32)]
    snapshot = states.snapshot(states.app(), states.app(id="app-2", start_ms=5_000), other, *mine)
    query = Query.parse(snapshot, 9_000, {}, b"")
    listed = applications.overview(query)["applications"]
    assert [(row["streamgauge"]["application"], row["jobs"]) for row in listed] == [
        ("app-2", {"RUNNING": 1}),
        ("app-1", {"RUNNING": 2, "FAILED": 1}),
    ]
    all_jobs = jobs.overview(query)["jobs"]
    assert detail(snapshot, "app-1")["jobs"] == [row for row in all_jobs if row["jid"] != "a" * 32]
