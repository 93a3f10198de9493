"""A user's job in a driver of its own: reads JSON files, joins, aggregates; two lines attach the hooks."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import streamgauge


def main(collector: str, folder: Path) -> None:
    """Run the query over what lies in `folder`, tell its rows, and wait for a line on standard input."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("driver")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    streamgauge.attach(spark, url=collector)
    flights = spark.readStream.schema("id BIGINT, k INT, t TIMESTAMP").option("maxFilesPerTrigger", 1)
    counted = (
        flights.json(str(folder / "in"))
        .withWatermark("t", "20 seconds")
        .withColumn("now", f.current_timestamp())
        .groupBy(f.window("t", "30 seconds"), "k")
        .agg(f.count("*").alias("n"), f.max("now").alias("now"))
    )
    query = (
        counted.writeStream.format("noop")
        .outputMode("update")
        .queryName("restarted")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("rows", sum(progress["numInputRows"] for progress in query.recentProgress), flush=True)
    sys.stdin.readline()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
