"""Archived jobs in the service's answers, its figures and its probes; and a database that is away or slow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.archive import Archive, open_archive
from collector.run import Run
from collector.segment import run_id
from service.app import create_app
from service.config import Config
from streamgauge import wire
from streamgauge.clock import ManualClock
from streamgauge.errors import ArchiveAway
from tests.conftest import NOW_MS
from tests.lives import Collector, ask
from tests.unit.collector.conftest import Frames

JID = Frames.JID


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def archive(clock: ManualClock, tmp_path: Path) -> Iterator[Archive]:
    with closing(open_archive(str(tmp_path / "a.db"), clock)) as found:
        yield found


@pytest.fixture
def frames() -> Frames:
    return Frames()


@pytest.fixture
def collector(clock: ManualClock, archive: Archive) -> Collector:
    return Collector(clock, archive)


def ended(frames: Frames, number: int = 1, jid: str = JID, **changes: Any) -> wire.Frame:
    job = frames.job(jid, state="FINISHED", end_ms=NOW_MS, since_ms={"FINISHED": NOW_MS})
    return frames.frame(attempt=wire.Attempt(number, f"run-{number}"), job=job, **changes)


def app(collector: Collector) -> Any:
    return create_app(Config(), collector.store, collector.clock, collector.history, collector.archive)


def test_runs_of_a_job_are_told_newest_first(collector: Collector, frames: Frames) -> None:
    """The live one and the archived, each once; by the job's id and by that of any run."""
    for number in (1, 2):
        collector.push(ended(frames, number))
        collector.clock.advance(1_000)
        collector.sweep()
    collector.push(frames.frame(attempt=wire.Attempt(3, "run-3")))
    older = run_id(collector.archive.read(JID).state)
    told = ask(app(collector), [f"/jobs/{JID}/runs", f"/jobs/{older}/runs", f"/jobs/{'f' * 32}/runs"])
    status, body = told[f"/jobs/{JID}/runs"]
    assert (status, body["jid"]) == (200, JID)
    assert [(run["state"], run["start-time"], run["end-time"], run["restarts"]) for run in body["runs"]] == [
        ("RUNNING", 3, -1, 2),
        ("FINISHED", 2, NOW_MS, 1),
        ("FINISHED", 1, NOW_MS, 0),
    ]
    assert told[f"/jobs/{older}/runs"] == told[f"/jobs/{JID}/runs"]
    assert told[f"/jobs/{'f' * 32}/runs"][0] == 404


def test_a_run_without_an_end_lasts_until_it_fell_silent(collector: Collector, frames: Frames) -> None:
    """A service that looks at it a day later does not make it a day longer."""
    collector.push(frames.frame(attempt=wire.Attempt(NOW_MS - 5_000, "run")))
    collector.clock.advance(60_000)
    collector.sweep()
    collector.clock.advance(86_400_000)
    anew = Collector(collector.clock, collector.archive)
    told = ask(app(anew), [f"/jobs/{JID}", "/jobs/overview", f"/jobs/{JID}/runs", "/overview"])
    body = told[f"/jobs/{JID}"][1]
    assert (body["state"], body["duration"], body["now"]) == ("SUSPENDED", 65_000, NOW_MS + 60_000)
    assert told["/jobs/overview"][1]["jobs"][0]["duration"] == 65_000
    assert told[f"/jobs/{JID}/runs"][1]["runs"][0]["duration"] == 65_000
    assert told["/overview"][1]["jobs-running"] == 0


def test_a_live_run_is_asked_for_by_its_own_id(collector: Collector, frames: Frames) -> None:
    """With an archive and without."""
    collector.push(frames.frame())
    run = run_id(collector.store.snapshot().job(JID))
    paths = [f"/jobs/{run}", f"/jobs/{run}/history", f"/jobs/{run}/vertices/{frames.VERTEX}/metrics"]
    for archive in (collector.archive, None):
        found = ask(create_app(Config(), collector.store, collector.clock, collector.history, archive), paths)
        assert [status for status, _ in found.values()] == [200] * 3
        assert found[paths[0]][1]["jid"] == JID


def test_an_archived_application_is_told_with_its_jobs(collector: Collector, frames: Frames) -> None:
    """By Spark's id and by Flink's; as it was when its last job was archived."""
    collector.push(frames.app_frame(configuration={"spark.master": "local[3]"}), ended(frames))
    collector.clock.advance(1_000)
    collector.sweep()
    anew = Collector(collector.clock, collector.archive)
    flink = ask(app(anew), [f"/jobs/{JID}"])[f"/jobs/{JID}"][1]["application-id"]
    for name in (frames.APP.id, flink):
        found = ask(app(anew), [f"/applications/{name}", f"/applications/{name}/jobmanager/config"])
        status, body = found[f"/applications/{name}"]
        assert (status, [job["jid"] for job in body["jobs"]]) == (200, [JID])
        assert found[f"/applications/{name}/jobmanager/config"][1] == [{"key": "spark.master", "value": "local[3]"}]
    assert ask(app(anew), ["/applications/" + "f" * 32])["/applications/" + "f" * 32][0] == 404


def test_a_damaged_run_is_500_and_the_lists_go_on(collector: Collector, frames: Frames) -> None:
    """Its name and state stand in its columns."""
    collector.push(ended(frames), ended(frames, jid="d" * 32))
    collector.clock.advance(1_000)
    collector.sweep()
    with collector.archive._engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE streamgauge_run SET body = x'00' WHERE jid = '{JID}'")
    collector.archive._opened.clear()
    anew = Collector(collector.clock, collector.archive)
    told = ask(app(anew), ["/jobs", f"/jobs/{JID}", f"/jobs/{JID}/runs", f"/jobs/{'d' * 32}"])
    assert [job["id"] for job in told["/jobs"][1]["jobs"]] == [JID, "d" * 32]
    status, body = told[f"/jobs/{JID}"]
    assert status == 500
    assert f"Job {JID}, run " in body["errors"][0]
    assert told[f"/jobs/{JID}/runs"][0] == told[f"/jobs/{'d' * 32}"][0] == 200


def test_while_the_database_is_away_live_jobs_are_told(
    collector: Collector, frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archived ones are 503 with the reason; the lists tell what was last known; ready stays ready."""
    collector.push(ended(frames))
    collector.clock.advance(1_000)
    collector.sweep()
    anew = Collector(collector.clock, collector.archive)
    anew.push(frames.frame(job=frames.job("d" * 32)))

    def away(*_: object, **__: object) -> None:
        raise ArchiveAway("The archive x does not answer: gone; it is tried again by itself")

    for name in ("read", "put", "refresh", "retain"):
        monkeypatch.setattr(anew.archive, name, away)
    told = ask(app(anew), ["/jobs", f"/jobs/{JID}", f"/jobs/{'d' * 32}"])
    assert told[f"/jobs/{JID}"] == (
        503,
        {"errors": ["The archive x does not answer: gone; it is tried again by itself"]},
    )
    assert told[f"/jobs/{'d' * 32}"][0] == 200
    assert len(told["/jobs"][1]["jobs"]) == 2


def test_a_slow_database_delays_neither_pushes_nor_live_jobs(
    collector: Collector, frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a read, and the sweep, hang in it, everything else is answered."""
    hanging, released = threading.Semaphore(0), threading.Event()

    def slow(*_: object, **__: object) -> None:
        assert threading.current_thread() is not threading.main_thread(), "the event loop would hang"
        hanging.release()
        assert released.wait(60)

    collector.push(frames.frame(job=frames.job("d" * 32)))
    for name in ("read", "refresh"):
        monkeypatch.setattr(collector.archive, name, slow)

    async def scene() -> list[int]:
        served = app(collector)
        async with (
            httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://localhost:8081") as client,
            served.router.lifespan_context(served),
        ):
            reads = [asyncio.create_task(client.get(f"/jobs/{JID}")) for _ in range(8)]
            # The sweep, and as many readers as there are.
            for _ in range(1 + 4):
                assert await asyncio.to_thread(hanging.acquire, timeout=60)
            answers = [
                await client.get(f"/jobs/{'d' * 32}"),
                await client.get("/jobs/overview"),
                await client.get("/metrics"),
                await client.get("/-/ready"),
                await client.post(wire.PUSH_PATH, content=b"\x90" + b"", headers={"Content-Type": wire.CONTENT_TYPE}),
            ]
            released.set()
            await asyncio.gather(*reads)
        return [answer.status_code for answer in answers]

    assert asyncio.run(scene()) == [200, 200, 200, 200, 202]


def test_a_service_writes_when_it_ends_and_restores_when_it_starts(collector: Collector, frames: Frames) -> None:
    """What ended within the last second is not lost; its figures tell of it."""

    async def served(one: Collector, push: bool) -> str:
        running = app(one)
        async with (
            httpx.AsyncClient(transport=httpx.ASGITransport(running), base_url="http://localhost:8081") as client,
            running.router.lifespan_context(running),
        ):
            if push:
                one.push(ended(frames))
            return (await client.get("/metrics")).text

    page = asyncio.run(served(collector, True))
    assert "streamgauge_archive_runs 0.0" in page
    assert len(collector.archive.entries) == 1
    anew = Collector(collector.clock, collector.archive)
    page = asyncio.run(served(anew, False))
    for line in ("runs 1.0", "pending_runs 0.0", "failures_total 0.0", "runs_lost_total 0.0"):
        assert f"streamgauge_archive_{line}" in page
    assert anew.store.snapshot().job(JID).state == "FINISHED"


def test_without_an_archive_nothing_is_told_of_one(client: Any) -> None:
    """Not even zeros: there is none."""
    assert "streamgauge_archive" not in client.get("/metrics").text


def test_an_archived_jobs_history_is_told_as_it_was(collector: Collector, frames: Frames) -> None:
    """The last 15 minutes, and what came after a moment."""
    for second in range(4):
        collector.push(frames.frame(seq=second + 1, vertices=(_column(frames, second),)))
        collector.clock.advance(5_000)
        collector.history.sweep()
    collector.push(ended(frames, seq=9, vertices=(_column(frames, 9),)))
    collector.clock.advance(1_000)
    collector.sweep()
    since = NOW_MS + 10_000
    base = f"/jobs/{JID}/vertices/{frames.VERTEX}/history"
    paths = [f"/jobs/{JID}/history", base, f"{base}?since={since}", f"/jobs/{JID}/history?since={since}"]
    told = ask(app(collector), paths)
    assert len(told[base][1]["timestamps"]) == 5
    assert len(told[f"{base}?since={since}"][1]["timestamps"]) == 3
    empty = Collector(collector.clock, collector.archive)
    assert ask(app(empty), paths) == told


def _column(frames: Frames, value: int) -> wire.VertexColumns:
    return frames.figures(columns=(frames.column("numRecordsInPerSecond", value, 2.5),))


def test_runs_are_written_by_who_has_them(archive: Archive, collector: Collector, frames: Frames) -> None:
    """As `streamgauge replay` does: the service shows it after its next sweep."""
    other = Collector(collector.clock)
    other.push(ended(frames))
    archive.write(Run(other.store.snapshot().job(JID)))
    collector.sweep()
    assert ask(app(collector), ["/jobs"])["/jobs"][1]["jobs"] == [{"id": JID, "status": "FINISHED"}]
