"""A tap of a real stream sees what plain Python sees in the same rows, and changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from spark_hooks.progress import milliseconds
from spark_hooks.tap_rows import SplitRow, TapRow, tap_rows
from streamgauge.errors import TapError

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, part INT, site STRING, t TIMESTAMP, `a.b` STRING, far STRUCT<t: TIMESTAMP, part: INT>"
BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Event:
    """A row of the input; `at_ms` after BEGAN."""

    id: int
    part: int | None
    site: str | None
    at_ms: int | None

    @property
    def time_ms(self) -> int | None:
        return None if self.at_ms is None else int(BEGAN.timestamp()) * 1000 + self.at_ms

    def json(self) -> str:
        when = None if self.at_ms is None else (BEGAN + timedelta(milliseconds=self.at_ms)).isoformat()
        row = {"id": self.id, "part": self.part, "site": self.site, "t": when, "a.b": f"x{self.id % 3}"}
        return json.dumps(row | {"far": {"t": when, "part": self.part}})


def events(first: int, count: int) -> list[Event]:
    """Rows with all that may be missing, out of order, to the millisecond."""
    return [
        Event(
            row,
            None if row % 13 == 0 else row % 5 - 1,
            None if row % 17 == 0 else "north 's\\,\"[" if row % 4 else "sö",
            None if row % 7 == 0 else (row * 7919) % 60_000 + row,
        )
        for row in range(first, first + count)
    ]


FILES = [events(0, 120), events(120, 80), events(200, 3), [Event(203, None, None, None)]]


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Callable[[], DataFrame]:
    """Streams of FILES, one a batch."""
    write(tmp_path / "in", FILES)
    return lambda: spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))


def write(folder: Path, files: Iterable[list[Event]], first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(files, first):
        path = folder / f"{number}.json"
        path.write_text("\n".join(row.json() for row in rows))
        # Spark reads files by their age.
        os.utime(path, (number, number))


def run(frame: DataFrame, folder: Path, mode: str = "append", form: str = "noop") -> StreamingQuery:
    """Run a query to its end."""
    writer = frame.writeStream.format(form).outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(*([str(folder / "out")] if form == "parquet" else []))
    query.awaitTermination(180)
    assert query.exception() is None
    return query


def progress(query: StreamingQuery) -> list[dict[str, Any]]:
    """As Spark writes it; `recentProgress` has rows as tuples."""
    return [json.loads(each.json()) for each in query._jsq.recentProgress()]


def seen(query: StreamingQuery, name: str = "tap") -> list[TapRow]:
    """What a tap saw in every batch that had rows."""
    rows = [row for each in progress(query) for row in tap_rows(each["observedMetrics"]) if row.name == name]
    return [row for row in rows if row.rows]


def split(name: str, rows: list[Event]) -> SplitRow:
    times = [row.time_ms for row in rows if row.time_ms is not None]
    return SplitRow(name, len(times), min(times, default=None), max(times, default=None))


def assert_sees(found: TapRow, rows: list[Event], by: Callable[[Event], object], watched: list[Any]) -> None:
    """A batch's figures are those of its rows."""
    whole = split("", rows)
    assert (found.rows, found.event_min_ms, found.event_max_ms) == (len(rows), whole.min_ms, whole.max_ms)
    assert list(found.splits) == [split(str(each), [row for row in rows if by(row) == each]) for each in watched]
    others = [row for row in rows if by(row) is not None and by(row) not in watched]
    assert found.unwatched == split("", others).rows


# ---- What it sees


@pytest.mark.parametrize(
    ("partition", "splits", "by", "watched"),
    [
        ("part", 3, lambda row: row.part, [0, 1, 2]),
        ("part", [3, -1], lambda row: row.part, [3, -1]),
        (lambda: f.col("far.part") * 2, [0, 4], lambda row: row.part and row.part * 2, [0, 4]),
        ("site", ["sö", "north 's\\,\"[", "none"], lambda row: row.site, ["sö", "north 's\\,\"[", "none"]),
        (None, None, lambda _: None, []),
    ],
    ids=["a number of splits", "listed integers", "an expression", "texts", "no splits"],
)
def test_tap_sees_what_python_sees(
    read: Callable[[], DataFrame], tmp_path: Path, partition: Any, splits: Any, by: Any, watched: list[Any]
) -> None:
    """Counts and event times of every split in every batch, to the millisecond; null is a row and nothing else."""
    partition = partition() if callable(partition) else partition
    frame = streamgauge.tap(read(), "tap", event_time="t", partition=partition, splits=splits)
    found = seen(run(frame, tmp_path))
    assert len(found) == len(FILES)
    for row, rows in zip(found, FILES, strict=True):
        assert_sees(row, rows, by, watched)
    assert all(row.by == (None if partition is None else "column") for row in found)


def test_source_splits_are_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Split i is what task i reads."""
    write(tmp_path / "in", FILES[:2])
    frame = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in")).where("id >= 0")
    spark.conf.set("spark.sql.files.openCostInBytes", "128m")
    try:
        tapped = streamgauge.tap(frame, "tap", event_time="t", partition=streamgauge.SOURCE_SPLIT, splits=1)
        (found,) = seen(run(tapped, tmp_path))
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")
    both = [split("0", rows) for rows in FILES[:2]]
    assert found.by == "source"
    assert found.rows == sum(map(len, FILES[:2]))
    assert found.splits[0] in both
    assert found.splits[0].rows + found.unwatched == sum(each.rows for each in both)


def test_delays_reach_from_ingest_to_trigger(spark: SparkSession, tmp_path: Path) -> None:
    """Every record with an ingest time has its delay at the batch's trigger, within its bucket."""
    now_ms = int(datetime.now(timezone.utc).timestamp() * 1000)
    began_ms = int(BEGAN.timestamp()) * 1000
    ages_ms = [0, 5, 700, 31_000, 5_000_000, 900_000_000_000, -600_000_000]
    rows = [Event(number, 0, None, now_ms - age_ms - began_ms) for number, age_ms in enumerate(ages_ms)]
    write(tmp_path / "in", [[*rows, Event(99, 0, None, None)], rows])
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    query = run(streamgauge.tap(frame, "tap", ingest_time="t"), tmp_path)
    found = seen(query)
    assert [sum(row.delays.values()) for row in found] == [len(ages_ms)] * 2
    for row, told in zip(found, progress(query), strict=False):
        started_ms = milliseconds(told["timestamp"])
        ended_ms = started_ms + told["durationMs"]["triggerExecution"]
        delays_ms = sorted(delay for delay, count in row.delays.items() for _ in range(count))
        assert delays_ms[0] == -1
        for delay_ms, age_ms in zip(delays_ms[1:], sorted(ages_ms)[1:], strict=True):
            assert 0.967 * (started_ms - now_ms + age_ms) - 2 <= delay_ms <= 1.033 * (ended_ms - now_ms + age_ms) + 2


def test_nothing_is_compiled_anew_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The trigger's time differs in every batch; where Spark takes it in an aggregate, the code does not."""
    if spark.version.startswith("3."):
        pytest.skip("Spark 3.5 wants a column, and compiles it with the trigger's time in it")
    write(tmp_path / "in", FILES)
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    tapped = streamgauge.tap(frame, "tap", event_time="t", ingest_time="t", partition="part", splits=3)
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    run(tapped, tmp_path / "first")
    before = compiled.getCount()
    assert len(seen(run(tapped, tmp_path / "second"))) == len(FILES)
    assert compiled.getCount() == before


def test_taps_before_and_behind_a_shuffle_and_of_both_sides_of_a_join(
    read: Callable[[], DataFrame], tmp_path: Path
) -> None:
    """Each sees what comes by where it stands; adaptive execution or not."""
    left = streamgauge.tap(read().withWatermark("t", "1 hour"), "left", event_time="t")
    left = streamgauge.tap(left.repartition(3, "part"), "shuffled", event_time="t", partition="part", splits=3)
    right = streamgauge.tap(read().selectExpr("id AS other", "t AS at").withWatermark("at", "1 hour"), "right")
    joined = left.join(right, f.expr("id = other AND at BETWEEN t AND t + INTERVAL 1 MINUTE"))
    query = run(streamgauge.tap(joined, "joined", event_time="at"), tmp_path)
    for name in ("left", "shuffled"):
        assert [row.rows for row in seen(query, name)] == [len(rows) for rows in FILES]
    for row, rows in zip(seen(query, "shuffled"), FILES, strict=True):
        assert_sees(row, rows, lambda event: event.part, [0, 1, 2])
    assert sum(row.rows for row in seen(query, "right")) == sum(map(len, FILES))
    dated = [row for rows in FILES for row in rows if row.at_ms is not None]
    assert sum(row.rows for row in seen(query, "joined")) == len(dated)


def test_restart_goes_on_with_the_rows_that_are_new(read: Callable[[], DataFrame], tmp_path: Path) -> None:
    """A batch's figures are its own; another out-of-orderness, and other splits, need no new checkpoint."""
    run(streamgauge.tap(read(), "tap", event_time="t", partition="part", splits=2), tmp_path)
    more = events(300, 40)
    write(tmp_path / "in", [more], first=len(FILES))
    again = streamgauge.tap(
        read(), "tap", event_time="t", partition="part", splits=4, max_out_of_orderness="5 seconds", idleness="1 minute"
    )
    (found,) = seen(run(again, tmp_path))
    assert_sees(found, more, lambda event: event.part, [0, 1, 2, 3])
    assert (found.max_out_of_orderness_ms, found.idleness_ms) == (5_000, 60_000)


# ---- What it leaves alone


def test_result_is_what_it_was(spark: SparkSession, read: Callable[[], DataFrame], tmp_path: Path) -> None:
    """Columns, their order, types and metadata, and rows."""
    options = {"event_time": "t", "ingest_time": "far.t", "partition": "part", "max_out_of_orderness": "1 second"}
    bare = read().withColumn("__streamgauge_delay", f.lit(1))
    tapped = streamgauge.tap(bare, "tap", **options)
    assert tapped.schema == bare.schema
    run(bare, tmp_path / "bare", form="parquet")
    run(tapped, tmp_path / "tapped", form="parquet")
    one, other = (spark.read.parquet(str(tmp_path / each / "out")) for each in ("bare", "tapped"))
    assert one.count() == other.count() == sum(map(len, FILES))
    assert one.exceptAll(other).isEmpty()


def test_columns_of_one_name_and_hidden_ones_stay(read: Callable[[], DataFrame], tmp_path: Path) -> None:
    """Two of a name are both there; what Spark hides, and what a frame called its own, can still be selected."""
    source = read()
    twice = source.select("*", "id").alias("mine")
    tapped = streamgauge.tap(twice, "tap", event_time="mine.t", ingest_time="t", partition=streamgauge.SOURCE_SPLIT)
    assert tapped.columns == [*source.columns, "id"]
    assert tapped.select("mine.part", source["t"], "`a.b`").columns == ["part", "t", "a.b"]
    plain = streamgauge.tap(source, "tap", event_time="t", ingest_time="t", partition=streamgauge.SOURCE_SPLIT)
    names = plain.select("_metadata.file_name")
    assert len(seen(run(names, tmp_path))) == len(FILES)


@pytest.mark.parametrize("first", ["watermark", "tap"])
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_watermark_goes_through(read: Callable[[], DataFrame], tmp_path: Path, first: str, mode: str) -> None:
    """Before or behind the tap, in every output mode; what is aggregated is the same."""

    def query(folder: str, tap: bool) -> list[dict[str, Any]]:
        frame = read().where("id < 200")
        frame = frame.withWatermark("t", "10 seconds") if first == "watermark" else frame
        options = {"event_time": "t", "ingest_time": "t", "partition": "part"}
        frame = streamgauge.tap(frame, "tap", **options) if tap else frame
        frame = frame.withWatermark("t", "10 seconds") if first == "tap" else frame
        told = progress(run(frame.groupBy(f.window("t", "5 seconds")).count(), tmp_path / folder, mode))
        return [
            {"event time": each["eventTime"], "state": each["stateOperators"][0]["numRowsTotal"], "id": each["batchId"]}
            for each in told
        ]

    bare = query("bare", tap=False)
    assert query("tapped", tap=True) == bare
    assert any(each["event time"]["watermark"] > "2026" for each in bare)


def test_foreach_batch_gets_the_rows(read: Callable[[], DataFrame], tmp_path: Path) -> None:
    """And none of the tap's columns."""
    got: list[tuple[list[str], int]] = []

    def each(batch: DataFrame, _: int) -> None:
        got.append((batch.columns, batch.count()))

    tapped = streamgauge.tap(read(), "tap", event_time="t", ingest_time="t", partition=streamgauge.SOURCE_SPLIT)
    query = tapped.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination(180)
    assert got == [(read().columns, len(rows)) for rows in FILES]
    assert [row.rows for row in seen(query)] == [len(rows) for rows in FILES]


# ---- What it refuses


REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "unknown column": (
        lambda: {"event_time": "nope"},
        r"tap\(event_time='nope'\): expected a column; there are: id, part, ",
    ),
    "dots without backticks": (lambda: {"event_time": "a.b"}, "a name with dots needs backticks"),
    "ambiguous column": (lambda: {"event_time": "id"}, r"tap\(event_time='id'\)"),
    "no column": (lambda: {"event_time": 3}, r"tap\(event_time=3\): expected a column: its name, or a Column"),
    "several columns": (lambda: {"event_time": f.col("far.*")}, r"tap\(event_time=Column"),
    "an aggregate": (lambda: {"event_time": f.max("t")}, r"tap\(event_time=Column"),
    "a struct": (lambda: {"event_time": "far"}, r"tap\(event_time='far'\): is struct<.*>, expected timestamp"),
    "a long": (lambda: {"ingest_time": "part"}, r"tap\(ingest_time='part'\): is int, expected timestamp"),
    "no time zone": (lambda: {"event_time": f.col("t").cast("timestamp_ntz")}, "is timestamp_ntz, which is no moment"),
    "a date": (lambda: {"event_time": f.to_date("t")}, "is date, expected timestamp"),
    "double split": (lambda: {"partition": f.lit(1.5)}, "is double, expected a column of integers or of strings"),
    "struct split": (lambda: {"partition": "far"}, "expected a column of integers or of strings"),
    "text without values": (lambda: {"partition": "site"}, r"'site'\): is string, expected splits=\["),
    "text, but integers": (lambda: {"partition": "site", "splits": [1, 2]}, r"is string, expected splits=\["),
    "integers, but texts": (lambda: {"partition": "part", "splits": ["1"]}, r"is int, but splits=\[…\] lists texts"),
    "behind a shuffle": (
        lambda: {"partition": streamgauge.SOURCE_SPLIT},
        "Deduplicate stands between the source and the tap",
    ),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_columns_that_cannot_be_tapped_are_refused_at_once(
    read: Callable[[], DataFrame], options: Callable[[], dict[str, Any]], message: str
) -> None:
    """The message names the argument, the column and the rule."""
    frame = read().dropDuplicates(["id"]).select("*", "id")
    with pytest.raises(TapError, match=message):
        streamgauge.tap(frame, "tap", **{"event_time": "t"} | options())


def test_batch_dataframe_is_refused(spark: SparkSession) -> None:
    """It has no watermark, and no progress to tell."""
    with pytest.raises(TapError, match=r"tap\(df=…\): is a batch DataFrame"):
        streamgauge.tap(spark.range(3), "tap")


def test_second_tap_of_a_name_is_refused(read: Callable[[], DataFrame]) -> None:
    """Wherever in the plan the first one stands, in a join's other side too; another name is taken."""
    tapped = streamgauge.tap(read(), "tap", event_time="t").where("id > 3").groupBy("part").count()
    with pytest.raises(TapError, match=r"tap\(name='tap'\): the stream has a tap of this name already"):
        streamgauge.tap(tapped, "tap")
    joined = read().join(tapped, "part")
    with pytest.raises(TapError, match="already"):
        streamgauge.tap(joined, "tap", event_time="t")
    assert streamgauge.tap(joined, "other").columns == joined.columns
