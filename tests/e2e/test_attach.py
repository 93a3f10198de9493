"""Coming and going: what attaching, detaching and the end of the driver leave behind."""

from __future__ import annotations

import contextlib
import gc
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamgauge
from spark_hooks.jvm import Recorder
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

# A script that ends without a word to Spark or to us.
SCRIPT = """
import sys
from pyspark.sql import SparkSession
import streamgauge
spark = SparkSession.builder.master("local[2]").appName("brief").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
streamgauge.attach(spark, url=sys.argv[1], interval_ms=20000)
stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
query = stream.writeStream.format("noop").queryName("brief").trigger(availableNow=True).start()
query.awaitTermination()
sys.exit(3)
"""


def listeners(spark: SparkSession) -> list[str]:
    found = spark.sparkContext._jsc.sc().listenerBus().listeners()
    return [found.get(index).getClass().getName() for index in range(found.size())]


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("streamgauge")}


def test_detaching_leaves_nothing_and_attaching_again_goes_on(
    attached: SparkSession, service: str, rest: Rest, tmp_path: Path
) -> None:
    """The listener and the threads are gone; the query that runs all the while is the same run afterwards."""
    stream = attached.readStream.format("rate").option("rowsPerSecond", 50).load()
    query = stream.writeStream.format("noop").queryName("enduring").option("checkpointLocation", str(tmp_path)).start()
    try:
        jid = eventually(lambda: (job := rest.job("enduring")) and job["state"] == "RUNNING" and job)["jid"]
        assert "Recorder" in listeners(attached)
        assert streamgauge.attach(attached, url=service)
        assert listeners(attached).count("Recorder") == 1
        streamgauge.detach()
        assert "Recorder" not in listeners(attached)
        assert not threads()
        before = rest.get(f"/jobs/{jid}")
        assert streamgauge.attach(attached, url=service)
        assert listeners(attached).count("Recorder") == 1
        assert threads() == {"streamgauge-timers", "streamgauge-pusher"}

        def goes_on() -> bool:
            vertices = rest.get(f"/jobs/{jid}")["vertices"]
            return bool(vertices) and vertices[0]["metrics"]["read-records"] > 0

        eventually(goes_on)
        after = rest.get(f"/jobs/{jid}")
        assert after["vertices"][0]["id"] == before["vertices"][0]["id"]
        assert after["start-time"] == before["start-time"]
        assert rest.get(f"/jobs/{jid}/metrics?get=numRestarts")[0]["value"] == "0"
    finally:
        query.stop()


def sockets() -> int:
    """Open sockets of this process."""
    found = 0
    for descriptor in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):
            found += stat.S_ISSOCK(os.fstat(int(descriptor.name)).st_mode)
    return found


def queues(spark: SparkSession) -> list[str]:
    """Listener queues of the driver's JVM, which are a thread each."""
    found = spark.sparkContext._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()  # type: ignore[union-attr]
    return sorted(name for thread in found if (name := thread.getName()).startswith("spark-listener-group"))


def test_coming_and_going_leaves_no_more_each_time(attached: SparkSession, service: str) -> None:
    """Listeners, queues, threads and sockets are those from before, however often."""
    streamgauge.detach()

    def there() -> tuple[list[str], list[str], set[str], int]:
        gc.collect()
        return sorted(listeners(attached)), queues(attached), threads(), sockets()

    before = there()
    assert "spark-listener-group-streamgauge" not in before[1]
    for _ in range(3):
        assert streamgauge.attach(attached, url=service)
        assert "spark-listener-group-streamgauge" in queues(attached)
        streamgauge.detach()
        streamgauge.detach()
        assert there() == before
    assert streamgauge.attach(attached, url=service)


def test_the_recorder_knows_what_runs(attached: SparkSession) -> None:
    """Queries of whatever session, until they are over."""
    recorder = Recorder(attached)
    try:
        stream = attached.newSession().readStream.format("rate").load()
        query = stream.writeStream.format("noop").start()
        assert query.runId in recorder.running()
        query.stop()
        assert query.runId not in recorder.running()
    finally:
        recorder.remove()


def test_a_script_that_just_ends_has_told_its_last(service: str, rest: Rest) -> None:
    """Its exit code and output are its own, and its job is known to be done though no push was due."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, service], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert "streamgauge" not in done.stderr
    assert "Traceback" not in done.stderr
    job = rest.job("brief")
    assert job is not None
    assert job["state"] == "FINISHED"
