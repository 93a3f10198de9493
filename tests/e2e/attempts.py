"""Processes of attempts_driver.py, and what every count of their scenarios is held to."""

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
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import OLD_PREFIX, EventLog, Rows

ROOT = Path(__file__).parents[2]

FILES = (40, 60, 80, 100)
"""Rows of each file, each of which a task of its own reads."""


class Driver:
    """A process of attempts_driver.py, which runs one scenario after the other in `folder`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.folder = folder
        self.started_ms = 0
        self._process = process

    def start(self, scenario: str) -> str:
        """Start a scenario; return the query's run id."""
        self.started_ms = time.time_ns() // 1_000_000
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


def ended(driver: Driver, rest: Rest, scenario: str) -> Any:
    """/jobs/:jid once the job that was started last has ended by itself; another driver may have run the like."""

    def finished() -> Any:
        found = rest.job(scenario)
        return found and found["start-time"] >= driver.started_ms and found["state"] == "FINISHED" and found

    return rest.get(f"/jobs/{eventually(finished, 90)['jid']}")


def table(column: dict[int, str]) -> Rows:
    return {subtask: int(value) for subtask, value in column.items() if int(value)}


def counts(rest: Rest, jid: str, vertex: dict[str, Any]) -> dict[str, Rows]:
    """Metric, with its operator's name → subtask → count; zeros and rates left out."""
    columns = rest.columns(jid, vertex["id"]).items()
    return {
        metric.removeprefix(OLD_PREFIX): table(column)
        for metric, column in columns
        if "numRecords" in metric and "Per" not in metric
    }


def exact(driver: Driver, rest: Rest, scenario: str, run_id: str) -> tuple[EventLog, list[dict[str, Rows]]]:
    """
    Hold every count of a run that ended by itself to the event log and to the data.

    Returns:
        The log, and of each vertex metric → subtask → count.
    """
    job = ended(driver, rest, scenario)
    log = eventually(partial(driver.log, run_id))
    source, sink = (counts(rest, job["jid"], vertex) for vertex in job["vertices"])
    scanned = log.rows("FileScan json")
    assert sorted(scanned.values()) == list(FILES)
    sources = [column for metric, column in source.items() if metric.startswith("Source__")]
    assert sources == [scanned, scanned]
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
