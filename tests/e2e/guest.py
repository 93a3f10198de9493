"""A driver that runs queries and attaches the hooks as its standard input says; a JSON line in, a JSON line out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from spark_hooks import agent, pusher

EXIT_CODE = 3

INTERVAL_MS = 100


class Guest:
    """
    The commands; each returns what can be told in JSON.

    Args:
        folder: Each query reads the JSON files of the folder of its name in it.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._query: StreamingQuery | None = None

    def attach(self, url: str) -> bool:
        return streamgauge.attach(self._spark, url=url, interval_ms=INTERVAL_MS)

    def detach(self) -> None:
        streamgauge.detach()

    def start(self, name: str, source: str, **trigger: Any) -> None:
        """Start a query that takes one file a batch."""
        files = self._spark.readStream.schema("id BIGINT, k INT, t TIMESTAMP").option("maxFilesPerTrigger", 1)
        counted = (
            files.json(str(self._folder / source)).groupBy("k").agg(f.count("*").alias("n"), f.sum("id").alias("s"))
        )
        writer = counted.writeStream.format("memory").outputMode("complete").queryName(name)
        self._query = writer.trigger(**trigger).start()

    def finish(self) -> dict[str, Any]:
        """Have the query read all that is there, end it, and return its results and batches."""
        query = self._query
        assert query is not None
        query.processAllAvailable()
        query.stop()
        return {
            "results": sorted(tuple(row) for row in self._spark.table(query.name).collect()),
            "batches": [each["batchId"] for each in query.recentProgress if each["numInputRows"]],
            "rows": sum(each["numInputRows"] for each in query.recentProgress),
        }

    def run(self, name: str, source: str) -> dict[str, Any]:
        """Run a query to its end."""
        self.start(name, source, availableNow=True)
        assert self._query is not None
        self._query.awaitTermination()
        return self.finish()

    def held(self) -> dict[str, int]:
        """Count what the hooks hold for the collector."""
        latest = agent._latest
        assert latest is not None
        return {"jobs": len(latest._model.jobs), "channels": len(latest._frames._channels)}


def main(folder: Path) -> None:
    """Do what is said until there is nothing more, then stop Spark and leave with EXIT_CODE."""
    # A collector that says no is asked again in half a minute, of which the tests of each such answer would consist.
    pusher.SLOWEST_S = 1.0
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("guest")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    guest = Guest(spark, folder)
    print("ready", flush=True)
    for line in sys.stdin:
        command, arguments = json.loads(line)
        print(json.dumps(getattr(guest, command)(**arguments)), flush=True)
    spark.stop()
    sys.exit(EXIT_CODE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
