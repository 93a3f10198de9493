"""/metrics: the store under idiomatic names, in base units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from collector.bottleneck import bottleneck
from collector.store import Column, JobState, Snapshot, VertexState
from service.cluster import cluster_metrics, connected
from service.config import JOB_STATE_RETENTION_MS
from service.lifetime import job_metrics
from service.prometheus import text
from service.prometheus.blocks import Blocks
from service.prometheus.distributions import SERIES, expose_distributions
from service.prometheus.families import FAMILIES, Family
from service.prometheus.granularity import Granularity, tells
from service.prometheus.labels import labels
from service.prometheus.latencies import FAMILIES as LATENCIES
from service.prometheus.latencies import expose_histograms
from service.prometheus.splits import expose_splits
from service.prometheus.text import Exposition
from service.watermarks import standing
from streamgauge import catalogue
from streamgauge.wire import ENDED_STATES, Scalar

SILENT_STATES = ENDED_STATES | {"SUSPENDED"}
"""Nothing new is heard of a job in one of these, so its series are taken away."""
STATES = ("CREATED", "RUNNING", "RESTARTING", "SUSPENDED", "FAILED", "FINISHED", "CANCELED")


def expose(exposition: Exposition, snapshot: Snapshot, now_ms: int, granularity: Granularity, blocks: Blocks) -> None:
    """
    Add a snapshot to a page; any thread.

    Jobs that have ended or whose driver is silent are told by streamgauge_job_state only, and an ended one for
    JOB_STATE_RETENTION_MS. What is not known is not told, NaN included.

    Args:
        snapshot: What is exposed.
        now_ms: Wall time.
        granularity: `job`: jobs, drivers and executors; `vertex`: vertices too; `operator`: operators, with their
            latencies and splits; `subtask`: vertices and operators by subtask. Without it they are told as a whole: the
            sum of a counter and of timers that wait, the greatest value of any other gauge, the least watermark.
        blocks: Labels that were written for the scrape before.

    Raises:
        TooManySeries: the page has no room for them.
    """
    page = _Page(exposition, now_ms, granularity, blocks)
    jobs = list(snapshot.jobs.values())
    page.states(jobs)
    told = [job for job in jobs if job.state not in SILENT_STATES]
    for job in told:
        page.job(job)
    if tells(granularity, "operator"):
        vertices = [vertex for job in told for vertex in job.vertices.values()]
        exposition.foresee(sum(map(_distributed, vertices)))
        for job in told:
            page.distributed(job)
    apps = connected(snapshot)
    page.scalars("cluster", {}, cluster_metrics(apps, (job.state for job in jobs)))
    for app in apps:
        whose = {"application_id": app.app.id, "application_name": app.app.name}
        page.scalars("driver", whose, app.driver)
        page.scalars("hooks", whose, app.hooks)
        for executor in app.executors.values():
            page.scalars("executor", {**whose, "executor_id": executor.id}, executor.metrics)


class _Page:
    """One page on its way; see `expose` for what it is made of."""

    def __init__(self, exposition: Exposition, now_ms: int, granularity: Granularity, blocks: Blocks) -> None:
        self._exposition = exposition
        self._now_ms = now_ms
        self._granularity = granularity
        self._blocks = blocks

    def states(self, jobs: Iterable[JobState]) -> None:
        for job in jobs:
            if job.state in ENDED_STATES and self._now_ms - job.modified_ms > JOB_STATE_RETENTION_MS:
                continue
            whose = {"job_id": job.job.jid, "job_name": job.job.name, "job_type": job.job.type}
            series = ((labels({**whose, "state": state}), int(job.state == state)) for state in STATES)
            self._exposition.add(
                "streamgauge_job_state", "gauge", "1 for the state that the job is in, 0 for the others.", series
            )

    def job(self, job: JobState) -> None:
        whose = {"job_id": job.job.jid, "job_name": job.job.name}
        app = {"application_id": job.app.id, "application_name": job.app.name}
        self._exposition.add(
            "streamgauge_job_info", "gauge", "1; the application that runs the job.", [(labels({**whose, **app}), 1)]
        )
        self.scalars("job", whose, job_metrics(job, self._now_ms))
        if tells(self._granularity, "vertex"):
            for vertex in job.vertices.values():
                self._vertex(job, vertex, _named(vertex, whose))
            self._bottleneck(job, whose)

    def distributed(self, job: JobState) -> None:
        """Add what a vertex tells by source, split or bound: work that is not begun before it is known to fit."""
        for vertex in job.vertices.values():
            whose = _named(vertex, {"job_id": job.job.jid, "job_name": job.job.name})
            expose_histograms(self._exposition, job, vertex, whose, self._blocks)
            expose_distributions(self._exposition, vertex, whose, self._blocks)
            expose_splits(self._exposition, vertex, whose, self._now_ms, self._blocks)

    def scalars(self, scope: catalogue.Scope, whose: Mapping[str, str], metrics: Mapping[str, Scalar]) -> None:
        own = labels(whose)
        for name, value in metrics.items():
            family = FAMILIES.get((scope, name))
            if family is not None and not isinstance(value, str) and family.is_told(value):
                pairs = own if family.label is None else labels({**whose, **dict([family.label])})
                self._exposition.add(family.name, family.kind, family.help, [(pairs, family.scaled(value))])

    def _bottleneck(self, job: JobState, whose: Mapping[str, str]) -> None:
        found = bottleneck(job)
        if found is not None:
            self._exposition.add(
                "streamgauge_vertex_bottleneck",
                "gauge",
                "1 for the vertex that holds a backlogged job up, the busiest one; the others have none.",
                [(labels(_named(found.vertex, whose)), 1)],
            )

    def _vertex(self, job: JobState, vertex: VertexState, whose: Mapping[str, str]) -> None:
        self._columns("vertex", whose, vertex, vertex.columns)
        if not tells(self._granularity, "operator"):
            return
        for operator in vertex.vertex.operators:
            mine = {**whose, "operator_name": operator.name}
            self._columns("operator", mine, vertex, vertex.operators.get(operator.id, {}))
            self.scalars("coordinator", mine, vertex.coordinators.get(operator.id, {}))

    def _columns(
        self, scope: catalogue.Scope, whose: Mapping[str, str], vertex: VertexState, found: Mapping[str, Column]
    ) -> None:
        if not found:
            return
        key = tuple(whose.values())
        by_subtask = tells(self._granularity, "subtask")
        if by_subtask:
            make = partial(_subtasks, whose, vertex.size)
            pairs = partial(self._blocks.get, ("subtasks", *key), vertex.size, make)
        else:
            own = self._blocks.get(("whole", *key), None, partial(labels, whose))
        for name, column in found.items():
            family = FAMILIES.get((scope, name))
            if family is None:
                continue
            if by_subtask:
                told = text.Column(pairs, *_known(family, column))
                self._exposition.add_column(family.name, family.kind, family.help, key, told)
            else:
                value = _whole(family, column)
                if value is not None and family.is_told(value):
                    sample = (own, family.scaled(value))
                    self._exposition.add(family.name, family.kind, family.help, [sample])


def _named(vertex: VertexState, job: Mapping[str, str]) -> dict[str, str]:
    return {**job, "vertex_id": vertex.vertex.id, "vertex_name": vertex.vertex.name}


def _distributed(vertex: VertexState) -> int:
    """Return how many series a vertex has of what is distributed, at least."""
    histograms = len(LATENCIES) * len(vertex.latencies.histograms) + len(vertex.taps.distributions)
    return SERIES * histograms + sum(len(tap.splits) for tap in vertex.taps.taps)


def _subtasks(whose: Mapping[str, str], size: int) -> list[str]:
    return [labels({**whose, "subtask": str(index)}) for index in range(size)]


def _known(family: Family, column: Column) -> tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.float64]]:
    """Return which subtasks have something to tell, None for all, and what, in the base unit."""
    values: npt.NDArray[Any] = column.values
    there = column.present
    if family.is_watermark:
        there = standing(values) if there is None else there & standing(values)
    elif family.kind == "counter" or values.dtype.kind == "f":
        # Neither compares with NaN.
        counts = values >= 0 if family.kind == "counter" else values == values
        if not counts.all():
            there = counts if there is None else there & counts
    return there, (values if there is None else values[there]) / family.divisor


def _whole(family: Family, column: Column) -> int | float | None:
    """Return what stands for all subtasks; None where none is known."""
    known = column.values if column.present is None else column.values[column.present]
    if known.dtype.kind == "f":
        known = known[~np.isnan(known)]
    if family.kind == "counter":
        known = known[known >= 0]
    if family.whole == "sum":
        # As it is written; whole numbers would begin anew below 0 where they are too many.
        known = known.astype(np.float64)
    if not known.size:
        return None
    with np.errstate(all="ignore"):
        value: int | float = getattr(known, family.whole)().item()
    return value
