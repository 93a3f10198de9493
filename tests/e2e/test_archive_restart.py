"""A service that is killed and started anew: what ended is there, what runs is back with its next push."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from collector.limits import Limits
from streamgauge import codec, wire
from tests.lives import comparable, targets
from tests.postgresql import PostgreSQL
from tests.unit.collector.conftest import Collector, Frames

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
ENDED, RUNNING = "a" * 32, "b" * 32


@contextmanager
def serving(archive: str, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A service of its own process on an archive; killed at the end."""
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", str(port)]
    environment = {**os.environ, "STREAMGAUGE_ARCHIVE": archive, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(LIMIT_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            announced = re.fullmatch(r"Streamgauge listens on (http://\S+)\n", process.stdout.readline())
            assert announced
            yield announced.group(1), process
        finally:
            process.kill()
            process.wait()
            watchdog.cancel()


def get(url: str, path: str) -> Any:
    answer = urllib3.request("GET", url + path)
    # When it was asked is the one thing that differs of an ended job.
    return answer.status, json.loads(re.sub(rb'"now":[0-9]+', b'"now":0', answer.data))


def push(url: str, *frames: wire.Frame) -> None:
    answer = urllib3.request(
        "POST", url + wire.PUSH_PATH, body=codec.encode(list(frames)), headers={"Content-Type": wire.CONTENT_TYPE}
    )
    assert answer.status in (200, 202), answer.data


def eventually(look: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not look():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_killed_service_finds_its_ended_jobs(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Kill -9 as soon as the job is archived: every answer about it is the same, and the running one goes on."""
    if database == "sqlite":
        archive = str(tmp_path / "a.db")
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        archive = server.new()
    frames = Frames()
    now_ms = int(time.time() * 1000)
    vertices = (frames.figures(columns=(frames.column("numRecordsIn", 3, 4),)),)
    app = frames.app_frame(executors=(frames.executor(),), configuration={"spark.master": "local[2]"})
    ended = frames.frame(job=frames.job(ENDED, state="FAILED", end_ms=now_ms, failure="it broke"), vertices=vertices)
    first = frames.frame(job=frames.job(RUNNING), vertices=vertices)
    second = frames.frame(job=frames.job(RUNNING), vertices=vertices, attempt=wire.Attempt(2, "run-2"))
    model = Collector(Limits())
    model.push(ended)
    paths = targets(model.job(ENDED))

    def archived(url: str, runs: int) -> bool:
        page = urllib3.request("GET", f"{url}/metrics").data.decode()
        return f"streamgauge_archive_runs_written_total {runs}.0" in page

    with serving(archive) as (url, process):
        push(url, app, first, ended)
        push(url, second)
        # The ended job, and the run that was replaced.
        eventually(lambda: archived(url, 2))
        told = {path: get(url, path) for path in paths}
        process.kill()
        process.wait()
    with serving(archive) as (url, _):
        for path in paths:
            assert comparable(get(url, path)) == comparable(told[path]), path
        push(url, app, second)
        eventually(lambda: get(url, f"/jobs/{RUNNING}/metrics?get=numRestarts")[1][0]["value"] == "1")
        status, body = get(url, f"/jobs/{RUNNING}/runs")
        assert status == 200
        assert [(run["state"], run["archived"]) for run in body["runs"]] == [("RUNNING", False), ("SUSPENDED", True)]
        older = body["runs"][1]["id"]
        assert get(url, f"/jobs/{older}")[1]["state"] == "SUSPENDED"
        listed = get(url, "/jobs/overview")[1]["jobs"]
        assert [(job["jid"], job["state"]) for job in listed] == [(RUNNING, "RUNNING"), (ENDED, "FAILED")]
