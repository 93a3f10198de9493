"""A job's times follow from its states and the clock."""

from __future__ import annotations

from typing import Any

import pytest

from service.lifetime import job_metrics
from streamgauge import names

TIMES = (names.UPTIME, names.RUNNING_TIME, names.RESTARTING_TIME, names.DOWNTIME)


@pytest.mark.parametrize(
    ("state", "times"),
    [
        ("RUNNING", (700, 700, 0, 0)),
        ("RESTARTING", (0, 0, 700, 700)),
        ("SUSPENDED", (0, 0, 0, 700)),
        ("CREATED", (0, 0, 0, 0)),
        ("FINISHED", (0, 0, 0, -1)),
        ("CANCELED", (0, 0, 0, -1)),
        ("FAILED", (0, 0, 0, -1)),
    ],
)
def test_times_of_each_state(states: Any, state: str, times: tuple[int, ...]) -> None:
    """Time since the job came into its state, told under the name that the state has in Flink."""
    metrics = job_metrics(states.job(state=state, since_ms={state: 1_300}), 2_000)
    assert tuple(metrics[name] for name in TIMES) == times


def test_a_clock_behind_the_drivers_gives_zero(states: Any) -> None:
    """A time is never negative, but for Flink's −1."""
    assert job_metrics(states.job(since_ms={"RUNNING": 9_000}), 5_000)[names.UPTIME] == 0


def test_state_without_a_time_is_timed_by_its_arrival(states: Any) -> None:
    """A driver that does not say when: the collector knows when it heard."""
    assert job_metrics(states.job(since_ms={}, modified_ms=4_000), 5_000)[names.UPTIME] == 1_000


def test_what_the_driver_told_is_kept_and_restarts_are_counted(states: Any) -> None:
    """The driver's own metrics are there; the collector counts restarts, whatever a driver says."""
    metrics = job_metrics(states.job(restarts=2, metrics={"numInputRows": 5, names.NUM_RESTARTS: 9}), 5_000)
    assert (metrics["numInputRows"], metrics[names.NUM_RESTARTS]) == (5, 2)
