"""What a tap's `observe()` row says: written by `spark_hooks.tap`, read back from a progress event."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

PREFIX = "streamgauge.tap."
"""How the name of every tap's observation begins; the tap's own name follows."""

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A tap's name: it becomes part of metric ids and of labels."""

MAX_SPLITS = 64
"""Of one tap; each costs every row a comparison and a little more."""

MAX_SPLIT_CHARS = 200
"""Of a split's name."""

DELAY_BUCKETS = 16
"""Of delays, for each factor of e: bucket b holds those from e^(b/16) − 1 ms to just below e^((b+1)/16) − 1 ms."""

NEGATIVE_DELAY = -1
"""Stands for every delay below 0: of records whose clock is ahead of the driver's."""

_MAX_OPTIONS_CHARS = 100_000
_MAX_BINS = 1000
# A long of milliseconds has no more.
_BUCKETS = range(64 * DELAY_BUCKETS)
_MAX_COUNT = 2**53
_LONG = range(-(2**63), 2**63)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a tap was asked for; travels in its row, so that whoever reads the row needs to know nothing else.

    Args:
        event_time, ingest_time: Whether there is one.
        by: What tells splits apart: a column, or the task that reads the source; None where nothing does.
        splits: Names of those that are watched.
        max_out_of_orderness_ms: Not negative.
        idleness_ms: Positive; None for never.
    """

    version: Literal[1] = 1
    event_time: bool
    ingest_time: bool
    by: Literal["column", "source"] | None
    splits: tuple[str, ...]
    max_out_of_orderness_ms: int
    idleness_ms: int | None


@dataclass(frozen=True, slots=True)
class SplitRow:
    """
    What a tap saw of one split in one batch.

    Args:
        rows: Those with an event time.
        min_ms, max_ms: Of their event times, Unix time; None where there are no such rows.
    """

    name: str
    rows: int
    min_ms: int | None
    max_ms: int | None


@dataclass(frozen=True, slots=True)
class TapRow:
    """
    What a tap saw in one batch.

    Args:
        by: What tells splits apart: a column, or the task that reads the source; None where nothing does.
        rows: All of them, those without an event time, an ingest time or a split included.
        event_min_ms, event_max_ms: Unix time; None where no row has an event time.
        splits: Those that are watched, in the tap's order, those without rows included.
        unwatched: Rows with an event time and a split that is not watched.
        delays: Delay from ingest to the batch's trigger, ms → rows. A delay stands for those next to it: it is exact
            below 18 ms, else within 1 ms or 3.2 %; NEGATIVE_DELAY stands for all below 0.
    """

    name: str
    event_time: bool
    ingest_time: bool
    by: Literal["column", "source"] | None
    max_out_of_orderness_ms: int
    idleness_ms: int | None
    rows: int
    event_min_ms: int | None
    event_max_ms: int | None
    splits: tuple[SplitRow, ...]
    unwatched: int
    delays: Mapping[int, int]


def tap_rows(observed: Mapping[str, object]) -> Iterator[TapRow]:
    """
    Yield the rows of a query's taps.

    Args:
        observed: Name → row, of a progress event: `Progress.observed_metrics`.

    A row that no tap of ours can have written yields nothing: whoever writes a query may call an observation as
    ours are called. Raises nothing. Any thread.
    """
    for name, row in observed.items():
        if name.startswith(PREFIX) and isinstance(row, dict):
            try:
                yield _read(name.removeprefix(PREFIX), row)
            except _Malformed:
                continue


def users(observed: Mapping[str, object]) -> dict[str, object]:
    """Return a query's observations without its taps', in their order. Any thread."""
    return {name: row for name, row in observed.items() if not name.startswith(PREFIX)}


class _Malformed(Exception):
    """The row is none of a tap's."""


_options = msgspec.json.Decoder(Options)


def _read(name: str, row: Mapping[str, object]) -> TapRow:
    _demand(NAME.fullmatch(name) is not None)
    options = _asked(row.get("options"))
    splits = tuple(_split(row, index, split) for index, split in enumerate(options.splits))
    unwatched = (_count(row.get("split_rows")) if splits else 0) - sum(split.rows for split in splits)
    _demand(unwatched >= 0)
    event_min_ms, event_max_ms = _range(row, "event_min", "event_max") if options.event_time else (None, None)
    return TapRow(
        name=name,
        event_time=options.event_time,
        ingest_time=options.ingest_time,
        by=options.by,
        max_out_of_orderness_ms=options.max_out_of_orderness_ms,
        idleness_ms=options.idleness_ms,
        rows=_count(row.get("rows")),
        event_min_ms=event_min_ms,
        event_max_ms=event_max_ms,
        splits=splits,
        unwatched=unwatched,
        delays=_delays(row) if options.ingest_time else {},
    )


def _asked(text: object) -> Options:
    if not isinstance(text, str) or len(text) > _MAX_OPTIONS_CHARS:
        raise _Malformed
    try:
        options = _options.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _Malformed from error
    _demand(options.max_out_of_orderness_ms in _LONG and options.max_out_of_orderness_ms >= 0)
    _demand(options.idleness_ms is None or (options.idleness_ms in _LONG and options.idleness_ms > 0))
    _demand(options.event_time or not options.splits)
    _demand((options.by is None) == (not options.splits))
    _demand(len(options.splits) <= MAX_SPLITS and len(set(options.splits)) == len(options.splits))
    _demand(all(0 < len(split) <= MAX_SPLIT_CHARS for split in options.splits))
    return options


def _split(row: Mapping[str, object], index: int, name: str) -> SplitRow:
    min_ms, max_ms = _range(row, f"min_{index}", f"max_{index}")
    rows = _count(row.get(f"rows_{index}"))
    _demand((rows > 0) == (min_ms is not None))
    return SplitRow(name, rows, min_ms, max_ms)


def _range(row: Mapping[str, object], least: str, greatest: str) -> tuple[int, int] | tuple[None, None]:
    low, high = row.get(least), row.get(greatest)
    if low is None and high is None:
        return None, None
    low, high = _long(low), _long(high)
    _demand(low <= high)
    return low, high


def _delays(row: Mapping[str, object]) -> dict[int, int]:
    """Return delay → rows. Spark's histogram has those that are not negative, and may list a bucket repeatedly."""
    bins = row.get("delays") or []
    if not isinstance(bins, list) or len(bins) > _MAX_BINS:
        raise _Malformed
    found: Counter[int] = Counter()
    for each in bins:
        if not isinstance(each, dict):
            raise _Malformed
        found[_delay_ms(_whole(each.get("x")))] += _count(_whole(each.get("y")))
    negative = _count(row.get("ingest_rows")) - sum(found.values())
    _demand(negative >= 0)
    if negative:
        found[NEGATIVE_DELAY] = negative
    return dict(found)


def _delay_ms(bucket: int) -> int:
    """Return the middle of the whole milliseconds in a bucket."""
    _demand(bucket in _BUCKETS)
    least, beyond = (math.ceil(math.exp(edge / DELAY_BUCKETS)) - 1 for edge in (bucket, bucket + 1))
    return max(least, (least + beyond - 1) // 2)


def _whole(value: object) -> int:
    """Return a number that counts something, which Spark may tell as a double."""
    return _long(int(value) if isinstance(value, float) and value.is_integer() else value)


def _count(value: object) -> int:
    count = _long(value)
    _demand(0 <= count <= _MAX_COUNT)
    return count


def _long(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _LONG:
        raise _Malformed
    return value


def _demand(true: bool) -> None:
    if not true:
        raise _Malformed
