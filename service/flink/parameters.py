"""The parameters of the Flink REST as /openapi.json tells them: which there are, and which resource reads which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.flink.ids import PATTERN
from service.flink.latency import FORMS
from service.flink.query import AGGREGATES

_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A parameter.

    Args:
        schema: JSON Schema; an array is written with commas between its elements.
        description: What it is, one line.
        checked: Of a path, whether a value that is none of `schema` is answered 400.
    """

    schema: Mapping[str, object]
    description: str
    checked: bool = True


def _list(items: Mapping[str, object]) -> dict[str, object]:
    return {"type": "array", "items": items}


_INDEX = {"type": "integer", "minimum": 0, "maximum": _MAX_INT}
_INT = {"type": "integer", "minimum": -_MAX_INT - 1, "maximum": _MAX_INT}
_ID = {"type": "string", "pattern": PATTERN}
_TEXT = {"type": "string", "minLength": 1}

PATH: dict[str, Parameter] = {
    "applicationid": Parameter(_TEXT, "An application: 32 hex digits, or Spark's own id."),
    "attempt": Parameter(_INT, "An attempt of a subtask, from 0."),
    "checkpointid": Parameter({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, "A checkpoint: a micro-batch."),
    "filename": Parameter(_TEXT, "A file of a log.", checked=False),
    "jobid": Parameter(_ID, "A job: a streaming query or a batch query."),
    "rescaleuuid": Parameter(_ID, "A change of a job's parallelism."),
    "subtaskindex": Parameter(_INDEX, "A subtask of a vertex, from 0."),
    "taskmanagerid": Parameter(_TEXT, "An executor: the application's id, '-' and Spark's id of it.", checked=False),
    "triggerid": Parameter(_ID, "An operation that was triggered."),
    "vertexid": Parameter(_ID, "A vertex of a job: operators that run in the same tasks."),
}
"""Path parameters by Flink's name."""

QUERY: dict[str, Parameter] = {
    "agg": Parameter(_list({"enum": list(AGGREGATES)}), "Aggregates, in any case; without it all of them."),
    "failureLabelFilter": Parameter(_list({"type": "string", "pattern": "^[^:]+:[^:]+$"}), "Labels, 'key:value'."),
    "get": Parameter(_list({"type": "string"}), "Metrics by id; without it ids are listed, of a history all."),
    "granularity": Parameter(
        {"enum": list(FORMS)}, "What windows of latencies are told apart by; without it what is set in the driver."
    ),
    "jobs": Parameter(_list(_ID), "Jobs; without it all of them."),
    "maxExceptions": Parameter(_INDEX, "How many failures at most."),
    "since": Parameter(
        {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, "Unix ms; what is not after it is left out."
    ),
    "subtasks": Parameter(_list({"type": "string", "pattern": "^[0-9]+(-[0-9]+)?$"}), "Subtasks and ranges of them."),
    "taskmanagers": Parameter(_list({"type": "string"}), "Executors; without it all of them."),
    "with": Parameter(
        {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$"},
        "A run, or a job for its latest run; without it the run before.",
    ),
}
"""Query parameters by Flink's name."""

_VERTEX = "/jobs/:jobid/vertices/:vertexid"

READ_BY: dict[str, tuple[str, ...]] = {
    "/jobs/history": ("get", "since"),
    "/jobs/metrics": ("get", "agg", "jobs"),
    "/jobs/:jobid/compare": ("with",),
    "/jobs/:jobid/exceptions": ("maxExceptions", "failureLabelFilter"),
    "/jobs/:jobid/history": ("get", "since"),
    "/jobs/:jobid/metrics": ("get",),
    f"{_VERTEX}/history": ("get", "since"),
    f"{_VERTEX}/jm-operator-metrics": ("get",),
    f"{_VERTEX}/latency": ("granularity",),
    f"{_VERTEX}/metrics": ("get",),
    f"{_VERTEX}/subtasks/metrics": ("get", "agg", "subtasks"),
    f"{_VERTEX}/subtasks/:subtaskindex/metrics": ("get",),
    "/taskmanagers/metrics": ("get", "agg", "taskmanagers"),
    "/taskmanagers/:taskmanagerid/metrics": ("get",),
    "/jobmanager/metrics": ("get",),
}
"""The query parameters that a resource reads, by its path; any other is ignored, as in Flink."""
