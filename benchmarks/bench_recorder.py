"""
What the recorder costs: ns per TaskEnd in the JVM, and to drain, decode and apply it in the driver's Python.

The event is a real one, of a streaming aggregation's last stage, replayed into the recorder. Promise: at most
10 µs a TaskEnd in the JVM.
"""

from __future__ import annotations

import platform
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_hooks import records
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.jvm import Recorder, compiled
from streamgauge import wire
from streamgauge.clock import SystemClock

EVENTS = 20_000
RUNS = 7


def main() -> None:
    """Run, and print a table."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("bench_recorder")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    recorder = Recorder(spark)
    source = Path(__file__).with_name("Replayer.java").read_text(encoding="utf-8")
    gateway = spark.sparkContext._gateway
    java = gateway.jvm.java.lang
    constructor = compiled(gateway, "Replayer", source).getDeclaredConstructor(gateway.new_array(java.Class, 0))
    replayer = constructor.newInstance(gateway.new_array(java.Object, 0))
    spark.sparkContext._jsc.sc().addSparkListener(replayer)
    app = wire.App("bench", "bench", 0, "", spark.version, "0")
    model = Model(app, Executors("bench", 1, SystemClock()))
    stream(spark)
    model.apply(records.decode(recorder.drain()).records)

    figures: dict[str, list[float]] = {"record": [], "drain": [], "decode": [], "apply": []}
    size = 0
    for _ in range(RUNS):
        figures["record"].append(replayer.replay(recorder.listener, EVENTS) / EVENTS)
        began = time.perf_counter_ns()
        drained = recorder.drain()
        figures["drain"].append((time.perf_counter_ns() - began) / EVENTS)
        size = len(drained)
        began = time.perf_counter_ns()
        events = records.decode(drained).records
        figures["decode"].append((time.perf_counter_ns() - began) / EVENTS)
        began = time.perf_counter_ns()
        model.apply(events)
        figures["apply"].append((time.perf_counter_ns() - began) / EVENTS)
    print(f"Spark {spark.version}, Python {platform.python_version()}, {platform.machine()}, {RUNS} runs of {EVENTS}")
    print(f"a TaskEnd with {replayer.accumulables()} accumulables is {size / EVENTS:.0f} bytes")
    print("ns per TaskEnd        median      min      max")
    for name, values in figures.items():
        print(f"{name:20} {statistics.median(values):8.0f} {min(values):8.0f} {max(values):8.0f}")
    spark.stop()


def stream(spark: SparkSession) -> None:
    """Run a few batches of a windowed aggregation."""
    with tempfile.TemporaryDirectory() as folder:
        counted = (
            spark.readStream.format("rate")
            .option("rowsPerSecond", 100)
            .load()
            .withWatermark("timestamp", "1 second")
            .groupBy(f.window("timestamp", "1 second"), f.col("value") % 5)
            .count()
        )
        query = counted.writeStream.format("noop").option("checkpointLocation", folder).start()
        while not query.recentProgress or query.recentProgress[-1]["batchId"] < 3:
            time.sleep(0.2)
        query.stop()


if __name__ == "__main__":
    main()
