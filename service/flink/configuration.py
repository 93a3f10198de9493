"""How drivers and jobs are set: …/jobmanager/config, …/jobmanager/environment and /jobs/:jobid/config."""

from __future__ import annotations

import re
from collections.abc import Mapping

from typing_extensions import TypedDict

from collector.store import AppState, JobState
from service.cluster import driver
from service.flink.query import Query
from streamgauge import names
from streamgauge.sizes import size

UNKNOWN = -1
_MAX_INT = 2**31 - 1
_MEMORY = "jobmanager.memory."
_DIRECT = "-XX:MaxDirectMemorySize="
_LOCAL = re.compile(r"local(?:\[\s*(?:\d+|\*)\s*(?:,\s*(\d+)\s*)?\])?")
_STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
_STATEFUL = re.compile("State|StreamingDeduplicate|StreamingSymmetricHashJoin|StreamingGlobalLimit")
"""Spark's plan nodes that keep state."""
_TASK_ATTEMPTS = "4"
"""Spark's default of spark.task.maxFailures; in local mode a task is tried once, unless the master says otherwise."""


class Setting(TypedDict):
    """A setting; Flink's own keys are those that its dashboard reads."""

    key: str
    value: str


class Jvm(TypedDict):
    """The driver's virtual machine; empty where it has not told."""

    version: str
    arch: str
    options: list[str]


class DriverEnvironment(TypedDict):
    """The body of …/jobmanager/environment."""

    jvm: Jvm
    classpath: list[str]


ExecutionConfig = TypedDict(
    "ExecutionConfig",
    {
        "restart-strategy": str,
        "job-parallelism": int,
        "object-reuse-mode": bool,
        "user-config": dict[str, str],
    },
)

JobConfig = TypedDict("JobConfig", {"jid": str, "name": str, "execution-config": ExecutionConfig})


def cluster_config(query: Query) -> list[Setting]:
    """Answer /jobmanager/config; see `service.cluster.driver` for whose it is, [] where there is none."""
    return _settings(driver(query.snapshot))


def cluster_environment(query: Query) -> DriverEnvironment:
    """Answer /jobmanager/environment, of the same driver."""
    return _environment(driver(query.snapshot))


def application_config(query: Query) -> list[Setting]:
    """
    Answer /applications/:applicationid/jobmanager/config.

    Raises:
        Missing: never seen, or evicted.
        UnresolvableParameter: it is neither 32 hex digits nor the id of an application that is held.
    """
    return _settings(query.application())


def job_driver_config(query: Query) -> list[Setting]:
    """
    Answer /jobs/:jobid/jobmanager/config: of the driver that runs the job, or ran it.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    return _settings(query.app(query.job()))


def job_driver_environment(query: Query) -> DriverEnvironment:
    """
    Answer /jobs/:jobid/jobmanager/environment: of the same driver.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    return _environment(query.app(query.job()))


def job(query: Query) -> JobConfig:
    """
    Answer /jobs/:jobid/config: what of Spark's SQL configuration is the query's own, in Flink's user configuration.

    The parallelism is that of its state, or of its shuffles, else of the application; −1 where none is told.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    state = query.job()
    app = query.app(state)
    shared: Mapping[str, str] = {} if app is None else app.configuration
    return {
        "jid": state.job.jid,
        "name": state.job.name,
        "execution-config": {
            "restart-strategy": _restarts(shared),
            "job-parallelism": _parallelism(state, {**shared, **state.configuration}),
            "object-reuse-mode": False,
            "user-config": dict(sorted(state.configuration.items())),
        },
    }


def _restarts(settings: Mapping[str, str]) -> str:
    words = "A failed query is not restarted"
    master = settings.get("spark.master")
    if master is None:
        return f"{words}."
    local = _LOCAL.fullmatch(master)
    times = settings.get("spark.task.maxFailures", _TASK_ATTEMPTS) if local is None else local[1] or "1"
    return f"{words}; a task is tried once." if times == "1" else f"{words}; a task is tried up to {times} times."


def _parallelism(state: JobState, settings: Mapping[str, str]) -> int:
    nodes = (operator.node for vertex in state.vertices.values() for operator in vertex.vertex.operators)
    # Spark 4 keeps a checkpoint's partitions of state beside those of shuffles, which may change.
    first = [_STATE_PARTITIONS] if any(map(_STATEFUL.search, nodes)) else []
    for name in (*first, "spark.sql.shuffle.partitions", "spark.default.parallelism"):
        found = settings.get(name, "")
        if found.isascii() and found.isdigit() and len(found) < 11:
            return min(int(found), _MAX_INT)
    return UNKNOWN


def _settings(app: AppState | None) -> list[Setting]:
    if app is None:
        return []
    found = {**app.configuration, **_memory(app)}
    return [{"key": key, "value": found[key]} for key in sorted(found)]


def _memory(app: AppState) -> dict[str, str]:
    """Return a driver's memory under Flink's keys, as Flink writes sizes; what has no bound is left out."""
    found: dict[str, object] = {
        "heap.size": app.driver.get(names.HEAP_MAX),
        "jvm-metaspace.size": app.driver.get(names.METASPACE_MAX),
    }
    options = () if app.environment is None else app.environment.java_options
    for option in options:
        if option.startswith(_DIRECT):
            found["off-heap.size"] = size(option.removeprefix(_DIRECT), 1)
    return {f"{_MEMORY}{key}": f"{value}b" for key, value in found.items() if isinstance(value, int) and value >= 0}


def _environment(app: AppState | None) -> DriverEnvironment:
    if app is None or app.environment is None:
        return {"jvm": {"version": "", "arch": "", "options": []}, "classpath": []}
    told = app.environment
    return {
        "jvm": {"version": told.java_version, "arch": told.architecture, "options": list(told.java_options)},
        "classpath": list(told.class_path),
    }
