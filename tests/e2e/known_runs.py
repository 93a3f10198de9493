"""Runs of known_queries.py: what Spark's event log says of their batches, and what the rows' own times say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.e2e.known_queries import QUERIES, Known

ROOT = Path(__file__).parents[2]
END_S = 60

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A task's times, Unix milliseconds."""

    partition: int
    launch_ms: int
    finish_ms: int


@dataclass(frozen=True)
class Batch:
    """
    A committed micro-batch; times are Unix milliseconds.

    Args:
        begin_ms: When it was triggered.
        executed_ms: When its outermost execution ended.
        end_ms: When the trigger had done with it.
        start, end: Rows of the source that had been read before and after it.
        vertices: Tasks of each vertex, from the source.
    """

    id: int
    begin_ms: int
    executed_ms: int
    end_ms: int
    start: int
    end: int
    vertices: list[list[Task]]


class Run:
    """One run of a query, as its driver's event log tells it."""

    def __init__(self, driver: Driver, name: str, run_id: str, start_ms: int) -> None:
        self.name = name
        self.known: Known = QUERIES[name]
        self.start_ms = start_ms
        self._driver = driver
        self._run_id = run_id

    def batches(self) -> list[Batch]:
        """All that have been committed, as of now; those that ran nothing left out."""
        events = self._driver.events()
        begun = {
            event["executionId"]: int(event["description"].rpartition("batch = ")[2])
            for event in events
            if event["Event"].endswith("SQLExecutionStart")
            and f"runId = {self._run_id}" in event["description"]
            and event["rootExecutionId"] == event["executionId"]
        }
        executed = {
            begun[event["executionId"]]: event["time"]
            for event in events
            if event["Event"].endswith("SQLExecutionEnd") and event["executionId"] in begun
        }
        vertices = self._tasks(events)
        found = []
        for event in events:
            if event["Event"].endswith("QueryProgressEvent") and event["progress"]["runId"] == self._run_id:
                told = event["progress"]
                [source] = told["sources"]
                if told["batchId"] not in vertices or source["startOffset"] == source["endOffset"]:
                    continue
                begin = datetime.strptime(told["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
                begin_ms = round(begin.timestamp() * 1000)
                found.append(
                    Batch(
                        told["batchId"],
                        begin_ms,
                        executed[told["batchId"]],
                        begin_ms + told["durationMs"]["triggerExecution"],
                        int(source["startOffset"] or 0),
                        int(source["endOffset"]),
                        vertices[told["batchId"]],
                    )
                )
        return found

    def _tasks(self, events: list[dict[str, Any]]) -> dict[int, list[list[Task]]]:
        owners = {
            stage: int(event["Properties"]["streaming.sql.batchId"])
            for event in events
            if event["Event"] == "SparkListenerJobStart"
            and event["Properties"].get("spark.jobGroup.id") == self._run_id
            for stage in event["Stage IDs"]
        }
        stages: dict[int, list[Task]] = defaultdict(list)
        for event in events:
            if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in owners:
                info = event["Task Info"]
                stages[event["Stage ID"]].append(Task(info["Partition ID"], info["Launch Time"], info["Finish Time"]))
        found: dict[int, list[list[Task]]] = defaultdict(list)
        for stage, tasks in sorted(stages.items(), key=lambda item: min(task.launch_ms for task in item[1])):
            found[owners[stage]].append(tasks)
        return found

    def row_latencies(self, batches: list[Batch]) -> Floats:
        """Time from a row's coming into being to the end of the execution that put it out, ms; without the burst."""
        arrivals = self.known.arrivals
        found = []
        for batch in batches:
            rows = np.arange(max(batch.start, arrivals.burst), batch.end)
            created = self.start_ms + (rows - arrivals.burst + 1) * 1000.0 / arrivals.per_second
            found.append(batch.executed_ms - created)
        return np.concatenate(found)


class Driver:
    """A process of known_queries.py."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        assert self._receive() == "ready"

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self._folder / "errors").read_text()
        return json.loads(line)

    def do(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()
        return self._receive()

    @contextmanager
    def running(self, name: str) -> Iterator[Run]:
        """Have a query run."""
        run = Run(self, name, **self.do("start", name=name))
        try:
            yield run
        finally:
            self.do("stop", name=name)

    def events(self) -> list[dict[str, Any]]:
        """Every event that has been written to the log as of now."""
        [log] = (self._folder / "log").iterdir()
        return [json.loads(line) for line in log.read_text().split("\n")[:-1]]

    def end(self) -> None:
        self._process.communicate(timeout=END_S)
        assert self._process.returncode == 0, (self._folder / "errors").read_text()


@contextmanager
def driver(url: str, folder: Path) -> Iterator[Driver]:
    """A driver whose hooks push to `url`."""
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions)]
    command += ["-m", "tests.e2e.known_queries", url, str(folder)]
    pipe = subprocess.PIPE
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):
        try:
            yield Driver(process, folder)
        finally:
            process.kill()
