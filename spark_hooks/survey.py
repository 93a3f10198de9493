"""What a replay must know of an event log before its first event: read in a pass of its own, which decodes little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spark_hooks import logged_structs as structs
from spark_hooks.event_log import EventLog, Lines
from spark_hooks.logged import Logged, decode, kind_of, lines
from streamgauge import wire
from streamgauge.version import __version__

_TASK_TYPE = b'"Task Type":"'
_STAGE_ID = b'"Stage ID":'
STAGES = 64 * 1024 * 1024
"""Ids from here on are not looked at; a log that has them is of more than a terabyte, or broken."""

_HEAD_BYTES = 300
"""Within which a task's end tells its stage and its type."""


@dataclass(slots=True)
class Survey:
    """
    A log at a glance.

    Args:
        sinks: Run id → what its query says of its sink, in the first progress that it tells.
        stages: A byte a stage, by id: 1 where it writes a shuffle, as its tasks tell when they end.
        ends_ms: When queries or the application ended, as far as the log tells, ascending; the last one is its end.
        settings: The application's.
        version: Of Spark.
        events: Lines that begin as an event does.
        ended: The log tells the application's end.
    """

    sinks: dict[str, str] = field(default_factory=dict)
    stages: bytearray = field(default_factory=bytearray)
    ends_ms: list[int] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    version: str = ""
    start: structs.ApplicationStart = field(default_factory=structs.ApplicationStart)
    first_ms: int = -1
    events: int = 0
    ended: bool = False

    def writes(self, stage: int) -> bool:
        """Whether a stage writes a shuffle; not where none of its tasks has ended."""
        return 0 <= stage < len(self.stages) and bool(self.stages[stage])

    def app(self, log: EventLog) -> wire.App:
        """Return the application; what no event tells of it, the log's name does."""
        return wire.App(
            id=self.start.id or log.app_id,
            name=self.start.name or log.app_id,
            start_ms=self.start.time_ms if self.start.time_ms >= 0 else max(self.first_ms, 0),
            host=self.settings.get("spark.driver.host", ""),
            spark_version=self.version,
            hooks_version=__version__,
        )


def survey(log: EventLog, read: Callable[[int], None] = lambda _: None) -> Survey:
    """
    Look through a log.

    Args:
        read: Told of the bytes on disk that were read since it was told last.

    Raises:
        ReplayError: it cannot be read.
    """
    found = Survey()
    clock = Logged({}, {}, lambda _: False)
    timed = b""

    def look() -> None:
        nonlocal timed
        if timed:
            clock.read(timed)
            timed = b""

    for chunk in Lines(log, read):
        for line in lines(chunk):
            kind = kind_of(line)
            if not kind:
                continue
            found.events += 1
            if kind == b"SparkListenerTaskEnd":
                timed = line
                _look_at_task(found, line)
            elif kind == b"SparkListenerTaskStart":
                timed = line
            elif kind in _CLOCK:
                # Jobs and executions are few: these two tell the time wherever no task does.
                timed = line
                if found.first_ms < 0:
                    look()
                    found.first_ms = clock.now_ms
            elif kind == _IDLE:
                # Its time is when the query last waited, which may be before what was told last.
                clock.read(line)
            elif kind in _WANTED:
                try:
                    _WANTED[kind](found, line)
                except (ValueError, KeyError, TypeError, RecursionError):
                    # The replay itself comes upon the same line, and tells it.
                    continue
                if kind == _TERMINATED:
                    look()
                    found.ends_ms.append(clock.now_ms)
                elif kind == _ENDED:
                    clock.read(line)
    look()
    found.ends_ms.append(clock.now_ms)
    found.ends_ms.sort()
    return found


_TERMINATED = b"org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
_PROGRESS = b"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
_IDLE = b"org.apache.spark.sql.streaming.StreamingQueryListener$QueryIdleEvent"
_ENDED = b"SparkListenerApplicationEnd"
_CLOCK = frozenset(
    (
        b"SparkListenerExecutorAdded",
        b"SparkListenerJobStart",
        b"SparkListenerJobEnd",
        b"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        b"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd",
        b"org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent",
    )
)


def _look_at_task(found: Survey, line: bytes) -> None:
    at = line.find(_STAGE_ID, 0, _HEAD_BYTES)
    told = line.find(_TASK_TYPE, 0, _HEAD_BYTES)
    if at < 0 or told < 0:
        return
    at += len(_STAGE_ID)
    stage = line[at : line.find(b",", at)]
    if stage.isdigit() and line.startswith(b"ShuffleMapTask", told + len(_TASK_TYPE)):
        number = int(stage)
        if len(found.stages) <= number < STAGES:
            found.stages.extend(bytes(number + 1024 - len(found.stages)))
        if number < STAGES:
            found.stages[number] = 1


def _look_at_start(found: Survey, line: bytes) -> None:
    found.start = decode(structs.ApplicationStart, line)


def _look_at_version(found: Survey, line: bytes) -> None:
    found.version = decode(structs.LogStart, line).version


def _look_at_settings(found: Survey, line: bytes) -> None:
    if not found.settings:
        found.settings = decode(structs.Environment, line).spark


def _look_at_progress(found: Survey, line: bytes) -> None:
    told = decode(structs.ProgressSink, line).progress
    found.sinks.setdefault(told.run_id, told.sink.description)


def _look_at_end(found: Survey, line: bytes) -> None:
    decode(structs.ApplicationEnd, line)
    found.ended = True


_WANTED: dict[bytes, Callable[[Survey, bytes], None]] = {
    _TERMINATED: lambda found, line: None,
    _PROGRESS: _look_at_progress,
    _ENDED: _look_at_end,
    b"SparkListenerApplicationStart": _look_at_start,
    b"SparkListenerEnvironmentUpdate": _look_at_settings,
    b"SparkListenerLogStart": _look_at_version,
}
