"""Whether the taps and distributions of a vertex may come in: everything that they alone can tell."""

from __future__ import annotations

import math

import numpy as np

from collector.bucket_admission import check_buckets
from collector.checks import Checks, shown
from streamgauge import names, wire
from streamgauge.buckets import MAX_COUNT
from streamgauge.errors import MalformedFrame
from streamgauge.watermarks import END_OF_INPUT_MS, NO_WATERMARK_MS

GREATEST_MS = 2**53
"""Of a time that a tap is set to, and of a split's time that is told as a float64."""

_COUNTS = frozenset(
    {
        names.SPLIT_RECORDS,
        names.SPLIT_RECORDS_AT_RISK,
        names.SPLIT_ACCUMULATED_ACTIVE_TIME,
        names.SPLIT_ACCUMULATED_PAUSED_TIME,
        names.SPLIT_ACCUMULATED_IDLE_TIME,
    }
)
"""What is counted or summed up in a run."""
_DOUBLES = frozenset({names.SPLIT_ACTIVE_TIME, names.SPLIT_ACCUMULATED_ACTIVE_TIME})
"""What is a double in Flink, and may be one here."""


class TapAdmission(Checks):
    """
    Checks taps and distributions against the wire format and the limits.

    Holds no state but the limits: any thread.
    """

    def check(self, where: str, vertex: wire.VertexColumns) -> None:
        """
        Check the taps and distributions of one vertex.

        Args:
            where: Names the vertex in messages.
            vertex: Its other figures do not matter here.

        Raises:
            MalformedFrame: lengths, ids or numbers are not as `wire` says, or two tell of the same.
            InvalidName: a name is empty or too long.
            FrameTooLarge: past a limit.
        """
        self._bound(where, "taps", vertex.taps or ())
        for tap in vertex.taps or ():
            self._tap(f"{where}: tap {shown(tap.name)}", tap)
        self._bound(where, "distributions", vertex.distributions)
        told: set[tuple[str, str]] = set()
        for distribution in vertex.distributions:
            place = f"{where}: distribution {shown(distribution.metric)}"
            self._id(place, "operator", distribution.operator)
            if distribution.metric not in names.DISTRIBUTIONS:
                raise MalformedFrame(f"{place}: expected one of {sorted(names.DISTRIBUTIONS)}")
            key = (distribution.operator, distribution.metric)
            if key in told:
                raise MalformedFrame(
                    f"{place}: operator {shown(distribution.operator)} is there twice, expected once a metric"
                )
            told.add(key)
            check_buckets(place, distribution.buckets)

    def _tap(self, where: str, tap: wire.Tap) -> None:
        self._name(where, "name", tap.name)
        self._id(where, "operator", tap.operator)
        _within(where, "watermark_ms", tap.watermark_ms, NO_WATERMARK_MS, END_OF_INPUT_MS)
        _within(where, "max_out_of_orderness_ms", tap.max_out_of_orderness_ms, 0, GREATEST_MS)
        _within(where, "idleness_ms", tap.idleness_ms, -1, GREATEST_MS)
        _within(where, "unwatched", tap.unwatched, 0, MAX_COUNT)
        self._bound(where, "splits", tap.splits)
        for split in tap.splits:
            self._length(where, "split", split, "metric_chars")
        seen: set[str] = set()
        for column in tap.columns:
            if column.metric not in names.SPLIT_METRICS:
                raise MalformedFrame(
                    f"{where}: a split has no metric {shown(column.metric)}, expected one of "
                    f"{list(names.SPLIT_METRICS)}"
                )
            if column.metric in seen:
                raise MalformedFrame(f"{where}: two columns of {shown(column.metric)}, expected one a metric")
            seen.add(column.metric)
            _check_column(f"{where}: column {shown(column.metric)}", column, len(tap.splits))


def _within(where: str, what: str, value: int, least: int, greatest: int) -> None:
    if not least <= value <= greatest:
        raise MalformedFrame(f"{where}: {what} is {value}, expected {least} to {greatest}")


def _check_column(where: str, column: wire.Column, splits: int) -> None:
    if column.dtype != "i8" and column.metric not in _DOUBLES:
        raise MalformedFrame(f"{where}: it is {column.dtype}, expected i8: it is a whole number in Flink")
    if len(column.data) != 8 * splits:
        raise MalformedFrame(
            f"{where}: {len(column.data)} bytes for {splits} splits, expected {8 * splits}: 8 bytes a split"
        )
    bitmap = math.ceil(splits / 8)
    if column.present is not None and len(column.present) != bitmap:
        raise MalformedFrame(
            f"{where}: a bitmap of {len(column.present)} bytes for {splits} splits, expected {bitmap}: 1 bit a split"
        )
    values, there = column.values(), column.mask(splits)
    known = values if there is None else values[there]
    # Written so that NaN is refused too.
    if column.dtype == "f8" and not (np.abs(known) <= GREATEST_MS).all():
        raise MalformedFrame(f"{where}: a value is no number of at most {GREATEST_MS}")
    if not known.size:
        return
    least, greatest = known.min(), known.max()
    if column.metric in _COUNTS and not (least >= 0 and greatest <= MAX_COUNT):
        raise MalformedFrame(f"{where}: values from {least} to {greatest}, expected 0 to {MAX_COUNT}")
    if column.metric == names.SPLIT_IDLE and (least < 0 or greatest > 1):
        raise MalformedFrame(f"{where}: values from {least} to {greatest}, expected 0 or 1: whether it is idle")
