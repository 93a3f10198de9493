"""One small driver's frames, and what must hold of any snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import JobState, MetricStore, Snapshot, VertexState
from streamgauge import codec, names, wire
from streamgauge.buckets import HdrCounts
from streamgauge.clock import ManualClock


class Frames:
    """
    Builds frames; what is not given is that of a query with one vertex of one operator, in full.
    """

    JID = "c" * 32
    VERTEX = "a" * 32
    OPERATOR = "b" * 32
    APP = wire.App("app-1", "flights", 1, "driver.test", "4.3.0", "0.1.0")

    def vertex(self, vertex_id: str = VERTEX, operators: Iterable[str] = (OPERATOR,), **changes: Any) -> wire.Vertex:
        given = {
            "id": vertex_id,
            "name": "Scan -> Filter",
            "operators": tuple(wire.Operator(one, f"Operator {one[-4:]}", "Filter", "") for one in operators),
            "inputs": (),
        }
        return wire.Vertex(**(given | changes))

    def plan(self, *vertices: wire.Vertex) -> wire.Plan:
        return wire.Plan(vertices or (self.vertex(),))

    def column(self, metric: str, *values: float, present: list[bool] | None = None) -> wire.Column:
        mask = None if present is None else np.array(present, dtype=bool)
        return wire.column(metric, np.array(values), mask)

    def figures(self, vertex_id: str = VERTEX, size: int = 2, **changes: Any) -> wire.VertexColumns:
        given = {"id": vertex_id, "parallelism": size, "size": size, "start_ms": 5}
        return wire.VertexColumns(**(given | changes))

    def subtasks(self, *executor: int, executors: tuple[str, ...] = ("app-1-1",)) -> wire.Subtasks:
        zeros = np.zeros(len(executor), dtype="<i8").tobytes()
        return wire.Subtasks(zeros, np.array(executor, dtype="<i8").tobytes(), zeros, zeros, executors)

    def latency(
        self, *counts: int, source: str = VERTEX, subtask: int = -1, operators: tuple[str, ...] = (OPERATOR,)
    ) -> wire.Latency:
        """As many values as `counts` say at each subtask; figure f of subtask s is 100 f + s, NaN where none is."""
        size, figures = len(counts), len(names.LATENCY_STATISTICS)
        statistics = np.arange(figures)[:, None] * 100.0 + np.arange(size)
        statistics[:, np.array(counts, dtype=int) == 0] = np.nan
        told = (np.array(counts, dtype="<i8").tobytes(), statistics.astype("<f8").tobytes())
        return wire.Latency(source, subtask, operators, *told)

    def buckets(self, *values: int) -> wire.Buckets:
        counts = HdrCounts()
        counts.add(np.array(values, dtype=np.int64))
        read = counts.read()
        indices, found = read.indices.astype("<u2").tobytes(), read.counts.astype("<i8").tobytes()
        return wire.Buckets(indices, found, read.below, read.above, read.sum_ms)

    def histogram(
        self, *values: int, source: str = VERTEX, operators: tuple[str, ...] = (OPERATOR,)
    ) -> wire.LatencyHistogram:
        """Latencies of which a third, rounded down, was spent in the queue."""
        waited = tuple(value // 3 for value in values)
        processed = tuple(value - value // 3 for value in values)
        parts = (self.buckets(*values), self.buckets(*waited), self.buckets(*processed))
        return wire.LatencyHistogram(source, operators, *parts)

    def tap(self, *watermarks: int, name: str = "by partition", **changes: Any) -> wire.Tap:
        """A split of each watermark, named by its number, that has read 10 records for it."""
        columns = (
            wire.column(names.SPLIT_CURRENT_WATERMARK, np.array(watermarks, dtype=np.int64)),
            wire.column(names.SPLIT_RECORDS, np.full(len(watermarks), 10)),
        )
        given = {
            "name": name,
            "operator": self.OPERATOR,
            "watermark_ms": min(watermarks, default=-(2**63)),
            "idle": False,
            "max_out_of_orderness_ms": 2_000,
            "idleness_ms": -1,
            "by_subtask": False,
            "unwatched": 0,
            "splits": tuple(map(str, range(len(watermarks)))),
            "columns": columns,
        }
        return wire.Tap(**(given | changes))

    def distribution(
        self, *values: int, operator: str = OPERATOR, metric: str = names.RECORD_LATENCY
    ) -> wire.Distribution:
        return wire.Distribution(operator, metric, self.buckets(*values))

    def job(self, jid: str = JID, **changes: Any) -> wire.Job:
        given = {
            "jid": jid,
            "name": "flights by hour",
            "type": "STREAMING",
            "state": "RUNNING",
            "since_ms": {"RUNNING": 3},
            "end_ms": -1,
            "trigger": "",
            "level": "task",
            "metrics": {},
        }
        return wire.Job(**(given | changes))

    def frame(self, **changes: Any) -> wire.Frame:
        given = {
            "version": wire.WIRE_VERSION,
            "app": self.APP,
            "attempt": wire.Attempt(1, "run-1"),
            "seq": 1,
            "base": 0,
            "sent_at_ms": 10,
            "interval_ms": 1000,
            "job": self.job(),
        }
        if not changes.get("base") and changes.get("job", True):
            given["plan"] = self.plan()
        return wire.Frame(**(given | changes))

    def app_frame(self, app_id: str = APP.id, **changes: Any) -> wire.Frame:
        app = msgspec.structs.replace(self.APP, id=app_id)
        return self.frame(**({"app": app, "attempt": wire.Attempt(1, app_id), "job": None} | changes))

    def executor(self, executor_id: str = "app-1-1", **changes: Any) -> wire.Executor:
        given = {
            "id": executor_id,
            "endpoint": "worker.test:7077",
            "cores": 4,
            "slots": 4,
            "running": {},
            "memory_bytes": 1,
            "added_ms": 2,
            "heartbeat_ms": 3,
            "metrics": {},
        }
        return wire.Executor(**(given | changes))


@pytest.fixture(scope="session")
def frames() -> Frames:
    return Frames()


class Collector:
    """A store, its way in and the clock that both are timed by."""

    def __init__(self, limits: Limits) -> None:
        self.clock = ManualClock(now_ms=1_000_000)
        self.store = MetricStore()
        self.ingest = Ingest(self.store, self.clock, limits)

    def push(self, *frames: wire.Frame) -> tuple[int, int, int]:
        outcomes = self.ingest.push(codec.encode(list(frames)))
        return outcomes.accepted, outcomes.repeated, outcomes.late

    def job(self, jid: str = Frames.JID) -> JobState:
        return self.store.snapshot().job(jid)


@pytest.fixture(scope="session")
def new_collector() -> Any:
    def new(**limits: int) -> Collector:
        return Collector(Limits(**limits))

    return new


@pytest.fixture
def collector(new_collector: Any) -> Collector:
    return new_collector()


@pytest.fixture(scope="session")
def check_snapshot() -> Any:
    def check(snapshot: Snapshot) -> None:
        for jid, job in snapshot.jobs.items():
            assert job.job.jid == jid
            assert (job.ended_ns is not None) == (job.state in wire.ENDED_STATES)
            held = 0
            for vertex_id, vertex in job.vertices.items():
                assert vertex.vertex.id == vertex_id
                assert 0 <= vertex.parallelism <= vertex.size
                assert list(vertex.operators) == [operator.id for operator in vertex.vertex.operators]
                for columns in (vertex.columns, *vertex.operators.values()):
                    held += len(columns) * vertex.size
                    _check_columns(columns, vertex.size)
                    if job.ended_ns is not None:
                        assert names.TRANSIENT.isdisjoint(columns)
                held += len(vertex.accumulators) * vertex.size
                _check_columns({key: one.column for key, one in vertex.accumulators.items()}, vertex.size)
                _check_latencies(job, vertex)
                held += vertex.latencies.series
                held += _tapped(job, vertex)
                if vertex.subtasks is not None:
                    for field in ("attempt", "executor", "start_ms", "end_ms"):
                        array = getattr(vertex.subtasks, field)
                        assert array.shape == (vertex.size,)
                        assert not array.flags.writeable
            assert not job.checkpoints.totals.changed
            assert tuple(job.checkpoints.held) == job.checkpoints.totals.held
            for batch in job.checkpoints.held.values():
                held += sum(4 * len(tasks.start_ms) // 8 for tasks in batch.tasks)
            assert job.series == held
        for app_id, app in snapshot.apps.items():
            assert app.app.id == app_id
            assert not any(executor.gone for executor in app.executors.values())

    return check


def _tapped(job: JobState, vertex: VertexState) -> int:
    """Check what is held of taps and distributions, and return how many values that are."""
    held = vertex.taps
    series = 0
    for tap in held.taps:
        assert tap.operator in vertex.operators
        for column in tap.columns:
            assert column.metric in names.SPLIT_METRICS
            assert job.ended_ns is None or column.metric not in names.TRANSIENT
            assert len(column.values()) == len(tap.splits)
        series += 6 + len(tap.splits) + sum(len(column.values()) for column in tap.columns)
    for (operator, metric), buckets in held.distributions.items():
        assert operator in vertex.operators
        assert metric in names.DISTRIBUTIONS
        series += 4 + len(buckets.counts) // 8
    assert held.series == series
    return series


def _check_columns(columns: Mapping[Any, Any], size: int) -> None:
    for column in columns.values():
        assert column.values.shape == (size,)
        assert not column.values.flags.writeable
        if column.present is not None:
            assert column.present.shape == (size,)
            assert column.present.dtype == np.bool_
            assert not column.present.flags.writeable


def _check_latencies(job: JobState, vertex: VertexState) -> None:
    held = vertex.latencies
    series = len(held.windows) + len(held.histograms)
    for key, window in held.windows.items():
        assert key.operator in vertex.operators
        assert key.source in job.vertices or (key.source, key.source_subtask) == ("", -1)
        assert window.counts.shape == (vertex.size,)
        assert window.statistics.shape == (len(names.LATENCY_STATISTICS), vertex.size)
        assert not window.counts.flags.writeable
        assert not window.statistics.flags.writeable
    for operator, source in held.histograms:
        assert operator in vertex.operators
        assert source in job.vertices
    series += 12 * vertex.size * len({id(window) for window in held.windows.values()})
    for one in {id(one): one for one in held.histograms.values()}.values():
        series += 9 + sum(len(part.counts) // 8 for part in (one.total, one.queueing, one.processing))
    assert held.series == series
