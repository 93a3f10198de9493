"""A made-up driver that tells of everything the page shows."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field
from typing import Any

import msgspec
import numpy as np

from streamgauge import names, wire
from streamgauge.buckets import HdrCounts, statistics_of
from tests.conftest import longs

HOUR_MS = 3_600_000
BATCH_MS = 10_000

ORDERS, HEALTHY, ENDED, BROKEN = (f"{number:032x}" for number in (0xA1, 0xB2, 0xC3, 0xD4))
NAMES = {ORDERS: "orders by minute", HEALTHY: "clicks to the lake", ENDED: "backfill of May", BROKEN: "payments"}
SOURCE, COUNT, WRITE = (f"{number:032x}" for number in (0x51, 0x52, 0x53))
"""The vertices of every job."""
OPERATORS = {
    SOURCE: ("Source: KafkaV2[Subscribe[orders]]", "Filter", "Project"),
    COUNT: ("HashAggregate", "StateStoreSave"),
    WRITE: ("Sort", "Sink: parquet"),
}
SIZES = {SOURCE: 4, COUNT: 8, WRITE: 4}
SPLITS = ("orders-0", "orders-1", "orders-2", "orders-3")
EXECUTORS = ("app-20261122-0001-1", "app-20261122-0001-2", "app-20261122-0001-3")

HOSTILE = {
    f"{number:032x}": text
    for number, text in enumerate(
        (
            "<script>alert(1)</script>",
            "\"'><img src=x onerror=alert(1)>`${alert(1)}`&lt;b&gt; \\ %00 {{constructor}}",
            "x" * 8_000,
            "\u202egnol yrev \u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd e\u0301\u0323\u0302\u0488 "
            "\U0001f4a5",
        ),
        start=0xE1,
    )
}
"""Job → the text that stands wherever it may tell one."""
LONG_TEXT = "long <b>text</b> " * 600
"""10,200 characters, where only texts and no names may be that long."""


def operator(vertex: str, place: int) -> str:
    """Return the id of an operator by its vertex and its place in there."""
    return f"{vertex[-2:]}{place:030x}"


@dataclass
class _Counts:
    """What an HDR histogram of one vertex has taken in since the run began."""

    total: HdrCounts = field(default_factory=HdrCounts)
    queueing: HdrCounts = field(default_factory=HdrCounts)
    processing: HdrCounts = field(default_factory=HdrCounts)
    latest: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Driver:
    """
    Tells of its jobs, at each call what they are then. Not thread safe.

    Args:
        start_ms: When the application began.
        hostile: Whether a second application tells of the jobs of HOSTILE.
    """

    def __init__(self, start_ms: int, hostile: bool = True) -> None:
        self.start_ms = start_ms
        self.ended: dict[str, tuple[str, int]] = {BROKEN: ("FAILED", start_ms + 50_000)}
        self._hostile = hostile
        self._seq = 0
        self._drawn = np.random.default_rng(7)
        self._counts: dict[tuple[str, str], _Counts] = {}

    def end(self, jid: str, state: str, now_ms: int) -> None:
        """Let a job have come to its end."""
        self.ended[jid] = (state, now_ms)

    def frames(self, now_ms: int) -> list[wire.Frame]:
        """Return all that there is to tell at this moment, in full."""
        self._seq += 1
        app = wire.App("app-20261122-0001", "shop", self.start_ms, "driver.test", "4.3.0", "0.1.0")
        found = [
            self._app_frame(app, now_ms),
            *(self._job_frame(app, jid, name, now_ms) for jid, name in NAMES.items()),
        ]
        if self._hostile:
            strange = wire.App("app-strange", HOSTILE[f"{0xE1:032x}"], self.start_ms, "<b>host", "4.3.0", "0.1.0")
            found.append(self._app_frame(strange, now_ms, "<i>\"' \u202e", ()))
            found += [self._job_frame(strange, jid, text, now_ms) for jid, text in HOSTILE.items()]
        return found

    def _app_frame(
        self, app: wire.App, now_ms: int, word: str = "spark", executors: tuple[str, ...] = EXECUTORS
    ) -> wire.Frame:
        spent = (now_ms - self.start_ms) // 1000
        told = tuple(
            wire.Executor(
                id=executor,
                endpoint=f"worker-{place}.test:{41000 + place}",
                cores=4,
                slots=4,
                running={ORDERS: 3 - place, HEALTHY: 1} if place < 2 else {},
                memory_bytes=2 << 30,
                added_ms=self.start_ms + 4_000,
                heartbeat_ms=now_ms - 700 - 1_000 * place,
                metrics={
                    names.HEAP_USED: (600 + 300 * place + int(80 * math.sin(spent / 40))) << 20,
                    names.HEAP_COMMITTED: 1800 << 20,
                    names.HEAP_MAX: 2048 << 20,
                    names.NON_HEAP_USED: 180 << 20,
                    names.NON_HEAP_COMMITTED: 200 << 20,
                    names.NON_HEAP_MAX: -1,
                    names.DIRECT_COUNT: 42,
                    names.DIRECT_USED: 33 << 20,
                    names.DIRECT_CAPACITY: 33 << 20,
                    names.MAPPED_COUNT: 0,
                    names.MAPPED_USED: 0,
                    names.MAPPED_CAPACITY: 0,
                    names.GC_COUNT_ALL: 310 + spent // 5,
                    names.GC_TIME_ALL: 5_200 + 14 * spent,
                    names.GC_RATE_ALL: 14.2,
                    f"{names.GARBAGE_COLLECTOR}G1 Young Generation{names.GARBAGE_COUNT}": 300 + spent // 5,
                    f"{names.GARBAGE_COLLECTOR}G1 Young Generation{names.GARBAGE_TIME}": 4_100 + 12 * spent,
                    names.CPU_LOAD: 0.41,
                    names.CPU_TIME: 9_120_000_000 * (1 + spent),
                    names.THREADS: 92,
                    names.MANAGED_USED: 300 << 20,
                    names.MANAGED_TOTAL: 900 << 20,
                    names.SHUFFLE_MEMORY_USED: 12 << 20,
                    names.SHUFFLE_MEMORY_AVAILABLE: 888 << 20,
                    names.SHUFFLE_MEMORY_TOTAL: 900 << 20,
                },
            )
            for place, executor in enumerate(executors)
        )
        pushes = dict.fromkeys(names.HOOKS_PUSHES.values(), 0) | {names.HOOKS_PUSHES["accepted"]: spent}
        return wire.Frame(
            wire.WIRE_VERSION,
            app,
            wire.Attempt(self.start_ms, app.id),
            self._seq,
            0,
            now_ms,
            1_000,
            executors=told,
            driver={names.HEAP_USED: 700 << 20, names.HEAP_MAX: 4 << 30, names.CPU_LOAD: 0.08, names.THREADS: 120},
            hooks={
                names.HOOKS_EVENTS: 120 * spent,
                names.HOOKS_DROPPED_RECORDS: 0 if word == "spark" else 17,
                names.HOOKS_DROPPED_LIVE: 0,
                names.HOOKS_FAULTS: 0 if word == "spark" else 2,
                names.HOOKS_SENT_BYTES: 9_000 * spent,
                **pushes,
            },
            configuration={
                "spark.master": f"{word}://driver.test:7077",
                "spark.sql.shuffle.partitions": "8",
                "spark.executor.memory": "4g",
                f"{word}.word": word,
            },
            environment=wire.Environment("OpenJDK - Eclipse - 17/17.0.15", "amd64", ("-Xmx4g",), ("/a.jar", "/b.jar")),
        )

    def _job_frame(self, app: wire.App, jid: str, name: str, now_ms: int) -> wire.Frame:
        text = name if jid in HOSTILE else ""
        began = self.start_ms + 20_000
        state, at_ms = self.ended.get(jid, ("RUNNING", now_ms))
        # What has ended stands still.
        now_ms = min(now_ms, at_ms)
        spent = max((now_ms - began) / 1000, 1.0)
        wave = math.sin(spent / 120)
        busy, pressed = (930 + 40 * wave, 620 + 60 * wave) if jid == ORDERS else (310 + 90 * wave, 20.0)
        rate = (4_200 if jid == ORDERS else 900) * (1 + 0.2 * wave)
        job = wire.Job(
            jid,
            name,
            "STREAMING",
            state,  # type: ignore[arg-type]
            {"CREATED": began - 500, "RUNNING": began} | ({} if state == "RUNNING" else {state: at_ms}),
            -1 if state == "RUNNING" else at_ms,
            text or "every 10 s",
            "task",
            self._job_metrics(jid, now_ms, spent, rate),
            failure=(
                f"java.lang.IllegalStateException: {LONG_TEXT}<script>alert(1)</script>" if state == "FAILED" else ""
            ),
            checkpoint_path=f"s3a://lake/checkpoints/{jid[-2:]}",
            latency="operator",
        )
        return wire.Frame(
            wire.WIRE_VERSION,
            app,
            wire.Attempt(began, f"run-{jid[-2:]}"),
            self._seq,
            0,
            now_ms,
            1_000,
            job,
            plan(text),
            tuple(
                self._vertex(jid, vertex, now_ms, spent, rate, busy * works, pressed * waits, text)
                # The aggregate holds up the source before it.
                for vertex, works, waits in ((SOURCE, 0.3, 1.0), (COUNT, 1.0, 0.05), (WRITE, 0.2, 0.0))
            ),
            observed={"orders.total": round(rate * spent), text[:400] or "orders.kept": 0.5},
            configuration={"spark.sql.shuffle.partitions": "8", "spark.job": text or "yes"},
            checkpoints=micro_batches(jid, now_ms, began, rate, text),
            failures=failures(jid, state, began, text),
        )

    def _job_metrics(self, jid: str, now_ms: int, spent: float, rate: float) -> dict[str, wire.vertices.Scalar]:
        batches = int(spent * 1000 // BATCH_MS)
        behind = jid == ORDERS
        return {
            names.NUM_COMPLETED_CHECKPOINTS: batches,
            names.NUM_FAILED_CHECKPOINTS: 1,
            names.NUM_IN_PROGRESS_CHECKPOINTS: 1,
            names.TOTAL_CHECKPOINTS: batches + 2,
            names.LAST_COMPLETED_CHECKPOINT_ID: batches,
            names.LAST_CHECKPOINT_DURATION: 13_400 if behind else 2_100,
            names.LAST_CHECKPOINT_SIZE: 48 << 20,
            names.LAST_CHECKPOINT_COMPLETED: now_ms - 900,
            names.LAST_CHECKPOINT_PROCESSED: int(rate * 10),
            names.TRIGGER_INTERVAL: BATCH_MS,
            names.BACKLOGGED: behind,
            names.KEEP_UP_RATIO: 0.74 if behind else 4.7,
            names.BACKLOG_ROWS: int(180 * spent) if behind else 0,
            names.BACKLOG_ROWS_TREND: 180.0 if behind else 0.0,
            names.BACKLOG_TIME: int(40 * spent) if behind else 0,
            names.INPUT_ROWS: int(rate * 10),
            names.INPUT_RATE: rate,
            names.PROCESSED_RATE: rate * (0.74 if behind else 4.7),
            names.UPTIME: int(spent * 1000),
            names.NUM_RESTARTS: 0,
            names.MARKERS_EMITTED: int(spent),
            names.MARKERS_RECORDED: int(spent) - 3,
            names.MARKERS_IN_FLIGHT: 3,
            **dict.fromkeys(names.MARKERS_DROPPED_BY.values(), 0),
        }

    def _vertex(
        self, jid: str, vertex: str, now_ms: int, spent: float, rate: float, busy: float, pressed: float, text: str
    ) -> wire.VertexColumns:
        size = SIZES[vertex]
        # The last subtask has three times as much to do.
        weight = np.ones(size)
        weight[-1] = 3
        weight /= weight.sum()
        out = rate * {SOURCE: 0.8, COUNT: 0.1, WRITE: 0.1}[vertex]
        came = rate * {SOURCE: 1.0, COUNT: 0.8, WRITE: 0.1}[vertex]

        def whole(total: float) -> np.ndarray:
            return np.round(weight * total).astype(np.int64)

        held = np.clip(busy * (0.6 + 0.4 * weight * size / 3), 0, 1_000 - pressed * 0.05)
        stopped = np.minimum(np.full(size, pressed), 1_000 - held)
        columns = [
            wire.column(names.NUM_RECORDS_IN, whole(came * spent)),
            wire.column(names.NUM_RECORDS_OUT, whole(out * spent)),
            wire.column(names.NUM_BYTES_IN, whole(120 * came * spent)),
            wire.column(names.NUM_BYTES_OUT, whole(90 * out * spent)),
            wire.column(names.NUM_RECORDS_IN + names.PER_SECOND, weight * came),
            wire.column(names.NUM_RECORDS_OUT + names.PER_SECOND, weight * out),
            wire.column(names.NUM_BYTES_IN + names.PER_SECOND, weight * 120 * came),
            wire.column(names.NUM_BYTES_OUT + names.PER_SECOND, weight * 90 * out),
            wire.column(names.BUSY_TIME, held),
            wire.column(names.BACK_PRESSURED_TIME, stopped),
            wire.column(names.IDLE_TIME, 1_000 - held - stopped),
            wire.column(names.ACCUMULATED_BUSY_TIME, (held * spent).astype(np.int64)),
            wire.column(names.ACCUMULATED_BACK_PRESSURED_TIME, (stopped * spent).astype(np.int64)),
            wire.column(names.ACCUMULATED_IDLE_TIME, ((1_000 - held - stopped) * spent).astype(np.int64)),
            wire.column(names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH, np.full(size, 3)),
            wire.column(names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE, np.full(size, 0.34)),
            wire.column(names.INPUT_BUFFERS + names.INPUT_QUEUE_LENGTH, np.full(size, 2)),
            wire.column(names.INPUT_BUFFERS + names.IN_POOL_USAGE, np.full(size, 0.12 + 0.05 * math.sin(spent / 30))),
        ]
        if text:
            columns.append(wire.column(text[:400], np.arange(size)))
        if vertex != SOURCE:
            columns.append(wire.column(names.CURRENT_INPUT_WATERMARK, np.full(size, now_ms - 42_000)))
            columns.append(wire.column(names.CURRENT_SPLIT_WATERMARK, np.full(size, now_ms - 190_000)))
        times = longs(*[now_ms - 6_000] * size), longs(*[-1] * size)
        return wire.VertexColumns(
            vertex,
            size,
            size,
            self.start_ms + 21_000,
            tuple(columns),
            self._operators(vertex, size, spent, whole, came, out),
            wire.Subtasks(longs(*[0] * size), longs(*[place % 3 for place in range(size)]), *times, EXECUTORS),
            accumulators(vertex, whole, spent, rate, text),
            (wire.Coordinator(operator(vertex, 0), {names.INPUT_ROWS: int(rate * spent)}),)
            if vertex == SOURCE
            else None,
            **self._latencies(jid, vertex, spent),
            taps=(tap(now_ms, text),) if vertex == SOURCE else (),
            distributions=self._distributions(jid, vertex),
        )

    def _operators(
        self, vertex: str, size: int, spent: float, whole: Any, came: float, out: float
    ) -> tuple[wire.OperatorColumns, ...]:
        found = []
        for place in range(len(OPERATORS[vertex])):
            columns = [
                wire.column(names.NUM_RECORDS_IN, whole(came * spent)),
                wire.column(names.NUM_RECORDS_OUT, whole(out * spent)),
            ]
            if vertex == SOURCE and place == 0:
                columns.append(wire.column(names.PENDING_RECORDS, whole(180 * spent)))
                columns.append(
                    wire.column(names.WATERMARK_LAG, np.full(size, 42_000 + int(3_000 * math.sin(spent / 60))))
                )
            if vertex == COUNT and place == 1:
                columns += [
                    wire.column(names.NUM_STATE_ROWS, whole(20_000 + 30 * spent)),
                    wire.column(names.STATE_MEMORY_USED, whole((20_000 + 30 * spent) * 400)),
                    wire.column(names.NUM_LATE_RECORDS_DROPPED, whole(0.4 * spent)),
                    wire.column(names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND, np.full(size, 0.05)),
                    wire.column(names.NUM_REGISTERED_TIMERS, whole(12 * spent)),
                    wire.column(names.NUM_DELETED_TIMERS, whole(2 * spent)),
                    wire.column(names.NUM_PENDING_TIMERS, whole(640 + 40 * math.sin(spent / 50))),
                    wire.column(names.NUM_FIRED_TIMERS, whole(9 * spent)),
                    wire.column(names.NUM_FIRED_TIMERS + names.PER_SECOND, np.full(size, 1.1)),
                    wire.column(names.TIMER_TIME, whole(20 * spent)),
                ]
            found.append(wire.OperatorColumns(operator(vertex, place), tuple(columns)))
        return tuple(found)

    def _drawn_ms(self, centre: float, amount: int) -> np.ndarray:
        return np.clip(self._drawn.lognormal(math.log(centre), 0.5, amount), 1, 4_000_000).astype(np.int64)

    def _latencies(self, jid: str, vertex: str, spent: float) -> dict[str, Any]:
        if vertex == SOURCE:
            return {}
        held = self._counts.setdefault((jid, vertex), _Counts())
        if jid not in self.ended:
            waited = self._drawn_ms(6_000 * (1 + 0.6 * math.sin(spent / 150)), 12)
            worked = self._drawn_ms(2_000, 12)
            held.total.add(waited + worked)
            held.queueing.add(waited)
            held.processing.add(worked)
            held.latest = np.concatenate((held.latest, waited + worked))[-128:]
        size, ids = SIZES[vertex], tuple(operator(vertex, place) for place in range(len(OPERATORS[vertex])))
        if not len(held.latest):
            return {}
        statistics = np.repeat(np.array(astuple(statistics_of(held.latest))), size).astype("<f8").tobytes()
        parts = (wire.Buckets.of(each.read()) for each in (held.total, held.queueing, held.processing))
        return {
            "latencies": (wire.Latency(SOURCE, -1, ids, longs(*[len(held.latest)] * size), statistics),),
            "histograms": (wire.LatencyHistogram(SOURCE, ids, *parts),),
        }

    def _distributions(self, jid: str, vertex: str) -> tuple[wire.Distribution, ...]:
        if vertex == WRITE:
            return ()
        told = {names.RECORD_LATENCY: 9_000, names.RECORD_QUEUEING: 6_000}
        if vertex == COUNT:
            told = {names.TIMER_LATENESS: 900}
        place = 1 if vertex == COUNT else 0
        found = []
        for metric, centre in told.items():
            held = self._counts.setdefault((jid, metric), _Counts())
            if jid not in self.ended or not held.total.read().total_count:
                held.total.add(self._drawn_ms(centre, 40))
            found.append(wire.Distribution(operator(vertex, place), metric, wire.Buckets.of(held.total.read())))
        return tuple(found)


def plan(text: str) -> wire.Plan:
    """Return the graph: a source, an aggregate behind a shuffle and a sink behind another."""
    inputs = {SOURCE: (), COUNT: (SOURCE, "HASH"), WRITE: (COUNT, "RANGE")}
    found = []
    for vertex, words in OPERATORS.items():
        given = tuple(f"{word}{f' {text}' if text else ''}"[:8_000] for word in words)
        operators = tuple(
            wire.Operator(
                operator(vertex, place),
                word,
                word.split()[0],
                (text and f"{word} {text} {LONG_TEXT}") or f"{word} [id#1, price#2]",
            )
            for place, word in enumerate(given)
        )
        edges = (wire.Edge(*inputs[vertex], text or "hashpartitioning(minute#7, 8)"),) if inputs[vertex] else ()
        found.append(wire.Vertex(vertex, " -> ".join(given)[:8_000], operators, edges))
    return wire.Plan(tuple(found))


def tap(now_ms: int, text: str) -> wire.Tap:
    """Return a tap of four splits: one is three minutes behind, one is idle."""
    behind = np.array([0, 4_000, 190_000, 60_000])
    told = {
        names.SPLIT_CURRENT_WATERMARK: now_ms - 2_000 - behind,
        names.SPLIT_ACTIVE_TIME: np.array([990, 985, 400, 0]),
        names.SPLIT_PAUSED_TIME: np.zeros(4),
        names.SPLIT_IDLE_TIME: np.array([10, 15, 600, 1_000]),
        names.SPLIT_IDLE: np.array([0, 0, 0, 1]),
        names.SPLIT_WATERMARK_DRIFT: behind,
        names.SPLIT_RECORDS: np.array([91_000, 90_100, 12_000, 40]),
        names.SPLIT_RECORDS_AT_RISK: np.array([0, 3, 870, 0]),
    }
    return wire.Tap(
        text[:8_000] or "by partition",
        operator(SOURCE, 0),
        now_ms - 192_000,
        False,
        2_000,
        30_000,
        False,
        5,
        tuple(f"{text[:400]}{split}" for split in SPLITS),
        tuple(wire.column(metric, values.astype(np.int64)) for metric, values in told.items()),
    )


def accumulators(vertex: str, whole: Any, spent: float, rate: float, text: str) -> tuple[wire.Accumulator, ...]:
    """Return Spark's own metrics, one of each kind, and the exchange's."""
    last = operator(vertex, len(OPERATORS[vertex]) - 1)
    told: list[tuple[str, wire.AccumulatorKind, str, float]] = [
        (operator(vertex, 0), "sum", "number of output rows", rate * spent),
        (last, "size", "memory used by state" if vertex == COUNT else "peak memory", 9e6),
        (last, "timing", "time to update", 30 * spent),
        (last, "average", "avg hash probes per key", 12),
        ("", "nsTiming", "shuffle write time", 9e6 * spent),
        ("", "size", "shuffle bytes written", 80 * rate * spent),
    ]
    if text:
        told.append((last, "sum", text[:400], 7))
    return tuple(
        wire.Accumulator(owner, kind, wire.column(metric, whole(value))) for owner, kind, metric, value in told
    )


def micro_batches(jid: str, now_ms: int, began: int, rate: float, text: str) -> wire.Checkpoints:
    """Return the last ten micro-batches with their phases, one of which has failed, and the one that runs."""
    lasted = 13_400 if jid == ORDERS else 2_100
    latest = int((now_ms - began) // BATCH_MS)
    done = []
    for back in range(10):
        number, took = latest - back, lasted + 150 * (back % 4)
        begun = now_ms - BATCH_MS * (back + 1)
        if back == 3:
            why = text or "the sink was away"
            done.append(wire.Checkpoint(number, "FAILED", begun, begun + 1_000, 1_000, failure=why))
            continue
        phases = {"latestOffset": 40, "getBatch": 3, "queryPlanning": 120, "walCommit": 60, "addBatch": took - 290}
        done.append(
            wire.Checkpoint(
                number,
                "COMPLETED",
                begun,
                begun + took,
                took,
                (48 << 20) - 4096 * back,
                2 << 20,
                int(rate * 10),
                int(rate),
                {**phases, "commitOffsets": 55, "triggerExecution": took, **({text[:400]: 12} if text else {})},
                tasks=tuple(
                    wire.CheckpointTasks(
                        vertex,
                        longs(*[begun + 300] * size),
                        longs(*[begun + took - 80] * size),
                        longs(*[(6 << 20 if vertex == COUNT else -1)] * size),
                        longs(*[(30 if vertex == COUNT else -1)] * size),
                    )
                    for vertex, size in SIZES.items()
                ),
            )
        )
    running = wire.Checkpoint(latest + 1, "IN_PROGRESS", now_ms - 4_000)
    held = (running, *done)
    return wire.Checkpoints(
        completed=latest,
        failed=1,
        held=tuple(each.id for each in held),
        latest_completed=latest,
        latest_failed=latest - 3,
        duration_ms=wire.Spread(1_900, lasted + 900, lasted, *[float(lasted + 100 * step) for step in range(5)]),
        state_bytes=wire.Spread(1 << 20, 48 << 20, 24 << 20, *[float((20 + step) << 20) for step in range(5)]),
        checkpointed_bytes=wire.Spread(1 << 10, 2 << 20, 1 << 20, *[float((2 + step) << 19) for step in range(5)]),
        changed=held,
    )


def failures(jid: str, state: str, began: int, text: str) -> wire.Failures:
    """Return a task's failure, and the run's with it where the job has failed."""
    trace = (
        f"org.apache.spark.SparkException: {text or 'the sink was away'}\n\tat a.B.c(B.scala:7)\nCaused by: {LONG_TEXT}"
    )
    task = wire.Failure(
        text[:8_000] or "java.io.IOException", trace, began + 70_000, COUNT, 2, 0, EXECUTORS[0], "worker-0.test:41000"
    )
    if state != "FAILED":
        return wire.Failures((task,)) if jid in HOSTILE else wire.Failures()
    top = wire.Failure("org.apache.spark.sql.streaming.StreamingQueryException", trace, began + 80_000)
    return wire.Failures((msgspec.structs.replace(top, concurrent=(task,)),))
