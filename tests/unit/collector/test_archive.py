"""The archive's database: written, read, listed, thinned out; of SQLite and of PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from collector import archive as module
from collector.archive import RUNS, Archive, Entries, KeepArchived, open_archive
from collector.database import VERSION_TABLE, address
from collector.run import Run
from collector.segment import FORMAT, Entry, pack, run_id, unpack
from collector.store import MetricStore
from streamgauge import wire
from streamgauge.clock import ManualClock
from streamgauge.errors import ArchiveAway, ArchiveError, CorruptSegment, SettingError
from tests.postgresql import PASSWORD, PostgreSQL

NOW_MS = 1_000_000
Opener = Callable[..., Archive]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a.db"
    found: str = request.getfixturevalue("postgresql").new()
    return found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def new(url: str, clock: ManualClock) -> Iterator[Opener]:
    """Opens the same archive again and again."""
    opened = []

    def one(**keep: int) -> Archive:
        opened.append(open_archive(url, clock, KeepArchived(**keep)))
        return opened[-1]

    yield one
    for each in opened:
        each.close()


@pytest.fixture
def run(collector: Any, frames: Any) -> Callable[..., Run]:
    """Makes a run of a job that has ended."""

    def one(jid: str = frames.JID, start_ms: int = 1, state: str = "FINISHED", **changes: Any) -> Run:
        job = frames.job(jid, state=state, end_ms=9, **changes)
        collector.store.swap(MetricStore().snapshot())
        collector.push(frames.frame(attempt=wire.Attempt(start_ms, f"run-{start_ms}"), job=job))
        return Run(collector.job(jid))

    return one


def test_a_run_is_found_by_its_id_and_a_job_by_its_latest(new: Opener, run: Any, frames: Any) -> None:
    """Whichever was written last, in this process or another."""
    archive, other = new(), new()
    for start_ms in (2, 3, 1):
        archive.write(run(start_ms=start_ms))
    for reader in (archive, other):
        found = reader.read(frames.JID)
        assert found is not None
        assert found.state.attempt.start_ms == 3
        older = reader.read(run_id(run(start_ms=1).state))
        assert older is not None
        assert older.state.attempt.start_ms == 1
        assert reader.read("f" * 32) is None
    assert not len(other.entries)
    other.refresh()
    assert [entry.attempt.start_ms for entry in other.entries.runs[frames.JID]] == [3, 2, 1]
    assert [entry.attempt.start_ms for entry in other.entries.jobs] == [3]


def test_a_run_that_is_written_again_is_read_anew(new: Opener, run: Any, frames: Any, clock: ManualClock) -> None:
    """By another process too, as soon as it was looked for."""
    archive, other = new(), new()
    archive.write(run(state="FAILED"))
    for each in (archive, other):
        each.refresh()
        assert each.read(frames.JID) is each.read(frames.JID)
    clock.advance(1)
    archive.write(run())
    other.refresh()
    for each in (archive, other):
        found = each.read(frames.JID)
        assert found is not None
        assert (found.state.state, len(each.entries)) == ("FINISHED", 1)


def test_what_was_read_stays_open_within_bounds(
    new: Opener, run: Any, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """The least lately read is closed first."""
    archive = new()
    ids = [f"{number:032x}" for number in range(3)]
    for jid in ids:
        archive.write(run(jid))
    first = archive.read(ids[0])
    monkeypatch.setattr(module, "OPENED_MAX_BYTES", 2 * archive._opened_bytes)
    archive.read(ids[1])
    assert archive.read(ids[0]) is first
    archive.read(ids[2])
    assert archive.read(ids[0]) is first
    assert {key[0] for key in archive._opened} == {ids[0], ids[2]}
    assert archive._opened_bytes <= module.OPENED_MAX_BYTES


@pytest.mark.parametrize("name", ['"\\\n\t\x00', "\\0", "\\\\0\x01", "'; DROP TABLE streamgauge_run; --", "\U0001f4a5"])
def test_a_name_comes_back_to_the_letter(name: str, new: Opener, run: Any, frames: Any) -> None:
    """Also from a list."""
    new().write(run(name=name))
    [entry] = new().entries
    assert entry.name == name


def test_numbers_that_no_column_holds_are_cut(new: Opener, run: Any, frames: Any) -> None:
    """A driver's clock is anyone's."""
    given = run()
    job = msgspec.structs.replace(given.state.job, end_ms=2**64 - 1)
    new().write(replace(given, state=replace(given.state, job=job)))
    [entry] = new().entries
    assert entry.end_ms == 2**63 - 1


def test_retention_is_by_age_and_by_number(new: Opener, run: Any, clock: ManualClock) -> None:
    """Of when a run was written: a replayed log of last year is not gone within a minute."""
    archive = new(days=2, runs=3)
    for number in range(6):
        archive.write(run(f"{number:032x}", start_ms=number))
        clock.advance(24 * 3_600_000)
    assert archive.retain() == 4
    assert [entry.attempt.start_ms for entry in archive.entries.jobs] == [5, 4]
    for number in range(6, 12):
        archive.write(run(f"{number:032x}", start_ms=number))
    assert (archive.retain(), len(archive.entries), archive.retain()) == (5, 3, 0)


def test_batch_executions_do_not_push_queries_out(new: Opener, run: Any, frames: Any, clock: ManualClock) -> None:
    """A driver's thousand small SQL executions leave the query there that died before them."""
    archive = new(runs=2)
    told = run("a" * 32)
    archive.write(told)
    for number in range(5):
        clock.advance(1_000)
        one = run(f"{number:032x}", start_ms=number)
        batch = msgspec.structs.replace(one.state.job, type="BATCH")
        archive.write(replace(one, state=replace(one.state, job=batch)))
    assert archive.retain() == 3
    assert {entry.jid: entry.type for entry in archive.entries.jobs} == {
        "a" * 32: "STREAMING",
        f"{3:032x}": "BATCH",
        f"{4:032x}": "BATCH",
    }


def test_sqlite_gives_space_back(tmp_path: Path, clock: ManualClock, run: Any, frames: Any) -> None:
    """A file that once was large does not stay so."""
    path = tmp_path / "a.db"
    with closing(open_archive(str(path), clock, KeepArchived(runs=1))) as archive:
        segment = pack(run(), NOW_MS)
        for number in range(20):
            entry = replace(segment.entry, jid=f"{number:032x}", run=f"{number:032x}")
            archive.put(replace(segment, entry=entry, body=os.urandom(100_000)))
        archive.refresh()
        before = archive.size_bytes
        archive.retain()
        assert before > 2_000_000 > 300_000 > archive.size_bytes
    assert path.stat().st_size < 300_000


def test_tables_are_what_is_asked_of_them(new: Opener) -> None:
    """The migrations and the code tell of the same columns, types and keys."""
    found = sa.MetaData()
    engine = new()._engine
    found.reflect(engine)
    table = found.tables["streamgauge_run"]
    assert [column.name for column in table.columns] == [column.name for column in RUNS.columns]
    assert [column.name for column in table.primary_key] == ["jid", "run"]
    dialect = engine.dialect
    for column in RUNS.columns:
        there = table.columns[column.name]
        assert not there.nullable
        assert there.type.compile(dialect) == column.type.compile(dialect), column.name


def test_a_database_of_a_newer_release_is_refused(new: Opener, url: str) -> None:
    """It is not touched, and the message says what to do."""
    with new()._engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '99'")
    with pytest.raises(
        SettingError, match="tables of version 99, which a newer release of Streamgauge made"
    ) as refused:
        new()
    assert "install that release, or name another database" in str(refused.value)
    assert PASSWORD not in str(refused.value)


OPEN = """
import sys
from collector.archive import open_archive
print("ready", flush=True)
sys.stdin.readline()
open_archive(sys.argv[1]).close()
"""


def test_services_that_start_at_once_make_the_tables_once(url: str) -> None:
    """All of them open it: processes, for within one it is taken in turn anyway."""
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for each in starting:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in starting:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    told = [each.communicate(timeout=60)[1] for each in starting]
    assert [each.returncode for each in starting] == [0] * 4, told


def test_two_services_write_side_by_side(new: Opener, run: Any) -> None:
    """Each waits for the other."""
    segment = pack(run(), NOW_MS)
    archives = [new(), new()]
    failed: list[Exception] = []

    def write(archive: Archive, which: int) -> None:
        for number in range(30):
            entry = replace(segment.entry, jid=f"{which}{number:031x}", run=f"{which}{number:031x}")
            try:
                archive.put(replace(segment, entry=entry))
            except ArchiveError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(each, which)) for which, each in enumerate(archives)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    archives[0].refresh()
    assert (failed, len(archives[0].entries)) == ([], 60)


def test_a_damaged_body_is_named_and_hides_no_other(new: Opener, run: Any) -> None:
    """Cut, of another make, or no body at all."""
    archive = new()
    for jid in ("a" * 32, "b" * 32):
        archive.write(run(jid))
    with archive._engine.begin() as connection:
        connection.execute(RUNS.update().where(RUNS.c.jid == "a" * 32).values(body=b"nothing"))
    anew = new()
    with pytest.raises(CorruptSegment, match=f"^Job {'a' * 32}, run [0-9a-f]{{32}}, cannot be read .*from a backup$"):
        anew.read("a" * 32)
    assert anew.read("b" * 32) is not None
    assert len(anew.entries) == 2


def test_a_body_of_a_newer_release_is_told_so(new: Opener, run: Any) -> None:
    """Not as damaged."""
    archive = new()
    archive.write(run("a" * 32))
    with archive._engine.begin() as connection:
        connection.execute(RUNS.update().values(format=FORMAT + 1))
    with pytest.raises(CorruptSegment, match="written by a newer release of Streamgauge: read it with that one"):
        new().read("a" * 32)


@settings(max_examples=200)
@given(data=st.data())
def test_no_damage_is_anything_but_corrupt(frames: Any, data: st.DataObject) -> None:
    """A bit that fell over anywhere, or an end that is missing: an error with a name, or the very same run."""
    segment = _SEGMENTS.setdefault("one", pack(_plain_run(frames), NOW_MS))
    place = data.draw(st.integers(0, len(segment.body) - 1))
    flipped = bytearray(segment.body)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    whole, _ = unpack(segment.entry, segment.body)
    for body in (bytes(flipped), segment.body[:place]):
        try:
            found, _ = unpack(segment.entry, body)
        except CorruptSegment:
            continue
        assert repr(found) == repr(whole)


_SEGMENTS: dict[str, Any] = {}


def _plain_run(frames: Any) -> Run:
    from tests.lives import Collector

    collector = Collector(ManualClock(NOW_MS))
    collector.push(frames.frame(vertices=(frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),)))
    return Run(collector.store.snapshot().jobs[frames.JID])


def test_a_database_that_goes_and_comes_back(postgresql: PostgreSQL, run: Any, clock: ManualClock, frames: Any) -> None:
    """Readers do not wait for it again and again; the message has no password; afterwards all is as before."""
    with closing(open_archive(postgresql.new(), clock)) as archive:
        archive.write(run())
        postgresql.stop()
        try:
            for _ in range(2):
                with pytest.raises(ArchiveAway, match=r"does not answer: .*; it is tried again by itself") as away:
                    archive.read("f" * 32)
                assert "postgresql+psycopg://tester:***@127.0.0.1" in str(away.value)
            with pytest.raises(ArchiveAway):
                archive.write(run())
            assert len(archive.entries) == 1
        finally:
            postgresql.start()
        with pytest.raises(ArchiveAway):
            archive.read("f" * 32)
        clock.advance(5_000)
        assert archive.read(frames.JID) is not None
        archive.write(run(start_ms=2))
        archive.refresh()
        assert len(archive.entries) == 2


def test_a_full_disk_is_away_and_not_the_end(tmp_path: Path, run: Any, clock: ManualClock) -> None:
    """SQLite says that it is full; nothing of the write is there, and it works as soon as there is room."""
    with closing(open_archive(str(tmp_path / "a.db"), clock)) as archive:
        with archive._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        full = sa.event.listen(
            archive._engine, "begin", lambda one: one.exec_driver_sql(f"PRAGMA max_page_count = {_pages[0]}")
        )
        assert full is None
        _pages[0] = pages
        segment = replace(pack(run(), NOW_MS), body=os.urandom(100_000))
        with pytest.raises(ArchiveAway, match="full"):
            archive.put(segment)
        archive.refresh()
        assert not len(archive.entries)
        _pages[0] = 1_000_000
        archive.put(segment)
        assert len(archive.entries) == 1


_pages = [0]


def test_the_file_and_its_folders_are_the_users_alone(tmp_path: Path) -> None:
    """Names, failures and settings of jobs are nobody else's to read; whatever the umask."""
    path = tmp_path / "new" / "and deeper" / "a%20b.db"
    before = os.umask(0)
    try:
        open_archive(str(path)).close()
        held = sqlite3.connect(path)
        held.execute("SELECT count(*) FROM streamgauge_run")
    finally:
        os.umask(before)
    with closing(held):
        for each in (path, *path.parent.glob("a%20b.db*")):
            assert stat.S_IMODE(each.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """One line with the remedy."""
    path = tmp_path / "notes.txt"
    path.write_text("Do not lose this. " * 500)
    before = path.read_bytes()
    with pytest.raises(SettingError, match="file is not a database; give it a file of its own") as refused:
        open_archive(str(path))
    assert "--archive none" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["file/a.db", "folder"])
def test_a_path_that_no_file_can_have_is_told(place: str, tmp_path: Path) -> None:
    """Below a file; a folder."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SettingError, match=r"cannot be used: .*; give it a file of its own that this user may write"):
        open_archive(str(tmp_path / place))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mysql://u:secret@h/d", "mysql is not supported"),
        ("sqlite://", "expected the path of a file"),
        ("sqlite:///:memory:", "expected the path of a file"),
        ("postgresql://u:secret@h:port/d", "this is no database URL"),
        ("://", "this is no database URL"),
    ],
)
def test_what_is_no_archive_is_refused_without_its_password(given: str, says: str) -> None:
    """Before anything is opened."""
    with pytest.raises(SettingError, match=says) as refused:
        address(given)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_word_for_postgresql_is_psycopg_3(scheme: str, postgresql: PostgreSQL) -> None:
    """Heroku's, SQLAlchemy's, libpq's."""
    open_archive(postgresql.url(scheme=scheme)).close()


def test_a_postgresql_that_is_not_there_is_told_at_once(postgresql: PostgreSQL) -> None:
    """So is one without the database, or with another password."""
    base = postgresql.url()
    for url in (base.replace(f":{postgresql.port}/", ":1/"), postgresql.url("nosuch"), base.replace("tester:", "x:")):
        with pytest.raises(SettingError, match=r"cannot be used: .*; see that it runs") as refused:
            open_archive(url)
        assert "p%40ss" not in str(refused.value)
        assert PASSWORD not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_without_psycopg_the_remedy_is_told() -> None:
    """As in an install without the extra."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from collector.archive import open_archive\n"
        "from streamgauge.errors import SettingError\n"
        "try: open_archive('postgresql://u:secret@h/d')\n"
        "except SettingError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert "PostgreSQL needs psycopg" in done.stdout, done.stderr
    assert "pip install 'streamgauge[postgresql]'" in done.stdout
    assert "secret" not in done.stdout


@pytest.mark.parametrize("setting", ["days", "runs"])
def test_nothing_is_kept_of_less_than_one(setting: str) -> None:
    """The message names it."""
    with pytest.raises(ValueError, match=f"{setting} is 0, but must be at least 1"):
        KeepArchived(**{setting: 0})


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 5)),
        unique_by=lambda told: told[:2],
    )
)
def test_entries_are_in_order(told: list[tuple[str, int, int]]) -> None:
    """Runs newest first; of each job the latest, the job that started last before the others."""
    entries = Entries.of(
        Entry(
            jid, f"{jid}{start}", "n", "BATCH", "FINISHED", "app", wire.Attempt(start, "r"), first, 1, 1, 1, 0, {}, 1, 1
        )
        for jid, start, first in told
    )
    assert len(entries) == len(told)
    for jid, runs in entries.runs.items():
        assert [each.attempt.start_ms for each in runs] == sorted(
            (start for one, start, _ in told if one == jid), reverse=True
        )
        assert entries.find(jid) is runs[0]
    assert {each.jid for each in entries.jobs} == set(entries.runs)
    starts = [each.first_start_ms for each in entries.jobs]
    assert starts == sorted(starts, reverse=True)
    assert all(entries.find(each.run) is each for each in entries)
    assert entries.find("x") is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("8c0e7a34-1b1d-4f0e-9d3c-0123456789ab", "8c0e7a341b1d4f0e9d3c0123456789ab"),
        ("8C0E7A34-1B1D-4F0E-9D3C-0123456789AB", "8c0e7a341b1d4f0e9d3c0123456789ab"),
    ],
)
def test_a_querys_run_is_sparks(told: str, expected: str, run: Any) -> None:
    """Without its dashes; what has no such id gets one that is its alone."""
    state = run().state
    assert run_id(replace(state, attempt=wire.Attempt(1, told))) == expected
    odd = {run_id(replace(state, attempt=attempt)) for attempt in (wire.Attempt(1, "5"), wire.Attempt(2, "5"))}
    assert len(odd) == 2
    assert all(len(each) == 32 for each in odd)
