"""Which vertex holds a job up."""

from __future__ import annotations

from typing import Any

import pytest

from collector.bottleneck import backlogged, bottleneck
from streamgauge import names

NAN = float("nan")
UP = {names.BACKLOGGED: True}


def vertex(states: Any, number: int, *busy: float | None, **changes: Any) -> Any:
    columns = {names.BUSY_TIME: states.column(*busy)} if busy else {}
    return states.vertex(len(busy), id=f"{number:032x}", columns=columns, **changes)


def named(job: Any) -> tuple[int, float] | None:
    found = bottleneck(job)
    return None if found is None else (int(found.vertex.vertex.id, 16), found.busy_ratio)


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ([(100.0, 0.0), (900.0, 0.0), (500.0, 500.0)], (1, 0.9)),
        ([(900.0, 100.0), (900.0, 200.0), (900.0, 0.0)], (1, 0.9)),
        ([(700.0,)], (0, 0.7)),
        ([(NAN, 1.0), (NAN, None), ()], (0, 0.001)),
        ([(0.0,), (0.0,)], None),
        ([(NAN,), ()], None),
        ([], None),
    ],
    ids=["busiest subtask", "greater mean", "only one", "what is not known is passed over", "idle", "unknown", "none"],
)
def test_bottleneck_is_the_vertex_with_the_greatest_busy_share(
    states: Any, busy: list[tuple[float | None, ...]], expected: tuple[int, float] | None
) -> None:
    """Over its subtasks; a job of one vertex has one too."""
    vertices = [vertex(states, number, *values) for number, values in enumerate(busy)]
    assert named(states.job(*vertices, metrics=UP)) == expected


def test_a_vertex_that_left_the_plan_is_no_bottleneck(states: Any) -> None:
    """Its last share stands still."""
    gone, slow = vertex(states, 1, 999.0, current=False), vertex(states, 2, 5.0)
    assert named(states.job(gone, slow, metrics=UP)) == (2, 0.005)


@pytest.mark.parametrize(
    ("metrics", "state", "expected"),
    [
        (UP, "RUNNING", True),
        ({names.BACKLOGGED: False}, "RUNNING", False),
        ({}, "RUNNING", None),
        ({names.BACKLOGGED: "true"}, "RUNNING", None),
        (UP, "SUSPENDED", None),
        (UP, "RESTARTING", None),
        (UP, "FAILED", None),
    ],
)
def test_only_a_backlogged_job_has_one(
    states: Any, metrics: dict[str, bool | str], state: str, expected: bool | None
) -> None:
    """A busy job that keeps up is in health; of one that does not run nothing is known."""
    job = states.job(vertex(states, 1, 999.0), metrics=metrics, state=state)
    assert backlogged(job) is expected
    assert (bottleneck(job) is not None) is (expected is True)
