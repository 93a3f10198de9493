"""Applications together are a cluster."""

from __future__ import annotations

from typing import Any

from service.cluster import cluster_metrics, connected, driver_metrics, executors, find_executor, free_slots
from streamgauge import names


def test_silent_drivers_and_their_executors_do_not_count(states: Any) -> None:
    """As a TaskManager whose heartbeats have stopped."""
    there = states.app(states.executor("a-0", running={"": 1}), id="a")
    silent = states.app(states.executor("b-0"), id="b", suspended=True)
    apps = connected(states.snapshot(there, silent))
    assert [app.app.id for app in apps] == ["a"]
    assert cluster_metrics(apps, ["RUNNING", "RESTARTING", "SUSPENDED", "FAILED"]) == {
        names.TASK_SLOTS_TOTAL: 4,
        names.TASK_SLOTS_AVAILABLE: 3,
        names.NUM_TASK_MANAGERS: 1,
        names.NUM_RUNNING_JOBS: 1,
    }


def test_the_driver_that_started_last_is_the_jobmanager(states: Any) -> None:
    """Its figures do not jump to and fro between drivers; with none connected only the cluster's are left."""
    old = states.app(id="old", start_ms=1, driver={names.THREADS: 10}, seen_ns=99)
    new = states.app(id="new", start_ms=2, driver={names.THREADS: 20}, seen_ns=1)
    assert driver_metrics(states.snapshot(old, new))[names.THREADS] == 20
    assert driver_metrics(states.snapshot(old))[names.THREADS] == 10
    assert driver_metrics(states.snapshot())[names.NUM_TASK_MANAGERS] == 0


def test_an_executor_is_counted_once(states: Any) -> None:
    """Two applications that name the same one, the later counts; in order of the ids."""
    old = states.app(states.executor("x-1", cores=1), states.executor("x-0"), id="old", start_ms=1)
    new = states.app(states.executor("x-1", cores=8), id="new", start_ms=2)
    found = executors(connected(states.snapshot(old, new)))
    assert [(each.id, each.cores) for each in found] == [("x-0", 4), ("x-1", 8)]


def test_an_executor_is_found_over_all_connected_applications(states: Any) -> None:
    """Of two that name it, the later one's; none of a silent driver."""
    old = states.app(states.executor("x-1", cores=1), id="old", start_ms=1)
    new = states.app(states.executor("x-1", cores=8), id="new", start_ms=2)
    silent = states.app(states.executor("y-1"), id="silent", suspended=True)
    snapshot = states.snapshot(old, new, silent)
    found = find_executor(snapshot, "x-1")
    assert found is not None
    assert (found.id, found.cores) == ("x-1", 8)
    assert find_executor(snapshot, "y-1") is None


def test_more_tasks_than_slots_leave_none_free(states: Any) -> None:
    """Between two events a task may seem to run twice; free slots are never negative."""
    assert free_slots(states.executor(slots=2, running={"a": 2, "b": 1})) == 0
