"""The way in: a push is decoded, checked, ordered by (attempt, seq) and written, all of it or nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from collector.admission import Admission, place
from collector.checks import shown
from collector.limits import Limits
from collector.store import AppState, Departure, JobState, MetricStore, Snapshot
from collector.succession import next_app, next_job
from streamgauge import codec, wire
from streamgauge.clock import Clock
from streamgauge.errors import CollectorError, FrameTooLarge, NeedsFullFrame, Overloaded

Outcome = Literal["accepted", "repeated", "late"]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """
    What became of the frames of one push; they add up to its frames.

    Args:
        accepted: Written.
        repeated: Were here already; nothing changed.
        late: Older than what is here, by seq or attempt; nothing changed.
    """

    accepted: int = 0
    repeated: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """
    What an `Ingest` has seen since it was made.

    Args:
        accepted, repeated, late: Frames, as in `Outcomes`.
        refused: Pushes, by the name of the error that refused them; every frame of one is refused.
        bytes: Bodies, refused ones included.
        refused_at_ms: Wall time of the latest refusal, −1 where there was none.
    """

    accepted: int
    repeated: int
    late: int
    refused: Mapping[str, int]
    bytes: int
    refused_at_ms: int


class Ingest:
    """
    Writes pushes into a store.

    Any thread may push; writes are serialised by the store's lock, which is held neither while a body is
    decoded nor while its frames are checked on their own.

    Args:
        store: Written to.
        clock: Times the arrival of frames.
        limits: What is taken and held at most.
    """

    def __init__(self, store: MetricStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._admission = Admission(limits)
        self._counted: Snapshot | None = None
        self._series = 0
        self._totals_lock = threading.Lock()
        self._outcomes: Counter[Outcome] = Counter()
        self._refused: Counter[str] = Counter()
        self._bytes = 0
        self._refused_at_ms = -1

    def push(self, body: bytes) -> Outcomes:
        """
        Take the body of a push. It is written whole, in its own order, as one new snapshot.

        Args:
            body: A MessagePack array of frames, see `streamgauge.wire`.

        Returns:
            What became of its frames. If none was accepted the store's snapshot is the same object as
            before.

        Raises:
            MalformedFrame, InvalidName, UnsupportedVersion: not what the wire format says.
            NeedsFullFrame: changes to a state that is not here; send full frames.
            FrameTooLarge: past a limit of a push or a job.
            Overloaded: past a limit of what is held; may be sent again later.

        After any of these the store's snapshot is the same object as before.
        """
        try:
            outcomes = self._take(body)
        except CollectorError as error:
            with self._totals_lock:
                self._refused[type(error).__name__] += 1
                self._bytes += len(body)
                self._refused_at_ms = self._clock.now_ms()
            raise
        with self._totals_lock:
            self._outcomes.update(outcomes)
            self._bytes += len(body)
        return Outcomes(outcomes["accepted"], outcomes["repeated"], outcomes["late"])

    def totals(self) -> Totals:
        """Return the counts since the start; any thread."""
        with self._totals_lock:
            return Totals(
                accepted=self._outcomes["accepted"],
                repeated=self._outcomes["repeated"],
                late=self._outcomes["late"],
                refused=MappingProxyType(dict(self._refused)),
                bytes=self._bytes,
                refused_at_ms=self._refused_at_ms,
            )

    def _take(self, body: bytes) -> Counter[Outcome]:
        self._admission.check_body(body)
        frames = codec.decode(body)
        self._admission.check(frames)
        with self._store.lock:
            write = _Write(self._store.snapshot(), self._clock, self._limits, self._held_series())
            outcomes = Counter(write.apply(place(index, frame), frame) for index, frame in enumerate(frames))
            if outcomes["accepted"]:
                snapshot = Snapshot(MappingProxyType(write.jobs), MappingProxyType(write.apps))
                self._store.depart(write.replaced)
                self._store.swap(snapshot)
                self._counted, self._series = snapshot, write.series
        return outcomes

    def _held_series(self) -> int:
        snapshot = self._store.snapshot()
        # Summing over thousands of jobs at every push would cost more than the push; only a writer other
        # than this one, such as retention, makes it necessary.
        if snapshot is not self._counted:
            self._counted = snapshot
            self._series = sum(job.series for job in snapshot.jobs.values())
        return self._series


class _Write:
    """
    One push on its way into the next snapshot; used under the store's lock and dropped if a frame is refused.
    """

    def __init__(self, snapshot: Snapshot, clock: Clock, limits: Limits, series: int) -> None:
        self.jobs = dict(snapshot.jobs)
        self.apps = dict(snapshot.apps)
        self.series = series
        self.replaced: list[Departure] = []
        self._limits = limits
        self._now_ms = clock.now_ms()
        self._now_ns = clock.monotonic_ns()

    def apply(self, where: str, frame: wire.Frame) -> Outcome:
        if frame.job is None:
            return self._apply_app(where, frame)
        return self._apply_job(where, frame, frame.job)

    def _apply_app(self, where: str, frame: wire.Frame) -> Outcome:
        held = self.apps.get(frame.app.id)
        outcome = _order(where, held, frame)
        if outcome == "accepted":
            if held is None:
                self._check_room(where, "apps", len(self.apps))
            self.apps[frame.app.id] = next_app(held, frame, self._now_ms, self._now_ns)
        return outcome

    def _apply_job(self, where: str, frame: wire.Frame, job: wire.Job) -> Outcome:
        held = self.jobs.get(job.jid)
        outcome = _order(where, held, frame)
        if outcome != "accepted":
            return outcome
        if held is None:
            self._check_room(where, "jobs", len(self.jobs))
        after = next_job(where, held, frame, job, self._now_ms, self._now_ns)
        grown = after.series - (held.series if held else 0)
        if after.series > self._limits.job_series:
            raise FrameTooLarge(
                f"{where}: the job would have {after.series} values, at most {self._limits.job_series} are held of one "
                "job: send fewer metrics or subtasks, or raise the limit job_series"
            )
        if grown > 0 and self.series + grown > self._limits.series:
            raise Overloaded(
                f"{where}: {grown} more values than the {self.series} that are held, at most {self._limits.series} are "
                "held in all: wait until ended jobs have left, or raise the limit series",
                self._limits.retry_after_s,
            )
        self.series += grown
        if held is not None and frame.attempt > held.attempt:
            self.replaced.append(Departure(held, self.apps.get(held.app.id), self._now_ms, True))
        self.jobs[job.jid] = after
        return outcome

    def _check_room(self, where: str, what: str, held: int) -> None:
        allowed: int = getattr(self._limits, what)
        if held >= allowed:
            raise Overloaded(
                f"{where}: {held} {what} are held, at most {allowed}: wait until ended or silent ones have left, or "
                f"raise the limit {what}",
                self._limits.retry_after_s,
            )


def _order(where: str, held: JobState | AppState | None, frame: wire.Frame) -> Outcome:
    if held is None:
        if frame.base:
            raise NeedsFullFrame(f"{where}: changes since seq {frame.base}, but nothing is held: send a full frame")
        return "accepted"
    if frame.attempt < held.attempt:
        return "late"
    if frame.attempt > held.attempt:
        if frame.base:
            raise NeedsFullFrame(
                f"{where}: changes since seq {frame.base} of a new attempt {shown(frame.attempt.run_id)}: "
                "begin an attempt with a full frame"
            )
        return "accepted"
    if frame.seq == held.seq:
        return "repeated"
    if frame.seq < held.seq:
        return "late"
    if frame.base > held.seq:
        raise NeedsFullFrame(
            f"{where}: changes since seq {frame.base}, but only seq {held.seq} is held: send a full frame"
        )
    return "accepted"
