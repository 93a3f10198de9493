"""/metrics/flink: the store as Flink's Prometheus reporter names it, for dashboards and rules made for Flink."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial

from collector.store import AppState, Column, JobState, Snapshot, VertexState
from service.cluster import cluster_metrics, connected, free_slots
from service.flink.tap_metrics import split_gauges
from service.lifetime import job_metrics
from service.prometheus import text
from service.prometheus.blocks import Blocks
from service.prometheus.distributions import expose_distribution_summaries
from service.prometheus.exposition import SILENT_STATES
from service.prometheus.granularity import Granularity, tells
from service.prometheus.labels import Around, bounded, labels, pair
from service.prometheus.latencies import expose_summaries, summary_series
from service.prometheus.tasks import Task, executor_at, filtered, located, tasks
from service.prometheus.text import Exposition
from streamgauge import names, wire
from streamgauge.wire import Scalar

_OPERATOR = "taskmanager_job_task_operator"


def expose(exposition: Exposition, snapshot: Snapshot, now_ms: int, granularity: Granularity, blocks: Blocks) -> None:
    """
    Add a snapshot to a page; any thread.

    Every family is a gauge, also Flink's counters and meters, but histograms, which are summaries. Each subtask has its
    series; what is not known is absent. Series of jobs that have ended, or whose driver is silent, are gone. A
    JobManager is a host with drivers on it: its Status is that of the driver that started last, its jobs and slots are
    all of theirs.

    Args:
        now_ms: Wall time.
        granularity: `job`: JobManagers, TaskManagers and jobs; `vertex`: their tasks too; `operator`: those' operators;
            `subtask`: the latencies of each.
        blocks: Labels that were written for the scrape before.

    Raises:
        TooManySeries: the page has no room for them.

    Source: Flink 2.3's `PrometheusReporter`, and a recorded scrape of it.
    """
    apps = connected(snapshot)
    jobs = list(snapshot.jobs.values())
    _job_managers(exposition, apps, jobs)
    told = [job for job in jobs if job.state not in SILENT_STATES]
    for job in told:
        _job(exposition, job, now_ms)
    for app in apps:
        for executor in app.executors.values():
            whose = {**executor_at(executor.endpoint), "tm_id": filtered(bounded(executor.id))}
            metrics = {**executor.metrics, names.AVAILABLE_SLOTS: free_slots(executor)}
            _scalars(exposition, "taskmanager", whose, metrics)
    if not tells(granularity, "vertex"):
        return
    vertices = []
    for job in told:
        owner = snapshot.apps.get(job.app.id)
        executors = {} if owner is None else owner.executors
        vertices += [_Vertex(job, vertex, executors, blocks) for vertex in job.vertices.values() if vertex.size]
    for each in vertices:
        each.columns(exposition, granularity)
    # What is not put off until the page is rendered comes when the rest is known to fit.
    if tells(granularity, "subtask"):
        exposition.foresee(sum(summary_series(each.job, each.vertex) for each in vertices))
        for each in vertices:
            expose_summaries(exposition, each.job, each.vertex, each.tasks(), blocks)
    if tells(granularity, "operator"):
        for each in vertices:
            each.distributed(exposition)


def _job_managers(exposition: Exposition, apps: list[AppState], jobs: list[JobState]) -> None:
    hosts: dict[str, list[AppState]] = {}
    for app in apps:
        hosts.setdefault(app.app.host, []).append(app)
    for name, drivers in hosts.items():
        ids = {app.app.id for app in drivers}
        cluster = cluster_metrics(drivers, (job.state for job in jobs if job.app.id in ids))
        _scalars(exposition, "jobmanager", located(name, name), {**drivers[0].driver, **cluster})


def _job(exposition: Exposition, job: JobState, now_ms: int) -> None:
    whose = {**located(job.app.host, job.app.host), "job_id": job.job.jid, "job_name": filtered(bounded(job.job.name))}
    metrics = job_metrics(job, now_ms)
    # Flink before 2.0 told restarts under both names, and most dashboards ask for the older one.
    metrics[names.FULL_RESTARTS] = metrics[names.NUM_RESTARTS]
    _scalars(exposition, "jobmanager_job", whose, metrics)


class _Vertex:
    """One vertex on its way to a page; its labels are written when they are first asked for."""

    def __init__(
        self, job: JobState, vertex: VertexState, executors: Mapping[str, wire.Executor], blocks: Blocks
    ) -> None:
        self.job = job
        self.vertex = vertex
        self.tasks = cache(partial(tasks, job, vertex, executors, blocks))
        self._blocks = blocks
        self._key = (job.job.jid, vertex.vertex.id)

    def columns(self, exposition: Exposition, granularity: Granularity) -> None:
        _columns(exposition, "taskmanager_job_task", self.vertex.columns, self._key, self._joined)
        if tells(granularity, "operator"):
            for operator in self.vertex.vertex.operators:
                found = self.vertex.operators.get(operator.id, {})
                _columns(exposition, _OPERATOR, found, (*self._key, operator.id), partial(self._of_operator, operator))

    def distributed(self, exposition: Exposition) -> None:
        taps = self.vertex.taps
        told = {tap.operator for tap in taps.taps} | {operator for operator, _ in taps.distributions}
        for operator in self.vertex.vertex.operators:
            if operator.id in told:
                _split_gauges(exposition, self.vertex, operator, self.tasks())
                first = self.tasks()[0]
                before, after = f"{first.head},{_named(operator)}", first.tail
                around = Around(f"{before},", f",{after}", f"{before},{after}")
                expose_distribution_summaries(exposition, _OPERATOR, self.vertex, operator.id, around)

    def _joined(self) -> list[str]:
        whose = self.tasks()
        return self._blocks.get((*self._key, ""), whose, lambda: [f"{head},{tail}" for head, tail in whose])

    def _of_operator(self, operator: wire.Operator) -> list[str]:
        whose, named = self.tasks(), _named(operator)
        make = partial(_with, named, whose)
        return self._blocks.get((*self._key, operator.id), (operator, whose), make)


def _with(named: str, whose: Sequence[Task]) -> list[str]:
    return [f"{head},{named},{tail}" for head, tail in whose]


def _named(operator: wire.Operator) -> str:
    name = filtered(bounded(operator.name))
    return f"{pair('operator_id', operator.id)},{pair('operator_name', name)}"


def _split_gauges(exposition: Exposition, vertex: VertexState, operator: wire.Operator, whose: Sequence[Task]) -> None:
    """
    Add the split gauges of an operator; a split's id is a label.

    Source: Flink 2.3, `InternalSourceSplitMetricGroup`, `PrometheusReporter`: of `addGroup(key, value)` only the key
    is part of the name.
    """
    named = _named(operator)
    for tap in vertex.taps.taps:
        if tap.operator == operator.id:
            for subtask, split, metric, value in split_gauges(vertex, tap):
                name = names.SPLIT + metric
                head, tail = whose[subtask]
                pairs = f"{head},{named},{pair('split', filtered(bounded(split)))},{tail}"
                exposition.add(_name(_OPERATOR, name), "gauge", _help(_OPERATOR, name), [(pairs, value)])


def _columns(
    exposition: Exposition,
    scope: str,
    found: Mapping[str, Column],
    whose: Hashable,
    pairs: Callable[[], Sequence[str]],
) -> None:
    for name, column in found.items():
        values = column.values if column.present is None else column.values[column.present]
        told = text.Column(pairs, column.present, values.astype(float))
        exposition.add_column(_name(scope, name), "gauge", _help(scope, name), whose, told)


def _scalars(exposition: Exposition, scope: str, whose: Mapping[str, str], metrics: Mapping[str, Scalar]) -> None:
    pairs = labels(whose)
    for name, value in metrics.items():
        if not isinstance(value, str):
            exposition.add(_name(scope, name), "gauge", _help(scope, name), [(pairs, value)])


def _name(scope: str, metric: str) -> str:
    return filtered(f"flink_{scope}_{metric}")


def _help(scope: str, metric: str) -> str:
    # In Flink the words before the last dot are groups, and so belong to the scope.
    groups, dot, name = metric.rpartition(".")
    return f"{name} (scope: {filtered(scope + '_' + groups if dot else scope)})"
