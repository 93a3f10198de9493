"""A run as it lies in the archive: all that is held of it in one compressed body, and what lists tell without it."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import numpy as np

from collector.latencies import Latencies, LatencyWindow
from collector.run import Run
from collector.store import JobState, VertexState
from collector.tasks import ExecutionState, task_counts
from streamgauge import wire
from streamgauge.errors import CorruptSegment

FORMAT = 1
"""Raised by every change that an older release would misread; a field more or less is none."""

_LEVEL = 4
"""Of zlib: past it a body takes twice the time to become a few hundredths smaller."""
_DTYPES = frozenset({"<i8", "<f8", "<f4", "<u4", "|b1"})
_LONG = 2**63
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def run_id(state: JobState) -> str:
    """
    Return the id of a job's run, 32 hex digits: Spark's run id of a query, without its dashes.

    Of whatever has none, as a batch execution, it is made from the job's id and its attempt. Any thread.
    """
    told = state.attempt.run_id.lower()
    if _UUID.fullmatch(told):
        return told.replace("-", "")
    named = f"{state.job.jid}:{state.attempt.start_ms}:{state.attempt.run_id}"
    return hashlib.md5(named.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """
    What lists tell of an archived run.

    Args:
        jid: 32 hex digits.
        run: As `run_id` makes it.
        state: As it last was; SUSPENDED where no end was told.
        application: Spark's id.
        attempt: Of the run.
        first_start_ms: Start of the job's first run that was seen, wall time.
        end_ms: −1 where no end was told.
        modified_ms: When it came into its state.
        archived_ms: When it was written, wall time.
        restarts: Runs seen before it.
        tasks: How many of its tasks are in each state; absent is 0.
        format: Of its body.
        size_bytes: Of its body, as it lies there.
    """

    jid: str
    run: str
    name: str
    type: Literal["STREAMING", "BATCH"]
    state: wire.JobState
    application: str
    attempt: wire.Attempt
    first_start_ms: int
    end_ms: int
    modified_ms: int
    archived_ms: int
    restarts: int
    tasks: Mapping[ExecutionState, int]
    format: int
    size_bytes: int

    @property
    def ended(self) -> bool:
        """Whether its driver told its end."""
        return self.state in wire.ENDED_STATES


@dataclass(frozen=True, slots=True)
class Segment:
    """A run, ready to be written."""

    entry: Entry
    body: bytes


def pack(run: Run, now_ms: int) -> Segment:
    """
    Make a run what is written of it.

    Args:
        now_ms: Wall time.

    Any thread; it takes about 10 ms a megabyte of figures.
    """
    body = zlib.compress(_encoder.encode(run), _LEVEL)
    state = run.state
    return Segment(
        Entry(
            jid=state.job.jid,
            run=run_id(state),
            name=state.job.name,
            type=state.job.type,
            state=state.state,
            application=state.app.id,
            attempt=wire.Attempt(_long(state.attempt.start_ms), state.attempt.run_id),
            first_start_ms=_long(state.first_start_ms),
            end_ms=_long(state.job.end_ms),
            modified_ms=_long(state.modified_ms),
            archived_ms=now_ms,
            restarts=state.restarts,
            tasks=dict(task_counts(state, state.vertices.values())),
            format=FORMAT,
            size_bytes=len(body),
        ),
        body,
    )


def unpack(entry: Entry, body: bytes) -> tuple[Run, int]:
    """
    Read a body back.

    Args:
        entry: Whose it is.

    Returns:
        The run, whose arrays are read-only, and how many bytes it takes, about.

    Raises:
        CorruptSegment: it is damaged, or of a newer release.

    Any thread.
    """
    if entry.format > FORMAT:
        raise CorruptSegment(
            entry.jid,
            entry.run,
            f"its format is {entry.format}, and this release reads up to {FORMAT}",
            "it was written by a newer release of Streamgauge: read it with that one",
        )
    try:
        plain = zlib.decompress(body)
        run = _decoder.decode(plain)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CorruptSegment(
            entry.jid, entry.run, str(error)[:200], "its row is damaged: restore the database from a backup"
        ) from error
    vertices = {vertex_id: _shared(vertex) for vertex_id, vertex in run.state.vertices.items()}
    return replace(run, state=replace(run.state, vertices=vertices)), len(plain)


def _long(value: int) -> int:
    return max(-_LONG, min(value, _LONG - 1))


def _shared(vertex: VertexState) -> VertexState:
    """Return a vertex whose operators share equal windows and histograms, as those do that came in a frame."""
    held = vertex.latencies
    if not held.windows and not held.histograms:
        return vertex
    windows: dict[tuple[bytes, bytes], LatencyWindow] = {}
    histograms: dict[wire.LatencyHistogram, wire.LatencyHistogram] = {}
    latencies = Latencies(
        {
            key: windows.setdefault((one.counts.tobytes(), one.statistics.tobytes()), one)
            for key, one in held.windows.items()
        },
        {key: histograms.setdefault(one, one) for key, one in held.histograms.items()},
        held.series,
    )
    return replace(vertex, latencies=latencies)


def _told(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        return little.dtype.str, little.shape, little.tobytes()
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in a run")


def _read(_type: Any, told: Any) -> Any:
    dtype, shape, data = told
    if dtype not in _DTYPES:
        raise ValueError(f"an array of {dtype!r} is none of a run's")
    return np.frombuffer(data, dtype).reshape(shape)


_encoder = msgspec.msgpack.Encoder(enc_hook=_told)
_decoder = msgspec.msgpack.Decoder(Run, dec_hook=_read)
