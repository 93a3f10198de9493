"""
A driver whose tasks fail, get lost, straggle or hang, as the scenario on each line of standard input says.

For each it runs one query to its end, and tells its run id on a line of standard output when it has started.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import streamgauge

Batches = Iterator[pa.RecordBatch]
Map = Callable[[Batches], Batches]
Read = Callable[[], DataFrame]

SCHEMA = "id BIGINT, k INT"


def standalone(folder: Path) -> str:
    """
    Start a master and two workers in this driver's JVM, on hosts of their own; return the master's URL.

    Spark gives a straggler no copy on its own host, and a local cluster has one host only.
    """
    SparkContext._ensure_initialized()
    gateway = SparkContext._gateway
    jvm = gateway.jvm
    deploy = jvm.org.apache.spark.deploy
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.master.rest.enabled", "false")
    address = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)._1().address()
    urls = gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = f"spark://127.0.0.1:{address.port()}"
    none = jvm.scala.Option.empty()
    for host in ("127.0.0.1", "127.0.0.2"):
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, urls, str(folder / "work" / host), none, conf, none
        )
    return str(urls[0])


def session(kind: str, folder: Path) -> SparkSession:
    """One of `MASTERS`, with an event log, a heartbeat every second, and small Arrow batches that leave at once."""
    builder = (
        SparkSession.builder.master(MASTERS[kind](folder))
        .appName(f"attempts {kind}")
        .config("spark.buffer.size", "512")
        .config("spark.cores.max", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", folder.as_uri() + "/log")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.rolling.enabled", "false")
        # A lost shuffle makes the driver in local mode forget its own executor, whose heartbeats fail from then on.
        .config("spark.executor.heartbeat.maxFailures", "10000")
        .config("spark.executor.heartbeatInterval", "1s")
        .config("spark.executor.memory", "512m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.log.level", "OFF")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.speculation", str(kind == "cluster").lower())
        .config("spark.speculation.efficiency.enabled", "false")
        .config("spark.speculation.minTaskRuntime", "1s")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
        # Less than a file's opening is reckoned at: every file is a partition of its own.
        .config("spark.sql.files.maxPartitionBytes", "1m")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    (folder / "log").mkdir(exist_ok=True)
    return builder.getOrCreate()


MASTERS: dict[str, Callable[[Path], str]] = {"local": lambda _: "local[2,4]", "cluster": standalone}


def attempt() -> tuple[int, int]:
    """(partition, attempt) of the task that this runs in."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber()


def wait_for(marker: Path) -> None:
    """Wait until the file `marker` is there; a minute at most, for nothing may hang for ever."""
    deadline = time.monotonic() + 60
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def spare(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that are dropped before the exchange: Spark fails a job whose task writes other rows when it runs again."""
    return batch.set_column(1, "k", pa.array([-1] * batch.num_rows, pa.int32()))


def rows(read: Read, spread: Map, keep: Map) -> DataFrame:
    """Scan → `spread` → filter → exchange → `keep`: the shape of most scenarios."""
    return read().mapInArrow(spread, SCHEMA).where("k >= 0").repartition(3, "k").mapInArrow(keep, SCHEMA)


def retries(read: Read, own: Path) -> DataFrame:
    """Two map tasks fail once, a task of the sink's stage twice, each after it has put out all its rows."""

    def spread(batches: Batches) -> Batches:
        partition, number = attempt()
        for batch in batches:
            yield batch
            if number > 0:
                yield spare(batch)
        if partition in (1, 3) and number == 0:
            raise RuntimeError("fails once")

    def keep(batches: Batches) -> Batches:
        partition, number = attempt()
        for batch in batches:
            yield batch.filter(pa.compute.less(batch["k"], 15))
        if partition == 0 and number < 2:
            raise RuntimeError("fails twice")

    return rows(read, spread, keep)


def slow_retry(read: Read, own: Path) -> DataFrame:
    """A task that takes many heartbeats fails near its end, and runs again as slowly."""

    def slow(batches: Batches) -> Batches:
        _, number = attempt()
        for index, batch in enumerate(batches):
            time.sleep(1.5)
            yield batch
            if number == 0 and index == 5:
                raise RuntimeError("fails late")

    return read().mapInArrow(slow, SCHEMA)


def storm(read: Read, own: Path) -> DataFrame:
    """Fifty tasks at once, each of which fails once: with no property of its own yet, in an executor in this JVM."""
    first = "java_method('java.lang.System', 'setProperty', concat('storm.', spark_partition_id()), '') = 'null'"
    return read().repartition(50).where(f"IF({first}, raise_error('fails once'), TRUE)")


def lost_shuffle(read: Read, own: Path) -> DataFrame:
    """What a map task wrote is gone before the last reader has it; what runs again puts out more rows."""
    fetched, lost = own / "fetched", own / "lost"
    blocks = own.parent / "local"

    def spread(batches: Batches) -> Batches:
        again = lost.exists()
        for batch in batches:
            yield batch
            if again:
                yield spare(batch)

    def keep(batches: Batches) -> Batches:
        partition, _ = attempt()
        # Of three readers two run at once; they have all before anything is lost, the last one begins afterwards.
        yield from list(batches)
        if partition == 1:
            fetched.touch()
        elif partition == 0 and not lost.exists():
            wait_for(fetched)
            data = max(blocks.rglob("shuffle_*_*_0.data"), key=lambda file: file.stat().st_mtime_ns)
            for file in blocks.rglob(f"{data.stem}.*"):
                file.unlink()
            lost.touch()
        wait_for(lost)

    return rows(read, spread, keep)


def killed_executor(read: Read, own: Path) -> DataFrame:
    """A reader's executor is killed, with what its map tasks wrote; what runs again puts out more rows."""
    killed = own / "killed"

    def spread(batches: Batches) -> Batches:
        again = killed.exists()
        # As long as it takes for both executors to have their share.
        time.sleep(1)
        for batch in batches:
            yield batch
            if again:
                yield spare(batch)

    def keep(batches: Batches) -> Batches:
        yield from list(batches)
        if attempt()[0] == 0 and not killed.exists():
            killed.touch()
            daemon = os.getppid()
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)

    return rows(read, spread, keep)


def stragglers(read: Read, own: Path) -> DataFrame:
    """Two tasks hang until they get a copy: the copy of the first one wins, of the second one the original."""
    copied = own / "copied"

    def spread(batches: Batches) -> Batches:
        partition, number = attempt()
        for batch in batches:
            yield batch
            if number > 0:
                yield spare(batch)
        if (partition, number) == (0, 0):
            time.sleep(60)

    def keep(batches: Batches) -> Batches:
        partition, number = attempt()
        yield from list(batches)
        if partition == 0 and number == 0:
            wait_for(copied)
        elif partition == 0:
            copied.touch()
            time.sleep(60)

    return rows(read, spread, keep)


def slow_readers(read: Read, own: Path) -> DataFrame:
    """Three readers on two slots: one of them is placed when another one is done."""

    def spread(batches: Batches) -> Batches:
        # As long as it takes for both executors to have their share.
        time.sleep(1)
        yield from batches

    def keep(batches: Batches) -> Batches:
        yield from list(batches)
        time.sleep(4)

    return rows(read, spread, keep)


def hanging(read: Read, own: Path) -> DataFrame:
    """A stateful query whose third batch hangs until there is a file 'go'."""
    go = own / "go"

    def gate(batches: Batches) -> Batches:
        for batch in batches:
            yield batch
            if pa.compute.max(batch["id"]).as_py() >= 100:
                wait_for(go)

    return read().mapInArrow(gate, SCHEMA).groupBy("k").count()


SCENARIOS = {
    each.__name__: each
    for each in (retries, slow_retry, storm, lost_shuffle, killed_executor, stragglers, slow_readers, hanging)
}


def start(spark: SparkSession, line: str, folder: Path) -> StreamingQuery:
    """Start the query that `line` names, '<scenario>[ adaptive]', on the JSON files in the folder of its name."""
    scenario, _, adaptive = line.partition(" ")
    own = folder / line
    endless = scenario == "hanging"
    spark.conf.set("spark.sql.adaptive.enabled", bool(adaptive))

    def read() -> DataFrame:
        stream = spark.readStream.schema(SCHEMA)
        return (stream.option("maxFilesPerTrigger", 1) if endless else stream).json(str(own / "in"))

    writer = SCENARIOS[scenario](read, own).writeStream.queryName(line)
    writer = writer.option("checkpointLocation", str(own / "checkpoint"))
    if endless:
        return writer.format("noop").outputMode("update").trigger(processingTime="100 milliseconds").start()
    return writer.format("json").trigger(availableNow=True).start(str(own / "out"))


def main(collector: str, kind: str, folder: Path) -> None:
    """Run the scenarios that standard input names; the driver ends with it, under a query that is endless."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # read when the session starts; workers must find pyarrow
    spark = session(kind, folder)
    spark.sparkContext.setLogLevel("OFF")
    streamgauge.attach(spark, url=collector)
    for line in sys.stdin:
        query = start(spark, line.strip(), folder)
        print(query.runId, flush=True)
        if not line.startswith("hanging"):
            query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
