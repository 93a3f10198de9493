"""Lines of an event log become what the recorder would have made of the same events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks import records
from spark_hooks.logged import TOLD_LINES, Logged, cut, lines
from tests.unit.spark_hooks.logs import VERSIONS, recorded

TASK = {"Task ID": 7, "Index": 1, "Attempt": 2, "Partition ID": 3, "Launch Time": 100, "Executor ID": "4"}
SQL = "org.apache.spark.sql.execution.ui."
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def logged(settings: Mapping[str, str] | None = None, maps: frozenset[int] = frozenset()) -> Logged:
    return Logged({"run": "ConsoleTable$"}, settings or {}, maps.__contains__)


def told(event: Mapping[str, Any], reader: Logged | None = None) -> list[records.Record]:
    return list((reader or logged()).read(json.dumps(event, separators=(",", ":")).encode()))


def ended(**changes: Any) -> dict[str, Any]:
    metrics = [
        {"ID": 5, "Update": "11", "Metadata": "sql"},
        {"ID": 6, "Update": 12, "Metadata": "sql"},
        {"ID": 7, "Update": "many", "Metadata": "sql"},
        {"ID": 8, "Update": [], "Internal": True},
        {"ID": 9, "Value": "3", "Metadata": "sql"},
    ]
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": 1,
        "Stage Attempt ID": 0,
        "Task Type": "ResultTask",
        "Task End Reason": {"Reason": "Success"},
        "Task Info": {**TASK, "Finish Time": 150, "Accumulables": metrics},
        "Task Metrics": {
            "Peak Execution Memory": 20,
            "Disk Bytes Spilled": 30,
            "Output Metrics": {"Bytes Written": 40},
        },
        **changes,
    }


def test_a_task_that_ended() -> None:
    """SQL metrics alone, and of these what is a number and was sent with the task."""
    reader = logged()
    assert told(ended(), reader) == [records.TaskEnd(1, 0, 7, 3, 2, 100, "4", 150, True, 40, 20, 30, (5, 11, 6, 12))]
    assert reader.now_ms == 150


def test_a_task_of_a_lost_executor_has_no_metrics() -> None:
    reason = {"Reason": "ExecutorLostFailure", "Executor ID": "4", "Exit Caused By App": True, "Loss Reason": "gone"}
    failure, end = told(ended(**{"Task End Reason": reason, "Task Metrics": None}))
    assert isinstance(failure, records.TaskFailure)
    assert failure.name == "org.apache.spark.ExecutorLostFailure"
    assert failure.text == "ExecutorLostFailure (executor 4 exited caused by one of the running tasks) Reason: gone"
    assert isinstance(end, records.TaskEnd)
    assert (end.succeeded, end.bytes_written, end.peak_bytes) == (False, 0, 0)


@pytest.mark.parametrize(
    ("reason", "name", "text"),
    [
        pytest.param(
            {"Reason": "ExceptionFailure", "Class Name": "a.B", "Full Stack Trace": "a.B: no\n\tat c"},
            "a.B",
            "a.B: no\n\tat c",
            id="exception",
        ),
        pytest.param(
            {
                "Reason": "ExceptionFailure",
                "Class Name": "a.B",
                "Description": "no",
                "Stack Trace": [
                    {"Declaring Class": "c.D", "Method Name": "e", "File Name": "D.java", "Line Number": 5}
                ],
            },
            "a.B",
            "a.B: no\n        c.D.e(D.java:5)",
            id="exception of an old driver",
        ),
        pytest.param(
            {
                "Reason": "FetchFailed",
                "Block Manager Address": {"Executor ID": "1", "Host": "h", "Port": 2},
                "Shuffle ID": 3,
                "Map ID": 4,
                "Map Index": 5,
                "Reduce ID": 6,
                "Message": "lost",
            },
            "org.apache.spark.shuffle.FetchFailedException",
            "FetchFailed(BlockManagerId(1, h, 2, None), shuffleId=3, mapIndex=5, mapId=4, reduceId=6, message="
            "\nlost\n)",
            id="fetch",
        ),
        pytest.param(
            {"Reason": "TaskResultLost"},
            "org.apache.spark.TaskResultLost",
            "TaskResultLost (result lost from block manager)",
            id="result",
        ),
        pytest.param({"Reason": "UnknownReason"}, "org.apache.spark.UnknownReason", "UnknownReason", id="unknown"),
    ],
)
def test_a_task_that_failed(reason: dict[str, Any], name: str, text: str) -> None:
    """Source: Spark, TaskFailedReason.toErrorString."""
    failure, _ = told(ended(**{"Task End Reason": reason}))
    assert isinstance(failure, records.TaskFailure)
    assert (failure.name, failure.text) == (name, text)


@pytest.mark.parametrize("reason", ["TaskKilled", "TaskCommitDenied", "Resubmitted"])
def test_a_task_that_was_stopped_did_not_fail(reason: str) -> None:
    (end,) = told(ended(**{"Task End Reason": {"Reason": reason}}))
    assert isinstance(end, records.TaskEnd)
    assert not end.succeeded


def stage(number: int, rdd: int, *parents: int) -> dict[str, Any]:
    scope = json.dumps({"id": "1", "name": "Exchange"})
    rdds = [{"RDD ID": rdd, "Name": "MapPartitionsRDD", "Scope": scope}, {"RDD ID": rdd - 1, "Scope": scope}, {}]
    return {"Stage ID": number, "Number of Tasks": 2, "RDD Info": rdds, "Parent IDs": parents}


def test_a_stage_that_another_one_reads_writes_a_shuffle() -> None:
    """So does one whose tasks say so: with adaptive execution it is a job of its own, as a sample of its rows is."""
    job = {
        "Event": "SparkListenerJobStart",
        "Job ID": 1,
        "Submission Time": 5,
        "Stage Infos": [stage(0, 10), stage(1, 20, 0)],
        "Properties": {"spark.sql.execution.id": "3", "streaming.sql.batchId": "4", "sql.streaming.queryId": "q"},
    }
    (found,) = told(job)
    assert isinstance(found, records.JobStart)
    assert (found.execution, found.query, found.group, found.batch) == (3, "q", None, 4)
    assert [each.shuffle for each in found.stages] == [10, -1]
    assert found.stages[0].scopes == ("Exchange",)
    (found,) = told({**job, "Stage Infos": [stage(7, 30)]}, logged(maps=frozenset({7})))
    assert isinstance(found, records.JobStart)
    assert [each.shuffle for each in found.stages] == [30]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_writes_a_shuffle_is_found_in_recorded_logs(version: str) -> None:
    """The tasks of every stage agree, of stages that sample the rows of a sort too."""
    events = [json.loads(line) for line in recorded(version).splitlines()]
    types = {
        event["Stage ID"]: event["Task Type"] == "ShuffleMapTask"
        for event in events
        if event["Event"] == "SparkListenerTaskEnd"
    }
    reader = logged(maps=frozenset(stage for stage, writes in types.items() if writes))
    found = {
        each.stage: each.shuffles
        for line in recorded(version).splitlines()
        for record in reader.read(line)
        if isinstance(record, records.JobStart)
        for each in record.stages
    }
    assert {stage: found[stage] for stage in types} == types
    assert len(set(types.values())) == 2


def test_progress_is_as_a_driver_tells_it() -> None:
    """The log has offsets as text, rows with their schema, and no sum of the rows of all sources."""
    row = {"values": [1, {"values": ["x"], "schema": {"fields": [{"name": "c"}]}}]}
    row["schema"] = {"fields": [{"name": "a"}, {"name": "b"}]}  # type: ignore[assignment]
    progress = {
        "id": "i",
        "runId": "r",
        "batchId": 0,
        "timestamp": "1970-01-01T00:00:01.000Z",
        "durationMs": {"triggerExecution": 500},
        "sources": [{"startOffset": None, "endOffset": '{"logOffset":0}', "latestOffset": "7", "numInputRows": 3}],
        "observedMetrics": {"seen": row},
    }
    reader = logged()
    (found,) = told({"Event": f"{STREAMING}QueryProgressEvent", "progress": progress}, reader)
    assert isinstance(found, records.QueryProgress)
    again = json.loads(found.json)
    assert again["numInputRows"] == 3
    assert again["sources"][0] == {
        "startOffset": None,
        "endOffset": {"logOffset": 0},
        "latestOffset": 7,
        "numInputRows": 3,
    }
    assert again["observedMetrics"] == {"seen": {"a": 1, "b": {"c": "x"}}}
    assert reader.now_ms == 1500


def test_a_query_s_end_is_when_something_was_told_last() -> None:
    reader = logged()
    told({"Event": "SparkListenerApplicationEnd", "Timestamp": 9}, reader)
    told({"Event": f"{SQL}SparkListenerSQLExecutionEnd", "executionId": 0, "time": 5}, reader)
    event = {"Event": f"{STREAMING}QueryTerminatedEvent", "id": "i", "runId": "r", "exception": None}
    assert told(event, reader) == [records.QueryTerminated("i", "r", 9, None)]


def test_a_query_has_the_sink_that_its_first_progress_tells() -> None:
    event = {"Event": f"{STREAMING}QueryStartedEvent", "id": "i", "runId": "run", "name": None, "timestamp": None}
    assert told(event) == [records.QueryStarted("i", "run", None, None, None, "ConsoleTable$", None, -1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, {"a": "b", "spark.sql.shuffle.partitions": "200"}, id="Spark's default is told"),
        pytest.param({"spark.sql.shuffle.partitions": "3"}, {"a": "b"}, id="the application's is its own"),
    ],
)
def test_settings_of_an_outermost_execution(settings: dict[str, str], expected: dict[str, str]) -> None:
    event = {
        "Event": f"{SQL}SparkListenerSQLExecutionStart",
        "executionId": 1,
        "rootExecutionId": 1,
        "time": 5,
        "description": "d",
        "sparkPlanInfo": {
            "nodeName": "Scan",
            "simpleString": "Scan x",
            "children": [],
            "metrics": [{"name": "rows", "accumulatorId": 2, "metricType": "nsTiming"}],
        },
        "modifiedConfigs": {"a": "b"},
    }
    plan = records.PlanNode("Scan", "Scan x", ("rows", 2), (), "n")
    start = records.ExecutionStart(1, 1, 5, "d", plan)
    assert told(event, logged(settings)) == [start, records.Configuration(None, 1, expected)]
    assert told({**event, "rootExecutionId": 0}) == [records.ExecutionStart(1, 0, 5, "d", plan)]


def test_unknown_events_and_lines_that_are_none_are_told() -> None:
    """Events by their kind, lines by their number; what is known and needless is neither."""
    reader = logged()
    for line in (
        b'{"Event":"com.example.Strange","a":1}',
        b'{"a": 1, "Event": "com.example.Strange"}',
        b'{"Event":"SparkListenerUnpersistRDD","RDD ID":1}',
        b"no event",
        b"",
        b'{"Event":"SparkListenerTaskEnd","Stage ID":"x"}',
        b'{"Event":"SparkListenerJobEnd","Job ID":1,"Completion Time":5,"Job Result":{"Result":"JobSucceeded"}}',
        b'{"Event":"SparkListenerTaskE',
    ):
        reader.read(line)
    assert reader.skipped.unknown == {"com.example.Strange": 2}
    assert (reader.skipped.lines, reader.skipped.unreadable) == ([4, 6, 8], 3)
    assert reader.events == 2
    reader.end(b'{"Event":"SparkListenerTaskE')
    assert reader.skipped.truncated
    assert (reader.skipped.lines, reader.skipped.unreadable) == ([4, 6], 2)


def test_a_last_line_that_is_whole_but_for_its_break_is_read() -> None:
    reader = logged()
    line = b'{"Event":"SparkListenerApplicationEnd","Timestamp":5}'
    assert reader.read(line)
    reader.end(line)
    assert not reader.skipped.truncated


def test_a_cut_line_after_many_that_are_none() -> None:
    """More lines than are told by number: the last one is still known to be cut off."""
    reader = logged()
    for _ in range(3 * TOLD_LINES):
        reader.read(b"nothing")
    reader.end(b"nothing")
    assert reader.skipped.truncated
    assert reader.skipped.unreadable == 3 * TOLD_LINES - 1
    assert reader.skipped.lines == list(range(1, TOLD_LINES + 1))


def test_a_metric_that_is_no_number() -> None:
    """Spark writes NaN, which is no JSON."""
    line = b'{"Event":"SparkListenerApplicationEnd","Timestamp":5,"Load":NaN}'
    assert list(logged().read(line)) == [records.ApplicationEnd(5)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_event_of_a_recorded_log_is_known(version: str) -> None:
    reader = logged()
    for line in recorded(version).splitlines():
        reader.read(line)
    assert not reader.skipped.unknown
    assert not reader.skipped.unreadable
    assert reader.events == recorded(version).count(b"\n")


@given(st.sampled_from(VERSIONS), st.integers(0), st.data())
def test_no_line_raises(version: str, place: int, data: st.DataObject) -> None:
    """A recorded line, cut and changed anywhere, is read, unknown or unreadable."""
    found = recorded(version).splitlines()
    line = bytearray(found[place % len(found)])
    line = line[: data.draw(st.integers(0, len(line)))]
    for at in data.draw(st.lists(st.integers(0, max(len(line) - 1, 0)), max_size=3)) if line else ():
        line[at] = data.draw(st.integers(0, 255))
    logged().read(bytes(line))


@given(st.text(alphabet="ab \n", max_size=60), st.integers(8, 40))
def test_cut_keeps_both_ends(text: str, chars: int) -> None:
    """As Recorder.java does: never longer than asked for, and never within a word at the first cut."""
    found = cut(text, chars)
    assert found is not None
    assert len(found) <= chars
    if len(text) <= chars:
        assert found == text
    else:
        assert text.startswith(found.partition("\n…")[0])


def test_lines_of_a_chunk() -> None:
    assert list(lines(b"a\n\nb")) == [b"a", b"", b"b"]
    assert list(lines(b"")) == []
