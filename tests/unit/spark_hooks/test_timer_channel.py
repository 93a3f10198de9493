"""How a task's timer counts become a report in the driver."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, _accumulatorRegistry
from pyspark.cloudpickle import dumps, loads

from spark_hooks import timer_channel
from spark_hooks.timer_channel import TaskCounts, cut
from spark_hooks.timer_reports import TimerReport, TimerReports
from streamgauge.buckets import HIGHEST_COUNTED_MS, bucket_index, bucket_lowest


@given(st.integers(0, HIGHEST_COUNTED_MS))
def test_a_lateness_is_cut_to_its_bucket(lateness_ms: int) -> None:
    """The bucket is that of the layout in which figures are kept."""
    assert cut(lateness_ms) == bucket_lowest(bucket_index(np.array([lateness_ms])))[0]


@given(st.integers(-(2**70), 2**70))
def test_any_lateness_is_cut_to_one_of_few_int64(lateness_ms: int) -> None:
    """Negative is none; past the layout's end the leading 8 bits are kept."""
    found = cut(lateness_ms)
    assert 0 <= found < 2**63
    assert found == 0 or found % (1 << max(found.bit_length() - 8, 0)) == 0
    assert cut(found) == found
    assert 0 <= min(max(lateness_ms, 0), 2**63 - 1) - found <= found / 128


def counted() -> TaskCounts:
    counts = TaskCounts("overdue")
    counts.registered, counts.deleted, counts.callback_ns = 5, 2, 7_000
    counts.fire(True, 300)
    counts.fire(True, 301)
    counts.fire(False, 2)
    return counts


def test_counts_pickle_as_the_report_of_their_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, as the task ends: what was counted until then, and whose it is."""
    # Spark has one of them in a process.
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    task = TaskContext(stageId=3, partitionId=4, attemptNumber=1, taskAttemptId=99)
    monkeypatch.setattr(TaskContext, "_taskContext", task)
    counts = counted()
    counts.fire(True, 300)
    # As a worker does before it sends what its accumulators hold.
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    expected = TimerReport("overdue", 3, -1, 4, 1, 3, 1, 7_000, {300: 3, 2: 1}, 5, 2, 99)
    assert loads(dumps([counts])) == [expected]


def test_counts_outside_a_task_are_of_none() -> None:
    """The driver tries a processor out before a query starts."""
    told = counted().report()
    assert (told.stage, told.stage_attempt, told.partition, told.attempt, told.task) == (-1, -1, -1, -1, -1)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> TimerReports:
    found = TimerReports()
    monkeypatch.setattr(timer_channel, "REPORTS", found)
    return found


def test_the_driver_hands_reports_over_and_holds_none(reports: TimerReports) -> None:
    """An accumulator that held them would grow as long as the application runs."""
    channel = Accumulator(-77, [], timer_channel._HandedOver())  # type: ignore[arg-type]
    try:
        channel += loads(dumps([counted()]))
        channel += loads(dumps([counted()]))
        assert channel.value == []
        assert [report.registered for report in reports.take()] == [5, 5]
        # Pickled and loaded in the driver, it is the one that is there.
        assert loads(dumps(channel)) is channel
    finally:
        del _accumulatorRegistry[-77]


def test_a_service_that_is_tried_out_in_the_driver_reports_nothing(reports: TimerReports) -> None:
    """There is no task that it could be of."""
    channel = Accumulator(-79, [], timer_channel._HandedOver())  # type: ignore[arg-type]
    try:
        channel += [counted()]
        channel += loads(dumps([counted()]))
        assert [report.registered for report in reports.take()] == [5]
    finally:
        del _accumulatorRegistry[-79]


def test_a_worker_holds_what_it_counts_and_hands_nothing_over(reports: TimerReports) -> None:
    """There the accumulator is another process's: its value is what Spark sends."""
    channel = Accumulator(-78, [], timer_channel._HandedOver())  # type: ignore[arg-type]
    pickled = dumps(channel)
    del _accumulatorRegistry[-78]
    worker = loads(pickled)
    try:
        counts = counted()
        worker.add([counts])
        counts.fire(True, 5)
        assert loads(dumps(worker._value))[0].fired_event == 3
        assert reports.take() == []
    finally:
        del _accumulatorRegistry[-78]


def test_without_a_classic_context_there_is_no_channel() -> None:
    """Over Spark Connect timers work, and nothing is reported."""
    code = "from spark_hooks.timer_channel import open_channel; assert open_channel() is None"
    subprocess.run([sys.executable, "-c", code], check=True)
