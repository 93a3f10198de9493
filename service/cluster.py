"""What all connected applications are together: Flink's cluster of TaskManagers and a JobManager."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from collector.store import AppState, Snapshot
from streamgauge import names, wire


def application_id(spark_id: str) -> str:
    """Return Flink's id, 32 hex digits, for the application that Spark calls `spark_id`: its MD5."""
    return hashlib.md5(spark_id.encode(), usedforsecurity=False).hexdigest()


def applications(snapshot: Snapshot) -> list[AppState]:
    """Return all applications that are held, the latest started first."""
    return sorted(snapshot.apps.values(), key=lambda app: app.attempt, reverse=True)


def connected(snapshot: Snapshot) -> list[AppState]:
    """
    Return the applications whose driver speaks, the latest started first.

    The executors of a silent driver are left out with it: nobody knows whether they are still there, as
    with a TaskManager whose heartbeats have stopped.
    """
    return [app for app in applications(snapshot) if not app.suspended]


def driver(snapshot: Snapshot) -> AppState | None:
    """
    Return the connected application whose driver stands for Flink's JobManager: the one that started last.

    The one heard last would change with every push.
    """
    return next(iter(connected(snapshot)), None)


def employers(apps: Iterable[AppState]) -> dict[str, AppState]:
    """Return the application of each executor of `apps`, by its id in order; of an id that two name, the first one."""
    found: dict[str, AppState] = {}
    for app in apps:
        for executor_id in app.executors:
            found.setdefault(executor_id, app)
    return {executor_id: found[executor_id] for executor_id in sorted(found)}


def executors(apps: Iterable[AppState]) -> list[wire.Executor]:
    """Return the executors of `apps`, in the order and by the choice of `employers`."""
    return [app.executors[executor_id] for executor_id, app in employers(apps).items()]


def find_employer(snapshot: Snapshot, executor_id: str) -> AppState | None:
    """Return the connected application of this executor, as `employers` would; None where there is none."""
    return next((app for app in connected(snapshot) if executor_id in app.executors), None)


def find_executor(snapshot: Snapshot, executor_id: str) -> wire.Executor | None:
    """Return the connected executor of this id; None where there is none."""
    app = find_employer(snapshot, executor_id)
    return None if app is None else app.executors[executor_id]


def running_tasks(executor: wire.Executor) -> int:
    """Return how many tasks run on an executor."""
    return sum(executor.running.values())


def free_slots(executor: wire.Executor) -> int:
    """Return how many slots of an executor have no task, ≥ 0."""
    return max(0, executor.slots - running_tasks(executor))


def cluster_metrics(apps: Iterable[AppState], jobs: Iterable[wire.JobState]) -> dict[str, wire.Scalar]:
    """
    Return the cluster's metrics by name.

    Args:
        apps: Whose executors are counted.
        jobs: The states of the jobs that are counted; those in RUNNING run.
    """
    known = executors(apps)
    return {
        names.TASK_SLOTS_TOTAL: sum(executor.slots for executor in known),
        names.TASK_SLOTS_AVAILABLE: sum(free_slots(executor) for executor in known),
        names.NUM_TASK_MANAGERS: len(known),
        names.NUM_RUNNING_JOBS: sum(state == "RUNNING" for state in jobs),
    }


def driver_metrics(snapshot: Snapshot) -> dict[str, wire.Scalar]:
    """
    Return what the JobManager's metrics are read from, by name.

    The cluster's figures cover every connected application; Status.* is that of `driver`.
    """
    apps = connected(snapshot)
    jobs = (job.state for job in snapshot.jobs.values())
    told = driver(snapshot)
    return {**({} if told is None else told.driver), **cluster_metrics(apps, jobs)}
