"""
Queries whose truth is known, and the driver that runs them as its standard input says.

A JSON line in, a JSON line out. Rows come from Arrivals.java, so the test knows when each came into being; vertices
are slow because each row sleeps in them, which takes time but no core.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import streamgauge

ARRIVALS = Path(__file__).with_name("Arrivals.java")
MARKER_INTERVAL_MS = 200
"""Ten times as many markers as by default: enough of them within seconds."""
INTERVAL_MS = 500
QUERY_IDLE_S = 4
"""How often Spark says that an idle query is idle; 10 s by default."""


@dataclass(frozen=True)
class Arrivals:
    """
    When rows come into being, and how they are read; see Arrivals.java.

    Args:
        per_second: Rows, in each of so many partitions alike.
        burst: Rows that are there from the start.
        max_rows: That a batch takes, 0 for all there are.
        total: Rows altogether, 0 for endless.
    """

    per_second: float
    burst: int = 0
    max_rows: int = 0
    total: int = 0
    partitions: int = 2


@dataclass(frozen=True)
class Known:
    """
    A query.

    Args:
        trigger_ms: Between two triggers, 0 for one as soon as the other is done.
        plan: What it does with the rows.
    """

    arrivals: Arrivals
    plan: Callable[[DataFrame], DataFrame]
    trigger_ms: int = 0


def sleeping(rows: DataFrame, row_ms: int) -> DataFrame:
    """Take so long for every row; the row's own value keeps Spark from doing it once for all."""
    return rows.where(f"java_method('java.lang.Thread', 'sleep', CAST({row_ms} AS BIGINT) + value * 0L) IS NOT NULL")


def skewed(rows: DataFrame) -> DataFrame:
    """Three vertices, of which the second has eight rows of ten in one subtask."""
    keyed = rows.selectExpr("value", "created", "IF(value % 10 < 8, 0L, value) AS key").repartition(4, "key")
    return sleeping(keyed, 15).repartition(2)


# A query's name is its checkpoint's too: run twice, it would go on where it was.
QUERIES = {
    "triggered": Known(Arrivals(40), lambda rows: sleeping(rows.repartition(2), 10), 5000),
    "swamped": Known(Arrivals(100, max_rows=100), lambda rows: sleeping(rows.repartition(2), 36)),
    "alone": Known(Arrivals(100, max_rows=100), lambda rows: sleeping(rows, 36)),
    "healthy": Known(Arrivals(20), lambda rows: sleeping(rows.repartition(2), 28), 10_000),
    "skewed": Known(Arrivals(20), skewed, 4000),
    "idle": Known(Arrivals(100, total=100), lambda rows: rows.repartition(2)),
    "outlived": Known(Arrivals(100, total=100), lambda rows: rows.repartition(2)),
    "limited": Known(Arrivals(50, burst=250, max_rows=50), lambda rows: rows.repartition(2), 1000),
}


class Commands:
    """What the driver does; each returns what can be told in JSON."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queries: dict[str, StreamingQuery] = {}

    def start(self, name: str) -> dict[str, Any]:
        """Start a query, one with a trigger's interval at the beginning of a slot; tell its run id and rows' start."""
        known = QUERIES[name]
        if known.trigger_ms:
            time.sleep((known.trigger_ms - time.time() * 1000 % known.trigger_ms) / 1000)
        start_ms = int(time.time() * 1000)
        arrivals = known.arrivals
        options = {
            "startMs": start_ms,
            "rowsPerSecond": arrivals.per_second,
            "burst": arrivals.burst,
            "maxRows": arrivals.max_rows,
            "total": arrivals.total,
            "partitions": arrivals.partitions,
        }
        rows = self._spark.readStream.format("Arrivals").options(**options).load()
        writer = known.plan(rows).writeStream.queryName(name).format("noop")
        query = writer.trigger(processingTime=f"{known.trigger_ms} milliseconds").start()
        self._queries[name] = query
        return {"run_id": str(query.runId), "start_ms": start_ms}

    def stop(self, name: str) -> None:
        self._queries.pop(name).stop()

    def objects(self) -> int:
        """Objects that Python's collector of garbage knows, with no garbage among them."""
        gc.collect()
        return len(gc.get_objects())


def warm_up(spark: SparkSession) -> None:
    """Let the JVM run what all queries do once, unobserved: a first batch takes seconds more than any other."""
    rows = spark.readStream.format("Arrivals").options(burst=20, total=20, maxRows=10, partitions=2).load()
    query = sleeping(rows.repartition(2), 1).writeStream.format("noop").start()
    query.processAllAvailable()
    query.stop()


def compile_arrivals(spark: SparkSession, folder: Path) -> None:
    """Put Arrivals' classes into a folder of the driver's class path, where Spark finds them by name."""
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(ARRIVALS.read_text())
    for entry in compiler.getBytecodes().entrySet():
        (folder / f"{entry.getKey()}.class").write_bytes(bytes(entry.getValue()))


def main(collector: str, folder: Path) -> None:
    """Do what is said until there is nothing more."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    classes, log = folder / "classes", folder / "log"
    classes.mkdir()
    log.mkdir()
    spark = (
        SparkSession.builder.master("local[4]")
        .appName("known answers")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraClassPath", str(classes))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", log.as_uri())
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.executor.heartbeatInterval", "1s")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.checkpointLocation", str(folder / "checkpoints"))
        .config("spark.sql.streaming.noDataProgressEventInterval", f"{QUERY_IDLE_S}s")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    # A query that is stopped in the middle of a batch says much.
    spark.sparkContext.setLogLevel("OFF")
    compile_arrivals(spark, classes)
    warm_up(spark)
    streamgauge.attach(spark, url=collector, interval_ms=INTERVAL_MS, latency_interval_ms=MARKER_INTERVAL_MS)
    commands = Commands(spark)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        command, arguments = json.loads(line)
        print(json.dumps(getattr(commands, command)(**arguments)), flush=True)
    streamgauge.detach()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
