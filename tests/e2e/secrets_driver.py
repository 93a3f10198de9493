"""A user's job that has secrets wherever a user can put them; each begins with MARK."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType

import streamgauge

MARK = "Zq7"
KNOWN = f"{MARK}-of-the-configuration"

SETTINGS = {
    "spark.x.password": KNOWN,
    "spark.hadoop.fs.s3a.secret.key": f"{MARK}-s3a",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY": f"{MARK}-env",
    "spark.executorEnv.AWS_ACCESS_KEY_ID": f"{MARK}-env-id",
    "spark.streamgauge.token": f"{MARK}-token",
    "spark.driver.extraJavaOptions": f"-Dmy.secret={MARK}-option -Dmy.url=jdbc:x://me:{MARK}-url@h/db -Dplain=seen",
    "spark.driver.extraClassPath": f"/nowhere/password={MARK}-path",
    "spark.sql.catalog.pg.url": f"jdbc:postgresql://me:{MARK}-catalog@h/db",
}


def main(collector: str, folder: Path) -> None:
    """Run a query that writes, one that fails and a batch; print 'done' and wait for a line on standard input."""
    builder = SparkSession.builder.master("local[2]").appName(f"secrets token={MARK}-app")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = (
        builder.config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.heartbeatInterval", "1s")
        .config("spark.log.level", "OFF")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    streamgauge.attach(spark, url=collector)
    spark.conf.set("spark.y.token", f"{MARK}-session")
    spark.conf.set("spark.y.endpoint", f"https://me:{MARK}-endpoint@h/")
    spark.conf.set("spark.y.plain", "seen")

    rows = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 5)
        .option("password", f"{MARK}-read")
        .load()
        .withColumn("url", f.concat(f.lit(f"jdbc:x://h/db?user=a&password={MARK}-literal"), f.col("value")))
        .withColumn("bare", f.concat(f.lit(KNOWN), f.col("value")))
        .observe(f"rows password={MARK}-observed", f.count(f.lit(1)).alias(f"token={MARK}-column"))
    )

    def write(batch: DataFrame, _: int) -> None:
        writer: Any = batch.select("value", "url").write.format("jdbc").mode("append")
        url = f"jdbc:derby:memory:flights;create=true;user=me;password={MARK}-derby"
        writer.option("url", url).option("dbtable", "t").option("password", f"{MARK}-write").save()

    # A table made by the writer itself takes no text: Derby has another type for it.
    written = (
        rows.groupBy("value", "url", "bare")
        .count()
        .writeStream.outputMode("update")
        .queryName(f"written token={MARK}-name")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("password", f"{MARK}-sink")
        .foreachBatch(write)
        .start()
    )
    console = rows.writeStream.format("noop").queryName("plain").start()

    @f.udf(LongType())
    def fails(value: int) -> int:
        raise ValueError(f"no login with password={MARK}-raised, nor with {KNOWN}: {value}")

    failing = rows.select(fails("value")).writeStream.format("noop").queryName("failing").start()
    try:
        failing.awaitTermination()
    except Exception as error:  # noqa: BLE001  whatever Spark calls it
        print(type(error).__name__, flush=True)
    spark.sparkContext.setJobDescription(f"load password={MARK}-description")
    spark.range(4).repartition(2).count()
    while not (console.lastProgress and written.recentProgress) and written.isActive:
        written.awaitTermination(1)
    print("done", written.isActive, flush=True)
    sys.stdin.readline()
    console.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
