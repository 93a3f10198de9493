"""The reading endpoints over a live driver: what they tell of the same thing agrees."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six small files, a number a line."""
    folder = tmp_path_factory.mktemp("numbers")
    for file in range(6):
        (folder / f"{file}.txt").write_text("\n".join(str(number) for number in range(file * 100, file * 100 + 100)))
    return folder


def ended(rest: Rest, name: str) -> dict[str, Any]:
    """The job of this name, once it has ended."""
    found: dict[str, Any] = eventually(lambda: (job := rest.job(name)) and job["end-time"] > 0 and job)
    return found


def test_every_view_of_a_finished_job_agrees(attached: SparkSession, rest: Rest, files: Path) -> None:
    """Subtasks alone, all together and by executor have the vertex's counts; the application lists the job."""
    rows = attached.readStream.option("maxFilesPerTrigger", 2).text(str(files))
    counted = rows.groupBy((rows.value.cast("long") % 7).alias("k")).count()
    writer = counted.writeStream.queryName("views").outputMode("update").format("noop").trigger(availableNow=True)
    writer.start().awaitTermination()
    job = ended(rest, "views")
    base = f"/jobs/{job['jid']}"

    assert rest.get(f"{base}/status") == {"status": "FINISHED"}
    result = rest.get(f"{base}/execution-result")["job-execution-result"]
    assert (result["application-status"], result["end-time"]) == ("SUCCEEDED", job["end-time"])
    assert result["net-runtime"] == job["duration"]

    spark_id = attached.sparkContext.applicationId
    application = rest.get(f"/applications/{spark_id}")
    assert application["id"] == hashlib.md5(spark_id.encode()).hexdigest() == rest.get(base)["application-id"]
    assert application["status"] == "RUNNING"
    assert job["jid"] in [each["jid"] for each in application["jobs"]]

    vertices = rest.get(base)["vertices"]
    assert len(vertices) == 2
    # Another test's driver may still be there.
    known = {each["id"] for each in rest.get("/taskmanagers")["taskmanagers"]}
    executors = {each for each in known if each.startswith(f"{spark_id}-")}
    assert executors
    for vertex in vertices:
        path = f"{base}/vertices/{vertex['id']}"
        detail, by_executor = rest.get(path), rest.get(f"{path}/taskmanagers")["taskmanagers"]
        for key in ("read-records", "write-records", "read-bytes", "write-bytes"):
            assert sum(row["metrics"][key] for row in by_executor) == vertex["metrics"][key]
        assert {row["taskmanager-id"] for row in by_executor} == executors
        assert sum(row["status-counts"]["FINISHED"] for row in by_executor) == len(detail["subtasks"])
        for row in detail["subtasks"]:
            alone = f"{path}/subtasks/{row['subtask']}"
            assert rest.get(alone) == row == rest.get(f"{alone}/attempts/{row['attempt']}")
        times = rest.get(f"{path}/subtasktimes")["subtasks"]
        assert [each["timestamps"]["RUNNING"] for each in times] == [row["start-time"] for row in detail["subtasks"]]
        assert rest.get(f"{path}/backpressure") == {"status": "deprecated"}
        watermarks = [each["value"] for each in rest.get(f"{path}/watermarks")]
        assert watermarks == ([str(-(2**63))] * len(detail["subtasks"]) if vertex is vertices[1] else [])


def test_failed_job_says_why(attached: SparkSession, rest: Rest, files: Path) -> None:
    """The result names the failure, and the application runs on."""
    broken = udf(lambda _value: 1 // 0, "int")
    rows = attached.readStream.text(str(files))
    query = rows.select(broken("value")).writeStream.queryName("broken").format("noop").start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    job = ended(rest, "broken")
    result = rest.get(f"/jobs/{job['jid']}/execution-result")["job-execution-result"]
    assert result["application-status"] == "FAILED"
    assert "ZeroDivisionError" in result["failure-cause"]["stack-trace"]
    listed = rest.get("/applications/overview")["applications"]
    mine = [each for each in listed if each["streamgauge"]["application"] == attached.sparkContext.applicationId]
    assert [(each["status"], each["jobs"]["FAILED"] >= 1) for each in mine] == [("RUNNING", True)]
