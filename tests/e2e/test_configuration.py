"""How a real driver is set and what its JVM tells, against Spark's and Java's own word."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark

RECORDED = Path(__file__).parents[1] / "contract" / "flink"
ASKED = (
    "Status.JVM.Memory.Heap.Max",
    "Status.JVM.Memory.Heap.Used",
    "Status.Flink.Memory.Managed.Used",
    "Status.JVM.Memory.Metaspace.Used",
)
"""What Flink's autoscaler asks of all TaskManagers at once."""


def config(rest: Rest, path: str) -> dict[str, str]:
    return {each["key"]: each["value"] for each in rest.get(f"{path}/jobmanager/config")}


def values(rest: Rest, path: str) -> dict[str, str]:
    ids = [each["id"] for each in rest.get(path)]
    return {each["id"]: each["value"] for each in rest.get(f"{path}?get={','.join(ids)}")}


def start(spark: SparkSession, name: str, checkpoint: Path) -> StreamingQuery:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    counted = rows.groupBy((rows.value % 2).alias("k")).count()
    writer = counted.writeStream.format("noop").outputMode("update").queryName(name)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def execution_config(rest: Rest, name: str) -> dict[str, Any]:
    """Of the latest job of that name, once a batch has told what it ran with."""

    def told() -> dict[str, Any] | None:
        job = rest.job(name)
        found = job and rest.get(f"/jobs/{job['jid']}/config")["execution-config"]
        return found if found and found["user-config"].get("spark.sql.adaptive.enabled") == "false" else None

    found: dict[str, Any] = eventually(told, 60)
    return found


def test_configuration_is_sparks_own(attached: SparkSession, rest: Rest) -> None:
    """Every setting of the SparkContext, under Spark's id, Flink's id, and as the JobManager's."""
    expected = dict(attached.sparkContext.getConf().getAll())
    app = attached.sparkContext.applicationId

    def flinks() -> str:
        known = rest.get("/applications/overview")["applications"]
        return next((each["id"] for each in known if each["streamgauge"]["application"] == app), "")

    found = config(rest, f"/applications/{eventually(flinks)}")
    assert found.items() >= expected.items()
    assert config(rest, f"/applications/{app}").keys() >= found.keys() <= config(rest, "").keys()
    heap = attached.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    eventually(lambda: config(rest, "").get("jobmanager.memory.heap.size") == f"{heap}b")


def test_environment_is_the_jvms(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """As Java tells it of itself."""
    query = start(attached, "environment", tmp_path)
    try:
        job = eventually(lambda: rest.job("environment"))
        found = rest.get(f"/jobs/{job['jid']}/jobmanager/environment")
    finally:
        query.stop()
    java = attached.sparkContext._jvm.java.lang
    runtime = java.management.ManagementFactory.getRuntimeMXBean()
    version = f"{runtime.getVmName()} - {runtime.getVmVendor()} - {runtime.getSpecVersion()}/{runtime.getVmVersion()}"
    assert found["jvm"] == {
        "version": version,
        "arch": java.System.getProperty("os.arch"),
        "options": list(runtime.getInputArguments()),
    }
    assert found["classpath"] == java.System.getProperty("java.class.path").split(":")


def test_a_query_has_its_sessions_settings_and_its_checkpoints(
    attached: SparkSession, rest: Rest, tmp_path: Path
) -> None:
    """What was set on the session before it started; a checkpoint's partitions go before the session's."""
    partitions = attached.conf.get("spark.sql.shuffle.partitions")
    attached.conf.set("spark.test.before", "yes")
    attached.conf.set("spark.sql.shuffle.partitions", "2")
    query = start(attached, "settings", tmp_path)
    try:
        attached.conf.set("spark.test.after", "no")
        first = execution_config(rest, "settings")
        assert first["job-parallelism"] == 2
        assert first["user-config"]["spark.test.before"] == "yes"
        assert "spark.test.after" not in first["user-config"]
    finally:
        query.stop()
    attached.conf.set("spark.sql.shuffle.partitions", "4")
    query = start(attached, "settings", tmp_path)
    try:

        def restarted() -> bool:
            found = execution_config(rest, "settings")
            return found["user-config"].get("spark.test.after") == "no" and found["job-parallelism"] == 2

        eventually(restarted, 60)
    finally:
        query.stop()
        for name in ("spark.test.before", "spark.test.after"):
            attached.conf.unset(name)
        # Unset it would be Spark's 200, not what the session was made with.
        attached.conf.set("spark.sql.shuffle.partitions", partitions)


def test_a_batch_has_its_sessions_settings(attached: SparkSession, rest: Rest) -> None:
    """Those that it ran with."""
    attached.conf.set("spark.test.batch", "yes")
    try:
        attached.sparkContext.setJobDescription("batch with settings")
        attached.range(10).repartition(2).count()
    finally:
        attached.conf.unset("spark.test.batch")
        attached.sparkContext.setJobDescription(None)
    job = eventually(lambda: rest.job("batch with settings"))
    found = rest.get(f"/jobs/{job['jid']}/config")["execution-config"]
    assert found["user-config"]["spark.test.batch"] == "yes"
    assert found["job-parallelism"] == 3
    assert found["restart-strategy"] == "A failed query is not restarted; a task is tried once."


def test_the_driver_tells_all_that_a_jobmanager_does(attached: SparkSession, rest: Rest) -> None:
    """Every id of the recorded JobManager; names of collectors are this JVM's."""
    recorded = {each["id"] for each in json.loads((RECORDED / "jobmanager_metrics.json").read_text())}
    eventually(lambda: "Status.JVM.GarbageCollector.All.TimeMsPerSecond" in values(rest, "/jobmanager/metrics"))
    found = values(rest, "/jobmanager/metrics")
    beans = attached.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    names = {bean.getName().replace(" ", "_") for bean in beans}
    assert {each for each in recorded if "GarbageCollector.G1" not in each} <= found.keys()
    assert {f"Status.JVM.GarbageCollector.{name}.TimeMsPerSecond" for name in names} <= found.keys()
    assert not any("Memory.Managed" in name for name in found)
    assert float(found["Status.JVM.GarbageCollector.All.TimeMsPerSecond"]) >= 0


def test_the_local_executor_is_the_drivers_jvm(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """Its heap, its metaspace, its collectors; memory in use for execution comes with a heartbeat."""
    query = start(attached, "heartbeats", tmp_path)
    executor = f"{attached.sparkContext.applicationId}-driver"
    try:
        found = eventually(
            lambda: (
                (read := values(rest, f"/taskmanagers/{executor}/metrics")).get(ASKED[2], "NaN") != "NaN"
                and read.get(ASKED[3], "NaN") != "NaN"
                and read
            ),
            60,
        )
    finally:
        query.stop()
    heap = attached.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    unified = int((heap - 300 * 1024 * 1024) * 0.6)
    assert int(found["Status.JVM.Memory.Heap.Max"]) == heap
    assert 0 < int(found["Status.JVM.Memory.Metaspace.Used"]) < heap
    assert 0 <= int(found["Status.Flink.Memory.Managed.Used"]) <= int(found["Status.Flink.Memory.Managed.Total"])
    detail = rest.get(f"/taskmanagers/{executor}")
    parts = detail["memoryConfiguration"]
    assert parts["totalFlinkMemory"] == heap == parts["frameworkHeap"] + parts["taskHeap"] + parts["managedMemory"]
    assert parts["frameworkHeap"] == 300 * 1024 * 1024
    assert parts["managedMemory"] == int(found["Status.Flink.Memory.Managed.Total"]) == unified
    assert detail["hardware"]["freeMemory"] == detail["metrics"]["heapMax"] == heap
    assert detail["hardware"]["physicalMemory"] > heap
    assert len(detail["metrics"]["garbageCollectors"]) > 1


def test_the_autoscalers_question_is_answered(attached: SparkSession, rest: Rest) -> None:
    """All four, of every executor: were one absent the answer would be empty."""

    def answered() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rest.get(f"/taskmanagers/metrics?get={','.join(ASKED)}")
        return found

    found = {each["id"]: each for each in eventually(answered)}
    assert found.keys() == set(ASKED)
    assert not math.isnan(float(found["Status.JVM.Memory.Heap.Max"]["max"]))
