"""The queries of the flights job: what each makes of the replay, and how they are started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from examples.replay import data_file

SCHEMA = """
    scheduled TIMESTAMP, departed TIMESTAMP, scheduled_arrival TIMESTAMP, departure_delay_minutes INT,
    arrival_delay_minutes INT, carrier STRING, number INT, tail STRING, origin STRING, destination STRING,
    distance_miles INT
"""

MOVEMENT_SCHEMA = """
    at TIMESTAMP, kind STRING, scheduled TIMESTAMP, scheduled_arrival TIMESTAMP, carrier STRING, number INT,
    origin STRING, destination STRING
"""

WATERMARK_DELAY = "4 hours"
"""How late a departure may be in event time; at the usual speed about one flight in a hundred is later, and dropped."""

LATE_MINUTES = 15
"""From here on a flight is late. Source: US Bureau of Transportation Statistics, on-time definition."""

REPORT_ONCE_IN = "12 hours"
"""A late aircraft is reported once in this time, however many of its legs are late."""

TRIGGER = "2 seconds"

AIRPORTS = ("EWR", "JFK", "LGA")
"""Where the flights leave from: the splits whose event time is watched."""

AIRPORT_IDLE = "10 seconds"
"""Real time without a departure after which an airport no longer holds the watermark back."""

TIMER_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Timers live in RocksDB only. Each partition is served by a Python worker, and there are two cores."""

STARTS = 5
"""How often a query is started that fails before it has ended a batch."""


def timer_session(spark: SparkSession) -> SparkSession:
    """Return a session of its own for queries with timers: the others keep the state store that they have."""
    session = spark.newSession()
    for key, value in TIMER_SETTINGS.items():
        session.conf.set(key, value)
    return session


def read_stream(spark: SparkSession, folder: Path, schema: str = SCHEMA) -> DataFrame:
    """
    Return what a feeder writes into `folder`, flights or movements, as a stream of `schema`.

    Files that were read are deleted, and what Spark remembers of them is forgotten after an hour, so that a demo
    that runs for days stays small.
    """
    return (
        spark.readStream.schema(schema)
        .option("cleanSource", "delete")
        .option("maxFileAge", "1h")
        .option("maxFilesPerTrigger", 30)
        .json(str(folder))
    )


def read_airlines(spark: SparkSession) -> DataFrame:
    """Return the sixteen airlines: carrier code and name."""
    return (
        spark.read.schema("carrier STRING, airline STRING").option("header", True).csv(str(data_file("airlines.csv")))
    )


def departures(flights: DataFrame, airlines: DataFrame) -> DataFrame:
    """Return, per hour of actual departure, origin and airline, how many flights left and how late they were."""
    return (
        flights.where(f.col("departed").isNotNull())
        .join(f.broadcast(airlines), "carrier")
        .withWatermark("departed", WATERMARK_DELAY)
        .groupBy(f.window("departed", "1 hour"), "origin", "airline")
        .agg(f.count("*").alias("flights"), f.avg("departure_delay_minutes").alias("mean_delay_minutes"))
    )


def late_aircraft(flights: DataFrame) -> DataFrame:
    """Return each aircraft that left or arrived late, reported once in REPORT_ONCE_IN for either."""
    delays = f.explode(
        f.array(
            f.struct(f.lit("departure").alias("leg"), f.col("departure_delay_minutes").alias("delay_minutes")),
            f.struct(f.lit("arrival").alias("leg"), f.col("arrival_delay_minutes").alias("delay_minutes")),
        )
    )
    return (
        flights.where(f.col("departed").isNotNull() & f.col("tail").isNotNull())
        .select("departed", "tail", "carrier", "origin", "destination", delays.alias("late"))
        .select("departed", "tail", "carrier", "origin", "destination", "late.leg", "late.delay_minutes")
        .where(f.col("delay_minutes") >= LATE_MINUTES)
        .withWatermark("departed", REPORT_ONCE_IN)
        .dropDuplicatesWithinWatermark(["tail", "leg"])
    )


def tapped(flights: DataFrame) -> DataFrame:
    """
    Return the same stream of files, watched as it comes in.

    Each airport is a split with an event time of its own, and a record waits from when its file was written.
    """
    return streamgauge.tap(
        flights,
        "departures",
        event_time="departed",
        ingest_time=f.col("_metadata.file_modification_time"),
        partition="origin",
        splits=AIRPORTS,
        max_out_of_orderness=WATERMARK_DELAY,
        idleness=AIRPORT_IDLE,
    )


def build(spark: SparkSession, inputs: Mapping[str, Path]) -> dict[str, DataFrame]:
    """
    Return what each query makes of its input folder, by its name.

    Args:
        spark: For those without timers.
        inputs: Existing folders: of flights for "departures" and "late-aircraft"; of movements for "overdue", which may
            be missing.
    """
    results = {
        "departures": departures(tapped(read_stream(spark, inputs["departures"])), read_airlines(spark)),
        "late-aircraft": late_aircraft(read_stream(spark, inputs["late-aircraft"])),
    }
    if "overdue" in inputs:
        # Not every Spark that the demo runs on has what this module is made of.
        from examples.overdue import overdue

        results["overdue"] = overdue(read_stream(timer_session(spark), inputs["overdue"], MOVEMENT_SCHEMA))
    return results


class Queries:
    """
    The job's queries while they run.

    Args:
        results: What each puts out, by its name.
        folder: Where checkpoints are; must exist.

    One thread.
    """

    def __init__(self, results: Mapping[str, DataFrame], folder: Path) -> None:
        self._results = results
        self._folder = folder
        self._starts = dict.fromkeys(results, 0)
        self._running: dict[str, StreamingQuery] = {}
        self._silent = set(results)

    def start(self) -> None:
        """Start them all."""
        for name in self._results:
            self._start(name)

    def stop(self) -> None:
        """Stop those that run, one after the other."""
        for query in self._running.values():
            query.stop()

    def look(self) -> None:
        """
        Report each query's first batch, and start those again that failed in it.

        Spark gives the Python worker of a stateful query ten seconds to come up, which on a busy machine is too little.

        Raises:
            PySparkException: a query failed in a later batch, or STARTS times in its first.
        """
        for name, query in list(self._running.items()):
            progress = query.lastProgress
            if name in self._silent and progress is not None and progress["numInputRows"]:
                print(f"first batch of {name}: {progress['numInputRows']} rows", flush=True)
                self._silent.remove(name)
            error = query.exception()
            if error is not None and (progress is not None or self._starts[name] == STARTS):
                raise error
            if error is not None:
                self._start(name)

    def _start(self, name: str) -> None:
        self._starts[name] += 1
        checkpoint = str(self._folder / f"{name}-state")
        writer = self._results[name].writeStream.queryName(name).option("checkpointLocation", checkpoint)
        mode = "update" if name == "departures" else "append"
        self._running[name] = writer.outputMode(mode).format("noop").trigger(processingTime=TRIGGER).start()
