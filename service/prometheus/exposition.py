"""/metrics: the store under idiomatic names, in base units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from collector import columns
from collector.store import Column, JobState, Snapshot, VertexState
from service.bottleneck import bottleneck
from service.cluster import cluster_metrics, connected
from service.config import JOB_STATE_RETENTION_MS
from service.lifetime import job_metrics
from service.prometheus.distributions import expose_distributions
from service.prometheus.families import FAMILIES, Family
from service.prometheus.latencies import expose_histograms
from service.prometheus.splits import expose_splits
from service.prometheus.text import Exposition, Value, labels
from service.watermarks import standing_ms
from streamgauge import catalogue
from streamgauge.wire import ENDED_STATES, Scalar

SILENT_STATES = ENDED_STATES | {"SUSPENDED"}
"""Nothing new is heard of a job in one of these, so its series are taken away."""
STATES = ("CREATED", "RUNNING", "RESTARTING", "SUSPENDED", "FAILED", "FINISHED", "CANCELED")

Samples = Iterable[tuple[str, Value]]


def expose(snapshot: Snapshot, now_ms: int, by_subtask: bool) -> bytes:
    """
    Render a snapshot; any thread.

    Jobs that have ended or whose driver is silent are told by streamgauge_job_state only, and an ended one for
    JOB_STATE_RETENTION_MS. What is not known is not told, NaN included.

    Args:
        snapshot: What is exposed.
        now_ms: Wall time.
        by_subtask: A series a subtask; else one a vertex or operator: the sum of a counter and of
            timers that wait, the greatest value of any other gauge, the least watermark.
    """
    exposition = Exposition()
    jobs = list(snapshot.jobs.values())
    _states(exposition, jobs, now_ms)
    for job in jobs:
        if job.state not in SILENT_STATES:
            whose = {"job_id": job.job.jid, "job_name": job.job.name}
            _scalars(exposition, "job", labels(whose), job_metrics(job, now_ms))
            for vertex in job.vertices.values():
                _vertex(exposition, job, vertex, whose, by_subtask)
                expose_splits(exposition, vertex, _named(vertex, whose), now_ms)
            _bottleneck(exposition, job, whose)
    apps = connected(snapshot)
    _scalars(exposition, "cluster", "", cluster_metrics(apps, (job.state for job in jobs)))
    for app in apps:
        whose = {"application_id": app.app.id, "application_name": app.app.name}
        _scalars(exposition, "driver", labels(whose), app.driver)
        _scalars(exposition, "hooks", labels(whose), app.hooks)
        for executor in app.executors.values():
            _scalars(exposition, "executor", labels({**whose, "executor_id": executor.id}), executor.metrics)
    return exposition.render()


def _states(exposition: Exposition, jobs: Iterable[JobState], now_ms: int) -> None:
    for job in jobs:
        if job.state in ENDED_STATES and now_ms - job.modified_ms > JOB_STATE_RETENTION_MS:
            continue
        exposition.add(
            "streamgauge_job_state",
            "gauge",
            "1 for the state that the job is in, 0 for the others.",
            (
                (labels({"job_id": job.job.jid, "job_name": job.job.name, "state": state}), int(job.state == state))
                for state in STATES
            ),
        )


def _scalars(exposition: Exposition, scope: catalogue.Scope, whose: str, metrics: Mapping[str, Scalar]) -> None:
    for name, value in metrics.items():
        family = FAMILIES.get((scope, name))
        if family is not None and not isinstance(value, str) and value == value:
            mine = ",".join(filter(None, (whose, family.label)))
            _add(exposition, family, [(mine, int(value) if isinstance(value, bool) else value)])


def _bottleneck(exposition: Exposition, job: JobState, whose: Mapping[str, str]) -> None:
    found = bottleneck(job)
    if found is not None:
        exposition.add(
            "streamgauge_vertex_bottleneck",
            "gauge",
            "1 for the vertex that holds a backlogged job up, the busiest one; the others have none.",
            [(labels(_named(found.vertex, whose)), 1)],
        )


def _named(vertex: VertexState, job: Mapping[str, str]) -> dict[str, str]:
    return {**job, "vertex_id": vertex.vertex.id, "vertex_name": vertex.vertex.name}


def _vertex(
    exposition: Exposition, job: JobState, vertex: VertexState, query: Mapping[str, str], by_subtask: bool
) -> None:
    whose = _named(vertex, query)
    _columns(exposition, "vertex", labels(whose), vertex.columns, by_subtask)
    for operator in vertex.vertex.operators:
        mine = labels({**whose, "operator_name": operator.name})
        _columns(exposition, "operator", mine, vertex.operators.get(operator.id, {}), by_subtask)
        _scalars(exposition, "coordinator", mine, vertex.coordinators.get(operator.id, {}))
    expose_histograms(exposition, job, vertex, whose)
    expose_distributions(exposition, vertex, whose)


def _columns(
    exposition: Exposition, scope: catalogue.Scope, whose: str, found: Mapping[str, Column], by_subtask: bool
) -> None:
    for name, column in found.items():
        family = FAMILIES.get((scope, name))
        if family is not None:
            samples = _subtasks(column, whose, family) if by_subtask else _whole(column, whose, family)
            _add(exposition, family, samples)


def _subtasks(column: Column, whose: str, family: Family) -> Iterator[tuple[str, Value]]:
    there = columns.subtasks(column)
    for index, value in zip(there.tolist(), column.values[there].tolist(), strict=True):
        if value == value and _is_told(family, value):
            yield f'{whose},subtask="{index}"', value


def _whole(column: Column, whose: str, family: Family) -> Iterator[tuple[str, Value]]:
    known = column.values[columns.subtasks(column)]
    known = known[~np.isnan(known)]
    if not known.size:
        return
    with np.errstate(all="ignore"):
        value = getattr(known, family.whole)().item()
    if _is_told(family, value):
        yield whose, value


def _is_told(family: Family, value: Value) -> bool:
    return not family.is_watermark or (math.isfinite(value) and standing_ms(int(value)) is not None)


def _add(exposition: Exposition, family: Family, samples: Samples) -> None:
    exposition.add(family.name, family.kind, family.help, ((whose, family.scaled(value)) for whose, value in samples))
