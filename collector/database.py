"""The archive's database: which one a URL means, how it is opened, and which version its tables have."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from streamgauge.errors import SettingError

VERSION_TABLE = "streamgauge_version"

_BUSY_MS = 5_000
"""How long a second process may have SQLite's file to itself."""
_CONNECT_S = 5
_STATEMENT_MS = 30_000
_POOL = {"pool_size": 4, "max_overflow": 2, "pool_timeout": _CONNECT_S, "pool_pre_ping": True, "pool_recycle": 1_800}
_MIGRATIONS = Path(__file__).with_name("migrations")
_LOCK = 0x5354_5247
"""Of PostgreSQL's advisory locks; any number that nothing else takes."""
_UPGRADING = threading.Lock()
"""Alembic has one context in a process."""
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg")


def address(given: str) -> URL:
    """
    Return what `--archive` means.

    Args:
        given: sqlite:///path, postgresql://user:password@host/database, or the path of a SQLite file.

    Raises:
        SettingError: it is none of these.
    """
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given).expanduser().absolute()))
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise SettingError(
            "--archive: this is no database URL; expected sqlite:///path, postgresql://user:password@host/database, "
            "the path of a file, or none"
        ) from None
    if url.drivername in _SQLITE:
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise SettingError(f"--archive {given}: expected the path of a file, as in sqlite:////var/lib/archive.db")
        return url.set(drivername="sqlite", database=str(Path(url.database).expanduser().absolute()))
    if url.drivername in _POSTGRESQL:
        return url.set(drivername="postgresql+psycopg")
    raise SettingError(
        f"--archive {shown(url)}: {url.drivername} is not supported; expected sqlite:///path, "
        "postgresql://user:password@host/database, the path of a file, or none"
    )


def shown(url: URL) -> str:
    """Return a URL as it may stand in a log: without its password."""
    return url.render_as_string(hide_password=True)


def connect(url: URL) -> Engine:
    """
    Open a database, bring its tables to this release's version, and return it; any thread may use it.

    Args:
        url: As `address` returns it. Of SQLite the file is made, with its folders, for this user alone.

    Raises:
        SettingError: it cannot be used; the message says why and what to do.
    """
    if url.drivername == "sqlite":
        _make_file(url)
    engine = _engine(url)
    try:
        with _UPGRADING, engine.connect().execution_options(immediate=True) as connection, connection.begin():
            _upgrade(url, connection)
    except (SQLAlchemyError, sqlite3.Error) as error:
        engine.dispose()
        raise SettingError(f"--archive {shown(url)} cannot be used: {reason(error)}; {_remedy(url)}") from error
    except BaseException:
        engine.dispose()
        raise
    return engine


def reason(error: BaseException) -> str:
    """Return what a database said, in one line and without the statement."""
    found = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(found).split())[:300] or type(found).__name__


def _remedy(url: URL) -> str:
    if url.drivername == "sqlite":
        return "give it a file of its own that this user may write, or switch the archive off with --archive none"
    return (
        "see that it runs, that the database exists and that its user may create tables in it, "
        "or switch the archive off with --archive none"
    )


def _make_file(url: URL) -> None:
    path = Path(url.database or "")
    try:
        for folder in reversed([path.parent, *path.parent.parents]):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise SettingError(
            f"--archive {shown(url)} cannot be used: {error.strerror or error}; {_remedy(url)}"
        ) from None


def _engine(url: URL) -> Engine:
    if url.drivername == "sqlite":
        engine = create_engine(url, **_POOL)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    arguments = {"connect_timeout": _CONNECT_S, "application_name": "streamgauge"}
    # A server that is gone without a word is noticed within half a minute.
    arguments |= {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    try:
        engine = create_engine(url, connect_args=arguments, **_POOL)
    except ImportError as error:
        raise SettingError(
            f"--archive {shown(url)}: PostgreSQL needs psycopg, which is not usable ({reason(error)}): "
            "pip install 'streamgauge[postgresql]'"
        ) from None
    event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # Transactions are begun below and not by Python, which would leave changes of tables outside of them.
    connection.isolation_level = None
    for name, value in (
        ("busy_timeout", _BUSY_MS),
        # Heard only before the first table: what is deleted is given back to the system.
        ("auto_vacuum", "INCREMENTAL"),
        ("journal_mode", "WAL"),
        ("synchronous", "FULL"),
        ("journal_size_limit", 64 * 1024 * 1024),
    ):
        connection.execute(f"PRAGMA {name} = {value}").close()


def _begin_sqlite(connection: Connection) -> None:
    # What reads first and then writes would be refused, not made to wait, if another process wrote in between.
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _set_up_postgresql(connection: object, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute(f"SET statement_timeout = {_STATEMENT_MS}")
    cursor.close()
    connection.commit()  # type: ignore[attr-defined]


def _upgrade(url: URL, connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # Two services may start at once: the second waits here, and finds nothing left to do.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    config = Config()
    # The file's own notation gives % a meaning.
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    there = set(context.get_current_heads())
    if there - known:
        raise SettingError(
            f"--archive {shown(url)} has tables of version {', '.join(sorted(there - known))}, which a newer release "
            "of Streamgauge made: install that release, or name another database"
        )
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SettingError(f"--archive {shown(url)} cannot be used: {error}; {_remedy(url)}") from error
