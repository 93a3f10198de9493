"""A real Prometheus and Alertmanager: every expression has an answer, and an alert names the vertex to blame."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dashboards.grafana.expressions import Expression, resolved, written
from dashboards.prometheus.alerts import alerts
from dashboards.prometheus.build import rules
from dashboards.prometheus.recordings import recordings
from dashboards.prometheus.settings import Duration, Settings
from examples import prometheus as programs
from tests.contract.recordings import Answer
from tests.e2e.conftest import Rest, eventually, serving
from tests.programs import program

pytestmark = [pytest.mark.spark, pytest.mark.alone, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SETTINGS = Settings(
    lasting={"": Duration(15)}, keep_firing={"": Duration(0)}, interval=Duration(2), window=Duration(60)
)
JOBS = ("departures", "late-aircraft", "overdue", "pressed", "behind", "arriving")
"""Those of the demo, two that have a backlog, of files and of records, and one of which is known what arrives."""

CHOSEN = {
    **dict.fromkeys(("application", "vertex", "source", "executor"), ".*"),
    "__rate_interval": "30s",
    "__range": "2m",
}
"""What is chosen in every dashboard, besides a job: all, and an interval that some scrapes fit into."""

LACKING = {
    ("Executors", "Pushes refused"): "no driver sends what the service would not take",
    ("Executors", "Scrapes told coarser than asked"): "there are not so many series",
}
"""Dashboard without the name of the project, and panel → why there is nothing for it."""


@dataclass
class Stack:
    """
    What runs beside each other.

    Args:
        told: Bodies that Alertmanager has sent to its webhooks, in their order.
        started_s: Unix time.
    """

    rest: Rest
    prometheus: Rest
    service: str
    told: list[dict[str, Any]] = field(default_factory=list)
    started_s: float = field(default_factory=time.time)

    def ask(self, expr: str) -> list[Any]:
        """What Prometheus answers now; it has to take the expression."""
        answer = self.prometheus.ask("GET", f"/api/v1/query?{urllib.parse.urlencode({'query': expr})}")
        return _result(answer, expr)

    def ask_since_start(self, expr: str) -> list[Any]:
        """What Prometheus has answered at some time since it was started, every second; as a graph asks."""
        span = {"query": expr, "start": self.started_s, "end": time.time(), "step": 1}
        return _result(self.prometheus.ask("GET", f"/api/v1/query_range?{urllib.parse.urlencode(span)}"), expr)

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """The alerts of a name that webhooks were told of, in this status."""
        every = [alert for body in self.told for alert in body["alerts"]]
        return [each for each in every if (each["labels"]["alertname"], each["status"]) == (name, status)]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that are ended in the end, the latest first."""
    with ExitStack() as started:

        def begin(*command: str, wait_s: float = 60.0) -> subprocess.Popen[bytes]:
            log = tmp_path_factory.mktemp("process") / "log"
            output = started.enter_context(log.open("wb"))
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)

            def end() -> None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(wait_s)
                finally:
                    process.kill()

            started.callback(end)
            return process

        yield begin


@pytest.fixture(scope="module")
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a webhook, and the bodies that it is sent."""
    told: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", told
        server.shutdown()


@pytest.fixture(scope="module")
def stack(
    start: Callable[..., subprocess.Popen[bytes]],
    webhook: tuple[str, list[dict[str, Any]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """The project's own configuration, in seconds where it has minutes, and the demo's job."""
    found = programs.Programs(program("prometheus"), program("prometheus-alertmanager", "alertmanager"))
    folder = tmp_path_factory.mktemp("prometheus")
    address, told = webhook
    with serving("--port", "0") as url:
        server, manager = programs.free_addresses(0, 0)
        addresses = programs.Addresses(url.removeprefix("http://"), address, server, manager)
        programs.configure(folder, addresses)
        for name, pattern, text in (
            ("prometheus.yml", r"(scrape|evaluation)_interval: \w+", r"\1_interval: 1s"),
            ("alertmanager.yml", r"group_(wait|interval): \w+", r"group_\1: 1s"),
        ):
            path = folder / name
            path.write_text(re.sub(pattern, text, path.read_text()))
        (folder / "streamgauge.rules.yml").write_text(rules(SETTINGS))
        start(*programs.alertmanager_command(found, folder, addresses))
        start(*programs.prometheus_command(found, folder, addresses))
        start(sys.executable, "-m", "examples.flights", "--collector", url, "--speed", "28800")
        running = Stack(Rest(url), Rest(f"http://{server}"), url, told)
        eventually(lambda: _listens(server))
        eventually(
            lambda: running.ask('up{job="streamgauge"} == 1') and running.ask('up{job="streamgauge-flink"} == 1')
        )
        yield running
        running.rest.close()
        running.prometheus.close()


def _result(answer: Answer, expr: str) -> list[Any]:
    assert answer.status == "200", f"{expr}: {answer.body}"
    found: list[Any] = answer.body["data"]["result"]
    return found


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    return True


def test_back_pressure_is_told_with_its_vertex_and_when_it_is_over(
    stack: Stack, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The alert fires in Alertmanager, whose webhook hears of the vertex that Flink's REST names; and it resolves."""
    start(sys.executable, "-m", "tests.e2e.alarming", stack.service, str(tmp_path), "pressed")
    name = "StreamgaugeJobBackPressured"
    fired = eventually(lambda: [each for each in stack.alerts(name, "firing") if "pressed" in str(each)], 180)
    job = stack.rest.job("pressed")
    assert job is not None
    source, slow = stack.rest.get(f"/jobs/{job['jid']}")["vertices"]
    print(json.dumps(fired[0], indent=1))
    assert fired[0]["labels"]["job_id"] == job["jid"]
    assert f"vertex {slow['name']} ({slow['id']})" in fired[0]["annotations"]["description"]
    assert source["id"] not in fired[0]["annotations"]["description"]
    eventually(lambda: [each for each in stack.alerts(name, "resolved") if job["jid"] in str(each)], 240)
    assert stack.ask(f'streamgauge_job_state{{job_id="{job["jid"]}", state="RUNNING"}} == 1')


def test_a_failure_is_seen_though_job_and_driver_are_gone(
    stack: Stack, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A driver that leaves as soon as its query has failed: its last push tells."""
    process = start(sys.executable, "-m", "tests.e2e.alarming", stack.service, str(tmp_path), "fails")
    process.wait(120)
    gone = time.time()
    [failed] = eventually(lambda: stack.ask('streamgauge_job_state{job_name="failing", state="FAILED"} == 1'))
    assert stack.ask("streamgauge_job_info")
    assert not stack.ask('streamgauge_job_info{job_name="failing"}')
    told = eventually(lambda: stack.alerts("StreamgaugeJobFailed", "firing"), 90)
    assert {each["labels"]["job_id"] for each in told} == {failed["metric"]["job_id"]}
    job = stack.rest.job("failing")
    assert job is not None
    assert (job["state"], job["end-time"] / 1e3 <= gone) == ("FAILED", True)


def test_every_panel_has_an_answer(stack: Stack, record_property: Callable[[str, object], None]) -> None:
    """Every expression of every panel and variable, for each job until one has an answer."""
    asked = [*zip(written(), *(resolved({**CHOSEN, "job": job}) for job in JOBS), strict=True)]
    lacking = {(f"Streamgauge / {board}", panel) for board, panel in LACKING}
    assert lacking <= {(each.dashboard, each.panel) for each, *_ in asked}

    def unanswered() -> list[Expression]:
        return [each for each, *chosen in asked if not any(stack.ask_since_start(one.expr) for one in chosen)]

    def surprising() -> list[Expression]:
        return [each for each in unanswered() if (each.dashboard, each.panel) not in lacking]

    with suppress(AssertionError):
        eventually(lambda: not surprising(), 120)
    assert not (found := surprising()), "\n".join(f"{each.dashboard} / {each.panel}: {each.expr}" for each in found)
    empty = unanswered()
    print(f"\n{len(asked)} expressions, {len(asked) - len(empty)} with an answer")
    record_property("expressions", len(asked))
    record_property("answered", len(asked) - len(empty))


def test_every_rule_is_evaluated_and_finds_its_series(stack: Stack) -> None:
    """No rule fails; what is recorded has series, and so has each family that an alert asks for."""
    known = eventually(lambda: (found := _rules(stack)) and all(each["health"] == "ok" for each in found) and found, 60)
    assert len(known) == len(recordings(SETTINGS)) + len(alerts(SETTINGS))
    families = {name for each in known for name in re.findall(r"\b(?:\w+:)?streamgauge_\w+(?::\w+)?", each["query"])}
    wanted = families | {each["name"] for each in known if each["type"] == "recording"}
    eventually(lambda: not [name for name in wanted if not stack.ask_since_start(name)], 60)


def _rules(stack: Stack) -> list[dict[str, Any]]:
    [group] = stack.prometheus.get("/api/v1/rules")["data"]["groups"]
    found: list[dict[str, Any]] = group["rules"]
    assert not [each["lastError"] for each in found if each.get("lastError")]
    return found
