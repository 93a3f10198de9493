"""Spark's progress events: the JSON that tells of a micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from spark_hooks.records import QueryProgress
from streamgauge.watermarks import NO_WATERMARK_MS


class Source(msgspec.Struct, rename="camel"):
    """
    What a progress event tells of one source.

    Args:
        start_offset, end_offset, latest_offset: Where the batch began and ended reading, and what the source had at its
            trigger; JSON of any kind, compared by `offsets`. None where Spark does not know.
    """

    description: str = ""
    start_offset: Any = None
    end_offset: Any = None
    latest_offset: Any = None
    num_input_rows: int = 0
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    metrics: dict[str, str] | None = None


class Sink(msgspec.Struct, rename="camel"):
    """What a progress event tells of the sink; −1 rows means that it does not know."""

    description: str = ""
    num_output_rows: int = -1


class StateOperator(msgspec.Struct, rename="camel"):
    """What a progress event tells of one stateful operator."""

    memory_used_bytes: int = 0
    custom_metrics: dict[str, int] = {}


class Progress(msgspec.Struct, rename="camel"):
    """A progress event; what this version of Spark does not tell keeps its default."""

    id: str
    run_id: str
    batch_id: int
    timestamp: str
    num_input_rows: int = 0
    duration_ms: dict[str, int] = {}
    event_time: dict[str, str] = {}
    sources: tuple[Source, ...] = ()
    sink: Sink = msgspec.field(default_factory=Sink)
    state_operators: tuple[StateOperator, ...] = ()
    observed_metrics: dict[str, Any] = {}


_progress = msgspec.json.Decoder(Progress)


def read(event: QueryProgress) -> Progress:
    """
    Read a progress event's JSON.

    Raises:
        msgspec.DecodeError: it lacks what every version of Spark tells.
    """
    try:
        return _progress.decode(event.json.encode())
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # A user's observe() may see a NaN, and Spark writes it as such.
        return msgspec.convert(row(event.json), Progress)


def row(text: str) -> Any:
    """
    Read what Spark has written of a row, or of something with rows in it: JSON, and NaN and Infinity as they are.

    Raises:
        msgspec.DecodeError: it is something else.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"no JSON of Spark's: {error}") from error


def milliseconds(timestamp: str) -> int:
    """
    Return a timestamp of Spark's, '2026-11-21T10:42:48.662Z', in Unix milliseconds.

    Raises:
        ValueError: it is no ISO 8601.
    """
    return int(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)


def moment(event_time: Mapping[str, str], which: str) -> int | None:
    """
    Return one of a progress's event times in Unix milliseconds.

    Args:
        which: max, min, avg or watermark.

    Returns:
        None where it is not told, or is no time of our calendar: a row may claim to be of the year 10000.
    """
    try:
        return milliseconds(event_time[which])
    except (KeyError, ValueError):
        return None


def watermark(event_time: Mapping[str, str]) -> int | None:
    """Return a progress's watermark, Unix ms: None of a query without, NO_WATERMARK_MS before there is one."""
    told_ms = moment(event_time, "watermark")
    # Spark's own is 0 before there is one.
    return NO_WATERMARK_MS if told_ms is not None and told_ms <= 0 else told_ms
