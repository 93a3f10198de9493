"""The counts of every operator and subtask are Spark's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from examples import queries
from examples.replay import read_flights, replay_batches, write_batch
from tests.e2e.conftest import Rest, Rows, Truth, eventually

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, k INT, t TIMESTAMP"

Query = Callable[[SparkSession, Callable[[str], DataFrame]], DataFrame]


def write(folder: Path, file: int, rows: Iterable[int]) -> None:
    """Write one input file; ids run on, keys repeat, and event time moves a second a row."""
    folder.mkdir(exist_ok=True)
    lines = (
        json.dumps({"id": row, "k": row % 7, "t": f"2024-01-01 00:{row // 60 % 60:02d}:{row % 60:02d}"}) for row in rows
    )
    hidden = folder / f".{file}"
    hidden.write_text("\n".join(lines))
    hidden.rename(folder / f"{file}.json")
    # The file source reads files in the order of their times, which may be equal.
    os.utime(folder / f"{file}.json", (1_700_000_000 + file, 1_700_000_000 + file))


def filters(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return read("a").where("k > 2").select((f.col("id") * 2).alias("double"), "k").where("double % 3 = 0")


def watermark_aggregation(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return read("a").withWatermark("t", "20 seconds").groupBy(f.window("t", "30 seconds"), "k").count()


def union(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return read("a").select("id").union(read("b").select((f.col("id") + 1).alias("id")))


def broadcast_join(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    names = spark.createDataFrame([(k, f"name {k}") for k in range(5)], "k INT, name STRING").where("k > 0")
    return read("a").join(f.broadcast(names), "k")


def explode(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return (
        read("a")
        .select("k", f.explode(f.sequence(f.lit(0), f.col("k"))).alias("each"))
        .where("each > 0")
        .repartition(3)
    )


def deduplication(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    both = read("a").union(read("b"))
    return both.withWatermark("t", "1 minute").dropDuplicatesWithinWatermark(["id"])


def stream_stream_join(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    left = read("a").withWatermark("t", "10 seconds")
    right = read("b").withWatermark("t", "10 seconds").select(f.col("id").alias("other"), f.col("t").alias("at"))
    near = "id = other AND at >= t - INTERVAL 5 SECONDS AND at <= t + INTERVAL 5 SECONDS"
    return left.join(right, f.expr(near))


def map_in_arrow(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    def twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            yield batch

    return read("a").select("id", "k").mapInArrow(twice, "id BIGINT, k INT").where("k < 6")


def demo_departures(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return queries.departures(read("flights"), queries.read_airlines(spark))


def demo_late_aircraft(spark: SparkSession, read: Callable[[str], DataFrame]) -> DataFrame:
    return queries.late_aircraft(read("flights"))


QUERIES: list[Query] = [
    filters,
    watermark_aggregation,
    union,
    broadcast_join,
    explode,
    deduplication,
    stream_stream_join,
    map_in_arrow,
    demo_departures,
    demo_late_aircraft,
]


@pytest.fixture(scope="module", params=QUERIES, ids=lambda query: query.__name__)
def finished(
    request: pytest.FixtureRequest, attached: SparkSession, rest: Rest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Any, dict[str, Any]]:
    """A query that has run to its end: name, query, /jobs/:jid."""
    tmp_path = tmp_path_factory.mktemp(request.param.__name__)
    for file, (start, rows) in enumerate([(0, 40), (40, 55), (95, 30), (400, 60), (460, 7)]):
        write(tmp_path / "a", file, range(start, start + rows))
        # A join of streams goes on where one of them has nothing.
        if file != 1 or request.param is not stream_stream_join:
            write(tmp_path / "b", file, range(start + 3, start + rows))

    for day, batch in enumerate(islice(replay_batches(read_flights(), timedelta(days=1)), 4)):
        (tmp_path / "flights").mkdir(exist_ok=True)
        write_batch(batch, tmp_path / "flights", f"{day}.json")

    def read(side: str) -> DataFrame:
        schema = queries.SCHEMA if side == "flights" else SCHEMA
        return attached.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / side))

    name = f"exact {request.param.__name__}"
    query = (
        request.param(attached, read)
        .writeStream.format("noop")
        .queryName(name)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    job = eventually(lambda: (found := rest.job(name)) and found["state"] == "FINISHED" and found)
    return name, query, rest.get(f"/jobs/{job['jid']}")


def test_counts_equal_sparks_own(
    finished: tuple[str, Any, dict[str, Any]], rest: Rest, truth: Callable[[str], Truth]
) -> None:
    """Per operator and subtask against the event log, per operator against the SQL REST, sources against progress."""
    _, query, job = finished
    spark = truth(str(query.runId))
    input_rows = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert input_rows > 100
    sources: list[Rows] = []
    operators: dict[str, list[Rows]] = {}
    written: list[Rows] = []
    streamed = 0
    feeding = {
        edge["id"]
        for node in job["plan"]["nodes"]
        for edge in node.get("inputs", [])
        if edge["ship_strategy"] != "BROADCAST"
    }
    for vertex in job["vertices"]:
        columns = rest.columns(job["jid"], vertex["id"])
        names = vertex["name"].split(" -> ")
        if vertex["id"] in feeding:
            written.append(table(columns["numRecordsOut"]))
        for index, name in enumerate(names):
            node = re.sub(r" \d+$", "", name)
            key = re.sub("[ .:,]", "_", name)
            if name.startswith("Source: "):
                sources.append(table(columns[f"{key}.numRecordsIn"]))
                streamed += sum(sources[-1].values()) if "json" in name else 0
            elif not name.startswith("Sink: ") and node in spark.rows:
                if index == len(names) - 1 and vertex["id"] in feeding:
                    spark.rows[node].remove(
                        next(rows for rows in spark.rows[node] if same(rows, columns[f"{key}.numRecordsOut"]))
                    )
                else:
                    operators.setdefault(node, []).append(table(columns[f"{key}.numRecordsOut"]))
    assert streamed == input_rows
    assert ordered(sources) == ordered(spark.sources)
    assert ordered(written) == ordered(spark.written)
    for node, tables in operators.items():
        assert ordered(tables) == ordered(spark.rows[node]), node
        total = sum(sum(rows.values()) for rows in tables)
        assert total <= spark.totals[node], node


VERTICES = {
    "filters": 1,
    "watermark_aggregation": 2,
    "union": 1,
    "broadcast_join": 2,
    "explode": 2,
    "deduplication": 2,
    "stream_stream_join": 3,
    "map_in_arrow": 1,
    "demo_departures": 3,
    "demo_late_aircraft": 2,
}


def test_every_batch_has_the_same_vertices(finished: tuple[str, Any, dict[str, Any]]) -> None:
    """Several batches, some without rows on one side, some without any: no vertex comes twice under two ids."""
    name, query, job = finished
    assert len(query.recentProgress) > 3
    assert len(job["vertices"]) == VERTICES[name.removeprefix("exact ")], [v["name"] for v in job["vertices"]]
    assert {node["id"] for node in job["plan"]["nodes"]} == {vertex["id"] for vertex in job["vertices"]}


def test_sink_counts_equal_progress(finished: tuple[str, Any, dict[str, Any]], rest: Rest) -> None:
    """What reached the sink's subtasks is what Spark's progress says was written."""
    _, query, job = finished
    told = [progress["sink"]["numOutputRows"] for progress in query.recentProgress]
    last = job["vertices"][-1]
    columns = rest.columns(job["jid"], last["id"])
    name = "Sink__" + last["name"].rpartition("Sink: ")[2]
    assert sum(table(columns[f"{name}.numRecordsIn"]).values()) == sum(told)
    assert sum(table(columns["numRecordsOut"]).values()) == sum(told)


def test_every_vertex_reads_what_the_ones_before_it_wrote(
    finished: tuple[str, Any, dict[str, Any]], rest: Rest
) -> None:
    """Without skew or retries an exchange hands on each record once."""
    _, _, job = finished
    ins = {vertex["id"]: vertex["metrics"]["read-records"] for vertex in job["vertices"]}
    outs = {vertex["id"]: vertex["metrics"]["write-records"] for vertex in job["vertices"]}
    for node in job["plan"]["nodes"]:
        shuffled = [edge["id"] for edge in node.get("inputs", []) if edge["ship_strategy"] != "BROADCAST"]
        if shuffled:
            assert ins[node["id"]] == sum(outs[vertex] for vertex in shuffled)


def table(column: dict[int, str]) -> Rows:
    return {subtask: int(value) for subtask, value in column.items() if int(value)}


def ordered(tables: list[Rows]) -> list[list[tuple[int, int]]]:
    """Comparable; what nothing ever came through says nothing."""
    return sorted(
        sorted((partition, rows) for partition, rows in each.items() if rows) for each in tables if any(each.values())
    )


def same(rows: Rows, column: dict[int, str]) -> bool:
    return ordered([rows]) == ordered([table(column)])
