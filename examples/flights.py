"""
A Structured Streaming job on real data: the flights that left New York in 2013, replayed.

Three queries of different shape read the replay. Run the job with `streamgauge demo`, or beside a service of your
own with `python -m examples.flights --collector http://127.0.0.1:8081`, or as plain Spark, without `--collector`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
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
from pyspark.sql import GroupedData, SparkSession

import streamgauge
from examples.movements import movement_batches
from examples.queries import Queries, build
from examples.replay import FASTEST, FILE_PERIOD_S, SPEED, Feeder, read_flights, replay_batches
from streamgauge.errors import StreamgaugeError

WORKERS_NEED = ("pandas", "pyarrow", "protobuf")
"""Packages without which Spark's stateful Python workers end unexpectedly."""


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
    # Else Python workers run whatever python3 PATH finds, without the packages that are here.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("flights")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def lacking() -> str | None:
    """Return what timers lack here, in a few words, None where they lack nothing."""
    if not hasattr(GroupedData, "transformWithState"):
        return "this Spark has no transformWithState for rows, which came with 4.1"
    try:
        for package in WORKERS_NEED:
            distribution(package)
    except PackageNotFoundError as error:
        return f"{error.name} is not installed, which Spark's stateful Python workers need"
    return None


def watch(queries: Queries, feeder: Feeder, stopped: threading.Event) -> None:
    """
    Look after the queries, until `stopped` is set.

    Raises:
        PySparkException: a query failed.
        OSError: the feeder could not write; OverflowError: the replay has reached the year 9999.
    """
    while not stopped.wait(0.5):
        queries.look()
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
        inputs = {
            name: folder / name for name in ("departures", "late-aircraft", *(["overdue"] if lack is None else []))
        }
        for each in inputs.values():
            each.mkdir()
        queries = Queries(build(spark, inputs), folder)
        stack.callback(queries.stop)
        queries.start()
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
