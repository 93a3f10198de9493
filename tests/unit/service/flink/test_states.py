"""Flink's states and times."""

from __future__ import annotations

from typing import Any

import pytest

from collector.tasks import EXECUTION_STATES, failure_of, task_counts, vertex_state
from service.flink.states import JOB_STATES, Span, job_span, subtask_state, timestamps, vertex_span
from streamgauge import wire


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "span"),
    [
        (100, -1, (100, -1, 900)),
        (100, 400, (100, 400, 300)),
        (-1, -1, (-1, -1, -1)),
        (-1, 400, (-1, -1, -1)),
        (2_000, -1, (2_000, -1, 0)),
        (400, 100, (400, 100, 0)),
        (0, 0, (0, 0, 0)),
    ],
)
def test_span_ends_at_its_end_or_now(start_ms: int, end_ms: int, span: tuple[int, int, int]) -> None:
    """−1 for what is not known; a duration is never negative, whatever the clocks say."""
    assert Span.of(start_ms, end_ms, 1_000) == Span(*span)


@pytest.mark.parametrize(
    ("job", "vertex"),
    [
        ("CREATED", "CREATED"),
        ("RUNNING", "RUNNING"),
        ("RESTARTING", "CREATED"),
        ("SUSPENDED", "RECONCILING"),
        ("FINISHED", "FINISHED"),
        ("CANCELED", "CANCELED"),
        ("FAILED", "CANCELED"),
    ],
)
def test_vertex_shares_the_fate_of_its_job(states: Any, job: str, vertex: str) -> None:
    """But one that is no longer in the plan is FINISHED, whatever the job is."""
    current, gone = states.vertex(), states.vertex(current=False)
    assert vertex_state(states.job(state=job), current) == vertex
    assert vertex_state(states.job(state=job), gone) == "FINISHED"
    assert vertex in EXECUTION_STATES


def test_tasks_are_counted_by_state(states: Any) -> None:
    """Those of the latest stage: a vertex that once was wider counts what it is now."""
    vertices = [states.vertex(5, parallelism=3), states.vertex(2, current=False)]
    assert task_counts(states.job(*vertices), vertices) == {"RUNNING": 3, "FINISHED": 2}


def test_job_lasts_from_its_first_run(states: Any) -> None:
    """Restarts belong to it; it ends when its driver says so, and not while it runs."""
    assert job_span(states.job(first_start_ms=100, end_ms=900), 1_000) == Span(100, -1, 900)
    assert job_span(states.job(state="FAILED", first_start_ms=100, end_ms=900), 1_000) == Span(100, 900, 800)


def test_timestamps_have_every_state_of_flinks(states: Any) -> None:
    """0 for never."""
    told = timestamps(states.job(first_start_ms=100, since_ms={"CREATED": 150, "RUNNING": 200}))
    assert set(told) == set(JOB_STATES)
    assert {state: when for state, when in told.items() if when} == {
        "INITIALIZING": 100,
        "CREATED": 150,
        "RUNNING": 200,
    }


def test_vertex_that_left_the_plan_ended_with_its_last_task(states: Any) -> None:
    """One that is still in it ends with the job only."""
    times = states.times(end_ms=[700, 650])
    gone = states.vertex(current=False, start_ms=100, subtasks=times)
    assert vertex_span(states.job(), gone, 1_000) == Span(100, 700, 600)
    assert vertex_span(states.job(), states.vertex(start_ms=100, subtasks=times), 1_000) == Span(100, -1, 900)
    unseen = states.vertex(current=False, start_ms=100)
    assert vertex_span(states.job(), unseen, 1_000) == Span(100, -1, 900)
    ended = states.job(state="FINISHED", end_ms=800)
    assert vertex_span(ended, states.vertex(start_ms=100), 1_000) == Span(100, 800, 700)


def failed(states: Any, *vertices: Any, **where: Any) -> Any:
    """A FAILED job with the failure that ended it, and one that came with it."""
    below = wire.Failure("a.B", "a.B: no", 700)
    top = wire.Failure("a.A", "a.A: no", 900, concurrent=(below,), **where)
    before = wire.Failure("a.C", "a.C: no", 100)
    return states.job(*vertices, state="FAILED", since_ms={"FAILED": 900}, failures=wire.Failures((top, before)))


def test_vertex_whose_task_failed_the_job_is_failed(states: Any) -> None:
    """And of its subtasks that one; all others have been stopped."""
    first, second = states.vertex(3, id="a" * 32), states.vertex(2, id="b" * 32)
    job = failed(states, first, second, vertex="a" * 32, subtask=1)
    assert [vertex_state(job, vertex) for vertex in (first, second)] == ["FAILED", "CANCELED"]
    assert [subtask_state(job, first, subtask) for subtask in range(3)] == ["CANCELED", "FAILED", "CANCELED"]
    assert subtask_state(job, second, 1) == "CANCELED"
    assert task_counts(job, [first, second]) == {"FAILED": 1, "CANCELED": 4}


def test_vertex_of_a_plan_that_broke_first_is_failed(states: Any) -> None:
    """Which vertices the latest plan has is told when it has been executed; this one never was."""
    vertex = states.vertex(2, current=False)
    assert vertex_state(failed(states, vertex, vertex=states.VERTEX, subtask=0), vertex) == "FAILED"


@pytest.mark.parametrize("where", [{}, {"vertex": "c" * 32}, {"vertex": "c" * 32, "subtask": 9}])
def test_no_vertex_is_failed_where_the_task_is_not_known(states: Any, where: dict[str, Any]) -> None:
    """No task failed, or one that the vertex does not have."""
    vertex = states.vertex(2)
    job = failed(states, vertex, **where)
    assert vertex_state(job, vertex) == subtask_state(job, vertex, 0) == "CANCELED"
    assert task_counts(job, [vertex]) == {"CANCELED": 2}


def test_failing_began_with_the_first_failure_of_the_batch(states: Any) -> None:
    """What was overcome before is none of it; a job that runs, or whose driver told none, is not failing."""
    assert timestamps(failed(states))["FAILING"] == 700
    assert timestamps(states.job(state="FAILED"))["FAILING"] == 0
    overcome = wire.Failures((wire.Failure("a.B", "a.B: no", 700),))
    running = states.job(failures=overcome)
    assert (failure_of(running), timestamps(running)["FAILING"]) == (None, 0)
