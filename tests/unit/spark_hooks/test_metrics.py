"""Counters and rates against plain models, one cell at a time."""

from __future__ import annotations

from collections import defaultdict

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spark_hooks.metrics import Counters, MeterViews


class PlainMeter:
    """Flink's MeterView of one counter."""

    def __init__(self, span_s: int) -> None:
        self.span_s = max(span_s - span_s % 5, 5)
        self.values = [0] * (self.span_s // 5 + 1)
        self.time = 0
        self.rate = 0.0

    def update(self, count: int) -> None:
        self.time = (self.time + 1) % len(self.values)
        self.values[self.time] = count
        self.rate = (self.values[self.time] - self.values[(self.time + 1) % len(self.values)]) / self.span_s


class PlainUpdater:
    """Flink's ViewUpdater: updates the views it has, then takes in those that were registered meanwhile."""

    def __init__(self) -> None:
        self.views: list[tuple[int, int]] = []
        self.to_add: list[tuple[int, int]] = []

    def run(self, meters: dict[tuple[int, int], PlainMeter], counts: list[list[int]]) -> None:
        for row, column in self.views:
            meters[row, column].update(counts[row][column])
        self.views += self.to_add
        self.to_add = []


class Meters(RuleBasedStateMachine):
    """A table of views, and one plain view a cell."""

    @initialize(columns=st.integers(1, 3), span_s=st.integers(0, 33))
    def begin(self, columns: int, span_s: int) -> None:
        self.columns, self.span_s = columns, span_s
        self.views = MeterViews(columns, span_s)
        self.plain: dict[tuple[int, int], PlainMeter] = {}
        self.updater = PlainUpdater()
        self.counts: list[list[int]] = []

    @rule(rows=st.integers(0, 5))
    def register(self, rows: int) -> None:
        self.views.register(rows)
        for row in range(len(self.counts), rows):
            self.counts.append([0] * self.columns)
            for column in range(self.columns):
                self.plain[row, column] = PlainMeter(self.span_s)
                self.updater.to_add.append((row, column))

    @precondition(lambda self: self.counts)
    @rule(data=st.data())
    def count(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.counts) - 1))
        self.counts[row][data.draw(st.integers(0, self.columns - 1))] += data.draw(st.integers(0, 2**40))

    @rule(times=st.integers(1, 4))
    def tick(self, times: int) -> None:
        for _ in range(times):
            self.updater.run(self.plain, self.counts)
            self.views.update(np.array(self.counts, dtype=np.int64).reshape(len(self.counts), self.columns))

    @invariant()
    def same_rates(self) -> None:
        if hasattr(self, "plain"):
            rates = self.views.rates()
            assert rates.shape == (len(self.counts), self.columns)
            for (row, column), meter in self.plain.items():
                assert rates[row, column] == meter.rate


Meters.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestMetersAgainstFlinks = Meters.TestCase


@pytest.mark.parametrize(("asked_s", "span_s"), [(60, 60), (64, 60), (65, 65), (9, 5), (5, 5), (4, 5), (0, 5)])
def test_span_is_rounded_down_to_the_update_interval(asked_s: int, span_s: int) -> None:
    """A multiple of 5 s, at least 5 s."""
    assert MeterViews(1, asked_s).span_s == span_s


def test_rate_of_a_steady_counter_climbs_for_a_minute() -> None:
    """A true 1000/s read every 10 s: 122, 290, 457, … as recorded of a Flink 2.3; its timer jitters by some ms."""
    views = MeterViews(1)
    views.register(1)
    views.update(np.array([[0]]))
    read = []
    for tick in range(14):
        # Flink's counter began 2.35 s before the first update that counted.
        views.update(np.array([[2_350 + 5_000 * tick]]))
        if tick % 2:
            read.append(views.rates()[0, 0])
    assert read == pytest.approx([122, 290, 457, 623, 790, 956, 1000], abs=1.5)


def test_view_is_adopted_at_one_tick_and_updated_at_the_next() -> None:
    """A row that is there before a tick has no rate after it, and one after the following tick."""
    views = MeterViews(1)
    views.register(1)
    views.update(np.array([[600]]))
    assert views.rates().tolist() == [[0.0]]
    views.register(2)
    views.update(np.array([[600], [600]]))
    assert views.rates().tolist() == [[10.0], [0.0]]
    views.update(np.array([[600], [600]]))
    assert views.rates().tolist() == [[10.0], [10.0]]


def test_rate_falls_to_zero_once_the_last_count_left_the_window() -> None:
    """A counter that stands still has rate 0 after span / 5 ticks more."""
    views = MeterViews(1, 10)
    views.register(1)
    rates = []
    for count in (0, 100, 100, 100, 100):
        views.update(np.array([[count]]))
        rates.append(views.rates()[0, 0])
    assert rates == [0.0, 10.0, 10.0, 0.0, 0.0]


def test_register_never_drops_rows() -> None:
    """Fewer rows than there are change nothing."""
    views, counters = MeterViews(2), Counters(2)
    views.register(3)
    counters.register(3)
    views.register(1)
    counters.register(1)
    assert views.rates().shape == (3, 2)
    assert counters.rows == 3


class Table(RuleBasedStateMachine):
    """Counters, and dictionaries of Python integers."""

    COLUMNS = 2
    STAGES = 3

    def __init__(self) -> None:
        super().__init__()
        self.counters = Counters(self.COLUMNS)
        self.rows = 0
        self.done: dict[int, list[int]] = defaultdict(lambda: [0] * self.COLUMNS)
        self.live: dict[tuple[int, int, int], list[int]] = {}
        self.greatest: dict[int, list[int]] = defaultdict(lambda: [0] * self.COLUMNS)
        self.added: list[tuple[int, list[int]]] = []
        self.taken_out = False
        self.ever_live = False

    counts = st.lists(st.integers(0, 2**40), min_size=COLUMNS, max_size=COLUMNS)

    @rule(rows=st.integers(0, 4))
    def register(self, rows: int) -> None:
        self.counters.register(rows)
        self.rows = max(self.rows, rows)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), counts=counts)
    def add(self, data: st.DataObject, counts: list[int]) -> None:
        row = data.draw(st.integers(0, self.rows - 1))
        self.counters.add(row, counts)
        self.done[row] = [a + b for a, b in zip(self.done[row], counts, strict=True)]
        self.added.append((row, counts))

    @precondition(lambda self: self.added)
    @rule(data=st.data())
    def subtract(self, data: st.DataObject) -> None:
        row, counts = self.added.pop(data.draw(st.integers(0, len(self.added) - 1)))
        self.counters.subtract(row, counts)
        self.done[row] = [a - b for a, b in zip(self.done[row], counts, strict=True)]
        self.taken_out = True

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), stage=st.integers(0, STAGES - 1), task=st.integers(0, 4), counts=counts)
    def show_live(self, data: st.DataObject, stage: int, task: int, counts: list[int]) -> None:
        row = data.draw(st.integers(0, self.rows - 1))
        self.counters.show_live(stage, row, task, counts)
        self.live[stage, row, task] = counts
        self.ever_live = True

    @rule(stage=st.integers(0, STAGES - 1), row=st.integers(0, 3), task=st.integers(0, 4))
    def drop_live(self, stage: int, row: int, task: int) -> None:
        self.counters.drop_live(stage, row, task)
        self.live.pop((stage, row, task), None)

    @rule(stage=st.integers(0, STAGES - 1), row=st.integers(0, 3))
    def drop_live_of_all_attempts(self, stage: int, row: int) -> None:
        self.counters.drop_live(stage, row)
        self.live = {key: counts for key, counts in self.live.items() if key[:2] != (stage, row)}

    @rule()
    def show(self) -> None:
        shown = self.counters.shown().tolist()
        assert len(shown) == self.counters.rows == self.rows
        for row in range(self.rows):
            for column in range(self.COLUMNS):
                now = self.done[row][column]
                for stage in range(self.STAGES):
                    told = [counts[column] for (*where, _), counts in self.live.items() if where == [stage, row]]
                    now += max(told, default=0)
                greatest = self.greatest[row][column] = max(self.greatest[row][column], now)
                assert shown[row][column] == greatest
        if not self.taken_out and not self.ever_live:
            assert shown == [self.done[row] for row in range(self.rows)]


Table.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestTableAgainstDictionaries = Table.TestCase


@given(st.lists(st.lists(st.integers(0, 2**40), min_size=1, max_size=6), max_size=6))
def test_live_values_leave_nothing_behind(tasks: list[list[int]]) -> None:
    """Tasks that told cumulative values, and at their end the last of them: the counts are the sums of the ends."""
    counters = Counters(1)
    counters.register(1)
    before = 0
    for task, told in enumerate(tasks):
        for value in sorted(told):
            counters.show_live(0, 0, task, [value])
            now = int(counters.shown()[0, 0])
            assert now >= before
            before = now
        counters.drop_live(0, 0, task)
        counters.add(0, [max(told)])
    assert counters.shown().tolist() == [[sum(map(max, tasks))]]


def test_attempts_that_run_at_once_show_the_furthest() -> None:
    """A speculative copy does the same work: 90 and 50 rows done are 90, not 140, which no end would correct."""
    counters = Counters(1)
    counters.register(1)
    counters.show_live(0, 0, 1, [90])
    counters.show_live(0, 0, 2, [50])
    assert counters.shown().tolist() == [[90]]


def test_stages_of_one_subtask_add_up() -> None:
    """A vertex may be executed by several stages at once; each has tasks of its own for a subtask."""
    counters = Counters(1)
    counters.register(1)
    counters.show_live(0, 0, 1, [90])
    counters.show_live(1, 0, 2, [50])
    assert counters.shown().tolist() == [[140]]


def test_a_failed_tasks_greatest_count_stands_until_the_retry_passes_it() -> None:
    """Live values of a failed attempt vanish, but what was shown never goes back."""
    counters = Counters(1)
    counters.register(1)
    counters.show_live(0, 0, 1, [70])
    assert counters.shown().tolist() == [[70]]
    counters.drop_live(0, 0, 1)
    counters.show_live(0, 0, 2, [30])
    assert counters.shown().tolist() == [[70]]
    counters.show_live(0, 0, 2, [80])
    assert counters.shown().tolist() == [[80]]
