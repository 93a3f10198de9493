"""
What a timer costs in a task: µs to register one and to fire one, on Spark's own calls and through TimerService.

One task, one core, RocksDB's state store; every timer is registered in one batch and fires in a later one. From the
root of the project: `python -m benchmarks.bench_timers`.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor

import streamgauge
from benchmarks.spread import spread
from benchmarks.workloads import session

TIMERS = 4_000
"""Of a run, however many keys they are of."""

_OUT = "phase string, ns long"


class Bare(StatefulProcessor):
    """Spark's own calls."""

    def init(self, handle: Any) -> None:
        """Take the handle."""
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Row], values: Any) -> Iterator[Row]:  # noqa: N802 - Spark's name
        """Register a row's timers, and put out what one took."""
        for row in rows:
            begun_ns = time.perf_counter_ns()
            self.register(key, values, row)
            yield Row(phase="register", ns=(time.perf_counter_ns() - begun_ns) // max(row.timers, 1))

    def register(self, key: Any, values: Any, row: Row) -> None:
        """Register a row's timers."""
        for timer in range(row.timers):
            self.handle.registerTimer(row.first_ms + timer)

    def handleExpiredTimer(self, **told: Any) -> Iterator[Row]:  # noqa: N802 - Spark's name
        """Put out when it was."""
        yield Row(phase="fire", ns=time.perf_counter_ns())

    def close(self) -> None:
        """Nothing to close."""


class Served(Bare):
    """The same through a TimerService."""

    def __init__(self, namespaces: bool = False) -> None:
        self.timers = streamgauge.TimerService("bench", namespaces=namespaces)
        self.namespace = "n" if namespaces else ""

    def init(self, handle: Any) -> None:
        """Open the service."""
        self.timers.open(handle, self)

    def register(self, key: Any, values: Any, row: Row) -> None:
        """Register a row's timers."""
        timers = self.timers.at(key, values)
        for timer in range(row.timers):
            timers.register_event_time_timer(row.first_ms + timer, self.namespace)

    def handleExpiredTimer(self, **told: Any) -> Iterator[Row]:  # noqa: N802 - Spark's name
        """Fire."""
        yield from self.timers.fire(**told)

    def on_event_time(self, timer: Any, timers: Any) -> Iterator[Row]:
        """Put out when it was."""
        yield Row(phase="fire", ns=time.perf_counter_ns())


WAYS = {"Spark's own calls": Bare, "TimerService": Served, "with a namespace": lambda: Served(namespaces=True)}


def write(folder: Path, timers_a_key: int) -> None:
    """Write three batches: the timers, what moves the watermark past them, and nothing of note."""
    folder.mkdir()
    keys = TIMERS // timers_a_key
    rows = [{"key": key, "timers": timers_a_key, "first_ms": 10_000, "seen": 1.0} for key in range(keys)]
    for batch, lines in enumerate((rows, [{"key": -1, "timers": 0, "first_ms": 0, "seen": 1_000.0}])):
        (folder / f"{batch}.json").write_text("\n".join(map(json.dumps, lines)))
        time.sleep(0.02)  # files are read in the order of their times


def run(spark: SparkSession, processor: StatefulProcessor, folder: Path, checkpoint: Path) -> tuple[float, float]:
    """Run a query over the files; return µs to register a timer and µs from one that fires to the next."""
    told: list[Row] = []

    def take(frame: DataFrame, batch: int) -> None:
        told.extend(frame.collect())

    stream = spark.readStream.schema("key long, timers int, first_ms long, seen double")
    rows = stream.option("maxFilesPerTrigger", 1).json(str(folder))
    rows = rows.withColumn("seen", rows.seen.cast("timestamp")).withWatermark("seen", "0 seconds")
    out = rows.groupBy("key").transformWithState(processor, _OUT, "Append", "EventTime")
    writer = out.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    fired = sorted(row.ns for row in told if row.phase == "fire")
    if len(fired) != TIMERS:
        raise RuntimeError(f"{len(fired)} of {TIMERS} timers fired")
    register = spread([row.ns for row in told if row.phase == "register"][:-1]).median
    return register / 1000, (fired[-1] - fired[0]) / (TIMERS - 1) / 1000


@click.command()
@click.option("--runs", default=3, show_default=True, help="Runs of each way, in turn; a first, cold one is left out.")
def main(runs: int) -> None:
    """Run each way of each shape, and print a table."""
    with tempfile.TemporaryDirectory() as temporary, session("bench_timers") as spark:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        click.echo(f"Spark {spark.version}, Python {platform.python_version()}, {platform.machine()}, {runs} runs")
        click.echo(f"{'µs a timer, median (least..greatest)':40} {'register':>22} {'fire':>22}")
        for timers_a_key in (1, 10):
            folder = Path(temporary) / f"in-{timers_a_key}"
            write(folder, timers_a_key)
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
            for turn in range(1 + runs):
                for way, make in WAYS.items():
                    checkpoint = Path(temporary) / f"checkpoint-{timers_a_key}-{turn}-{way}"
                    found[way].append(run(spark, make(), folder, checkpoint))
            for way, figures in found.items():
                columns = [spread(values) for values in zip(*figures[1:], strict=True)]
                cells = [f"{each.median:.0f} ({each.least:.0f}..{each.greatest:.0f})" for each in columns]
                click.echo(f"{f'{way}, timers a key: {timers_a_key}':40} {cells[0]:>22} {cells[1]:>22}")


if __name__ == "__main__":
    main()
