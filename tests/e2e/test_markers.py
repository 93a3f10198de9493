"""Latency markers of real queries: which micro-batches carry them, and what becomes of the others."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streamgauge import names
from tests.e2e.conftest import Rest, eventually, told

pytestmark = pytest.mark.spark

INTERVAL_MS = 2_000
SUBTASKS = 2


def rate(spark: SparkSession) -> DataFrame:
    options = {"rowsPerSecond": "50", "numPartitions": str(SUBTASKS)}
    return spark.readStream.format("rate").options(**options).load()


def figures(rest: Rest, name: str) -> dict[str, int]:
    """What became of the markers of a query that has ended."""
    job = told(rest, name, "CANCELED")
    asked = [names.MARKERS_EMITTED, names.MARKERS_RECORDED, names.MARKERS_IN_FLIGHT, *names.MARKERS_DROPPED_BY.values()]
    found = rest.get(f"/jobs/{job['jid']}/metrics?get={','.join(asked)}")
    assert {each["id"] for each in found} == set(asked)
    return {each["id"]: int(each["value"]) for each in found}


def begin_ms(progress: dict[str, Any]) -> int:
    moment = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)


def bound(query: StreamingQuery, start_ms: int, interval_ms: int) -> tuple[int, int]:
    """
    Marked times that a batch with rows binds, by DESIGN's words, as Spark's progress tells the batches; the least and
    the most, for a mark that is due within 150 ms of the end of a batch may count either way.
    """
    least = most = 0
    busy_until_ms, number = start_ms, 0
    for progress in query.recentProgress:
        at_ms = begin_ms(progress)
        while start_ms + number * INTERVAL_MS <= at_ms:
            marked_ms = start_ms + number * INTERVAL_MS
            slot_ms = marked_ms + (-marked_ms % interval_ms if interval_ms else 0)
            late_ms = at_ms - max(slot_ms, busy_until_ms)
            counts = progress["numInputRows"] > 0
            least += counts and late_ms <= 50
            most += counts and late_ms <= 150
            number += 1
        busy_until_ms = at_ms + progress["durationMs"]["triggerExecution"]
    return least, most


@pytest.mark.parametrize("shuffled", [False, True], ids=["one vertex", "two vertices"])
def test_markers_are_bound_by_the_batches_that_spark_tells_of(
    attached: SparkSession, rest: Rest, tmp_path: Path, shuffled: bool
) -> None:
    """Each subtask's marker of each such time reaches the sink; the others were dropped, and none is left."""
    name = f"markers, shuffled: {shuffled}"
    stream = rate(attached).repartition(3, "value") if shuffled else rate(attached)
    writer = stream.writeStream.format("noop").queryName(name).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="3 seconds").start()
    try:
        eventually(lambda: len([each for each in query.recentProgress if each["numInputRows"]]) >= 4, 60)
        job = eventually(lambda: rest.job(name))
        start_ms = rest.get(f"/jobs/{job['jid']}")["start-time"]
    finally:
        query.stop()
    found = figures(rest, name)
    least, most = bound(query, start_ms, 3_000)
    recorded = found[names.MARKERS_RECORDED]
    assert least * SUBTASKS <= recorded <= most * SUBTASKS
    assert least > 0
    dropped = {reason: found[metric] for reason, metric in names.MARKERS_DROPPED_BY.items()}
    assert found[names.MARKERS_EMITTED] == recorded + sum(dropped.values())
    assert (found[names.MARKERS_IN_FLIGHT], dropped["lost"], dropped["crowded"]) == (0, 0, 0)


def test_foreach_batch_hands_markers_to_the_sink(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """User code runs the query's plan in executions of its own, also where the batch has no rows left to write."""
    for keeps in (True, False):
        name = f"markers, user code, keeps: {keeps}"
        stream = rate(attached).repartition(2).where("value >= 0" if keeps else "value < 0")
        folder = str(tmp_path / str(keeps))
        writer = stream.writeStream.queryName(name).option("checkpointLocation", folder)
        query = writer.foreachBatch(lambda batch, _: batch.write.format("noop").mode("append").save()).start()
        try:
            eventually(
                lambda query=query: len([each for each in query.recentProgress if each["numInputRows"]]) >= 5, 60
            )
        finally:
            query.stop()
        found = figures(rest, name)
        assert found[names.MARKERS_DROPPED_BY["lost"]] == 0
        assert found[names.MARKERS_RECORDED] > 0
