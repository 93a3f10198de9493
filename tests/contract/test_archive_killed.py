"""kill -9 at any moment loses no run that was told to be archived, and leaves a database that works."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.archive import open_archive
from tests.postgresql import PostgreSQL

ROOT = Path(__file__).parents[2]
moments = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 0.02)), min_size=1, max_size=2)
"""For each life: after how many archived runs it is killed, and how many seconds later."""
FEW = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def killed(url: str, seed: int, runs: int, later_s: float) -> list[str]:
    """Start a writer, kill it, and return what it had told by then, whole lines alone."""
    with (
        tempfile.TemporaryFile() as faults,
        subprocess.Popen(
            [sys.executable, "-m", "tests.archive_writer", url, str(seed)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=faults,
        ) as process,
    ):
        assert process.stdout is not None
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        told = []
        try:
            while len(told) < runs:
                told.append(process.stdout.readline())
                if not told[-1]:
                    faults.seek(0)
                    pytest.fail(faults.read().decode())
            threading.Event().wait(later_s)
        finally:
            process.kill()
            watchdog.cancel()
        # Not `communicate`, which passes over what `readline` has in its buffer.
        told += process.stdout.read().splitlines(keepends=True)
    return [line.decode().rstrip("\n") for line in told if line.endswith(b"\n")]


def check(url: str, lives: list[tuple[int, float]]) -> None:
    told: list[str] = []
    for seed, (runs, later_s) in enumerate(lives):
        told += killed(url, seed, runs, later_s)
        with closing(open_archive(url)) as archive:
            for line in told:
                jid, run, name = line.split(" ", 2)
                entry = archive.entries.by_run[run]
                assert (entry.jid, entry.name) == (jid, name)
            for entry in archive.entries:
                found = archive.read(entry.run)
                assert found is not None
                assert (found.state.job.jid, found.state.job.name) == (entry.jid, entry.name)
                [vertex] = found.state.vertices.values()
                [columns] = vertex.operators.values()
                assert columns["numRecordsIn"].values.tolist() == list(range(vertex.size))


@settings(FEW, max_examples=8)
@given(moments)
def test_nothing_is_lost_from_sqlite(tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, float]]) -> None:
    """The file is whole by SQLite's own word, too."""
    path = tmp_path_factory.mktemp("archive") / "archive.db"
    check(str(path), lives)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@settings(FEW, max_examples=2)
@given(moments)
def test_nothing_is_lost_from_postgresql(postgresql: PostgreSQL, lives: list[tuple[int, float]]) -> None:
    """The connection breaks in the middle of whatever it was."""
    check(postgresql.new(), lives)
