"""A store with the jobs that the recorded Flink ran, as Spark would tell of them, and a client of the service on it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import settings

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge import codec, names, wire
from streamgauge.buckets import HdrCounts, statistics_of
from streamgauge.clock import ManualClock
from tests.postgresql import PostgreSQL
from tests.postgresql import running as running_postgresql

# No test writes into the archive of whoever runs it: what wants one names its own. What drops all of Streamgauge's
# variables finds the default in a folder of this session's, which is not even made unless that happens.
os.environ["STREAMGAUGE_ARCHIVE"] = "none"
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir(), f"streamgauge-tests-{os.getpid()}-state"))

# Tests do not assert on time, and a machine may be busy.
settings.register_profile("streamgauge", deadline=None)
settings.load_profile("streamgauge")


RECORDINGS = Path(__file__).parent / "contract" / "flink"
NOW_MS = 1_795_248_821_802
"""When the recordings were made."""
APP = wire.App("spark-1", "anchor", 1_795_248_560_000, "driver.test", "4.3.0", "0.1.0")
LATENCIES_MS = (30, 18_930, 19_998, 20_549, 21_277)
OLDER_APP = wire.App("spark-0", "older", 1_795_248_550_000, "other.test", "4.3.0", "0.1.0")
EXECUTORS = ("127.0.0.1:33081-ee3b94", "127.0.0.1:33695-4aa8b7")


class Client:
    """
    Sends requests to an application without a socket; its lifespan is not run, and what uvicorn adds or refuses
    is missing (tests/unit/service/test_server.py has the real one).
    """

    URL = "http://127.0.0.1:8081"

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport) as client:
                return await client.request(method, self.URL + path, **arguments)

        return asyncio.run(send())

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.request("GET", path, **arguments)

    def push(self, body: bytes, **headers: str) -> httpx.Response:
        given = {
            "Content-Type": wire.CONTENT_TYPE,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.request("POST", wire.PUSH_PATH, content=body, headers=given)


def recording(name: str) -> Any:
    return json.loads((RECORDINGS / name).read_text())


def longs(*values: int) -> bytes:
    return np.array(values, dtype="<i8").tobytes()


def vertex_columns(body: dict[str, Any], source: bool) -> wire.VertexColumns:
    """One vertex of a recorded job; the last of two subtasks does not tell its busy time, a source no watermark."""
    size = body["parallelism"]
    metrics = body["metrics"]
    whole = {
        names.NUM_BYTES_IN: metrics["read-bytes"],
        names.NUM_BYTES_OUT: metrics["write-bytes"],
        names.NUM_RECORDS_IN: metrics["read-records"],
        names.NUM_RECORDS_OUT: metrics["write-records"],
    }
    columns = [wire.column(name, np.full(size, value // size)) for name, value in whole.items()]
    rate = np.full(size, 1000.4666666666667)
    columns.append(wire.column(names.NUM_RECORDS_IN + names.PER_SECOND, rate))
    columns.append(wire.column(names.NUM_RECORDS_OUT + names.PER_SECOND, rate))
    columns.append(wire.column(names.BUSY_TIME, np.array([2.0, np.nan][:size]), np.array([True, False][:size])))
    columns.extend(shuffle_columns(size, source))
    columns.append(wire.column(names.IDLE_TIME, np.array([998, 983][:size])))
    columns.append(wire.column(names.BACK_PRESSURED_TIME, np.array([0, 0][:size])))
    if not source:
        columns.append(wire.column(names.CURRENT_INPUT_WATERMARK, np.full(size, NOW_MS - 3_000)))
    operator = wire.OperatorColumns(
        body["id"],
        (
            wire.column(names.NUM_RECORDS_OUT, np.full(size, metrics["write-records"] // size)),
            wire.column("myNaNGauge", np.full(size, np.nan)),
        ),
    )
    return wire.VertexColumns(
        body["id"],
        size,
        size,
        body["start-time"],
        tuple(columns),
        (operator,),
        wire.Subtasks(
            longs(*[0] * size),
            longs(*range(size)),
            longs(*[body["start-time"]] * size),
            longs(*[-1] * size),
            EXECUTORS[:size],
        ),
        (
            wire.Accumulator(body["id"], "size", wire.column("spill size", np.full(size, 4096)), 0),
            wire.Accumulator("", "sum", wire.column("shuffle records written", np.full(size, 7)), 2),
        ),
        (wire.Coordinator(body["id"], {names.INPUT_ROWS: metrics["write-records"]}),) if source else None,
    )


def with_latencies(columns: wire.VertexColumns, source: str) -> wire.VertexColumns:
    """The same vertex, at whose operator each subtask recorded LATENCIES_MS, all of it but a third in its batch."""
    size = columns.size
    statistics = np.array(astuple(statistics_of(np.array(LATENCIES_MS))))
    told = (longs(*[len(LATENCIES_MS)] * size), np.repeat(statistics, size).astype("<f8").tobytes())
    waited = [value // 3 for value in LATENCIES_MS]
    parts = (LATENCIES_MS, waited, [value - part for value, part in zip(LATENCIES_MS, waited, strict=True)])
    return msgspec.structs.replace(
        columns,
        latencies=(wire.Latency(source, -1, (columns.id,), *told),),
        histograms=(wire.LatencyHistogram(source, (columns.id,), *(buckets(list(part) * size) for part in parts)),),
    )


def with_tap(columns: wire.VertexColumns, name: str = "by source") -> wire.VertexColumns:
    """The same source, tapped: what each subtask reads is a split, each 60 s behind the one before, the last idle."""
    size = columns.size
    behind = 60_000 * np.arange(size)
    told = {
        names.SPLIT_CURRENT_WATERMARK: NOW_MS - 3_000 - behind,
        names.SPLIT_ACTIVE_TIME: np.full(size, 990),
        names.SPLIT_PAUSED_TIME: np.full(size, 0),
        names.SPLIT_IDLE_TIME: np.full(size, 10),
        names.SPLIT_ACCUMULATED_ACTIVE_TIME: np.full(size, 35_101),
        names.SPLIT_ACCUMULATED_PAUSED_TIME: np.full(size, 0),
        names.SPLIT_ACCUMULATED_IDLE_TIME: np.full(size, 197),
        names.SPLIT_IDLE: np.arange(size) == size - 1,
        names.SPLIT_WATERMARK_DRIFT: behind,
        names.SPLIT_RECORDS: np.full(size, 700),
        names.SPLIT_RECORDS_AT_RISK: 7 * np.arange(size),
    }
    tap = wire.Tap(
        name,
        columns.id,
        NOW_MS - 3_000 - 60_000 * (size - 1),
        False,
        2_000,
        5_000,
        True,
        40,
        tuple(str(number) for number in range(1, size + 1)),
        tuple(wire.column(metric, values.astype(np.int64)) for metric, values in told.items()),
    )
    return msgspec.structs.replace(
        columns,
        taps=(tap,),
        distributions=tuple(
            wire.Distribution(columns.id, metric, buckets([value // part for value in LATENCIES_MS]))
            for metric, part in ((names.RECORD_LATENCY, 1), (names.RECORD_QUEUEING, 2))
        ),
    )


def with_timers(columns: wire.VertexColumns) -> wire.VertexColumns:
    """The same vertex behind a tap, whose operator has timers that fired as late as LATENCIES_MS."""
    size = columns.size
    timers = {
        names.NUM_REGISTERED_TIMERS: 12,
        names.NUM_DELETED_TIMERS: 4,
        names.NUM_PENDING_TIMERS: 3,
        names.NUM_FIRED_TIMERS: 5,
        names.NUM_FIRED_TIMERS + names.PER_SECOND: 0.5,
        names.TIMER_TIME: 20,
    }
    told = tuple(wire.column(metric, np.full(size, value)) for metric, value in timers.items())
    slowest = wire.column(names.CURRENT_SPLIT_WATERMARK, np.full(size, NOW_MS - 63_000))
    [operator] = columns.operators
    return msgspec.structs.replace(
        columns,
        columns=(*columns.columns, slowest),
        operators=(msgspec.structs.replace(operator, columns=(*operator.columns, *told)),),
        distributions=(wire.Distribution(columns.id, names.TIMER_LATENESS, buckets(list(LATENCIES_MS))),),
    )


def buckets(values: list[int]) -> wire.Buckets:
    """Values in range as they travel."""
    counts = HdrCounts()
    counts.add(np.array(values, dtype=np.int64))
    read = counts.read()
    return wire.Buckets(read.indices.astype("<u2").tobytes(), read.counts.tobytes(), sum_ms=read.sum_ms)


def shuffle_columns(size: int, source: bool) -> list[wire.Column]:
    """What waits in a vertex's shuffles, and for how long; a source has nothing to align."""
    found = []
    for prefix, metric, value in (
        (names.OUTPUT_BUFFERS, names.OUTPUT_QUEUE_LENGTH, 3),
        (names.OUTPUT_BUFFERS, names.OUTPUT_QUEUE_SIZE, 4096),
        (names.OUTPUT_BUFFERS, names.OUT_POOL_USAGE, 0.0625),
        (names.INPUT_BUFFERS, names.INPUT_QUEUE_LENGTH, 2),
        (names.INPUT_BUFFERS, names.INPUT_QUEUE_SIZE, 2048),
        (names.INPUT_BUFFERS, names.IN_POOL_USAGE, 0.03125),
    ):
        found += [wire.column(each + metric, np.full(size, value)) for each in (prefix, names.OLD_BUFFERS)]
    if not source:
        found.append(wire.column(names.CHECKPOINT_ALIGNMENT_TIME, np.full(size, 70_000_000)))
    return [*found, wire.column(names.CHECKPOINT_START_DELAY, np.full(size, 1_000_000))]


def micro_batches(jid: str, vertices: list[dict[str, Any]]) -> wire.Checkpoints | None:
    """A job's recorded checkpoints; None for a job of which none were recorded."""
    names_of = {recording(f"{name}__job.json")["jid"]: name for name in ("main", "slow", "fail", "finite")}
    if jid not in names_of:
        return None
    body = recording(f"{names_of[jid]}__checkpoints.json")
    history = tuple(micro_batch(told, vertices) for told in body["history"])
    latest = {kind: -1 if told is None else told["id"] for kind, told in body["latest"].items()}

    def spread(figure: str) -> wire.Spread | None:
        told = body["summary"][figure]
        return None if told["p50"] == "NaN" else wire.Spread(*told.values())

    return wire.Checkpoints(
        completed=body["counts"]["completed"],
        failed=body["counts"]["failed"],
        held=tuple(each.id for each in history),
        latest_completed=latest["completed"],
        latest_failed=latest["failed"],
        duration_ms=spread("end_to_end_duration"),
        state_bytes=spread("state_size"),
        checkpointed_bytes=spread("checkpointed_size"),
        changed=history,
    )


def micro_batch(told: dict[str, Any], vertices: list[dict[str, Any]]) -> wire.Checkpoint:
    """One recorded checkpoint; all of its state is the last vertex's."""
    begun, done = told["trigger_timestamp"], told["latest_ack_timestamp"] if told["status"] == "COMPLETED" else -1
    tasks = tuple(
        wire.CheckpointTasks(
            vertex["id"],
            longs(*[begun + 4] * vertex["parallelism"]),
            longs(*[done] * vertex["parallelism"]),
            longs(
                *[told["state_size"] // vertex["parallelism"] if vertex is vertices[-1] else -1] * vertex["parallelism"]
            ),
            longs(*[7 if vertex is vertices[-1] else -1] * vertex["parallelism"]),
        )
        for vertex in vertices
    )
    ended = told.get("failure_timestamp", done)
    return wire.Checkpoint(
        id=told["id"],
        status=told["status"],
        trigger_ms=begun,
        end_ms=ended,
        duration_ms=told["end_to_end_duration"] if ended >= 0 else -1,
        state_bytes=told["state_size"] if done >= 0 else -1,
        checkpointed_bytes=told["checkpointed_size"] if done >= 0 else -1,
        input_rows=120 if done >= 0 else -1,
        phases={"triggerExecution": told["end_to_end_duration"], "addBatch": 3} if done >= 0 else {},
        failure=told.get("failure_message", ""),
        tasks=tasks,
    )


def job_frame(body: dict[str, Any], seq: int = 1, app: wire.App = APP) -> wire.Frame:
    """A recorded /jobs/:jobid as a full frame."""
    nodes = {node["id"]: node for node in body["plan"]["nodes"]}
    plan = wire.Plan(
        tuple(
            wire.Vertex(
                vertex["id"],
                vertex["name"],
                (wire.Operator(vertex["id"], vertex["name"], "Node", f"{vertex['name']} <described>"),),
                tuple(
                    wire.Edge(edge["id"], edge["ship_strategy"], "hashpartitioning")
                    for edge in nodes[vertex["id"]].get("inputs", ())
                ),
            )
            for vertex in body["vertices"]
        )
    )
    since = {state: when for state, when in body["timestamps"].items() if when and state in wire.JobState.__args__}
    job = wire.Job(
        body["jid"],
        body["name"],
        "STREAMING",
        body["state"],
        since,
        body["end-time"],
        "every 10 s",
        "task",
        {
            names.NUM_COMPLETED_CHECKPOINTS: 47,
            names.TOTAL_CHECKPOINTS: 48,
            names.LAST_CHECKPOINT_DURATION: 18,
            names.LAST_CHECKPOINT_SIZE: 8280,
            names.MARKERS_EMITTED: 18,
            names.MARKERS_RECORDED: 10,
            names.MARKERS_IN_FLIGHT: 3,
            **dict(zip(names.MARKERS_DROPPED_BY.values(), (4, 0, 1, 0), strict=True)),
        },
        failure="it broke" if body["state"] == "FAILED" else "",
        checkpoint_path=f"file:/opt/flink/ckpt/{body['jid']}",
        latency="operator",
    )
    sources = [vertex_id for vertex_id, node in nodes.items() if "inputs" not in node]
    vertices = tuple(
        with_tap(vertex_columns(vertex, True))
        if vertex["id"] in sources
        else with_latencies(with_timers(vertex_columns(vertex, False)), sources[0])
        for vertex in body["vertices"]
    )
    return wire.Frame(
        wire.WIRE_VERSION,
        app,
        wire.Attempt(body["start-time"], f"run-{body['jid'][:4]}"),
        seq,
        0,
        NOW_MS,
        1000,
        job,
        plan,
        vertices,
        incomplete=wire.Incomplete(live_updates=3),
        observed={"my-acc.rows": 459_551},
        failures=recorded_failures() if body["state"] == "FAILED" else wire.Failures(),
        checkpoints=micro_batches(body["jid"], body["vertices"]),
    )


def recorded_failures() -> wire.Failures:
    """The recorded failure of a job, and the task's below it; of the first one's place Flink tells nothing."""
    [top] = recording("fail__exceptions.json")["exceptionHistory"]["entries"]
    [below] = top["concurrentExceptions"]
    vertex = next(
        vertex["id"]
        for vertex in recording("fail__job.json")["vertices"]
        if below["taskName"].startswith(vertex["name"])
    )
    task = wire.Failure(
        below["exceptionName"],
        below["stacktrace"],
        below["timestamp"],
        vertex,
        0,
        0,
        below["taskManagerId"],
        below["endpoint"],
    )
    return wire.Failures((wire.Failure(top["exceptionName"], top["stacktrace"], top["timestamp"], concurrent=(task,)),))


def app_frame(app: wire.App = APP, seq: int = 1) -> wire.Frame:
    """An application with the recorded TaskManagers' executors, and how it is set; OLDER_APP has no executors."""
    main = recording("main__job.json")["jid"]
    executors = tuple(
        wire.Executor(
            id=executor_id,
            endpoint=f"127.0.0.1:{41717 + number}",
            cores=2,
            slots=2,
            running={main: 1, "": number},
            memory_bytes=67_108_864,
            added_ms=NOW_MS - 60_000,
            heartbeat_ms=NOW_MS - 500,
            metrics={
                names.HEAP_USED: 252_214_272 + number,
                names.GC_COUNT_ALL: 8,
                names.CPU_LOAD: 0.04137235116044399,
                names.SHUFFLE_MEMORY_USED: 1_015_808,
                names.SHUFFLE_MEMORY_AVAILABLE: 66_093_056,
                names.SHUFFLE_MEMORY_TOTAL: 67_108_864,
            },
        )
        for number, executor_id in enumerate(EXECUTORS if app is APP else ())
    )
    return wire.Frame(
        wire.WIRE_VERSION,
        app,
        wire.Attempt(app.start_ms, app.id),
        seq,
        0,
        NOW_MS,
        1000,
        executors=executors,
        driver={names.HEAP_USED: app.start_ms % 1000 + 71_618_048, names.CPU_LOAD: 0.024082513792276328},
        hooks={names.HOOKS_EVENTS: 12},
        configuration={"spark.sql.shuffle.partitions": "2", "spark.master": "spark://driver.test:7077"},
        environment=wire.Environment("VM - Vendor - 17/17.0.15", "amd64", ("-Xmx1g",), ("/a.jar", "/b.jar")),
    )


def recorded_frames() -> list[wire.Frame]:
    """Every job of the recordings; two of them were recorded in the overview only, and have no vertices here."""
    details = {body["jid"]: body for body in map(recording, ("main__job.json", "slow__job.json"))}
    details |= {body["jid"]: body for body in map(recording, ("finite__job.json", "fail__job.json"))}
    frames = [app_frame(), app_frame(OLDER_APP)]
    for row in recording("jobs_overview.json")["jobs"]:
        bare = {**row, "vertices": [], "plan": {"nodes": []}, "timestamps": {row["state"]: row["last-modification"]}}
        frames.append(job_frame(details.get(row["jid"], bare)))
    return frames


@pytest.fixture(scope="session")
def recorded_push() -> bytes:
    """The body of a push of all recorded jobs."""
    return codec.encode(recorded_frames())


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A real server; every test makes a database of its own in it."""
    with running_postgresql() as server:
        yield server


@pytest.fixture
def recorded() -> list[wire.Frame]:
    return recorded_frames()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def store(clock: ManualClock) -> MetricStore:
    """The recorded jobs, taken in as pushes are."""
    store = MetricStore()
    Ingest(store, clock, Limits()).push(codec.encode(recorded_frames()))
    return store


@pytest.fixture
def client(store: MetricStore, clock: ManualClock) -> Client:
    """A client on this machine of a service with default settings."""
    return Client(create_app(Config(), store, clock))
