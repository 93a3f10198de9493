"""What is read of a service: asked of the real one in this process, whose store holds the recorded jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import urllib3

from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import ReadError
from streamgauge.overview import Job, Overview
from streamgauge.rest import Rest
from streamgauge.survey import LISTED_FOR_MS, Question, Survey

MAIN = "9e283f61da6ac64998d5e31ca6520bee"
DATE = "Sat, 21 Nov 2026 10:00:30 GMT"
DATE_MS = 1_795_255_230_000


class InProcess(Rest):
    """Reads the service without a socket; does not check URL, token or time limits. `paths` is what was asked."""

    def __init__(self, client: Any) -> None:
        super().__init__("http://service.test", None)
        self.paths: list[str] = []
        self.instead: dict[str, tuple[int, bytes]] = {}
        self._client = client

    def _request(self, path: str) -> urllib3.BaseHTTPResponse:
        self.paths.append(path)
        if path in self.instead:
            status, body = self.instead[path]
        else:
            answer = self._client.get(path)
            status, body = answer.status_code, answer.content
        return urllib3.HTTPResponse(body, headers={"Date": DATE}, status=status)


@pytest.fixture
def rest(client: Any) -> InProcess:
    return InProcess(client)


@pytest.fixture
def survey(rest: InProcess, clock: ManualClock) -> Survey:
    return Survey(rest, clock)


@pytest.fixture
def push(client: Any, recorded: list[wire.Frame]) -> Callable[..., None]:
    """Push the main job's frame again, changed; `app` changes the application's."""
    seq = iter(range(2, 99))

    def again(**changes: Any) -> None:
        wanted = None if "hooks" in changes else MAIN
        frame = next(each for each in recorded if (each.job and each.job.jid) == wanted)
        assert client.push(codec.encode([msgspec.structs.replace(frame, seq=next(seq), **changes)])).status_code == 202

    return again


def job(found: Overview, jid: str = MAIN) -> Job:
    return next(each for each in found.jobs or () if each.id == jid)


def vertex_frame(recorded: list[wire.Frame], number: int = 0) -> wire.VertexColumns:
    return next(each for each in recorded if each.job is not None and each.job.jid == MAIN).vertices[number]


def test_running_jobs_are_told_with_their_vertices(survey: Survey) -> None:
    """Rates are sums over subtasks and sources, NaN is unknown, what is not told is None."""
    found = job(survey.read(Question()))
    assert (found.state, found.restarts, found.batch_id, found.batch_duration_ms) == ("RUNNING", 0, None, 18)
    assert found.vertices is not None
    source, *_, sink = found.vertices
    assert source.name.startswith("Source: ")
    assert source.parallelism == 2
    assert source.records_in_per_second == pytest.approx(2000.9333333333334)
    assert found.records_in_per_second == source.records_in_per_second
    assert found.records_out_per_second == sink.records_out_per_second
    assert (source.pending_records, source.watermark_lag_ms, source.back_pressured_ratio) == (None, None, 0.0)


def test_ended_jobs_are_told_when_asked_for(survey: Survey) -> None:
    """Those that run first; an ended job has no rates, though the service keeps its last ones."""
    assert all(not each.ended for each in survey.read(Question()).jobs or ())
    found = survey.read(Question(ended=True))
    listed = [each.ended for each in found.jobs or ()]
    assert listed == sorted(listed)
    assert sum((found.states or {}).values()) == len(listed)
    failed = next(each for each in found.jobs or () if each.state == "FAILED" and each.vertices)
    assert (failed.failure, failed.uptime_ms, failed.records_in_per_second) == ("it broke", None, None)
    assert failed.duration_ms is not None


def test_jobs_in_trouble_come_first(survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]) -> None:
    """A short screen must not leave them out."""
    before = [each.id for each in survey.read(Question()).jobs or ()]
    last = next(each for each in recorded if each.job is not None and each.job.jid == MAIN).job
    assert last is not None
    assert before[0] != MAIN or len(before) > 1
    push(job=msgspec.structs.replace(last, state="RESTARTING", since_ms={"RESTARTING": 5}))
    assert (survey.read(Question()).jobs or ())[0].id == MAIN


@pytest.mark.parametrize(
    "asked",
    [MAIN, MAIN[:6], "9e283f61-da6a-c649-98d5-e31ca6520bee", MAIN.upper()],
    ids=["whole", "start", "uuid", "case"],
)
def test_a_job_is_found_by_its_id(survey: Survey, asked: str) -> None:
    """As REST writes it, as Spark does, or by its beginning."""
    assert [each.id for each in survey.read(Question(job=asked)).jobs or ()] == [MAIN]


def test_a_job_is_found_by_a_part_of_its_name(survey: Survey) -> None:
    """Ended ones too: one asks for a job by name because it is gone."""
    names_found = {each.name for each in survey.read(Question(job="FAIL")).jobs or ()}
    assert names_found
    assert all("fail" in name.lower() for name in names_found)
    assert survey.read(Question(job="no such")).jobs == ()


def test_a_second_reading_asks_less(survey: Survey, rest: InProcess, clock: ManualClock) -> None:
    """Which metrics a vertex has is asked anew after a while only."""
    survey.read(Question())
    first = rest.requests
    survey.read(Question())
    second = rest.requests - first
    vertices = sum("subtasks/metrics?" in path for path in rest.paths) // 2
    assert first - second == vertices > 0
    clock.advance(LISTED_FOR_MS)
    survey.read(Question())
    assert rest.requests - first - second == first


def test_what_a_screen_cannot_show_is_not_asked_for(survey: Survey, rest: InProcess) -> None:
    """Jobs past its lines are listed without figures."""
    found = survey.read(Question(lines=1))
    assert len(found.jobs or ()) > 1
    assert [each.vertices is not None for each in found.jobs or ()] == [True] + [False] * (len(found.jobs or ()) - 1)
    assert sum(path.endswith("/subtasks/metrics") for path in rest.paths) == len((found.jobs or ())[0].vertices or ())


def test_rates_alone_need_the_ends_of_a_job_only(survey: Survey, rest: InProcess) -> None:
    """As `jobs` asks: no drivers, no vertices in the answer, the same rates."""
    whole = job(survey.read(Question()))
    rest.paths.clear()
    found = survey.read(Question(whole=False))
    assert (found.drivers, job(found).vertices) == (None, None)
    assert job(found).records_in_per_second == whole.records_in_per_second
    assert job(found).records_out_per_second == whole.records_out_per_second
    assert "/overview" not in rest.paths


def test_a_broadcast_does_not_make_a_source_of_its_reader_less(
    survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]
) -> None:
    """A vertex that joins its own source with a broadcast is the job's source as well."""
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    assert frame.plan is not None
    first, second, *others = frame.plan.vertices
    joined = msgspec.structs.replace(second, inputs=(wire.Edge(first.id, "BROADCAST", "broadcast"),))
    push(plan=wire.Plan((first, joined, *others)))
    found = job(survey.read(Question()))
    rates = {each.id: each.records_in_per_second for each in found.vertices or ()}
    assert found.records_in_per_second == pytest.approx((rates[first.id] or 0) + (rates[second.id] or 0))


def test_a_silent_drivers_rates_are_not_shown_as_if_they_were_of_now(
    survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]
) -> None:
    """Its vertices are listed."""
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    assert frame.job is not None
    push(job=msgspec.structs.replace(frame.job, state="SUSPENDED", since_ms={"SUSPENDED": 5}))
    found = job(survey.read(Question()))
    assert (found.state, found.records_in_per_second) == ("SUSPENDED", None)
    assert [each.records_in_per_second for each in found.vertices or ()] == [None] * len(frame.vertices)


def test_lags_are_those_of_the_sources_operators(
    survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]
) -> None:
    """Greatest lag, sum of what is pending; a partition's figures are not counted again; names may hold anything."""
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    old = frame.vertices[0]
    first = frame.plan.vertices[0] if frame.plan is not None else None
    assert first is not None
    operator = msgspec.structs.replace(first.operators[0], name="Source: a&b=c#%41")
    told = wire.OperatorColumns(
        operator.id,
        (
            wire.column(names.PENDING_RECORDS, np.array([5, 7])),
            wire.column(f"topic.t.partition.0.{names.PENDING_RECORDS}", np.array([100, 100])),
            wire.column(names.WATERMARK_LAG, np.array([900, 4200])),
            wire.column(names.FETCH_LAG, np.array([np.nan, 3.0])),
        ),
    )
    plan = wire.Plan((msgspec.structs.replace(first, operators=(operator,)), *frame.plan.vertices[1:]))  # type: ignore[union-attr]
    push(plan=plan, vertices=(msgspec.structs.replace(old, operators=(told,)), *frame.vertices[1:]))
    source = next(each for each in job(survey.read(Question())).vertices or () if each.id == old.id)
    assert (source.pending_records, source.watermark_lag_ms, source.fetch_lag_ms) == (12.0, 4200.0, None)


@pytest.mark.parametrize("backlogged", [True, False, None])
def test_shares_are_those_of_the_busiest_subtask_and_the_service_names_the_bottleneck(
    backlogged: bool | None, survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]
) -> None:
    """As Flink's page shows them; a job that keeps up has no bottleneck, however busy it is."""
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    times = ((100.0, 700.0), (900.0, 0.0), *[(50.0, 0.0)] * 9)
    changed = []
    for columns, (busy, held_up) in zip(frame.vertices, times, strict=False):
        size = columns.parallelism
        told = (
            wire.column(names.BUSY_TIME, np.array([busy, 1.0][:size])),
            wire.column(names.BACK_PRESSURED_TIME, np.array([held_up, 0.0][:size])),
        )
        changed.append(msgspec.structs.replace(columns, columns=told))
    assert frame.job is not None
    metrics = frame.job.metrics | ({} if backlogged is None else {names.BACKLOGGED: backlogged})
    push(vertices=tuple(changed), job=msgspec.structs.replace(frame.job, metrics=metrics))
    told = job(survey.read(Question()))
    found = {each.id: each for each in told.vertices or ()}
    first, second = (found[frame.vertices[number].id] for number in (0, 1))
    assert (first.busy_ratio, first.back_pressured_ratio, first.bottleneck) == (0.1, 0.7, False)
    assert (second.busy_ratio, second.bottleneck) == (0.9, backlogged or False)
    assert [each.bottleneck for each in found.values()].count(True) == int(backlogged or False)
    assert (told.backlogged, told.bottleneck) == (backlogged, second.id if backlogged else None)
    assert first.records_in_per_second is None


def test_a_metric_that_has_gone_is_unknown_once_and_then_no_longer_asked_for(
    survey: Survey, push: Callable[..., None], recorded: list[wire.Frame]
) -> None:
    """One metric that nobody has makes the service's whole answer empty."""
    survey.read(Question())
    columns = vertex_frame(recorded)
    left = tuple(each for each in columns.columns if each.metric != names.BUSY_TIME)
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    push(vertices=(msgspec.structs.replace(columns, columns=left), *frame.vertices[1:]))

    def rate() -> float | None:
        return next(
            each for each in job(survey.read(Question())).vertices or () if each.id == columns.id
        ).records_in_per_second

    assert rate() is None
    assert rate() == pytest.approx(2000.9333333333334)


def test_a_job_that_goes_while_it_is_read_is_told_without_figures(survey: Survey, rest: InProcess) -> None:
    """It was evicted between two requests."""
    rest.instead[f"/jobs/{MAIN}"] = (404, b'{"errors":["gone"]}')
    found = job(survey.read(Question()))
    assert (found.state, found.vertices, found.records_in_per_second) == ("RUNNING", None, None)


def test_events_a_second_are_those_between_two_frames(
    survey: Survey, push: Callable[..., None], clock: ManualClock
) -> None:
    """Unknown at first and where the count began anew; the same until the next frame."""

    def rate() -> float | None:
        drivers = survey.read(Question()).drivers
        assert drivers is not None
        return next(each.events_per_second for each in drivers if each.id == "spark-1")

    assert rate() is None
    clock.advance(2000)
    push(hooks={names.HOOKS_EVENTS: 712})
    assert rate() == 350.0
    clock.advance(500)
    assert rate() == 350.0
    clock.advance(500)
    push(hooks={names.HOOKS_EVENTS: 3})
    assert rate() is None


def test_drivers_ages_are_told_by_the_services_clock(survey: Survey, rest: InProcess) -> None:
    """Not by this machine's, which may be wrong; figures that are no numbers are passed over."""
    body = {
        "drivers": [
            {"id": "a", "last-frame": DATE_MS - 3_000, "silent": True, "hooks": {"events": 5, "a": "x", "y": True}},
            {"id": "b", "last-frame": DATE_MS + 400},
            {"id": "c"},
        ]
    }
    rest.instead["/streamgauge/drivers"] = (200, msgspec.json.encode(body))
    drivers = survey.read(Question()).drivers
    assert drivers is not None
    assert [each.age_ms for each in drivers] == [3_000, 0, None]
    assert (drivers[0].silent, drivers[0].hooks) == (True, {"events": 5.0})


def test_a_service_without_drivers_is_read_all_the_same(survey: Survey, rest: InProcess) -> None:
    """An older one, or Flink itself."""
    rest.instead["/streamgauge/drivers"] = (404, b'{"errors":["Unable to load requested file /streamgauge/drivers."]}')
    found = survey.read(Question())
    assert found.drivers is None
    assert found.jobs


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b"<html>", "answers, but not as a Streamgauge service (/jobs/overview: HTTP 404)"),
        (200, b"<html>", "answers, but not as a Streamgauge service (/jobs/overview: JSON is malformed"),
        (200, b'{"jobs": 7}', "answers, but not as a Streamgauge service (/jobs/overview: Expected `array`, got `int`"),
        (302, b"moved", "answers, but not as a Streamgauge service (HTTP 302)"),
        (401, b'{"errors":["no"]}', "is read with a token only: give the read token with --token or STREAMGAUGE_READ"),
        (403, b'{"errors":["host \'x\'\\n is not mine"]}', "refuses (HTTP 403): host 'x'  is not mine"),
        (500, b'{"errors":["' + b"x" * 999 + b'"]}', "refuses (HTTP 500): xxx"),
    ],
    ids=["not found", "a page", "another API", "redirect", "token", "host", "long"],
)
def test_a_refusal_is_one_line_that_names_the_service(
    survey: Survey, rest: InProcess, status: int, body: bytes, said: str
) -> None:
    """And what to do; a server's own words are cleaned and bounded."""
    rest.instead["/jobs/overview"] = (status, body)
    with pytest.raises(ReadError) as error:
        survey.read(Question())
    assert str(error.value).startswith(f"http://service.test {said}")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500
