"""Flink's autoscaler against the service: it collects what it needs, evaluates every vertex, and finds no fault."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.clients import driver
from tests.clients.conftest import Jobs
from tests.clients.maven import jars, java
from tests.clients.proxy import Exchange, proxying

pytestmark = [pytest.mark.clients, pytest.mark.spark, pytest.mark.timeout(600)]

ROUNDS, PAUSE_S, TIMEOUT_S = 4, 4, 90
OPTIONS = (
    "job.autoscaler.enabled=true",
    # It may say what it would change, and that is refused here anyway.
    "job.autoscaler.scaling.enabled=false",
    "job.autoscaler.stabilization.interval=0s",
    "job.autoscaler.metrics.window=6s",
)


@dataclass
class Report:
    """
    What one run of the autoscaler said and asked.

    Args:
        rounds: How many it ended.
        full: Whether a metric window was ever full; only then it decides anything.
        vertices: Vertex → metric → current value and average, as last evaluated.
        cluster: Metric → the same.
        events: What it reported: kind, reason and message.
        changes: What it would have changed.
        log: What it wrote to its log, warnings and worse.
    """

    rounds: int = 0
    full: bool = False
    vertices: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    cluster: dict[str, tuple[float, float]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    log: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Take in one line of the autoscaler's output."""
        kind, *words = line.split("\t")
        match kind:
            case "round":
                self.rounds += 1
            case "window":
                self.full |= words[1] == "true"
            case "vertex":
                self.vertices.setdefault(words[0], {})[words[1]] = (float(words[2]), float(words[3]))
            case "global":
                self.cluster[words[1]] = (float(words[2]), float(words[3]))
            case "event":
                self.events.append(" ".join(words[1:]))
            case "change":
                self.changes.append(" ".join(words))

    def asked(self, ending: str) -> list[Exchange]:
        """Return the requests whose path ends so, that name metrics."""
        return [each for each in self.exchanges if each.path.endswith(ending) and "get=" in each.target]


@pytest.fixture(scope="module")
def report(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The autoscaler's report of ROUNDS rounds."""
    classes = tmp_path_factory.mktemp("classes")
    path = ":".join(map(str, sorted(jars("autoscaler").glob("*.jar"))))
    source = Path(__file__).with_name("Autoscaler.java")
    compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
    compiled = subprocess.run(
        java("autoscaler", compiler, "-17", "-nowarn", "-cp", path, "-d", classes, source),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    report = Report()
    with proxying(jobs.rest.url) as proxy:
        command = java("autoscaler", "Autoscaler", proxy.url, str(ROUNDS), str(PAUSE_S), *OPTIONS, before=classes)
        command.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        report.log = done.stderr
        report.exchanges = list(proxy.exchanges)
    for line in done.stdout.splitlines():
        report.read(line)
    assert report.rounds == ROUNDS
    return report


def test_it_finds_no_fault(report: Report) -> None:
    """No round fails over an answer that is missing or that it cannot read, and nothing is to be changed."""
    assert report.events == []
    assert report.changes == []
    assert [line for line in report.log.splitlines() if "ERROR" in line or "Exception" in line] == []


def test_every_request_is_answered(report: Report) -> None:
    """All that it asks exists."""
    assert {(each.target, each.status) for each in report.exchanges if each.status != 200} == set()


def test_it_asks_no_metric_that_only_it_knows(report: Report) -> None:
    """What it asks of a vertex it has seen in the list of its metrics; nothing that is named is left out."""
    for each in report.asked("/subtasks/metrics"):
        names = parse_qs(urlsplit(each.target).query)["get"][0].split(",")
        assert [one["id"] for one in msgspec.json.decode(each.body)] == names


def test_it_reads_the_executors(report: Report) -> None:
    """The four figures without which it gives up are there, for all executors."""
    needed = {
        "Status.JVM.Memory.Heap.Max",
        "Status.JVM.Memory.Heap.Used",
        "Status.Flink.Memory.Managed.Used",
        "Status.JVM.Memory.Metaspace.Used",
    }
    answers = [msgspec.json.decode(each.body) for each in report.asked("/taskmanagers/metrics")]
    found = [{one["id"] for one in answer} for answer in answers if answer]
    assert found
    assert all(needed <= names for names in found)
    heap = report.cluster["HEAP_MEMORY_USED"][1]
    assert 0 < heap < 2**30
    assert 0 < report.cluster["HEAP_MAX_USAGE_RATIO"][1] < 1


def test_it_evaluates_every_vertex_of_the_running_jobs(report: Report, jobs: Jobs) -> None:
    """A full window is evaluated, with each vertex's parallelism as the service tells it; ended jobs are left alone."""
    assert report.full
    told = {
        vertex["id"]: vertex["parallelism"] for name in (driver.FLOWS, driver.STILL) for vertex in jobs.vertices(name)
    }
    assert {vertex: metrics["PARALLELISM"][0] for vertex, metrics in report.vertices.items()} == told


def test_no_vertex_is_held_to_less_than_it_has(report: Report) -> None:
    """It takes a vertex's greatest parallelism at its word, and would scale down to it."""
    assert all(told["MAX_PARALLELISM"][0] >= told["PARALLELISM"][0] for told in report.vertices.values())


def test_rates_go_down_the_plan(report: Report, jobs: Jobs) -> None:
    """The rows of a flowing source are its rate, and the vertex behind it is to take what goes over the exchange."""
    source, sink = (vertex["id"] for vertex in jobs.vertices(driver.FLOWS))
    rate = report.vertices[source]["TARGET_DATA_RATE"][1]
    # The source makes 200 rows a second; 14 rows, 7 keys from each of 2 partitions, go over the exchange a batch.
    assert 50 < rate < 500
    assert 0 < report.vertices[sink]["TARGET_DATA_RATE"][1] < rate
    still, _ = (vertex["id"] for vertex in jobs.vertices(driver.STILL))
    assert math.isfinite(report.vertices[still]["LAG"][0])
