"""Whatever the collector does, the user's job runs as without hooks; once it is well, its figures are whole."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Rest, eventually, serving
from tests.e2e.faulty import Answer, Faulty, answering, dripping, hanging_up, page, silent, slow
from tests.e2e.guest import EXIT_CODE
from tests.e2e.test_exact import write
from tests.e2e.test_restart import read_in

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
FILES = 12
ROWS = 10
"""Of a file."""
HANG_S = 120
"""What a driver may take to do what it is told before it counts as hanging."""


class Guest:
    """The driver of guest.py. Its standard error goes into a file, of which `told` returns what is new."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._seen = 0
        self._lines: list[str] = []
        assert self._read() == "ready\n"
        self._seen = len(errors.read_text())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def send(self, command: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        line = self._read()
        assert line, self._errors.read_text()
        return json.loads(line)

    def do(self, command: str, **arguments: Any) -> Any:
        self.send(command, **arguments)
        return self.receive()

    def told(self) -> list[str]:
        """Lines on standard error since the last look."""
        text = self._errors.read_text()
        new, self._seen = text[self._seen :], len(text)
        return new.splitlines()

    def leave(self) -> None:
        """Let it end: its exit code is its own, and nothing more is on standard output."""
        out, _ = self._process.communicate(timeout=HANG_S)
        assert (out, self._process.returncode) == ("", EXIT_CODE), self._errors.read_text()


@contextmanager
def hosting(folder: Path) -> Iterator[Guest]:
    """A driver with FILES files in 'many' and fewer in 'few'."""
    for file in range(FILES):
        write(folder / "many", file, range(ROWS * file, ROWS * (file + 1)))
        if file < FILES // 4:
            write(folder / "few", file, range(ROWS * file, ROWS * (file + 1)))
    errors = folder / "errors"
    command = [sys.executable, "-m", "tests.e2e.guest", str(folder)]
    pipe = subprocess.PIPE
    with (
        errors.open("w") as file,
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=file, text=True) as process,
    ):
        try:
            yield Guest(process, errors)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with hosting(tmp_path_factory.mktemp("guest")) as found:
        yield found
        found.leave()


@pytest.fixture(scope="module")
def bare(guest: Guest) -> dict[str, dict[str, Any]]:
    """What queries give without hooks."""
    return {source: guest.do("run", name=f"bare_{source}", source=source) for source in ("many", "few")}


@contextmanager
def collector(port: int) -> Iterator[Rest]:
    """A real service at `port`, empty."""
    with serving("--port", str(port)) as url:
        rest = Rest(url)
        yield rest
        rest.close()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def ended(rest: Rest, name: str) -> Any:
    """The details of a job that has ended."""
    job = rest.job(name)
    return job and job["state"] in ("FINISHED", "CANCELED") and rest.get(f"/jobs/{job['jid']}")


def assert_whole(rest: Rest, name: str, expected: dict[str, Any]) -> None:
    """The rows of every subtask and the batches are those that the driver's own progress tells."""
    details = eventually(partial(ended, rest, name))
    assert read_in(rest, details) == expected["rows"]
    [source] = [vertex for vertex in details["vertices"] if vertex["name"].startswith("Source: ")]
    [reader] = [vertex for vertex in details["vertices"] if vertex is not source]
    assert reader["metrics"]["read-records"] == source["metrics"]["write-records"]
    columns = rest.columns(details["jid"], source["id"])
    assert sum(map(int, columns["numRecordsIn"].values())) == expected["rows"]
    told = rest.get(f"/jobs/{details['jid']}/metrics?get=numInputRows,numberOfCompletedCheckpoints")
    figures = {metric["id"]: int(metric["value"]) for metric in told}
    assert figures["numInputRows"] == expected["rows"]
    assert figures["numberOfCompletedCheckpoints"] >= len(expected["batches"])


def assert_one_outage(lines: list[str], url: str, words: str) -> None:
    """A line at its beginning, one with counts at its end, and not a word besides."""
    assert len(lines) == 2, lines
    begun, over = lines
    assert begun.startswith(f"streamgauge cannot push to {url} ({words}"), begun
    found = re.fullmatch(
        rf"streamgauge reaches {url} again: (\d+) push(?:es)? w(?:as|ere) not taken in \d+ s \((.+)\)", over
    )
    assert found, over
    assert sum(int(kind.split()[0]) for kind in found.group(2).split(", ")) == int(found.group(1))


FAULTS: dict[str, tuple[Answer | None, str]] = {
    "absent": (None, "[Errno 111] Connection refused)"),
    "silent": (silent, ""),
    "dripping": (dripping, ""),
    "hanging up": (hanging_up, "Remote end closed connection without response)"),
    "broken": (page("500 Internal Server Error"), "HTTP 500 500 Internal Server Error so sorry so sorry"),
    "unavailable": (page("503 Service Unavailable"), "HTTP 503 503 Service Unavailable so sorry"),
    "unauthorised": (answering("401 Unauthorized", b'{"errors":["no token"]}'), 'HTTP 401 {"errors":["no token"]})'),
    "another service": (page("404 Not Found"), "HTTP 404 404 Not Found so sorry"),
    "a web page": (page("200 OK"), "HTTP 200 200 OK so sorry"),
    "a login": (answering("302 Found", b"", "Location: /login"), "HTTP 302)"),
    "a conflict": (answering("409 Conflict"), "HTTP 409)"),
    "a quarrel": (answering("400 Bad Request", b"what?"), "HTTP 400 what?)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_two_lines_and_no_figure(guest: Guest, bare: dict[str, dict[str, Any]], fault: str) -> None:
    """Results and batches are those without hooks; a real service in its place knows all, also what ended before."""
    answer, words = FAULTS[fault]
    name = fault.replace(" ", "_")
    with ExitStack() as stack:
        server = None if answer is None else Faulty(answer)
        port = free_port() if server is None else server.port
        if server is not None:
            stack.callback(server.close)
        guest.told()
        assert guest.do("attach", url=f"http://127.0.0.1:{port}")
        assert guest.do("run", name=f"{name}_before", source="many") == bare["many"]
        if server is not None:
            eventually(lambda: server.methods)
            assert set(server.methods) == {"POST"}
            server.close()
        # Two queries and the reading of a result.
        held = guest.do("held")
        assert held["jobs"] <= 2
        assert held["channels"] <= held["jobs"] + 1
        with collector(port) as rest:
            assert guest.do("run", name=f"{name}_after", source="few") == bare["few"]
            assert_whole(rest, f"{name}_before", bare["many"])
            assert_whole(rest, f"{name}_after", bare["few"])
            guest.do("detach")
            assert_one_outage(guest.told(), f"http://127.0.0.1:{port}", words)


def test_no_batch_waits_for_a_collector_that_takes_ten_seconds(guest: Guest, bare: dict[str, dict[str, Any]]) -> None:
    """Its pushes are taken, late, so nothing is warned of; far more batches are done than pushes answered."""
    with collector(0) as rest:
        server = Faulty(slow(rest.url, 10.0))
        guest.told()
        assert guest.do("attach", url=f"http://127.0.0.1:{server.port}")
        assert guest.do("run", name="slow_collector", source="many") == bare["many"]
        assert server.answered < FILES
        assert_whole(rest, "slow_collector", bare["many"])
        guest.do("detach")
        server.close()
        assert not [line for line in guest.told() if not line.startswith("streamgauge leaves before")]


def test_a_collector_that_is_restarted_again_and_again_has_all(guest: Guest, tmp_path: Path) -> None:
    """Each time it is empty, and each time it is told everything, while batches go on."""
    port = free_port()
    folder = Path(guest._errors).parent / "growing"
    guest.told()
    write(folder, 0, range(ROWS))
    assert guest.do("attach", url=f"http://127.0.0.1:{port}")
    guest.do("start", name="restarts", source="growing", processingTime="100 milliseconds")
    for times in range(1, 4):
        write(folder, times, range(ROWS * times, ROWS * (times + 1)))
        with collector(port) as rest:

            def read(rest: Rest = rest, rows: int = ROWS * (times + 1)) -> bool:
                job = rest.job("restarts")
                return job is not None and read_in(rest, rest.get(f"/jobs/{job['jid']}")) == rows

            eventually(read)
            state = rest.job("restarts")
            assert state is not None
            assert state["state"] == "RUNNING"
    with collector(port) as rest:
        done = guest.do("finish")
        assert done["rows"] == 4 * ROWS
        assert sum(count for _, count, _ in done["results"]) == 4 * ROWS
        assert_whole(rest, "restarts", done)
        guest.do("detach")
    lines = guest.told()
    # Those that follow within a minute of the first one's end are only counted.
    assert_one_outage(lines[:2], f"http://127.0.0.1:{port}", "[Errno 111] Connection refused)")
    assert all(line.startswith(("streamgauge cannot push", "streamgauge reaches")) for line in lines)
    assert len(lines) % 2 == 0


@pytest.mark.parametrize("fault", ["absent", "silent"])
def test_the_end_of_a_driver_does_not_wait_for_a_collector(tmp_path: Path, fault: str) -> None:
    """Its exit code and output are its own, and the log says that the collector lacks the end."""
    answer, _ = FAULTS[fault]
    with ExitStack() as stack, hosting(tmp_path) as guest:
        port = free_port()
        if answer is not None:
            server = Faulty(answer)
            stack.callback(server.close)
            port = server.port
        assert guest.do("attach", url=f"http://127.0.0.1:{port}")
        guest.do("run", name="last", source="few")
        if answer is not None:
            eventually(lambda: server.methods)
        guest.leave()
        url = f"http://127.0.0.1:{port}"
        *begun, left = guest.told()
        # A push that hangs has failed only if the query took longer than its bound.
        assert len(begun) <= 1
        assert begun or fault == "silent"
        assert all(line.startswith(f"streamgauge cannot push to {url} (") for line in begun)
        assert left.startswith(f"streamgauge leaves before {url} {'is back (' if begun else 'has answered'}"), left
