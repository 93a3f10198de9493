"""/metrics/flink: the store as Flink's Prometheus reporter names it, for dashboards and rules made for Flink."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collector import columns
from collector.store import AppState, Column, JobState, Snapshot, VertexState
from service.cluster import cluster_metrics, connected
from service.flink.tap_metrics import split_gauges
from service.lifetime import job_metrics
from service.prometheus.distributions import expose_distribution_summaries
from service.prometheus.exposition import SILENT_STATES
from service.prometheus.latencies import expose_summaries
from service.prometheus.text import Exposition, labels
from streamgauge import names
from streamgauge.wire import Executor, Scalar

_OPERATOR = "taskmanager_job_task_operator"
_UNWANTED = re.compile(r"[^a-zA-Z0-9:_]")


def filtered(text: str) -> str:
    """Return a name or label value as the reporter writes it: letters, digits, ':' and '_', all else '_'."""
    return _UNWANTED.sub("_", text)


def expose(snapshot: Snapshot, now_ms: int) -> bytes:
    """
    Render a snapshot; any thread.

    Every family is a gauge, also Flink's counters and meters, but histograms, which are summaries. Each subtask has its
    series; what is not known is absent. Series of jobs that have ended, or whose driver is silent, are gone. A
    JobManager is a host with drivers on it: its Status is that of the driver that started last, its jobs and slots are
    all of theirs.

    Source: Flink 2.3's `PrometheusReporter`, and a recorded scrape of it.
    """
    exposition = Exposition()
    apps = connected(snapshot)
    jobs = list(snapshot.jobs.values())
    _job_managers(exposition, apps, jobs)
    for job in jobs:
        if job.state not in SILENT_STATES:
            whose = {"host": job.app.host, "job_id": job.job.jid, "job_name": job.job.name}
            _scalars(exposition, "jobmanager_job", whose, job_metrics(job, now_ms))
    for app in apps:
        for executor in app.executors.values():
            whose = {"host": _host(executor), "tm_id": executor.id}
            _scalars(exposition, "taskmanager", whose, executor.metrics)
    for job in jobs:
        if job.state not in SILENT_STATES:
            owner = snapshot.apps.get(job.app.id)
            for vertex in job.vertices.values():
                _vertex(exposition, job, vertex, {} if owner is None else owner.executors)
    return exposition.render()


def _job_managers(exposition: Exposition, apps: list[AppState], jobs: list[JobState]) -> None:
    hosts: dict[str, list[AppState]] = {}
    for app in apps:
        hosts.setdefault(app.app.host, []).append(app)
    for host, drivers in hosts.items():
        ids = {app.app.id for app in drivers}
        cluster = cluster_metrics(drivers, (job.state for job in jobs if job.app.id in ids))
        _scalars(exposition, "jobmanager", {"host": host}, {**drivers[0].driver, **cluster})


def _host(executor: Executor) -> str:
    return executor.endpoint.rpartition(":")[0] or executor.endpoint


def _vertex(exposition: Exposition, job: JobState, vertex: VertexState, executors: Mapping[str, Executor]) -> None:
    tasks = [labels(_task(job, vertex, index, executors)) for index in range(vertex.size)]
    _columns(exposition, "taskmanager_job_task", vertex.columns, tasks)
    expose_summaries(exposition, job, vertex, tasks)
    told = {tap.operator for tap in vertex.taps.taps} | {operator for operator, _ in vertex.taps.distributions}
    for operator in vertex.vertex.operators:
        found = vertex.operators.get(operator.id, {})
        if tasks and (found or operator.id in told):
            whose = labels({"operator_id": operator.id, "operator_name": filtered(operator.name)})
            mine = [f"{task},{whose}" for task in tasks]
            _columns(exposition, _OPERATOR, found, mine)
            _split_gauges(exposition, vertex, operator.id, mine)
            expose_distribution_summaries(exposition, _OPERATOR, vertex, operator.id, mine[0])


def _split_gauges(exposition: Exposition, vertex: VertexState, operator: str, tasks: list[str]) -> None:
    """
    Add the split gauges of an operator; a split's id is a label.

    Source: Flink 2.3, `InternalSourceSplitMetricGroup`, `PrometheusReporter`: of `addGroup(key, value)` only the key
    is part of the name.
    """
    for tap in vertex.taps.taps:
        if tap.operator == operator:
            for subtask, split, metric, value in split_gauges(vertex, tap):
                name = names.SPLIT + metric
                pairs = f"{tasks[subtask]},{labels({'split': filtered(split)})}"
                sample = (pairs, int(value) if isinstance(value, bool) else value)
                exposition.add(_name(_OPERATOR, name), "gauge", _help(_OPERATOR, name), [sample])


def _task(job: JobState, vertex: VertexState, index: int, executors: Mapping[str, Executor]) -> dict[str, str]:
    executor_id, attempt = "", 0
    if vertex.subtasks is not None:
        attempt = int(vertex.subtasks.attempt[index])
        number = int(vertex.subtasks.executor[index])
        executor_id = vertex.subtasks.executors[number] if number >= 0 else ""
    executor = executors.get(executor_id)
    task = {
        "host": "" if executor is None else _host(executor),
        "tm_id": executor_id,
        "job_id": job.job.jid,
        "job_name": job.job.name,
        "task_id": vertex.vertex.id,
        "task_name": vertex.vertex.name,
        "task_attempt_id": f"{job.job.jid}_{vertex.vertex.id}_{index}_{attempt}",
        "task_attempt_num": str(attempt),
        "subtask_index": str(index),
    }
    return {name: filtered(value) for name, value in task.items()}


def _columns(exposition: Exposition, scope: str, found: Mapping[str, Column], whose: list[str]) -> None:
    for name, column in found.items():
        there = columns.subtasks(column)
        values = column.values[there].tolist()
        samples = zip((whose[index] for index in there.tolist()), values, strict=True)
        exposition.add(_name(scope, name), "gauge", _help(scope, name), samples)


def _scalars(exposition: Exposition, scope: str, whose: Mapping[str, str], metrics: Mapping[str, Scalar]) -> None:
    pairs = labels({name: filtered(value) for name, value in whose.items()})
    for name, value in metrics.items():
        if not isinstance(value, str):
            sample = (pairs, int(value) if isinstance(value, bool) else value)
            exposition.add(_name(scope, name), "gauge", _help(scope, name), [sample])


def _name(scope: str, metric: str) -> str:
    return filtered(f"flink_{scope}_{metric}")


def _help(scope: str, metric: str) -> str:
    # In Flink the words before the last dot are groups, and so belong to the scope.
    groups, dot, name = metric.rpartition(".")
    return f"{name} (scope: {filtered(scope + '_' + groups if dot else scope)})"
