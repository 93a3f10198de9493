"""The latencies that a run's markers have had: the windows of the last ones, and histograms of all of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.routes import Station
from streamgauge import names, wire
from streamgauge.buckets import HdrCounts, statistics_of_rows

Integers = npt.NDArray[np.int64]

VALUES = 4_000_000
"""Held in the rings of one run, 32 MB; past it no more rings are begun, and histograms alone tell."""

SUBTASK_WINDOWS = 1024
"""Rings of one run that are of one subtask of a source at one subtask of a station; past it no more are begun."""

ALL_SOURCES = ""
ALL_SUBTASKS = -1
"""Stand for a source's id, and for one of its subtasks, where they are not told apart."""


class Window:
    """
    Rings of the last values, one for each subtask of a station and each of the source's, and their figures.

    Subtasks of the source are not told apart where `sources` is always 1. `revision` counts the changes. Not thread
    safe.

    Args:
        history: Values of a ring, at least 1.
    """

    def __init__(self, history: int) -> None:
        self.revision = 0
        self._rings = np.zeros((0, 0, history), dtype=np.int64)
        self._counts = np.zeros((0, 0), dtype=np.int64)
        self._statistics = np.zeros((len(names.LATENCY_STATISTICS), 0, 0))
        self._stale = np.zeros((0, 0), dtype=np.bool_)

    @property
    def shape(self) -> tuple[int, int]:
        """Subtasks of the source, and of the station."""
        sources, subtasks = self._counts.shape
        return sources, subtasks

    @property
    def rings(self) -> int:
        """How many there are."""
        return self._counts.size

    def register(self, sources: int, subtasks: int) -> None:
        """Have rings for so many subtasks of the source and of the station at least."""
        more = ((0, max(sources - self.shape[0], 0)), (0, max(subtasks - self.shape[1], 0)))
        if more != ((0, 0), (0, 0)):
            self._rings = np.pad(self._rings, (*more, (0, 0)))
            self._counts = np.pad(self._counts, more)
            self._stale = np.pad(self._stale, more)
            self._statistics = np.pad(self._statistics, ((0, 0), *more), constant_values=np.nan)

    def record(self, sources: Integers, subtasks: Integers, values: Integers) -> None:
        """
        Take values in, in their order.

        Args:
            sources, subtasks, values: int64, shape (n,); for all of the first two there are rings.
        """
        _, width, history = self._rings.shape
        rows = sources * width + subtasks
        # NumPy sorts 16 bits by radix, ten times as fast as wider ones.
        order = np.argsort(rows.astype(np.uint16) if self.rings <= 1 << 16 else rows, kind="stable")
        fresh = np.bincount(rows, minlength=self.rings)
        ends = np.cumsum(fresh)
        # Of more values than a ring takes, only the last ones: NumPy does not say which of two writes to a place wins.
        taken = np.minimum(fresh, history)
        before = np.repeat(ends - taken - (np.cumsum(taken) - taken), taken)
        sorted_places = np.arange(before.size) + before
        rows = np.repeat(np.arange(self.rings), taken)
        counts = self._counts.reshape(-1)
        rank = sorted_places + np.repeat(counts - (ends - fresh), taken)
        self._rings.reshape(-1)[rows * history + rank % history] = values[order[sorted_places]]
        counts += fresh
        self._stale.reshape(-1)[fresh > 0] = True
        self.revision += 1

    def told(self, source: int, size: int) -> tuple[bytes, bytes]:
        """Return counts and statistics of one of the source's subtasks, as `wire.Latency` has them."""
        self._refresh()
        counts = np.zeros(size, dtype="<i8")
        statistics = np.full((len(names.LATENCY_STATISTICS), size), np.nan, dtype="<f8")
        width = min(size, self.shape[1])
        counts[:width] = self._counts[source, :width]
        statistics[:, :width] = self._statistics[:, source, :width]
        return counts.tobytes(), statistics.tobytes()

    def _refresh(self) -> None:
        stale = np.flatnonzero(self._stale)
        if stale.size:
            history = self._rings.shape[2]
            held = np.minimum(self._counts.reshape(-1)[stale], history)
            rings = self._rings.reshape(-1, history)[stale, : held.max()]
            self._statistics.reshape(len(names.LATENCY_STATISTICS), -1)[:, stale] = statistics_of_rows(rings, held)
            self._stale[:] = False


class Histograms:
    """One source's latencies at a station over the whole run: all of each, and its two parts. Not thread safe."""

    def __init__(self) -> None:
        self.revision = 0
        self._total, self._queueing, self._processing = HdrCounts(), HdrCounts(), HdrCounts()

    def record(self, queueing_ms: Integers, processing_ms: Integers) -> None:
        """Count values, int64, shape (n,); not negative."""
        self._total.add(queueing_ms + processing_ms)
        self._queueing.add(queueing_ms)
        self._processing.add(processing_ms)
        self.revision += 1

    def told(self) -> tuple[wire.Buckets, wire.Buckets, wire.Buckets]:
        """Return the whole and its parts, as they travel."""
        of = wire.Buckets.of
        return of(self._total.read()), of(self._queueing.read()), of(self._processing.read())


class Arrivals(NamedTuple):
    """
    Markers of one source that have come to a station; int64, shape (n,), in the order of their marked times.

    Args:
        source: Id of the source vertex.
        sources: The source's subtasks.
        subtasks: The station's.
        queueing_ms: From the marked time to when the micro-batch began that carried them.
        processing_ms: From there to the arrival.
    """

    source: str
    sources: Integers
    subtasks: Integers
    queueing_ms: Integers
    processing_ms: Integers


class _Station:
    """
    What is kept of a station.

    Args:
        windows: Of each source's id, and whether its subtasks are told apart.
        histograms: Of each source's id.
    """

    def __init__(self) -> None:
        self.windows: dict[tuple[str, bool], Window] = {}
        self.histograms: dict[str, Histograms] = {}


Wanted = Callable[[tuple[str, ...], tuple[int, int]], bool]
"""Asked whether something is to be told, by what tells it apart in its vertex and a state that changes when it does."""


class Latencies:
    """
    The latencies of one run, vertex by vertex. Not thread safe.

    Args:
        granularity: What is told beside each source's.
        history: Values of a window, at least 1.
    """

    def __init__(self, granularity: wire.LatencyGranularity, history: int) -> None:
        self._granularity = granularity
        self._history = history
        self._vertices: dict[str, dict[tuple[str, ...], _Station]] = {}
        self._windows = self._subtask_windows = 0

    def record(self, vertex_id: str, station: Station, arrivals: Arrivals) -> None:
        """Take in what has come to a station of a vertex; something must have."""
        kept = self._vertices.setdefault(vertex_id, {}).setdefault(station.operators, _Station())
        histograms = kept.histograms.setdefault(arrivals.source, Histograms())
        histograms.record(arrivals.queueing_ms, arrivals.processing_ms)
        together = np.zeros_like(arrivals.sources)
        self._enter(kept, (arrivals.source, False), together, arrivals)
        if self._granularity == "single":
            self._enter(kept, (ALL_SOURCES, False), together, arrivals)
        # In the older form of Flink's ids, sinks tell the source's subtasks apart whatever the granularity.
        if self._granularity == "subtask" or station.sink:
            self._enter(kept, (arrivals.source, True), arrivals.sources, arrivals)

    def keep(self, vertices: Container[str]) -> None:
        """Forget all vertices but these."""
        for gone in [vertex_id for vertex_id in self._vertices if vertex_id not in vertices]:
            for station in self._vertices.pop(gone).values():
                for (_, apart), window in station.windows.items():
                    self._count(-window.rings, apart)

    def latencies(self, vertex_id: str, size: int, wanted: Wanted) -> Iterator[wire.Latency]:
        """
        Yield the windows' figures at a vertex's operators that are wanted.

        Args:
            size: The vertex's subtasks.
        """
        for number, (operators, station) in enumerate(self._vertices.get(vertex_id, {}).items()):
            for (source, apart), window in station.windows.items():
                if not wanted(("latency", str(number), source, str(apart)), (window.revision, size)):
                    continue
                for subtask in range(window.shape[0]):
                    told = subtask if apart else ALL_SUBTASKS
                    yield wire.Latency(source, told, operators, *window.told(subtask, size))

    def histograms(self, vertex_id: str, wanted: Wanted) -> Iterator[wire.LatencyHistogram]:
        """Yield the histograms at a vertex's operators that are wanted."""
        for number, (operators, station) in enumerate(self._vertices.get(vertex_id, {}).items()):
            for source, found in station.histograms.items():
                if wanted(("histogram", str(number), source), (found.revision, 0)):
                    yield wire.LatencyHistogram(source, operators, *found.told())

    def _enter(self, station: _Station, key: tuple[str, bool], sources: Integers, arrivals: Arrivals) -> None:
        window = station.windows.get(key) or Window(self._history)
        self._grow(window, int(sources.max()) + 1, int(arrivals.subtasks.max()) + 1, apart=key[1])
        there = (sources < window.shape[0]) & (arrivals.subtasks < window.shape[1])
        if there.any():
            station.windows[key] = window
            values = arrivals.queueing_ms + arrivals.processing_ms
            window.record(sources[there], arrivals.subtasks[there], values[there])

    def _grow(self, window: Window, sources: int, subtasks: int, apart: bool) -> None:
        """Give a window the rings that it needs, if there is room for all of them."""
        before = window.rings
        more = max(window.shape[0], sources) * max(window.shape[1], subtasks) - before
        room = (self._windows + more) * self._history <= VALUES
        if more and room and (not apart or self._subtask_windows + more <= SUBTASK_WINDOWS):
            window.register(sources, subtasks)
            self._count(more, apart)

    def _count(self, rings: int, apart: bool) -> None:
        self._windows += rings
        self._subtask_windows += rings * apart
