"""Input and output of vertices and subtasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.flink import io
from streamgauge import names

TIMES = {"accumulated-backpressured-time": 0, "accumulated-idle-time": 0, "accumulated-busy-time": 0.0}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.integers(0, 10**12), min_size=1, max_size=6))
def test_vertex_is_the_sum_of_its_subtasks(states: Any, values: list[int | None]) -> None:
    """What is not known counts as 0 and makes the sum incomplete; a column that is missing is not known at all."""
    vertex = states.vertex(len(values), columns={names.NUM_RECORDS_IN: states.column(*values)})
    whole, rows = io.of_vertex(vertex), io.of_subtasks(vertex)
    assert whole["read-records"] == sum(value or 0 for value in values)
    assert whole["read-records-complete"] is all(value is not None for value in values)
    assert [row["read-records"] for row in rows] == [value or 0 for value in values]
    assert [row["read-records-complete"] for row in rows] == [value is not None for value in values]
    for row in (whole, *rows):
        assert (row["write-bytes"], row["write-bytes-complete"]) == (0, False)
        assert {key: row[key] for key in TIMES} == TIMES


def test_a_rate_that_is_no_number_is_not_known(states: Any) -> None:
    """A count cannot be NaN."""
    vertex = states.vertex(columns={names.NUM_RECORDS_IN: states.column(float("nan"), 2.0)})
    assert io.of_vertex(vertex)["read-records"] == 2
    assert io.of_vertex(vertex)["read-records-complete"] is False


def test_vertex_that_feeds_no_other_sends_nothing(states: Any) -> None:
    """As Flink's sinks: nothing goes over the network, and that is known; what it says to have written is told."""
    sink = states.vertex(2, feeds=False)
    assert (io.of_vertex(sink)["write-bytes"], io.of_vertex(sink)["write-bytes-complete"]) == (0, True)
    assert [row["write-bytes-complete"] for row in io.of_subtasks(sink)] == [True, True]
    assert io.of_vertex(sink)["read-bytes-complete"] is False
    told = states.vertex(2, feeds=False, columns={names.NUM_BYTES_OUT: states.column(5, None)})
    assert (io.of_vertex(told)["write-bytes"], io.of_vertex(told)["write-bytes-complete"]) == (5, False)


def test_vertex_without_subtasks_is_not_complete(states: Any) -> None:
    """Before its first stage nothing is known."""
    vertex = states.vertex(0, columns={names.NUM_RECORDS_IN: states.column()})
    assert io.of_vertex(vertex)["read-records-complete"] is False
    assert io.of_subtasks(vertex) == []
    assert io.spreads(vertex)["read-records"] == dict.fromkeys(io.spread(np.empty(0, dtype=np.int64)), 0)


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        # Both as the recorded Flink told them.
        ([232575, 232612], {"min": 232575, "max": 232612, "avg": 232593, "sum": 465187, "median": 232593}),
        (
            [563, 536],
            {"min": 536, "max": 563, "avg": 549, "median": 549, "p25": 536, "p75": 563, "p95": 563},
        ),
        ([2000], {"min": 2000, "max": 2000, "avg": 2000, "sum": 2000, "median": 2000, "p25": 2000, "p95": 2000}),
        ([-1, -1], {"min": -1, "avg": -1, "sum": -2, "median": -1}),
    ],
)
def test_spread_is_flinks(values: list[int], spread: dict[str, int]) -> None:
    """Fractions are cut off, percentiles are Commons Math's."""
    got = io.spread(np.array(values, dtype=np.int64))
    assert {key: got[key] for key in spread} == spread


def test_accumulated_times_are_those_of_the_subtasks(states: Any) -> None:
    """Busy as a double, as in Flink; a vertex's are the sums, and a spread tells each."""
    vertex = states.vertex(
        2,
        columns={
            names.ACCUMULATED_BUSY_TIME: states.column(700.0, 100.0),
            names.ACCUMULATED_IDLE_TIME: states.column(200, None),
            names.ACCUMULATED_BACK_PRESSURED_TIME: states.column(100, 900),
        },
    )
    told = [tuple(row[key] for key in TIMES) for row in (io.of_vertex(vertex), *io.of_subtasks(vertex))]
    assert told == [(1000, 200, 800.0), (100, 200, 700.0), (900, 0, 100.0)]
    assert all(isinstance(busy, float) for *_, busy in told)
    spread = io.spreads(vertex)
    assert (spread["accumulated-busy-time"]["max"], spread["accumulated-idle-time"]["sum"]) == (700, 200)
