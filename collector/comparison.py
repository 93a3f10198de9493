"""Two runs beside each other: their figures vertex by vertex, how they were set, and what has changed by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from collector import run_figures
from collector.pairing import OperatorChange, Pair, operator_changes, pairs
from collector.run import Run
from collector.run_figures import JOB_KINDS, PHASE, VERTEX_KINDS, Basis, Kind, Reading, Readings

RELATIVE_CHANGE = 0.2
"""A difference that is less than this share of the greater of both values is no finding."""

FINDINGS = 12
"""Told at most: of more the greatest."""

_OF_ONE_RUN = (
    "spark.app.id",
    "spark.app.startTime",
    "spark.app.submitTime",
    "spark.app.initial.",
    "spark.driver.port",
    "spark.driver.appUIAddress",
    "spark.executor.id",
    "spark.repl.class.",
    "spark.repl.local.",
    "spark.ui.proxyBase",
)
"""Settings, or how they begin, that are others in every run though nobody has set them so."""


@dataclass(frozen=True, slots=True)
class Figure:
    """
    A figure of two runs.

    Args:
        basis: How both values were come by; the best that both runs have.
        before, after: At least one is known; None where it is not.
        floor: As in `Kind`, or what the samples of either run differ among themselves, if that is more.
    """

    kind: Kind
    basis: Basis
    before: float | None
    after: float | None
    floor: float | None

    @property
    def difference(self) -> float | None:
        """Return by how much it is more than before; None where one of both is unknown."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def ratio(self) -> float | None:
        """Return it over what it was before; None where one of both is unknown, or it was 0."""
        return None if self.before is None or self.after is None or self.before == 0 else self.after / self.before

    @property
    def change(self) -> float | None:
        """
        Return the difference as a share of the greater of both values; None where one of both is unknown.

        From −1 to 1 where neither is below 0; 0 where both are 0. The other way round it is as much, negative.
        """
        if self.before is None or self.after is None:
            return None
        greater = max(abs(self.before), abs(self.after))
        return (self.after - self.before) / greater if greater else 0.0

    @property
    def is_finding(self) -> bool:
        """Return whether it has changed by RELATIVE_CHANGE at least, and by more than its floor."""
        difference, change = self.difference, self.change
        if difference is None or change is None or self.floor is None:
            return False
        return abs(difference) > self.floor and abs(change) >= RELATIVE_CHANGE


@dataclass(frozen=True, slots=True)
class ComparedVertex:
    """
    A vertex of two runs, or of one of both.

    Args:
        figures: Those that are known of either, by VERTEX_KINDS.
        operators: Those that have changed, where both runs have the vertex.
    """

    pair: Pair
    figures: tuple[Figure, ...]
    operators: tuple[OperatorChange, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A figure that has changed.

    Args:
        pair: The vertex; None where it is of the whole job.
    """

    figure: Figure
    pair: Pair | None

    @property
    def score(self) -> float:
        """Return its change where more is for the worse, the opposite where less is, 0 where neither."""
        return (self.figure.change or 0.0) * self.figure.kind.direction


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs; None where a run does not have it."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    Two runs.

    Args:
        figures: Of the job, by JOB_KINDS and Spark's phases of a micro-batch.
        vertices: Those of the later run, then those that only the earlier one has.
        settings: Those that differ, by key.
        findings: What is for the worse first, the greatest change first; what is for the better last, likewise the
            greatest last.
        left_out: How many findings more there are, each less than all that are told.

    Any thread, since nobody changes it once it is made.
    """

    figures: tuple[Figure, ...]
    vertices: tuple[ComparedVertex, ...]
    settings: tuple[Setting, ...]
    findings: tuple[Finding, ...]
    left_out: int


def compare(this: Run, base: Run, now_ms: int) -> Comparison:
    """
    Compare two runs, of one job or of two.

    Args:
        this: The later one: "after".
        base: "before".
        now_ms: Wall time, up to which a run goes that has not ended.

    Any thread.
    """
    # How long a stream runs, somebody decides; how long a batch takes is what it is about.
    timed = this.state.job.type == base.state.job.type == "BATCH"
    of_job = tuple(
        _figures(
            map(partial(_kind, timed), JOB_KINDS),
            run_figures.of_job(base, now_ms),
            run_figures.of_job(this, now_ms),
        )
    )
    vertices = tuple(_vertex(this, base, pair, now_ms) for pair in pairs(base.state.vertices, this.state.vertices))
    found = [Finding(figure, each.pair) for each in vertices for figure in each.figures if figure.is_finding]
    # What a job has of one of its vertices alone is told of that vertex.
    told = {(each.figure.kind.id, each.figure.before, each.figure.after) for each in found}
    found = [
        Finding(figure, None)
        for figure in of_job
        if figure.is_finding and (figure.kind.id, figure.before, figure.after) not in told
    ] + found
    greatest = sorted(found, key=lambda finding: -abs(finding.figure.change or 0.0))[:FINDINGS]
    return Comparison(
        of_job,
        vertices,
        tuple(_settings(this, base)),
        tuple(sorted(greatest, key=lambda finding: -finding.score)),
        len(found) - len(greatest),
    )


def _kind(timed: bool, kind: Kind) -> Kind:
    return Kind(kind.id, kind.unit, kind.direction, 100.0) if timed and kind.id == run_figures.DURATION else kind


def _vertex(this: Run, base: Run, pair: Pair, now_ms: int) -> ComparedVertex:
    before = {} if pair.before is None else run_figures.of_vertex(base, pair.before, now_ms)
    after = {} if pair.after is None else run_figures.of_vertex(this, pair.after, now_ms)
    return ComparedVertex(pair, tuple(_figures(VERTEX_KINDS, before, after)), tuple(operator_changes(pair)))


def _figures(kinds: Iterable[Kind], before: Mapping[str, Readings], after: Mapping[str, Readings]) -> Iterable[Figure]:
    phases = dict.fromkeys(figure.removeprefix(PHASE) for figure in (*after, *before) if figure.startswith(PHASE))
    for kind in (*kinds, *map(run_figures.phase_kind, sorted(phases))):
        one, other = before.get(kind.id, {}), after.get(kind.id, {})
        # What was come by in two ways cannot be compared: the first way that both have, else what one has.
        basis = next((basis for basis in one if basis in other), next(iter({**one, **other}), None))
        if basis is not None:
            yield _figure(kind, basis, one.get(basis), other.get(basis))


def _figure(kind: Kind, basis: Basis, before: Reading | None, after: Reading | None) -> Figure:
    noise = max((reading.noise for reading in (before, after) if reading is not None), default=0.0)
    return Figure(
        kind,
        basis,
        None if before is None else before.value,
        None if after is None else after.value,
        None if kind.floor is None else max(kind.floor, noise),
    )


def _settings(this: Run, base: Run) -> Iterable[Setting]:
    before, after = _configuration(base, this), _configuration(this, base)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and not key.startswith(_OF_ONE_RUN):
            yield Setting(key, before.get(key), after.get(key))


def _configuration(run: Run, other: Run) -> dict[str, str]:
    """Return how a run was set; what its application was set to only where that is known of both."""
    known = run.app is not None and other.app is not None and run.app.configuration and other.app.configuration
    return {**(run.app.configuration if known and run.app is not None else {}), **run.state.configuration}
