"""What of the latency markers travels, and when; and how a driver is set to emit them."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from spark_hooks import records
from spark_hooks.agent import _emission
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.markers import Emission
from spark_hooks.redaction import Redaction
from spark_hooks.settings import Settings
from streamgauge import names, wire
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import APP, Execution, Ids, Query, Task, scan, sink, stage, updates

STARTED = "1970-01-01T01:23:20.000Z"
STARTED_MS = 5_000_000


class Driver:
    """A query of one vertex, `scan -> sink`, that began at STARTED_MS, and its frames."""

    def __init__(self, emission: Emission | None, started: records.QueryStarted | None = None) -> None:
        self.ids, self.query = Ids(), Query(1)
        executors = Executors(APP.id, 1, ManualClock(now_ms=APP.start_ms))
        self.executors = executors
        self.model = Model(APP, executors, emission=emission)
        self.frames = Frames(APP, 1000, ManualClock(now_ms=APP.start_ms), Redaction())
        self.look(STARTED_MS)
        self.apply(started or self.query.started(STARTED))

    def look(self, now_ms: int) -> None:
        self.model.time.look(now_ms, now_ms * 1_000_000)

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def batch(self, begin_ms: int, rows: int = 5, tasks: int = 1) -> None:
        """A batch begins, each task takes 100 ms, it is executed after 200 ms and ends after 250."""
        self.look(begin_ms)
        self.query.batch += 1
        plan = sink(self.ids, self.ids.node("Filter", scan(self.ids)))
        execution = Execution(self.ids, plan, self.query.describe())
        ran = stage(self.ids, tasks)
        self.apply(execution.start(begin_ms), execution.job(ran))
        for partition in range(tasks):
            task = Task(self.ids, ran, partition, launch_ms=begin_ms)
            self.apply(task.start(), task.end(updates(plan, {"MicroBatchScan": rows, "Filter": rows})))
        self.apply(execution.end(begin_ms + 200))
        offsets = {"startOffset": begin_ms, "endOffset": begin_ms + rows, "latestOffset": begin_ms + rows}
        progress = json.loads(self.query.progress(rows, sources=[offsets | {"numInputRows": rows}]).json)
        seconds, millis = divmod(begin_ms - STARTED_MS, 1000)
        progress["timestamp"] = f"1970-01-01T01:23:{20 + seconds:02}.{millis:03}Z"
        self.apply(records.QueryProgress(json.dumps(progress)))

    def frame(self) -> wire.Frame:
        """The query's, as a collector reads it."""
        _, built = self.frames.build(self.model, self.executors, {}, {})
        return msgspec.msgpack.decode(msgspec.msgpack.encode(built), type=wire.Frame)

    def acknowledged(self) -> wire.Frame:
        frame = self.frame()
        self.frames.acknowledge([frame], self.model, self.executors)
        return frame

    def markers(self, frame: wire.Frame) -> tuple[int, ...]:
        assert frame.job is not None
        told = frame.job.metrics
        return tuple(
            int(told[name]) for name in (names.MARKERS_EMITTED, names.MARKERS_RECORDED, names.MARKERS_IN_FLIGHT)
        )


def operators(frame: wire.Frame) -> list[tuple[str, int, tuple[str, ...]]]:
    [vertex] = frame.vertices
    return [(each.source, each.source_subtask, each.operators) for each in vertex.latencies]


def test_latencies_and_histograms_travel_over_the_vertexs_subtasks() -> None:
    """With the operators' and the source vertex's ids of the plan, and what became of the markers."""
    driver = Driver(Emission())
    driver.batch(STARTED_MS, tasks=2)
    frame = driver.frame()
    [vertex] = frame.vertices
    assert frame.plan is not None
    [planned] = frame.plan.vertices
    source, chain, end = (operator.id for operator in planned.operators)
    assert source not in {each for found in vertex.latencies for each in found.operators}
    assert set(operators(frame)) == {
        (vertex.id, -1, (chain,)),
        (vertex.id, -1, (end,)),
        (vertex.id, 0, (end,)),
        (vertex.id, 1, (end,)),
    }
    assert {each.operators for each in vertex.histograms} == {(chain,), (end,)}
    for each in vertex.latencies:
        assert len(each.counts) == 8 * vertex.size
        assert len(each.statistics) == 8 * vertex.size * len(names.LATENCY_STATISTICS)
    [at_end] = [each for each in vertex.latencies if each.operators == (end,) and each.source_subtask < 0]
    assert np.frombuffer(at_end.statistics, dtype="<f8")[:2].tolist() == [200, 200]
    assert frame.job is not None
    assert frame.job.latency == "operator"
    assert driver.markers(frame) == (2, 2, 0)


def test_latencies_travel_only_when_they_have_changed_and_until_acknowledged() -> None:
    """A frame comes every second, a marker every other."""
    driver = Driver(Emission())
    driver.batch(STARTED_MS)
    driver.frame()
    again = driver.acknowledged()
    assert len(operators(again)) == 3
    [vertex] = driver.acknowledged().vertices
    assert (vertex.latencies, vertex.histograms) == ((), ())
    driver.batch(STARTED_MS + 2_000)
    [vertex] = driver.acknowledged().vertices
    assert (len(vertex.latencies), len(vertex.histograms)) == (3, 2)
    driver.frames.start_over()
    [vertex] = driver.frame().vertices
    assert (len(vertex.latencies), len(vertex.histograms)) == (3, 2)


def test_latencies_are_told_anew_where_the_vertex_has_more_subtasks() -> None:
    """Their columns are as long as all others of the vertex."""
    driver = Driver(Emission())
    driver.batch(STARTED_MS)
    driver.acknowledged()
    [vertex] = driver.model.jobs[driver.query.jid].graph.vertices.values()
    vertex.register(5)
    [told] = driver.frame().vertices
    assert {len(each.counts) for each in told.latencies} == {40}


def test_markers_come_due_between_batches() -> None:
    """A frame tells of them as of the latest look at the clock."""
    driver = Driver(Emission(1000))
    assert driver.markers(driver.frame()) == (1, 0, 1)
    driver.look(STARTED_MS + 3_500)
    assert driver.markers(driver.frame()) == (4, 0, 4)


def test_a_run_that_was_there_before_emits_from_when_it_was_seen() -> None:
    """Its schedule stays that of its start; what came before, nobody has followed."""
    unknown = Driver(Emission(1000), Query(1).started(None))
    assert unknown.markers(unknown.frame()) == (1, 0, 1)
    known = Driver(Emission(1000))
    model = Model(APP, known.executors, known.model.starts(), Emission(1000))
    model.time.look(STARTED_MS + 9_500, 0)
    model.apply([known.query.started(STARTED)])
    assert model.jobs[known.query.jid].metrics()[names.MARKERS_EMITTED] == 0
    late = Driver(Emission(1000), Query(1, ended_before=3).started("1970-01-01T01:23:14.500Z"))
    assert late.markers(late.frame()) == (0, 0, 0)
    late.look(STARTED_MS + 500)
    assert late.markers(late.frame()) == (1, 0, 1)


def test_no_markers_means_no_word_of_them() -> None:
    """Neither figures nor a granularity, as on a Flink that emits none."""
    driver = Driver(None)
    driver.batch(STARTED_MS)
    frame = driver.frame()
    assert frame.job is not None
    assert frame.job.latency is None
    assert names.MARKERS_EMITTED not in frame.job.metrics
    [vertex] = frame.vertices
    assert (vertex.latencies, vertex.histograms) == ((), ())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), Emission(2000, "operator", 128)),
        (
            Settings(latency_interval_ms=500, latency_granularity="subtask", latency_history_size=7),
            Emission(500, "subtask", 7),
        ),
        (Settings(latency_interval_ms=0), None),
    ],
)
def test_settings_say_how_markers_are_emitted(settings: Settings, expected: Emission | None) -> None:
    """An interval of 0 emits none."""
    assert _emission(settings) == expected


def dropped(driver: Driver, reason: str) -> int:
    return int(driver.model.jobs[driver.query.jid].metrics()[names.MARKERS_DROPPED_BY[reason]])


def test_the_querys_word_that_it_waits_drops_its_markers() -> None:
    """No record waited for them."""
    driver = Driver(Emission(1000))
    driver.look(STARTED_MS + 9_500)
    driver.apply(records.QueryIdle("q", driver.query.run_id, STARTED_MS + 9_500))
    assert dropped(driver, "idle") == 10


def test_a_batch_whose_end_was_not_told_ends_its_markers() -> None:
    """Another one has begun: what the first has read is not known."""
    driver = Driver(Emission(1000))
    driver.query.batch += 1
    lost = Execution(driver.ids, sink(driver.ids, scan(driver.ids)), driver.query.describe())
    driver.apply(lost.start(STARTED_MS), lost.end(STARTED_MS + 500))
    driver.batch(STARTED_MS + 1_000)
    assert (dropped(driver, "ended"), driver.markers(driver.frame())) == (1, (2, 1, 0))


def test_latencies_of_a_vertex_that_the_job_forgets_are_forgotten() -> None:
    """Plans of user code come and go, and memory must not."""
    driver = Driver(Emission(1000))
    driver.batch(STARTED_MS)
    job = driver.model.jobs[driver.query.jid]
    assert job.course.markers is not None
    job.course.markers.latencies._vertices["gone"] = {}
    driver.batch(STARTED_MS + 1_000)
    assert set(job.course.markers.latencies._vertices) == set(job.graph.vertices)
