"""Split watermarks of real queries over files that the tests write; oracle: what Spark itself dropped as late."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark

NOON_MS = 1_800_000_000_000
DELAY_MS = 10_000
LAG_MS = 60_000
IDLENESS_S = 5
LONG_MAX = 2**63 - 1
NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass
class Files:
    """A source that a test feeds; a file is a batch."""

    folder: Path
    rows: int = field(default=0, init=False)
    files: int = field(default=0, init=False)

    def put(self, splits: Mapping[int, list[int]]) -> None:
        """Write rows: split → event times, ms after noon."""
        lines = []
        for split, times in splits.items():
            for at_ms in times:
                self.rows += 1
                lines.append(json.dumps({"id": self.rows, "split": split, "ms": NOON_MS + at_ms}))
        written = self.folder.with_name(f"{self.folder.name}-{self.files}.json")
        written.write_text("\n".join(lines))
        written.rename(self.folder / f"{self.files:03}.json")
        self.files += 1

    def read(self, spark: SparkSession) -> DataFrame:
        found = spark.readStream.schema("id long, split int, ms long").option("maxFilesPerTrigger", 1)
        rows = found.json(str(self.folder))
        return rows.withColumn("time", f.timestamp_millis("ms")).withColumn("made", f.current_timestamp())


def tapped(rows: DataFrame, name: str, idleness: str | None) -> DataFrame:
    """Rows that are dropped one by one when they are late, for each is unique."""
    found = streamgauge.tap(
        rows,
        name,
        event_time="time",
        ingest_time="made",
        partition="split",
        splits=3,
        max_out_of_orderness="10 seconds",
        idleness=idleness,
    )
    return found.withWatermark("time", "10 seconds").dropDuplicates(["id", "time"])


def start(rows: DataFrame, name: str, **trigger: Any) -> StreamingQuery:
    writer = rows.writeStream.queryName(name).format("noop")
    return (writer.trigger(**trigger) if trigger else writer).start()


def dropped(query: StreamingQuery) -> int:
    """What Spark itself says that it dropped."""
    return sum(
        operator["numRowsDroppedByWatermark"] for each in query.recentProgress for operator in each["stateOperators"]
    )


def vertices(rest: Rest, name: str) -> list[str]:
    """The vertex with the tap, and the one behind it."""
    job = eventually(lambda: rest.job(name))
    path = f"/jobs/{job['jid']}"
    found = eventually(lambda: len(told := rest.get(path)["vertices"]) == 2 and told)
    order = sorted(found, key=lambda each: "CollectMetrics" not in each["name"])
    return [f"/jobs/{job['jid']}/vertices/{each['id']}" for each in order]


def split_table(rest: Rest, name: str, records: int) -> dict[str, Any]:
    """The tap, when all of its records have been told."""

    def told() -> dict[str, Any] | None:
        if rest.job(name) is None:
            return None
        [tap] = rest.get(f"{vertices(rest, name)[0]}/splits")["taps"] or [None]
        there = tap is not None and sum(each["records"] for each in tap["splits"]) == records
        return tap if there else None

    found: dict[str, Any] = eventually(told)
    return found


def by_split(tap: Mapping[str, Any], figure: str) -> dict[str, Any]:
    return {each["id"]: each[figure] for each in tap["splits"]}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "rows"
    folder.mkdir()
    return Files(folder)


@pytest.fixture
def with_data_only(attached: SparkSession) -> Iterator[None]:
    """A batch without rows would be one in which a split had none, and come when it likes."""
    attached.conf.set(NO_DATA_BATCHES, "false")
    yield
    attached.conf.unset(NO_DATA_BATCHES)


@pytest.mark.usefixtures("with_data_only")
def test_lagging_split_is_named_with_what_spark_drops_of_it(attached: SparkSession, rest: Rest, files: Files) -> None:
    """Spark's watermark follows the fastest split, so all later records of one that is 60 s behind are dropped."""
    query = start(tapped(files.read(attached), "partitions", None), "lagging split")
    try:
        for second in (0, 1000, 2000, 3000):
            files.put({0: [second] * 4, 1: [second - LAG_MS] * 3, 2: [second + 500] * 2})
        query.processAllAvailable()
        tap = split_table(rest, "lagging split", files.rows)
        fast, slow = NOON_MS + 3500 - DELAY_MS - 1, NOON_MS + 3000 - LAG_MS - DELAY_MS - 1
        assert by_split(tap, "watermark") == {"0": fast - 500, "1": slow, "2": fast}
        assert by_split(tap, "drift-ms") == {"0": 500, "1": LAG_MS + 500, "2": 0}
        assert by_split(tap, "idle") == {"0": False, "1": False, "2": False}
        assert by_split(tap, "records") == {"0": 16, "1": 12, "2": 8}
        # Nothing is late in the first batch, nor in the one after it: late is what is behind the watermark before.
        assert by_split(tap, "records-at-risk") == {"0": 0, "1": 6, "2": 0}
        assert dropped(query) == 6
        assert (tap["watermark"], tap["operator-name"].startswith("Source: ")) == (slow, True)
        for vertex in vertices(rest, "lagging split"):
            assert rest.get(f"{vertex}/splits")["combined"]["watermark"] == slow
        [records] = rest.get(f"{vertices(rest, 'lagging split')[0]}/splits")["records"]
        assert records["latency"]["count"] == records["queueing"]["count"] == files.rows
    finally:
        query.stop()


@pytest.mark.usefixtures("with_data_only")
def test_idle_split_lets_the_others_pass_after_the_timeout(attached: SparkSession, rest: Rest, files: Files) -> None:
    """Not before: oracle are Spark's triggers. One that returns takes nothing back."""
    query = start(tapped(files.read(attached), "partitions", f"{IDLENESS_S} seconds"), "idle split")
    try:
        files.put({0: [0], 1: [-1000], 2: [0]})
        query.processAllAvailable()
        own, others = NOON_MS - 1000 - DELAY_MS - 1, NOON_MS + 2000 - DELAY_MS - 1

        def moved_on() -> bool:
            files.put({0: [2000], 2: [2000]})
            query.processAllAvailable()
            tap = split_table(rest, "idle split", files.rows)
            triggers = [datetime.fromisoformat(each["timestamp"].rstrip("Z")) for each in query.recentProgress]
            idle = (triggers[-1] - triggers[0]).total_seconds() > IDLENESS_S
            assert by_split(tap, "idle") == {"0": False, "1": idle, "2": False}
            assert by_split(tap, "watermark")["1"] == own
            assert tap["watermark"] == (others if idle else own)
            return idle

        eventually(moved_on, 60)
        files.put({0: [2000], 1: [1000], 2: [2000]})
        query.processAllAvailable()
        tap = split_table(rest, "idle split", files.rows)
        assert by_split(tap, "idle") == {"0": False, "1": False, "2": False}
        assert tap["watermark"] == others
    finally:
        query.stop()


def test_bounded_run_is_at_the_end_of_input_when_it_has_ended(attached: SparkSession, rest: Rest, files: Files) -> None:
    """Long.MAX_VALUE, and not idle; the splits keep what they had last."""
    files.put({0: [0], 1: [-LAG_MS]})
    query = start(tapped(files.read(attached), "partitions", None), "bounded splits", availableNow=True)
    query.awaitTermination(120)

    def ended() -> dict[str, Any] | None:
        tap = split_table(rest, "bounded splits", files.rows)
        return tap if tap["finished"] else None

    tap = eventually(ended)
    assert (tap["watermark"], tap["idle"]) == (LONG_MAX, False)
    assert by_split(tap, "watermark") == {"0": NOON_MS - DELAY_MS - 1, "1": NOON_MS - LAG_MS - DELAY_MS - 1}
    for vertex in vertices(rest, "bounded splits"):
        assert rest.get(f"{vertex}/splits")["combined"]["watermark"] == LONG_MAX
