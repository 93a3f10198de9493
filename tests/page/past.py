"""What has ended long before the made-up world begins, as it lies in its archive."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from collector.archive import Archive
from collector.history import SAMPLE_INTERVAL_MS, History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.run import Run
from collector.store import MetricStore
from streamgauge import codec, wire
from streamgauge.clock import ManualClock
from tests.page.driver import ENDED, HEALTHY, HOUR_MS, ORDERS, WRITE, Driver, operator

ARCHIVED, LOST = (f"{number:032x}" for number in (0xF1, 0xF2))
NAMES = {ARCHIVED: "backfill of April", LOST: "night import"}
"""Jobs that are in the archive alone: a batch job, and one whose driver was never heard of again."""
RUNS = {jid: f"0000000{place}-0000-4000-8000-000000000000" for place, jid in enumerate((ORDERS, ARCHIVED, LOST), 1)}
WRITTEN = f"{0x59:032x}"
"""What WRITE was in that run of ORDERS, where it had another operator."""
LASTED_HOURS = 0.5
SAMPLES = 60


def write(archive: Archive, now_ms: int) -> None:
    """
    Write three runs that began nine hours ago and lasted half an hour.

    An earlier one of ORDERS, which then kept up, with other settings, by an older Spark and in a plan that differs; and
    the jobs of NAMES.
    """
    start_ms = now_ms - 9 * HOUR_MS
    end_ms = start_ms + int(LASTED_HOURS * HOUR_MS)
    clock, store = ManualClock(end_ms - SAMPLES * SAMPLE_INTERVAL_MS), MetricStore()
    ingest, history = Ingest(store, clock, Limits()), History(store, clock)
    driver = Driver(start_ms, hostile=False)
    driver.ended.clear()
    for left in reversed(range(SAMPLES)):
        clock.advance(SAMPLE_INTERVAL_MS)
        if not left:
            driver.end(HEALTHY, "FINISHED", clock.now_ms())
        taken = ingest.push(codec.encode([each for frame in driver.frames(clock.now_ms()) for each in _told(frame)]))
        assert not taken.late, taken
        history.sample()
    snapshot = store.snapshot()
    for jid in RUNS:
        state = snapshot.jobs[jid]
        if jid == LOST:
            state = replace(state, state="SUSPENDED", modified_ms=end_ms + 20_000)
        archive.write(Run.of(state, snapshot.apps[state.app.id], history))


def _told(frame: wire.Frame) -> list[wire.Frame]:
    """Return what the driver of the past told, of what the present one would have."""
    app = msgspec.structs.replace(frame.app, id="app-20261121-0001", spark_version="4.2.0")
    frame = msgspec.structs.replace(frame, app=app)
    if frame.job is None:
        attempt = wire.Attempt(frame.attempt.start_ms, app.id)
        configuration = {**(frame.configuration or {}), "spark.executor.memory": "8g"}
        return [msgspec.structs.replace(frame, attempt=attempt, configuration=configuration)]
    wanted = {HEALTHY: (ORDERS, ARCHIVED), ENDED: (LOST,)}.get(frame.job.jid, ())
    return [_as(jid, frame) for jid in wanted]


def _as(jid: str, frame: wire.Frame) -> wire.Frame:
    assert frame.job is not None
    name = NAMES.get(jid, "orders by minute")
    attempt = wire.Attempt(frame.attempt.start_ms, RUNS[jid])
    told = msgspec.structs.replace(frame, job=msgspec.structs.replace(frame.job, jid=jid, name=name), attempt=attempt)
    return {ORDERS: _with_another_plan, ARCHIVED: _of_a_batch, LOST: lambda each: each}[jid](told)


def _of_a_batch(frame: wire.Frame) -> wire.Frame:
    """Return a frame of a job that has no micro-batches, and tells nothing that only a stream has."""
    assert frame.job is not None
    job = msgspec.structs.replace(frame.job, type="BATCH", trigger="", metrics={}, latency=None, checkpoint_path="")
    bare = tuple(
        msgspec.structs.replace(each, latencies=(), histograms=(), taps=(), distributions=()) for each in frame.vertices
    )
    return msgspec.structs.replace(frame, job=job, vertices=bare, checkpoints=None)


def _with_another_plan(frame: wire.Frame) -> wire.Frame:
    """Return a frame of which WRITE is another vertex: with one operator more, and another that is described anew."""
    assert frame.plan is not None
    vertices = []
    for vertex in frame.plan.vertices:
        if vertex.id == WRITE:
            sort, sink = vertex.operators
            sort = msgspec.structs.replace(sort, id=operator(WRITTEN, 0), description="Sort [minute#3 DESC]")
            limit = wire.Operator(operator(WRITTEN, 2), "GlobalLimit", "GlobalLimit", "GlobalLimit 1000")
            sink = msgspec.structs.replace(sink, id=operator(WRITTEN, 1))
            operators = (sort, limit, sink)
            name = " -> ".join(each.name for each in operators)
            vertex = msgspec.structs.replace(vertex, id=WRITTEN, name=name, operators=operators)
        vertices.append(vertex)
    # Ids stand in columns, latencies and micro-batches too: all of them are of this vertex' and its operators'.
    body = codec.encode([msgspec.structs.replace(frame, plan=None)])
    for old, new in (
        (WRITE, WRITTEN),
        (operator(WRITE, 0), operator(WRITTEN, 0)),
        (operator(WRITE, 1), operator(WRITTEN, 1)),
    ):
        body = body.replace(old.encode(), new.encode())
    [changed] = codec.decode(body)
    return msgspec.structs.replace(
        changed, plan=wire.Plan(tuple(vertices)), configuration={"spark.sql.shuffle.partitions": "4"}
    )
