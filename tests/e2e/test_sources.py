"""What the driver itself knows of each source, against Spark's progress."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming import StreamingQuery

from streamgauge import names
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark


def coordinators(rest: Rest, name: str) -> list[tuple[str, dict[str, str]]]:
    """Of a job by name each source operator's filtered name, and what its metrics say."""
    job = rest.job(name)
    if job is None:
        return []
    found: dict[tuple[str, str], dict[str, str]] = {}
    for vertex in rest.get(f"/jobs/{job['jid']}")["vertices"]:
        path = f"/jobs/{job['jid']}/vertices/{vertex['id']}/jm-operator-metrics"
        ids = [metric["id"] for metric in rest.get(path)]
        for metric in rest.get(f"{path}?get={','.join(ids)}"):
            operator, _, own = metric["id"].partition(f".{names.COORDINATOR}")
            found.setdefault((vertex["id"], operator), {})[own] = metric["value"]
    return [(operator, told) for (_, operator), told in found.items()]


def run(frame: DataFrame, name: str) -> StreamingQuery:
    query = frame.writeStream.queryName(name).format("noop").start()
    eventually(lambda: len([told for told in query.recentProgress if told["numInputRows"]]) >= 2, 60)
    query.stop()
    return query


def rows(query: StreamingQuery) -> list[int]:
    """Rows of each source, as Spark's progress has them, all batches together."""
    return [
        sum(told["sources"][index]["numInputRows"] for told in query.recentProgress)
        for index in range(len(query.lastProgress["sources"]))
    ]


def test_two_streams_are_told_apart(attached: SparkSession, rest: Rest) -> None:
    """Of a join of two streams each source has its own rows."""
    slow, fast = (
        attached.readStream.format("rate")
        .option("rowsPerSecond", number)
        .load()
        .withColumnRenamed("value", f"v{number}")
        for number in (3, 50)
    )
    slow, fast = slow.withColumnRenamed("timestamp", "t3"), fast.withColumnRenamed("timestamp", "t50")
    joined = slow.withWatermark("t3", "1 second").join(
        fast.withWatermark("t50", "1 second"), (col("v3") == col("v50")) & (col("t3") >= col("t50"))
    )
    query = run(joined, "two sources")
    expected = sorted(map(str, rows(query)))
    assert expected[0] != expected[1]
    eventually(lambda: sorted(told[names.INPUT_ROWS] for _, told in coordinators(rest, "two sources")) == expected)


def test_stream_of_files_is_told_with_its_rates(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """A V1 source: rows of the run, and the rates of its last batch, as Spark's progress has them."""
    for number in range(3):
        (tmp_path / f"{number}.json").write_text('{"a": 1}\n' * (number + 1))
    stream = attached.readStream.schema("a long").option("maxFilesPerTrigger", 1).json(str(tmp_path))
    query = run(stream, "files")
    last = query.lastProgress["sources"][0]

    def told() -> list[tuple[str, list[str | float]]]:
        return [
            (
                source,
                [told[names.INPUT_ROWS], *(float(told[rate]) for rate in (names.INPUT_RATE, names.PROCESSED_RATE))],
            )
            for source, told in coordinators(rest, "files")
        ]

    expected = [str(rows(query)[0]), last[names.INPUT_RATE], last[names.PROCESSED_RATE]]
    eventually(lambda: told() == [("Source__json", expected)])


def test_stream_joined_with_a_table(attached: SparkSession, rest: Rest) -> None:
    """The table is scanned too, but is no source of the query."""
    table = attached.range(10).withColumnRenamed("id", "value")
    stream = attached.readStream.format("rate").option("rowsPerSecond", 50).load()
    query = run(stream.join(table, "value", "left"), "stream and table")
    expected = [("Source__RateStream", str(rows(query)[0]))]
    eventually(
        lambda: [(name, told[names.INPUT_ROWS]) for name, told in coordinators(rest, "stream and table")] == expected
    )


def test_source_that_is_read_twice_is_not_told(attached: SparkSession, rest: Rest) -> None:
    """Spark names it once for two scans; which had how many rows nobody knows."""
    stream = attached.readStream.format("rate").option("rowsPerSecond", 50).load()
    run(stream.union(stream), "read twice")
    eventually(lambda: (rest.job("read twice") or {}).get("state") == "CANCELED")
    assert coordinators(rest, "read twice") == []
