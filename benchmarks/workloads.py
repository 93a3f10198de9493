"""What the benchmarks of the hooks run: a session, queries that do the same work each time, a collector."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SEED = 7
KEYS = 100
SCHEMA = "id BIGINT, k INT, v DOUBLE"


@dataclass(frozen=True)
class Workload:
    """
    A query over files, which it reads to their end.

    Args:
        files: Of the input; fixed, as are their rows.
        rows: Of a file.
        files_a_batch: maxFilesPerTrigger.
        make: The query, from the stream of rows.
    """

    name: str
    files: int
    rows: int
    files_a_batch: int
    make: Callable[[DataFrame], DataFrame]

    @property
    def total_rows(self) -> int:
        """Rows of a run."""
        return self.files * self.rows

    @property
    def batches(self) -> int:
        """Batches of a run."""
        return -(-self.files // self.files_a_batch)

    def write(self, folder: Path) -> None:
        """Write the input, the same in every call."""
        numbers = random.Random(SEED)
        folder.mkdir()
        for file in range(self.files):
            ids = range(file * self.rows, (file + 1) * self.rows)
            lines = (json.dumps({"id": row, "k": numbers.randrange(KEYS), "v": numbers.random()}) for row in ids)
            (folder / f"{file:05}.json").write_text("\n".join(lines))

    def run(self, spark: SparkSession, inputs: Path, checkpoint: Path) -> float:
        """Run the query over `inputs`; return the seconds from its start to its end."""
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", self.files_a_batch).json(str(inputs))
        writer = self.make(rows).writeStream.format("noop").outputMode("update").queryName(self.name.replace(" ", "_"))
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        began = time.perf_counter()
        query = writer.start()
        query.awaitTermination()
        return time.perf_counter() - began


def many_small_tasks(batches: int, tasks: int) -> Workload:
    """Batches of `tasks` tiny tasks behind a shuffle, and one before it: nothing but scheduling."""
    return Workload(
        "many small tasks", batches, 100, 1, lambda rows: rows.repartition(tasks, "k").select("k", f.col("v") * 2)
    )


def few_heavy_tasks(batches: int, rows: int) -> Workload:
    """Batches of two tasks that parse `rows` rows each, and two that merge their sums."""
    return Workload(
        "few heavy tasks", 2 * batches, rows, 2, lambda read: read.groupBy("k").agg(f.sum("v"), f.max("id"))
    )


@contextmanager
def session(name: str) -> Iterator[SparkSession]:
    """A driver on all cores, quiet, with a heartbeat every second so that there are some to record."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.heartbeatInterval", "1s")
        .config("spark.log.level", "ERROR")
        # Two small files must be two tasks.
        .config("spark.sql.files.maxPartitionBytes", "64m")
        .config("spark.sql.files.openCostInBytes", "64m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.numRecentProgressUpdates", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True)
class Collector:
    """The real service, in a process of its own."""

    url: str
    pid: int

    def cpu_ns(self) -> int:
        """Return the CPU time that it has used, in steps of the kernel's ticks, 10 ms mostly; Linux only."""
        user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@contextmanager
def collector() -> Iterator[Collector]:
    """Start a collector, and end it."""
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = re.search(r"http://\S+", line)
            if url is None:
                raise RuntimeError(f"the service did not start: {line!r}")
            yield Collector(url.group(), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
