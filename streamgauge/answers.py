"""The answers of a collector's REST, as far as `jobs` and `top` read them, and what they make of a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

import msgspec

from streamgauge import names
from streamgauge.overview import Job, Vertex, in_flow_order, known, total
from streamgauge.wire import BROADCAST, ENDED_STATES

RATE_IN = names.NUM_RECORDS_IN + names.PER_SECOND
RATE_OUT = names.NUM_RECORDS_OUT + names.PER_SECOND

_VERTEX_METRICS = (RATE_IN, RATE_OUT, names.BUSY_TIME, names.BACK_PRESSURED_TIME)
_LAGS = (names.PENDING_RECORDS, names.FETCH_LAG, names.WATERMARK_LAG)
_JOB_METRICS = (
    names.UPTIME,
    names.NUM_RESTARTS,
    names.LAST_COMPLETED_CHECKPOINT_ID,
    names.LAST_CHECKPOINT_DURATION,
)


class Row(msgspec.Struct, rename="kebab", frozen=True):
    """One job of /jobs/overview."""

    jid: str
    name: str
    state: str
    start_time: int = -1
    duration: int = -1
    job_type: str | None = msgspec.field(default=None, name="jobType")


class Jobs(msgspec.Struct, frozen=True):
    """/jobs/overview."""

    jobs: list[Row]


class Cluster(msgspec.Struct, rename="kebab", frozen=True):
    """/overview."""

    slots_total: int
    slots_available: int


class Input(msgspec.Struct, frozen=True):
    """What a node of a plan reads."""

    id: str
    ship_strategy: str = ""


class Node(msgspec.Struct, frozen=True):
    """A vertex in a plan."""

    id: str
    inputs: list[Input] = []


class Plan(msgspec.Struct, frozen=True):
    """A job's graph."""

    nodes: list[Node]


class VertexRow(msgspec.Struct, frozen=True):
    """One vertex of /jobs/:jobid."""

    id: str
    name: str
    status: str
    parallelism: int


class Bottleneck(msgspec.Struct, frozen=True):
    """The vertex that holds a job up."""

    id: str


class Additions(msgspec.Struct, frozen=True):
    """What a service of ours adds."""

    failure: str = ""
    backlogged: bool | None = None
    bottleneck: Bottleneck | None = None

    @property
    def slowest(self) -> str | None:
        """The id of the vertex that holds the job up."""
        return None if self.bottleneck is None else self.bottleneck.id


class Detail(msgspec.Struct, frozen=True):
    """/jobs/:jobid."""

    vertices: list[VertexRow]
    plan: Plan
    streamgauge: Additions = Additions()

    def sources(self) -> set[str]:
        """Return the vertices that read from no other; a broadcast is no stream of records, it only joins one."""
        return {node.id for node in self.plan.nodes if all(edge.ship_strategy == BROADCAST for edge in node.inputs)}

    def sinks(self) -> set[str]:
        """Return the vertices that no other reads from."""
        read = {edge.id for node in self.plan.nodes for edge in node.inputs}
        return {node.id for node in self.plan.nodes if node.id not in read}


class Metric(msgspec.Struct, frozen=True):
    """One metric of a list of ids, or of values as strings."""

    id: str
    value: str | None = None


class Aggregate(msgspec.Struct, frozen=True):
    """One metric over a vertex's subtasks; what is not finite is a string."""

    id: str
    sum: float | str | None = None
    max: float | str | None = None


class DriverRow(msgspec.Struct, rename="kebab", frozen=True):
    """One driver of /streamgauge/drivers."""

    id: str
    name: str = ""
    host: str = ""
    last_frame: int | None = None
    silent: bool = False
    hooks: dict[str, bool | int | float | str] = {}


class Drivers(msgspec.Struct, frozen=True):
    """/streamgauge/drivers."""

    drivers: list[DriverRow]


Aggregates = Mapping[str, Mapping[str, Aggregate]]
"""Path of a vertex's metrics → metric → its aggregates."""


def metrics_path(jid: str, vertex_id: str) -> str:
    """Return where a vertex's aggregated metrics are asked for."""
    return f"/jobs/{quote(jid, safe='')}/vertices/{quote(vertex_id, safe='')}/subtasks/metrics"


def job_metrics_path(jid: str) -> str:
    """Return where the metrics of a job that `job` reads are asked for."""
    return f"/jobs/{quote(jid, safe='')}/metrics?get={','.join(_JOB_METRICS)}"


def is_shown(metric_id: str) -> bool:
    """Tell a vertex's metric, or a source operator's; deeper names are parts of these, as of a partition."""
    operator, _, name = metric_id.rpartition(".")
    return (name in _LAGS and "." not in operator) or metric_id in _VERTEX_METRICS


def job(row: Row, detail: Detail | None, metrics: Iterable[Metric], aggregates: Aggregates, whole: bool) -> Job:
    """
    Put a job together.

    Args:
        row: Its line in the overview.
        detail: None where it was not asked for.
        metrics: What `job_metrics_path` answers.
        aggregates: Of the vertices that were asked for; of the others nothing is known.
        whole: Whether to list its vertices.
    """
    figures = {metric.id: known(metric.value) for metric in metrics}
    vertices = () if detail is None else _vertices(row.jid, detail, aggregates)
    sources = set() if detail is None else detail.sources()
    sinks = set() if detail is None else detail.sinks()
    return Job(
        id=row.jid,
        name=row.name,
        type=row.job_type,
        state=row.state,
        start_ms=row.start_time if row.start_time >= 0 else None,
        duration_ms=row.duration if row.duration >= 0 else None,
        uptime_ms=None if row.state in ENDED_STATES else figures.get(names.UPTIME),
        restarts=_whole(figures.get(names.NUM_RESTARTS)),
        batch_id=_whole(figures.get(names.LAST_COMPLETED_CHECKPOINT_ID)),
        batch_duration_ms=figures.get(names.LAST_CHECKPOINT_DURATION),
        records_in_per_second=_rate((each, each.records_in_per_second) for each in vertices if each.id in sources),
        records_out_per_second=_rate((each, each.records_out_per_second) for each in vertices if each.id in sinks),
        failure=None if detail is None else detail.streamgauge.failure.strip() or None,
        backlogged=None if detail is None else detail.streamgauge.backlogged,
        bottleneck=None if detail is None else detail.streamgauge.slowest,
        vertices=vertices if whole and detail is not None else None,
    )


def _rate(ends: Iterable[tuple[Vertex, float | None]]) -> float | None:
    # A vertex that is no longer in the plan still has rows in its 60 s, but nobody misses a rate that it lacks.
    return total(rate for vertex, rate in ends if rate is not None or vertex.state not in ENDED_STATES)


def _vertices(jid: str, detail: Detail, aggregates: Aggregates) -> tuple[Vertex, ...]:
    rows = {row.id: row for row in detail.vertices}
    inputs: dict[str, list[str]] = {vertex_id: [] for vertex_id in rows}
    inputs |= {node.id: [edge.id for edge in node.inputs] for node in detail.plan.nodes if node.id in rows}
    slowest = detail.streamgauge.slowest
    return tuple(
        _vertex(rows[each], aggregates.get(metrics_path(jid, each), {}), each == slowest)
        for each in in_flow_order(inputs)
    )


def _vertex(row: VertexRow, metrics: Mapping[str, Aggregate], is_bottleneck: bool) -> Vertex:
    def summed(name: str) -> float | None:
        return known(metrics[name].sum) if name in metrics else None

    def share(name: str) -> float | None:
        most = known(metrics[name].max) if name in metrics else None
        return None if most is None else most / 1000

    def of_sources(name: str) -> list[Aggregate]:
        return [each for metric_id, each in metrics.items() if metric_id.rpartition(".")[2] == name]

    def greatest(name: str) -> float | None:
        return max((lag for each in of_sources(name) if (lag := known(each.max)) is not None), default=None)

    return Vertex(
        id=row.id,
        name=row.name,
        state=row.status,
        parallelism=row.parallelism,
        records_in_per_second=summed(RATE_IN),
        records_out_per_second=summed(RATE_OUT),
        busy_ratio=share(names.BUSY_TIME),
        back_pressured_ratio=share(names.BACK_PRESSURED_TIME),
        pending_records=total(known(each.sum) for each in of_sources(names.PENDING_RECORDS)),
        fetch_lag_ms=greatest(names.FETCH_LAG),
        watermark_lag_ms=greatest(names.WATERMARK_LAG),
        bottleneck=is_bottleneck,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
