"""What goes into the archive, and when; what comes back from it into the live store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec

from collector.archive import Archive
from collector.history import History
from collector.retention import Keep
from collector.run import Run
from collector.segment import Entry, Segment, pack
from collector.store import AppState, Departure, JobState, MetricStore, Snapshot
from collector.succession import resumed
from streamgauge.clock import Clock
from streamgauge.errors import ArchiveAway, ArchiveError, CorruptSegment
from streamgauge.wire import ENDED_STATES

PENDING_RUNS = 1_000
PENDING_BYTES = 256 * 1024 * 1024
"""Of runs that wait for the database, compressed; past either the oldest is given up."""
BACK_OFF_S = (1, 60)
"""How long the database is left alone after the first failure; twice as long after each further one, up to this."""
RETAIN_S = 60

_log = logging.getLogger("streamgauge.service")


@dataclass(frozen=True, slots=True)
class ArchiveFigures:
    """
    How the archive fares.

    Args:
        runs: Held.
        size_bytes: Of the database's file or table.
        pending, pending_bytes: Runs that wait for the database.
        written: Runs, since the start.
        failures: Times that the database did not answer when it was to be written to or looked at.
        lost: Runs that were given up, for too many waited, or no database took them.
        unread: Runs that could not be read back.
        written_at_ms: Wall time of the latest write, −1 where there was none.
    """

    runs: int
    size_bytes: int
    pending: int
    pending_bytes: int
    written: int
    failures: int
    lost: int
    unread: int
    written_at_ms: int


class Archiving:
    """
    Writes every run that has ended, and every run whose driver has fallen silent, as it then is; one that speaks again
    is written again when it ends. What cannot be written waits, within bounds, and is tried again.

    A job that comes back and is not in the store any more goes on from what the archive tells of it.

    One thread restores and sweeps, and it alone waits for the database; any thread reads the figures.

    Args:
        archive: Written to.
        store: Whose departures are remembered from now on.
        history: Of `store`.
        clock: Times the back-off.
        keep: What the live store keeps; so much is restored.
    """

    def __init__(self, archive: Archive, store: MetricStore, history: History, clock: Clock, keep: Keep) -> None:
        self._archive = archive
        self._store = store
        self._history = history
        self._clock = clock
        self._keep = keep
        # Job's id → the state that was written last, or waits to be.
        self._packed: dict[str, JobState] = {}
        # Ids of live jobs of which it is known whether they go on from an archived run, and what from.
        self._met: set[str] = set()
        self._resuming: dict[str, Entry] = {}
        self._pending: dict[tuple[str, str], Segment] = {}
        self._pending_bytes = 0
        self._retry_ns: int | None = None
        self._back_off_s = BACK_OFF_S[0]
        self._retain_ns: int | None = None
        self._lock = threading.Lock()
        self._written = self._failures = self._lost = self._unread = 0
        self._written_at_ms = -1
        store.remember_departures()

    def figures(self) -> ArchiveFigures:
        """Return how it fares; any thread."""
        with self._lock:
            return ArchiveFigures(
                runs=len(self._archive.entries),
                size_bytes=self._archive.size_bytes,
                pending=len(self._pending),
                pending_bytes=self._pending_bytes,
                written=self._written,
                failures=self._failures,
                lost=self._lost,
                unread=self._unread,
                written_at_ms=self._written_at_ms,
            )

    def restore(self) -> int:
        """
        Put into the store the ended jobs that it would still hold if it had been there all the time.

        Call it once, before the first push and the first sweep. What cannot be read stays in the archive.

        Returns:
            How many jobs came back.
        """
        now_ms, now_ns = self._clock.now_ms(), self._clock.monotonic_ns()
        jobs: dict[str, JobState] = {}
        apps: dict[str, AppState] = {}
        for entry in self._restorable(now_ms):
            run = self._read(entry)
            if run is None:
                continue
            seen_ns = now_ns - _age_ms(entry, now_ms) * 1_000_000
            jobs[entry.jid] = replace(run.state, seen_ns=seen_ns, ended_ns=seen_ns)
            self._history.restore(
                entry.jid, run.course, {vertex: (one.figures, one.heat) for vertex, one in run.vertices.items()}
            )
            if run.app is not None:
                app = replace(run.app, seen_ns=seen_ns, suspended=True)
                held = apps.get(app.app.id)
                if held is None or (held.attempt, held.seq) < (app.attempt, app.seq):
                    apps[app.app.id] = app
        with self._store.lock:
            held_now = self._store.snapshot()
            self._packed.update(jobs)
            self._met.update(jobs)
            self._store.swap(
                Snapshot(
                    MappingProxyType({**jobs, **held_now.jobs}),
                    MappingProxyType({**apps, **held_now.apps}),
                )
            )
        return len(jobs)

    def sweep(self) -> None:
        """Write what is due, take up what other processes wrote, and delete what is past its time; every second."""
        self._collect()
        now_ns = self._clock.monotonic_ns()
        if self._retry_ns is not None and now_ns < self._retry_ns:
            return
        try:
            self._write()
            self._archive.refresh()
            self._resume()
            if self._retain_ns is None or now_ns >= self._retain_ns:
                self._archive.retain()
                self._retain_ns = now_ns + RETAIN_S * 1_000_000_000
        except ArchiveAway as error:
            self._back_off(error)
        else:
            if self._retry_ns is not None:
                _log.warning("The archive %s answers again", self._archive.url)
            self._retry_ns, self._back_off_s = None, BACK_OFF_S[0]

    def finish(self) -> None:
        """Sweep for the last time, whether or not the database was away."""
        self._retry_ns = None
        self.sweep()
        if self._pending:
            _log.error("%d ended runs are not archived: the archive did not answer to the last", len(self._pending))

    def _back_off(self, error: ArchiveAway) -> None:
        if self._retry_ns is None:
            _log.warning("%s; live jobs are not touched, and ended ones wait", error)
        with self._lock:
            self._failures += 1
        self._retry_ns = self._clock.monotonic_ns() + self._back_off_s * 1_000_000_000
        self._back_off_s = min(2 * self._back_off_s, BACK_OFF_S[1])

    def _collect(self) -> None:
        """Pack what has ended or fallen silent since the last sweep, so that nothing of it can be lost any more."""
        # In this order: what leaves in between is in both.
        snapshot = self._store.snapshot()
        departures, forgotten = self._store.take_departures()
        self._give_up(forgotten, "more jobs left within a second than are remembered")
        for departure in departures:
            if not departure.replaced:
                self._collect_departed(departure)
                # It may be back already: then it has to go on from what it was.
                self._met.discard(departure.state.job.jid)
        # Before anything is packed of what came since the last sweep: none of that is an earlier run.
        self._meet(snapshot.jobs)
        for departure in departures:
            if departure.replaced:
                self._collect_departed(departure)
        for jid, state in snapshot.jobs.items():
            if self._packed.get(jid) is not state and self._is_due(jid, state):
                self._pack(state, snapshot.apps.get(state.app.id))
        for jid in [jid for jid in self._packed if jid not in snapshot.jobs]:
            del self._packed[jid]

    def _is_due(self, jid: str, state: JobState) -> bool:
        if state.state == "SUSPENDED":
            return True
        # Without its last sample the history of a job would end seconds before its end.
        return state.state in ENDED_STATES and self._history.is_concluded(jid)

    def _meet(self, jobs: Mapping[str, JobState]) -> None:
        """Find for every job that was not there before the archived run from which it goes on, if any."""
        self._met.intersection_update(jobs)
        for jid in [jid for jid in self._resuming if jid not in jobs]:
            del self._resuming[jid]
        for jid, state in jobs.items():
            if jid not in self._met:
                self._met.add(jid)
                entry = self._before(state) if state.job.type == "STREAMING" else None
                if entry is not None:
                    self._resuming[jid] = entry

    def _before(self, state: JobState) -> Entry | None:
        """Return the latest archived run, or one that waits, that did not begin after the first that was seen live."""
        jid = state.job.jid
        waiting = [segment.entry for key, segment in self._pending.items() if key[0] == jid]
        earlier = [
            entry
            for entry in (*self._archive.entries.runs.get(jid, ()), *waiting)
            if entry.attempt.start_ms <= state.first_start_ms
        ]
        return max(earlier, key=lambda entry: (entry.attempt, entry.archived_ms), default=None)

    def _collect_departed(self, departure: Departure) -> None:
        state, jid = departure.state, departure.state.job.jid
        if self._packed.get(jid) is state:
            return
        if state.state not in ENDED_STATES:
            since_ms = {**state.since_ms, "SUSPENDED": departure.at_ms}
            state = replace(state, state="SUSPENDED", since_ms=since_ms, modified_ms=departure.at_ms)
        self._pack(state, departure.app, departure.at_ms)
        self._packed[jid] = departure.state

    def _pack(self, state: JobState, app: AppState | None, until_ms: int | None = None) -> None:
        jid = state.job.jid
        self._packed[jid] = state
        run = Run.of(state, app, self._history)
        try:
            segment = pack(run if until_ms is None else run.until(until_ms), self._clock.now_ms())
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            self._give_up(1, f"job {jid} cannot be written down ({error})")
            return
        key = (jid, segment.entry.run)
        with self._lock:
            self._drop(key)
            self._pending[key] = segment
            self._pending_bytes += len(segment.body)
            before = len(self._pending)
            while len(self._pending) > PENDING_RUNS or (self._pending_bytes > PENDING_BYTES and len(self._pending) > 1):
                self._drop(next(iter(self._pending)))
            dropped = before - len(self._pending)
        self._give_up(dropped, "too many wait for the database")

    def _drop(self, key: tuple[str, str]) -> None:
        segment = self._pending.pop(key, None)
        if segment is not None:
            self._pending_bytes -= len(segment.body)

    def _give_up(self, runs: int, why: str) -> None:
        if not runs:
            return
        if not self._lost:
            _log.error("A run is not archived: %s; more are only counted, in streamgauge_archive_runs_lost_total", why)
        with self._lock:
            self._lost += runs

    def _write(self) -> None:
        """
        Write what waits, oldest first.

        Raises:
            ArchiveAway: the database does not answer; what is not written waits.
        """
        for key, segment in list(self._pending.items()):
            try:
                self._archive.put(segment)
            except ArchiveAway:
                raise
            except ArchiveError as error:
                self._give_up(1, str(error))
            else:
                with self._lock:
                    self._written += 1
                    self._written_at_ms = self._clock.now_ms()
            with self._lock:
                self._drop(key)

    def _resume(self) -> None:
        """
        Let queries that came back go on from what the archive tells of them.

        Raises:
            ArchiveAway: the database does not answer; the rest is left for later.
        """
        for jid, entry in list(self._resuming.items()):
            run = self._read(entry, again=True)
            if run is not None:
                self._go_on(jid, run.state)
            del self._resuming[jid]

    def _go_on(self, jid: str, before: JobState) -> None:
        with self._store.lock:
            snapshot = self._store.snapshot()
            held = snapshot.jobs.get(jid)
            if held is not None:
                jobs = {**snapshot.jobs, jid: resumed(held, before)}
                self._store.swap(Snapshot(MappingProxyType(jobs), snapshot.apps))

    def _read(self, entry: Entry, again: bool = False) -> Run | None:
        """Return a run; None where it cannot be read, which is counted. ArchiveAway is raised only to try `again`."""
        try:
            return self._archive.read(entry.run)
        except CorruptSegment as error:
            _log.error("%s", error)
        except ArchiveAway as error:
            if again:
                raise
            _log.warning("%s; job %s is told from the archive later", error, entry.jid)
        with self._lock:
            self._unread += 1
        return None

    def _restorable(self, now_ms: int) -> Iterator[Entry]:
        for kind, kept in (("STREAMING", self._keep.ended_queries), ("BATCH", self._keep.ended_batches)):
            ended = [
                entry
                for entry in self._archive.entries.jobs
                if entry.type == kind and entry.ended and _age_ms(entry, now_ms) < self._keep.ended_ms
            ]
            yield from sorted(ended, key=lambda entry: _age_ms(entry, now_ms))[:kept]


def _age_ms(entry: Entry, now_ms: int) -> int:
    """Return how long ago a run ended; a clock that was set back does not make it end in the future."""
    return max(0, now_ms - (entry.end_ms if entry.end_ms >= 0 else entry.modified_ms))
