"""
A driver whose event log is replayed: queries with state and without, one that fails, one that ends by itself, batches.

It runs on every supported version of Spark, with the hooks or without.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SCHEMA = "id BIGINT, k INT, t TIMESTAMP"
PASSWORD = "korrekt-pferd-batterie"


def main(folder: Path, collector: str, *conf: str) -> None:
    """
    Run everything, one after the other.

    Args:
        folder: Of inputs, outputs and checkpoints; the event log goes to `log` in it.
        collector: Where the hooks push; '' for none.
        conf: Spark's settings more, name=value.
    """
    (folder / "log").mkdir(parents=True, exist_ok=True)
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("replayed")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", (folder / "log").as_uri())
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.worker.password", PASSWORD)
    )
    for setting in conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if collector:
        import streamgauge

        streamgauge.attach(spark, url=collector)
    for each in (counted, written, handed, failing, batches):
        each(spark, folder)
        # The next one begins in another second of the log.
        time.sleep(0.2)
    if collector:
        # The last push of the live hooks comes with the application's end.
        time.sleep(1.2)
    spark.stop()


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """A stream of three files, a file a batch."""
    found = folder / name
    found.mkdir(exist_ok=True)
    for file in range(3):
        rows = range(100 * file, 100 * file + 60)
        lines = [
            json.dumps({"id": row, "k": row % 7, "t": f"2024-01-01 00:{row // 60:02d}:{row % 60:02d}"}) for row in rows
        ]
        path = found / f"{file}.json"
        if not path.exists():
            path.write_text("\n".join(lines))
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(found))


def counted(spark: SparkSession, folder: Path) -> None:
    """State, a watermark, two sources and what observe() sees; stopped from outside."""
    both = read(spark, folder, "a").union(read(spark, folder, "b"))
    query = (
        both.withWatermark("t", "20 seconds")
        .observe("seen", f.count("*").alias("rows"), f.max("id").alias("greatest"))
        .groupBy(f.window("t", "30 seconds"), "k")
        .count()
        .writeStream.format("noop")
        .outputMode("update")
        .queryName("counted")
        .option("checkpointLocation", str(folder / "checkpoints" / "counted"))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    query.processAllAvailable()
    time.sleep(12.0)
    query.stop()


def written(spark: SparkSession, folder: Path) -> None:
    """An AvailableNow query without a name, into files."""
    (
        read(spark, folder, "a")
        .where("k > 2")
        .writeStream.format("json")
        .option("checkpointLocation", str(folder / "checkpoints" / "written"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
        .awaitTermination()
    )


def handed(spark: SparkSession, folder: Path) -> None:
    """Batches that are handed to a function of the user's."""

    def take(batch: DataFrame, _: int) -> None:
        batch.groupBy("k").count().write.format("noop").mode("overwrite").save()

    (
        read(spark, folder, "b")
        .writeStream.foreachBatch(take)
        .queryName("handed")
        .option("checkpointLocation", str(folder / "checkpoints" / "handed"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def failing(spark: SparkSession, folder: Path) -> None:
    """Its second batch fails, with a secret in the message."""
    message = f.lit(f"no such thing, password={PASSWORD}")
    query = (
        read(spark, folder, "a")
        .withColumn("checked", f.when(f.col("id") < 150, f.col("id")).otherwise(f.raise_error(message).cast("bigint")))
        .writeStream.format("noop")
        .queryName("failing")
        .option("checkpointLocation", str(folder / "checkpoints" / "failing"))
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:  # noqa: BLE001  that is what it is for
        print("failed", type(error).__name__, flush=True)


def batches(spark: SparkSession, folder: Path) -> None:
    """Executions outside streaming: adaptive, with a broadcast, a subquery and a sort; and one that fails."""
    frame = spark.read.schema(SCHEMA).json(str(folder / "a"))
    small = spark.range(7).withColumnRenamed("id", "k")
    describe = spark.sparkContext.setJobDescription
    describe("joined")
    frame.join(f.broadcast(small), "k").groupBy("k").count().collect()
    describe("sorted")
    frame.repartition(4).sort("id").write.format("noop").mode("overwrite").save()
    frame.createOrReplaceTempView("seen")
    describe("subquery")
    spark.sql("SELECT count(*) FROM seen WHERE id > (SELECT avg(id) FROM seen)").collect()
    describe("broken")
    try:
        frame.select(f.raise_error(f.lit("broken")).alias("broken")).collect()
    except Exception as error:  # noqa: BLE001  that is what it is for
        print("failed", type(error).__name__, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
