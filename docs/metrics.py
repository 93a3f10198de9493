"""
Writes docs/metrics.md from the catalogue: `make docs`, or `python -m docs.metrics` in a checkout.

It stands beside what it writes, and not in a package that is installed, for nobody else has a use for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from service.prometheus import distributions, latencies, splits
from service.prometheus.families import FAMILIES, Family, is_told_twice
from streamgauge import catalogue, names
from streamgauge.catalogue.metric import METER

PAGE = Path(__file__).with_suffix(".md")


class Left(NamedTuple):
    """
    Metrics that Flink has and this service has not.

    Args:
        ids: Of that scope, without subtask and operator; '*' stands for anything.
        why: One sentence.
    """

    scope: catalogue.Scope
    ids: tuple[str, ...]
    why: str


LEFT: tuple[Left, ...] = (
    Left(
        "vertex",
        ("softBackPressuredTimeMsPerSecond", "hardBackPressuredTimeMsPerSecond"),
        "Flink parts a task that waits for a buffer from one that is blocked until it gets one; what holds a "
        "subtask up here is of one kind.",
    ),
    Left(
        "vertex",
        ("maxSoftBackPressureTimeMs", "maxHardBackPressureTimeMs"),
        "The longest single wait for a buffer; here a subtask waits between stages.",
    ),
    Left(
        "vertex",
        ("mailboxLatencyMs_*", "mailboxMailsPerSecond", "mailboxQueueSize"),
        "A Flink task takes its work from a mailbox; a Spark task has none.",
    ),
    Left(
        "vertex",
        ("changelogBusyTimeMsPerSecond",),
        "Of Flink's changelog state backend; what RocksDB's change log takes is part of a Spark batch's commit.",
    ),
    Left("vertex", ("initializationTime",), "Spark loads state within a batch's tasks and does not time it apart."),
    Left("vertex", ("numBuffersOut", "numBuffersOutPerSecond"), "Spark does not tell how many blocks a task wrote."),
    Left(
        "vertex",
        (f"{names.INPUT_BUFFERS}inputExclusiveBuffersUsage", f"{names.INPUT_BUFFERS}inputFloatingBuffersUsage"),
        "Flink's channels have buffers of their own and share others; Spark's fetches share one budget.",
    ),
    Left(
        "operator",
        ("numBytesIn", "numBytesInPerSecond", "numBytesOut", "numBytesOutPerSecond"),
        "Spark counts bytes at exchanges and sinks, not between the operators of a chain.",
    ),
    Left(
        "operator",
        ("numRecordsInErrors",),
        "Spark does not count what a source could not read: it fails the task, or is read as null.",
    ),
    Left(
        "operator",
        ("my*", "grp.val.my*"),
        "The recorded program's own; what a Spark program measures by `observe()` is at `/jobs/:jobid/accumulators`.",
    ),
    Left("job", ("createdTime",), "CREATED lasts until the first batch; `/jobs/:jobid` tells when it was entered."),
    Left(
        "job",
        ("initializingTime", "deployingTime", "cancellingTime", "failingTime"),
        "A query is never in these states.",
    ),
    Left(
        "job",
        ("allSubTasksRunningOrFinishedTime",),
        "The subtasks of a micro-batch need not run at the same time.",
    ),
    Left(
        "job",
        ("lastCheckpointFullSize", "lastCheckpointMetadataSize"),
        f"`{names.LAST_CHECKPOINT_SIZE}` is the full size here, for what a batch wrote is mostly not told; nor is the "
        "size of Spark's logs.",
    ),
    Left(
        "job",
        ("lastCheckpointPersistedData", "lastCheckpointProcessedData"),
        "Of records on their way during a checkpoint; when a micro-batch is committed there are none.",
    ),
    Left("job", ("lastCheckpointExternalPath",), "`/jobs/:jobid/checkpoints` has it, as `external_path`."),
    Left("job", ("lastCheckpointRestoreTimestamp",), "`/jobs/:jobid/checkpoints` has it, in `latest.restored`."),
    Left("job", ("numRescales",), "Spark does not rescale a query that runs."),
    Left(
        "executor",
        tuple(f"Status.Shuffle.Netty.{kind}MemorySegments" for kind in ("Available", "Total", "Used")),
        "Spark's memory is not cut into segments; the same in bytes is there.",
    ),
    Left(
        "executor",
        ("Status.Shuffle.Netty.RequestedMemoryUsage",),
        "Spark does not tell how much memory was asked for.",
    ),
)
"""Of what a real Flink 2.3 listed; tests/contract/flink_names has it."""

_JOB = "/jobs/:jobid"
_VERTEX = f"{_JOB}/vertices/:vertexid"
_ID, _NAMED = "`<metric>`", "`<operator>.<metric>`"


class _Place(NamedTuple):
    """A scope: its heading, its paths and ids in REST, its labels in /metrics, its prefix in /metrics/flink."""

    title: str
    paths: tuple[str, ...]
    shown: str
    labels: tuple[str, ...]
    prefix: str


_OF_JOB = ("job_id", "job_name")
_OF_VERTEX = (*_OF_JOB, "vertex_id", "vertex_name")
_OF_DRIVER = ("application_id", "application_name")
_SUBTASKS = (f"{_VERTEX}/metrics", f"{_VERTEX}/subtasks/metrics", f"{_VERTEX}/subtasks/:subtaskindex/metrics")

PLACES: dict[catalogue.Scope, _Place] = {
    "vertex": _Place("Vertices", _SUBTASKS, _ID, _OF_VERTEX, "flink_taskmanager_job_task_"),
    "operator": _Place(
        "Operators", _SUBTASKS, _NAMED, (*_OF_VERTEX, "operator_name"), "flink_taskmanager_job_task_operator_"
    ),
    "coordinator": _Place(
        "Sources, as the driver knows them",
        (f"{_VERTEX}/jm-operator-metrics",),
        "`<operator>.coordinator.<metric>`",
        (*_OF_VERTEX, "operator_name"),
        "",
    ),
    "job": _Place("Jobs", (f"{_JOB}/metrics", "/jobs/metrics"), _ID, _OF_JOB, "flink_jobmanager_job_"),
    "cluster": _Place("The cluster", ("/jobmanager/metrics",), _ID, (), "flink_jobmanager_"),
    "executor": _Place(
        "Executors",
        ("/taskmanagers/:taskmanagerid/metrics", "/taskmanagers/metrics"),
        _ID,
        (*_OF_DRIVER, "executor_id"),
        "flink_taskmanager_",
    ),
    "driver": _Place("The driver", ("/jobmanager/metrics",), _ID, _OF_DRIVER, "flink_jobmanager_"),
    "hooks": _Place("The hooks themselves", ("/streamgauge/drivers",), "in `hooks`", _OF_DRIVER, ""),
}

_HEAD = """\
# Metrics

Every metric, what it means on Spark, how it is worked out and from which of Spark's events. Made from the catalogue
(`streamgauge/catalogue/`) by `make docs`; a test fails where the two differ.

## How to read it

Names are Flink's, exactly; what Flink has no word for is named in its manner. **A metric that Spark does not tell is
absent**: 0 is a figure, and means that Spark said so. Where a client of Flink's would give up without a name, the
name is there and its value NaN: `busyTimeMsPerSecond`, `backPressuredTimeMsPerSecond` and `numRecordsInPerSecond` of
a vertex, and what the table of executors says so of. `/metrics` leaves NaN out.

*Exact* follows from what Spark tells, with nothing assumed. An *estimate* assumes something, and says what.

Source events are those of Spark's listener bus, without the prefix `SparkListener`, and those of its
`StreamingQueryListener`. What stands in 'quotes' is a SQL metric of a plan's node by Spark's display name: TaskEnd
carries it, DriverAccumUpdates where the driver does the work itself, and while a task runs the last
ExecutorMetricsUpdate (heartbeat) is shown on top; what is shown never goes back within a run. Durations that are
worked out here do not move when somebody sets the driver's clock. How Spark's plans and tasks become vertices and
subtasks is told in [spark.md](spark.md).

Counters of a job, and of what belongs to it, count within a run of the query: they begin anew when it restarts, or
when the hooks are attached anew.

### Where they are

| scope | REST | id there | labels in `/metrics` | prefix in `/metrics/flink` |
|---|---|---|---|---|
"""
_MIDDLE = """
`<operator>` is the operator's name with ' ', '.', ':' and ',' as '_'. In the first path of vertices and operators the
subtask and a dot stand in front of the id. `…/subtasks/metrics`, `/jobs/metrics` and `/taskmanagers/metrics`
aggregate (`?agg=min,max,avg,sum,skew`). `…/vertices/:vertexid/watermarks` and `…/vertices/:vertexid/backpressure`
tell a part of the same; `/jobs/:jobid/latency` and `/jobs/:jobid/vertices/:vertexid/latency` tell latencies of the
whole run, as percentiles and as heat maps; `…/vertices/:vertexid/splits` watermarks split by split and how late
records were, `…/vertices/:vertexid/timers` timers and how late they fired.

A histogram of an operator has the ids `<metric>_<statistic>`, with the statistics
STATISTICS.
It is of the whole run and of all subtasks together, and so stands at subtask 0; so do the gauges of a split that
belongs to no subtask.

`/metrics` has base units: seconds, bytes, ratios of 0 to 1. A counter of a vertex is the sum over its subtasks there,
and so are timers that wait and state; any other gauge is the greatest, a watermark the least.
`?granularity=subtask` gives each subtask a series, with the label `subtask`. A watermark is not told before there is
one and at the end of input. It has besides
`streamgauge_job_state{job_type,state}`, 1 for the state that the job is in and 0 for the others;
`streamgauge_job_info{application_id,application_name}`, 1, of each job;
`streamgauge_vertex_bottleneck`, 1 for the vertex that holds a backlogged job up (`/jobs/:jobid` names it too); of
each split, with the labels `tap` and `split`,
SPLITS;
and the service's own, `streamgauge_service_…` and `streamgauge_scrape…`. `/metrics/flink` has every figure of a scope
with a prefix, a series a subtask, called by prefix and name with all but letters, digits, ':' and '_' as '_'. The
series of a job leave both when it has ended, or while its driver is silent; its state stays for 15 minutes. How to
scrape them, how finely they tell and in which formats stands in [prometheus.md](prometheus.md).

### Rates

A `…PerSecond` is Flink's MeterView:
METER.
In Prometheus `rate()` of the counter tells the same, and sooner.
"""
_TABLE = """\
| name | in `/metrics` | type | unit | meaning | formula | source event | exact? |
|---|---|---|---|---|---|---|---|
"""
_PATTERNS = """
## Names that are made up as needed

What stands as `<…>` is filled by ids, by the JVM or by a connector; where they are is where their scope is.
`/metrics` has none of these names; splits have families of their own there. `<source>` is a vertex's id,
`<operator>` an operator's where `operator_id` stands in front of it, and `<statistic>` one of STATISTICS.

| scope | name | type | unit | meaning | source event |
|---|---|---|---|---|---|
"""
_NATIVE = """
**Native SQL metrics** are Flink's accumulators, not metrics: every SQL metric of every node, by Spark's display name
(`<operator>.<metric>`, those of exchanges as `Exchange.<metric>`), at `/jobs/:jobid/vertices/:vertexid/accumulators`
and below it. What `observe()` saw in the latest batch is at `/jobs/:jobid/accumulators`, as `<name>.<column>`.
"""
_LEFT = """
## Flink's, not here

What a real Flink 2.3 listed and this service does not tell. A test holds every id that was recorded against this
table and those above.

| scope | Flink's name | why it is not here |
|---|---|---|
"""


def render() -> str:
    """Return the page; any thread."""
    statistics = ", ".join(f"`{each}`" for each in names.LATENCY_STATISTICS)
    families = ", ".join(f"`{family.name}`" for family in splits.FAMILIES)
    middle = _MIDDLE.replace("METER", METER).replace("STATISTICS", statistics).replace("SPLITS", families)
    parts = [_HEAD, *map(_place_row, PLACES), middle]
    for scope, place in PLACES.items():
        mine = [metric for metric in catalogue.METRICS if metric.scope == scope]
        parts += [f"\n## {place.title}\n\n", _TABLE, *_rows(mine)]
    parts += [_PATTERNS.replace("STATISTICS", statistics)]
    parts += [
        _line(each.scope, f"`{each.name}`", each.type, each.unit, each.help, each.source) for each in catalogue.PATTERNS
    ]
    parts += [_NATIVE, _LEFT]
    parts += [_line(left.scope, ", ".join(f"`{name}`" for name in left.ids), left.why) for left in LEFT]
    return "".join(parts)


def _place_row(scope: catalogue.Scope) -> str:
    place = PLACES[scope]
    return _line(
        scope,
        ", ".join(f"`{path}`" for path in place.paths),
        place.shown,
        ", ".join(f"`{label}`" for label in place.labels) or "none",
        f"`{place.prefix}`" if place.prefix else "–",
    )


def _rows(metrics: list[catalogue.Metric]) -> Iterator[str]:
    """Yield a row of each, of what is told under two names one."""
    other = {_present(metric): metric.name for metric in metrics if is_told_twice(metric)}
    for metric in metrics:
        if is_told_twice(metric):
            continue
        also = f", also `{other[metric.name]}`" if metric.name in other else ""
        yield _line(
            f"`{metric.name}`{also}",
            _prometheus(metric),
            metric.type,
            metric.unit,
            metric.help,
            "[a rate](#rates)" if metric.formula == METER else metric.formula,
            metric.source,
            f"estimate: {metric.estimate}" if metric.estimate else "exact",
        )


def _present(metric: catalogue.Metric) -> str:
    """Return the name by which a metric is known here that Flink tells under another one too."""
    if metric.name.startswith(names.OLD_BUFFERS):
        name = metric.name.removeprefix(names.OLD_BUFFERS)
        return next(
            prefix + name
            for prefix in (names.OUTPUT_BUFFERS, names.INPUT_BUFFERS)
            if catalogue.find(metric.scope, prefix + name) is not None
        )
    return metric.name.removeprefix(names.SHUFFLE_INPUT)


def _prometheus(metric: catalogue.Metric) -> str:
    family = FAMILIES.get((metric.scope, metric.name))
    if family is not None:
        return f"`{shown(family)}`"
    if metric.name in distributions.FAMILIES:
        return f"histogram `{distributions.FAMILIES[metric.name].name}`"
    if metric.type == "histogram":
        return "histograms " + ", ".join(f"`{family.name}`" for family in latencies.FAMILIES)
    return "`rate()`" if metric.formula == METER else "–"


def shown(family: Family) -> str:
    """Return a family's name with the label that tells its metric from others of the family."""
    if family.label is None:
        return family.name
    name, value = family.label
    return f'{family.name}{{{name}="{value}"}}'


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
