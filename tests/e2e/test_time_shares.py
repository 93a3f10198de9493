"""How a real query's subtasks spend their time, against what Spark's own event log and progress tell."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import logged

pytestmark = pytest.mark.spark

INTERVAL_MS = 1000
SLOW = "java_method('java.lang.Thread', 'sleep', 200L + value % 2) IS NULL"
"""A row of it takes 200 ms or more."""
ROWS = 50
"""Of a batch; half of them in each subtask take longer than the interval."""
SHARES = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
TIMES = ("accumulateBusyTimeMs", "accumulateBackPressuredTimeMs")
LEEWAY_MS = 5
"""A batch: Spark's times are whole milliseconds, and both clocks are looked at one after the other."""


def shares(rest: Rest, jid: str) -> dict[str, list[tuple[float, ...]]]:
    """Vertex id → busy, idle and back-pressured of each subtask that tells them."""
    found = {}
    for vertex in rest.get(f"/jobs/{jid}")["vertices"]:
        columns = rest.columns(jid, vertex["id"])
        told = [[columns[name].get(subtask, "NaN") for name in SHARES] for subtask in sorted(columns[SHARES[1]])]
        found[vertex["id"]] = [tuple(map(float, row)) for row in told]
    return found


def swamped(rest: Rest, jid: str) -> dict[str, Any] | None:
    """What is told of a job with a bottleneck, once its first vertex has been held up for most of the window."""
    told: dict[str, Any] = rest.get(f"/jobs/{jid}")["streamgauge"]
    figures = list(shares(rest, jid).values())
    ready = told["bottleneck"] and len(figures) == 2 and min((row[2] for row in figures[0]), default=0) > 500
    return told if ready else None


def events(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    return [event for event in logged(folder) if event["Event"].removeprefix("SparkListener") in kinds]


def batches(progress: list[Any]) -> list[tuple[int, int, bool]]:
    """Begin, end and whether the query was backlogged, of each batch: whether the one before ran past its slot."""
    found, late = [], False
    for each in progress:
        begin_ms = int(datetime.fromisoformat(each["timestamp"].replace("Z", "+00:00")).timestamp() * 1000)
        took_ms = each["durationMs"]["triggerExecution"]
        found.append((begin_ms, begin_ms + took_ms, late))
        late = each["batchId"] > 0 and begin_ms % INTERVAL_MS + took_ms > INTERVAL_MS
    return found


def expected(folder: Path, run_id: str, ran: list[tuple[int, int, bool]]) -> dict[tuple[bool, int], dict[str, int]]:
    """(reads the source, subtask) → its busy and back-pressured time in the batches that `ran`, by the event log."""
    jobs = [each for each in events(folder, "JobStart") if run_id in str(each.get("Properties", {}).values())]
    stages = {stage for job in jobs for stage in job["Stage IDs"]}
    ended = {
        each["Stage Info"]["Stage ID"]: each["Stage Info"]
        for each in events(folder, "StageCompleted")
        if each["Stage Info"]["Stage ID"] in stages
    }
    tasks = [each for each in events(folder, "TaskEnd") if each["Stage ID"] in ended]
    first: dict[int, int] = {}
    for task in tasks:
        launch_ms = task["Task Info"]["Launch Time"]
        first[task["Stage ID"]] = min(first.get(task["Stage ID"], launch_ms), launch_ms)
    found: dict[tuple[bool, int], dict[str, int]] = defaultdict(lambda: dict.fromkeys(TIMES, 0))
    for task in tasks:
        stage, info = ended[task["Stage ID"]], task["Task Info"]
        batch = next((each for each in ran if each[0] <= info["Launch Time"] <= each[1]), None)
        if batch is None:
            continue
        is_source = not stage["Parent IDs"]
        waits = [each["Update"] for each in info["Accumulables"] if each.get("Name") == "fetch wait time"]
        row = found[is_source, info["Partition ID"]]
        row[TIMES[0]] += info["Finish Time"] - first[task["Stage ID"]] - sum(map(int, waits))
        if batch[2]:
            row[TIMES[1]] += batch[1] - stage["Completion Time"] + is_source * (first[task["Stage ID"]] - batch[0])
    return found


def test_a_slow_second_vertex_is_the_bottleneck(
    attached: SparkSession, rest: Rest, tmp_path: Path, event_log: Path
) -> None:
    """The first is back-pressured, the second busy; times are those of Spark's own log, batch by batch."""
    name = "a slow second vertex"
    source = attached.readStream.format("rate-micro-batch").option("numPartitions", 2)
    stream = source.option("rowsPerBatch", ROWS).load()
    slow = stream.repartition(2).filter(SLOW)
    writer = slow.writeStream.format("noop").queryName(name).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime=f"{INTERVAL_MS} milliseconds").start()
    try:
        jid = eventually(lambda: rest.job(name))["jid"]
        told = eventually(lambda: swamped(rest, jid), 120)
        figures = shares(rest, jid)
        levels = {each: rest.get(f"/jobs/{jid}/vertices/{each}/backpressure") for each in figures}
        names = {each["id"]: each["name"] for each in rest.get(f"/jobs/{jid}")["vertices"]}
        pressed = {each: [row["backpressure-level"] for row in levels[each]["subtasks"]] for each in levels}
        done = len(query.recentProgress)
        eventually(lambda: len(query.recentProgress) > done, 60)
    finally:
        query.stop()
    print(json.dumps([told["bottleneck"], names, figures, pressed]))
    [first, second] = names
    assert [sum(row) for rows in figures.values() for row in rows] == [1000.0] * 4
    assert told["bottleneck"] == {"id": second, "name": names[second], "busy-ratio": told["bottleneck"]["busy-ratio"]}
    assert told["bottleneck"]["busy-ratio"] * 1000 == pytest.approx(max(row[0] for row in figures[second]), abs=100)
    assert told["backlogged"] is True
    assert min(row[2] for row in figures[first]) > 500 > max(row[2] for row in figures[second])
    assert set(pressed[first]) == {"high"}
    ended = eventually(lambda: (job := rest.job(name)) and job["state"] == "CANCELED" and job)
    ran = batches(query.recentProgress)
    leeway_ms, broken_off_ms = LEEWAY_MS * len(ran), ended["end-time"] - ran[-1][1]
    for (is_source, subtask), times in expected(event_log, str(query.runId), ran).items():
        columns = rest.columns(ended["jid"], first if is_source else second)
        for metric, ms in times.items():
            more_ms = float(columns[metric][subtask]) - ms
            assert -leeway_ms <= more_ms <= broken_off_ms + leeway_ms
