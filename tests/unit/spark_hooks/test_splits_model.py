"""
A tap's splits against a model that looks at all batches that ever were.

The definition, worked out anew from the whole history after every batch: a split is idle when its last record's batch,
or the one in which it came, was triggered longer than the timeout before the latest one; the combined watermark is the
greatest that the least of the active splits ever had; idle time is all between two batches' ends after a batch that
left the split idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.splits import Splits
from streamgauge import names
from streamgauge.watermarks import NO_WATERMARK_MS
from tests.unit.spark_hooks.tapped import row, told

LISTED = ("north", "south", "east")
NUMBERED = ("0", "1", "2")


class Batch(NamedTuple):
    """One batch; `seen` is None where the tap saw nothing: place of a split → rows, least and greatest event time."""

    trigger_ms: int
    end_ms: int
    seen: Mapping[int, tuple[int, int, int]] | None
    late_ms: int | None


@st.composite
def histories(draw: st.DrawFn) -> list[Batch]:
    """Batches with gaps between them, each a while long."""
    moment_ms, found = 0, list[Batch]()
    record = st.tuples(st.integers(1, 9), st.integers(0, 50), st.integers(0, 20)).map(
        lambda each: (each[0], each[1], each[1] + (each[2] if each[0] > 1 else 0))
    )
    for _ in range(draw(st.integers(1, 12))):
        trigger_ms = moment_ms + draw(st.integers(0, 30))
        moment_ms = trigger_ms + draw(st.integers(0, 30))
        seen = draw(st.none() | st.dictionaries(st.integers(0, 2), record, max_size=3))
        found.append(Batch(trigger_ms, moment_ms, seen, draw(st.none() | st.integers(-5, 75))))
    return found


class Model:
    """The batches so far, of which the first one has the tap's row."""

    def __init__(self, history: Sequence[Batch], numbered: bool, delay_ms: int, timeout_ms: int | None) -> None:
        self.history, self.numbered, self.delay_ms, self.timeout_ms = history, numbered, delay_ms, timeout_ms

    def came(self, split: int) -> int | None:
        """The batch in which a split came to be known."""
        for number, batch in enumerate(self.history):
            if batch.seen is not None and (not self.numbered or max(batch.seen, default=-1) >= split):
                return number
        return None

    def rows(self, split: int, until: int) -> list[tuple[int, tuple[int, int, int]]]:
        """(number of the batch, what was seen) of all batches with records of a split."""
        told = ((number, (batch.seen or {}).get(split)) for number, batch in enumerate(self.history[: until + 1]))
        return [(number, seen) for number, seen in told if seen is not None]

    def watermark(self, split: int, until: int) -> int:
        events = [greatest for _, (*_, greatest) in self.rows(split, until)]
        return max(events) - self.delay_ms - 1 if events else NO_WATERMARK_MS

    def is_idle(self, split: int, until: int) -> bool:
        came = self.came(split)
        assert came is not None
        latest = max([came, *(number for number, _ in self.rows(split, until))])
        passed_ms = self.history[until].trigger_ms - self.history[latest].trigger_ms
        return self.timeout_ms is not None and passed_ms > self.timeout_ms

    def present(self, until: int) -> list[int]:
        return [split for split in range(3) if (came := self.came(split)) is not None and came <= until]

    def combined(self) -> tuple[int, bool]:
        found, idle = [NO_WATERMARK_MS], False
        for until in range(len(self.history)):
            present = self.present(until)
            active = [self.watermark(split, until) for split in present if not self.is_idle(split, until)]
            idle = bool(present) and not active
            found += [min(active)] if active else []
        return max(found), idle

    def idle_ms(self, split: int, now_ms: int) -> int:
        ends = [batch.end_ms for batch in self.history] + [now_ms]
        came = self.came(split)
        assert came is not None
        return sum(ends[n + 1] - ends[n] for n in range(came, len(self.history)) if self.is_idle(split, n))

    def at_risk(self, split: int) -> tuple[int, int]:
        """The fewest and the most that can be: exact batch by batch where all of it is on one side."""
        fewest = most = 0
        for number, (rows, least, greatest) in self.rows(split, len(self.history) - 1):
            late_ms = self.history[number].late_ms
            if late_ms is not None and greatest <= late_ms:
                fewest, most = fewest + rows, most + rows
            elif late_ms is not None and least <= late_ms:
                fewest, most = fewest + 1, most + rows - 1
        return fewest, most


@given(histories(), st.booleans(), st.integers(0, 10), st.none() | st.integers(1, 40), st.integers(0, 20))
def test_splits_equal_their_definition_over_all_batches(
    history: list[Batch], numbered: bool, delay_ms: int, timeout_ms: int | None, later_ms: int
) -> None:
    """Watermarks, idleness, drift, records, risk and times, after every batch."""
    called = NUMBERED if numbered else LISTED
    splits = Splits(row({}, called, delay_ms=delay_ms, idleness_ms=timeout_ms))
    for number, batch in enumerate(history):
        seen = None if batch.seen is None else row({called[place]: each for place, each in batch.seen.items()}, called)
        splits.complete(seen, batch.trigger_ms, batch.end_ms, batch.late_ms)
        model = Model(history[: number + 1], numbered, delay_ms, timeout_ms)
        present = model.present(number)
        assert splits.names == tuple(called[split] for split in present)
        assert (splits.watermark_ms, splits.idle) == model.combined()
        marks = {split: model.watermark(split, number) for split in present}
        idle = {split: model.is_idle(split, number) for split in present}
        columns = told(list(splits.columns()), splits.names)
        of = {metric: {called.index(split): value for split, value in each.items()} for metric, each in columns.items()}
        furthest = max((marks[split] for split in present if not idle[split]), default=NO_WATERMARK_MS)
        drift = {split: furthest - mark for split, mark in marks.items() if NO_WATERMARK_MS not in (mark, furthest)}
        assert of.get(names.SPLIT_CURRENT_WATERMARK, {}) == marks
        assert of.get(names.SPLIT_IDLE, {}) == idle
        assert of.get(names.SPLIT_WATERMARK_DRIFT, {}) == drift
        records = {split: sum(rows for _, (rows, *_) in model.rows(split, number)) for split in present}
        assert of.get(names.SPLIT_RECORDS, {}) == records
        risk = of.get(names.SPLIT_RECORDS_AT_RISK)
        assert (risk is not None) == (bool(present) and any(each.late_ms is not None for each in model.history))
        for split, told_at_risk in (risk or {}).items():
            fewest, most = model.at_risk(split)
            assert fewest <= told_at_risk <= most
    now_ms = history[-1].end_ms + later_ms
    splits.tick(now_ms)
    columns = told(list(splits.columns()), splits.names)
    for split in present:
        came = model.came(split)
        assert came is not None
        there_ms, idle_ms = now_ms - history[came].end_ms, model.idle_ms(split, now_ms)
        assert columns[names.SPLIT_ACCUMULATED_IDLE_TIME][called[split]] == idle_ms
        assert columns[names.SPLIT_ACCUMULATED_ACTIVE_TIME][called[split]] == there_ms - idle_ms
        share = columns.get(names.SPLIT_IDLE_TIME, {}).get(called[split])
        assert share == (round(1000 * idle_ms / there_ms) if there_ms else None)
