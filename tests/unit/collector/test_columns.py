"""Flink's aggregates, and reading what is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.columns import Summary, subtasks, summarize, value, values
from collector.store import Column

RECORDED = [
    ("numRecordsIn", [204033.0, 262331.0], 233182.0, 466364.0, 12.500536061960185),
    ("numBuffersIn", [4910.0, 5002.0], 4956.0, 9912.0, 0.9281678773204196),
    ("usedMemory", [688128.0, 1015808.0], 851968.0, 1703936.0, 19.230769230769234),
    ("myMeter", [1000.45, 1000.4666666666667], 1000.4583333333334, 2000.9166666666667, 0.0008329515638658036),
    (
        "cpuLoad",
        [0.019649291376411242, 0.04137235116044399],
        0.030510821268427617,
        0.061021642536855235,
        35.598943065016115,
    ),
    ("watermark", [1795248818500.0, 1795248818512.0], 1795248818506.0, 3590497637012.0, 3.342155103042028e-10),
    ("inProgress", [0.0, 1.0, 0.0], 0.3333333333333333, 1.0, 100.0),
    ("idle", [0.0, 0.0], 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("name", "numbers", "avg", "total", "skew"), RECORDED, ids=[row[0] for row in RECORDED])
def test_aggregates_are_flinks_to_the_last_digit(name, numbers, avg, total, skew):
    """Recorded answers of Flink 2.3: skew is min(100, 100 * (mean distance / average)), 0 for average 0."""
    found = summarize(np.array(numbers))
    assert (found.min, found.max, found.avg, found.sum) == (min(numbers), max(numbers), avg, total)
    assert found.skew == skew


def test_nothing_has_no_aggregates():
    """Without any value there is no answer."""
    assert summarize(np.array([])) is None


def test_nan_propagates_into_every_aggregate():
    """As in Java: one NaN makes min, max, avg, sum and skew NaN."""
    found = summarize(np.array([1.0, math.nan, 2.0]))
    assert all(math.isnan(number) for number in (found.min, found.max, found.avg, found.sum, found.skew))


def test_infinite_value_has_a_skew_of_nan():
    """The distance of infinity from an infinite average is not a number, and no warning is raised."""
    found = summarize(np.array([1.0, math.inf]))
    assert (found.min, found.max, found.sum) == (1.0, math.inf, math.inf)
    assert math.isnan(found.skew)


def test_negative_average_gives_a_negative_skew():
    """Flink does not take the average's magnitude."""
    assert summarize(np.array([-1.0, -3.0])) == Summary(-3.0, -1.0, -2.0, -4.0, -50.0)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_aggregates_match_a_plain_loop(numbers):
    """Values are added one after another, so that the result is the same to the last bit."""
    total = distance = 0.0
    for number in numbers:
        total += number
    average = total / len(numbers)
    for number in numbers:
        distance += abs(number - average)
    skew = 0.0 if average == 0 else min(100.0, 100.0 * (distance / len(numbers) / average))
    assert summarize(np.array(numbers)) == Summary(min(numbers), max(numbers), average, total, skew)


columns = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), max_size=20).map(
    lambda rows: (
        rows,
        Column(
            np.array([row[0] for row in rows], dtype=np.int64),
            None if all(row[1] for row in rows) else np.array([row[1] for row in rows]),
        ),
    )
)


@given(columns, st.none() | st.lists(st.integers(-3, 25), max_size=10))
def test_reading_a_column_matches_a_plain_list(made, selected):
    """Only present subtasks are read, each once, in order; subtasks that do not exist are passed over."""
    rows, column = made
    there = [index for index, (_, present) in enumerate(rows) if present]
    assert subtasks(column).tolist() == there
    for index in range(-2, len(rows) + 2):
        assert value(column, index) == (rows[index][0] if index in there else None)
    chosen = there if selected is None else [index for index in there if index in selected]
    found = values(column, selected)
    assert found.dtype == np.float64
    assert found.tolist() == [float(rows[index][0]) for index in chosen]


@pytest.mark.parametrize(("dtype", "kind"), [(np.int64, int), (np.float64, float)], ids=["int64", "float64"])
def test_value_is_a_plain_number(dtype, kind):
    """What a column gives out is a Python number of the column's kind, fit for JSON."""
    assert type(value(Column(np.array([1], dtype=dtype), None), 0)) is kind


def test_values_belong_to_the_caller():
    """Writing to what was returned does not reach the store."""
    held = Column(np.array([1.0, 2.0]), None)
    values(held)[0] = 9.0
    assert held.values.tolist() == [1.0, 2.0]
