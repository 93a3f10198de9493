"""The same requests as the recorded Flink answered, against the same jobs: same structure, status, content type."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from collector.store import MetricStore
from service.cluster import application_id
from service.errors import HANDLER, NOT_FOUND
from service.flink.rest import RESOURCES, FlinkRest
from streamgauge.clock import ManualClock

RECORDINGS = Path(__file__).parent / "flink"
with (RECORDINGS / "INDEX.tsv").open() as index:
    ROWS = list(csv.DictReader(index, delimiter="\t"))


def structure(value: Any) -> Any:
    """
    Types instead of values; a list is told by what its elements have in common, so they must agree; those of
    several classes, where one class does.
    """
    if isinstance(value, dict):
        return {key: structure(_plain(key, inner)) for key, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(inner, dict) and "className" in inner for inner in value):
        return {name: _common([each for each in value if each["className"] == name]) for name in _classes(value)}
    if isinstance(value, list):
        return _common(value)
    return type(value).__name__


def _classes(value: list[Any]) -> set[str]:
    return {each["className"] for each in value}


def _common(value: list[Any]) -> Any:
    kinds = [structure(inner) for inner in value]
    assert all(kind == kinds[0] for kind in kinds) or _optional(kinds), kinds
    return [max(kinds, key=lambda kind: len(str(kind)))] if kinds else []


def _optional(kinds: list[Any]) -> bool:
    """Plan nodes have `inputs` or not; nothing else differs between the elements of a list."""
    return all(kind | {"inputs": 0} == kinds[0] | {"inputs": 0} for kind in kinds)


def _plain(key: str, value: Any) -> Any:
    """An application's counts of jobs have the states that occur as keys; a ratio may be NaN, which Flink quotes."""
    if key == "jobs" and isinstance(value, dict):
        return {"a state": next(iter(value.values()), 0)}
    return 0.0 if key in ("ratio", "idleRatio", "busyRatio") and value == "NaN" else value


def comparable(body: Any) -> Any:
    """Without what is ours, and what Spark cannot have: objects of Java's, and accumulators that are such."""
    if isinstance(body, list):
        return [comparable(inner) for inner in body]
    if not isinstance(body, dict):
        return body
    absent = ("streamgauge", "serialized-throwable", "accumulator-results")
    return {key: comparable(inner) for key, inner in body.items() if key not in absent}


def answer(client: Any, row: dict[str, str]) -> Any:
    # In Flink an application of one job has the job's id; of the recorded one nothing had failed.
    application = application_id("spark-0" if row["path"].endswith("/exceptions") else "spark-1")
    path = re.sub(r"/applications/[0-9a-f]{32}", f"/applications/{application}", row["path"])
    return client.request(row["method"], path)


def ids(rows: list[dict[str, str]]) -> list[str]:
    return [row["file"].removesuffix(".json") for row in rows]


LONGEST = 300
BODIES = [row for row in ROWS if row["method"] != "HEAD"]
STRUCTURES = [row for row in BODIES if row["status"] == "200" and not row["file"].startswith("err_")]
REFUSALS = [row for row in BODIES if row["status"] != "200"]
EMPTY = [row for row in BODIES if row["file"].startswith("err_") and (RECORDINGS / row["file"]).read_text() == "[]"]
ODD = [row for row in BODIES if row["file"].startswith("err_") and row not in REFUSALS and row not in EMPTY]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_status_and_content_type_are_flinks(client: Any, row: dict[str, str]) -> None:
    """Whatever the request, status and Content-Type are as recorded."""
    got = answer(client, row)
    assert (str(got.status_code), got.headers["content-type"]) == (row["status"], row["content_type"])


@pytest.mark.parametrize("row", STRUCTURES, ids=ids(STRUCTURES))
def test_structure_is_flinks(client: Any, row: dict[str, str]) -> None:
    """Keys and types are as recorded; where Flink's list has elements ours has some, alike."""
    got = comparable(answer(client, row).json())
    recorded = comparable(json.loads((RECORDINGS / row["file"]).read_text()))
    if recorded == []:
        # Flink forgot the metrics of ended jobs; here they stay until the job leaves the store.
        assert isinstance(got, list)
        return
    assert structure(got) == structure(recorded)


@pytest.mark.parametrize("row", STRUCTURES, ids=ids(STRUCTURES))
def test_body_is_what_its_handler_declares(client: Any, row: dict[str, str]) -> None:
    """Read as the return type and written again it is the same: no key is undeclared, none of another type."""
    found = FlinkRest(MetricStore(), ManualClock()).resolve(row["path"].partition("?")[0])
    assert found is not None
    declared = get_type_hints(RESOURCES[found[0]])["return"]
    body = answer(client, row)
    assert json.loads(msgspec.json.encode(msgspec.json.decode(body.content, type=declared))) == body.json()


@pytest.mark.parametrize("row", REFUSALS, ids=ids(REFUSALS))
def test_refusal_is_flinks_word_for_word(client: Any, row: dict[str, str]) -> None:
    """Malformed, unknown or unrouted: the message is the recorded one, of which LONGEST characters were kept."""
    got = answer(client, row).json()
    assert {"errors": [message[:LONGEST] for message in got["errors"]]} == json.loads(
        (RECORDINGS / row["file"]).read_text()
    )


@pytest.mark.parametrize("row", EMPTY, ids=ids(EMPTY))
def test_nothing_is_an_empty_list(client: Any, row: dict[str, str]) -> None:
    """Metrics of what is unknown, and aggregates with an unknown metric, are [] with status 200."""
    assert answer(client, row).json() == []


@pytest.mark.parametrize("row", ODD, ids=ids(ODD))
def test_odd_requests_answer_as_recorded(client: Any, row: dict[str, str]) -> None:
    """Doubled slashes, repeated, empty and unknown parameters: structure and, for metrics, ids as recorded."""
    got = comparable(answer(client, row).json())
    recorded = json.loads((RECORDINGS / row["file"]).read_text())
    assert structure(got) == structure(recorded)
    if isinstance(recorded, list) and "get=" in row["path"]:
        assert sorted(each["id"] for each in got) == sorted(each["id"] for each in recorded)


def test_aggregates_keep_the_order_of_get(client: Any) -> None:
    """Order and duplicates follow `get`, unlike in plain metrics."""
    for name in ("err_agg_order.json", "err_agg_dup_get.json"):
        row = next(row for row in ROWS if row["file"] == name)
        recorded = json.loads((RECORDINGS / name).read_text())
        assert [each["id"] for each in answer(client, row).json()] == [each["id"] for each in recorded]


JOB = "/jobs/9e283f61da6ac64998d5e31ca6520bee"
VERTEX = f"{JOB}/vertices/23ab3a59b17e9c45f95cff4c728611fc"
TASKMANAGER = "127.0.0.1:33081-ee3b94"
TRIGGER = "0123456789abcdef0123456789abcdef"
RESCALES = (
    "org.apache.flink.runtime.rest.handler.job.rescales.RescalesUnavailableException: The job "
    "`9e283f61da6ac64998d5e31ca6520bee` has not enabled the `Adaptive` scheduler, or it has been enabled but the value "
    "of configuration option `web.adaptive-scheduler.rescale-history.size` has not been set to greater than `0`."
)
NO_FILE = "This file does not exist in JobManager log dir."
NO_TRANSFER = f"{NOT_FOUND}Failed to transfer file from TaskExecutor"
NO_PAGE = f"{HANDLER}There is no page of logs: Spark's processes keep their own."
UNKNOWN_OPERATION = f"{NOT_FOUND}Operation not found under key: {TRIGGER}"
SETTINGS = [
    {"key": "spark.master", "value": "spark://driver.test:7077"},
    {"key": "spark.sql.shuffle.partitions", "value": "2"},
]
ENVIRONMENT = {
    "jvm": {"version": "VM - Vendor - 17/17.0.15", "arch": "amd64", "options": ["-Xmx1g"]},
    "classpath": ["/a.jar", "/b.jar"],
}
UNRECORDED: list[tuple[str, Any]] = [
    # ConfigurationInfo, EnvironmentInfo.
    ("/jobmanager/config", SETTINGS),
    ("/jobmanager/environment", ENVIRONMENT),
    (f"{JOB}/jobmanager/config", SETTINGS),
    (f"{JOB}/jobmanager/environment", ENVIRONMENT),
    (f"/jobs/{TRIGGER}/jobmanager/config", f"{NOT_FOUND}Job {TRIGGER} not found"),
    ("/applications/spark-1/jobmanager/config", SETTINGS),
    (f"/applications/{TRIGGER}/jobmanager/config", f"{NOT_FOUND}Could not find Flink application ({TRIGGER})"),
    # Flink 2.3's classes: JobRescalesOverviewHandler, JobRescalesSummaryHandler, JobRescaleDetailsHandler.
    (f"{JOB}/rescales/overview", RESCALES),
    (f"{JOB}/rescales/summary", RESCALES),
    (
        f"{JOB}/rescales/details/{TRIGGER}",
        f"{HANDLER}AdaptiveScheduler rescales was not enabled for job 9e283f61da6ac64998d5e31ca6520bee.",
    ),
    # Flink answers 500; the words are those of its SchedulerNG.
    (
        f"{JOB}/resource-requirements",
        f"{HANDLER}The DefaultScheduler does not support changing the parallelism without a job restart. This feature "
        "is currently only expected to work with the AdaptiveScheduler.",
    ),
    # The recorded Flink had a directory of logs; without one it has an empty list.
    ("/jobmanager/logs", {"logs": []}),
    (f"/taskmanagers/{TASKMANAGER}/logs", {"logs": []}),
    ("/taskmanagers/nope/logs", f"{HANDLER}Could not find TaskExecutor nope"),
    # AbstractJobManagerFileHandler, AbstractTaskManagerFileHandler; of a known TaskManager Flink answers 500.
    ("/jobmanager/log", NO_FILE),
    ("/jobmanager/stdout", NO_FILE),
    ("/jobmanager/logs/a.log", NO_FILE),
    (f"/taskmanagers/{TASKMANAGER}/log", f"{NO_TRANSFER} {TASKMANAGER}."),
    (f"/taskmanagers/{TASKMANAGER}/stdout", f"{NO_TRANSFER} {TASKMANAGER}."),
    (f"/taskmanagers/{TASKMANAGER}/logs/a.log", f"{NO_TRANSFER} {TASKMANAGER}."),
    ("/taskmanagers/nope/log", f"{NO_TRANSFER} nope because it was unknown."),
    # Flink would dump threads, or point to its page: neither is to be had.
    ("/jobmanager/thread-dump", f"{HANDLER}There is no thread dump: drivers push, and cannot be asked."),
    (
        f"/taskmanagers/{TASKMANAGER}/thread-dump",
        f"{HANDLER}There is no thread dump: executors are not asked, only their drivers' pushes are read.",
    ),
    ("/taskmanagers/nope/thread-dump", f"{NOT_FOUND}TaskManager nope not found"),
    (f"{JOB}/jobmanager/log-url", NO_PAGE),
    (f"{JOB}/taskmanagers/{TASKMANAGER}/log-url", NO_PAGE),
    # DisabledJobVertexFlameGraphHandler; the recorded Flink had flame graphs switched on.
    (f"{VERTEX}/flamegraph?type=on_cpu&subtaskindex=0", {"endTimestamp": -2}),
    # No program of the recorded Flink cached a result.
    ("/datasets", {"dataSets": []}),
    # AbstractAsynchronousOperationHandlers, whether or not the job is known.
    (f"{JOB}/checkpoints/{TRIGGER}", UNKNOWN_OPERATION),
    (f"{JOB}/savepoints/{TRIGGER}", UNKNOWN_OPERATION),
    (f"/jobs/{TRIGGER}/savepoints/{TRIGGER}", UNKNOWN_OPERATION),
    (f"{JOB}/rescaling/{TRIGGER}", UNKNOWN_OPERATION),
    (f"/savepoint-disposal/{TRIGGER}", UNKNOWN_OPERATION),
    (f"/datasets/delete/{TRIGGER}", UNKNOWN_OPERATION),
    # The handlers of what was recorded of known jobs and attempts only.
    (f"/jobs/{TRIGGER}/execution-result", f"{HANDLER}Could not find Flink job ({TRIGGER})"),
    (f"/jobs/{TRIGGER}/status", f"{NOT_FOUND}Job {TRIGGER} not found"),
    (f"/jobs/{TRIGGER}/vertices/{TRIGGER}/backpressure", {"status": "deprecated"}),
    (f"/jobs/{TRIGGER}/vertices/{TRIGGER}/jm-operator-metrics", []),
    (f"{JOB}/vertices/{TRIGGER}/taskmanagers", f"{NOT_FOUND}JobVertex {TRIGGER} not found"),
    (f"{JOB}/vertices/{TRIGGER}/subtasktimes", f"{HANDLER}No vertex with ID '{TRIGGER}' exists."),
    (f"{JOB}/vertices/{TRIGGER}/subtasks/0", f"{HANDLER}No vertex with ID '{TRIGGER}' exists."),
    (f"{VERTEX}/subtasks/0/attempts/1", f"{HANDLER}Invalid attempt num 1"),
    (f"{VERTEX}/subtasks/0/attempts/-1", f"{HANDLER}Invalid attempt num -1"),
    (f"/applications/{TRIGGER}", f"{NOT_FOUND}Could not find Flink application ({TRIGGER})"),
]
"""What was not recorded, and why: the answer is Flink's by its source, or stands in docs/flink-rest.md."""


@pytest.mark.parametrize(("path", "answer"), UNRECORDED, ids=[path for path, _ in UNRECORDED])
def test_what_was_not_recorded_is_answered_as_flinks_source_has_it(client: Any, path: str, answer: Any) -> None:
    """A text is a refusal, 404."""
    got = client.get(path)
    assert got.json() == ({"errors": [answer]} if isinstance(answer, str) else answer)
    assert got.status_code == (404 if isinstance(answer, str) else 200)


def test_every_resource_has_a_recording_or_a_reason_for_none() -> None:
    """No path of Flink's is answered whose structure was never compared."""
    rest = FlinkRest(MetricStore(), ManualClock())
    paths = [row["path"] for row in [*STRUCTURES, *REFUSALS] if row["method"] == "GET"]
    paths += [path for path, _ in UNRECORDED]
    seen = {found[0] for path in paths if (found := rest.resolve(path.partition("?")[0]))}
    assert seen == {resource for resource in RESOURCES if not resource.startswith("/streamgauge/")}
