"""A driver of its own: ids over restarts, and a collector that is not there."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Rest, eventually, serving
from tests.e2e.test_exact import write

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


class Driver:
    """The job of driver.py, until it is told to end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("rows "), line
        self.rows = int(line.split()[1])
        self.stderr = ""

    def end(self) -> None:
        _, self.stderr = self._process.communicate("\n", timeout=60)
        assert self._process.returncode == 0, self.stderr


@contextmanager
def driver(url: str, folder: Path) -> Iterator[Driver]:
    command = [sys.executable, "-m", "tests.e2e.driver", url, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()


def read_in(rest: Rest, job: dict[str, Any]) -> int:
    """Records that the sources read, as /jobs/:jid tells them."""
    sources = [vertex for vertex in job["vertices"] if vertex["name"].startswith("Source: ")]
    return sum(vertex["metrics"]["read-records"] for vertex in sources)


def ids(job: dict[str, Any], rest: Rest) -> list[Any]:
    """Everything that a dashboard keeps a link to; but what comes with time, as latencies and shares of it do."""
    counted = ("numRecords", "numBytes", "numBuffers")

    def columns(vertex: str) -> list[str]:
        return sorted(name for name in rest.columns(job["jid"], vertex) if any(each in name for each in counted))

    return [(vertex["id"], vertex["name"], columns(vertex["id"])) for vertex in job["vertices"]]


def ended(rest: Rest, restarts: int) -> Any:
    """The job, once it is FINISHED after so many restarts."""
    found = rest.job("restarted")
    if not found or found["state"] != "FINISHED":
        return None
    told = rest.get(f"/jobs/{found['jid']}/metrics?get=numRestarts")
    return found if told[0]["value"] == str(restarts) else None


def test_ids_stay_and_a_restart_is_counted(rest: Rest, service: str, tmp_path: Path) -> None:
    """A restart from the checkpoint is the same job with the same ids, one restart later, counting anew."""
    runs: list[tuple[dict[str, Any], list[Any]]] = []
    for run in range(2):
        write(tmp_path / "in", 2 * run, range(100 * run, 100 * run + 40))
        write(tmp_path / "in", 2 * run + 1, range(100 * run + 40, 100 * run + 70))
        with driver(service, tmp_path) as job:
            assert job.rows == 70

            jid = eventually(partial(ended, rest, restarts=run))["jid"]
            details = rest.get(f"/jobs/{jid}")
            assert read_in(rest, details) == 70
            runs.append((details, ids(details, rest)))
            job.end()
    (first, first_ids), (second, second_ids) = runs
    assert first["jid"] == second["jid"]
    assert first["plan"]["nodes"][0]["id"] == second["plan"]["nodes"][0]["id"]
    assert first_ids == second_ids
    assert len(first_ids) == 2


def test_a_collector_that_is_down_costs_one_line_and_no_figure(tmp_path: Path) -> None:
    """The job runs to its end without the collector, which is whole as soon as it is there."""
    write(tmp_path / "in", 0, range(50))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with driver(f"http://127.0.0.1:{port}", tmp_path) as job:
        assert job.rows == 50
        with serving("--port", str(port)) as url:
            rest = Rest(url)
            found = eventually(lambda: (job := rest.job("restarted")) and job["state"] == "FINISHED" and job)
            assert read_in(rest, rest.get(f"/jobs/{found['jid']}")) == 50
            rest.close()
            job.end()
    ours = [line for line in job.stderr.splitlines() if "streamgauge" in line]
    assert [line.startswith("streamgauge cannot push to") for line in ours] == [True, False]
    assert "reaches" in ours[1]
    assert "Traceback" not in job.stderr
