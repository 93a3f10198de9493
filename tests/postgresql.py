"""A real PostgreSQL for tests: Debian's package, a cluster of its own in a temporary folder, on a free local port."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg

from tests.programs import missing

PASSWORD = "p@ss/word:%41"
"""Of signs that a URL has to escape."""
_START_LIMIT_S = 60
_VERSIONS = Path("/usr/lib/postgresql")


class PostgreSQL:
    """
    A running server.

    Args:
        port: On 127.0.0.1.
        process: Of the server; a test may stop and start it.
    """

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self._folder = folder
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def url(self, database: str = "postgres", scheme: str = "postgresql") -> str:
        return f"{scheme}://tester:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def new(self) -> str:
        """Make an empty database, and return its URL."""
        name = f"t{secrets.token_hex(8)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        return self.url(name)

    def initialise(self) -> None:
        """Make the cluster."""
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if self._user is not None:
            shutil.chown(password, self._user)
        self._run("initdb", "--no-sync", "-U", "tester", "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        data = self._folder / "data"
        words = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self.port), "-h", "127.0.0.1"]
        words += ["-k", str(self._folder), "-c", "fsync=off", "-c", "max_connections=50"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, user=self._user, cwd=self._folder)
        until = time.monotonic() + _START_LIMIT_S
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until, (self._folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Stop it at once, as an administrator would; connections break."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), "-D", str(self._folder / "data"), *words],
            capture_output=True,
            text=True,
            user=self._user,
            cwd=self._folder,
        )
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def running() -> Iterator[PostgreSQL]:
    """Start a server, and end it; without one, skip, or fail in CI."""
    found = sorted(_VERSIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        missing("PostgreSQL is not installed: apt-get install postgresql")
    programs = found[-1].parent if found else Path(on_path or "").parent
    # It refuses to run as root. Debian's package makes this user.
    user = "postgres" if os.name == "posix" and os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="streamgauge-postgresql-") as name:
        folder = Path(name)
        if user is not None:
            shutil.chown(folder, user)
        server = PostgreSQL(folder, programs, user)
        server.initialise()
        try:
            server.start()
            yield server
        finally:
            server.stop()
