"""The live state of every job and executor: immutable snapshots, swapped whole by each write."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from collector.latencies import Latencies
from collector.taps import Taps
from streamgauge import wire
from streamgauge.errors import UnknownJob


@dataclass(frozen=True, slots=True)
class Column:
    """
    One metric over the subtasks of a vertex.

    Args:
        values: int64 or float64, shape (size,), read-only.
        present: Shape (size,), read-only; None where every subtask has a value.
    """

    # One type and not `wire.Array`, a union, which msgspec could not read back from the archive.
    values: npt.NDArray[np.int64 | np.float64]
    present: npt.NDArray[np.bool_] | None


Columns = Mapping[str, Column]
"""Metric name → column."""


@dataclass(frozen=True, slots=True)
class SubtaskTimes:
    """As `wire.Subtasks`: int64 arrays of shape (size,), −1 where not known."""

    attempt: npt.NDArray[np.int64]
    executor: npt.NDArray[np.int64]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    executors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accumulated:
    """A native SQL metric over the subtasks of a vertex; see `wire.Accumulator` for its kind and the driver's share."""

    kind: wire.AccumulatorKind
    column: Column
    driver: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointHistory:
    """
    A run's micro-batches.

    Args:
        totals: As the driver told them; `changed` is empty here.
        held: Batch id → micro-batch, newest first.
    """

    totals: wire.Checkpoints = field(default_factory=wire.Checkpoints)
    held: Mapping[int, wire.Checkpoint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VertexState:
    """
    One vertex's figures.

    Args:
        vertex: Its place in the graph.
        size: Length of every column.
        columns: Vertex scope.
        operators: Operator id → columns; every operator of `vertex` has an entry.
        subtasks: None until the first task was seen.
        feeds: Another vertex reads what it puts out.
        accumulators: (operator id, metric) → native SQL metric; the id is '' for an exchange.
        coordinators: Source operator's id → what the driver itself knows of it.
        latencies: Of markers, at its operators.
        taps: Its record taps with their splits, and what is distributed over records and timers.
    """

    vertex: wire.Vertex
    parallelism: int
    size: int
    start_ms: int
    columns: Columns
    operators: Mapping[str, Columns]
    subtasks: SubtaskTimes | None
    feeds: bool = True
    accumulators: Mapping[tuple[str, str], Accumulated] = field(default_factory=dict)
    coordinators: Mapping[str, Mapping[str, wire.Scalar]] = field(default_factory=dict)
    latencies: Latencies = field(default_factory=Latencies)
    taps: Taps = field(default_factory=Taps)


@dataclass(frozen=True, slots=True)
class JobState:
    """
    One job, as of its latest frame and the collector's own judgement.

    Args:
        job: The driver's words; `state` below is what to show.
        app: The application that runs it.
        attempt, seq: Of the latest frame.
        state: As `job.state`, or SUSPENDED while the driver is silent.
        since_ms: For each state, when this run last came into it, wall time.
        first_start_ms: Start of the first run that was seen.
        restarts: Runs seen after the first.
        vertices: Vertex id → state, sources first.
        interval_ms: Push interval of its driver.
        seen_ns: Monotonic time of the latest frame.
        modified_ms: Wall time of the latest change of state.
        series: Values held: every column counts its vertex's size.
        ended_ns: Monotonic time of the frame that told the end; None while the job has not ended.
        configuration, observed, failures: As in `wire.Frame`.
        failures_before: Of earlier runs.
    """

    job: wire.Job
    app: wire.App
    attempt: wire.Attempt
    seq: int
    state: wire.JobState
    since_ms: Mapping[str, int]
    first_start_ms: int
    restarts: int
    vertices: Mapping[str, VertexState]
    interval_ms: int
    seen_ns: int
    modified_ms: int
    incomplete: wire.Incomplete
    series: int = 0
    ended_ns: int | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    observed: Mapping[str, wire.Scalar] = field(default_factory=dict)
    checkpoints: CheckpointHistory = field(default_factory=CheckpointHistory)
    failures: wire.Failures = field(default_factory=wire.Failures)
    failures_before: wire.Failures = field(default_factory=wire.Failures)

    def failure_history(self) -> wire.Failures:
        """Return what failed in all of its runs, newest first, at most `wire.FAILURES`."""
        return self.failures.after(self.failures_before)


@dataclass(frozen=True, slots=True)
class AppState:
    """
    One application: its driver, executors, and its hooks' own figures.

    Args:
        executors: Executor id → executor; none that is gone.
        heard_ms: Wall time of the latest frame that was taken in.
        suspended: The driver is silent.
        end_ms: When the application ended, wall time; −1 while it runs.
        configuration, environment: As in `wire.Frame`; None where the driver has not told its environment.
    """

    app: wire.App
    attempt: wire.Attempt
    seq: int
    executors: Mapping[str, wire.Executor]
    driver: Mapping[str, wire.Scalar]
    hooks: Mapping[str, wire.Scalar]
    interval_ms: int
    seen_ns: int
    heard_ms: int
    suspended: bool
    incomplete: wire.Incomplete
    end_ms: int = -1
    configuration: Mapping[str, str] = field(default_factory=dict)
    environment: wire.Environment | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment; immutable, so it may be read for as long as it is held."""

    jobs: Mapping[str, JobState]
    apps: Mapping[str, AppState]

    def job(self, jid: str) -> JobState:
        """
        Return one job.

        Raises:
            UnknownJob: never seen, or evicted.
        """
        try:
            return self.jobs[jid]
        except KeyError:
            raise UnknownJob(jid) from None


@dataclass(frozen=True, slots=True)
class Departure:
    """
    A job that left the store as it was.

    Args:
        app: Its application then; None where it was not held.
        at_ms: When it left, wall time.
        replaced: A newer run of the job took its place; else it was evicted.
    """

    state: JobState
    app: AppState | None
    at_ms: int
    replaced: bool


DEPARTURES = 1_000
"""Remembered at most, the latest; they are taken every second."""


class MetricStore:
    """
    Holds the current snapshot, and for the archive what has left it.

    Any thread may read; a read takes no lock and never waits for a write. Writers are serialised by
    `lock`, build a new snapshot and `swap` it in. What a read returns is immutable and stays valid.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._snapshot = Snapshot(MappingProxyType({}), MappingProxyType({}))
        self._departures: deque[Departure] | None = None
        self._departed = 0

    def snapshot(self) -> Snapshot:
        """Return everything as of the latest write."""
        return self._snapshot

    def swap(self, snapshot: Snapshot) -> None:
        """Make `snapshot` current; the caller holds `lock` and built it from the current one."""
        self._snapshot = snapshot

    def remember_departures(self) -> None:
        """Remember from now on what leaves, for somebody takes it; any thread."""
        with self.lock:
            self._departures = deque(maxlen=DEPARTURES)

    def depart(self, departures: Iterable[Departure]) -> None:
        """Tell what leaves with the next `swap`; the caller holds `lock`."""
        if self._departures is not None:
            for departure in departures:
                self._departed += 1
                self._departures.append(departure)

    def take_departures(self) -> tuple[list[Departure], int]:
        """Return what has left since the last call, oldest first, and how many more are not remembered; any thread."""
        with self.lock:
            taken = [] if self._departures is None else list(self._departures)
            lost = self._departed - len(taken)
            self._departed = 0
            if self._departures is not None:
                self._departures.clear()
        return taken, lost
