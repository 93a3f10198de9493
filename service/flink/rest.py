"""The Flink REST: which path is answered by what, and Flink's way with paths, methods and failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from collector.archive import Archive
from collector.history import NO_HISTORY, History
from collector.store import MetricStore
from service.errors import JSON, unrouted
from service.flink import (
    accumulators,
    aggregates,
    applications,
    backpressure,
    checkpoint_config,
    checkpoint_tasks,
    checkpoints,
    compare,
    configuration,
    drivers,
    exceptions,
    history,
    jobs,
    latency,
    logs,
    metrics,
    operations,
    overview,
    plan,
    rescales,
    results,
    runs,
    samples,
    splits,
    subtasks,
    taskmanagers,
    timers,
    vertices,
)
from service.flink.query import Query
from streamgauge.clock import Clock

Handler = Callable[[Query], object]

_JOB = "/jobs/:jobid"
_VERTEX = f"{_JOB}/vertices/:vertexid"
_CHECKPOINT = f"{_JOB}/checkpoints/details/:checkpointid"
_SUBTASK = f"{_VERTEX}/subtasks/:subtaskindex"
_TASKMANAGER = "/taskmanagers/:taskmanagerid"

RESOURCES: dict[str, Handler] = {
    "/config": overview.config,
    "/overview": overview.overview,
    "/jobs": jobs.ids,
    "/jobs/overview": jobs.overview,
    _JOB: jobs.detail,
    f"{_JOB}/config": configuration.job,
    f"{_JOB}/plan": plan.job_plan,
    f"{_JOB}/exceptions": exceptions.of_job,
    f"{_JOB}/status": results.status,
    f"{_JOB}/execution-result": results.execution_result,
    f"{_JOB}/rescales/config": rescales.config,
    f"{_JOB}/rescales/history": rescales.records,
    f"{_JOB}/rescales/overview": rescales.records,
    f"{_JOB}/rescales/summary": rescales.records,
    f"{_JOB}/rescales/details/:rescaleuuid": rescales.details,
    f"{_JOB}/resource-requirements": rescales.requirements,
    f"{_JOB}/jobmanager/config": configuration.job_driver_config,
    f"{_JOB}/jobmanager/environment": configuration.job_driver_environment,
    f"{_JOB}/jobmanager/log-url": logs.page,
    f"{_JOB}/taskmanagers/:taskmanagerid/log-url": logs.page,
    _VERTEX: vertices.detail,
    f"{_JOB}/checkpoints": checkpoints.overview,
    f"{_JOB}/checkpoints/config": checkpoint_config.config,
    _CHECKPOINT: checkpoints.detail,
    f"{_CHECKPOINT}/subtasks/:vertexid": checkpoint_tasks.detail,
    f"{_VERTEX}/taskmanagers": vertices.taskmanagers,
    f"{_VERTEX}/subtasktimes": subtasks.times,
    _SUBTASK: subtasks.current,
    f"{_SUBTASK}/attempts/:attempt": subtasks.attempt,
    f"{_VERTEX}/backpressure": backpressure.vertex,
    f"{_VERTEX}/watermarks": metrics.watermarks,
    f"{_VERTEX}/jm-operator-metrics": metrics.coordinators,
    f"{_VERTEX}/flamegraph": samples.flamegraph,
    "/applications/overview": applications.overview,
    "/applications/:applicationid": applications.detail,
    "/applications/:applicationid/jobmanager/config": configuration.application_config,
    "/applications/:applicationid/exceptions": exceptions.of_application,
    "/datasets": overview.datasets,
    f"{_JOB}/accumulators": accumulators.job,
    f"{_VERTEX}/accumulators": accumulators.vertex,
    f"{_VERTEX}/subtasks/accumulators": accumulators.subtasks,
    f"{_SUBTASK}/attempts/:attempt/accumulators": accumulators.attempt,
    "/taskmanagers": taskmanagers.overview,
    _TASKMANAGER: taskmanagers.detail,
    "/jobs/metrics": aggregates.jobs,
    f"{_JOB}/metrics": metrics.job,
    f"{_VERTEX}/metrics": metrics.vertex,
    f"{_VERTEX}/subtasks/metrics": aggregates.subtasks,
    f"{_SUBTASK}/metrics": metrics.subtask,
    "/taskmanagers/metrics": aggregates.taskmanagers,
    f"{_TASKMANAGER}/metrics": metrics.taskmanager,
    "/jobmanager/config": configuration.cluster_config,
    "/jobmanager/environment": configuration.cluster_environment,
    "/jobmanager/metrics": metrics.jobmanager,
    "/jobmanager/log": logs.jobmanager_file,
    "/jobmanager/stdout": logs.jobmanager_file,
    "/jobmanager/logs": logs.jobmanager,
    "/jobmanager/logs/:filename": logs.jobmanager_file,
    "/jobmanager/thread-dump": samples.driver_threads,
    f"{_TASKMANAGER}/log": logs.taskmanager_file,
    f"{_TASKMANAGER}/stdout": logs.taskmanager_file,
    f"{_TASKMANAGER}/logs": logs.taskmanager,
    f"{_TASKMANAGER}/logs/:filename": logs.taskmanager_file,
    f"{_TASKMANAGER}/thread-dump": samples.executor_threads,
    f"{_JOB}/checkpoints/:triggerid": operations.poll,
    f"{_JOB}/savepoints/:triggerid": operations.poll,
    f"{_JOB}/rescaling/:triggerid": operations.poll,
    "/savepoint-disposal/:triggerid": operations.poll,
    "/datasets/delete/:triggerid": operations.poll,
    f"{_JOB}/latency": latency.job,
    f"{_VERTEX}/latency": latency.vertex,
    f"{_VERTEX}/splits": splits.vertex,
    f"{_VERTEX}/timers": timers.vertex,
    "/jobs/history": history.jobs,
    f"{_JOB}/history": history.job,
    f"{_JOB}/runs": runs.of_job,
    f"{_JOB}/compare": compare.of_job,
    f"{_VERTEX}/history": history.vertex,
    "/streamgauge/drivers": drivers.overview,
}
"""Every path that is answered, in Flink's notation."""

OURS = frozenset(
    {
        *(f"{_JOB}/{ours}" for ours in ("latency", "history", "runs", "compare")),
        *(f"{_VERTEX}/{ours}" for ours in ("latency", "splits", "timers", "history")),
        "/jobs/history",
        "/streamgauge/drivers",
    }
)
"""Those that Flink does not have."""

WAITING = frozenset({f"{_JOB}/compare"})
"""Those whose handlers read the archive themselves, and are answered by a worker thread for that."""

LISTED = frozenset({f"{_JOB}/runs"})
"""Those of a job that are told without opening what is archived of it."""

_READERS = 4
"""Threads that read the archive at a time: pushes, which have threads too, never wait for a database."""


@dataclass(slots=True)
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    parameter: str = ""
    resource: str = ""


def _tree(resources: dict[str, Handler]) -> _Node:
    root = _Node()
    for resource in resources:
        node = root
        for segment in resource.strip("/").split("/"):
            if segment.startswith(":"):
                node.parameter = segment[1:]
            node = node.children.setdefault(segment if segment[0] != ":" else ":", _Node())
        node.resource = resource
    return root


class FlinkRest:
    """
    An ASGI application that answers as Flink's REST does, and to all else as Flink does.

    '/v1' in front is optional, doubled and trailing slashes do not matter, a body is ignored. A request is
    answered from one snapshot and the history before it, in the event loop; what is asked of a job that is not
    live, from the archive, in one of a few threads.
    """

    def __init__(
        self, store: MetricStore, clock: Clock, history: History = NO_HISTORY, archive: Archive | None = None
    ) -> None:
        self._store = store
        self._history = history
        self._archive = archive
        self._clock = clock
        self._readers = CapacityLimiter(_READERS)
        self._root = _tree(RESOURCES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer one request.

        Raises:
            QueryError: what is asked for is unknown or malformed.
            ArchiveError: it is archived, and cannot be read.
        """
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return
        method: str = scope["method"]
        found = self.resolve(scope["path"]) if method == "GET" else None
        if found is None:
            await unrouted(method, scope["path"])(scope, receive, send)
            return
        resource, path = found
        scope["streamgauge.resource"] = resource
        query = Query.parse(
            self._store.snapshot(), self._clock.now_ms(), path, scope["query_string"], self._history, self._archive
        )
        query = query.of_run()
        if self._archive is not None and (resource in WAITING or (resource not in LISTED and not query.is_live())):
            body = await to_thread.run_sync(_answer, resource, query, limiter=self._readers)
        else:
            body = msgspec.json.encode(RESOURCES[resource](query))
        await Response(body, media_type=JSON)(scope, receive, send)

    def resolve(self, path: str) -> tuple[str, dict[str, str]] | None:
        """
        Return the resource that answers `path`, a key of RESOURCES, with its path parameters; None where none does.
        """
        segments = [segment for segment in path.split("/") if segment]
        if segments[:1] == ["v1"]:
            del segments[0]
        return _resolve(self._root, segments, {})


def _answer(resource: str, query: Query) -> bytes:
    return msgspec.json.encode(RESOURCES[resource](query.opened()))


def _resolve(node: _Node, segments: list[str], path: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    if not segments:
        return (node.resource, path) if node.resource else None
    first, rest = segments[0], segments[1:]
    # A literal goes before a parameter: /jobs/metrics is no job of that name.
    if first != ":" and first in node.children:
        found = _resolve(node.children[first], rest, path)
        if found is not None:
            return found
    if node.parameter:
        return _resolve(node.children[":"], rest, {**path, node.parameter: first})
    return None
