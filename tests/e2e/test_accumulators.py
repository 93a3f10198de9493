"""Every native SQL metric of every subtask is Spark's own, and so is what observe() saw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from tests.e2e import attempts, native
from tests.e2e.conftest import Rest, eventually
from tests.e2e.figures import noop, settings, table
from tests.e2e.test_exact import SCHEMA, stream_stream_join, write

pytestmark = pytest.mark.spark

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture
def read(attached: SparkSession, tmp_path: Path) -> Callable[[str], DataFrame]:
    """Streams of five files each, one a batch."""
    for file, (start, rows) in enumerate([(0, 40), (40, 55), (95, 30), (400, 60), (460, 7)]):
        write(tmp_path / "a", file, range(start, start + rows))
        write(tmp_path / "b", file, range(start + 3, start + rows))
    return lambda side: attached.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / side))


def run(writer: Any, name: str, folder: Path, rest: Rest) -> tuple[Any, str]:
    """Run a query to its end; return it and its job's id."""
    query = writer.queryName(name).option("checkpointLocation", str(folder / "checkpoint"))
    query = query.trigger(availableNow=True).start(*([str(folder / "out")] if "json" in name else []))
    query.awaitTermination(180)
    assert query.exception() is None
    job = eventually(lambda: (found := rest.job(name)) and found["state"] == "FINISHED" and found)
    return query, job["jid"]


def batch(spark: SparkSession, rest: Rest, name: str, action: Callable[[], object]) -> str:
    """Run a batch execution under a name; return its job's id."""
    spark.sparkContext.setJobDescription(name)
    try:
        action()
    finally:
        spark.sparkContext.setJobDescription(None)
    job = eventually(lambda: (found := rest.job(name)) and found["state"] == "FINISHED" and found)
    return str(job["jid"])


def held(found: native.Metrics, node: str, metric: str) -> int:
    """How much of a metric there is, over all nodes and subtasks."""
    return sum(int(value) for table in found.subtasks[node, metric] for value in table.values())


def stateful(rest: Rest, jid: str) -> dict[str, int]:
    """Metric of state → its sum over all operators and subtasks."""
    found: Counter[str] = Counter()
    for vertex in rest.get(f"/jobs/{jid}")["vertices"]:
        columns = rest.columns(
            jid, vertex["id"], lambda metric: "State" in metric.rpartition(".")[2] or ".state" in metric
        )
        for metric, column in columns.items():
            found[metric.rpartition(".")[2]] += sum(map(int, column.values()))
    return dict(found)


@pytest.mark.parametrize("provider", [HDFS, ROCKSDB], ids=["HDFS", "RocksDB"])
def test_stateful_aggregation_with_udf_and_join_into_files(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path, read: Callable[[str], DataFrame], provider: str
) -> None:
    """What flows is summed over batches, state is what the last batch left; with either state store."""
    names = attached.createDataFrame([(k, f"name {k}") for k in range(5)], "k INT, name STRING")
    twice = f.udf(lambda value: value * 2, "long")
    frame = read("a").where("k < 6").where(twice("id") % 3 < 2).join(f.broadcast(names), "k")
    frame = frame.withWatermark("t", "20 seconds").groupBy(f.window("t", "30 seconds"), "k").count()
    name = f"json {provider[-28:]}"
    # A batch without rows reads the names without the join: another vertex.
    no_data = {"streaming__noDataMicroBatches__enabled": "false"}
    with settings(attached, streaming__stateStore__providerClass=provider, **no_data):
        query, jid = run(frame.writeStream.format("json"), name, tmp_path, rest)
    found = native.told(rest, jid)
    native.assert_same(found, native.logged(attached, event_log, jid, str(query.runId)))
    state = query.lastProgress["stateOperators"][0]
    assert held(found, "StateStoreSave", "number of total state rows") == state["numRowsTotal"] > 0
    assert held(found, "StateStoreSave", "memory used by state") == state["memoryUsedBytes"] > 0
    updated = sum(progress["stateOperators"][0]["numRowsUpdated"] for progress in query.recentProgress)
    assert held(found, "StateStoreSave", "number of updated state rows") == updated > 0
    batches = [progress["stateOperators"][0] for progress in query.recentProgress]
    assert stateful(rest, jid) == {
        "numStateRows": state["numRowsTotal"],
        "stateMemoryUsed": state["memoryUsedBytes"],
        "numStateRowsUpdated": updated,
        "numStateRowsRemoved": sum(each["numRowsRemoved"] for each in batches),
        "stateCommitTimeMs": sum(each["commitTimeMs"] for each in batches),
    }
    # Every batch has as many, and they are not added up.
    assert held(found, "StateStoreSave", "number of state store instances") == 3
    assert found.driver["Exchange", "number of output rows"] == 5 * len(
        [progress for progress in query.recentProgress if progress["numInputRows"]]
    )
    # Spark 4 runs such a function over Arrow's batches.
    assert sum(held(found, node, "data sent to Python workers") for node in ("ArrowEvalPython", "BatchEvalPython")) > 0
    assert held(found, "Exchange", "shuffle bytes written") > 0


def test_join_of_streams(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path, read: Callable[[str], DataFrame]
) -> None:
    """A vertex that reads two exchanges has the sum of what it read of both."""
    frame = stream_stream_join(attached, read)
    query, jid = run(frame.writeStream.format("noop"), "joined streams", tmp_path, rest)
    found = native.told(rest, jid)
    native.assert_same(found, native.logged(attached, event_log, jid, str(query.runId)))
    assert held(found, "Exchange", "records read") == held(found, "Exchange", "shuffle records written") > 200


def test_window_and_sort_in_foreach_batch(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path, read: Callable[[str], DataFrame]
) -> None:
    """What user code does with a batch, with adaptive execution: every stage's work where it was done."""

    def each(batch: DataFrame, _: int) -> None:
        latest = Window.partitionBy("k").orderBy(f.desc("id"))
        noop(batch.withColumn("n", f.row_number().over(latest)).where("n < 4").sortWithinPartitions("id"))

    query, jid = run(read("a").where("k > 1").writeStream.foreachBatch(each), "windowed", tmp_path, rest)
    found = native.told(rest, jid)
    native.assert_same(found, native.logged(attached, event_log, jid, str(query.runId)))
    assert held(found, "Sort", "peak memory") > 0
    assert {key[0] for key in found.subtasks} >= {"Window", "Sort", "Filter", "Exchange", "ExistingRDD"}


def test_batch_equals_sparks_own_page(attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path) -> None:
    """What Spark's SQL page says of each node is what the vertex says: sums, sizes, times, averages, the driver's."""
    latest = Window.partitionBy("k").orderBy("n")
    frame = table(attached, tmp_path / "in", ((0, 300), (300, 500))).where("id % 3 > 0")
    frame = frame.groupBy("k", (f.col("id") % 40).alias("n")).agg(f.count("*").alias("c"))
    frame = frame.withColumn("r", f.rank().over(latest)).sortWithinPartitions("c")
    jid = batch(attached, rest, "as on the page", lambda: frame.write.mode("overwrite").json(str(tmp_path / "out")))
    page = native.page(attached, "as on the page")
    found = native.totals(rest, jid, attached, page)
    assert found == {key: values for key, (_, values) in page.items()}
    assert found["json", "number of files read"] == ["2"]
    assert len(found) > 35
    native.assert_same(native.told(rest, jid), native.logged(attached, event_log, jid))


def test_plans_that_adaptive_execution_gave_up_count_once(
    attached: SparkSession, rest: Rest, event_log: Path, tmp_path: Path
) -> None:
    """A join that becomes a broadcast, and shuffles that are read in other pieces than they were written in."""
    many = table(attached, tmp_path / "many", ((0, 300), (300, 500)))
    few = table(attached, tmp_path / "few", ((0, 200),)).where("id < 20").selectExpr("id AS other", "k")
    frame = many.join(few.groupBy("k").agg(f.max("other").alias("other")), "k").groupBy("other").count()
    with settings(attached, adaptive__autoBroadcastJoinThreshold="1m", autoBroadcastJoinThreshold="-1"):
        jid = batch(attached, rest, "planned anew", lambda: noop(frame))
    found = native.told(rest, jid)
    native.assert_same(found, native.logged(attached, event_log, jid))
    assert ("BroadcastHashJoin", "number of output rows") in found.subtasks


def test_observed_metrics_are_those_of_the_latest_batch(
    attached: SparkSession, rest: Rest, tmp_path: Path, read: Callable[[str], DataFrame]
) -> None:
    """Numbers as numbers, all else as JSON; NaN, which is no JSON, costs nothing."""
    columns = [
        f.count(f.lit(1)).alias("rows"),
        f.avg(f.lit(float("nan"))).alias("mean"),
        f.max("t").alias("latest"),
        f.collect_set("k").alias("keys"),
        f.max(f.lit(None).cast("int")).alias("nothing"),
        f.lit("password=swordfish").alias("word"),
    ]
    query, jid = run(read("a").observe("seen", *columns).writeStream.format("noop"), "observing", tmp_path, rest)
    body = rest.get(f"/jobs/{jid}/accumulators?includeSerializedValue=true")
    found = {each["name"]: (each["type"], each["value"]) for each in body["user-task-accumulators"]}
    last = query.lastProgress["observedMetrics"]["seen"]
    assert found["seen.rows"] == ("Long", str(last["rows"])) == ("Long", "7")
    # Spark 4.3 quotes it.
    assert found["seen.mean"] in (("Double", "NaN"), ("String", "NaN"))
    assert found["seen.latest"][0] == "String"
    assert sorted(json.loads(found["seen.keys"][1])) == sorted(last["keys"])
    assert "seen.nothing" not in found
    assert "swordfish" not in str(found)
    assert rest.get(f"/jobs/{jid}/metrics?get=totalNumberOfCheckpoints")[0]["value"] == "5"


def test_batches_tell_what_they_observed(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """Their end does; Spark posts no progress of them."""
    frame = table(attached, tmp_path / "in", ((0, 30),)).observe("seen", f.sum("id").alias("total"))
    jid = batch(attached, rest, "observed batch", lambda: noop(frame))
    body = rest.get(f"/jobs/{jid}/accumulators")
    assert body["user-task-accumulators"] == [{"name": "seen.total", "type": "Long", "value": str(sum(range(30)))}]


@pytest.fixture(scope="module")
def local(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attempts.Driver]:
    """Two cores, four attempts a task."""
    with attempts.driver(service, "local", tmp_path_factory.mktemp("local")) as process:
        yield process
        process.end()


@pytest.mark.parametrize("scenario", ["retries", "lost_shuffle", "lost_shuffle adaptive"])
def test_attempts_count_once(local: attempts.Driver, rest: Rest, scenario: str) -> None:
    """What failed attempts did is in no metric, and a later success takes the place of the first one."""
    run_id = attempts.run(local, scenario)
    jid = attempts.ended(local, rest, scenario)["jid"]
    log = eventually(lambda: local.log(run_id))
    assert set(log.reasons()) > {"Success"}
    found = native.told(rest, jid)
    for node, metric in [
        ("MapInArrow", "data sent to Python workers"),
        ("MapInArrow", "data returned from Python workers"),
        ("Filter", "number of output rows"),
        ("Exchange", "shuffle bytes written"),
        ("Exchange", "shuffle write time"),
        ("Exchange", "data size"),
        ("Exchange", "records read"),
        ("Exchange", "fetch wait time"),
        ("Exchange", "local bytes read"),
    ]:
        summed: Counter[int] = Counter()
        for told in found.subtasks.get((node, metric), found.subtasks.get((f"Python{node}", metric), [])):
            summed.update({partition: int(value) for partition, value in told.items()})
        assert dict(summed) == log.rows(node, metric), (node, metric)
