"""The splits of one tapped stream over the micro-batches of a run: watermarks, idleness, and records at risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spark_hooks.split_times import SplitTimes
from spark_hooks.tap_rows import SplitRow, TapRow
from streamgauge import names, wire
from streamgauge.watermarks import (
    END_OF_INPUT_MS,
    NO_WATERMARK_MS,
    BoundedOutOfOrderness,
    IdlenessTimer,
    WatermarkMultiplexer,
)

WHOLE = ""
"""Stands for the split's name where a tap parts its stream into none: then the stream is as one."""


class Channel(NamedTuple):
    """What a split tells those that read it: steps of `StatusWatermarkValve`."""

    split: str
    watermark_ms: int
    idle: bool


class _Split:
    __slots__ = ("at_risk", "generator", "idleness", "records")

    def __init__(self, generator: BoundedOutOfOrderness, idleness: IdlenessTimer) -> None:
        self.generator = generator
        self.idleness = idleness
        self.records = self.at_risk = 0


class Splits:
    """
    The splits of a tap. Not thread safe.

    A split is there from the moment that it is known of: one that the user lists from the first batch on; where they
    are numbered, up to the greatest that has had a record, for the tap's bound says how many there may be, not how many
    there are. So nothing waits for a split that nobody has seen.

    Watermarks are emitted, and idleness is looked at, when a micro-batch has completed. The clock of idleness is that
    batch's trigger: the batch tells what there was until then, and what came since is in the next one. So the clock
    stands still while a batch takes its time, or while none runs, and what Flink does periodically
    (`pipeline.auto-watermark-interval`) between two batches changes nothing but that the first look without a record
    is at the trigger of the batch that had the last one: one look more at a batch's end is all of them.

    `revision` grows with whatever is told.

    Args:
        tap: The first row of the tap; its settings do not change within a run.
    """

    def __init__(self, tap: TapRow) -> None:
        self.revision = 0
        self.max_out_of_orderness_ms = tap.max_out_of_orderness_ms
        self.idleness_ms = tap.idleness_ms
        self.by_subtask = tap.by == "source"
        self.unwatched = 0
        self._parted = tap.by is not None
        self._splits: dict[str, _Split] = {}
        self._combined = WatermarkMultiplexer()
        self._times = SplitTimes()
        self._clock_ms = NO_WATERMARK_MS
        self._risk_known = False

    @property
    def watermark_ms(self) -> int:
        """Of all splits together, Unix time; NO_WATERMARK_MS before there is one, END_OF_INPUT_MS at the end."""
        return self._combined.watermark_ms

    @property
    def idle(self) -> bool:
        """Whether all splits are; not at the end of input."""
        return self._combined.idle

    @property
    def names(self) -> tuple[str, ...]:
        """Of the splits that there are, in the tap's order; none where the tap parts its stream into none."""
        return tuple(self._splits) if self._parted else ()

    def complete(self, row: TapRow | None, trigger_ms: int, end_ms: int, late_ms: int | None) -> None:
        """
        A micro-batch has completed.

        Args:
            row: What the tap saw in it; None where it saw nothing.
            trigger_ms, end_ms: The batch's, steady.
            late_ms: The watermark behind which Spark took records of the batch for late; None where it takes none.
        """
        self._clock_ms = max(self._clock_ms, trigger_ms)
        self._risk_known |= late_ms is not None
        for told in () if row is None else self._parts(row):
            split = self._splits.get(told.name) or self._add(told.name)
            if told.rows:
                split.idleness.activity()
                split.records += told.rows
            if told.min_ms is not None and told.max_ms is not None:
                split.generator.observe(told.max_ms)
                if late_ms is not None:
                    split.at_risk += at_risk(told.rows, told.min_ms, told.max_ms, late_ms)
        self.unwatched += 0 if row is None else row.unwatched
        for name, split in self._splits.items():
            if split.idleness.is_idle():
                self._combined.mark_idle(name)
            else:
                self._combined.emit(name, split.generator.watermark_ms)
            split.idleness.is_idle()
        self._combined.combine()
        self._times.turn(end_ms, [self._combined.is_idle(name) for name in self._splits])
        self.revision += 1

    def tick(self, now_ms: int) -> None:
        """Look at the time that has passed, steady, once every 5 s."""
        self._times.tick(now_ms)
        self.revision += 1

    def end(self, now_ms: int, finished: bool) -> None:
        """
        The run has ended, steady time.

        Args:
            finished: Its input has: no record is to come.
        """
        self._times.tick(now_ms)
        if finished:
            self._combined.end()
        self.revision += 1

    def channels(self) -> list[Channel]:
        """Return what each split tells those that read it."""
        combined = self._combined
        if combined.watermark_ms == END_OF_INPUT_MS:
            return [Channel(name, END_OF_INPUT_MS, False) for name in self._splits]
        return [Channel(name, combined.watermark_of(name), combined.is_idle(name)) for name in self._splits]

    def columns(self) -> Iterator[wire.Column]:
        """Yield what is told of the splits, each column one value a split; what is not known is absent."""
        if not self._parted or not self._splits:
            return
        combined, splits = self._combined, list(self._splits.values())
        yield _whole(names.SPLIT_CURRENT_WATERMARK, [combined.watermark_of(name) for name in self._splits])
        yield _whole(names.SPLIT_IDLE, [int(combined.is_idle(name)) for name in self._splits])
        yield from _known(names.SPLIT_WATERMARK_DRIFT, list(combined.drifts_ms().values()))
        yield _whole(names.SPLIT_RECORDS, [split.records for split in splits])
        if self._risk_known:
            yield _whole(names.SPLIT_RECORDS_AT_RISK, [split.at_risk for split in splits])
        times = self._times.told()
        # One that came since the last tick has had no time yet.
        new: list[int | None] = [None] * (len(splits) - len(times))
        idle = [time.idle_per_second for time in times]
        active = [None if share is None else max(1000 - share, 0) for share in idle]
        paused: list[int | None] = [None if share is None else 0 for share in idle]
        yield from _known(names.SPLIT_ACTIVE_TIME, active + new)
        yield from _known(names.SPLIT_PAUSED_TIME, paused + new)
        yield from _known(names.SPLIT_IDLE_TIME, idle + new)
        yield from _known(names.SPLIT_ACCUMULATED_ACTIVE_TIME, [time.active_ms for time in times] + new)
        yield from _known(names.SPLIT_ACCUMULATED_PAUSED_TIME, [0 for _ in times] + new)
        yield from _known(names.SPLIT_ACCUMULATED_IDLE_TIME, [time.idle_ms for time in times] + new)

    def _parts(self, row: TapRow) -> Sequence[SplitRow]:
        """Return what was seen of each split that there is."""
        if not self._parted:
            return [SplitRow(WHOLE, row.rows, row.event_min_ms, row.event_max_ms)]
        if any(split.name != str(place) for place, split in enumerate(row.splits)):
            return row.splits
        seen = max((place for place, split in enumerate(row.splits, 1) if split.rows), default=0)
        return row.splits[: max(seen, len(self._splits))]

    def _add(self, name: str) -> _Split:
        idleness = IdlenessTimer(self.idleness_ms, lambda: self._clock_ms)
        split = self._splits[name] = _Split(BoundedOutOfOrderness(self.max_out_of_orderness_ms), idleness)
        self._combined.add(name)
        return split


def at_risk(rows: int, min_ms: int, max_ms: int, late_ms: int) -> int:
    """
    Return how many of a split's records in a batch are at Spark's watermark or behind it.

    Args:
        rows: At least 1.
        min_ms, max_ms: Their least and greatest event times.
        late_ms: The watermark.

    Returns:
        Exact where all of them are on one side; else an estimate that spreads them evenly from the least to the
        greatest: 1 to rows − 1, for the least is behind and the greatest is not.

    Source: Spark, `WatermarkSupport`: late is what has an event time of at most the watermark.
    """
    if max_ms <= late_ms:
        return rows
    if min_ms > late_ms:
        return 0
    estimate = round(rows * (late_ms - min_ms + 1) / (max_ms - min_ms + 1))
    return min(max(estimate, 1), max(rows - 1, 1))


def _whole(metric: str, values: Sequence[int]) -> wire.Column:
    return wire.column(metric, np.array([_long(value) for value in values], dtype=np.int64))


def _known(metric: str, values: Sequence[int | None]) -> Iterator[wire.Column]:
    """Yield a column of values that are known of some splits; none where of none."""
    present = np.array([value is not None for value in values], dtype=np.bool_)
    if present.any():
        yield wire.column(metric, np.array([_long(value or 0) for value in values], dtype=np.int64), present)


def _long(value: int) -> int:
    # Event times are a user's, and may be as far apart as two longs can be.
    return min(max(value, NO_WATERMARK_MS), END_OF_INPUT_MS)
