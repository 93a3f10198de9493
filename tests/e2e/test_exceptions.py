"""What fails is told as Spark tells it: the run, the task that caused it, and what was overcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from tests.e2e.attempts import Driver, driver, ended, run
from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import Attempt, EventLog
from tests.e2e.test_exact import SCHEMA, write

pytestmark = pytest.mark.spark

PLACE = {"taskName", "endpoint", "taskManagerId"}


def fussy(frame: DataFrame) -> DataFrame:
    """The ids, with a Python function that takes no 79."""

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 79 in batch["id"].to_pylist():
                raise ValueError("row 79 is one too many")
            yield batch

    return frame.select("id").mapInArrow(check, "id BIGINT")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """Two files of 40 rows, a file a batch; row 79 is in the second one."""
    for file in range(2):
        write(folder / "in", file, range(40 * file, 40 * file + 40))
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def start(stream: DataFrame, name: str, folder: Path, **each: Any) -> StreamingQuery:
    writer = stream.writeStream.queryName(name).option("checkpointLocation", str(folder / name)).outputMode("update")
    writer = writer.foreachBatch(each["each"]) if each else writer.format("noop")
    return writer.trigger(availableNow=True).start()


def fail(query: StreamingQuery) -> tuple[str, str]:
    """Wait until the query has failed; return class and text of the exception, as Spark has them."""
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(90)
    cause = query._jsq.exception().get().getCause()
    return cause.getClass().getName(), cause.toString()


def told(rest: Rest, name: str, state: str = "FAILED") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """/jobs/:jobid of a job once it is in `state`, and the entries of its /exceptions."""
    jid = eventually(lambda: (found := rest.job(name)) and found["state"] == state and found)["jid"]
    history = rest.get(f"/jobs/{jid}/exceptions")
    assert history["exceptionHistory"]["truncated"] is False
    assert history["streamgauge"] == {"forgotten": 0}
    return rest.get(f"/jobs/{jid}"), history["exceptionHistory"]["entries"]


def divide(stream: DataFrame) -> DataFrame:
    return stream.select((f.col("k") / (f.col("id") - 79)).alias("x"))


def cast_behind_the_shuffle(stream: DataFrame) -> DataFrame:
    grouped = stream.groupBy("k").agg(f.max("id").alias("top"))
    return grouped.select(f.when(f.col("top") == 79, f.lit("seventy-nine")).otherwise("1").cast("int").alias("x"))


@pytest.mark.parametrize(
    ("change", "vertex"), [(fussy, 0), (divide, 0), (cast_behind_the_shuffle, 1)], ids=["python", "divide", "cast"]
)
def test_failed_task_is_told_with_its_place(
    attached: SparkSession,
    rest: Rest,
    event_log: Path,
    tmp_path: Path,
    change: Callable[[DataFrame], DataFrame],
    vertex: int,
) -> None:
    """On top what the query threw, where the task was that caused it; below it the tasks; the event log agrees."""
    attached.conf.set("spark.sql.ansi.enabled", "true")
    name = f"fails by {change.__name__}"
    query = start(change(read(attached, tmp_path)), name, tmp_path)
    thrown, text = fail(query)
    job, [top] = told(rest, name)
    assert (top["exceptionName"], top["timestamp"]) == (thrown, job["end-time"])
    assert top["stacktrace"].startswith(text)
    assert "\tat org.apache.spark." in top["stacktrace"]
    log = EventLog(event_log, str(query.runId))
    failed = [attempt for attempt in log.attempts if attempt.reason == "ExceptionFailure"]
    assert failed
    vertices = {each["name"]: each for each in job["vertices"]}
    broken = job["vertices"][vertex]
    below = top["concurrentExceptions"]
    assert sorted(below, key=str) == sorted((entry(rest, job, broken, attempt) for attempt in failed), key=str)
    assert {key: top[key] for key in PLACE} in [{key: each[key] for key in PLACE} for each in below]
    assert {name: each["status"] for name, each in vertices.items()} == {
        each["name"]: "FAILED" if each is broken else "CANCELED" for each in job["vertices"]
    }
    assert job["status-counts"]["FAILED"] == broken["tasks"]["FAILED"] == 1
    assert broken["tasks"]["CANCELED"] == broken["parallelism"] - 1
    assert job["timestamps"]["FAILING"] == min(attempt.finish_ms for attempt in failed) <= job["end-time"]
    subtasks = rest.get(f"/jobs/{job['jid']}/vertices/{broken['id']}")["subtasks"]
    [subtask] = [each["subtask"] for each in subtasks if each["status"] == "FAILED"]
    assert top["taskName"] == f"{broken['name']} ({subtask + 1}/{broken['parallelism']}) - execution #0"
    assert job["streamgauge"]["failure"] in top["stacktrace"]
    assert "\tat " not in job["streamgauge"]["failure"]


def entry(rest: Rest, job: dict[str, Any], vertex: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """What /exceptions must say of a task attempt of the event log."""
    [executor] = [
        each
        for each in rest.get("/taskmanagers")["taskmanagers"]
        if each["id"].startswith(job["streamgauge"]["application"])
    ]
    thrown, stack = attempt.failure
    return {
        "exceptionName": thrown,
        "stacktrace": stack,
        "timestamp": attempt.finish_ms,
        "failureLabels": {},
        "taskName": f"{vertex['name']} ({attempt.partition + 1}/{vertex['parallelism']}) - execution #{attempt.number}",
        "endpoint": executor["path"],
        "taskManagerId": executor["id"],
    }


def test_user_code_that_raises_in_the_driver_has_no_task(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """Of foreachBatch: no vertex failed."""

    def each(batch: DataFrame, number: int) -> None:
        batch.select("no such column")

    name = "fails in foreachBatch"
    thrown, _ = fail(start(read(attached, tmp_path), name, tmp_path, each=each))
    job, [top] = told(rest, name)
    assert top["exceptionName"] == thrown == "py4j.Py4JException"
    assert "no such column" in top["stacktrace"]
    assert top["concurrentExceptions"] == []
    assert PLACE.isdisjoint(top)
    assert {vertex["status"] for vertex in job["vertices"]} <= {"CANCELED"}
    assert job["timestamps"]["FAILING"] == job["end-time"]


def test_job_of_user_code_that_fails_is_told_with_its_task(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """What foreachBatch throws speaks of no task, yet one of its write's caused it."""

    def each(batch: DataFrame, number: int) -> None:
        fussy(batch).write.format("noop").mode("append").save()

    name = "writes in foreachBatch"
    fail(start(read(attached, tmp_path), name, tmp_path, each=each))
    job, [top] = told(rest, name)
    [below] = top["concurrentExceptions"]
    assert below["exceptionName"] == "org.apache.spark.api.python.PythonException"
    assert {key: top[key] for key in PLACE} == {key: below[key] for key in PLACE}
    [broken] = [vertex for vertex in job["vertices"] if vertex["status"] == "FAILED"]
    assert top["taskName"].startswith(broken["name"])


def test_checkpoint_that_cannot_be_read_fails_a_run_and_history_outlives_it(
    attached: SparkSession, rest: Rest, tmp_path: Path
) -> None:
    """No batch and no vertex; the run that comes after it still shows what was before."""
    name = "restarted after a failure"
    start(read(attached, tmp_path), name, tmp_path).awaitTermination(60)
    [offsets] = [path for path in (tmp_path / name / "offsets").iterdir() if path.name == "1"]
    whole = offsets.read_bytes()
    [checksum] = [path for path in offsets.parent.iterdir() if path.name == ".1.crc"]
    checksum.unlink()
    offsets.write_text("nonsense")
    thrown, _ = fail(start(read(attached, tmp_path), name, tmp_path))
    job, [top] = told(rest, name)
    assert top["exceptionName"] == thrown
    assert "nonsense" in top["stacktrace"]
    assert PLACE.isdisjoint(top)
    assert job["vertices"] == []
    offsets.write_bytes(whole)
    start(read(attached, tmp_path), name, tmp_path).awaitTermination(60)
    again, entries = told(rest, name, "FINISHED")
    assert entries == [top]
    assert again["streamgauge"]["failure"] == ""
    assert again["timestamps"]["FAILING"] == 0


def test_source_that_cannot_be_read_fails_the_task_that_reads(
    attached: SparkSession, rest: Rest, tmp_path: Path
) -> None:
    """With its causes; the query beside it goes on, and has no failure."""
    read(attached, tmp_path)
    (tmp_path / "in" / "1.json").write_text("{nonsense")
    stream = attached.readStream.schema(SCHEMA).option("mode", "FAILFAST").option("maxFilesPerTrigger", 1)
    beside = start(attached.readStream.format("rate").load(), "goes on", tmp_path)
    fail(start(stream.json(str(tmp_path / "in")), "reads nonsense", tmp_path))
    beside.awaitTermination(60)
    _, [top] = told(rest, "reads nonsense")
    assert "Caused by: " in top["stacktrace"]
    assert top["taskName"].startswith("Source: json")
    _, entries = told(rest, "goes on", "FINISHED")
    assert entries == []


def test_batch_query_that_fails_is_told_with_its_stack(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """Spark's event has the message alone; the exception is the one that the user got."""
    frame = fussy(attached.range(0, 80, 1, 2))
    attached.sparkContext.setJobDescription("a batch that fails")
    with pytest.raises(PySparkException, match="row 79 is one too many"):
        frame.write.format("noop").mode("append").save()
    attached.sparkContext.setJobDescription(None)
    job, [top] = told(rest, "a batch that fails")
    assert job["job-type"] == "BATCH"
    assert "row 79 is one too many" in top["stacktrace"]
    assert "\tat org.apache.spark." in top["stacktrace"]
    [below] = top["concurrentExceptions"]
    assert top["taskName"] == below["taskName"]
    assert "(2/2)" in top["taskName"]


def test_hostile_text_is_told_without_secrets(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """NUL, markup and a megabyte: the text is cut, what it begins with and ends with is kept."""

    def hostile(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise ValueError("\0<script>alert('79')</script> jdbc:x://me:hunter2@db " + "password=hunter2 " * 60_000)
        yield from ()

    name = "fails with much text"
    fail(start(read(attached, tmp_path).select("id").mapInArrow(hostile, "id BIGINT"), name, tmp_path))
    _, [top] = told(rest, name)
    for each in (top, *top["concurrentExceptions"]):
        assert "\0<script>alert('" in each["stacktrace"]
        assert "hunter2" not in each["stacktrace"]
        assert 10_000 < len(each["stacktrace"]) <= 30_000
        assert each["stacktrace"].rstrip().endswith(")"), each["stacktrace"][-100:]


@pytest.fixture(scope="module")
def local(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Two cores, four attempts a task."""
    with driver(service, "local", tmp_path_factory.mktemp("local")) as process:
        yield process
        process.end()


def test_failures_that_were_overcome_are_entries_of_their_own(local: Driver, rest: Rest) -> None:
    """Newest first, each with its attempt; the job is no worse for it."""
    run_id = run(local, "retries")
    job = ended(local, rest, "retries")
    log: EventLog = eventually(partial(local.log, run_id))
    failed = [attempt for attempt in log.attempts if attempt.reason == "ExceptionFailure"]
    entries = rest.get(f"/jobs/{job['jid']}/exceptions")["exceptionHistory"]["entries"]
    assert [(each["exceptionName"], each["stacktrace"], each["timestamp"]) for each in entries] == [
        (*attempt.failure, attempt.finish_ms) for attempt in reversed(failed)
    ]
    assert all(each["concurrentExceptions"] == [] for each in entries)
    executions = [each["taskName"].rpartition("#")[2] for each in entries]
    assert executions == [str(attempt.number) for attempt in reversed(failed)]
    assert {vertex["status"] for vertex in job["vertices"]} == {"FINISHED"}
    assert job["timestamps"]["FAILING"] == 0


def test_of_a_storm_the_latest_failures_are_held(local: Driver, rest: Rest) -> None:
    """As many as Flink keeps; it is known how many there were before."""
    run_id = run(local, "storm", (100,))
    job = ended(local, rest, "storm")
    log: EventLog = eventually(partial(local.log, run_id))
    failed = [attempt for attempt in log.attempts if attempt.reason == "ExceptionFailure"]
    assert len(failed) == 50
    body = rest.get(f"/jobs/{job['jid']}/exceptions?maxExceptions=100")
    assert [each["timestamp"] for each in body["exceptionHistory"]["entries"]] == [
        attempt.finish_ms for attempt in failed[:-17:-1]
    ]
    assert body["streamgauge"] == {"forgotten": 34}


def test_lost_shuffle_is_told_by_the_task_that_missed_it(local: Driver, rest: Rest) -> None:
    """Its stage's failure says nothing more, and is no entry."""
    run_id = run(local, "lost_shuffle")
    job = ended(local, rest, "lost_shuffle")
    log: EventLog = eventually(partial(local.log, run_id))
    entries = rest.get(f"/jobs/{job['jid']}/exceptions")["exceptionHistory"]["entries"]
    assert len(entries) == log.reasons()["FetchFailed"]
    assert {each["exceptionName"] for each in entries} == {"org.apache.spark.shuffle.FetchFailedException"}
    assert all(each["taskName"].startswith(job["vertices"][1]["name"]) for each in entries)
