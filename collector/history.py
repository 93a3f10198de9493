"""The last 15 minutes of every job and vertex: a page that is opened late still shows what happened."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from collector.arrivals import Arrivals, Arrived
from collector.histogram import BOUNDS_MS
from collector.readings import JOB_FIGURES, VERTEX_FIGURES, read_job, read_vertex
from collector.ring import Ring
from collector.store import JobState, MetricStore
from streamgauge.clock import Clock, SystemClock
from streamgauge.wire import ENDED_STATES

SAMPLE_INTERVAL_MS = 5_000
"""As often as drivers tell anew what they measure over time."""

HISTORY_MAX_BYTES = 256 * 1024 * 1024

_HEAT = len(BOUNDS_MS) + 1
"""Counts of one moment: up to each bound, and past all."""


@dataclass(frozen=True, slots=True)
class Course:
    """
    Figures over time, oldest first.

    Args:
        times_ms: Wall times, shape (n,); they need not ascend, for clocks are set. More than SAMPLE_INTERVAL_MS apart
            where nobody knew anything, as of a silent driver.
        figures: Name → values, float32, shape (n,); NaN where not known. One that was never known is absent.
    """

    times_ms: npt.NDArray[np.int64]
    figures: Mapping[str, npt.NDArray[np.float32]]

    def since(self, time_ms: int | None) -> Course:
        """Return what was sampled after a wall time, without what was never known since; None for all."""
        return self if time_ms is None else self._chosen(self.times_ms > time_ms)

    def until(self, time_ms: int) -> Course:
        """Return what was sampled up to a wall time; else as `since`."""
        return self._chosen(self.times_ms <= time_ms)

    def _chosen(self, chosen: npt.NDArray[np.bool_]) -> Course:
        figures = {name: values[chosen] for name, values in self.figures.items()}
        known = {name: values for name, values in figures.items() if not np.isnan(values).all()}
        return Course(self.times_ms[chosen], known)


@dataclass(frozen=True, slots=True)
class Heat:
    """
    Latencies over time, oldest first.

    Args:
        times_ms: As in `Course`.
        counts: uint32, shape (n, len(BOUNDS_MS) + 1): markers that arrived since the moment before, by the bound that
            their latency is up to, past the one before it; last those past all.
    """

    times_ms: npt.NDArray[np.int64]
    counts: npt.NDArray[np.uint32]

    def since(self, time_ms: int | None) -> Heat:
        """Return what was sampled after a wall time; None for all."""
        return self if time_ms is None else self._chosen(self.times_ms > time_ms)

    def until(self, time_ms: int) -> Heat:
        """Return what was sampled up to a wall time."""
        return self._chosen(self.times_ms <= time_ms)

    def _chosen(self, chosen: npt.NDArray[np.bool_]) -> Heat:
        return Heat(self.times_ms[chosen], self.counts[chosen])


class _Vertex:
    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.figures = Ring(len(VERTEX_FIGURES), np.float32)
        self.heat: Ring | None = None

    @property
    def nbytes(self) -> int:
        return self.figures.nbytes + (0 if self.heat is None else self.heat.nbytes)


@dataclass(slots=True)
class _Job:
    figures: Ring = field(default_factory=lambda: Ring(len(JOB_FIGURES), np.float32))
    vertices: dict[str, _Vertex] = field(default_factory=dict)
    ended: bool = False

    @property
    def nbytes(self) -> int:
        return self.figures.nbytes + sum(vertex.nbytes for vertex in self.vertices.values())


_Held = TypeVar("_Held", _Job, _Vertex, Ring)


class History:
    """
    Samples the store, and keeps CAPACITY samples of each job and of each of its vertices.

    One thread samples; any thread reads, and waits for no more than a job's sample to be put in. A job's goes with the
    job; of one that has ended the last sample is that of its end, of a silent one there are none meanwhile.

    Args:
        max_bytes: Past these no job and no vertex is taken in that is not there yet.
    """

    def __init__(self, store: MetricStore, clock: Clock, max_bytes: int = HISTORY_MAX_BYTES) -> None:
        self._store = store
        self._clock = clock
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._due_ns: int | None = None
        self._nbytes = 0
        self._left_out = 0

    @property
    def nbytes(self) -> int:
        """Return what it takes; any thread."""
        return self._nbytes

    @property
    def left_out(self) -> int:
        """Return how many jobs and vertices had no room at the last sample; any thread."""
        return self._left_out

    def sweep(self) -> None:
        """
        Sample what has ended at once, the rest if SAMPLE_INTERVAL_MS have passed since the last time; every second.
        """
        now_ns = self._clock.monotonic_ns()
        if self._due_ns is None or now_ns >= self._due_ns:
            # Of a round that came late the next one is not the later.
            behind = 0 if self._due_ns is None else (now_ns - self._due_ns) % (SAMPLE_INTERVAL_MS * 1_000_000)
            self._due_ns = now_ns - behind + SAMPLE_INTERVAL_MS * 1_000_000
            self.sample()
        else:
            self._conclude()

    def sample(self) -> None:
        """Take a sample of every job that has not ended and whose driver is not silent."""
        now_ms, jobs = self._clock.now_ms(), self._store.snapshot().jobs
        with self._lock:
            for jid in [jid for jid in self._jobs if jid not in jobs]:
                del self._jobs[jid]
            self._nbytes = sum(job.nbytes for job in self._jobs.values())
        self._left_out = 0
        for jid, state in jobs.items():
            held = self._jobs.get(jid)
            ended = state.state in ENDED_STATES
            if state.state == "SUSPENDED" or (ended and (held is None or held.ended)):
                continue
            held = held or self._admitted(_Job())
            if held is None:
                self._left_out += 1 + len(state.vertices)
            else:
                self._take(now_ms, state, held)

    def _conclude(self) -> None:
        """Take the last sample of what has ended since the one before."""
        now_ms, jobs = self._clock.now_ms(), self._store.snapshot().jobs
        left_out = self._left_out
        for jid, held in list(self._jobs.items()):
            state = jobs.get(jid)
            if state is not None and state.state in ENDED_STATES and not held.ended:
                self._take(now_ms, state, held)
        self._left_out = left_out

    def is_concluded(self, jid: str) -> bool:
        """Tell whether nothing more will be sampled of a job that has ended; any thread."""
        with self._lock:
            held = self._jobs.get(jid)
            return held is None or held.ended

    def restore(
        self, jid: str, course: Course | None, vertices: Mapping[str, tuple[Course | None, Heat | None]]
    ) -> None:
        """
        Hold what was sampled before of a job that has ended; before the first sample, by the thread that samples.

        Where there is no room for it nothing is held.
        """
        if course is None:
            return
        job = _Job(ended=True)
        _refill(job.figures, course, JOB_FIGURES)
        for vertex_id, (figures, heat) in vertices.items():
            if figures is None:
                continue
            one = job.vertices[vertex_id] = _Vertex()
            _refill(one.figures, figures, VERTEX_FIGURES)
            if heat is not None and heat.counts.shape[1:] == (_HEAT,):
                one.heat = Ring(_HEAT, np.uint32)
                for time_ms, counts in zip(heat.times_ms.tolist(), heat.counts, strict=True):
                    one.heat.add(time_ms, counts)
        if self._nbytes + job.nbytes <= self._max_bytes:
            with self._lock:
                self._nbytes += job.nbytes
                self._jobs[jid] = job

    def job(self, jid: str, since_ms: int | None = None) -> Course | None:
        """
        Return a job's course, by JOB_FIGURES; None where nothing is held of it.

        Args:
            since_ms: Wall time; of what was sampled after it alone.
        """
        with self._lock:
            held = self._jobs.get(jid)
            return None if held is None else _course(held.figures, JOB_FIGURES, since_ms)

    def vertex(self, jid: str, vertex: str, since_ms: int | None = None) -> Course | None:
        """Return a vertex' course, by VERTEX_FIGURES; as `job`."""
        with self._lock:
            held = self._vertex(jid, vertex)
            return None if held is None else _course(held.figures, VERTEX_FIGURES, since_ms)

    def heat(self, jid: str, vertex: str, since_ms: int | None = None) -> Heat | None:
        """Return the latencies of markers that left a vertex; None where none ever did; else as `job`."""
        with self._lock:
            held = self._vertex(jid, vertex)
            return None if held is None or held.heat is None else Heat(*held.heat.since(since_ms))

    def _vertex(self, jid: str, vertex: str) -> _Vertex | None:
        job = self._jobs.get(jid)
        return None if job is None else job.vertices.get(vertex)

    def _admitted(self, one: _Held) -> _Held | None:
        """Return what is taken in, and counts from now on; None where there is no room for it."""
        if self._nbytes + one.nbytes > self._max_bytes:
            return None
        self._nbytes += one.nbytes
        return one

    def _take(self, now_ms: int, state: JobState, job: _Job) -> None:
        read, arrived, sampled = {}, [], []
        for vertex_id, vertex in state.vertices.items():
            one = job.vertices.get(vertex_id) or self._admitted(_Vertex())
            if one is None:
                self._left_out += 1
                continue
            came = one.arrivals.look(vertex, state.attempt.run_id)
            with np.errstate(over="ignore", invalid="ignore"):
                told = read_vertex(vertex, came)
            sampled.append((vertex_id, one, told, came))
            if vertex.vertex.current:
                read[vertex_id] = told
                if not vertex.feeds and came is not None:
                    arrived.append(came)
        with np.errstate(over="ignore", invalid="ignore"):
            of_job = read_job(state, read, Arrived.of(arrived) if arrived else None)
        with self._lock:
            self._jobs[state.job.jid] = job
            # A plan that was replaced takes its vertices with it.
            job.vertices = {vertex_id: one for vertex_id, one, _, _ in sampled}
            for _, one, told, came in sampled:
                one.figures.add(now_ms, _row(told, VERTEX_FIGURES))
                self._warm(now_ms, one, came)
            job.figures.add(now_ms, _row(of_job, JOB_FIGURES))
            job.ended = state.state in ENDED_STATES

    def _warm(self, now_ms: int, one: _Vertex, came: Arrived | None) -> None:
        if came is None:
            return
        if one.heat is None:
            one.heat = self._admitted(Ring(_HEAT, np.uint32))
        if one.heat is None:
            return
        up_to = np.array([*came.total.counts_up_to(BOUNDS_MS), came.total.count + came.total.buckets.above])
        one.heat.add(now_ms, np.minimum(np.diff(up_to, prepend=0), np.iinfo(np.uint32).max))


NO_HISTORY = History(MetricStore(), SystemClock())
"""Of nothing, and never sampled."""


def _row(told: Mapping[str, float], figures: Iterable[str]) -> npt.NDArray[np.float32]:
    row = np.array([told.get(figure, np.nan) for figure in figures])
    # What no float32 holds is no figure that a chart could show.
    return np.where(np.abs(row) <= np.finfo(np.float32).max, row, np.nan).astype(np.float32)


def _refill(ring: Ring, course: Course, names: Sequence[str]) -> None:
    unknown = np.full(len(course.times_ms), np.nan, np.float32)
    rows = np.column_stack([course.figures.get(name, unknown) for name in names])
    for time_ms, row in zip(course.times_ms.tolist(), rows, strict=True):
        ring.add(time_ms, row)


def _course(ring: Ring, names: Iterable[str], since_ms: int | None) -> Course:
    times_ms, rows = ring.since(since_ms)
    known = ~np.isnan(rows)
    return Course(times_ms, {name: rows[:, place] for place, name in enumerate(names) if known[:, place].any()})
