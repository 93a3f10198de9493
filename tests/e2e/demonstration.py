"""The queries that stand in for the jobs that the recorded Flink ran: one of each of its fates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from tests.contract.recordings import recordings
from tests.contract.walk import Places
from tests.e2e.conftest import Rest, eventually
from tests.e2e.test_exact import SCHEMA, write

FLINK_JOBS = {each.name.removesuffix("__job"): each.body["jid"] for each in recordings() if each.name.endswith("__job")}
"""Flink's id of main, slow, fail and finite."""
FLINK_VERTICES = {
    each.name.rpartition("__")[2]: each.body["id"]
    for each in recordings()
    if each.name in ("main__v0", "main__v1", "main__v2")
}
_ROWS_PER_S = 20
_WAIT_S = 120.0


def observed(rows: DataFrame) -> DataFrame:
    """The same rows, counted under the name that the accumulator of the recorded Flink's user had."""
    return rows.observe("my-acc", f.count(f.lit(1)).alias("rows"))


def counted(spark: SparkSession) -> DataFrame:
    """Source, deduplication, windows: three stages with state, a watermark and a metric of the user's."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", _ROWS_PER_S).option("numPartitions", 2).load()
    watched = observed(rows).withWatermark("timestamp", "1 second")
    distinct = watched.dropDuplicatesWithinWatermark(["value"])
    return distinct.groupBy(f.window("timestamp", "1 second"), (f.col("value") % 7).alias("k")).count()


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """Three files of 40 rows, a file a batch, counted by key."""
    folder.mkdir()
    for file in range(3):
        write(folder / "in", file, range(40 * file, 40 * file + 40))
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    return observed(files).groupBy("k").count()


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fail as soon as a key has been counted more than a batch has of it."""
    for batch in batches:
        if any(count > 6 for count in batch["count"].to_pylist()):
            raise ValueError("a user's mistake: a key was counted more than six times")
        yield batch


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take a tenth of a second for what takes none."""
    for batch in batches:
        time.sleep(0.1)
        yield batch


class Demonstration:
    """
    Runs the queries and finds what the service calls them.

    Args:
        spark: With our hooks.
        rest: The service that they push to.
        folder: Where inputs and checkpoints are.
    """

    def __init__(self, spark: SparkSession, rest: Rest, folder: Path) -> None:
        self._spark = spark
        self._rest = rest
        self._folder = folder
        self._queries: dict[str, StreamingQuery] = {}

    @contextmanager
    def running(self) -> Iterator[Places]:
        """Start them all, those that end first, wait until each is where it is to be, and stop them at the end."""
        try:
            failed = read(self._spark, self._folder / "fail").mapInArrow(failing, "k INT, count BIGINT")
            self._start("fail", failed, "update", processingTime="0 seconds")
            self._start("finite", read(self._spark, self._folder / "finite"), "update", availableNow=True)
            self._start("stopped", read(self._spark, self._folder / "stopped"), "update", processingTime="0 seconds")
            eventually(lambda: self._queries["stopped"].lastProgress, _WAIT_S)
            self._queries["stopped"].stop()
            self._start("main", counted(self._spark), "append", processingTime="1 second")
            slow = self._spark.readStream.format("rate").option("rowsPerSecond", 5).load()
            slow = observed(slow).withWatermark("timestamp", "1 second").groupBy("value").count()
            slow = slow.mapInArrow(slowly, "value BIGINT, count BIGINT")
            self._start("slow", slow, "update", processingTime="0 seconds")
            yield self._places()
        finally:
            for query in self._queries.values():
                query.stop()

    def _start(self, name: str, frame: DataFrame, mode: str, **trigger: Any) -> None:
        writer = frame.writeStream.format("noop").queryName(f"conformance {name}").outputMode(mode)
        checkpoint = str(self._folder / name / "checkpoint")
        self._queries[name] = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    def _places(self) -> Places:
        jobs = {
            "main": self._job("main", "RUNNING", vertices=3),
            "slow": self._job("slow", "RUNNING", vertices=2),
            "fail": self._job("fail", "FAILED", vertices=2),
            "finite": self._job("finite", "FINISHED", vertices=2),
        }
        self._job("stopped", "CANCELED", vertices=2)
        executors = [each["id"] for each in self._rest.get("/taskmanagers")["taskmanagers"]]
        places = Places({"127.0.0.1:33081-ee3b94": executors[0], "127.0.0.1:33695-4aa8b7": executors[-1]})
        for name, job in jobs.items():
            ours = [vertex["id"] for vertex in job["vertices"]]
            chosen = dict(zip(("v0", "v1", "v2"), (ours[0], ours[1], ours[-1]), strict=True))
            theirs = FLINK_JOBS[name]
            places.ids[theirs] = job["jid"]
            places.vertices[theirs] = {FLINK_VERTICES[key]: vertex for key, vertex in chosen.items()}
            places.checkpoints[theirs] = partial(self._checkpoint, job["jid"])
        # Flink gave an application of one job that job's id.
        places.applications[FLINK_JOBS["slow"]] = jobs["slow"]["application-id"]
        return places

    def _job(self, name: str, state: str, vertices: int) -> dict[str, Any]:
        """/jobs/:jid of a query, once it is in `state`, has ended batches and all its vertices."""

        def told() -> dict[str, Any] | None:
            found = self._rest.job(f"conformance {name}")
            if found is None or found["state"] != state:
                return None
            job: dict[str, Any] = self._rest.get(f"/jobs/{found['jid']}")
            batches = self._rest.get(f"/jobs/{found['jid']}/metrics?get=numberOfCompletedCheckpoints")
            ready = len(job["vertices"]) >= vertices and batches and int(batches[0]["value"]) >= 1
            return job if ready else None

        found: dict[str, Any] = eventually(told, _WAIT_S)
        return found

    def _checkpoint(self, jid: str) -> str:
        """The latest checkpoint that was completed; any number where the service tells of none."""
        answer = self._rest.ask("GET", f"/jobs/{jid}/checkpoints")
        if answer.status != "200" or not answer.body["latest"]["completed"]:
            return "0"
        return str(answer.body["latest"]["completed"]["id"])
