"""Ended runs in a database: SQLite's file, or PostgreSQL; written whole, read whole, listed without being opened."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Delete,
    Dialect,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    TypeDecorator,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from collector.database import address, connect, reason, shown
from collector.run import Run
from collector.segment import Entry, Segment, pack, unpack
from streamgauge import wire
from streamgauge.clock import Clock, SystemClock
from streamgauge.errors import ArchiveAway, ArchiveError, SettingError

AWAY_S = 5
"""How long nothing is asked of a database that did not answer, but by what writes to it."""
OPENED_MAX_BYTES = 64 * 1024 * 1024
"""Of runs that were read lately, and stay open."""
_PAGES_BACK = 50_000
"""Given back to the system at a time, so that other processes do not wait for long."""
_DAY_MS = 24 * 60 * 60 * 1000


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SIGNS = {"0": "\x00"}


class _Words(TypeDecorator[str]):
    """A text of anyone's: PostgreSQL takes every sign but NUL, which therefore stands as a backslash and a 0."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\\", "\\\\").replace("\x00", "\\0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _ESCAPED.sub(lambda found: _SIGNS.get(found[1], found[1]), value)


RUNS = Table(
    "streamgauge_run",
    MetaData(),
    Column("jid", String(32), primary_key=True),
    Column("run", String(32), primary_key=True),
    Column("name", _Words, nullable=False),
    Column("type", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("application", _Words, nullable=False),
    Column("attempt", _Words, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("first_start_ms", BigInteger, nullable=False),
    Column("end_ms", BigInteger, nullable=False),
    Column("modified_ms", BigInteger, nullable=False),
    Column("archived_ms", BigInteger, nullable=False),
    Column("restarts", BigInteger, nullable=False),
    Column("tasks", Text, nullable=False),
    Column("format", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""As `collector.migrations` makes it; a test compares the two."""

_LISTED = [column for column in RUNS.columns if column.name != "body"]


@dataclass(frozen=True, slots=True)
class KeepArchived:
    """
    How much the archive keeps, by when a run was written into it.

    Args:
        days: At least 1.
        runs: The latest written of queries, and as many of batch executions, so that a driver with many small SQL
            executions does not push queries out; at least 1.

    Raises:
        ValueError: one of them is less.
    """

    days: int = 7
    runs: int = 1_000

    def __post_init__(self) -> None:
        for name in ("days", "runs"):
            value: int = getattr(self, name)
            if value < 1:
                raise ValueError(f"{name} is {value}, but must be at least 1")


@dataclass(frozen=True, eq=False)
class Entries:
    """
    What an archive holds, at one moment; immutable.

    Args:
        jobs: The latest run of each job, the job first whose first run started last.
        runs: Job's id → its runs, newest first.
        by_run: Run's id → run.
    """

    jobs: tuple[Entry, ...] = ()
    runs: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    by_run: Mapping[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Entries:
        """Return them in order."""
        runs: dict[str, list[Entry]] = {}
        for entry in sorted(entries, key=lambda entry: entry.attempt, reverse=True):
            runs.setdefault(entry.jid, []).append(entry)
        return cls(
            tuple(sorted((each[0] for each in runs.values()), key=lambda entry: -entry.first_start_ms)),
            {jid: tuple(each) for jid, each in runs.items()},
            {entry.run: entry for each in runs.values() for entry in each},
        )

    def find(self, wanted: str) -> Entry | None:
        """Return a run by its own id, or the latest of a job by the job's."""
        found = self.by_run.get(wanted)
        if found is None and wanted in self.runs:
            found = self.runs[wanted][0]
        return found

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.by_run.values())

    def __len__(self) -> int:
        return len(self.by_run)


class Archive:
    """
    Runs in a database.

    Any thread. Every method but `entries` and `close` may wait for the database, and raises ArchiveAway where it does
    not answer; after that the readers do so at once for AWAY_S. A write is whole and lasting when it returns.

    Args:
        engine: Whose tables are of this release's version.
        url: Without a password.
        clock: Tells when a run was written.
        keep: What `retain` leaves.
    """

    def __init__(self, engine: Engine, url: str, clock: Clock, keep: KeepArchived) -> None:
        self.url = url
        self._engine = engine
        self._clock = clock
        self._keep = keep
        self._lock = threading.Lock()
        self._listed: dict[str, Entry] = {}
        self._entries: Entries | None = None
        self._stamp: tuple[Any, ...] | None = None
        self._opened: OrderedDict[tuple[str, str, int], tuple[Run, int]] = OrderedDict()
        self._opened_bytes = 0
        self._away_until_ns: int | None = None
        self._away = ""
        self.size_bytes = 0
        """Of the whole database's file or table, when it was last looked at."""

    @property
    def entries(self) -> Entries:
        """What is held, as of the latest `refresh` or write of this process; never waits."""
        found = self._entries
        if found is None:
            with self._lock:
                found = self._entries = Entries.of(self._listed.values())
        return found

    def write(self, run: Run) -> Entry:
        """
        Write a run in the place of what is held of it.

        Raises:
            ArchiveAway: see the class.
            ArchiveError: the database does not take this run; it will not take it later either.
        """
        return self.put(pack(run, self._clock.now_ms()))

    def put(self, segment: Segment) -> Entry:
        """Write what `pack` made; as `write`."""
        values = {**_values(segment.entry), "body": segment.body}
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        statement = insert(RUNS).values(values)
        changed = {name: statement.excluded[name] for name in values if name not in ("jid", "run")}
        statement = statement.on_conflict_do_update(index_elements=["jid", "run"], set_=changed)
        with self._asked(probing=True) as connection:
            connection.execute(statement)
        with self._lock:
            self._listed[segment.entry.run] = segment.entry
            # Put in order when somebody asks for it, not at each of a thousand writes.
            self._entries = None
            self._close(segment.entry)
        return segment.entry

    def read(self, wanted: str) -> Run | None:
        """
        Return a run by its own id, or the latest of a job by the job's; None where there is none.

        Args:
            wanted: 32 hex digits, lower case.

        Raises:
            ArchiveAway: see the class.
            CorruptSegment: it is damaged, or of a newer release.
        """
        entry = self.entries.find(wanted)
        if entry is not None:
            with self._lock:
                held = self._opened.get(_key(entry))
                if held is not None:
                    self._opened.move_to_end(_key(entry))
                    return held[0]
        asked = (
            select(RUNS)
            .where(or_(RUNS.c.run == wanted, RUNS.c.jid == wanted))
            .order_by((RUNS.c.run == wanted).desc(), RUNS.c.start_ms.desc(), RUNS.c.attempt.desc())
            .limit(1)
        )
        with self._asked() as connection:
            row = connection.execute(asked).mappings().first()
        if row is None:
            return None
        entry = _entry(row)
        run, size = unpack(entry, row["body"])
        with self._lock:
            self._close(entry)
            self._opened[_key(entry)] = (run, size)
            self._opened_bytes += size
            while self._opened_bytes > OPENED_MAX_BYTES and len(self._opened) > 1:
                self._opened_bytes -= self._opened.popitem(last=False)[1][1]
        return run

    def refresh(self) -> None:
        """
        Look whether another process has written, and if so read anew what is held; call it every second.

        Raises:
            ArchiveAway: see the class.
        """
        marks = select(func.count(), func.max(RUNS.c.archived_ms), func.sum(RUNS.c.archived_ms)).select_from(RUNS)
        with self._asked(probing=True) as connection:
            stamp = tuple(connection.execute(marks).one())
            if stamp == self._stamp:
                return
            rows = connection.execute(select(*_LISTED)).mappings().all()
            self.size_bytes = _size_bytes(connection)
        with self._lock:
            self._listed = {entry.run: entry for entry in map(_entry, rows)}
            self._stamp, self._entries = stamp, None

    def retain(self) -> int:
        """
        Delete what is not kept, and give its place back; call it every minute.

        Returns:
            How many runs have left.

        Raises:
            ArchiveAway: see the class.
        """
        oldest_ms = self._clock.now_ms() - self._keep.days * _DAY_MS
        with self._asked(probing=True, immediate=True) as connection:
            gone = connection.execute(delete(RUNS).where(RUNS.c.archived_ms < oldest_ms)).rowcount
            for kind in ("STREAMING", "BATCH"):
                gone += connection.execute(self._beyond(kind)).rowcount
            if connection.dialect.name == "sqlite":
                # Python takes one step of a statement without columns, and a step gives back one page.
                cursor = connection.connection.cursor()
                [(free,)] = cursor.execute("PRAGMA freelist_count").fetchall()
                for _ in range(min(free, _PAGES_BACK)):
                    cursor.execute("PRAGMA incremental_vacuum")
                cursor.close()
            self.size_bytes = _size_bytes(connection)
        if gone:
            self.refresh()
        return gone

    def _beyond(self, kind: str) -> Delete:
        """Return what deletes the runs of a kind that are too many: the first written go."""
        beyond = (
            select(RUNS.c.jid, RUNS.c.run)
            .where(RUNS.c.type == kind)
            .order_by(RUNS.c.archived_ms.desc(), RUNS.c.start_ms.desc(), RUNS.c.run)
            .offset(self._keep.runs)
            .subquery()
        )
        return delete(RUNS).where(tuple_(RUNS.c.jid, RUNS.c.run).in_(select(beyond.c.jid, beyond.c.run)))

    def close(self) -> None:
        """Let go of the database; nothing may be asked afterwards."""
        self._engine.dispose()

    def _close(self, entry: Entry) -> None:
        """Forget what was read of a run before; under the lock."""
        for key in [key for key in self._opened if key[:2] == (entry.jid, entry.run)]:
            self._opened_bytes -= self._opened.pop(key)[1]

    @contextmanager
    def _asked(self, probing: bool = False, immediate: bool = False) -> Iterator[Connection]:
        """Open a transaction; of `probing` also where the database has just been away."""
        until_ns = self._away_until_ns
        if not probing and until_ns is not None and self._clock.monotonic_ns() < until_ns:
            raise ArchiveAway(self._away)
        try:
            with self._engine.connect().execution_options(immediate=immediate) as connection, connection.begin():
                yield connection
        except (DataError, IntegrityError) as error:
            raise ArchiveError(f"The archive {self.url} does not take it: {reason(error)}") from error
        except SQLAlchemyError as error:
            self._away = f"The archive {self.url} does not answer: {reason(error)}; it is tried again by itself"
            self._away_until_ns = self._clock.monotonic_ns() + AWAY_S * 1_000_000_000
            raise ArchiveAway(self._away) from error
        self._away_until_ns = None


def open_archive(url: str, clock: Clock | None = None, keep: KeepArchived | None = None) -> Archive:
    """
    Open an archive, making or upgrading its tables.

    Args:
        url: As `collector.database.address` takes it.
        clock: The machine's where none is given.
        keep: The defaults where none is given.

    Raises:
        SettingError: it cannot be used; the message says why and what to do.
    """
    found = address(url)
    archive = Archive(connect(found), shown(found), clock or SystemClock(), keep or KeepArchived())
    try:
        archive.refresh()
    except ArchiveError as error:
        archive.close()
        raise SettingError(f"--archive: {error}") from error
    return archive


def _key(entry: Entry) -> tuple[str, str, int]:
    return entry.jid, entry.run, entry.archived_ms


def _values(entry: Entry) -> dict[str, Any]:
    return {
        "jid": entry.jid,
        "run": entry.run,
        "name": entry.name,
        "type": entry.type,
        "state": entry.state,
        "application": entry.application,
        "attempt": entry.attempt.run_id,
        "start_ms": entry.attempt.start_ms,
        "first_start_ms": entry.first_start_ms,
        "end_ms": entry.end_ms,
        "modified_ms": entry.modified_ms,
        "archived_ms": entry.archived_ms,
        "restarts": entry.restarts,
        "tasks": json.dumps(entry.tasks),
        "format": entry.format,
        "size_bytes": entry.size_bytes,
    }


def _entry(row: RowMapping) -> Entry:
    told = {name: row[name] for name in _SAME}
    return Entry(**told, attempt=wire.Attempt(row["start_ms"], row["attempt"]), tasks=json.loads(row["tasks"]))


_SAME = [each.name for each in fields(Entry) if each.name not in ("attempt", "tasks")]


def _size_bytes(connection: Connection) -> int:
    if connection.dialect.name == "postgresql":
        found = connection.execute(text("SELECT pg_total_relation_size('streamgauge_run')")).scalar_one()
    else:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        found = pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    return int(found)
