"""A user's driver with a query of each fate: it flows, has read all there is, finished, failed, or was stopped."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter

import streamgauge

FLOWS, STILL, FINISHED, FAILED, STOPPED = "flows", "still", "finished", "failed", "stopped"
NAMES = (FLOWS, STILL, FINISHED, FAILED, STOPPED)
FILES, FILE_ROWS = 4, 250
"""
What each query but the flowing one reads: batches of one file, the latest rows in the last of them. So the watermark
goes on with it, and a batch without rows comes after them all, in which no source has anything to do.
"""
FIRST_S = 1_767_225_600
USER_ERROR = "row 700 is not for us"
PASSWORD = "a-secret-of-the-job"
"""In the configuration; no page and no answer may show it."""


def write_input(folder: Path) -> None:
    """Write FILES files of FILE_ROWS rows; ids count up from 0, one row a second of event time."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        ids = range(number * FILE_ROWS, (number + 1) * FILE_ROWS)
        lines = [
            json.dumps({"id": i, "k": i % 7, "t": f"2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z"})
            for i in ids
        ]
        path = folder / f"{number}.json"
        path.write_text("\n".join(lines))
        # Spark reads what was changed first before the rest.
        os.utime(path, (FIRST_S + number, FIRST_S + number))


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """Return what `write_input` wrote as a stream, a file a batch."""
    return spark.readStream.schema("id BIGINT, k INT, t TIMESTAMP").option("maxFilesPerTrigger", 1).json(str(folder))


def counted(rows: DataFrame) -> DataFrame:
    """Count by window and key: two vertices, a state, and text in the plan that is no HTML."""
    return (
        rows.where("k < 100")
        .withWatermark("t", "20 seconds")
        .groupBy(f.window("t", "30 seconds"), "k")
        .agg(f.count("*").alias("n"))
    )


def main(collector: str, folder: Path) -> None:
    """Start every query, say so, and wait for a line on standard input."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("clients")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.heartbeatInterval", "1s")
        .config("spark.example.password", PASSWORD)
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    streamgauge.attach(spark, url=collector)
    inputs = folder / "in"
    write_input(inputs)
    flow = spark.readStream.format("rate").option("rowsPerSecond", 200).load()

    def writer(name: str, rows: DataFrame) -> DataStreamWriter:
        state = str(folder / f"{name}-state")
        return rows.writeStream.format("noop").outputMode("update").queryName(name).option("checkpointLocation", state)

    grouped = flow.select((f.col("value") % 7).alias("k")).groupBy("k").count()
    writer(FLOWS, grouped).trigger(processingTime="2 seconds").start()
    still = counted(read(spark, inputs).observe("seen", f.count("*").alias("rows"), f.max("id").alias("greatest")))
    writer(STILL, still).trigger(processingTime="1 second").start().processAllAvailable()
    writer(FINISHED, counted(read(spark, inputs))).trigger(availableNow=True).start().awaitTermination()
    broken = read(spark, inputs).where(f"isnull(assert_true(id < 700, '{USER_ERROR}'))")
    with contextlib.suppress(StreamingQueryException):
        writer(FAILED, counted(broken)).start().awaitTermination()
    stopped = writer(STOPPED, counted(read(spark, inputs))).start()
    stopped.processAllAvailable()
    stopped.stop()
    print("ready", flush=True)
    sys.stdin.readline()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
