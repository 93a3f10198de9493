"""Whatever the collector takes in, the service can show: no push makes an endpoint fail."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_string_to_metric_families,
)
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from service.errors import answer
from service.flink.query import Query
from service.flink.rest import RESOURCES, Handler
from service.prometheus.granularity import GRANULARITIES, Granularity
from streamgauge import catalogue, codec, names, wire
from streamgauge.buckets import BUCKET_COUNT, HIGHEST_COUNTED_MS, MAX_COUNT
from streamgauge.clock import ManualClock
from streamgauge.errors import IngestError, QueryError
from tests.exposed import flinks, idiomatic

JID, VERTEX, OPERATOR, EXECUTOR = "d" * 32, "c" * 32, "b" * 32, "x-0"
PATH = {"jobid": JID, "vertexid": VERTEX, "subtaskindex": "0", "attempt": "0", "taskmanagerid": EXECUTOR}
PATH |= {"applicationid": "x", "triggerid": JID, "rescaleuuid": JID, "filename": "a.log", "checkpointid": "0"}

LONGS = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])
WIDE = LONGS | st.just(2**64 - 1)
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")])
TEXT = st.text(min_size=1, max_size=6) | st.sampled_from(['"', "\\", "\n", "<b>", "a.b", "\x00", "{}", "#"])
SCALARS = st.booleans() | WIDE | DOUBLES | TEXT
METRICS = (
    st.sampled_from([*names.TRANSIENT, names.CURRENT_INPUT_WATERMARK, *(each.name for each in catalogue.METRICS)])
    | TEXT
)
STATES = st.sampled_from(wire.JobState.__args__)
SIZE = 3


@st.composite
def columns(draw: st.DrawFn) -> tuple[wire.Column, ...]:
    found = []
    for name in draw(st.lists(METRICS, max_size=4, unique=True)):
        kind = draw(st.sampled_from([LONGS, DOUBLES]))
        values = np.array(draw(st.lists(kind, min_size=SIZE, max_size=SIZE)), np.int64 if kind is LONGS else np.float64)
        found.append(wire.column(name, values, np.array(draw(st.lists(st.booleans(), min_size=SIZE, max_size=SIZE)))))
    return tuple(found)


@st.composite
def subtasks(draw: st.DrawFn) -> wire.Subtasks:
    def longs(values: Any) -> bytes:
        return np.array(draw(st.lists(values, min_size=SIZE, max_size=SIZE)), dtype="<i8").tobytes()

    return wire.Subtasks(longs(LONGS), longs(st.sampled_from([-1, 0])), longs(LONGS), longs(LONGS), (EXECUTOR,))


@st.composite
def latencies(draw: st.DrawFn) -> tuple[wire.Latency, ...]:
    """Of its own markers and of all, whatever the figures; refused where values that were recorded have none."""
    figures = DOUBLES if draw(st.booleans()) else st.sampled_from([0.0, -0.0, 0.5, 2.0**53, -(2.0**53), 5e-324])
    counts = st.sampled_from([0, 0, 1, 2**63 - 1])
    found = []
    for source, subtask in draw(st.lists(st.sampled_from([("", -1), (VERTEX, -1), (VERTEX, 0)]), unique=True)):
        told = np.array(draw(st.lists(counts, min_size=SIZE, max_size=SIZE)), "<i8").tobytes()
        statistics = np.array(draw(st.lists(figures, min_size=11 * SIZE, max_size=11 * SIZE)), "<f8").tobytes()
        found.append(wire.Latency(source, subtask, (OPERATOR,), told, statistics))
    return tuple(found)


@st.composite
def buckets(draw: st.DrawFn) -> wire.Buckets:
    counts = draw(st.dictionaries(st.integers(0, BUCKET_COUNT - 1), st.sampled_from([1, 7, 2**51]), max_size=4))
    indices = np.array(sorted(counts), "<u2").tobytes()
    out = st.sampled_from([0, 1, MAX_COUNT])
    total = sum(counts.values())
    sum_ms = draw(st.sampled_from([0, min(total * HIGHEST_COUNTED_MS, 2**63 - 1)]))
    told = np.array([counts[index] for index in sorted(counts)], "<i8").tobytes()
    return wire.Buckets(indices, told, draw(out), draw(out), sum_ms)


@st.composite
def taps(draw: st.DrawFn) -> tuple[wire.Tap, ...]:
    """Of whatever names and watermarks; a split may be named as another one."""
    found = []
    for _ in range(draw(st.integers(0, 2))):
        splits = tuple(draw(st.lists(TEXT | st.just(""), max_size=3)))
        told = []
        for metric in draw(st.lists(st.sampled_from(names.SPLIT_METRICS), max_size=4, unique=True)):
            kind = LONGS if "atermark" in metric and "Time" not in metric else st.sampled_from([0, 1])
            values = np.array(draw(st.lists(kind, min_size=len(splits), max_size=len(splits))), np.int64)
            there = np.array(draw(st.lists(st.booleans(), min_size=len(splits), max_size=len(splits))), np.bool_)
            told.append(wire.column(metric, values, there))
        settings = (
            draw(LONGS),
            draw(st.booleans()),
            draw(st.sampled_from([0, 7, 2**53])),
            draw(st.sampled_from([-1, 0])),
        )
        given = (draw(st.booleans()), draw(st.sampled_from([0, MAX_COUNT])))
        found.append(wire.Tap(draw(TEXT), OPERATOR, *settings, *given, splits, tuple(told)))
    return tuple(found)


@st.composite
def distributions(draw: st.DrawFn) -> tuple[wire.Distribution, ...]:
    metrics = draw(st.lists(st.sampled_from(sorted(names.DISTRIBUTIONS)), unique=True))
    return tuple(wire.Distribution(OPERATOR, metric, draw(buckets())) for metric in metrics)


@st.composite
def checkpoints(draw: st.DrawFn) -> wire.Checkpoints:
    """Micro-batch 0, of which the vertex had tasks, and another one."""

    def longs() -> bytes:
        return np.array(draw(st.lists(LONGS, min_size=SIZE, max_size=SIZE)), dtype="<i8").tobytes()

    def checkpoint(number: int, *tasks: wire.CheckpointTasks) -> wire.Checkpoint:
        status = draw(st.sampled_from(["IN_PROGRESS", "COMPLETED", "FAILED"]))
        figures = [draw(WIDE) for _ in range(7)]
        phases = draw(st.dictionaries(TEXT, WIDE, max_size=2))
        return wire.Checkpoint(number, status, *figures, phases, draw(TEXT), tasks)

    tasks = wire.CheckpointTasks(VERTEX, longs(), longs(), longs(), longs())
    spread = st.none() | st.builds(wire.Spread, WIDE, WIDE, WIDE, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES)
    other = draw(st.integers(1, 2**64 - 1))
    numbers = (draw(WIDE), draw(WIDE), (0, other), draw(st.sampled_from([0, other, -1])), 0, draw(WIDE), draw(WIDE))
    return wire.Checkpoints(
        *numbers, draw(spread), draw(spread), draw(spread), (checkpoint(0, tasks), checkpoint(other))
    )


@st.composite
def frames(draw: st.DrawFn) -> list[wire.Frame]:
    app = wire.App("x", draw(TEXT), draw(WIDE), draw(TEXT), "4", "0")
    attempt = wire.Attempt(draw(WIDE), "run")
    job = wire.Job(
        JID,
        draw(TEXT),
        draw(st.sampled_from(["STREAMING", "STREAMING", "BATCH"])),
        draw(STATES),
        draw(st.dictionaries(STATES, WIDE)),
        draw(WIDE),
        draw(TEXT),
        "task",
        draw(st.dictionaries(METRICS, SCALARS, max_size=4)),
        draw(TEXT),
        draw(TEXT),
        draw(st.sampled_from([None, *get_args(wire.LatencyGranularity)])),
    )
    configuration = draw(
        st.dictionaries(
            st.sampled_from(
                [
                    "spark.sql.streaming.minBatchesToRetain",
                    "spark.sql.streaming.stateStore.providerClass",
                    "spark.sql.streaming.stateStore.maintenanceInterval",
                ]
            ),
            TEXT | st.sampled_from(["0", "9" * 5000, "-1", "99999999999999999d"]),
        )
    )
    operator = wire.Operator(OPERATOR, draw(TEXT | TEXT.map("Sink: {}".format)), draw(TEXT), draw(TEXT))
    vertex = wire.Vertex(VERTEX, draw(TEXT), (operator,), (), draw(st.booleans()))
    figures = wire.VertexColumns(
        VERTEX,
        draw(st.integers(0, SIZE)),
        SIZE,
        draw(WIDE),
        draw(columns()),
        (wire.OperatorColumns(OPERATOR, draw(columns())),),
        draw(st.none() | subtasks()),
        coordinators=(wire.Coordinator(OPERATOR, draw(st.dictionaries(METRICS, SCALARS, max_size=4))),),
        latencies=draw(latencies()),
        histograms=draw(
            st.just(())
            | st.tuples(st.builds(wire.LatencyHistogram, st.just(VERTEX), st.just((OPERATOR,)), *[buckets()] * 3))
        ),
        taps=draw(taps()),
        distributions=draw(distributions()),
    )
    executor = wire.Executor(
        EXECUTOR,
        draw(TEXT),
        draw(st.integers(0, 2**64 - 1)),
        draw(st.integers(0, 2**64 - 1)),
        draw(st.dictionaries(st.sampled_from([JID, ""]), st.integers(0, 3))),
        draw(WIDE),
        draw(WIDE),
        draw(WIDE),
        draw(st.dictionaries(METRICS, SCALARS, max_size=4)),
    )
    told = {"driver": draw(st.dictionaries(METRICS, SCALARS, max_size=4)), "hooks": {}}
    return [
        wire.Frame(
            wire.WIRE_VERSION, app, attempt, 1, 0, draw(WIDE), 1000, executors=(executor,), end_ms=draw(WIDE), **told
        ),
        wire.Frame(
            wire.WIRE_VERSION,
            app,
            attempt,
            1,
            0,
            draw(WIDE),
            1000,
            job,
            wire.Plan((vertex,)),
            (figures,),
            configuration=configuration,
            checkpoints=draw(checkpoints()),
        ),
    ]


def answered(handler: Handler, query: Query) -> Any:
    """The body, or a refusal as it is sent."""
    try:
        return handler(query)
    except QueryError as error:
        return answer(error)


@settings(max_examples=150, deadline=None)
@given(frames(), st.sampled_from(GRANULARITIES))
def test_what_was_taken_in_can_be_shown(pushed: list[wire.Frame], granularity: Granularity) -> None:
    """Every resource answers and both expositions parse in both formats, each series once, whatever is in them."""
    clock = ManualClock(1_000_000)
    store = MetricStore()
    try:
        Ingest(store, clock, Limits()).push(codec.encode(pushed))
    except IngestError:
        return
    for resource, handler in RESOURCES.items():
        ids = answered(handler, Query.parse(store.snapshot(), clock.now_ms(), PATH, b""))
        if isinstance(ids, Response):
            # Of this vertex there may be no subtask, and some resources only refuse.
            assert ids.status_code == 404
            continue
        msgspec.json.encode(ids)
        if resource.endswith("metrics"):
            wanted = ",".join(each["id"] for each in ids)
            query = Query(store.snapshot(), clock.now_ms(), PATH, {"get": [wanted]})
            msgspec.json.encode(handler(query))
    now_ms = clock.now_ms()
    for page in (idiomatic, flinks):
        text = page(store.snapshot(), granularity, now_ms)
        openmetrics = page(store.snapshot(), granularity, now_ms, openmetrics=True) + "# EOF\n"
        read = [[*text_string_to_metric_families(text)], [*openmetrics_string_to_metric_families(openmetrics)]]
        for families in read:
            found = [sample for family in families for sample in family.samples]
            assert len(found) == len({(sample.name, *sorted(sample.labels.items())) for sample in found})
