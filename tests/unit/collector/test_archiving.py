"""When a run is archived, what becomes of it while the database is away, and what comes back from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from collector import archiving as module
from collector.archive import Archive, open_archive
from collector.retention import Keep, Retention
from collector.segment import Segment
from streamgauge import names, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import ArchiveAway, ArchiveError
from tests.lives import Collector

NOW_MS = 10_000_000


class Fickle:
    """An archive whose database comes and goes; reads go to the real one."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.away = False
        self.refused: set[str] = set()
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def _check(self) -> None:
        self.asked += 1
        if self.away:
            raise ArchiveAway("The archive x does not answer: gone")

    def put(self, segment: Segment) -> None:
        self._check()
        if segment.entry.jid in self.refused:
            raise ArchiveError("too odd")
        self._archive.put(segment)

    def read(self, wanted: str) -> Any:
        self._check()
        return self._archive.read(wanted)

    def refresh(self) -> None:
        self._check()
        self._archive.refresh()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def archive(clock: ManualClock, tmp_path: Path) -> Iterator[Fickle]:
    with closing(open_archive(str(tmp_path / "a.db"), clock)) as found:
        yield Fickle(found)


@pytest.fixture
def collector(clock: ManualClock, archive: Any) -> Collector:
    return Collector(clock, archive)


def attempt(number: int) -> wire.Attempt:
    return wire.Attempt(number, f"run-{number}")


def listed(archive: Any, jid: str) -> list[tuple[str, str, int]]:
    """Run, state and restarts of a job's archived runs, newest first."""
    return [(each.attempt.run_id, each.state, each.restarts) for each in archive.entries.runs.get(jid, ())]


def lapse(collector: Collector, ms: int = 1_000) -> None:
    collector.clock.advance(ms)
    collector.sweep()


def test_a_run_is_archived_within_a_second_of_its_end(collector: Collector, archive: Any, frames: Any) -> None:
    """With the sample of its end, which is not waited for; once, for as long as nothing changes."""
    running = frames.job(metrics={names.NUM_RECORDS_IN: 1})
    collector.push(frames.frame(job=running))
    lapse(collector)
    assert not len(archive.entries)
    lapse(collector, 2_000)
    collector.push(frames.frame(seq=2, job=frames.job(state="FAILED", end_ms=7)))
    lapse(collector)
    assert listed(archive, frames.JID) == [("run-1", "FAILED", 0)]
    run = archive.read(frames.JID)
    assert run.course.times_ms.tolist() == [NOW_MS + 1_000, NOW_MS + 4_000]
    collector.push(frames.frame(seq=3, job=frames.job(state="FAILED", end_ms=7)))
    lapse(collector)
    assert archive.read(frames.JID).state.seq == 3
    written = collector.archiving.figures().written
    lapse(collector)
    assert collector.archiving.figures().written == written == 2


def test_an_ended_run_waits_for_the_sample_of_its_end(collector: Collector, archive: Any, frames: Any) -> None:
    """The two sweeps run apart: whichever comes first, the archived history ends with the end."""
    collector.push(frames.frame())
    lapse(collector)
    collector.clock.advance(1_000)
    collector.push(frames.frame(seq=2, job=frames.job(state="FINISHED", end_ms=7)))
    collector.archiving.sweep()
    assert not len(archive.entries)
    collector.history.sweep()
    collector.archiving.sweep()
    assert archive.read(frames.JID).course.times_ms.tolist() == [NOW_MS + 1_000, NOW_MS + 2_000]


def test_a_driver_that_falls_silent_is_archived_and_rewritten_when_it_is_back(
    collector: Collector, archive: Any, frames: Any
) -> None:
    """A crash at 3 a.m. is there at 9, though the service was killed at 4."""
    collector.push(frames.frame())
    lapse(collector, 60_000)
    assert listed(archive, frames.JID) == [("run-1", "SUSPENDED", 0)]
    collector.push(frames.frame(seq=2))
    lapse(collector)
    collector.push(frames.frame(seq=3, job=frames.job(state="FINISHED", end_ms=9)))
    lapse(collector)
    assert listed(archive, frames.JID) == [("run-1", "FINISHED", 0)]


def test_a_run_that_is_replaced_is_archived_as_it_was(collector: Collector, archive: Any, frames: Any) -> None:
    """A driver that was restarted at once: no silence was seen; its course ends where the new run began."""
    collector.push(frames.frame())
    lapse(collector, 6_000)
    collector.clock.advance(500)
    collector.push(frames.frame(attempt=attempt(2)))
    collector.clock.advance(500)
    collector.history.sample()
    lapse(collector)
    assert listed(archive, frames.JID) == [("run-1", "SUSPENDED", 0)]
    found = archive.read(frames.JID)
    assert (found.state.modified_ms, found.state.since_ms["SUSPENDED"]) == (NOW_MS + 6_500, NOW_MS + 6_500)
    assert found.course.times_ms.tolist() == [NOW_MS + 6_000]
    collector.push(frames.frame(attempt=attempt(2), seq=2, job=frames.job(state="FINISHED", end_ms=9)))
    lapse(collector)
    assert listed(archive, frames.JID) == [("run-2", "FINISHED", 1), ("run-1", "SUSPENDED", 0)]


def test_what_retention_takes_before_it_was_seen_is_archived(collector: Collector, archive: Any, frames: Any) -> None:
    """More batches in a second than the store keeps."""
    for number in range(5):
        job = frames.job(f"{number:032x}", type="BATCH", state="FINISHED", end_ms=NOW_MS)
        collector.push(frames.frame(attempt=attempt(number), job=job))
        collector.clock.advance(1)
    Retention(collector.store, collector.clock, Keep(ended_batches=1)).sweep()
    assert len(collector.store.snapshot().jobs) == 1
    lapse(collector)
    assert len(archive.entries.jobs) == 5


def test_while_the_database_is_away_runs_wait_and_nothing_else_does(
    collector: Collector, archive: Any, frames: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Tried again after 1, 2, 4, … up to 60 s; said once, counted always; evicted in the meantime or not."""
    archive.away = True
    collector.push(frames.frame(job=frames.job(state="FINISHED", end_ms=NOW_MS)))
    tries = []
    for second in range(1, 200):
        before = archive.asked
        lapse(collector)
        if archive.asked > before:
            tries.append(second)
        if second == 10:
            Retention(collector.store, collector.clock, Keep(ended_queries=0)).sweep()
            assert not collector.store.snapshot().jobs
    assert tries == [1, 2, 4, 8, 16, 32, 64, 124, 184]
    figures = collector.archiving.figures()
    assert (figures.pending, figures.failures, figures.lost) == (1, len(tries), 0)
    assert figures.pending_bytes > 0
    assert sum("does not answer" in message for message in caplog.messages) == 1
    archive.away = False
    lapse(collector, 60_000)
    assert listed(archive, frames.JID) == [("run-1", "FINISHED", 0)]
    figures = collector.archiving.figures()
    assert (figures.pending, figures.pending_bytes, figures.written) == (0, 0, 1)
    assert "answers again" in caplog.text


@pytest.mark.parametrize("limit", ["PENDING_RUNS", "PENDING_BYTES"])
def test_what_waits_is_bounded(
    limit: str, collector: Collector, archive: Any, frames: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In number and in bytes; the oldest is given up, and counted."""
    archive.away = True
    for number in range(4):
        job = frames.job(f"{number:032x}", state="FINISHED", end_ms=NOW_MS)
        collector.push(frames.frame(job=job, attempt=attempt(number)))
        if number == 1:
            lapse(collector)
            figures = collector.archiving.figures()
            two = {"PENDING_RUNS": figures.pending, "PENDING_BYTES": figures.pending_bytes + 50}
            monkeypatch.setattr(module, limit, two[limit])
    lapse(collector)
    assert (collector.archiving.figures().pending, collector.archiving.figures().lost) == (2, 2)
    archive.away = False
    lapse(collector, 60_000)
    assert sorted(archive.entries.runs) == [f"{number:032x}" for number in (2, 3)]


def test_a_run_that_no_database_takes_does_not_stop_the_others(collector: Collector, archive: Any, frames: Any) -> None:
    """It is given up, and counted."""
    for number in range(3):
        job = frames.job(f"{number:032x}", state="FINISHED", end_ms=NOW_MS)
        collector.push(frames.frame(job=job, attempt=attempt(number)))
    archive.refused = {f"{1:032x}"}
    lapse(collector)
    assert sorted(archive.entries.runs) == [f"{number:032x}" for number in (0, 2)]
    assert (collector.archiving.figures().lost, collector.archiving.figures().pending) == (1, 0)


FAILED = wire.Failures((wire.Failure("E", "E: it broke", 5),))


@pytest.mark.parametrize("away", [False, True], ids=["there", "away at first"])
def test_a_query_goes_on_from_its_archived_runs(
    away: bool, collector: Collector, archive: Any, frames: Any, clock: ManualClock
) -> None:
    """A service that started anew counts restarts, first start and failures as if it had stayed."""
    collector.push(frames.frame(failures=FAILED, job=frames.job(state="FAILED", end_ms=9)))
    lapse(collector)
    collector.push(frames.frame(attempt=attempt(2), job=frames.job(state="FINISHED", end_ms=11)))
    lapse(collector)
    anew = Collector(clock, archive)
    archive.away = away
    anew.push(frames.frame(attempt=attempt(3), job=frames.job(state="CREATED", since_ms={"CREATED": 12})))
    lapse(anew)
    if away:
        assert anew.store.snapshot().job(frames.JID).restarts == 0
        archive.away = False
        lapse(anew)
    stayed = Collector(clock)
    stayed.push(frames.frame(failures=FAILED, job=frames.job(state="FAILED", end_ms=9)))
    stayed.push(frames.frame(attempt=attempt(2), job=frames.job(state="FINISHED", end_ms=11)))
    stayed.push(frames.frame(attempt=attempt(3), job=frames.job(state="CREATED", since_ms={"CREATED": 12})))
    for each in ("state", "restarts", "first_start_ms", "since_ms"):
        found, expected = (getattr(one.store.snapshot().job(frames.JID), each) for one in (anew, stayed))
        assert found == expected, each
    found, expected = (one.store.snapshot().job(frames.JID).failure_history() for one in (anew, stayed))
    assert found == expected == FAILED
    assert expected.latest
    lapse(anew)
    assert anew.store.snapshot().job(frames.JID).restarts == 2


def test_a_query_that_was_evicted_goes_on_as_the_run_it_is(collector: Collector, archive: Any, frames: Any) -> None:
    """An hour of silence is no restart, even if it speaks again within the second of its eviction."""
    collector.push(frames.frame())
    collector.push(frames.frame(attempt=attempt(2)))
    lapse(collector)
    lapse(collector, 3_700_000)
    Retention(collector.store, collector.clock, Keep()).sweep()
    assert not collector.store.snapshot().jobs
    collector.push(frames.frame(attempt=attempt(2)))
    lapse(collector)
    state = collector.store.snapshot().job(frames.JID)
    assert (state.restarts, state.first_start_ms, state.state) == (1, 1, "RUNNING")
    assert "SUSPENDED" in state.since_ms


def test_a_run_that_came_and_ended_within_a_second_goes_on_from_the_one_before(
    collector: Collector, archive: Any, frames: Any, clock: ManualClock
) -> None:
    """What it is itself is no earlier run; nor is one that it replaced."""
    collector.push(frames.frame(job=frames.job(state="FINISHED", end_ms=9)))
    lapse(collector)
    anew = Collector(clock, archive)
    anew.push(frames.frame(attempt=attempt(2)))
    anew.push(frames.frame(attempt=attempt(3), job=frames.job(state="FINISHED", end_ms=10)))
    lapse(anew)
    lapse(anew)
    assert anew.store.snapshot().job(frames.JID).restarts == 2
    assert listed(archive, frames.JID)[0] == ("run-3", "FINISHED", 2)


def test_ended_jobs_come_back_as_long_as_the_store_would_have_kept_them(
    collector: Collector, archive: Any, frames: Any, clock: ManualClock
) -> None:
    """By number, apart for batches, and by the hour; a repeated frame of theirs is a repeated frame."""
    collector.push(frames.app_frame(configuration={"a": "b"}))
    for number in range(3):
        for kind, digit in (("STREAMING", "a"), ("BATCH", "b")):
            job = frames.job(f"{digit}{number:031x}", type=kind, state="FINISHED", end_ms=clock.now_ms() - number)
            collector.push(frames.frame(attempt=attempt(number), job=job))
    old = frames.job("c" * 32, state="FINISHED", end_ms=clock.now_ms() - 3_600_000)
    collector.push(frames.frame(job=old))
    lapse(collector)
    many = Collector(clock, archive)
    assert many.archiving.restore() == 6
    assert "c" * 32 not in many.store.snapshot().jobs
    anew = Collector(clock, archive)
    anew.archiving._keep = Keep(ended_queries=2, ended_batches=1)
    assert anew.archiving.restore() == 3
    held = anew.store.snapshot()
    assert sorted(held.jobs) == [f"a{0:031x}", f"a{1:031x}", f"b{0:031x}"]
    [app] = held.apps.values()
    assert (app.configuration, app.suspended) == ({"a": "b"}, True)
    lapse(anew)
    assert anew.archiving.figures().written == 0
    again = frames.job(f"a{0:031x}", state="FINISHED", end_ms=clock.now_ms())
    assert anew.push(frames.frame(attempt=attempt(0), job=again)) == (0, 1, 0)
    clock.advance(3_600_000)
    assert len(Retention(anew.store, clock, Keep()).sweep().jobs) == 3


def test_what_is_damaged_does_not_come_back_and_hides_nothing(
    collector: Collector, archive: Any, frames: Any, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A job of which nothing can be read begins anew; the log says which, and what to do."""
    for jid in ("a" * 32, "b" * 32):
        collector.push(frames.frame(job=frames.job(jid, state="FINISHED", end_ms=clock.now_ms())))
    lapse(collector)
    with archive._engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE streamgauge_run SET body = x'00' WHERE jid = '{'a' * 32}'")
    anew = Collector(clock, archive)
    assert anew.archiving.restore() == 1
    anew.push(frames.frame(attempt=attempt(2), job=frames.job("a" * 32)))
    lapse(anew)
    assert anew.store.snapshot().job("a" * 32).restarts == 0
    assert anew.archiving.figures().unread == 2
    assert f"Job {'a' * 32}" in caplog.text
    assert "restore the database from a backup" in caplog.text


def test_the_last_sweep_does_not_heed_the_back_off(collector: Collector, archive: Any, frames: Any) -> None:
    """A service that is stopped writes what it can; what it cannot it says."""
    archive.away = True
    collector.push(frames.frame(job=frames.job(state="FINISHED", end_ms=NOW_MS)))
    for _ in range(8):
        lapse(collector)
    archive.away = False
    collector.archiving.finish()
    assert len(archive.entries) == 1
