"""
What a tap costs: the throughput of a stateless query with a tap in it over that of the same query without.

Files of JSON records, as a topic's would be, are filtered, projected, tapped and written into nothing. The tap stands
behind the filter: before it, it would keep Spark from filtering in the source, and that would be measured instead. Bare
and tapped runs take turns in one driver, in an order drawn with a fixed seed for each round. Promise: with an event
time, and splits as many as by default, at least 95 % of the bare throughput.

A second query reads records that Spark makes from numbers, which takes next to no time: there a tap is most of what its
tasks do, and what a record costs is seen through a noise in which a twentieth of the first query's time is not. From
the root: `python -m benchmarks.bench_tap`.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import streamgauge
from benchmarks.spread import spread
from benchmarks.workloads import SEED, session

SCHEMA = """
    id BIGINT, partition INT, timestamp TIMESTAMP, occurred TIMESTAMP, user STRING, session STRING, action STRING,
    amount DOUBLE, currency STRING, country STRING, url STRING, agent STRING
"""
BARE = "bare"
PARTITIONS = 16
MADE = 3_000_000

Tap = Callable[[DataFrame], DataFrame]

TAPS: dict[str, Tap] = {
    "event time": lambda rows: streamgauge.tap(rows, "tap", event_time="occurred"),
    "event time, 3 splits": lambda rows: streamgauge.tap(
        rows, "tap", event_time="occurred", partition="partition", splits=3, idleness="1 minute"
    ),
    "event time, 8 splits (default)": lambda rows: streamgauge.tap(
        rows, "tap", event_time="occurred", partition="partition"
    ),
    "event time, 16 splits": lambda rows: streamgauge.tap(
        rows, "tap", event_time="occurred", partition="partition", splits=16
    ),
    "ingest time": lambda rows: streamgauge.tap(rows, "tap", ingest_time="timestamp"),
    "event time, 3 splits, ingest time": lambda rows: streamgauge.tap(
        rows, "tap", event_time="occurred", ingest_time="timestamp", partition="partition", splits=3
    ),
}


@dataclass(frozen=True)
class Run:
    """
    One run of the query.

    Args:
        seconds: Of all its batches, each from its trigger to its end: the query's start is not in it.
        cpu_ns: Of its tasks' threads.
    """

    seconds: float
    cpu_ns: int


class Bench:
    """One driver, one folder of records, and the two queries."""

    def __init__(self, spark: SparkSession, folder: Path, files: int, rows: int, files_a_batch: int) -> None:
        self._spark = spark
        self._folder = folder
        self._files_a_batch = files_a_batch
        self._runs = self._stages = 0
        # All of a run's, and those that end it.
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(files + 10))
        self.rows = files * rows
        _write(folder / "in", files, rows)

    def parsed(self, tap: Tap | None) -> Run:
        """Run the query over the files."""
        read = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", self._files_a_batch)
        rows = read.json(str(self._folder / "in")).where("amount > 5").withColumn("action", f.upper("action"))
        return self._run(rows, tap, availableNow=True)

    def made(self, tap: Tap | None) -> Run:
        """Run a batch of MADE records that are made from numbers."""
        read = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MADE).option("numPartitions", 2)
        rows = read.load().selectExpr(
            "CAST(value % 16 AS INT) AS partition", "timestamp", "timestamp_millis(value) AS occurred"
        )
        return self._run(rows, tap, once=True)

    def _run(self, rows: DataFrame, tap: Tap | None, **trigger: bool) -> Run:
        self._runs += 1
        gc.collect()
        self._spark.sparkContext._jvm.System.gc()
        rows = rows if tap is None else tap(rows)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(self._folder / f"c{self._runs}"))
        query = writer.trigger(**trigger).start()
        query.awaitTermination()
        seconds = sum(batch["durationMs"]["triggerExecution"] for batch in query.recentProgress) / 1e3
        return Run(seconds, self._cpu_ns())

    def _cpu_ns(self) -> int:
        """Return the CPU time of the tasks since the last call."""
        context = self._spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        total = 0
        while True:
            try:
                total += context.statusStore().lastStageAttempt(self._stages).executorCpuTime()
            except Py4JJavaError:
                return total
            self._stages += 1


def rounds(query: Callable[[Tap | None], Run], warm_up: int, count: int) -> list[dict[str, Run]]:
    """Return rounds of one run of each kind; what comes first in a round is drawn."""
    order, found = random.Random(SEED), []
    for number in range(warm_up + count):
        kinds = [BARE, *TAPS]
        order.shuffle(kinds)
        one = {kind: query(TAPS.get(kind)) for kind in kinds}
        if number >= warm_up:
            found.append(one)
    return found


def _write(folder: Path, files: int, rows: int) -> None:
    """Write records of some 330 bytes, the same in every call."""
    numbers = random.Random(SEED)
    folder.mkdir()
    began = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for file in range(files):
        with (folder / f"{file:05}.json").open("w") as out:
            for row in range(file * rows, (file + 1) * rows):
                arrived = began + timedelta(milliseconds=row)
                record = {
                    "id": row,
                    "partition": row % PARTITIONS,
                    "timestamp": arrived.isoformat(),
                    "occurred": (arrived - timedelta(milliseconds=numbers.randrange(30_000))).isoformat(),
                    "user": f"user-{numbers.randrange(100_000)}",
                    "session": f"{numbers.getrandbits(128):032x}",
                    "action": numbers.choice(("click", "view", "buy")),
                    "amount": round(numbers.random() * 100, 2),
                    "currency": "EUR",
                    "country": numbers.choice(("DE", "FR", "IT", "PL")),
                    "url": f"https://shop.example.org/product/{numbers.randrange(1_000_000)}",
                    "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)",
                }
                out.write(json.dumps(record) + "\n")


def report(title: str, rows: int, rounds: list[dict[str, Run]]) -> str:
    """Return the figures of a query as text."""
    lines = [
        f"{title}: {rows} rows a run, {len(rounds)} rounds",
        f"{'':36} {'s a run':>8} {'task ns/row':>12} {'more':>6} {'throughput':>11} {'95 % interval':>15}",
    ]
    for kind in (BARE, *TAPS):
        seconds = statistics.median(one[kind].seconds for one in rounds)
        cpu_ns = statistics.median(one[kind].cpu_ns / rows for one in rounds)
        more_ns = statistics.median((one[kind].cpu_ns - one[BARE].cpu_ns) / rows for one in rounds)
        ratio = spread([one[BARE].seconds / one[kind].seconds for one in rounds])
        lines.append(
            f"{kind:36} {seconds:8.3f} {cpu_ns:12.0f} {more_ns:+6.0f} {ratio.median:11.3f} "
            f"{ratio.low:7.3f}..{ratio.high:.3f}"
        )
    return "\n".join(lines)


@click.command()
@click.option(
    "--rounds", "count", default=11, show_default=True, help="Measured; each runs the bare query and every tap once."
)
@click.option("--warm-up", default=2, show_default=True, help="Rounds before them that are not measured.")
@click.option("--files", default=8, show_default=True, help="Of the input.")
@click.option("--rows", default=50_000, show_default=True, help="Of a file.")
@click.option("--files-a-batch", default=4, show_default=True, help="maxFilesPerTrigger.")
def main(count: int, warm_up: int, files: int, rows: int, files_a_batch: int) -> None:
    """Run, and print a table."""
    with tempfile.TemporaryDirectory() as name, session("bench_tap") as spark:
        click.echo(
            f"Spark {spark.version}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.2f} at the start, seed {SEED}"
        )
        bench = Bench(spark, Path(name), files, rows, files_a_batch)
        click.echo(report("JSON", bench.rows, rounds(bench.parsed, warm_up, count)))
        click.echo(report("made", MADE, rounds(bench.made, warm_up, count)))
        click.echo(f"load {os.getloadavg()[0]:.2f} at the end")


if __name__ == "__main__":
    main()
