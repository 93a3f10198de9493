"""What becomes of task attempts changes no count: what the winners did counts, as event log and data say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import EventLog, Rows

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

FILES = (40, 60, 80, 100)
"""Rows of each file, each of which a task of its own reads."""


class Driver:
    """A process of attempts_driver.py, which runs one scenario after the other in `folder`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.folder = folder
        self._process = process

    def start(self, scenario: str) -> str:
        """Start a scenario; return the query's run id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{scenario}\n")
        self._process.stdin.flush()
        run_id = self._process.stdout.readline().strip()
        assert run_id, (self.folder / "stderr").read_text()
        return run_id

    def log(self, run_id: str) -> EventLog | None:
        """The event log of a run, once it has ended."""
        found = EventLog(self.folder / "log", run_id)
        return found if found.ended else None

    def end(self) -> None:
        """Stop the application, under the query that runs if one does."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0, (self.folder / "stderr").read_text()

    def kill(self) -> None:
        """Kill Python and the JVM at once: nothing is told any more."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)


@contextmanager
def driver(url: str, kind: str, folder: Path) -> Iterator[Driver]:
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions)]
    command += ["-m", "tests.e2e.attempts_driver", url, kind, str(folder)]
    pipe = subprocess.PIPE
    with (
        (folder / "stderr").open("a") as stderr,
        subprocess.Popen(
            command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=stderr, text=True, start_new_session=True
        ) as process,
    ):
        try:
            yield Driver(process, folder)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def local(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Two cores, four attempts a task."""
    with driver(service, "local", tmp_path_factory.mktemp("local")) as process:
        yield process
        process.end()


@pytest.fixture(scope="module")
def cluster(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Two executors of one core on two hosts, with speculation."""
    with driver(service, "cluster", tmp_path_factory.mktemp("cluster")) as process:
        yield process
        process.end()


def write(folder: Path, file: int, first: int, rows: int) -> None:
    """Write one input file of rows `first` to `first + rows`; files are read in the order of their numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{file}"
    hidden.write_text("\n".join(json.dumps({"id": row, "k": row % 20}) for row in range(first, first + rows)))
    os.utime(hidden, (1_700_000_000 + file, 1_700_000_000 + file))
    hidden.rename(folder / f"{file}.json")


def run(driver: Driver, scenario: str, files: tuple[int, ...] = FILES) -> str:
    for file, size in enumerate(files):
        write(driver.folder / scenario / "in", file, sum(files[:file]), size)
    return driver.start(scenario)


def written(driver: Driver, scenario: str) -> int:
    """Rows in the files that the sink's own log says are there; what failed attempts left beside them is no output."""
    out = driver.folder / scenario / "out"
    entries = [
        json.loads(line)
        for log in (out / "_spark_metadata").iterdir()
        if log.name.isdigit()
        for line in log.read_text().splitlines()[1:]
    ]
    return sum(len((out / Path(entry["path"]).name).read_text().splitlines()) for entry in entries)


def ended(rest: Rest, scenario: str) -> Any:
    """/jobs/:jid once the job has ended by itself."""
    job = eventually(lambda: (found := rest.job(scenario)) and found["state"] == "FINISHED" and found, 90)
    return rest.get(f"/jobs/{job['jid']}")


def table(column: dict[int, str]) -> Rows:
    return {subtask: int(value) for subtask, value in column.items() if int(value)}


def counts(rest: Rest, jid: str, vertex: dict[str, Any]) -> dict[str, Rows]:
    """Metric, with its operator's name → subtask → count; zeros and rates left out."""
    columns = rest.columns(jid, vertex["id"]).items()
    return {metric: table(column) for metric, column in columns if "numRecords" in metric and "Per" not in metric}


def exact(driver: Driver, rest: Rest, scenario: str, run_id: str) -> tuple[EventLog, list[dict[str, Rows]]]:
    """
    Hold every count of a run that ended by itself to the event log and to the data.

    Returns:
        The log, and of each vertex metric → subtask → count.
    """
    job = ended(rest, scenario)
    log = eventually(partial(driver.log, run_id))
    source, sink = (counts(rest, job["jid"], vertex) for vertex in job["vertices"])
    scanned = log.rows("FileScan json")
    assert sorted(scanned.values()) == list(FILES)
    assert [column for metric, column in source.items() if metric.startswith("Source__")]
    assert all(column == scanned for metric, column in source.items() if metric.startswith("Source__"))
    assert source["MapInArrow.numRecordsOut"] == log.rows("MapInArrow spread")
    assert source["Filter.numRecordsIn"] == log.rows("MapInArrow spread")
    assert source["numRecordsOut"] == log.rows("Exchange", "shuffle records written") == scanned
    assert sink["numRecordsIn"] == sink["MapInArrow.numRecordsIn"] == log.rows("Exchange", "records read")
    assert sum(sink["numRecordsIn"].values()) == sum(FILES)
    assert sink["MapInArrow.numRecordsOut"] == log.rows("MapInArrow keep")
    [came] = [column for metric, column in sink.items() if metric.startswith("Sink__") and metric.endswith("In")]
    assert came == sink["numRecordsOut"] == log.rows("MapInArrow keep")
    assert sum(came.values()) == written(driver, scenario)
    return log, [source, sink]


def counted_again(log: EventLog, source: dict[str, Rows]) -> None:
    """Some map tasks ran again, and then put out every row twice; theirs is the count, where the first one was."""
    again = log.again("Exchange", "shuffle records written")
    assert again
    for subtask, rows in source["numRecordsOut"].items():
        assert source["MapInArrow.numRecordsOut"][subtask] == rows * (1 + (subtask in again))


def test_failed_attempts_count_nothing(local: Driver, rest: Rest) -> None:
    """Tasks that fail after they have read and put out all their rows; the successes that follow count once."""
    run_id = run(local, "retries")
    log, (source, _) = exact(local, rest, "retries", run_id)
    assert log.reasons() == {"Success": 7, "ExceptionFailure": 4}
    # A second attempt puts out every row twice.
    assert sorted(source["MapInArrow.numRecordsOut"].values()) == sorted(
        [FILES[0] * 2, FILES[1], FILES[2] * 2, FILES[3]]
    )
    assert written(local, "retries") == sum(FILES) * 15 // 20


def test_live_counts_of_a_failed_attempt_stand_until_the_retry_passes_them(local: Driver, rest: Rest) -> None:
    """What heartbeats told of a task that fails then is shown, never goes back, and is not in the end."""
    run_id = run(local, "slow_retry", (160,))
    jid = eventually(lambda: (job := rest.job("slow_retry")) and job["tasks"]["total"] and job)["jid"]
    vertex = eventually(lambda: rest.get(f"/jobs/{jid}")["vertices"])[0]["id"]
    seen: list[tuple[int, int]] = []
    while rest.get(f"/jobs/{jid}")["state"] == "RUNNING":
        [subtask] = rest.get(f"/jobs/{jid}/vertices/{vertex}")["subtasks"]
        rows = rest.columns(jid, vertex).get("MapInArrow.numRecordsOut", {})
        seen.append((subtask["attempt"], int(rows.get(0, "0"))))
        time.sleep(0.25)
    assert all(now >= before for (_, before), (_, now) in pairwise(seen)), seen
    assert max(rows for attempt, rows in seen if attempt == 0) >= 60, seen
    assert len({rows for attempt, rows in seen if attempt == 1}) > 1, seen
    log = eventually(partial(local.log, run_id))
    assert log.reasons() == {"Success": 1, "ExceptionFailure": 1}
    columns = counts(rest, jid, {"id": vertex})
    assert len(columns) == 8
    assert all(column == {0: 160} == log.rows("MapInArrow slow") for column in columns.values()), columns
    assert written(local, "slow_retry") == 160


@pytest.mark.parametrize("scenario", ["lost_shuffle", "lost_shuffle adaptive"])
def test_map_tasks_that_run_again_for_lost_output_count_once(local: Driver, rest: Rest, scenario: str) -> None:
    """The later success replaces the first one; adaptive execution runs it under another stage's id."""
    run_id = run(local, scenario)
    log, (source, _) = exact(local, rest, scenario, run_id)
    assert log.reasons()["FetchFailed"] >= 1
    counted_again(log, source)


def test_counts_outlive_the_executor_that_made_them(cluster: Driver, rest: Rest) -> None:
    """What the killed executor had written, that alone, is made again and replaces what it had counted."""
    scenario = "killed_executor adaptive"
    run_id = run(cluster, scenario)
    log, (source, _) = exact(cluster, rest, scenario, run_id)
    assert log.reasons()["ExecutorLostFailure"] == 1
    assert log.reasons()["FetchFailed"] >= 1
    counted_again(log, source)


def test_of_a_straggler_and_its_copy_one_counts(cluster: Driver, rest: Rest) -> None:
    """Where the copy wins and where the original does; the loser, which goes on for a while, is killed."""
    run_id = run(cluster, "stragglers")
    log, (source, _) = exact(cluster, rest, "stragglers", run_id)
    copies = [attempt for attempt in log.attempts if attempt.speculative]
    assert [attempt.partition for attempt in copies if attempt.reason == "Success"] == [0]
    # The copy puts out every row twice.
    assert source["MapInArrow.numRecordsOut"][0] == 2 * source["numRecordsOut"][0]
    assert log.reasons()["TaskKilled"] >= 1


def test_batch_that_a_crash_broke_off_counts_in_the_run_that_ran_it(service: str, rest: Rest, tmp_path: Path) -> None:
    """
    A stateful query whose driver is killed in its third batch, and started again.

    The first run shows what it read, the broken batch too; the second one, a restart later, counts what it ran:
    that batch and the next one. Its driver's end stops it.
    """
    with driver(service, "local", tmp_path) as first:
        run(first, "hanging", FILES[:3])
        jid = eventually(lambda: rest.job("hanging"))["jid"]

        def hangs() -> bool:
            vertices = rest.get(f"/jobs/{jid}")["vertices"]
            return bool(vertices) and vertices[0]["metrics"]["read-records"] == sum(FILES[:3])

        eventually(hangs, 60)
        begun = rest.get(f"/jobs/{jid}")
        assert job_metrics(rest, jid) == [2, 1, sum(FILES[:2]), 0]
        first.kill()
    (tmp_path / "hanging" / "go").touch()
    with driver(service, "local", tmp_path) as second:
        write(tmp_path / "hanging" / "in", 3, sum(FILES[:3]), FILES[3])
        run_id = second.start("hanging")
        eventually(lambda: job_metrics(rest, jid) == [2, 0, sum(FILES[2:]), 1], 60)
        running = rest.get(f"/jobs/{jid}")
        assert running["state"] == "RUNNING"
        assert running["start-time"] == begun["start-time"]
        second.end()
    job = eventually(lambda: (found := rest.get(f"/jobs/{jid}"))["state"] == "CANCELED" and found)
    assert [vertex["id"] for vertex in job["vertices"]] == [vertex["id"] for vertex in begun["vertices"]]
    log = EventLog(tmp_path / "log", run_id)
    assert [progress["batchId"] for progress in log.progress] == [2, 3]
    assert [progress["numInputRows"] for progress in log.progress] == list(FILES[2:])
    source, state = (counts(rest, jid, vertex) for vertex in job["vertices"])
    assert source["MapInArrow.numRecordsIn"] == log.rows("FileScan json")
    assert sum(source["numRecordsIn"].values()) == sum(FILES[2:])
    assert source["MapInArrow.numRecordsOut"] == log.rows("MapInArrow gate")
    assert source["numRecordsOut"] == log.rows("Exchange", "shuffle records written")
    assert state["numRecordsIn"] == log.rows("Exchange", "records read")
    assert state["StateStoreSave.numRecordsOut"] == log.rows("StateStoreSave")
    # Both batches update every key; the sink got these, by the sink's own word too.
    updated = [progress["stateOperators"][0]["numRowsUpdated"] for progress in log.progress]
    assert updated == [20, 20] == [progress["sink"]["numOutputRows"] for progress in log.progress]
    assert sum(state["numRecordsOut"].values()) == sum(updated)


def job_metrics(rest: Rest, jid: str) -> list[int]:
    """Batches that are done, that are under way, rows by Spark's progress, restarts."""
    names = ("numberOfCompletedCheckpoints", "numberOfInProgressCheckpoints", "numInputRows", "numRestarts")
    found = {each["id"]: int(each["value"]) for each in rest.get(f"/jobs/{jid}/metrics?get={','.join(names)}")}
    return [found.get(name, -1) for name in names]
