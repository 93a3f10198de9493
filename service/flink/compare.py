"""
Two runs beside each other: /jobs/:jobid/compare, ours in Flink's manner.

What is called after is the run of the path, what is called before the one that `with` names. What is not known of a run
is null, never 0.
"""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import TypedDict

from collector import comparison, run_figures
from collector.comparison import RELATIVE_CHANGE, ComparedVertex, Comparison
from collector.pairing import Rule
from collector.run import Run
from collector.run_figures import Basis, Unit
from collector.segment import run_id
from collector.store import VertexState
from service.errors import HANDLER, Missing
from service.flink.ids import Id
from service.flink.query import Query
from streamgauge import wire
from streamgauge.errors import UnknownJob, UnresolvableParameter

_RUN = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
"""A run's id as Spark writes it, and that of a run or a job here, which has no dashes."""

ComparedRun = TypedDict(
    "ComparedRun",
    {
        "jid": Id,
        "run": Id,
        "name": str,
        "job-type": Literal["STREAMING", "BATCH"],
        "state": wire.JobState,
        "start-time": int,
        "end-time": int,
        "duration": int | None,
        "as-of": int,
        "failure": str,
        "application": str,
        "spark-version": str,
        "hooks-version": str,
    },
)
"""
A run. `start-time` is its own, not that of the job's first run; `end-time` is −1 where no end was told; its figures are
`as-of` the end, when it fell silent, or now.
"""


class ComparedFigure(TypedDict):
    """
    A figure of both runs; at least one of `before` and `after` is known.

    Args:
        basis: How both were come by. history: the mean of the last 15 minutes' samples at which it was known, of a rate
            of those above 0. run: of the whole run; rates are totals over its duration. batches: the mean of the
            completed micro-batches that are held, at most ten. end: as it was last told.
        difference, ratio: after - before, after / before; null where one is unknown, the ratio also where before is 0.
        direction: 1 where more is for the worse, -1 where less is, 0 where neither.
        floor: A difference up to this is no finding: the least that is looked at, or by how much the samples of either
            run differ among themselves (the median of their distances from their median), if that is more. Null where
            none ever is one: a total that grows as long as the run lasts.
    """

    id: str
    unit: Unit
    basis: Basis
    before: float | None
    after: float | None
    difference: float | None
    ratio: float | None
    direction: Literal[-1, 0, 1]
    floor: float | None


Finding = TypedDict(
    "Finding",
    {
        "figure": str,
        "id-before": Id | None,
        "id-after": Id | None,
        "unit": Unit,
        "before": float,
        "after": float,
        "difference": float,
        "ratio": float | None,
        "score": float,
    },
)
"""
A figure that has changed, of a vertex by its ids in both runs, or of the job where both are null.

score: The difference over the greater of both values, positive where that is for the worse, 0 where it is neither.
"""

Findings = TypedDict("Findings", {"relative-change": float, "left-out": int, "entries": list[Finding]})
"""
What has changed: figures whose difference is more than their floor and at least `relative-change` of the greater of
both values. By descending score; of more than 12 those that changed most, and how many are left out.
A figure that the job has of one vertex alone is told of that vertex.
"""


class OperatorChange(TypedDict):
    """An operator with Spark's description of it in both runs; null in the one that does not have it."""

    name: str
    before: str | None
    after: str | None


ComparedVertexBody = TypedDict(
    "ComparedVertexBody",
    {
        "id-before": Id | None,
        "id-after": Id | None,
        "name-before": str | None,
        "name-after": str | None,
        "rule": Rule | None,
        "figures": list[ComparedFigure],
        "operators": list[OperatorChange],
    },
)
"""
A vertex; what is null in one run it does not have.

rule: By what both are taken for the same: their `id`, a hash of their plan; else their `name`, each in its place among
equals; else `operators`, at least half of which both have, by name.
"""


class SettingChange(TypedDict):
    """A setting that differs, redacted as everywhere; null in the run that does not have it."""

    key: str
    before: str | None
    after: str | None


class RunComparison(TypedDict):
    """The body of /jobs/:jobid/compare."""

    now: int
    before: ComparedRun
    after: ComparedRun
    findings: Findings
    figures: list[ComparedFigure]
    vertices: list[ComparedVertexBody]
    configuration: list[SettingChange]


def of_job(query: Query) -> RunComparison:
    """
    Answer /jobs/:jobid/compare: the run of the path, and the one before it or that `with` names.

    Raises:
        UnknownJob: never seen, or evicted and not archived.
        Missing: `with` names no run that is known, or is absent and there is no run before.
        UnresolvableParameter: `with` is neither 32 hex digits nor a run's id as Spark writes it.
        ArchiveAway: the archive does not answer.
        CorruptSegment: what it holds of one of both cannot be read.
    """
    wanted = _wanted(query)
    this = query.run()
    base = _before(query, this) if wanted is None else _named(query, this, wanted)
    told = comparison.compare(this, base, query.now_ms)
    return {
        "now": query.now_ms,
        "before": _run(base, query.now_ms),
        "after": _run(this, query.now_ms),
        "findings": _findings(told),
        "figures": [_figure(figure) for figure in told.figures],
        "vertices": [_vertex(vertex) for vertex in told.vertices],
        "configuration": [{"key": each.key, "before": each.before, "after": each.after} for each in told.settings],
    }


def _wanted(query: Query) -> str | None:
    words = query.words("with")
    if words is None:
        return None
    if len(words) == 1 and _RUN.fullmatch(words[0]):
        return words[0].replace("-", "").lower()
    raise UnresolvableParameter("query", "with", ",".join(query.parameters["with"]))


def _named(query: Query, this: Run, wanted: str) -> Run:
    try:
        return query.run(wanted)
    except UnknownJob:
        jid = this.state.job.jid
        raise Missing(
            HANDLER, f"No job and no run {wanted} is known: name one that /jobs/{jid}/runs or /jobs/overview tells."
        ) from None


def _before(query: Query, this: Run) -> Run:
    jid = this.state.job.jid
    for entry in query.runs(jid):
        if entry.attempt < this.state.attempt:
            return query.run(entry.run)
    raise Missing(
        HANDLER,
        f"No run of job {jid} before {run_id(this.state)} is archived: name another run or job by ?with=<id>; "
        f"/jobs/{jid}/runs tells which runs there are, /jobs/overview which jobs.",
    )


def _run(run: Run, now_ms: int) -> ComparedRun:
    state = run.state
    ended = state.state in wire.ENDED_STATES
    return {
        "jid": state.job.jid,
        "run": run_id(state),
        "name": state.job.name,
        "job-type": state.job.type,
        "state": state.state,
        "start-time": state.attempt.start_ms,
        "end-time": state.job.end_ms if ended else -1,
        "duration": run_figures.duration_ms(run, now_ms),
        "as-of": run_figures.until_ms(run, now_ms),
        "failure": state.job.failure,
        "application": state.app.id,
        "spark-version": state.app.spark_version,
        "hooks-version": state.app.hooks_version,
    }


def _figure(told: comparison.Figure) -> ComparedFigure:
    return {
        "id": told.kind.id,
        "unit": told.kind.unit,
        "basis": told.basis,
        "before": told.before,
        "after": told.after,
        "difference": told.difference,
        "ratio": told.ratio,
        "direction": told.kind.direction,
        "floor": told.floor,
    }


def _findings(told: Comparison) -> Findings:
    entries: list[Finding] = []
    for finding in told.findings:
        figure, pair = finding.figure, finding.pair
        if figure.before is None or figure.after is None or figure.difference is None:
            continue
        entries.append(
            {
                "figure": figure.kind.id,
                "id-before": None if pair is None else _id(pair.before),
                "id-after": None if pair is None else _id(pair.after),
                "unit": figure.kind.unit,
                "before": figure.before,
                "after": figure.after,
                "difference": figure.difference,
                "ratio": figure.ratio,
                "score": finding.score,
            }
        )
    return {"relative-change": RELATIVE_CHANGE, "left-out": told.left_out, "entries": entries}


def _vertex(told: ComparedVertex) -> ComparedVertexBody:
    before, after = told.pair.before, told.pair.after
    return {
        "id-before": _id(before),
        "id-after": _id(after),
        "name-before": None if before is None else before.vertex.name,
        "name-after": None if after is None else after.vertex.name,
        "rule": told.pair.rule,
        "figures": [_figure(figure) for figure in told.figures],
        "operators": [
            {
                "name": change.name,
                "before": None if change.before is None else change.before.description,
                "after": None if change.after is None else change.after.description,
            }
            for change in told.operators
        ],
    }


def _id(vertex: VertexState | None) -> str | None:
    return None if vertex is None else vertex.vertex.id
