"""Timers on a real Spark: random operations over several runs of a query, each from the last one's checkpoint."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import streamgauge
from spark_hooks.key_timers import KeyTimers, TimeMode
from spark_hooks.timer_reports import TimerReports
from streamgauge.keyed_timers import KeyedTimer
from tests.e2e.conftest import eventually
from tests.unit.spark_hooks.scripted_timers import Fires, Model, Op, Scripted, Scripts

pytestmark = pytest.mark.spark
streaming = pytest.importorskip(
    "pyspark.sql.streaming.stateful_processor", reason="Spark has transformWithState from 4.0 on"
)

KEYS = range(3)
RUNS = 3
OUT = "key long, namespace string, timestamp_ms long, now_ms long"
_ROWS = "key long, number long, registers boolean, namespace string, timestamp_ms long, seen timestamp"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class OfRows(Scripted, streaming.StatefulProcessor):  # type: ignore[misc, name-defined]
    """Rows in, rows out."""

    def close(self) -> None:
        """Nothing to close."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], values: Any) -> Iterator[Any]:
        ops = sorted((row.number, Op(row.registers, row.namespace, row.timestamp_ms)) for row in rows)
        return super().handleInputRows(key, (op for _, op in ops), values)

    def row(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Any:
        event = self.timers.time_mode == "EventTime"
        now_ms = timers.current_watermark() if event else timers.current_processing_time()
        return Row(key=timer.key[0], namespace=timer.namespace, timestamp_ms=timer.timestamp_ms, now_ms=now_ms)


class OfFrames(OfRows):
    """Frames in, frames out."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], values: Any) -> Iterator[Any]:
        return super().handleInputRows(key, (row for frame in rows for row in plain(frame)), values)

    def row(self, timer: KeyedTimer[Any, str], timers: KeyTimers) -> Any:
        return pd.DataFrame([super().row(timer, timers).asDict()])


def plain(frame: pd.DataFrame) -> Iterator[Row]:
    """A frame's rows with Python's own numbers, which the service asks for."""
    for number, registers, namespace, timestamp_ms in zip(
        frame["number"], frame["registers"], frame["namespace"], frame["timestamp_ms"], strict=True
    ):
        yield Row(number=number, registers=bool(registers), namespace=namespace, timestamp_ms=int(timestamp_ms))


class Course:
    """
    Input files, the runs over them, and what each batch put out.

    Args:
        folder: Of one test.
        choice: Where its randomness comes from.
        start_ms: Timers lie around it, of each run `STEP_MS` later.
    """

    STEP_MS = 4000

    def __init__(self, spark: SparkSession, folder: Path, namespaces: bool, choice: random.Random) -> None:
        self.spark = spark
        self.folder = folder
        self.choice = choice
        self.names = ["", "a", "b"] if namespaces else [""]
        # Whole seconds, few of them, so that operations meet each other's timers.
        self.start_ms = int(time.time()) * 1000
        self.files: list[list[tuple[int, Op]]] = []
        self.out: dict[int, list[Row]] = {}
        (folder / "in").mkdir(parents=True)

    def op(self, around_ms: int) -> Op:
        timestamp_ms = around_ms + 1000 * self.choice.randint(-3, 8)
        return Op(self.choice.random() < 0.75, self.choice.choice(self.names), timestamp_ms)

    def scripts(self) -> Scripts:
        end_ms = self.start_ms + (RUNS + 2) * self.STEP_MS
        timers = [(key, name, at) for key in KEYS for name in self.names for at in range(self.start_ms, end_ms, 1000)]
        return {
            (repr((key,)), name, at_ms): [self.op(at_ms) for _ in range(self.choice.randint(1, 3))]
            for key, name, at_ms in timers
            if self.choice.random() < 0.5
        }

    def put(self) -> None:
        """Put a file in, whose rows are seen a step after those of the last one."""
        seen_ms = self.start_ms + len(self.files) * self.STEP_MS
        rows = [(self.choice.choice(KEYS), self.op(seen_ms)) for _ in range(20)]
        lines = [
            {"key": key, "number": number, **op._asdict(), "seen": seen_ms / 1000}
            for number, (key, op) in enumerate(rows)
        ]
        path = self.folder / f"{len(self.files):04}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        path.rename(self.folder / "in" / path.name)
        self.files.append(rows)

    def start(self, processor: OfRows, mode: TimeMode, once: bool) -> StreamingQuery:
        rows = self.spark.readStream.schema(_ROWS.replace("seen timestamp", "seen double"))
        frame = rows.option("maxFilesPerTrigger", 1).json(str(self.folder / "in"))
        frame = frame.withColumn("seen", frame.seen.cast("timestamp"))
        grouped = frame.withWatermark("seen", "0 seconds").groupBy("key")
        flavour = grouped.transformWithStateInPandas if isinstance(processor, OfFrames) else grouped.transformWithState
        writer = flavour(processor, OUT, "Append", mode).writeStream.foreachBatch(self.take)
        if once:
            writer = writer.trigger(availableNow=True)
        return writer.option("checkpointLocation", str(self.folder / "checkpoint")).start()

    def take(self, frame: DataFrame, batch: int) -> None:
        self.out[batch] = frame.collect()

    def offsets(self) -> Iterator[tuple[int, int, int]]:
        """Watermark, time and files read until then, of each batch; as Spark wrote them before it began."""
        for batch in range(max(self.out) + 1):
            _, metadata, source = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[:3]
            told = json.loads(metadata)
            yield told["batchWatermarkMs"], told["batchTimestampMs"], json.loads(source)["logOffset"] + 1

    def fires(self, batch: int) -> Fires:
        found: Fires = defaultdict(list)
        for row in self.out.get(batch, []):
            found[repr((row.key,))].append((row.namespace, row.timestamp_ms))
        return found

    def check(self, model: Model) -> int:
        """Hold every batch to the model, and return how many timers fired."""
        fired = read = 0
        for batch, (watermark_ms, time_ms, files) in enumerate(self.offsets()):
            now_ms = watermark_ms if model.event else time_ms
            rows = [(repr((key,)), op) for file in self.files[read:files] for key, op in file]
            read = files
            assert self.fires(batch) == model.batch(rows, now_ms), f"batch {batch} at {now_ms}"
            assert {row.now_ms for row in self.out.get(batch, [])} <= {now_ms}
            fired += len(self.out.get(batch, []))
        assert read == len(self.files) == RUNS
        return fired


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[SparkSession]:
    """The driver, with the state store that timers need, and as few partitions as have keys on both sides."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set(_PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    spark.conf.unset(_PROVIDER)
    spark.conf.set("spark.sql.shuffle.partitions", str(before))


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> TimerReports:
    """What reaches the driver, whoever else listens."""
    found = TimerReports()
    monkeypatch.setattr("spark_hooks.timer_channel.REPORTS", found)
    return found


@pytest.mark.parametrize(
    ("kind", "namespaces"), [(OfFrames, False), (OfRows, True)], ids=["frames-plain", "rows-namespaces"]
)
def test_event_time_timers_fire_as_in_memory_over_restarts(
    rocksdb: SparkSession, reports: TimerReports, tmp_path: Path, kind: type[OfRows], namespaces: bool
) -> None:
    """The same fires in the same order per key and batch, none twice, none lost; the reports tell them all."""
    course = Course(rocksdb, tmp_path, namespaces, random.Random(11))
    scripts = course.scripts()
    for _ in range(RUNS):
        course.put()
        query = course.start(kind("EventTime", namespaces, scripts), "EventTime", once=True)
        assert query.awaitTermination(250)
    model = Model("EventTime", scripts)
    fired = course.check(model)
    assert fired > 10
    told = reports.take()
    assert {report.service for report in told} == {"scripted"}
    assert sum(report.fired_event for report in told) == fired
    assert sum(count for report in told for count in report.lateness.values()) == fired
    assert sum(report.registered - report.deleted for report in told) == fired + model.pending
    assert all(report.callback_ns > 0 for report in told if report.fired_event)
    assert len({report.task for report in told}) == len(told)
    assert all(report.partition in (0, 1) and report.stage >= 0 and report.attempt == 0 for report in told)


@pytest.mark.parametrize(
    ("kind", "namespaces"), [(OfRows, False), (OfFrames, True)], ids=["rows-plain", "frames-namespaces"]
)
def test_processing_time_timers_fire_as_in_memory_over_restarts(
    rocksdb: SparkSession, tmp_path: Path, kind: type[OfRows], namespaces: bool
) -> None:
    """As event time, at each batch's own time; a run is stopped wherever it is, be it within a batch."""
    course = Course(rocksdb, tmp_path, namespaces, random.Random(12))
    scripts = course.scripts()
    for _ in range(RUNS):
        course.put()
        query = course.start(kind("ProcessingTime", namespaces, scripts), "ProcessingTime", once=False)
        try:
            eventually(lambda: course.out and list(course.offsets())[-1][2] == len(course.files), 200)
            batch = max(course.out)
            eventually(lambda batch=batch: max(course.out) > batch, 60)
        finally:
            query.stop()
    assert course.check(Model("ProcessingTime", scripts)) > 10


class Wrong(OfFrames):
    """Registers timers of the other kind."""

    def apply(self, timers: KeyTimers, op: Op) -> None:
        timers.register_processing_time_timer(op.timestamp_ms)


@pytest.mark.parametrize(
    ("processor", "words"),
    [
        (
            lambda: OfFrames("ProcessingTime", False, {}),
            r"TimerService\('scripted'\) is of time mode 'ProcessingTime', but the query's timeMode is 'EventTime'",
        ),
        (
            lambda: Wrong("EventTime", False, {}),
            r"register_processing_time_timer\(\) needs a query of time mode 'ProcessingTime', but this one's is 'Event",
        ),
    ],
    ids=["service", "call"],
)
def test_the_other_time_mode_fails_the_query_at_once(
    rocksdb: SparkSession, tmp_path: Path, processor: Any, words: str
) -> None:
    """The query ends with an exception that names the call and the rule."""
    course = Course(rocksdb, tmp_path, False, random.Random(13))
    course.put()
    query = course.start(processor(), "EventTime", once=True)
    with pytest.raises(StreamingQueryException, match=words):
        query.awaitTermination(250)


def test_a_timer_service_is_where_streamgauge_is() -> None:
    """It is one of the names that users import."""
    assert "TimerService" in streamgauge.__all__
