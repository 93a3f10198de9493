"""The `flink` command against the service: it lists our jobs, and changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.clients import driver
from tests.clients.conftest import Jobs
from tests.clients.maven import java
from tests.clients.proxy import proxying

pytestmark = [pytest.mark.clients, pytest.mark.spark, pytest.mark.timeout(600)]

# With an answer that it cannot read the command goes on asking for a minute.
TIMEOUT_S = 30
LINE = re.compile(r"(\d{2}\.\d{2}\.\d{4} \d{2}:\d{2}:\d{2}) : ([0-9a-f]{32}) : (.*) \((\w+)\)")

Flink = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def flink(tmp_path: Path) -> Flink:
    """Runs `flink ACTION … -m HOST:PORT …` as its shell script would, with a configuration that says nothing."""
    (tmp_path / "config.yaml").touch()

    def run(url: str, action: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        main = "org.apache.flink.client.cli.CliFrontend"
        command = java("command", main, action, "-m", url.removeprefix("http://"), *arguments)
        environment = {**os.environ, "FLINK_CONF_DIR": str(tmp_path)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )

    return run


def listed(out: str) -> dict[str, tuple[str, str, str]]:
    """Return what `flink list` printed: jid → start time, name and state."""
    return {jid: (start, name, state) for start, jid, name, state in LINE.findall(out)}


def started(start_ms: int) -> str:
    return datetime.fromtimestamp(start_ms / 1000).strftime("%d.%m.%Y %H:%M:%S")


def test_list_names_every_job_with_its_state_and_start(jobs: Jobs, flink: Flink) -> None:
    """`flink list -a` prints what /jobs/overview tells: of every job its id, name, state and start."""
    done = flink(jobs.rest.url, "list", "-a")
    assert done.returncode == 0, done.stdout + done.stderr
    told = {
        job["jid"]: (started(job["start-time"]), job["name"], job["state"])
        for job in jobs.rest.get("/jobs/overview")["jobs"]
    }
    assert len(told) == len(driver.NAMES)
    assert listed(done.stdout) == told


def test_list_without_options_leaves_out_what_has_ended(jobs: Jobs, flink: Flink) -> None:
    """`flink list` prints running jobs only, under its heading for them."""
    done = flink(jobs.rest.url, "list")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Running/Restarting Jobs" in done.stdout
    assert set(listed(done.stdout)) == {jobs.ids[driver.FLOWS], jobs.ids[driver.STILL]}


def test_list_is_one_request(jobs: Jobs, flink: Flink) -> None:
    """The command asks once, with an empty object as the body of a GET, and is content with the answer."""
    with proxying(jobs.rest.url) as proxy:
        flink(proxy.url, "list", "-a")
        assert [(each.method, each.target, each.status) for each in proxy.exchanges] == [
            ("GET", "/v1/jobs/overview", 200)
        ]


@pytest.mark.parametrize(
    ("action", "options"),
    [("cancel", ()), ("savepoint", ()), ("stop", ()), ("checkpoint", ()), ("cancel", ("-s",))],
    ids=["cancel", "savepoint", "stop", "checkpoint", "cancel with savepoint"],
)
def test_what_would_change_a_job_is_refused(jobs: Jobs, flink: Flink, action: str, options: tuple[str, ...]) -> None:
    """The command ends at once with a failure and the service's words for it; the job runs on."""
    jid = jobs.ids[driver.FLOWS]
    with proxying(jobs.rest.url) as proxy:
        done = flink(proxy.url, action, *options, jid)
        refused = proxy.exchanges
    assert done.returncode == 1
    assert len(refused) == 1
    assert refused[0].method != "GET"
    assert 400 <= refused[0].status < 500
    assert "RestClientException" in done.stdout + done.stderr
    assert jid in done.stdout
    assert jobs.detail(driver.FLOWS)["state"] == "RUNNING"
