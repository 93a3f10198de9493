"""An event log through the same model as the live hooks, on a clock that follows the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from spark_hooks import records
from spark_hooks.event_log import EventLog, Lines
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.logged import Logged, Skipped, lines
from spark_hooks.markers import Emission
from spark_hooks.metrics import UPDATE_INTERVAL_S
from spark_hooks.redaction import Redaction
from spark_hooks.settings import CONF_PREFIX, Settings
from spark_hooks.survey import Survey, survey
from streamgauge import codec, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import ReplayError, SettingError

TICK_MS = UPDATE_INTERVAL_S * 1000

HISTORY_MS = 900_000
"""What is held of a run when it has ended: only there its figures over time are of use to anyone."""

WARM_UP_MS = 90_000
"""Rates are of a minute: from this long before on all of it has been seen."""

RECORDS = 1000
"""Applied together at most. What ended meanwhile must not be more than the model remembers."""


class Sink(Protocol):
    """Where what a log tells goes; `collector.replayed.Replayed` is one."""

    clock: ManualClock

    def push(self, body: bytes) -> None:
        """Take the body of a push."""

    def sample(self) -> None:
        """Take a sample of what was pushed."""


@dataclass(frozen=True, slots=True)
class Told:
    """
    What a replay has read.

    Args:
        log, app: Which log, of which application.
        events, lines: Read of it.
        skipped: What was not.
        cut: Files that could be read no further, and why.
        faults: Events that could not be applied.
        ended: The log tells the application's end; else the driver did not come to it, or is not there yet.
        first_ms, last_ms: First and last time that it tells, Unix ms; −1 where none.
        nbytes: Of events, decompressed.
    """

    log: EventLog
    app: wire.App
    events: int
    lines: int
    skipped: Skipped
    cut: tuple[str, ...]
    faults: tuple[str, ...]
    ended: bool
    first_ms: int
    last_ms: int
    nbytes: int


def replay(log: EventLog, sink: Sink, read: Callable[[int], None] = lambda _: None) -> Told:
    """
    Replay a log, as far as it can be read.

    Args:
        sink: Its clock is set to the log's time and goes on with it.
        read: Told of the bytes on disk that were read since it was told last; every file is read twice.

    Raises:
        ReplayError: it cannot be opened, or there is no event in it.
    """
    found = survey(log, read)
    if not found.events:
        what = "is empty" if not log.nbytes else "holds no event of Spark's"
        raise ReplayError(
            f"{log.name} {what}: an event log is what Spark writes to spark.eventLog.dir where "
            "spark.eventLog.enabled is true"
        )
    return _Replay(log, found, sink).run(read)


class _Replay:
    """One replay of one log."""

    def __init__(self, log: EventLog, found: Survey, sink: Sink) -> None:
        self._log = log
        self._survey = found
        self._sink = sink
        clock = self._clock = sink.clock
        self._app = found.app(log)
        settings = found.settings
        self._executors = Executors(self._app.id, _whole(settings.get("spark.task.cpus"), 1), clock)
        # The same log always tells the same.
        random = Random(self._app.id)  # noqa: S311  it draws the ways of markers, no secrets
        self._model = Model(self._app, self._executors, emission=_emission(settings), random=random)
        self._frames = Frames(self._app, TICK_MS, clock, Redaction.of(settings))
        self._logged = Logged(found.sinks, settings, found.writes)
        self._pending: list[records.Record] = []
        self._tick_ms = -1
        self._first_ms = -1
        self._faults: list[str] = []
        self._nbytes = 0

    def run(self, read: Callable[[int], None]) -> Told:
        held, logged = Lines(self._log, read), self._logged
        for chunk in held:
            self._nbytes += len(chunk)
            for line in lines(chunk):
                told = logged.read(line)
                if told:
                    self._take(told)
        logged.end(held.rest)
        if logged.now_ms >= 0:
            self._go_on(logged.now_ms)
            self._flush()
        self._push()
        self._sink.sample()
        return Told(
            self._log,
            self._app,
            logged.events,
            logged.lines,
            logged.skipped,
            tuple(held.cut),
            tuple(self._faults),
            self._model.ended,
            self._first_ms,
            logged.now_ms,
            self._nbytes,
        )

    def _take(self, told: Sequence[records.Record]) -> None:
        now_ms = self._logged.now_ms
        if now_ms >= self._tick_ms:
            self._go_on(now_ms)
        self._pending.extend(told)
        # A query may be started again at once, and the model knows one run of each.
        if len(self._pending) >= RECORDS or isinstance(told[-1], records.QueryTerminated):
            self._flush()

    def _go_on(self, now_ms: int) -> None:
        """Do what is due every 5 s up to `now_ms`, before what happened then."""
        if self._tick_ms < 0:
            if now_ms < 0:
                return
            self._first_ms = now_ms
            self._clock.step_wall(now_ms - self._clock.now_ms())
            self._tick_ms = now_ms + TICK_MS
        if self._pending:
            self._flush()
        while self._tick_ms <= now_ms:
            self._set(self._tick_ms)
            to_end_ms = self._to_end_ms()
            if to_end_ms > HISTORY_MS + WARM_UP_MS + TICK_MS and not self._runs_batch():
                skipped = min(to_end_ms - HISTORY_MS - WARM_UP_MS, now_ms - self._tick_ms + TICK_MS)
                self._tick_ms += max(skipped // TICK_MS, 1) * TICK_MS
                continue
            self._executors.tick({})
            self._model.tick()
            if to_end_ms <= HISTORY_MS + TICK_MS or self._runs_batch():
                self._push()
                self._sink.sample()
            self._tick_ms += TICK_MS

    def _to_end_ms(self) -> int:
        """How long it is until a query ends, or the log: only of the time before it there is a history."""
        ends_ms = self._survey.ends_ms
        place = bisect_left(ends_ms, self._tick_ms)
        return ends_ms[place] - self._tick_ms if place < len(ends_ms) else 0

    def _runs_batch(self) -> bool:
        return any(job.kind == "BATCH" and job.state not in wire.ENDED_STATES for job in self._model.jobs.values())

    def _set(self, now_ms: int) -> None:
        self._clock.advance(max(now_ms - self._clock.now_ms(), 0))
        self._model.time.look(self._clock.now_ms(), self._clock.monotonic_ns())

    def _flush(self) -> None:
        """Apply what waits; the clock is where the last of it was told."""
        self._set(min(self._logged.now_ms, self._tick_ms))
        self._model.apply(self._pending)
        self._pending.clear()
        if self._model.faults:
            self._faults += self._model.faults
            self._model.faults.clear()
        # Each is told once, at its end, and forgotten then: the model is of what runs.
        if any(job.state in wire.ENDED_STATES for job in self._model.jobs.values()):
            self._push()

    def _push(self) -> None:
        frames = self._frames.build(self._model, self._executors, {}, {})
        self._sink.push(codec.encode(frames))
        self._frames.acknowledge(frames, self._model, self._executors)


def _emission(settings: Mapping[str, str]) -> Emission | None:
    """Return how the live hooks would emit markers, by what the application says of it."""
    asked = {name: value for name, value in settings.items() if name.startswith(f"{CONF_PREFIX}latency_")}
    try:
        found = Settings.read({}, asked, {})
    except SettingError:
        found = Settings()
    if not found.latency_interval_ms:
        return None
    return Emission(found.latency_interval_ms, found.latency_granularity, found.latency_history_size)


def _whole(text: str | None, default: int) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        return default
