"""Frames of a log that is replayed → the runs that ended in it, as a live collector would have held them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from collector.history import History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.liveness import SILENT_EXTRA_MS, SILENT_INTERVALS, Liveness
from collector.retention import Keep, Retention
from collector.run import Run
from collector.store import JobState, MetricStore
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import CollectorError

BATCHES = 100
"""Batch executions of one log that are kept, the latest ones: as a live collector does."""


class Replayed:
    """
    Takes the pushes of one log in, on the log's own time. Not thread safe.

    `clock` is the log's; `refused` says what was too large to be held, `left_out` counts the batch executions that
    later ones have pushed out.

    Args:
        conclude: Handed every run that has ended, once, in the order of their ends, but batch executions last.
    """

    def __init__(self, conclude: Callable[[Run], None]) -> None:
        self.clock = ManualClock()
        self.refused: list[str] = []
        self.left_out = 0
        self._conclude = conclude
        self._store = MetricStore()
        self._ingest = Ingest(self._store, self.clock, Limits())
        self._history = History(self._store, self.clock)
        self._liveness = Liveness(self._store, self.clock)
        self._retention = Retention(self._store, self.clock, Keep(ended_batches=BATCHES))
        self._concluded: dict[str, wire.Attempt] = {}
        self._batches: deque[Run] = deque()

    def push(self, body: bytes) -> None:
        """Take the body of a push; a job that cannot be held is left out, and `refused` says why."""
        frames = codec.decode(body)
        # What a new run of a query replaces must be concluded before.
        held = self._store.snapshot().jobs
        for frame in frames:
            before = None if frame.job is None else held.get(frame.job.jid)
            if before is not None and before.attempt < frame.attempt:
                self._end(before)
        try:
            self._ingest.push(body)
        except CollectorError:
            for frame in frames:
                self._push_alone(frame)

    def sample(self) -> None:
        """Take a sample, and conclude what has ended since the one before."""
        self._history.sample()
        snapshot = self._store.snapshot()
        for state in snapshot.jobs.values():
            if state.ended_ns is not None:
                self._end(state)
        self._retention.sweep()
        jobs = self._store.snapshot().jobs
        self._concluded = {jid: attempt for jid, attempt in self._concluded.items() if jid in jobs}

    def end(self) -> None:
        """The log ends: what runs still has fallen silent, as of a driver that was killed."""
        intervals = [state.interval_ms for state in self._store.snapshot().jobs.values()]
        self.clock.advance(SILENT_INTERVALS * max(intervals, default=0) + SILENT_EXTRA_MS + 1)
        self._liveness.sweep()
        for state in self._store.snapshot().jobs.values():
            self._end(state)
        while self._batches:
            self._conclude(self._batches.popleft())

    def _push_alone(self, frame: wire.Frame) -> None:
        try:
            self._ingest.push(codec.encode([frame]))
        except CollectorError as error:
            name = "the application" if frame.job is None else f"job {frame.job.name}"
            told = f"{name}: {error}"
            if told not in self.refused and len(self.refused) < BATCHES:
                self.refused.append(told)

    def _end(self, state: JobState) -> None:
        """Conclude a run, unless it was before."""
        if self._concluded.get(state.job.jid) == state.attempt:
            return
        self._concluded[state.job.jid] = state.attempt
        run = Run.of(state, self._store.snapshot().apps.get(state.app.id), self._history)
        if state.job.type == "STREAMING":
            self._conclude(run)
            return
        self._batches.append(run)
        if len(self._batches) > BATCHES:
            self._batches.popleft()
            self.left_out += 1


def summary(run: Run) -> dict[str, str | int | None]:
    """Return what a list tells of a run; what is not known is None."""
    state = run.state
    rows = state.job.metrics.get(names.INPUT_ROWS)
    streaming = state.job.type == "STREAMING"
    totals = state.checkpoints.totals
    return {
        "jid": state.job.jid,
        "run": state.attempt.run_id,
        "name": state.job.name,
        "type": state.job.type,
        "state": state.state,
        "batches": totals.completed if streaming else None,
        "records": int(rows) if streaming and rows is not None else None,
        "start_ms": state.attempt.start_ms,
        "end_ms": state.job.end_ms if state.job.end_ms >= 0 else None,
    }
