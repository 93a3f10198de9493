"""
What `jobs` and `top` show: jobs, their vertices and the hooks in their drivers, as plain data and as JSON.

The names of the fields are the keys of `--json`, and stay. None (null) is what is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from streamgauge.wire import ENDED_STATES


@dataclass(frozen=True, slots=True)
class Vertex:
    """
    A vertex of a job.

    Args:
        state: Flink's word.
        parallelism: Tasks of its latest stage.
        records_in_per_second, records_out_per_second: Sums over its subtasks, over the last 60 s.
        busy_ratio, back_pressured_ratio: Of its busiest, or most held up, subtask, 0 to 1, as Flink's page has it.
        pending_records: Sum over its sources.
        fetch_lag_ms, watermark_lag_ms: The greatest of its subtasks.
        bottleneck: Whether it holds the job up, as the service says.
    """

    id: str
    name: str
    state: str
    parallelism: int
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None
    busy_ratio: float | None = None
    back_pressured_ratio: float | None = None
    pending_records: float | None = None
    fetch_lag_ms: float | None = None
    watermark_lag_ms: float | None = None
    bottleneck: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """
    A job.

    Args:
        id: 32 hex digits.
        type: STREAMING or BATCH.
        state: Flink's word.
        start_ms: Of the first run that was seen, Unix milliseconds.
        duration_ms: From then to its end, or to now.
        uptime_ms: Since it last came to run; None once it has ended.
        restarts: Runs after the first that was seen.
        batch_id, batch_duration_ms: Of the last completed micro-batch, Flink's checkpoint.
        records_in_per_second: Sum over its source vertices: those that read from no other, broadcasts apart.
        records_out_per_second: Sum over the vertices that none reads from.
        failure: Root cause of FAILED; not empty.
        vertices: Sources first; None where they were not asked for.
        backlogged: Whether it cannot keep up, as the service says.
        bottleneck: Id of the vertex that holds it up.
    """

    id: str
    name: str
    type: str | None
    state: str
    start_ms: int | None = None
    duration_ms: int | None = None
    uptime_ms: float | None = None
    restarts: int | None = None
    batch_id: int | None = None
    batch_duration_ms: float | None = None
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None
    failure: str | None = None
    vertices: tuple[Vertex, ...] | None = None
    backlogged: bool | None = None
    bottleneck: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it will not run again."""
        return self.state in ENDED_STATES

    @property
    def title(self) -> str:
        """Its name, and the first line of why it failed."""
        return f"{self.name}: {self.failure.splitlines()[0]}" if self.failure else self.name


@dataclass(frozen=True, slots=True)
class Driver:
    """
    A driver and what the hooks in it tell of themselves.

    Args:
        id: Spark's application id.
        silent: Whether it has been silent for longer than it may.
        last_frame_ms: When the collector last took a frame of its, Unix milliseconds of the collector.
        age_ms: Time since then by the collector's clock, to a second.
        events_per_second: Listener events between the last two frames that were read; None at the first.
        hooks: Their figures by catalogue name, scope hooks.
    """

    id: str
    name: str
    host: str
    silent: bool
    last_frame_ms: int | None = None
    age_ms: int | None = None
    events_per_second: float | None = None
    hooks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    """
    What was read of a collector at one time.

    Args:
        collector: Its URL.
        read_ms: When, Unix milliseconds of this machine.
        error: Why it could not be read; all else is None then.
        states: How many jobs are in each state, those that are not listed too.
        slots_total, slots_available: Task slots of all executors.
        jobs: None where they could not be read.
        drivers: None where they were not asked for, or the service does not tell them.
    """

    collector: str
    read_ms: int
    error: str | None = None
    states: Mapping[str, int] | None = None
    slots_total: int | None = None
    slots_available: int | None = None
    jobs: tuple[Job, ...] | None = None
    drivers: tuple[Driver, ...] | None = None

    def json(self) -> bytes:
        """Return it as JSON in one line, without its end; what is not finite is null."""
        return msgspec.json.encode(self)


def known(value: object) -> float | None:
    """Return a number of the REST, where NaN and what is no number is unknown."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def total(rates: Iterable[float | None]) -> float | None:
    """Return the sum; None where one is not known, or there is none at all."""
    listed = list(rates)
    present = [rate for rate in listed if rate is not None]
    return sum(present) if present and len(present) == len(listed) else None


def in_flow_order(inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """
    Return vertices with every one behind those that it reads, else in the order given.

    Args:
        inputs: Vertex → the vertices that it reads. Unknown ones, and those of a circle, are passed over.
    """
    ordered: dict[str, None] = {}
    waiting = list(inputs)
    while waiting:
        ready = [each for each in waiting if all(read in ordered or read not in inputs for read in inputs[each])]
        ordered.update(dict.fromkeys(ready[:1] or waiting[:1]))
        waiting = [each for each in waiting if each not in ordered]
    return list(ordered)
