"""What failed, as Flink tells it."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink import exceptions
from service.flink.query import Query
from streamgauge import wire
from streamgauge.errors import UnknownJob, UnresolvableParameter

TASK = wire.Failure("a.B", "a.B: no", 700, "c" * 32, 1, 2, "app-1-0", "10.0.0.7:7079")


def numbered(*numbers: int) -> wire.Failures:
    return wire.Failures(tuple(wire.Failure("a.A", f"a.A: {number}", number) for number in numbers), forgotten=3)


def told(states: Any, query_string: str = "", **job: Any) -> Any:
    snapshot = states.snapshot(states.job(states.vertex(), **job))
    return exceptions.of_job(Query.parse(snapshot, 5_000, {"jobid": states.JID}, query_string.encode()))


def test_failure_has_its_place_where_that_is_known(states: Any) -> None:
    """Flink's words for a task; each of them absent otherwise."""
    top = wire.Failure("a.A", "a.A: no", 900, concurrent=(TASK,))
    body = told(states, failures=wire.Failures((top,)))
    assert body == {
        "exceptionHistory": {
            "entries": [
                {
                    "exceptionName": "a.A",
                    "stacktrace": "a.A: no",
                    "timestamp": 900,
                    "failureLabels": {},
                    "concurrentExceptions": [
                        {
                            "exceptionName": "a.B",
                            "stacktrace": "a.B: no",
                            "timestamp": 700,
                            "failureLabels": {},
                            "taskName": "Scan -> Filter (2/2) - execution #2",
                            "endpoint": "10.0.0.7:7079",
                            "taskManagerId": "app-1-0",
                        }
                    ],
                }
            ],
            "truncated": False,
        },
        "streamgauge": {"forgotten": 0},
    }


@pytest.mark.parametrize(
    ("changes", "task"),
    [
        ({"vertex": "e" * 32}, None),
        ({"subtask": -1}, None),
        ({"subtask": 6}, "Scan -> Filter (7/7) - execution #2"),
    ],
    ids=["vertex that left", "no task", "earlier, wider run"],
)
def test_task_is_named_only_where_it_can_be(states: Any, changes: dict[str, Any], task: str | None) -> None:
    """What is not known is not made up."""
    given = {field: getattr(TASK, field) for field in TASK.__struct_fields__}
    [entry] = told(states, failures=wire.Failures((wire.Failure(**(given | changes)),)))["exceptionHistory"]["entries"]
    assert entry.get("taskName") == task


@pytest.mark.parametrize(
    ("asked", "times", "truncated"),
    [
        ("", [3, 2, 1], False),
        ("maxExceptions=2", [3, 2], True),
        ("maxExceptions=3", [3, 2, 1], False),
        ("maxExceptions=%2B1", [3], True),
        ("maxExceptions=0", [], True),
        ("maxExceptions=1,2", [3], True),
        ("maxExceptions=2147483647", [3, 2, 1], False),
        ("maxExceptions=,", [3, 2, 1], False),
        ("failureLabelFilter=a:b", [], False),
        ("failureLabelFilter=a:b,c:d&maxExceptions=1", [], False),
        ("failureLabelFilter=:b:", [], False),
    ],
)
def test_as_many_as_asked_for_are_listed(states: Any, asked: str, times: list[int], truncated: bool) -> None:
    """Newest first; a filter by labels, which nothing has, selects none. What is forgotten does not truncate."""
    body = told(states, asked, failures=numbered(3, 2, 1))
    assert [entry["timestamp"] for entry in body["exceptionHistory"]["entries"]] == times
    assert body["exceptionHistory"]["truncated"] is truncated
    assert body["streamgauge"] == {"forgotten": 3}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxExceptions", "abc"),
        ("maxExceptions", ""),
        ("maxExceptions", "-1"),
        ("maxExceptions", "2147483648"),
        ("maxExceptions", "1,x"),
        ("maxExceptions", "1.0"),
        ("failureLabelFilter", ""),
        ("failureLabelFilter", "a"),
        ("failureLabelFilter", "a:"),
        ("failureLabelFilter", "a:b:c"),
        ("failureLabelFilter", "a:b,c"),
    ],
)
def test_what_does_not_parse_is_refused(states: Any, name: str, value: str) -> None:
    """As Java reads numbers and splits words; Flink fails on a negative number, which is no better than a word."""
    with pytest.raises(UnresolvableParameter) as refused:
        told(states, f"{name}={value}")
    assert str(refused.value) == f'Cannot resolve query parameter ({name}) from value "{value}".'


def test_earlier_runs_are_told_too(states: Any) -> None:
    """Behind this one's."""
    body = told(states, failures=numbered(3), failures_before=numbered(2, 1))
    assert [entry["timestamp"] for entry in body["exceptionHistory"]["entries"]] == [3, 2, 1]
    assert body["streamgauge"] == {"forgotten": 6}


def test_unknown_job_is_refused(states: Any) -> None:
    """Whatever else is asked."""
    with pytest.raises(UnknownJob):
        exceptions.of_job(Query.parse(states.snapshot(), 0, {"jobid": states.JID}, b""))


def test_application_tells_what_ended_its_jobs(states: Any) -> None:
    """Oldest first; what was overcome, and what a run that goes on has behind it, ended none."""
    other = wire.App("app-2", "other", 1_000, "driver.test", "4.3.0", "0.1.0")
    snapshot = states.snapshot(
        states.app(),
        states.job(jid="1" * 32, state="FAILED", failures=numbered(9, 2)),
        states.job(jid="2" * 32, state="FAILED", failures=numbered(5)),
        states.job(jid="3" * 32, failures=numbered(4)),
        states.job(jid="4" * 32, state="FAILED"),
        states.job(jid="5" * 32, state="FAILED", failures=numbered(7), app=other),
    )
    query = Query.parse(snapshot, 0, {"applicationid": "app-1"}, b"")
    assert exceptions.of_application(query)["exceptionHistory"]["entries"] == [
        {"exceptionName": "a.A", "stacktrace": "a.A: 5", "timestamp": 5, "jobId": "2" * 32},
        {"exceptionName": "a.A", "stacktrace": "a.A: 9", "timestamp": 9, "jobId": "1" * 32},
    ]
