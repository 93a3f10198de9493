"""Event-time windows on the timer service, against windows that are plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamgauge
from spark_hooks.key_timers import KeyTimers
from streamgauge.keyed_timers import KeyedTimer
from streamgauge.windows import EventTimeTrigger, TimeWindow, TriggerResult
from tests.unit.spark_hooks.spark_timers import SparkTimers

SIZE_MS = 10
KEY = ("a",)


@pytest.mark.parametrize(
    ("result", "fires", "purges"),
    [
        (TriggerResult.CONTINUE, False, False),
        (TriggerResult.FIRE, True, False),
        (TriggerResult.PURGE, False, True),
        (TriggerResult.FIRE_AND_PURGE, True, True),
    ],
    ids=lambda value: str(value),
)
def test_a_result_says_what_becomes_of_the_window(result: TriggerResult, fires: bool, purges: bool) -> None:
    """Flink's four, and no other."""
    assert (result.is_fire, result.is_purge) == (fires, purges)
    assert len(TriggerResult) == 4


@pytest.mark.parametrize(
    ("timestamp_ms", "offset_ms", "start_ms"),
    [(0, 0, 0), (9, 0, 0), (10, 0, 10), (-1, 0, -10), (-10, 0, -10), (12, 3, 3), (13, 3, 13), (12, -3, 7)],
)
def test_windows_of_one_size_lie_side_by_side(timestamp_ms: int, offset_ms: int, start_ms: int) -> None:
    """The window starts at the last multiple of the size, moved by the offset; before the epoch too."""
    window = TimeWindow.tumbling(timestamp_ms, SIZE_MS, offset_ms)
    assert window == (start_ms, start_ms + SIZE_MS)
    assert window.max_timestamp_ms == start_ms + SIZE_MS - 1


@pytest.mark.parametrize(("size_ms", "offset_ms"), [(0, 0), (-5, 0), (10, 10), (10, -10)])
def test_windows_that_cannot_lie_side_by_side_are_refused(size_ms: int, offset_ms: int) -> None:
    """Flink's rule, and its words."""
    with pytest.raises(ValueError, match=r"abs\(offset\) < size was expected"):
        TimeWindow.tumbling(5, size_ms, offset_ms)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_window_is_told_by_its_namespace(start_ms: int, end_ms: int) -> None:
    """Whatever its ends; it fits what a timer takes."""
    window = TimeWindow(start_ms, end_ms)
    assert TimeWindow.of_namespace(window.namespace) == window
    assert len(window.namespace) <= 64


@pytest.mark.parametrize("namespace", ["", "window", "window 1", "window 1 2 ", "window 1.5 2", "n" * 300])
def test_another_namespace_is_that_of_no_window(namespace: str) -> None:
    """A processor may have timers of its own beside those of windows."""
    with pytest.raises(ValueError, match="is the namespace of no TimeWindow"):
        TimeWindow.of_namespace(namespace)


class Sums:
    """Sums up numbers by window, as Flink's window operator with no allowed lateness."""

    def __init__(self) -> None:
        self.timers = streamgauge.TimerService("sums", namespaces=True)
        self.trigger = EventTimeTrigger()

    def init(self, handle: Any) -> None:
        self.timers.open(handle, self)
        self.sums = handle.getMapState("sums", "start_ms long", "sum long")

    def handleInputRows(self, key: Any, rows: Iterator[tuple[int, int]], values: Any) -> Iterator[Any]:
        timers = self.timers.at(key, values)
        for timestamp_ms, number in rows:
            window = TimeWindow.tumbling(timestamp_ms, SIZE_MS)
            before = self.sums.getValue((window.start_ms,)) or (0,)
            self.sums.updateValue((window.start_ms,), (before[0] + number,))
            yield from self.follow(self.trigger.on_element(window, timers), window, timers)

    def handleExpiredTimer(self, **told: Any) -> Iterator[Any]:
        yield from self.timers.fire(**told)

    def on_event_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterator[Any]:
        window = TimeWindow.of_namespace(timer.namespace)
        yield from self.follow(self.trigger.on_event_time(timer.timestamp_ms, window), window, timers)

    def follow(self, result: TriggerResult, window: TimeWindow, timers: KeyTimers) -> Iterator[Any]:
        if result.is_fire:
            yield window, self.sums.getValue((window.start_ms,))[0]
            self.trigger.clear(window, timers)
            self.sums.removeKey((window.start_ms,))


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.integers(-20, 60), st.integers(1, 99)), max_size=8), st.integers(0, 25)),
        max_size=6,
    )
)
@settings(max_examples=200, deadline=None)
def test_a_window_is_put_out_once_the_watermark_has_passed_it(batches: list[Any]) -> None:
    """Its sum, in the order of the windows' ends; what comes later than that is put out as it comes."""
    spark = SparkTimers(Sums(), True)
    windows: dict[int, int] = {}
    watermark_ms = 0
    for rows, advance_ms in batches:
        watermark_ms += advance_ms
        expected = []
        for timestamp_ms, number in rows:
            start_ms = timestamp_ms // SIZE_MS * SIZE_MS
            windows[start_ms] = windows.get(start_ms, 0) + number
            if start_ms + SIZE_MS - 1 <= watermark_ms:
                expected.append(((start_ms, start_ms + SIZE_MS), windows.pop(start_ms)))
        passed = [start_ms for start_ms in sorted(windows) if start_ms + SIZE_MS - 1 <= watermark_ms]
        expected += [((start_ms, start_ms + SIZE_MS), windows.pop(start_ms)) for start_ms in passed]
        assert spark.batch([(KEY, rows)], watermark_ms)[1] == expected
    assert {start_ms for (start_ms,) in spark.states["sums"][repr(KEY)]} == set(windows)
    assert spark.timers[repr(KEY)] == {start_ms + SIZE_MS - 1 for start_ms in windows}
    assert spark.warnings == 0


class Merging(Sums):
    """Merges each row's two windows into the one that covers both."""

    def handleInputRows(self, key: Any, rows: Iterator[tuple[int, int]], values: Any) -> Iterator[Any]:
        timers = self.timers.at(key, values)
        for start_ms, end_ms in rows:
            self.trigger.on_element(TimeWindow(start_ms, end_ms), timers)
            self.trigger.clear(TimeWindow(start_ms, end_ms), timers)
            self.trigger.on_merge(TimeWindow(start_ms, end_ms + 10), timers)
        yield from ()

    def on_event_time(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Iterator[Any]:
        window = TimeWindow.of_namespace(timer.namespace)
        yield window, self.trigger.on_event_time(timer.timestamp_ms, window)


def test_merged_windows_wait_for_the_end_of_the_whole() -> None:
    """Unless the watermark has passed that already."""
    spark = SparkTimers(Merging(), True)
    assert spark.batch([(KEY, [(0, 5), (0, 50)])], 20)[1] == []
    assert spark.batch([], 60)[1] == [((0, 60), TriggerResult.FIRE)]


def test_a_timer_that_is_not_that_of_the_windows_end_means_nothing() -> None:
    """A trigger of a user's own may set some."""
    assert EventTimeTrigger().on_event_time(5, TimeWindow(0, 10)) is TriggerResult.CONTINUE
