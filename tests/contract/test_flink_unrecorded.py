"""What was not asked of the recorded Flink, answered as its source has it."""

from __future__ import annotations

from typing import Any

import pytest

from collector.store import MetricStore
from service.errors import HANDLER, NOT_FOUND
from service.flink.rest import OURS, RESOURCES, FlinkRest
from streamgauge.clock import ManualClock
from tests.contract.recordings import recordings

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
    paths = [recording.path for recording in recordings() if recording.method == "GET"]
    paths += [path for path, _ in UNRECORDED]
    seen = {found[0] for path in paths if (found := rest.resolve(path.partition("?")[0]))}
    assert seen == set(RESOURCES) - OURS
