"""One Spark driver and one Streamgauge service for all end-to-end tests, and Spark's own figures as the oracle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
import urllib3
from pyspark.sql import SparkSession

import streamgauge
from tests.contract.recordings import Answer
from tests.e2e.event_log import logged

WITHIN = 0.15
"""The part by which a figure that depends on the machine may differ from the truth."""

Agree = Callable[..., None]


def number(value: str) -> float:
    """Return a metric's value; true is 1, and false 0."""
    return float({"true": "1", "false": "0"}.get(value, value))


class Rest:
    """Reads the service as a client would."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = urllib3.PoolManager(timeout=10.0, retries=False)

    def get(self, path: str) -> Any:
        answer = self._http.request("GET", self.url + path)
        assert answer.status == 200, f"{path}: {answer.status} {answer.data[:300]!r}"
        return json.loads(answer.data)

    def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        """Send any request, and return whatever comes back."""
        answer = self._http.request(method, self.url + target, headers=headers, body=body or None)
        content = json.loads(answer.data) if answer.data else None
        return Answer(str(answer.status), answer.headers.get("content-type", ""), content)

    def close(self) -> None:
        self._http.clear()

    def job(self, name: str) -> dict[str, Any] | None:
        """The latest job of this name, as in /jobs/overview."""
        found = [job for job in self.get("/jobs/overview")["jobs"] if job["name"] == name]
        return max(found, key=lambda job: job["start-time"], default=None)

    def columns(
        self, jid: str, vertex: str, asked: Callable[[str], bool] = lambda metric: True
    ) -> dict[str, dict[int, str]]:
        """
        Metric, with its operator's name → subtask → value.

        Args:
            asked: Tells by its name whether a metric is asked for. Of 500 values or fewer all are of one moment.
        """
        path = f"/jobs/{jid}/vertices/{vertex}/metrics"
        ids = [each for metric in self.get(path) if asked((each := metric["id"]).partition(".")[2])]
        found: dict[str, dict[int, str]] = defaultdict(dict)
        for start in range(0, len(ids), 500):
            for metric in self.get(f"{path}?get={','.join(ids[start : start + 500])}"):
                subtask, _, name = metric["id"].partition(".")
                found[name][int(subtask)] = metric["value"]
        return found


def eventually(check: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    """Return what `check` returns as soon as it is true; AssertionError when it never is."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = check()
        if found or time.monotonic() > deadline:
            assert found, f"not within {timeout_s} s: {check}"
            return found
        time.sleep(0.2)


def told(rest: Rest, name: str, state: str) -> dict[str, Any]:
    """Return /jobs/:jid of the latest run of a query, once it is in `state`; AssertionError tells what it is in."""

    def found() -> bool:
        job = rest.job(name)
        return job is not None and job["state"] == state

    try:
        eventually(found)
    except AssertionError:
        jobs = [job for job in rest.get("/jobs/overview")["jobs"] if job["name"] == name]
        raise AssertionError(f"not {state}: {jobs}; {rest.get('/streamgauge/drivers')}") from None
    job = rest.job(name)
    assert job is not None
    answer: dict[str, Any] = rest.get(f"/jobs/{job['jid']}")
    assert answer["state"] == state
    return answer


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A service of its own process; yields its URL."""
    command = [sys.executable, "-m", "streamgauge", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = re.search(r"http://\S+", line)
            assert url, f"the service said {line!r}"
            yield url.group()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The URL of the service that all tests push to."""
    with serving("--port", "0") as url:
        yield url


@pytest.fixture(scope="session")
def rest(service: str) -> Iterator[Rest]:
    client = Rest(service)
    yield client
    client.close()


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("event-log")


@pytest.fixture(scope="session")
def spark(event_log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A driver on two cores with Spark's REST and event log, the oracles, and a heartbeat every second."""
    folder = tmp_path_factory.mktemp("spark")
    package = "streaming.checkpointing" if pyspark.__version__ >= "4.1" else "streaming"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.heartbeatInterval": "1s",
        "spark.local.dir": str(folder),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "3",
        # The other one, which is the usual one, starts several `readlink` for each file that a query writes.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # read when the session starts; workers must find pyarrow
    builder = SparkSession.builder.master("local[2]").appName("end to end")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def attached(spark: SparkSession, service: str) -> Iterator[SparkSession]:
    """The driver with our hooks in it."""
    assert streamgauge.attach(spark, url=service)
    yield spark
    streamgauge.detach()


def _shown(figure: float | None) -> str:
    # An instant in ms needs all of its digits.
    return f"{figure:.6g}" if isinstance(figure, float) else str(figure)


@pytest.fixture
def agree(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Agree:
    """Return what holds a figure to the truth, and tells both."""

    def check(what: str, expected: float, measured: float | None, within: float = WITHIN, least: float = 0.0) -> None:
        """Let `measured` differ by the part `within` of `expected`, or by `least`."""
        both = f"expected {_shown(expected)}, measured {_shown(measured)}"
        line = f"{what}: {both}"
        print(f"\n{request.node.name[5:]} | {line}", end="")
        record_property(what, both)
        assert measured is not None, line
        assert abs(measured - expected) <= max(within * abs(expected), least), line

    return check


Rows = dict[int, int]
"""Partition → rows."""


@dataclass
class Truth:
    """
    What Spark's own event log and REST tell of one run of a query.

    Args:
        rows: Node name → one table of output rows for each node of that name.
        sources: The same for the leaves.
        written, read: Shuffle records, a table for each exchange.
        totals: Node name → output rows of all nodes of that name, from Spark's SQL REST.
    """

    rows: dict[str, list[Rows]] = field(default_factory=lambda: defaultdict(list))
    sources: list[Rows] = field(default_factory=list)
    written: list[Rows] = field(default_factory=list)
    read: list[Rows] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="session")
def truth(spark: SparkSession, event_log: Path) -> Callable[[str], Truth]:
    """Return what reads the oracles for the run with this run id."""

    def read(run_id: str) -> Truth:
        events = logged(event_log)
        return _truth(spark, events, run_id)

    return read


def _truth(spark: SparkSession, events: list[dict[str, Any]], run_id: str) -> Truth:
    starts = [event for event in events if event["Event"].endswith("SQLExecutionStart")]
    roots = [event for event in starts if f"runId = {run_id}" in event["description"]]
    roots = [event for event in roots if event.get("rootExecutionId", event["executionId"]) == event["executionId"]]
    updates: dict[int, Rows] = defaultdict(dict)
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            info = event["Task Info"]
            for update in info["Accumulables"]:
                if update.get("Metadata") == "sql":
                    partition = info["Partition ID"]
                    before = updates[update["ID"]].get(partition, 0)
                    updates[update["ID"]][partition] = before + int(update["Update"])
    found = Truth()
    tables: dict[tuple[str, str, str, int], Rows] = defaultdict(dict)
    for root in roots:
        seen: set[int] = set()
        for key, accumulator in _accumulators(root, events, seen):
            for partition, rows in updates.get(accumulator, {}).items():
                tables[key][partition] = tables[key].get(partition, 0) + rows
            tables.setdefault(key, {})
    for (metric, name, *_), table in sorted(tables.items()):
        kind = {"shuffle records written": found.written, "records read": found.read, "source": found.sources}
        kind.get(metric, found.rows[name]).append(table)
    base = spark.sparkContext.uiWebUrl
    http = urllib3.PoolManager(timeout=10.0)
    ids = {root["executionId"] for root in roots}
    # A V2 sink runs a batch as an execution within the execution: the inner one has the figures.
    for start in (event for event in starts if event.get("rootExecutionId", event["executionId"]) in ids):
        path = (
            f"/api/v1/applications/{spark.sparkContext.applicationId}/sql/{start['executionId']}?planDescription=false"
        )
        for node in json.loads(http.request("GET", f"{base}{path}").data)["nodes"]:
            for metric in node["metrics"]:
                if metric["name"] == "number of output rows":
                    found.totals[node["nodeName"].strip()] += int(metric["value"].replace(",", ""))
    http.clear()
    return found


def _accumulators(
    root: dict[str, Any], events: list[dict[str, Any]], seen: set[int]
) -> Iterator[tuple[tuple[str, str, str, int], int]]:
    """Yield what each accumulator of a batch counts, each once, over all plans that adaptive execution made."""
    inner = {event["executionId"] for event in events if event.get("rootExecutionId") == root["executionId"]}
    inner.add(root["executionId"])
    plans = [
        event["sparkPlanInfo"] for event in events if event.get("executionId") in inner and "sparkPlanInfo" in event
    ]
    for plan in plans:
        equals: Counter[tuple[str, str, str]] = Counter()
        for place, accumulator in _metrics(plan):
            equals[place] += 1
            if accumulator not in seen:
                seen.add(accumulator)
                yield (*place, equals[place]), accumulator


def _metrics(node: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str], int]]:
    name = node["nodeName"].strip()
    description = re.sub(
        r"#\d+L?|, state info.*|Location.*|plan_id=\d+|epoch: \d+|EventTimeWatermark \S+", "", node["simpleString"]
    )
    for metric in node["metrics"]:
        if metric["name"] == "number of output rows":
            yield ("rows" if node["children"] else "source", name, description), metric["accumulatorId"]
        elif metric["name"] in ("shuffle records written", "records read") and name == "Exchange":
            yield (metric["name"], name, description), metric["accumulatorId"]
    for child in node["children"]:
        yield from _metrics(child)
