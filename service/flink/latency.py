"""
Latencies as heat maps and percentiles: …/vertices/:vertexid/latency and /jobs/:jobid/latency, ours in Flink's manner.

A path leads from a source vertex to an operator. Its histograms are of the whole run, its windows of the latest values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from typing_extensions import TypedDict

from collector.histogram import BOUNDS_MS
from collector.latencies import LatencyKey, LatencyWindow
from collector.store import JobState, VertexState
from service.errors import HANDLER, Missing
from service.flink.distributions import Distribution, Parts, parts
from service.flink.ids import Id
from service.flink.latency_metrics import SINK, legacy_windows, windows
from service.flink.numbers import Double, json_double
from service.flink.query import Query
from streamgauge import names, wire
from streamgauge.errors import UnresolvableParameter

Form = Literal["single", "operator", "subtask", "legacy"]
FORMS: tuple[Form, ...] = ("single", "operator", "subtask", "legacy")
"""What windows may be asked for by `granularity`; legacy is what Flink 1.2 told apart."""

Path = TypedDict(
    "Path",
    {
        "source-id": Id,
        "source-name": str,
        "operator-id": Id,
        "operator-name": str,
        "markers": int,
        "latency": Distribution,
        "queueing": Distribution,
        "processing": Distribution,
    },
)

SubtaskLatency = TypedDict(
    "SubtaskLatency",
    {
        "subtask": int,
        "markers": int,
        "min-ms": int,
        "max-ms": int,
        "mean-ms": Double,
        "median-ms": Double,
        "stddev-ms": Double,
        "p75-ms": Double,
        "p90-ms": Double,
        "p95-ms": Double,
        "p98-ms": Double,
        "p99-ms": Double,
        "p999-ms": Double,
    },
)

Window = TypedDict(
    "Window",
    {
        "source-id": Id | None,
        "source-name": str | None,
        "source-subtask": int | None,
        "operator-id": Id,
        "operator-name": str,
        "subtasks": list[SubtaskLatency],
    },
)
"""The latest values at an operator; what is told together, sources or their subtasks, is null."""

VertexLatency = TypedDict(
    "VertexLatency",
    {
        "granularity": Form | None,
        "bounds-ms": list[int],
        "paths": list[Path],
        "windows": list[Window],
    },
)
"""`granularity` is null where no markers are emitted."""

SinkPlace = TypedDict("SinkPlace", {"vertex-id": Id, "vertex-name": str, "operator-id": Id})

SinkPath = TypedDict(
    "SinkPath",
    {
        "source-id": Id,
        "source-name": str,
        "sink-name": str,
        "sinks": list[SinkPlace],
        "markers": int,
        "latency": Distribution,
        "queueing": Distribution,
        "processing": Distribution,
    },
)
"""From a source to a sink, wherever plans had it; `sinks` are its operators, merged."""


class Dropped(TypedDict):
    """Markers that were dropped, by the reason; see `names.MARKERS_DROPPED_BY`."""

    idle: int
    ended: int
    lost: int
    crowded: int


Markers = TypedDict("Markers", {"emitted": int, "recorded": int, "in-flight": int, "dropped": Dropped})

JobLatency = TypedDict(
    "JobLatency",
    {
        "granularity": wire.LatencyGranularity | None,
        "markers": Markers | None,
        "bounds-ms": list[int],
        "paths": list[SinkPath],
    },
)
"""`granularity` and `markers` are null where no markers are emitted."""


def vertex(query: Query) -> VertexLatency:
    """
    Answer …/vertices/:vertexid/latency: to each operator from each source, in the run and of late.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex, or its latencies are not recorded in the form that is asked for.
        UnresolvableParameter: `granularity` is no form of latencies.
    """
    state = query.job_vertex()
    job = query.job()
    form = _form(query, job)
    told = _Told()
    return {
        "granularity": form,
        "bounds-ms": list(BOUNDS_MS),
        "paths": [
            {
                "source-id": source,
                "source-name": _name(job, source),
                "operator-id": operator.id,
                "operator-name": operator.name,
                **told.parts(one),
            }
            for operator in state.vertex.operators
            for (whose, source), one in sorted(state.latencies.histograms.items(), key=lambda item: item[0])
            if whose == operator.id
        ],
        "windows": [_window(job, state, key, told.subtasks(window)) for key, window in _windows(state, form)],
    }


def _form(query: Query, job: JobState) -> Form | None:
    asked = query.words("granularity")
    recorded = job.job.latency
    if asked is None:
        return recorded
    for form in FORMS:
        if asked == [form]:
            if recorded is None:
                raise _not_recorded(job, "no latency markers are emitted: set spark.streamgauge.latency_interval_ms")
            # By operator they are always recorded, and that is what the old form is made of.
            if form not in (recorded, "operator", "legacy"):
                raise _not_recorded(
                    job, f"they are told apart by '{recorded}': set spark.streamgauge.latency_granularity to '{form}'"
                )
            return form
    raise UnresolvableParameter("query", "granularity", ",".join(query.parameters["granularity"]))


def _not_recorded(job: JobState, why: str) -> Missing:
    # 404 in a handler's own words, as Flink tells of what is switched off: "Checkpointing was not enabled for job …".
    return Missing(HANDLER, f"Latencies of job {job.job.jid} were not recorded so; {why}.")


def _windows(state: VertexState, form: Form | None) -> Iterable[tuple[LatencyKey, LatencyWindow]]:
    if form == "legacy":
        return [pair for operator in state.vertex.operators for pair in legacy_windows(state, operator)]
    return windows(state, form)


def _window(job: JobState, state: VertexState, key: LatencyKey, subtasks: list[SubtaskLatency]) -> Window:
    [operator] = [operator for operator in state.vertex.operators if operator.id == key.operator]
    return {
        "source-id": key.source or None,
        "source-name": _name(job, key.source) if key.source else None,
        "source-subtask": key.source_subtask if key.source_subtask >= 0 else None,
        "operator-id": operator.id,
        "operator-name": operator.name,
        "subtasks": subtasks,
    }


def _subtask(window: LatencyWindow, subtask: int) -> SubtaskLatency:
    figures = dict(zip(names.LATENCY_STATISTICS, window.statistics[:, subtask].tolist(), strict=True))
    return {
        "subtask": subtask,
        "markers": int(window.counts[subtask]),
        "min-ms": int(figures["min"]),
        "max-ms": int(figures["max"]),
        "mean-ms": json_double(figures["mean"]),
        "median-ms": json_double(figures["median"]),
        "stddev-ms": json_double(figures["stddev"]),
        "p75-ms": json_double(figures["p75"]),
        "p90-ms": json_double(figures["p90"]),
        "p95-ms": json_double(figures["p95"]),
        "p98-ms": json_double(figures["p98"]),
        "p99-ms": json_double(figures["p99"]),
        "p999-ms": json_double(figures["p999"]),
    }


class _Told:
    """What one answer has told: operators that see the same markers share figures, which are read once."""

    def __init__(self) -> None:
        self._parts: dict[int, Parts] = {}
        self._subtasks: dict[int, list[SubtaskLatency]] = {}

    def parts(self, one: wire.LatencyHistogram) -> Parts:
        if id(one) not in self._parts:
            self._parts[id(one)] = parts([one])
        return self._parts[id(one)]

    def subtasks(self, window: LatencyWindow) -> list[SubtaskLatency]:
        if id(window) not in self._subtasks:
            recorded = window.counts.nonzero()[0].tolist()
            self._subtasks[id(window)] = [_subtask(window, subtask) for subtask in recorded]
        return self._subtasks[id(window)]


def job(query: Query) -> JobLatency:
    """
    Answer /jobs/:jobid/latency: from each source to each sink, in the run, and what became of the markers.

    Raises:
        UnknownJob: never seen, or evicted.
    """
    state = query.job()
    found: dict[tuple[str, str], list[tuple[SinkPlace, wire.LatencyHistogram]]] = {}
    for each in state.vertices.values():
        sinks = {one.id: one for one in each.vertex.operators if one.name.startswith(SINK)}
        for (operator, source), one in each.latencies.histograms.items():
            if operator in sinks:
                place: SinkPlace = {
                    "vertex-id": each.vertex.id,
                    "vertex-name": each.vertex.name,
                    "operator-id": operator,
                }
                found.setdefault((source, sinks[operator].name), []).append((place, one))
    return {
        "granularity": state.job.latency,
        "markers": _markers(state),
        "bounds-ms": list(BOUNDS_MS),
        "paths": [
            {
                "source-id": source,
                "source-name": _name(state, source),
                "sink-name": sink,
                "sinks": [place for place, _ in merged],
                **parts([one for _, one in merged]),
            }
            for (source, sink), merged in sorted(found.items(), key=lambda item: item[0])
        ],
    }


def _name(state: JobState, vertex_id: str) -> str:
    found = state.vertices.get(vertex_id)
    return "" if found is None else found.vertex.name


def _markers(state: JobState) -> Markers | None:
    metrics = state.job.metrics

    def count(name: str) -> int:
        told = metrics.get(name, 0)
        return told if isinstance(told, int) and not isinstance(told, bool) else 0

    if state.job.latency is None or names.MARKERS_EMITTED not in metrics:
        return None
    dropped = names.MARKERS_DROPPED_BY
    return {
        "emitted": count(names.MARKERS_EMITTED),
        "recorded": count(names.MARKERS_RECORDED),
        "in-flight": count(names.MARKERS_IN_FLIGHT),
        "dropped": {
            "idle": count(dropped["idle"]),
            "ended": count(dropped["ended"]),
            "lost": count(dropped["lost"]),
            "crowded": count(dropped["crowded"]),
        },
    }
