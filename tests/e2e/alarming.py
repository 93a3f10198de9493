"""A driver whose query gives cause for alarm: `python -m tests.e2e.alarming URL FOLDER (pressed|fails)`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

import streamgauge
from tests.e2e.topics import topics

FILES = 14
"""Each a batch; once they are read, nothing is behind any more."""
ROWS = 40
"""Of a file, in two tasks: 5 s of sleep a batch, so that on a busy machine, too, it is what the time goes to."""
SLEEP = "java_method('java.lang.Thread', 'sleep', 250L + value % 2) IS NULL"


def main(url: str, folder: Path, kind: str) -> None:
    """Run the query; one that is pressed stays when it has caught up, one that fails takes the driver with it."""
    (folder / "in").mkdir(parents=True)
    for file in range(FILES):
        rows = "\n".join(json.dumps({"value": row}) for row in range(ROWS))
        (folder / "in" / f"{file}.json").write_text(rows)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("alarming")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    streamgauge.attach(spark, url=url)
    rows = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    if kind == "fails":
        failing = rows.selectExpr("assert_true(value < 0)").writeStream.format("noop").queryName("failing").start()
        while failing.isActive:
            time.sleep(0.01)
        return
    # Its rows are known that wait; it is long behind, and does little.
    spark.dataSource.register(topics(ReadMaxRows, 10_000))
    behind = spark.readStream.format("pending-topics").load().writeStream.format("noop").queryName("behind")
    behind.trigger(processingTime="2 seconds").start()
    # All that has arrived is read by each batch, so how much arrives is known.
    arriving = spark.readStream.format("rate").load().writeStream.format("noop").queryName("arriving")
    arriving.trigger(processingTime="3 seconds").start()
    slow = rows.repartition(2).filter(SLEEP).writeStream.format("noop").queryName("pressed")
    slow.trigger(processingTime="1 second").start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
