import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from examples.flights import lacking
from examples.prometheus import QUERIES as PRINTED
from streamgauge.names import NUM_RECORDS_IN
from tests.programs import program

ROOT = Path(__file__).parents[2]
STARTS_WITHIN_S = 240.0
ENDS_WITHIN_S = 90.0

TIMERS = lacking() is None
QUERIES = sorted(["departures", "late-aircraft", *(["overdue"] if TIMERS else [])])

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Demo:
    """`streamgauge demo` in a process group of its own, its lines, and everything that it leaves behind."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamgauge", "demo", *options],
            env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": path},
            cwd=folder.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def await_line(self, pattern: str) -> re.Match[str]:
        """Wait for a line; fails with all of the output when the demo ends or is too slow."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, self.lines
            return next((match for line in list(self.lines) if (match := re.search(pattern, line))), None)

        return eventually(found, STARTS_WITHIN_S, lambda: f"{pattern!r} is not among {self.lines}")

    def end(self, number: int) -> int:
        """Send a signal as a terminal would, to the group, and return the exit code."""
        os.killpg(self.process.pid, number)
        code = self.process.wait(ENDS_WITHIN_S)
        self._reader.join(10)
        return code

    def remains(self) -> list[str]:
        """What is in its temporary folder, and command lines of what works there."""
        found = [str(path) for path in self.folder.rglob("*")]
        return found + [command for _, command in self.processes()]

    def kill(self) -> None:
        """Clear away what a failed test has left."""
        self.process.kill()
        self.process.wait()
        for pid, _ in self.processes():
            os.kill(pid, signal.SIGKILL)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def processes(self) -> Iterator[tuple[int, str]]:
        """Number and command line of everything that works in its temporary folder."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    works_in = str((entry / "cwd").readlink())
                    command = (entry / "cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
                if works_in.startswith(str(self.folder)):
                    yield int(entry.name), command


def eventually(condition: Callable[[], Any], within_s: float, told: Callable[[], str]) -> Any:
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)
    return value


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def await_growth(url: str) -> None:
    first = get(url)[0]["sum"]
    eventually(lambda: get(url)[0]["sum"] > first, 60, lambda: f"{url} stands still at {first}")


def await_splits(url: str) -> None:
    """Each airport has an event time of the replayed year, and files waited to be read for less than an hour."""

    def told() -> bool:
        body = get(url)
        (tap,) = body["taps"]
        latencies = [each["queueing"] for each in body["records"] if each["queueing"]]
        return bool(latencies) and all(split["watermark"] and split["records"] for split in tap["splits"])

    eventually(told, 60, lambda: str(get(url)))
    (tap,) = get(url)["taps"]
    assert tap["name"] == "departures"
    assert sorted(split["id"] for split in tap["splits"]) == ["EWR", "JFK", "LGA"]
    for split in tap["splits"]:
        year = datetime.fromtimestamp(split["watermark"] / 1000, timezone.utc).year
        assert year >= 2013
        assert split["drift-ms"] >= 0
    assert tap["unwatched-records"] == 0


def await_timers(url: str) -> None:
    """Timers are registered, deleted by arrivals, and fire, more and more of them."""

    def told() -> bool:
        (operator,) = get(url)["operators"]
        return all(operator[figure] for figure in ("registered", "deleted", "fired")) and bool(operator["lateness"])

    eventually(told, 60, lambda: str(get(url)))
    first = get(url)["operators"][0]["fired"]
    eventually(lambda: get(url)["operators"][0]["fired"] > first, 60, lambda: str(get(url)))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    demos: list[Demo] = []

    def start_demo(*options: str) -> Demo:
        folder = tmp_path / f"tmp-{len(demos)}"
        folder.mkdir()
        demos.append(Demo(folder, *options))
        return demos[-1]

    yield start_demo
    for demo in demos:
        demo.kill()


def test_demo_shows_growing_counts_and_ends_without_a_trace(start: Callable[..., Demo]) -> None:
    """Every query's figures grow in the REST, the printed requests work, and Ctrl-C leaves nothing."""
    demo = start("--port", "0", "--speed", "28800")
    url = demo.await_line(r"the service answers at (\S+)").group(1)
    demo.await_line("Ctrl-C ends the demo")
    requests = [shlex.split(line)[1] for line in list(demo.lines) if line.strip().startswith("curl ")]
    for request in requests:
        assert get(request)

    jobs = get(f"{url}/jobs/overview")["jobs"]
    assert sorted(job["name"] for job in jobs) == QUERIES
    assert {job["state"] for job in jobs} == {"RUNNING"}
    busiest = requests[1 : len(QUERIES) + 1]
    for vertex in busiest:
        await_growth(f"{vertex.partition('?')[0]}?get={NUM_RECORDS_IN}&agg=sum")
    event_time = requests[len(QUERIES) + 1 :]
    told = {request.rpartition("/")[2]: request for request in event_time}
    assert sorted(told) == ["splits", "timers"][: len(event_time)]
    assert len(event_time) == 1 + TIMERS
    await_splits(told["splits"])
    if TIMERS:
        await_timers(told["timers"])

    assert demo.end(signal.SIGINT) == 0
    assert "Traceback" not in "\n".join(demo.lines)
    assert demo.remains() == []
    with pytest.raises(urllib.error.URLError):
        get(f"{url}/jobs/overview")


def test_demo_that_is_told_to_end_while_spark_starts_ends(start: Callable[..., Demo]) -> None:
    """SIGTERM at the worst moment, a JVM half up: exit code 0 and nothing left."""
    demo = start("--port", "0")
    demo.await_line("starting Spark")
    assert demo.end(signal.SIGTERM) == 0
    assert "Traceback" not in "\n".join(demo.lines)
    assert demo.remains() == []


def test_taken_port_is_told_in_one_line_that_names_the_option(start: Callable[..., Demo]) -> None:
    """No Spark is started for it, and what listens there is left alone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        demo = start("--port", str(taken.getsockname()[1]))
        assert demo.process.wait(60) == 1
        eventually(lambda: any("Error: " in line for line in demo.lines), 10, lambda: str(demo.lines))
    assert [line for line in demo.lines if "--port" in line and "is taken" in line]
    assert not any("Traceback" in line or "Spark" in line for line in demo.lines)
    assert demo.remains() == []


def test_demo_says_that_the_service_has_died(start: Callable[..., Demo]) -> None:
    """The job is not left running into the void: one line, exit code 1, nothing left."""
    demo = start("--port", "0")
    demo.await_line("starting Spark")
    service = next(pid for pid, command in demo.processes() if " serve " in command)
    os.kill(service, signal.SIGKILL)
    assert demo.process.wait(ENDS_WITHIN_S) == 1
    eventually(lambda: any("the service ended" in line for line in demo.lines), 10, lambda: str(demo.lines))
    assert demo.remains() == []


def ask(prometheus: str, query: str) -> list[Any]:
    result: list[Any] = get(f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}")["data"]["result"]
    return result


def page(alertmanager: str) -> None:
    """Raise an alert that is told at once, and ends by itself."""
    labels = {"alertname": "StreamgaugeTried", "severity": "critical", "job_name": "departures"}
    body = json.dumps([{"labels": labels, "annotations": {"description": "It is told."}}]).encode()
    request = urllib.request.Request(f"{alertmanager}/api/v2/alerts", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture
def with_prometheus(start: Callable[..., Demo]) -> Demo:
    program("prometheus")
    program("prometheus-alertmanager", "alertmanager")
    return start("--port", "0", "--speed", "28800", "--prometheus")


def test_demo_with_prometheus_shows_what_to_ask_it(with_prometheus: Demo) -> None:
    """Both pages are scraped, every rule is evaluated, queries have answers, alerts are told; Ctrl-C leaves nothing."""
    demo = with_prometheus
    alertmanager = demo.await_line(r"^Alertmanager answers at (\S+)").group(1)
    prometheus = demo.await_line(r"^Prometheus answers at (\S+)").group(1)
    demo.await_line("Ctrl-C ends the demo")
    assert [line.strip() for line in demo.lines if line.startswith("  ") and "curl" not in line] == list(PRINTED)

    targets = get(f"{prometheus}/api/v1/targets")["data"]["activeTargets"]
    assert sorted(target["labels"]["job"] for target in targets) == ["streamgauge", "streamgauge-flink"]
    for query in (*PRINTED[:-1], 'up{job="streamgauge"} == 1', 'up{job="streamgauge-flink"} == 1'):
        eventually(lambda query=query: ask(prometheus, query), 120, lambda query=query: f"{query} has no answer")
    groups = get(f"{prometheus}/api/v1/rules")["data"]["groups"]
    assert groups
    assert {rule["lastError"] for group in groups for rule in group["rules"] if rule.get("lastError")} == set()
    told = get(f"{prometheus}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
    assert told == [{"url": f"{alertmanager}/api/v2/alerts"}]
    page(alertmanager)
    demo.await_line(r"^\[page\] firing StreamgaugeTried: departures: It is told\.$")

    assert demo.end(signal.SIGINT) == 0
    assert "Traceback" not in "\n".join(demo.lines)
    assert demo.remains() == []
    for url in (alertmanager, prometheus):
        with pytest.raises(urllib.error.URLError):
            get(url)


def test_demo_says_that_prometheus_has_died(with_prometheus: Demo) -> None:
    """As of the service: one reason, exit code 1, nothing left."""
    demo = with_prometheus
    demo.await_line("^Prometheus answers at")
    prometheus = next(pid for pid, command in demo.processes() if "prometheus.yml" in command)
    os.kill(prometheus, signal.SIGKILL)
    assert demo.process.wait(ENDS_WITHIN_S) == 1
    eventually(lambda: any("the Prometheus server ended" in line for line in demo.lines), 10, lambda: str(demo.lines))
    assert demo.remains() == []
