"""Whether a query keeps up."""

from __future__ import annotations

from typing import Any

import pytest

from spark_hooks.backlog import Backlog
from spark_hooks.progress import Progress, Source
from spark_hooks.timeline import Batch

SLOTTED = "ProcessingTimeTrigger(10000)"
AT_ONCE = "ProcessingTimeTrigger(0)"


def told(
    backlog: Backlog, number: int, begin_ms: int = 0, took_ms: int = 100, rows: int = 0, **more: Any
) -> tuple[bool, bool | None]:
    """A batch that was triggered `begin_ms` after noon; what was said and what is kept."""
    sources = more.pop("sources", ())
    seconds, ms = divmod(begin_ms, 1000)
    stamp = f"2026-11-21T12:{seconds // 60:02d}:{seconds % 60:02d}.{ms:03d}Z"
    event = Progress("q", "r", number, stamp, num_input_rows=rows, sources=sources)
    return backlog.complete(Batch(number, begin_ms, end_ms=begin_ms + took_ms), event, **more), backlog.up


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (Source(end_offset=7, latest_offset=7), False),
        (Source(end_offset=7, latest_offset=8), True),
        (Source(end_offset={"t": {"0": 7, "1": 2}}, latest_offset={"t": {"0": 7, "1": 3}}), True),
        (Source(end_offset={"t": {"0": 7}}, latest_offset={"t": {"0": 7}}), False),
        (Source(end_offset={"logOffset": 1}, latest_offset=None), False),
        (Source(end_offset="one", latest_offset="other"), False),
        (Source(metrics={"maxOffsetsBehindLatest": "0", "avgOffsetsBehindLatest": "0.0"}), False),
        (Source(metrics={"maxOffsetsBehindLatest": "3"}), True),
        (Source(metrics={"avgOffsetsBehindLatest": "0.5"}), True),
        (Source(metrics={"maxOffsetsBehindLatest": "many", "others": "5"}), False),
        (Source(metrics={"maxOffsetsBehindLatest": "NaN"}), False),
        (Source(input_rows_per_second=10_000.0, processed_rows_per_second=1.0), False),
    ],
    ids=[
        "all", "more", "one partition", "partitions", "files", "unknown kind", "kafka none", "kafka max", "kafka mean",
        "no number", "NaN", "never by rates",
    ],
)  # fmt: skip
def test_backlogged_where_a_source_had_more_than_the_batch_took(source: Source, more: bool) -> None:
    """By its offsets or by Kafka's metrics; Spark's input rate says nothing."""
    for trigger in (SLOTTED, AT_ONCE):
        backlog = Backlog(trigger)
        assert backlog.up is None
        assert told(backlog, 0, sources=(Source(), source)) == (more, more)


def test_backlogged_while_files_are_outstanding() -> None:
    """As the source counts them."""
    backlog = Backlog(AT_ONCE)
    assert told(backlog, 0, unread={"files": 0, "other": 2})[0]
    assert not told(backlog, 1, unread={"files": 0})[0]


def test_stays_backlogged_until_a_batch_shows_nothing_of_it() -> None:
    """And no longer."""
    backlog, behind = Backlog(AT_ONCE), (Source(end_offset=1, latest_offset=2),)
    assert [told(backlog, number, sources=behind if number < 2 else ())[0] for number in range(4)] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("begin_ms", "took_ms", "late"),
    [
        (10_000, 10_000, False),
        (10_000, 10_001, True),
        (10_004, 9_996, False),
        (10_004, 9_997, True),
        (17_000, 4_000, True),
        (17_000, 3_000, False),
        (10_000, 3_000, False),
    ],
)
def test_backlogged_where_the_batch_before_ran_past_its_slot(begin_ms: int, took_ms: int, late: bool) -> None:
    """Slots lie on the wall clock: one that was triggered late has what is left of its slot."""
    backlog = Backlog(SLOTTED)
    assert told(backlog, 1, begin_ms, took_ms) == (False, False)
    assert told(backlog, 2, 30_000)[0] is late
    assert not told(backlog, 3, 40_000)[0]


def test_batch_0_may_run_past_its_slot() -> None:
    """It is cold: it makes the source, the plan and the code ready."""
    backlog = Backlog(SLOTTED)
    told(backlog, 0, 0, 25_000)
    assert not told(backlog, 1, 25_000, 1_000)[0]


def test_a_batch_that_is_missing_proves_nothing() -> None:
    """What was before it is not the batch before."""
    backlog = Backlog(SLOTTED)
    told(backlog, 1, 0, 25_000)
    assert not told(backlog, 3, 40_000, 1_000)[0]


def test_a_batch_that_is_told_again_changes_nothing() -> None:
    """Nor does one that is older."""
    backlog = Backlog(SLOTTED)
    told(backlog, 1, 0, 25_000)
    told(backlog, 1, 0, 1_000)
    assert told(backlog, 2, 30_000) == (True, True)
    assert told(backlog, 2, 30_000) == (True, True)
    assert told(backlog, 1, 0, 1_000) == (True, True)


def grown(trigger: str, gaps_ms: list[int], rows: list[int], took_ms: list[int]) -> list[bool]:
    backlog, begin_ms, found = Backlog(trigger), 0, []
    for number, (gap, count, took) in enumerate(zip(gaps_ms, rows, took_ms, strict=True)):
        begin_ms += gap
        found.append(told(backlog, number, begin_ms, took, count)[0])
        begin_ms += took
    return found


@pytest.mark.parametrize(
    ("gaps_ms", "rows", "took_ms", "expected"),
    [
        ([0, 0, 100, 5, 5], [1, 2, 3, 4, 5], [10, 20, 30, 40, 50], [False, False, False, True, True]),
        ([0, 0, 0, 0, 0], [1, 2, 3, 4, 4], [10, 20, 30, 40, 50], [False, False, False, True, False]),
        ([0, 0, 0, 0, 0], [1, 2, 3, 4, 5], [10, 20, 30, 40, 40], [False, False, False, True, False]),
        ([0, 0, 101, 0, 0], [1, 2, 3, 4, 5], [10, 20, 30, 40, 50], [False] * 5),
        ([0, 0, 0, 0, 0], [1, 2, 3, 3, 4], [10, 20, 30, 40, 50], [False] * 5),
        ([0, 0, 0, 0, 0], [9, 1, 9, 1, 9], [90, 10, 90, 10, 90], [False] * 5),
    ],
    ids=["grows", "rows stay", "duration stays", "waited", "two growths", "alternates work and wait"],
)
def test_backlogged_where_batch_upon_batch_grows(
    gaps_ms: list[int], rows: list[int], took_ms: list[int], expected: list[bool]
) -> None:
    """Three times in a row, rows and duration, without a wait between."""
    assert grown(AT_ONCE, gaps_ms, rows, took_ms) == expected


def test_growth_within_slots_is_no_backlog() -> None:
    """The day may just begin."""
    assert grown(SLOTTED, [0, 0, 0, 0], [1, 2, 3, 4], [10, 20, 30, 40]) == [False] * 4
