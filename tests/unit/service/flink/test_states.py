"""Flink's states and times."""

from __future__ import annotations

from typing import Any

import pytest

from service.flink.states import (
    EXECUTION_STATES,
    JOB_STATES,
    Span,
    job_span,
    task_counts,
    timestamps,
    vertex_span,
    vertex_state,
)


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
