"""What a whole run comes to: for the job, and for each vertex, one number a figure, and how it was come by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from collector import columns
from collector.arrivals import leaving
from collector.histogram import histogram, merge
from collector.history import Course
from collector.run import Run
from collector.store import Column, JobState, VertexState
from streamgauge import names
from streamgauge.wire import ENDED_STATES

Basis = Literal["history", "run", "batches", "end"]
"""
How a figure was come by.

history: mean of the samples of the last 15 minutes at which it was known; of a rate, of those above 0 alone, so that
the time in which nothing came does not count.
run: of the whole run: totals, totals over its duration, percentiles of all its markers, all its micro-batches.
batches: mean over the completed micro-batches that are held, at most ten.
end: as it was last told.
"""

Unit = Literal["count", "records", "records/s", "bytes", "bytes/s", "ms", "ms/s", "percent"]


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A figure that runs are compared by.

    Args:
        id: A metric's name, as histories have it where they have it.
        direction: 1 where more of it is for the worse, −1 where less is, 0 where neither.
        floor: A difference up to this, in its unit, is nothing; None where it is told, but no difference of it says
            anything by itself: a total that grows as long as the run lasts.
    """

    id: str
    unit: Unit
    direction: Literal[-1, 0, 1] = 1
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """
    A figure of one run.

    Args:
        noise: By how much the samples differ among themselves: the median of their distances from their median. 0 where
            there are none.
    """

    value: float
    noise: float = 0.0


Readings = Mapping[Basis, Reading]
"""All the ways in which a figure of one run is known, the better first; none where it is unknown."""

_RECORDS_IN, _RECORDS_OUT = names.NUM_RECORDS_IN + names.PER_SECOND, names.NUM_RECORDS_OUT + names.PER_SECOND
_BUSY, _PRESSED = f"{names.BUSY_TIME}.avg", f"{names.BACK_PRESSURED_TIME}.avg"
_SKEW = f"{names.NUM_RECORDS_IN}.skew"
_LATE, _SPILLED = names.NUM_LATE_RECORDS_DROPPED, names.NUM_BYTES_SPILLED
_P50, _P99 = f"{names.LATENCY}.p50", f"{names.LATENCY}.p99"
DURATION = "duration"
BATCH_DURATION, BATCH_DURATION_P99 = "batchDuration.avg", "batchDuration.p99"
PHASE = "phase."
"""Stands before the name of one of Spark's phases of a micro-batch."""
EXCEPTIONS = "exceptions"

_KEPT = (
    Kind(names.NUM_RECORDS_IN, "records", 0),
    Kind(names.NUM_RECORDS_OUT, "records", 0),
    # Where less came the totals tell so; where as much came it took longer.
    Kind(_RECORDS_IN, "records/s", -1, 1.0),
    Kind(_RECORDS_OUT, "records/s", -1, 1.0),
    Kind(_P50, "ms", 1, 10.0),
    Kind(_P99, "ms", 1, 10.0),
    Kind(names.WATERMARK_LAG, "ms", 1, 100.0),
    Kind(names.NUM_STATE_ROWS, "records", 1, 100.0),
    Kind(names.STATE_MEMORY_USED, "bytes", 1, 1024.0 * 1024),
    Kind(_SPILLED, "bytes", 1),
    Kind(_SPILLED + names.PER_SECOND, "bytes/s", 1, 1024.0),
    Kind(_LATE, "records", 1),
    Kind(_LATE + names.PER_SECOND, "records/s", 1, 0.01),
)
"""Those that a vertex and a job have alike."""

VERTEX_KINDS: tuple[Kind, ...] = (
    Kind("parallelism", "count", 0, 0.0),
    *_KEPT[:4],
    Kind(_BUSY, "ms/s", 1, 20.0),
    Kind(_PRESSED, "ms/s", 1, 20.0),
    Kind(_SKEW, "percent", 1, 5.0),
    *_KEPT[4:],
)

JOB_KINDS: tuple[Kind, ...] = (
    Kind(DURATION, "ms", 1),
    Kind(names.NUM_COMPLETED_CHECKPOINTS, "count", 0),
    Kind(names.NUM_FAILED_CHECKPOINTS, "count", 1, 0.0),
    Kind(BATCH_DURATION, "ms", 1, 10.0),
    Kind(BATCH_DURATION_P99, "ms", 1, 10.0),
    *_KEPT,
    Kind(names.BACKLOG_ROWS, "records", 1, 100.0),
    Kind(names.BACKLOG_TIME, "ms", 1, 100.0),
    Kind(names.TRIGGER_INTERVAL, "ms", 0, 0.0),
    # One more in every run that follows another.
    Kind(names.NUM_RESTARTS, "count", 1),
    Kind(EXCEPTIONS, "count", 1, 0.0),
)
"""Phases of micro-batches are not among them, see `phase_kind`."""


def phase_kind(phase: str) -> Kind:
    """Return the figure of one of Spark's phases of a micro-batch; any thread."""
    return Kind(PHASE + phase, "ms", 1, 10.0)


def until_ms(run: Run, now_ms: int) -> int:
    """
    Return up to when a run's figures go, wall time: its end, when it fell silent, or now. Any thread.

    Args:
        now_ms: Wall time, for a run that goes on; of one that was sampled later, that is the time.
    """
    state = run.state
    if state.state in ENDED_STATES:
        return state.job.end_ms if state.job.end_ms >= 0 else state.modified_ms
    if state.state == "SUSPENDED":
        return state.modified_ms
    sampled_ms: list[int] = [] if run.course is None else run.course.times_ms[-1:].tolist()
    return max([now_ms, *sampled_ms])


def duration_ms(run: Run, now_ms: int) -> int | None:
    """Return how long a run has lasted, at least 0; None where its start is not known. Any thread."""
    start_ms = run.state.attempt.start_ms
    return None if start_ms < 0 else max(0, until_ms(run, now_ms) - start_ms)


def of_job(run: Run, now_ms: int) -> dict[str, Readings]:
    """
    Return what is known of a run as a whole, by JOB_KINDS and `phase_kind`; what is unknown is absent. Any thread.

    Records in are those of vertices that begin with a source, records out and latencies of those that no other reads;
    what else vertices have is summed over all of them.
    """
    state, lasted_ms = run.state, duration_ms(run, now_ms)
    vertices = list(state.vertices.values())
    sources = [vertex for vertex in vertices if vertex.vertex.is_source]
    sinks = [vertex for vertex in vertices if not vertex.feeds]
    course = _own(run, run.course)
    found: dict[str, Readings] = _shared(vertices, sources, sinks, lasted_ms, course)
    if lasted_ms is not None:
        found[DURATION] = {"run": Reading(lasted_ms)}
    _put(found, names.NUM_RESTARTS, "end", state.restarts)
    failures = state.failures
    _put(found, EXCEPTIONS, "run", len(failures.latest) + failures.forgotten)
    for metric in (names.BACKLOG_ROWS, names.BACKLOG_TIME, names.TRIGGER_INTERVAL):
        last = state.job.metrics.get(metric)
        if metric != names.TRIGGER_INTERVAL:
            _put_mean(found, metric, course, metric)
        if isinstance(last, int | float) and not isinstance(last, bool):
            _put(found, metric, "end", last)
    if state.job.type == "STREAMING":
        _put_batches(found, state)
    return found


def of_vertex(run: Run, vertex: VertexState, now_ms: int) -> dict[str, Readings]:
    """
    Return what is known of a vertex of a run, by VERTEX_KINDS; what is unknown is absent. Any thread.

    Shares of time are the mean of the subtasks; latencies those at the last of its operators that has any, of all
    sources together.
    """
    held = run.vertices.get(vertex.vertex.id)
    course = None if held is None else _own(run, held.figures)
    lasted_ms = duration_ms(run, now_ms)
    found: dict[str, Readings] = _shared([vertex], [vertex], [vertex], lasted_ms, course)
    if vertex.size:
        _put(found, "parallelism", "end", vertex.parallelism)
    read = _values([vertex.columns.get(names.NUM_RECORDS_IN)])
    summary = columns.summarize(read)
    if summary is not None:
        _put(found, _SKEW, "run", summary.skew)
    for figure, total in (
        (_BUSY, names.ACCUMULATED_BUSY_TIME),
        (_PRESSED, names.ACCUMULATED_BACK_PRESSURED_TIME),
    ):
        _put_mean(found, figure, course, figure)
        spent = _values([vertex.columns.get(total)])
        if spent.size and lasted_ms:
            _put(found, figure, "run", 1_000 * float(spent.mean()) / lasted_ms)
    return found


def _own(run: Run, course: Course | None) -> Course | None:
    """Return what was sampled in this run: a job's course goes on over its runs."""
    return None if course is None else course.since(run.state.attempt.start_ms - 1)


def _shared(
    vertices: Iterable[VertexState],
    sources: Iterable[VertexState],
    sinks: Iterable[VertexState],
    lasted_ms: int | None,
    course: Course | None,
) -> dict[str, Readings]:
    found: dict[str, Readings] = {}
    everyone = list(vertices)
    totals = {
        names.NUM_RECORDS_IN: _sum(vertex.columns.get(names.NUM_RECORDS_IN) for vertex in sources),
        names.NUM_RECORDS_OUT: _sum(vertex.columns.get(names.NUM_RECORDS_OUT) for vertex in sinks),
        _SPILLED: _sum(vertex.columns.get(_SPILLED) for vertex in everyone),
        _LATE: _sum(_of_operators(everyone, _LATE)),
    }
    for metric, total in totals.items():
        if total is None:
            continue
        _put(found, metric, "run", total)
        rate = metric + names.PER_SECOND
        if metric in (names.NUM_RECORDS_IN, names.NUM_RECORDS_OUT):
            _put_mean(found, rate, course, rate, lambda samples: samples > 0)
        if lasted_ms:
            _put(found, rate, "run", 1_000 * total / lasted_ms)
    for metric in (names.NUM_STATE_ROWS, names.STATE_MEMORY_USED):
        total = _sum(_of_operators(everyone, metric))
        if total is not None:
            _put(found, metric, "end", total)
    _put_mean(found, names.WATERMARK_LAG, course, names.WATERMARK_LAG)
    told = merge(histogram(one.total) for vertex in sinks for one in leaving(vertex).values())
    percentiles = told.percentiles_ms((50, 99))
    if percentiles is not None:
        for figure, value in zip((_P50, _P99), percentiles, strict=True):
            _put(found, figure, "run", value)
    return found


def _put_batches(found: dict[str, Readings], state: JobState) -> None:
    totals = state.checkpoints.totals
    _put(found, names.NUM_COMPLETED_CHECKPOINTS, "run", totals.completed)
    _put(found, names.NUM_FAILED_CHECKPOINTS, "run", totals.failed)
    if totals.duration_ms is not None:
        _put(found, BATCH_DURATION, "run", totals.duration_ms.avg)
        _put(found, BATCH_DURATION_P99, "run", totals.duration_ms.p99)
    lasted: dict[str, list[int]] = {}
    for batch in state.checkpoints.held.values():
        if batch.status == "COMPLETED":
            for phase, ms in batch.phases.items():
                lasted.setdefault(phase, []).append(ms)
    for phase, several in lasted.items():
        _put(found, PHASE + phase, "batches", sum(several) / len(several))


def _put_mean(
    found: dict[str, Readings],
    figure: str,
    course: Course | None,
    sampled: str,
    counts: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]] | None = None,
) -> None:
    """Put in the mean of a figure's samples that are known, and of these that count."""
    samples = None if course is None else course.figures.get(sampled)
    if samples is None:
        return
    known = samples[~np.isnan(samples)].astype(np.float64)
    if counts is not None and known.size:
        # Where it was 0 all the time, that is what it was.
        known = known[counts(known)] if counts(known).any() else known
    if known.size:
        noise = float(np.median(np.abs(known - np.median(known))))
        _put(found, figure, "history", float(known.mean()), noise)


def _put(found: dict[str, Readings], figure: str, basis: Basis, value: float, noise: float = 0.0) -> None:
    if math.isfinite(value):
        # What it was added up from, and a float32 of a history, has no more digits than these.
        rounded = float(f"{value:.12g}") if basis != "history" else float(f"{value:.7g}")
        found[figure] = {**found.get(figure, {}), basis: Reading(rounded, noise)}


def _of_operators(vertices: Iterable[VertexState], metric: str) -> Iterable[Column | None]:
    return (told.get(metric) for vertex in vertices for told in vertex.operators.values())


def _values(told: Iterable[Column | None]) -> npt.NDArray[np.float64]:
    parts = [columns.values(column) for column in told if column is not None]
    values = np.concatenate(parts) if parts else np.zeros(0)
    return values[np.isfinite(values)]


def _sum(told: Iterable[Column | None]) -> float | None:
    values = _values(told)
    return float(values.sum()) if values.size else None
