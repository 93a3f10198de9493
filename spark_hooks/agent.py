"""The hooks of one application, wired together: recorder → model → frames → collector."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from typing import Any

import msgspec

from spark_hooks import records
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.jvm import Recorder
from spark_hooks.markers import Emission
from spark_hooks.metrics import UPDATE_INTERVAL_S
from spark_hooks.pusher import Outcome, Pusher, Transport
from spark_hooks.redaction import REGEXES, Redaction
from spark_hooks.settings import Settings
from spark_hooks.timer_reports import REPORTS
from spark_hooks.transport import HttpTransport
from streamgauge import names, wire
from streamgauge.clock import Clock, SystemClock
from streamgauge.errors import HookError
from streamgauge.timers import ProcessingTimeService
from streamgauge.version import __version__

GOODBYE_S = 2.0
"""How long detaching, or the end of the driver, waits for the last push."""

CATCH_UP_S = 1.0
"""How long it waits for the ends of queries that are over."""

log = logging.getLogger("streamgauge")

_figures = msgspec.msgpack.Decoder(dict[str, int | float])


class Agent:
    """
    Records and pushes, from `start` to `stop`.

    One thread drains and ticks, another one pushes; the model is theirs under one lock. `stop` may be
    called from any thread, and again; `stopped` tells that it was.
    """

    def __init__(
        self, spark: Any, settings: Settings, transport: Transport | None = None, before: Agent | None = None
    ) -> None:
        """
        Put the recorder on the bus.

        Args:
            before: The agent that was detached from the same application: runs that go on stay the same runs.

        Raises:
            HookError: this session cannot be listened to.
        """
        self.context_id = _context_id(spark)
        self.settings = settings
        clock: Clock = SystemClock()
        app = _app(spark)
        self._lock = threading.Lock()
        self._executors = Executors(app.id, int(spark.conf.get("spark.task.cpus", "1")), clock)
        starts = before._model.starts() if before is not None else {}
        sequences = before._frames.sequences() if before is not None else {}
        self._model: Model = Model(app, self._executors, starts, _emission(settings))
        redact = _redaction(spark, settings.token)
        self._frames: Frames = Frames(app, settings.interval_ms, clock, redact, sequences)
        self._driver: dict[str, wire.Scalar] = {}
        self._hooks: dict[str, wire.Scalar] = {}
        self._drained_bytes = 0
        self._failures = 0
        self.stopped = False
        self._gone = False
        self._end_built = self._end_told = False
        self._recorder = Recorder(spark)
        self._timers = ProcessingTimeService(clock, self._report)
        self._pusher = Pusher(
            self._build,
            self._settle,
            transport or HttpTransport(settings.url, settings.token),
            settings.interval_ms / 1000,
            settings.url,
            clock,
            self._told_all,
        )

    def start(self) -> None:
        """Begin to drain, tick and push."""
        # What was reported so far is of tasks that nobody saw, and of other applications, which number theirs alike.
        REPORTS.take()
        self._timers.schedule_with_fixed_delay(self._drain, 0, self.settings.interval_ms)
        self._timers.schedule_with_fixed_delay(self._tick, UPDATE_INTERVAL_S * 1000, UPDATE_INTERVAL_S * 1000)
        self._timers.start()
        self._pusher.start()

    def stop(self) -> None:
        """
        Take the recorder off the bus, tell the collector the last, end the threads; waits GOODBYE_S at most.

        Where a push is still under way then, its thread ends by itself once that is over, and nothing more is sent.
        """
        with self._lock:
            if self.stopped:
                return
            self.stopped = True
        last = threading.Thread(target=self._goodbye, name="streamgauge-goodbye", daemon=True)
        last.start()
        last.join(GOODBYE_S)
        self._gone = True
        self._pusher.leave(answered=not last.is_alive())

    def _goodbye(self) -> None:
        self._timers.shutdown(GOODBYE_S)
        # First, for a collector that hangs must not keep the recorder on the bus.
        if not self._model.ended:
            try:
                try:
                    self._catch_up()
                finally:
                    self._recorder.remove()
            except Exception as error:  # noqa: BLE001  the JVM may be gone before us
                self._report(error)
        self._pusher.stop()
        # Hooks that were attached meanwhile count their frames on from ours: what we sent now would pass for theirs.
        if not self._gone and not self._told_all():
            self._pusher.push()
        self._pusher.close()

    def _catch_up(self) -> None:
        """Drain what has happened: a query is over a moment before Spark posts so, and a driver may leave between."""
        until_s = time.monotonic() + CATCH_UP_S
        while True:
            self._recorder.catch_up()
            self._drain(0)
            with self._lock:
                told = self._model.running()
            if told <= self._recorder.running() or time.monotonic() >= until_s:
                return
            time.sleep(0.01)

    def _told_all(self) -> bool:
        """Whether the application has ended, and the collector knows it."""
        return self._end_told and not self._model.jobs

    def _drain(self, _: int) -> None:
        if self._model.ended:
            # The bus is closed: nothing more can come, and the pusher ends once it has told so.
            self._timers.quiesce(0)
            return
        began = time.perf_counter_ns()
        drained = self._recorder.drain()
        drain_ns = time.perf_counter_ns() - began
        # After the events, for each report comes before the end of its task: none is told without its reports.
        reports = REPORTS.take()
        told = records.decode(drained)
        with self._lock:
            self._model.time.look(told.wall_ms, told.monotonic_ns)
            self._model.report(reports)
            self._model.apply(told.records)
            self._drained_bytes += len(drained)
            for fault in self._model.faults:
                self._report(HookError(fault))
            self._model.faults.clear()
            self._hooks = {
                names.HOOKS_EVENTS: told.events,
                names.HOOKS_RECORD_TIME: told.record_ns,
                names.HOOKS_DRAIN_TIME: drain_ns,
                names.HOOKS_BYTES: self._drained_bytes,
                names.HOOKS_DROPPED_RECORDS: told.dropped_records,
                names.HOOKS_DROPPED_LIVE: told.dropped_live,
                names.HOOKS_FAULTS: self._failures,
            }

    def _tick(self, _: int) -> None:
        driver = _figures.decode(self._recorder.driver_metrics())
        with self._lock:
            self._driver = self._executors.tick(driver)
            self._model.tick()

    def _build(self) -> list[wire.Frame]:
        with self._lock:
            self._end_built = self._model.ended
            hooks = self._hooks | self._pusher.figures()
            return self._frames.build(self._model, self._executors, self._driver, hooks)

    def _settle(self, frames: list[wire.Frame], outcome: Outcome) -> None:
        with self._lock:
            if outcome == "accepted":
                self._frames.acknowledge(frames, self._model, self._executors)
                self._end_told = self._end_built
            elif outcome == "resend":
                self._frames.start_over()

    def _report(self, error: Exception) -> None:
        """Count a failure of ours and tell the first one; the rest would only repeat it."""
        self._failures += 1
        if self._failures == 1 and not self.stopped:
            log.warning("streamgauge missed an event, figures may be incomplete: %s", error)


def _app(spark: Any) -> wire.App:
    context = spark.sparkContext
    return wire.App(
        id=context.applicationId,
        name=context.appName,
        start_ms=int(context.startTime),
        host=spark.conf.get("spark.driver.host", ""),
        spark_version=spark.version,
        hooks_version=__version__,
    )


def _emission(settings: Settings) -> Emission | None:
    if not settings.latency_interval_ms:
        return None
    return Emission(settings.latency_interval_ms, settings.latency_granularity, settings.latency_history_size)


def _context_id(spark: Any) -> str:
    return str(spark.sparkContext.applicationId)


def _redaction(spark: Any, token: str | None) -> Redaction:
    settings = dict(spark.sparkContext.getConf().getAll())
    for name in REGEXES:
        # The session's own word goes before the application's.
        found = spark.conf.get(name, None)
        if found:
            settings[name] = found
    return Redaction.of(settings, [token] if token else [])


_latest: Agent | None = None
_attaching = threading.Lock()


def attach(spark: Any, **arguments: object) -> bool:
    """
    Attach to the driver of `spark`; see `streamgauge.attach`.

    Raises:
        SettingError: a setting cannot be used.
    """
    global _latest
    with _attaching:
        try:
            conf = dict(spark.sparkContext.getConf().getAll())
        except Exception as error:  # noqa: BLE001  whatever this session is, the job must run on
            log.warning("streamgauge is not attached: %s has no SparkContext (%s)", type(spark).__name__, error)
            return False
        settings = Settings.read(arguments, conf, os.environ)
        if not settings.enabled:
            if _latest is not None:
                _latest.stop()
            return False
        before = _latest if _latest is not None and _latest.context_id == _context_id(spark) else None
        if before is not None and not before.stopped and before.settings == settings:
            return True
        if _latest is not None:
            _latest.stop()
        try:
            agent = Agent(spark, settings, before=before)
        except HookError as error:
            log.warning("streamgauge is not attached, the job runs on without it: %s", error)
            return False
        agent.start()
        _latest = agent
        # The last batch of a script that just ends must be told; atexit forgets a callback that is there.
        atexit.unregister(detach)
        atexit.register(detach)
        return True


def _forget() -> None:
    """In a child after a fork: threads, sockets and the JVM are the parent's, who goes on with them."""
    global _latest, _attaching
    _latest = None
    _attaching = threading.Lock()
    atexit.unregister(detach)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def detach() -> None:
    """Detach; see `streamgauge.detach`."""
    with _attaching:
        if _latest is not None:
            _latest.stop()
