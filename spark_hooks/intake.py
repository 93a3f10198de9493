"""What a run has taken in of one of its sources, and how far behind it is."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_hooks.file_positions import FilePositions, Position
from spark_hooks.pending import Pending
from spark_hooks.progress import Source
from streamgauge import names, wire

METRICS = 100
NAME_CHARS = 200
"""Of one source that are told, and of each one's name; a connector may name as many as it likes."""

PARTITIONS = 1000
"""A source's partitions that are told one by one; of one with more there is the total alone."""

# What no 64 bits hold does not travel as a whole number.
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class Figures(NamedTuple):
    """
    What is told of a source in columns; None where it is not known.

    Args:
        pending: Rows that it has beyond what was read.
        unread: Files that Spark has listed and not read.
        fetch_lag_ms, emit_lag_ms: From the latest event time of a micro-batch to when it began, and ended; negative
            where that lies in the future.
        watermark_lag_ms: By how much the query's watermark is behind the driver's clock.
        idle_ms: Since a micro-batch that read rows ended; 0 while one reads.
    """

    pending: int | None = None
    unread: int | None = None
    fetch_lag_ms: int | None = None
    emit_lag_ms: int | None = None
    watermark_lag_ms: int | None = None
    idle_ms: int | None = None


class Intake:
    """
    One source of one run. Not thread safe.

    `latest` is what its latest progress told. `position` is where a stream of files stood at the end of the latest
    batch in which somebody looked, None before, and for other sources.

    Args:
        since_ms: When the run was first seen to read, steady: it is idle since then until a batch reads rows.
    """

    def __init__(self, since_ms: int) -> None:
        self.rows = 0
        self.latest = Source()
        self.pending = Pending()
        self.position: Position | None = None
        self.figures = Figures()
        self._files = FilePositions()
        self._read_ms = since_ms
        self._metrics: dict[str, wire.Scalar] | None = None

    def take(self, source: Source, end_ms: int, unread: int | None = None) -> None:
        """
        A micro-batch ended.

        Args:
            end_ms: Steady.
            unread: Files that were listed and left when it began, −1 where Spark kept no listing; None where nobody
                has looked.
        """
        self.rows += source.num_input_rows
        self.latest = source
        self.pending.take(source)
        self._metrics = None
        if source.num_input_rows:
            self._read_ms = end_ms
        known = unread if unread is not None and unread >= 0 else None
        if unread is not None:
            self.position = self._files.take(known)
        self.figures = self.figures._replace(pending=self.pending.rows, unread=known)
        self.wait(end_ms)

    def metrics(self) -> dict[str, wire.Scalar]:
        """Return what is told of it apart from columns; the same object until the next batch ends."""
        if self._metrics is None:
            self._metrics = self._told()
        return self._metrics

    def lag(self, fetch_ms: int, emit_ms: int) -> None:
        """The latest event time of a micro-batch was that long before it began, and ended."""
        self.figures = self.figures._replace(fetch_lag_ms=fetch_ms, emit_lag_ms=emit_ms)

    def wait(self, now_ms: int, reading: bool = False) -> None:
        """
        See how long it has been idle.

        Args:
            now_ms: Steady.
            reading: A micro-batch reads it.
        """
        self.figures = self.figures._replace(idle_ms=0 if reading else max(now_ms - self._read_ms, 0))

    def _told(self) -> dict[str, wire.Scalar]:
        source = self.latest
        found: dict[str, wire.Scalar] = {names.INPUT_ROWS: self.rows}
        if source.input_rows_per_second is not None:
            found[names.INPUT_RATE] = source.input_rows_per_second
        if source.processed_rows_per_second is not None:
            found[names.PROCESSED_RATE] = source.processed_rows_per_second
        for name, value in list((source.metrics or {}).items())[:METRICS]:
            found.setdefault(name[:NAME_CHARS], _number(value))
        partitions = self.pending.partitions()
        if len(partitions) <= PARTITIONS:
            for path, rows in partitions.items():
                found.setdefault(".".join((names.PENDING_RECORDS, *path)), rows)
        return found


def _number(value: str) -> wire.Scalar:
    """Connectors tell text, most of it numbers: Kafka '0' and '0.5'."""
    if _WHOLE.fullmatch(value):
        return int(value)
    try:
        return float(value)
    except ValueError:
        return value
