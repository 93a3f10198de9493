"""
A Structured Streaming job on real data: the flights that left New York in 2013, replayed.

Three queries of different shape read the replay. Run the job with `streamgauge demo`, or beside a service of your
own with `python -m examples.flights --collector http://127.0.0.1:8081`, or as plain Spark, without `--collector`.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import streamgauge
from examples.movements import movement_batches
from examples.replay import FASTEST, FILE_PERIOD_S, SPEED, Feeder, data_file, read_flights, replay_batches
from streamgauge.errors import StreamgaugeError

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


def start_spark(folder: Path) -> SparkSession:
    """Start Spark on two cores of this machine, keeping all of its files in `folder`; takes seconds."""
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        "spark.local.dir": str(folder),
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("flights")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def timer_session(spark: SparkSession) -> SparkSession:
    """Return a session of its own for queries with timers: the others keep the state store that they have."""
    session = spark.newSession()
    for key, value in TIMER_SETTINGS.items():
        session.conf.set(key, value)
    return session


def lacking() -> str | None:
    """Return what timers lack here, in a few words, None where they lack nothing."""
    if not hasattr(GroupedData, "transformWithState"):
        return "this Spark has no transformWithState for rows, which came with 4.1"
    try:
        for package in ("pandas", "pyarrow", "protobuf"):
            distribution(package)
    except PackageNotFoundError as error:
        return f"{error.name} is not installed, which Spark's stateful Python workers need"
    return None


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


def start_queries(spark: SparkSession, folder: Path, timers: bool) -> tuple[list[StreamingQuery], dict[str, Path]]:
    """
    Start the queries, each on an input folder of its own below `folder`.

    Args:
        spark: For those without timers.
        folder: Must exist.
        timers: Whether the one with timers is started too.

    Returns:
        The queries, and by their names the folders that they read: "overdue" movements, the others flights.
    """
    inputs = {name: folder / name for name in ("departures", "late-aircraft", *(["overdue"] if timers else []))}
    for each in inputs.values():
        each.mkdir()
    results = {
        "departures": departures(tapped(read_stream(spark, inputs["departures"])), read_airlines(spark)),
        "late-aircraft": late_aircraft(read_stream(spark, inputs["late-aircraft"])),
    }
    if timers:
        from examples.overdue import overdue

        results["overdue"] = overdue(read_stream(timer_session(spark), inputs["overdue"], MOVEMENT_SCHEMA))
    queries = []
    for name, result in results.items():
        writer = result.writeStream.queryName(name).option("checkpointLocation", str(folder / f"{name}-state"))
        mode = "update" if name == "departures" else "append"
        queries.append(writer.outputMode(mode).format("noop").trigger(processingTime=TRIGGER).start())
    return queries, inputs


def watch(queries: Sequence[StreamingQuery], feeder: Feeder, stopped: threading.Event) -> None:
    """
    Report each query's first batch, until `stopped` is set.

    Raises:
        PySparkException: a query failed.
        OSError: the feeder could not write; OverflowError: the replay has reached the year 9999.
    """
    silent = {query.name: query for query in queries}
    while not stopped.wait(0.5):
        for name, query in list(silent.items()):
            progress = query.lastProgress
            if progress is not None and progress["numInputRows"]:
                print(f"first batch of {name}: {progress['numInputRows']} rows", flush=True)
                del silent[name]
        for query in queries:
            error = query.exception()
            if error is not None:
                raise error
        if feeder.error is not None:
            raise feeder.error


def run(collector: str | None, speed: float, stopped: threading.Event) -> None:
    """
    Run the job until `stopped` is set, and leave nothing behind.

    Args:
        collector: Base URL of a Streamgauge service; None for plain Spark.
        speed: Simulated seconds a second, > 0, at most FASTEST.
        stopped: May be set by a signal handler.

    Raises:
        FlightsMissing: the data are not installed.
        StreamgaugeError: the hooks cannot be attached.
        PySparkException: Spark does not start, or a query failed.
        OSError, OverflowError: the replay cannot go on; ConnectionError or Py4JNetworkError: the JVM has died.
    """
    flights = read_flights()
    with contextlib.ExitStack() as stack:
        # The JVM deletes files of its own while it ends, which is after Spark has stopped.
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-flights-", ignore_cleanup_errors=True))
        )
        if stopped.is_set():
            return
        print("starting Spark...", flush=True)
        spark = start_spark(folder)
        stack.callback(spark.stop)
        end_on_signals(stopped)  # again: Spark has put a handler of its own in place of ours
        if stopped.is_set():
            return
        if collector is not None:
            streamgauge.attach(spark, url=collector)
            stack.callback(streamgauge.detach)
        print(f"Spark {spark.version} runs, replaying {speed:g} simulated seconds a second", flush=True)
        lack = lacking()
        if lack is not None:
            print(f"without the query of overdue flights: {lack}", flush=True)
        queries, inputs = start_queries(spark, folder, timers=lack is None)
        for query in queries:
            stack.callback(query.stop)
        span = timedelta(seconds=speed * FILE_PERIOD_S)
        feeder = Feeder(
            {
                each: movement_batches(flights, span) if name == "overdue" else replay_batches(flights, span)
                for name, each in inputs.items()
            }
        )
        stack.callback(feeder.stop)
        feeder.start()
        watch(queries, feeder, stopped)


def end_on_signals(stopped: threading.Event) -> None:
    """Let Ctrl-C and SIGTERM set `stopped` instead of raising; main thread only."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 after Ctrl-C or SIGTERM, 1 after a failure, told in one line."""
    parser = argparse.ArgumentParser(prog="python -m examples.flights", description="The flights of 2013 as a stream.")
    parser.add_argument("--collector", metavar="URL", help="a Streamgauge service; without it, plain Spark")
    parser.add_argument("--speed", type=float, default=SPEED, help="simulated seconds a second (default %(default)g)")
    options = parser.parse_args(arguments)
    if not 0 < options.speed <= FASTEST:
        parser.error(f"--speed must be greater than 0 and at most {FASTEST:g}, not {options.speed:g}")
    stopped = threading.Event()
    end_on_signals(stopped)
    try:
        run(options.collector, options.speed, stopped)
    except (ConnectionError, Py4JNetworkError) as error:
        print(f"error: Spark's JVM has gone ({error})", file=sys.stderr)
        return 1
    except (StreamgaugeError, PySparkException, OSError, OverflowError) as error:
        print(f"error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # Spark's own handler was in place for a moment.
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
