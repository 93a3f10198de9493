"""Figures of timers on a real Spark: Spark's own, and those of a TimerService."""
# ruff: noqa: N803 - Spark calls processors by these names

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyspark
import pytest

if pyspark.__version__.startswith("3."):
    pytest.skip("Spark 3 has no transformWithState", allow_module_level=True)

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.query import StreamingQuery

import streamgauge
from spark_hooks import vertex_timers
from streamgauge import names
from streamgauge.buckets import HdrCounts
from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import EventLog
from tests.e2e.figures import settings
from tests.e2e.test_accumulators import ROCKSDB

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

START_S = 1_767_225_600
"""2026-01-01; all that follows is seconds since then."""

REGISTERED_AFTER_S = (10, 20, 30)
OUT = "key INT, due_ms LONG, watermark_ms LONG, partition INT"
PLAIN = {
    names.NUM_REGISTERED_TIMERS: vertex_timers.REGISTERED,
    names.NUM_DELETED_TIMERS: vertex_timers.DELETED,
}
Row = tuple[int, str, int]
"""A key, what to do, and when."""


def write(folder: Path, number: int, rows: list[Row]) -> None:
    """Write the file of one batch; Spark reads files by their age."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [{"key": key, "act": act, "at_ms": 1000 * (START_S + s), "at": START_S + s} for key, act, s in rows]
    path = folder / f"{number:03d}.json"
    path.with_suffix(".part").write_text("".join(json.dumps(row) + "\n" for row in told))
    os.utime(path.with_suffix(".part"), (START_S + number, START_S + number))
    path.with_suffix(".part").rename(path)


class Plain(StatefulProcessor):
    """Timers of Spark's own: 'register' means three, one of them twice, 'delete' one that is there, and none."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for act, at_ms in (row for frame in rows for row in zip(frame["act"], frame["at_ms"], strict=True)):
            if act == "register":
                for after_s in (*REGISTERED_AFTER_S, REGISTERED_AFTER_S[0]):
                    self.register(int(at_ms) + 1000 * after_s)
            elif act == "delete":
                self.delete(1000 * (START_S + REGISTERED_AFTER_S[1]))
                self.delete(int(at_ms) + 99_000)
        yield from ()

    def register(self, due_ms: int) -> None:
        self.handle.registerTimer(due_ms)

    def delete(self, due_ms: int) -> None:
        self.handle.deleteTimer(due_ms)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield fired(key, expiredTimerInfo.getExpiryTimeInMs(), timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Nothing to close."""


class Served(Plain):
    """The same by a TimerService."""

    def __init__(self) -> None:
        self.service = streamgauge.TimerService("overdue")

    def init(self, handle: Any) -> None:
        self.service.open(handle, self)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        self.timers = self.service.at(key, timerValues)
        yield from super().handleInputRows(key, rows, timerValues)

    def register(self, due_ms: int) -> None:
        self.timers.register_event_time_timer(due_ms)

    def delete(self, due_ms: int) -> None:
        self.timers.delete_event_time_timer(due_ms)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self.service.fire(key, timerValues, expiredTimerInfo)

    def on_event_time(self, timer: Any, timers: Any) -> Iterable[pd.DataFrame]:
        return [fired(timer.key, timer.timestamp_ms, timers.current_watermark())]


def fired(key: Any, due_ms: int, watermark_ms: int) -> pd.DataFrame:
    task = TaskContext.get()
    assert task is not None
    row = (key[0], due_ms, watermark_ms, task.partitionId())
    return pd.DataFrame([row], columns=[part.split()[0] for part in OUT.split(", ")])


class Course:
    """A query over what is written to a folder, run by run from one checkpoint."""

    def __init__(self, spark: SparkSession, rest: Rest, folder: Path, processor: StatefulProcessor, name: str) -> None:
        self.spark, self.rest, self.folder, self.name = spark, rest, folder, name
        self.processor = processor
        self.query: StreamingQuery | None = None

    def start(self, **trigger: Any) -> StreamingQuery:
        frame = self.spark.readStream.schema("key INT, act STRING, at_ms LONG, at TIMESTAMP")
        frame = frame.option("maxFilesPerTrigger", 1).option("pathGlobFilter", "*.json").json(str(self.folder / "in"))
        frame = frame.withWatermark("at", "0 seconds").groupBy("key")
        frame = frame.transformWithStateInPandas(self.processor, OUT, "Append", "eventTime")
        writer = frame.writeStream.format("json").queryName(self.name)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(**trigger)
        self.query = writer.start(str(self.folder / "out"))
        return self.query

    def run(self) -> StreamingQuery:
        """To the end of what there is."""
        query = self.start(availableNow=True)
        query.awaitTermination(180)
        assert query.exception() is None
        job = eventually(lambda: (found := self.rest.job(self.name)) and found["state"] == "FINISHED" and found)
        assert job["state"] == "FINISHED"
        return query

    def out(self) -> list[Any]:
        """A row for every timer that fired, of all runs."""
        return self.spark.read.schema(OUT).json(str(self.folder / "out")).collect()

    def figures(self) -> dict[str, dict[int, int]]:
        """Every figure of the operator's timers but rates, and the vertex' as 'vertex.<metric>' → subtask → value."""
        found = {}
        for name, values in self.rest.columns(*self._vertex()).items():
            operator, _, metric = name.rpartition(".")
            if metric.endswith(("Timers", names.TIMER_TIME)):
                place = "" if operator.startswith(vertex_timers.NODE) else f"vertex{operator}."
                found[place + metric] = {row: int(value) for row, value in values.items()}
        return found

    def timers(self) -> dict[str, Any]:
        """What …/timers tells of the operator."""
        jid, vertex = self._vertex()
        [told] = self.rest.get(f"/jobs/{jid}/vertices/{vertex}/timers")["operators"]
        return dict(told)

    def _vertex(self) -> tuple[str, str]:
        job = self.rest.job(self.name)
        assert job is not None
        vertices = self.rest.get(f"/jobs/{job['jid']}")["vertices"]
        [vertex] = [vertex["id"] for vertex in vertices if vertex_timers.NODE in vertex["name"]]
        return job["jid"], vertex


@pytest.fixture
def course(attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Course]:
    """A course of Spark's own timers, or with 'served' those of a TimerService."""
    processor = Served() if request.param == "served" else Plain()
    found = Course(attached, rest, tmp_path, processor, f"timers {request.param}")
    with settings(attached, streaming__stateStore__providerClass=ROCKSDB, shuffle__partitions="2"):
        yield found
        if found.query is not None:
            found.query.stop()


def total(figure: dict[int, int]) -> int:
    return sum(figure.values())


def logged(event_log: Path, query: StreamingQuery, metric: str) -> Counter[int]:
    """What Spark's event log has of a metric, subtask by subtask."""
    log = EventLog(event_log, str(query.runId))
    return Counter(log.rows(f"!{vertex_timers.NODE}", metric))


@pytest.mark.parametrize("course", ["plain"], indirect=True)
def test_sparks_own_timers(course: Course, event_log: Path) -> None:
    """What is registered and deleted is what Spark counted in this run; what waits is right also after a restart."""
    folder = course.folder / "in"
    write(folder, 0, [(key, "register", 0) for key in range(5)])
    write(folder, 1, [(9, "go on", 15)])
    write(folder, 2, [(0, "delete", 16)])
    query = course.run()
    told = course.figures()
    # Of 15 timers 5 fired and 1 was deleted; Spark counts calls, and what fires as deleted.
    assert {metric: total(figure) for metric, figure in told.items()} == {
        names.NUM_REGISTERED_TIMERS: 20,
        names.NUM_DELETED_TIMERS: 5 + 2,
        names.NUM_PENDING_TIMERS: 9,
    }
    for metric, display in PLAIN.items():
        assert Counter(told[metric]) == logged(event_log, query, display), metric
    waiting: Counter[int] = Counter(told[names.NUM_PENDING_TIMERS])
    assert len(course.out()) == 5

    write(folder, 3, [(9, "go on", 17)])
    course.run()
    assert Counter(course.figures()[names.NUM_PENDING_TIMERS]) == waiting
    assert [total(course.figures()[metric]) for metric in PLAIN] == [0, 0]


@pytest.mark.parametrize("course", ["served"], indirect=True)
def test_timers_of_a_service(course: Course) -> None:
    """What fired, subtask by subtask, and how late, is what the query itself put out."""
    folder = course.folder / "in"
    write(folder, 0, [(key, "register", 0) for key in range(5)])
    write(folder, 1, [(9, "go on", 15)])
    write(folder, 2, [(0, "delete", 16)])
    write(folder, 3, [(9, "go on", 300)])
    query = course.start(processingTime="0 seconds")
    query.processAllAvailable()
    rows = eventually(lambda: len(found := course.out()) == 14 and found)
    by_subtask = Counter(row.partition for row in rows)
    told = eventually(lambda: total((found := course.figures()).get(names.NUM_FIRED_TIMERS, {})) >= 14 and found)
    assert Counter(told[names.NUM_FIRED_TIMERS]) == Counter(told[f"vertex.{names.NUM_FIRED_TIMERS}"]) == by_subtask
    # Timers where Spark counts calls, and those that fired were not deleted.
    assert {metric: total(told[metric]) for metric in (*PLAIN, names.NUM_PENDING_TIMERS)} == {
        names.NUM_REGISTERED_TIMERS: 15,
        names.NUM_DELETED_TIMERS: 1,
        names.NUM_PENDING_TIMERS: 0,
    }
    assert told[names.TIMER_TIME].keys() == told[names.NUM_FIRED_TIMERS].keys()
    late = HdrCounts()
    late.add(np.array([row.watermark_ms - row.due_ms for row in rows]))
    expected = late.read().values_at_percentiles((0, 50, 99, 100)).tolist()
    told_late = course.timers()["lateness"]
    assert told_late["count"] == len(rows)
    assert [told_late[f"{name}-ms"] for name in ("min", "p50", "p99", "max")] == expected

    query.stop()
    write(folder, 4, [(key, "register", 400) for key in range(5)])
    write(folder, 5, [(9, "go on", 411)])
    course.run()
    told = course.figures()
    assert total(told[names.NUM_FIRED_TIMERS]) == len(course.out()) - 14 == 5
