"""What an ended job is told to have been by the archive is what the live service told of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.archive import Archive, open_archive
from collector.run import Run, VertexCourse
from collector.segment import run_id
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge.clock import ManualClock
from streamgauge.wire import ENDED_STATES
from tests import lives
from tests.contract.crowd import crowd
from tests.lives import OVER_JOBS, Collector, Life, ask, targets
from tests.postgresql import PostgreSQL

NOW_MS = 1_000_000
LIFE = {
    "taken": lives.steps,
    "name": lives.texts,
    "trouble": lives.texts,
    "random": st.integers(0, 2**32).map(Random),
}

# A life takes so long to be made smaller that nobody would wait for it.
WHOLE = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate))


@contextlib.contextmanager
def opened(url: str, clock: ManualClock) -> Iterator[Archive]:
    with contextlib.closing(open_archive(url, clock)) as archive:
        yield archive


def check_a_life(url: str, taken: Any, name: str, trouble: str, random: Random) -> None:
    """Live, end, ask; ask another service on the archive alone; ask one that has started anew."""
    clock = ManualClock(NOW_MS)
    with opened(url, clock) as archive:
        collector = Collector(clock, archive)
        life = Life(collector, name, trouble)
        life.live(taken)
        life.end(random)
        jobs = collector.store.snapshot().jobs
        paths = [*OVER_JOBS, *(path for state in jobs.values() for path in targets(state))]
        app = create_app(Config(), collector.store, clock, collector.history)
        told = ask(app, paths)
        runs = {state.job.jid: run_id(state) for state in jobs.values()}
    with opened(url, clock) as archive:
        anew = create_app(Config(), MetricStore(), clock, archive=archive)
        assert_equal(ask(anew, [path for path in paths if path not in OVER_JOBS]), told)
        assert_equal(ask(anew, ("/jobs", "/jobs/overview")), told)
        by_run = {
            path: path.replace(jid, run, 1)
            for jid, run in runs.items()
            for path in paths
            if path.startswith(f"/jobs/{jid}")
        }
        found = ask(anew, by_run.values())
        assert {path: found[asked] for path, asked in by_run.items() if found[asked][0] == 200} == {
            path: told[path] for path, asked in by_run.items() if found[asked][0] == 200
        }
        back = Collector(clock, archive)
        assert back.archiving is not None
        ended = [state for state in jobs.values() if state.state in ENDED_STATES]
        assert back.archiving.restore() == len(ended)
        paths = [path for state in ended for path in targets(state)]
        assert_equal(ask(create_app(Config(), back.store, clock, back.history), paths), told)


def assert_equal(found: dict[str, Any], told: dict[str, Any]) -> None:
    for path, answer in found.items():
        assert answer == told[path], path


@settings(WHOLE, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**LIFE)
def test_any_life_comes_back_from_sqlite(tmp_path_factory: pytest.TempPathFactory, **life: Any) -> None:
    """Every resource of a job, by its id and by its run's; and of a service that was started anew."""
    check_a_life(str(tmp_path_factory.mktemp("archive") / "archive.db"), **life)


@settings(WHOLE, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**LIFE)
def test_any_life_comes_back_from_postgresql(postgresql: PostgreSQL, **life: Any) -> None:
    """The same of the other database, NUL in a name included."""
    check_a_life(postgresql.new(), **life)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_crowd_comes_back(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Names that try to break an answer, doubles, NaN, 200 subtasks, every state: each run by its own id."""
    url = str(tmp_path / "a.db") if database == "sqlite" else request.getfixturevalue("postgresql").new()
    clock = ManualClock(1_795_248_821_802)
    store = crowd(clock)
    snapshot = store.snapshot()
    with opened(url, clock) as archive:
        for state in snapshot.jobs.values():
            # Told as of now, as the live ones are.
            archive.write(Run(replace(state, modified_ms=clock.now_ms()), snapshot.apps.get(state.app.id)))
        live = MetricStore()
        with store.lock:
            jobs = {jid: replace(state, modified_ms=clock.now_ms()) for jid, state in snapshot.jobs.items()}
            live.swap(replace(snapshot, jobs=jobs))
        paths = [path for state in snapshot.jobs.values() for path in targets(state)]
        asked = [*paths, "/jobs", "/jobs/overview"]
        told = ask(create_app(Config(), live, clock), asked)
        assert_equal(ask(create_app(Config(), MetricStore(), clock, archive=archive), asked), told)
        assert not any("?get" in path and status != 200 for path, (status, _) in told.items())


def test_what_is_read_back_is_the_run_itself(tmp_path: Path) -> None:
    """Structures, not only answers: arrays keep type and shape, and nobody can write into them."""
    clock = ManualClock(NOW_MS)
    with opened(str(tmp_path / "a.db"), clock) as archive:
        collector = Collector(clock)
        life = Life(collector, "name", "trouble")
        life.live([("plan", 0, Random(1)), *[("measure", 0, Random(seed)) for seed in range(20)]])
        for _ in range(3):
            clock.advance(5_000)
            collector.history.sweep()
        [state, *_] = collector.store.snapshot().jobs.values()
        history = collector.history
        courses = {
            vertex: VertexCourse(history.vertex(state.job.jid, vertex), history.heat(state.job.jid, vertex))
            for vertex in state.vertices
        }
        run = Run(state, collector.store.snapshot().apps[state.app.id], history.job(state.job.jid), courses)
        archive.write(run)
        found = archive.read(state.job.jid)
        assert found is not None
        assert repr(found) == repr(run)
        for vertex in found.state.vertices.values():
            for column in vertex.columns.values():
                assert not column.values.flags.writeable
            held = vertex.latencies
            before = state.vertices[vertex.vertex.id].latencies
            assert len({id(one) for one in held.windows.values()}) <= len({id(one) for one in before.windows.values()})
