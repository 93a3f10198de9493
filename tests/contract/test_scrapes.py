"""What Prometheus is told: the names that Flink's dashboards ask for, hostile names, and jobs that are gone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from collector.liveness import Liveness
from collector.retention import Keep, Retention
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.prometheus.granularity import GRANULARITIES
from service.prometheus.labels import LABEL_CHARS
from service.prometheus.scrape import FLINK, METRICS
from streamgauge import catalogue, codec, names, wire
from streamgauge.clock import ManualClock
from tests.conftest import NOW_MS, Client, app_frame, job_frame, recorded_frames, recording
from tests.programs import program

PAGE = Path(__file__).parents[2] / "docs" / "prometheus.md"
ASKED = (Path(__file__).parent / "flink_names" / "dashboards.txt").read_text().splitlines()
"""Names that 14 public dashboards and 7 rule files for Flink ask for; '<collector>' is a garbage collector's."""
COLLECTOR = "G1 Young Generation"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
HOSTILE = (
    'quo"te',
    "back\\slash",
    "line\nfeed",
    "\\n",
    'a"} 1\nevil{x="',
    "nul\0 bell\a",
    "\r\n",
    "\u2028\u0085\x1c",
    "# EOF",
    "# TYPE x counter",
    " ",
    "é→😀",
    "{}",
    "x" * 8_192,
    "x" * 8_191 + "y",
)


def measured(scope: catalogue.Scope) -> list[str]:
    metrics = [metric for metric in catalogue.METRICS if metric.scope == scope]
    return [metric.name for metric in metrics if metric.type not in ("string", "histogram")]


def scalars(scope: catalogue.Scope) -> dict[str, wire.Scalar]:
    found: dict[str, wire.Scalar] = dict.fromkeys(measured(scope), 1)
    if scope in ("driver", "executor"):
        for suffix in (names.GARBAGE_COUNT, names.GARBAGE_TIME):
            found[f"{names.GARBAGE_COLLECTOR}{COLLECTOR}{suffix}"] = 1
    return found


def whole_frames() -> list[wire.Frame]:
    """A job, a driver and executors that tell every metric of the catalogue."""
    replace = msgspec.structs.replace
    job = job_frame(recording("main__job.json"))
    vertices = []
    for vertex in job.vertices:
        columns = {
            scope: tuple(wire.column(name, np.ones(vertex.size, dtype=np.int64)) for name in measured(scope))
            for scope in ("vertex", "operator")
        }
        operators = tuple(replace(operator, columns=columns["operator"]) for operator in vertex.operators)
        vertices.append(replace(vertex, columns=columns["vertex"], operators=operators))
    app = app_frame()
    executors = tuple(replace(executor, metrics=scalars("executor")) for executor in app.executors)
    assert job.job is not None
    return [
        replace(app, driver=scalars("driver"), hooks=scalars("hooks"), executors=executors),
        replace(job, job=replace(job.job, metrics=scalars("job")), vertices=tuple(vertices)),
    ]


def fed(frames: list[wire.Frame], clock: ManualClock, store: MetricStore | None = None) -> Client:
    client = Client(create_app(Config(), store or MetricStore(), clock))
    answer = client.push(codec.encode(frames))
    assert answer.status_code == 202, answer.text
    return client


def decided() -> dict[str, str]:
    """Name → whether it is told, by the table of the page."""
    return dict(re.findall(r"^\| `(flink_[^`]+)` \| (yes|no)\b", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def promtool(page: bytes) -> tuple[int, bytes]:
    """Its code, 3 where it has something to say of names and 1 where it cannot read the page, and what it says."""
    command = [program("promtool"), "check", "metrics"]
    found = subprocess.run(command, input=page, capture_output=True, timeout=60, check=False)
    return found.returncode, found.stdout + found.stderr


def test_every_name_that_dashboards_ask_for_is_decided_on() -> None:
    """The page says of each whether it is told, and why not."""
    assert sorted(decided()) == sorted(ASKED)
    assert len(ASKED) > 50


@pytest.mark.parametrize("name", ASKED)
def test_name_is_told_where_the_page_says_so(name: str, whole: set[str]) -> None:
    """By a job, a driver and executors of which everything is known."""
    assert (name.replace("<collector>", "G1_Young_Generation") in whole) == (decided()[name] == "yes")


@pytest.fixture(scope="module")
def whole() -> set[str]:
    page = fed(whole_frames(), ManualClock(NOW_MS)).get(FLINK).text
    return {family.name for family in read_text(page)}


def test_every_name_on_the_page_is_there(clock: ManualClock) -> None:
    """Of the idiomatic ones, those that are named in docs/prometheus.md."""
    told = {family.name for family in read_text(fed(recorded_frames(), clock).get(METRICS).text)}
    named = set(re.findall(r"`(streamgauge_\w+)", PAGE.read_text(encoding="utf-8")))
    assert len(named) >= 5
    assert {name.removesuffix("_total") for name in named} <= told


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("frames", [recorded_frames, whole_frames], ids=["recorded", "whole"])
def test_promtool_finds_nothing_to_say(frames: Any, granularity: str, clock: ManualClock) -> None:
    """Of names, units, types and help texts of everything on /metrics."""
    page = fed(frames(), clock).get(f"{METRICS}?granularity={granularity}").content
    assert promtool(page) == (0, b"")


def test_promtool_reads_the_names_of_flink(clock: ManualClock) -> None:
    """Though it would have others."""
    code, said = promtool(fed(whole_frames(), clock).get(FLINK).content)
    assert (code, b"error while linting" in said) == (3, False), said


def hostile_frames() -> list[wire.Frame]:
    """A job for each hostile name, by which everything of it is called."""
    replace = msgspec.structs.replace
    body = recording("main__job.json")
    frames = [app_frame()]
    for number, name in enumerate(HOSTILE):
        frame = job_frame({**body, "jid": f"{number:032x}"}, app=replace(app_frame().app, id=f"{number} {name}"[:8192]))
        assert frame.plan is not None
        assert frame.job is not None
        plan = tuple(
            replace(vertex, name=name, operators=tuple(replace(each, name=name) for each in vertex.operators))
            for vertex in frame.plan.vertices
        )
        short = name[:400]
        vertices = []
        for vertex in frame.vertices:
            taps = tuple(replace(tap, name=short, splits=(short, "2")) for tap in vertex.taps or ()) or None
            times = replace(vertex.subtasks, executors=(name, f"2 {name}"[:8192]))
            vertices.append(replace(vertex, taps=taps, subtasks=times))
        job = replace(frame.job, name=name)
        frames.append(replace(frame, job=job, plan=wire.Plan(plan), vertices=tuple(vertices)))
        executor = replace(app_frame().executors[0], id=name, endpoint=name)
        frames.append(replace(app_frame(app=replace(frame.app, name=name, host=name)), executors=(executor,)))
    return frames


@pytest.mark.parametrize("path", [METRICS, FLINK])
@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_hostile_names_make_valid_pages(path: str, granularity: str, clock: ManualClock) -> None:
    """In both formats, each series once, no label longer than the bound; promtool reads the text format too."""
    client = fed(hostile_frames(), clock)
    asked = f"{path}?granularity={granularity}"
    text, openmetrics = client.get(asked), client.get(asked, headers=OPENMETRICS)
    pages = [[*read_text(text.text)], [*read_openmetrics(openmetrics.text)]]
    for families in pages:
        samples = [sample for family in families for sample in family.samples]
        series = {(sample.name, *sorted(sample.labels.items())) for sample in samples}
        assert len(series) == len(samples)
        assert max(len(value) for sample in samples for value in sample.labels.values()) <= LABEL_CHARS
        assert not any(sample.name.startswith("evil") for sample in samples)
        jobs = {sample.labels.get("job_id") for sample in samples} - {None}
        assert len(jobs) == len(HOSTILE)
    assert promtool(text.content)[0] == (0 if path == METRICS else 3)


def test_hostile_names_read_back(clock: ManualClock) -> None:
    """Whatever fits the bound is what it was."""
    page = fed(hostile_frames(), clock).get(f"{METRICS}?granularity=job").text
    told = {
        sample.labels["job_name"]
        for family in read_text(page)
        for sample in family.samples
        if sample.labels.get("job_name")
    }
    assert {name for name in HOSTILE if len(name) <= LABEL_CHARS} <= told
    assert len(told) == len(HOSTILE)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\xed\xa0\x80", b"\xc3"], ids=["no UTF-8", "surrogate", "cut"])
def test_what_is_no_utf_8_does_not_come_in(name: bytes, clock: ManualClock) -> None:
    """So that no label is ever anything else; the hooks send '?' in place of half a surrogate pair."""
    frame = job_frame(recording("main__job.json"))
    assert frame.job is not None
    mark = "hurt" + "~" * len(name)
    body = codec.encode([msgspec.structs.replace(frame, job=msgspec.structs.replace(frame.job, name=mark))])
    assert body.count(mark.encode()) == 1
    answer = Client(create_app(Config(), MetricStore(), clock)).push(body.replace(mark.encode(), b"hurt" + name))
    assert (answer.status_code, list(answer.json())) == (400, ["errors"])


class Watched:
    """A service whose sweeps run every second of a clock that is set by hand."""

    def __init__(self) -> None:
        self._clock = ManualClock(NOW_MS)
        self._store = MetricStore()
        self._sweeps = (Liveness(self._store, self._clock), Retention(self._store, self._clock, Keep()))
        self._client = Client(create_app(Config(), self._store, self._clock))

    def push(self, *frames: wire.Frame) -> None:
        assert self._client.push(codec.encode(list(frames))).status_code == 202

    def after(self, seconds: int) -> dict[str, set[str]]:
        """Each job's states that are 1, and the names of all else that is told of it, that much later."""
        for _ in range(seconds):
            self._clock.advance(1_000)
            for sweep in self._sweeps:
                sweep.sweep()
        found: dict[str, set[str]] = {}
        for family in read_text(self._client.get(METRICS).text):
            for sample in family.samples:
                if "job_id" in sample.labels:
                    told = found.setdefault(sample.labels["job_id"], set())
                    if sample.name != "streamgauge_job_state":
                        told.add(sample.name)
                    elif sample.value:
                        told.add(sample.labels["state"])
        return found


FAILED = recording("fail__job.json")
MAIN = recording("main__job.json")


def test_failure_is_seen_though_job_and_driver_came_and_went_between_two_scrapes() -> None:
    """The first that is heard of the job is that it failed, and nothing is heard after: its state stays 15 minutes."""
    watched = Watched()
    watched.push(app_frame(), job_frame(FAILED))
    for seconds in (0, 1, 60, 800, 39):
        assert watched.after(seconds) == {FAILED["jid"]: {"FAILED"}}
    assert watched.after(1) == {}


def test_ended_job_leaves_all_but_its_state_at_once() -> None:
    """At the scrape after its last frame; a driver that goes silent then changes nothing of it."""
    watched = Watched()
    watched.push(app_frame(), job_frame(MAIN))
    assert {"RUNNING", "streamgauge_vertex_records_in_total"} < watched.after(1)[MAIN["jid"]]
    watched.push(job_frame({**MAIN, "state": "FAILED"}, seq=2))
    assert watched.after(1) == {MAIN["jid"]: {"FAILED"}}
    assert watched.after(120) == {MAIN["jid"]: {"FAILED"}}


def test_driver_that_dies_without_a_word_leaves_its_jobs_suspended() -> None:
    """13 s after its last frame with the usual interval, and for as long as the job is held, which is an hour."""
    watched = Watched()
    watched.push(app_frame(), job_frame(MAIN))
    assert "RUNNING" in watched.after(13)[MAIN["jid"]]
    assert watched.after(1) == {MAIN["jid"]: {"SUSPENDED"}}
    assert watched.after(3_585) == {MAIN["jid"]: {"SUSPENDED"}}
    assert watched.after(1) == {}
