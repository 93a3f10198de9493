"""How alertmanager.yml routes what the rules raise, asked of a real Alertmanager."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from examples import prometheus
from examples.child import Child
from tests.programs import program

CONFIG = prometheus.DASHBOARDS / "alertmanager" / "alertmanager.yml"
WITHIN_S = 30.0
"""For it to start, and to see what an alert inhibits, which it does in a thread of its own."""


def alert(name: str, severity: str, **labels: str) -> dict[str, Any]:
    return {"labels": {"alertname": f"Streamgauge{name}", "severity": severity, **labels}}


FAILED = alert("JobFailed", "critical", job_id="a", job_name="departures")
RESTARTING = alert("JobRestarting", "warning", job_id="a", job_name="departures")
SKEWED = alert("Skew", "info", job_id="a", job_name="departures", vertex_id="v1")
SKEWED_ELSEWHERE = alert("Skew", "info", job_id="b", job_name="overdue", vertex_id="v1")
LATE = alert("LatencyHigh", "warning", job_id="b", job_name="overdue", vertex_id="v1")
TOO_LATE = alert("LatencyHigh", "critical", job_id="b", job_name="overdue", vertex_id="v1")
LATE_BESIDE = alert("LatencyHigh", "warning", job_id="b", job_name="overdue", vertex_id="v2")
SUSPENDED = alert("JobSuspended", "critical", job_id="b", job_name="overdue")
DOWN = alert("CollectorDown", "critical")
DROPPED = alert("EventsDropped", "warning", application_id="local-1")
OTHERS = {"labels": {"alertname": "HostDown", "severity": "warning"}}


@pytest.mark.parametrize(("severity", "receiver"), [("critical", "page"), ("warning", "ticket"), ("info", "context")])
def test_a_severity_has_a_receiver(severity: str, receiver: str) -> None:
    """Only what is critical wakes anybody; what has no severity of ours is a ticket."""
    command = [program("amtool"), "config", "routes", "test", f"--config.file={CONFIG}", f"severity={severity}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [receiver]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes to hold."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Alertmanager:
    """A running one, with the configuration of the containers; its notices go nowhere."""

    def __init__(self, folder: Path) -> None:
        programs = prometheus.Programs("", program("prometheus-alertmanager", "alertmanager"))
        [address] = prometheus.free_addresses(0)
        addresses = prometheus.Addresses("127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:1", address)
        (folder / CONFIG.name).write_text(CONFIG.read_text())
        self._url = f"http://{address}"
        command = prometheus.alertmanager_command(programs, folder, addresses)
        self.child = Child("Alertmanager", command, {}, folder, log_output=True)

    def is_ready(self) -> bool:
        assert self.child.exit_code() is None, self.child.output()
        try:
            urllib.request.urlopen(f"{self._url}/-/ready", timeout=5).close()
        except urllib.error.URLError:
            return False
        return True

    def raise_alerts(self, *alerts: dict[str, Any]) -> None:
        body = json.dumps(alerts).encode()
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self._url}/api/v2/alerts", body, headers), timeout=5).close()

    def heard(self) -> set[frozenset[tuple[str, str]]]:
        """Labels of the alerts that are not inhibited."""
        with urllib.request.urlopen(f"{self._url}/api/v2/alerts?inhibited=false", timeout=5) as answer:
            return {frozenset(each["labels"].items()) for each in json.load(answer)}


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    running = Alertmanager(tmp_path)
    try:
        assert eventually(running.is_ready), running.child.output()
        yield running
    finally:
        running.child.end(10.0)


CASES = {
    "a failed job silences its other alerts, and no other job's": (
        [FAILED, RESTARTING, SKEWED, SKEWED_ELSEWHERE, DROPPED],
        [FAILED, SKEWED_ELSEWHERE, DROPPED],
    ),
    "a job whose driver is gone is silenced as well": ([SUSPENDED, LATE, FAILED], [SUSPENDED, FAILED]),
    "without a collector nothing is known of jobs": ([DOWN, FAILED, LATE, DROPPED, OTHERS], [DOWN, OTHERS]),
    "a fault is told at its worst, at its place": (
        [LATE, TOO_LATE, LATE_BESIDE, SKEWED_ELSEWHERE],
        [TOO_LATE, LATE_BESIDE, SKEWED_ELSEWHERE],
    ),
}


@pytest.mark.parametrize(("raised", "heard"), CASES.values(), ids=CASES)
def test_what_follows_from_something_worse_is_not_told(
    alertmanager: Alertmanager, raised: list[dict[str, Any]], heard: list[dict[str, Any]]
) -> None:
    """One cause, one notification."""
    alertmanager.raise_alerts(*raised)
    expected = {frozenset(each["labels"].items()) for each in heard}
    assert eventually(lambda: alertmanager.heard() == expected), alertmanager.heard()
