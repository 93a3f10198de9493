"""The figures of a history, against columns whose values are known."""

from __future__ import annotations

import math
from typing import Any

import pytest

from collector.arrivals import Arrived
from collector.histogram import histogram
from collector.readings import JOB_FIGURES, VERTEX_FIGURES, read_job, read_vertex
from streamgauge import names, wire

SOURCE, SINK = "a" * 32, "b" * 32
IN = names.NUM_RECORDS_IN + names.PER_SECOND
OUT = names.NUM_RECORDS_OUT + names.PER_SECOND
LATENCIES = ("latency.p50", "latency.p95", "latency.p99", "queueing.p99", "processing.p99")


@pytest.fixture
def arrived(frames: Any) -> Arrived:
    """Markers that took 10 to 100 ms, a third of it in the queue."""
    held = frames.histogram(*range(10, 101, 10))
    return Arrived(histogram(held.total), histogram(held.queueing), histogram(held.processing))


def test_a_vertex_is_read_over_its_subtasks(states: Any, arrived: Arrived) -> None:
    """Sums of counts and queues, the greatest and the mean of shares, of operators all of them together."""
    column = states.column
    vertex = states.vertex(
        3,
        columns={
            IN: column(1.0, None, 3.0),
            OUT: column(math.nan, 2.0, 4.5),
            names.BUSY_TIME: column(900, 100, 200),
            names.BACK_PRESSURED_TIME: column(None, None, None),
            names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE: column(0.25, 0.5, 0.125),
            names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH: column(3, 4, 5),
        },
        operators={
            "Scan": {names.PENDING_RECORDS: column(10, None, None), names.WATERMARK_LAG: column(5, None, None)},
            "Dedup": {names.PENDING_RECORDS: column(7, None, None), names.WATERMARK_LAG: column(8, 9, None)},
        },
    )
    found = read_vertex(vertex, arrived)
    assert set(found) <= set(VERTEX_FIGURES)
    assert found == {
        IN: 4.0,
        f"{IN}.skew": 50.0,
        OUT: 6.5,
        f"{names.BUSY_TIME}.max": 900.0,
        f"{names.BUSY_TIME}.avg": 400.0,
        f"{names.OUT_POOL_USAGE}.max": 0.5,
        names.OUTPUT_QUEUE_LENGTH: 12.0,
        names.PENDING_RECORDS: 17.0,
        names.WATERMARK_LAG: 9.0,
        "latency.p50": 50.0,
        "latency.p95": 100.0,
        "latency.p99": 100.0,
        "queueing.p99": 33.0,
        "processing.p99": 67.0,
    }


def test_every_figure_of_a_vertex_can_be_read(states: Any, arrived: Arrived) -> None:
    """None is spelt otherwise than its column."""
    told = {name: states.column(1, 2) for name in vars(names).values() if isinstance(name, str)}
    told |= {name + names.PER_SECOND: column for name, column in told.items()}
    told |= {
        prefix + name: column for name, column in told.items() for prefix in (names.INPUT_BUFFERS, names.OUTPUT_BUFFERS)
    }
    found = read_vertex(states.vertex(columns=told, operators={"Scan": told}), arrived)
    assert set(found) == set(VERTEX_FIGURES)


def test_a_job_is_read_from_its_metrics_and_its_ends(states: Any, arrived: Arrived) -> None:
    """Records of sources in, of sinks out; the greatest share and lag, sums of what waits."""
    source = states.vertex(id=SOURCE)
    sink = states.vertex(id=SINK, inputs=(wire.Edge(SOURCE, "HASH", ""),), feeds=False)
    metrics = {names.BACKLOGGED: True, names.BACKLOG_ROWS: 12, names.KEEP_UP_RATIO: 0.5, names.UPTIME: 3}
    told = {
        SOURCE: {IN: 10.0, OUT: 5.0, f"{names.BUSY_TIME}.max": 1.0, names.PENDING_RECORDS: 4.0},
        SINK: {IN: 5.0, OUT: 2.0, f"{names.BUSY_TIME}.max": 7.0, names.PENDING_RECORDS: 1.0, names.NUM_STATE_ROWS: 3.0},
    }
    found = read_job(states.job(source, sink, metrics=metrics), told, arrived)
    latencies = {name: value for name, value in found.items() if name.partition(".")[2].startswith("p")}
    assert latencies == {
        "latency.p50": 50,
        "latency.p95": 100,
        "latency.p99": 100,
        "queueing.p99": 33,
        "processing.p99": 67,
    }
    assert {name: value for name, value in found.items() if name not in latencies} == {
        IN: 10.0,
        OUT: 2.0,
        names.BACKLOGGED: 1.0,
        names.BACKLOG_ROWS: 12.0,
        names.KEEP_UP_RATIO: 0.5,
        f"{names.BUSY_TIME}.max": 7.0,
        names.PENDING_RECORDS: 5.0,
        names.NUM_STATE_ROWS: 3.0,
    }
    assert set(found) <= set(JOB_FIGURES)


def test_a_source_that_a_broadcast_joins_is_a_source(states: Any) -> None:
    """What both of them read came in; what one handed to the other did not come in twice."""
    small = states.vertex(id=SOURCE)
    large = states.vertex(id="d" * 32, inputs=(wire.Edge(SOURCE, wire.BROADCAST, ""),))
    sink = states.vertex(
        id=SINK, inputs=(wire.Edge("d" * 32, "HASH", ""), wire.Edge(SOURCE, wire.BROADCAST, "")), feeds=False
    )
    told = {SOURCE: {IN: 8.0, OUT: 8.0}, "d" * 32: {IN: 147.0, OUT: 59.0}, SINK: {IN: 59.0, OUT: 54.0}}
    assert read_job(states.job(small, large, sink), told, None) == {IN: 155.0, OUT: 54.0}


def test_what_is_not_known_is_absent(states: Any) -> None:
    """No vertices, no columns, no markers: no figures."""
    assert read_vertex(states.vertex(), None) == {}
    assert read_job(states.job(states.vertex()), {states.VERTEX: {}}, None) == {}
