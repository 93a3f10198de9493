"""`streamgauge.tap`: figures of a stream's records themselves, made by Spark's own aggregates in one `observe()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StringType, TimestampNTZType, TimestampType

from spark_hooks.durations import duration_ms
from spark_hooks.tap_plan import Plan
from spark_hooks.tap_rows import DELAY_BUCKETS, MAX_SPLIT_CHARS, MAX_SPLITS, NAME, PREFIX, Options
from streamgauge import SOURCE_SPLIT
from streamgauge.errors import TapError

DEFAULT_SPLITS = 8

DELAY_BINS = 720
"""More than a long has buckets of delays, so that Spark's histogram puts no two of them together."""

_LONGS = range(-(2**63), 2**63)
_LISTED = 20


@dataclass(frozen=True)
class _Asked:
    """What a call asked for, checked as far as it can be without the frame."""

    event_time: Any
    ingest_time: Any
    partition: Any
    splits: tuple[str, ...] | tuple[int, ...]
    options: Options

    @property
    def by_source(self) -> bool:
        return self.partition is SOURCE_SPLIT


def tap(
    df: Any,
    name: str,
    *,
    event_time: Any = None,
    ingest_time: Any = None,
    partition: Any = None,
    splits: int | Sequence[int] | Sequence[str] | None = None,
    max_out_of_orderness: Any = None,
    idleness: Any = None,
) -> Any:
    """Tap a stream: see `streamgauge.tap`, which is the manual."""
    _check_name(name)
    asked = _asked(event_time, ingest_time, partition, splits, max_out_of_orderness, idleness)
    if not hasattr(df, "observe") or not hasattr(df, "isStreaming"):
        raise TapError(f"tap(df={type(df).__name__}): expected a streaming DataFrame")
    if not df.isStreaming:
        raise TapError(
            "tap(df=…): is a batch DataFrame, whose rows have no watermark; expected a stream, as readStream gives"
        )
    _check_columns(df, asked)
    _check_plan(df, name, asked)
    return _observed(df, name, asked)


# ---- What was asked for


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise TapError(
            f"tap(name={name!r}): becomes part of metric ids and labels: expected 1 to 64 of the letters A-Z and a-z, "
            "digits, '_' and '-'"
        )


def _asked(
    event_time: Any, ingest_time: Any, partition: Any, splits: Any, max_out_of_orderness: Any, idleness: Any
) -> _Asked:
    if event_time is None:
        dependent = {"partition": partition, "max_out_of_orderness": max_out_of_orderness, "idleness": idleness}
        for argument, value in dependent.items():
            if value is not None:
                raise TapError(f"tap({argument}=…): needs event_time=, for it is about watermarks")
    if partition is None and splits is not None:
        raise TapError("tap(splits=…): needs partition=, whose values the splits are")
    watched = () if partition is None else _splits(partition, DEFAULT_SPLITS if splits is None else splits)
    idleness_ms = None if idleness is None else duration_ms("idleness", idleness)
    if idleness_ms == 0:
        raise TapError(f"tap(idleness={idleness!r}): expected 1 millisecond or more, or None for never")
    options = Options(
        event_time=event_time is not None,
        ingest_time=ingest_time is not None,
        by=None if partition is None else "source" if partition is SOURCE_SPLIT else "column",
        splits=tuple(map(str, watched)),
        max_out_of_orderness_ms=0
        if max_out_of_orderness is None
        else duration_ms("max_out_of_orderness", max_out_of_orderness),
        idleness_ms=idleness_ms,
    )
    return _Asked(event_time, ingest_time, partition, watched, options)


def _splits(partition: Any, splits: Any) -> tuple[int, ...] | tuple[str, ...]:
    """Return the values of the splits to watch."""
    if isinstance(splits, int) and not isinstance(splits, bool):
        if not 1 <= splits <= MAX_SPLITS:
            raise TapError(
                f"tap(splits={splits}): expected 1 to {MAX_SPLITS} splits: each costs every record something"
            )
        return tuple(range(splits))
    if not isinstance(splits, Sequence) or isinstance(splits, str | bytes):
        raise TapError(f"tap(splits={splits!r}): expected a number of splits, or a list of their values")
    if partition is SOURCE_SPLIT:
        raise TapError("tap(splits=[…]): partition=SOURCE_SPLIT numbers its splits from 0: expected how many there are")
    if not 1 <= len(splits) <= MAX_SPLITS:
        raise TapError(
            f"tap(splits=[…]): lists {len(splits)}, expected 1 to {MAX_SPLITS}, for each costs every record some time"
        )
    for split in splits:
        if not _is_split(split):
            raise TapError(
                f"tap(splits=[…, {split!r}, …]): expected integers that a long holds, or texts of 1 to "
                f"{MAX_SPLIT_CHARS} characters"
            )
    if len({type(split) for split in splits}) > 1:
        raise TapError("tap(splits=[…]): expected integers only or texts only: they are values of one column")
    for place, split in enumerate(splits):
        if split in splits[:place]:
            raise TapError(f"tap(splits=[…]): {split!r} is listed twice")
    return tuple(splits)


def _is_split(split: object) -> bool:
    if isinstance(split, str):
        return 0 < len(split) <= MAX_SPLIT_CHARS and split.isprintable()
    return isinstance(split, int) and not isinstance(split, bool) and split in _LONGS


# ---- The frame


def _check_columns(df: Any, asked: _Asked) -> None:
    for argument, value in (("event_time", asked.event_time), ("ingest_time", asked.ingest_time)):
        if value is not None:
            _check_timestamp(argument, value, _type(df, argument, value))
    if asked.partition is None or asked.by_source:
        return
    kind = _type(df, "partition", asked.partition)
    shown = _shown("partition", asked.partition)
    if not isinstance(kind, ByteType | ShortType | IntegerType | LongType | StringType):
        raise TapError(f"{shown}: is {kind.simpleString()}, expected a column of integers or of strings")
    texts = isinstance(asked.splits[0], str)
    if isinstance(kind, StringType) and not texts:
        raise TapError(f"{shown}: is string, expected splits=[…], a list of the texts to watch")
    if not isinstance(kind, StringType) and texts:
        raise TapError(f"{shown}: is {kind.simpleString()}, but splits=[…] lists texts; expected integers")


def _check_timestamp(argument: str, value: Any, kind: Any) -> None:
    shown = _shown(argument, value)
    if isinstance(kind, TimestampNTZType):
        raise TapError(
            f"{shown}: is timestamp_ntz, which is no moment until a time zone is known; expected timestamp: cast it"
        )
    if not isinstance(kind, TimestampType):
        raise TapError(f"{shown}: is {kind.simpleString()}, expected timestamp: cast it")


def _type(df: Any, argument: str, value: Any) -> Any:
    """Return a column's type, as Spark resolves it in the frame."""
    shown = _shown(argument, value)
    if not isinstance(value, str) and type(value).__name__ not in ("Column", "ConnectColumn"):
        raise TapError(f"{shown}: expected a column: its name, or a Column")
    try:
        fields = df.select("*", _column(value)).schema.fields
    except AnalysisException as error:
        columns = ", ".join(df.columns[:_LISTED]) + (", …" if len(df.columns) > _LISTED else "")
        dots = " (a name with dots needs backticks)" if isinstance(value, str) and "." in value else ""
        raise TapError(
            f"{shown}: expected a column{dots}; there are: {columns}. Spark says: {_reason(error)}"
        ) from error
    if len(fields) != len(df.columns) + 1:
        raise TapError(f"{shown}: expected one column, not {len(fields) - len(df.columns)}")
    return fields[-1].dataType


def _column(value: Any) -> Any:
    """Return a column by its name; a Column, and nothing, as they are."""
    return f.col(value) if isinstance(value, str) else value


def _shown(argument: str, value: object) -> str:
    return f"tap({argument}={value!r})"


def _reason(error: Exception) -> str:
    """Return the first line of what Spark says; the rest is its plan."""
    return str(error).strip().partition("\n")[0][:300]


def _check_plan(df: Any, name: str, asked: _Asked) -> None:
    # Over Spark Connect there is no plan to look at: what this refuses, Spark does when the query starts.
    if type(df).__module__.startswith("pyspark.sql.connect"):
        return
    plan = Plan(df)
    if plan.observes(PREFIX + name):
        raise TapError(f"tap(name={name!r}): the stream has a tap of this name already, expected another one")
    parting = plan.parting() if asked.by_source else None
    if parting:
        raise TapError(
            f"tap(partition=SOURCE_SPLIT): {parting} stands between the source and the tap, and a task behind it need "
            "not read the same split; expected the stream as it is read: tap it before"
        )


# ---- The observation


def _observed(df: Any, name: str, asked: _Asked) -> Any:
    differing: dict[str, Any] = {}
    if asked.by_source:
        differing["partition"] = f.spark_partition_id()
    if asked.ingest_time is not None:
        differing["delay"] = _bucket(_column(asked.ingest_time))
    frame, helpers = df, []
    if differing and not _aggregates_anything(df):
        helpers = [_free(df, noun) for noun in differing]
        named = zip(differing.values(), helpers, strict=True)
        frame = df.select("*", *(column.alias(helper) for column, helper in named))
        differing = dict(zip(differing, map(f.col, helpers), strict=True))
    partition = differing.get("partition", _column(asked.partition))
    columns = _Columns(_column(asked.event_time), partition, _column(asked.ingest_time), differing.get("delay"))
    try:
        observed = frame.observe(PREFIX + name, *_aggregates(asked, columns))
    except AnalysisException as error:
        raise TapError(f"tap(name={name!r}): Spark cannot aggregate these columns. {_reason(error)}") from error
    return observed.drop(*helpers) if helpers else observed


def _aggregates_anything(df: Any) -> bool:
    """Return whether Spark's `observe()` takes what differs between tasks or batches; 3.5 wants it as a column."""
    try:
        df.observe(PREFIX, f.max(f.spark_partition_id())).schema  # noqa: B018
    except AnalysisException:
        return False
    return True


def _free(df: Any, noun: str) -> str:
    """Return a name that no column has."""
    taken = {column.lower() for column in df.columns}
    name = f"__streamgauge_{noun}"
    while name in taken:
        name += "_"
    return name


@dataclass(frozen=True)
class _Columns:
    """What is aggregated; None where it was not asked for."""

    event_time: Any
    partition: Any
    ingest_time: Any
    delay: Any


def _aggregates(asked: _Asked, columns: _Columns) -> Iterator[Any]:
    # A row costs some 10 ns for each aggregate, so there are no more than needed; the greatest timestamp is turned into
    # milliseconds once a batch instead of every timestamp.
    yield f.lit(msgspec.json.encode(asked.options).decode()).alias("options")
    yield f.count(f.lit(1)).alias("rows")
    if columns.event_time is not None:
        yield f.unix_millis(f.min(columns.event_time)).alias("event_min")
        yield f.unix_millis(f.max(columns.event_time)).alias("event_max")
    if asked.splits:
        yield f.count(f.when(columns.partition.isNotNull(), columns.event_time)).alias("split_rows")
    for number, split in enumerate(asked.splits):
        of_split = f.when(columns.partition == split, columns.event_time)
        yield f.count(of_split).alias(f"rows_{number}")
        if asked.by_source:
            # What is not deterministic may stand in an aggregate, but nothing may stand around that one.
            of_split_ms = f.when(columns.partition == split, f.unix_millis(columns.event_time))
            least, greatest = f.min(of_split_ms), f.max(of_split_ms)
        else:
            least, greatest = f.unix_millis(f.min(of_split)), f.unix_millis(f.max(of_split))
        yield least.alias(f"min_{number}")
        yield greatest.alias(f"max_{number}")
    if columns.ingest_time is not None:
        yield f.count(columns.ingest_time).alias("ingest_rows")
        yield f.histogram_numeric(columns.delay, f.lit(DELAY_BINS)).alias("delays")


def _bucket(ingest_time: Any) -> Any:
    """
    Return the bucket of a delay; null of one below 0.

    The trigger's time stands in a histogram's input alone, which Spark does not compile: code that it stands in is
    other code in every batch, and would be compiled anew.
    """
    delay_ms = f.unix_millis(f.current_timestamp()) - f.unix_millis(ingest_time)
    return (f.ln(delay_ms + 1) * DELAY_BUCKETS).cast("int")
