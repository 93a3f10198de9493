"""Flink's manners over the wire: what a client library, or a test client, would put right before it is sent."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from service.errors import HANDLER
from streamgauge import wire

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
SERVED_S = 280
JOB = "/jobs/9e283f61da6ac64998d5e31ca6520bee"
VERTEX = f"{JOB}/vertices/23ab3a59b17e9c45f95cff4c728611fc"
PARAMETERS = f"{HANDLER}Bad request, could not parse parameters: "
Ask = Callable[..., "Answer"]


class Answer:
    """An answer as it came: the status, headers by lower-case name, and the body."""

    def __init__(self, came: bytes) -> None:
        head, _, self.body = came.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}

    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json; charset=UTF-8"
        return json.loads(self.body)


@pytest.fixture(scope="module")
def port(recorded_push: bytes) -> Iterator[int]:
    """Where the real server listens, in a process of its own, with the recorded jobs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STREAMGAUGE_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamgauge", "serve", "--port", "0"],
        cwd=ROOT,
        env={**inherited, "PYTHONUNBUFFERED": "1", "STREAMGAUGE_ARCHIVE": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    watchdog = threading.Timer(SERVED_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        announced = re.fullmatch(r"Streamgauge listens on http://127.0.0.1:(\d+)\n", process.stdout.readline())
        assert announced
        url = f"http://127.0.0.1:{announced.group(1)}{wire.PUSH_PATH}"
        with urllib3.PoolManager() as http:
            pushed = http.request("POST", url, body=recorded_push, headers={"Content-Type": wire.CONTENT_TYPE})
        assert pushed.status == 202
        yield int(announced.group(1))
    finally:
        process.kill()
        process.communicate()
        watchdog.cancel()


@pytest.fixture
def ask(port: int) -> Ask:
    """Send one request as it is written, and read until the server closes."""

    def send(line: str | bytes, headers: str = "", body: bytes = b"") -> Answer:
        first = line.encode() if isinstance(line, str) else line
        rest = f" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode()
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
            connection.sendall(first + rest + body)
            return Answer(b"".join(iter(lambda: connection.recv(65536), b"")))

    return send


SAME = [
    ("/v1/jobs", "/jobs"),
    ("/jobs/", "/jobs"),
    ("//jobs", "/jobs"),
    ("/v1//jobs///", "/jobs"),
    ("http://localhost/jobs", "/jobs"),
    ("/jobs?nope=1&nope", "/jobs"),
    ("/jobs#nope", "/jobs"),
    ("/jobs?get=%00", "/jobs"),
    (f"/jobs?{'x' * 60_000}", "/jobs"),
    ("/%6aobs", "/jobs"),
    # Netty decodes before Flink's router parts a path.
    (f"/jobs%2F{JOB.removeprefix('/jobs/')}%2fplan", f"{JOB}/plan"),
    (f"{JOB.upper().replace('JOBS', 'jobs')}/plan", f"{JOB}/plan"),
    ("/taskmanagers/127.0.0.1%3A33081-ee3b94", "/taskmanagers/127.0.0.1:33081-ee3b94"),
    (f"{VERTEX}/metrics?get=0.numRecordsIn%2C1.numRecordsIn", f"{VERTEX}/metrics?get=0.numRecordsIn,1.numRecordsIn"),
    (f"{VERTEX}/metrics?get=0.numRecordsIn&get=1.numRecordsIn", f"{VERTEX}/metrics?get=0.numRecordsIn,1.numRecordsIn"),
    (f"{VERTEX}/metrics?get=0.numRecordsIn;x=1", f"{VERTEX}/metrics?get=0.numRecordsIn"),
    (f"{VERTEX}/metrics?get=", f"{VERTEX}/metrics?get=nope"),
    (f"{VERTEX}/metrics?get=%zz,0.numRecordsIn,%", f"{VERTEX}/metrics?get=0.numRecordsIn"),
    (f"{VERTEX}/metrics?get=%FF,0.numRecordsIn", f"{VERTEX}/metrics?get=0.numRecordsIn"),
    (
        f"{VERTEX}/subtasks/metrics?get=numRecordsIn&agg=mAx,MIN",
        f"{VERTEX}/subtasks/metrics?get=numRecordsIn&agg=min,max",
    ),
    (f"{VERTEX}/subtasks/metrics?get=numRecordsIn&subtasks=0-3,7", f"{VERTEX}/subtasks/metrics?get=numRecordsIn"),
    (f"{VERTEX}/subtasks/metrics?get=numRecordsIn&subtasks=-1", f"{VERTEX}/subtasks/metrics?get=nope"),
    (f"{VERTEX}/subtasks/metrics?get=numRecordsIn&subtasks=99999999999999", f"{VERTEX}/subtasks/metrics?get=nope"),
    (f"{VERTEX}/subtasks/+1/metrics?get=numRecordsIn", f"{VERTEX}/subtasks/001/metrics?get=numRecordsIn"),
]


@pytest.mark.parametrize(("target", "plain"), SAME, ids=[target[:90] for target, _ in SAME])
def test_odd_target_is_read_as_the_plain_one(ask: Ask, target: str, plain: str) -> None:
    """Slashes, case, escapes, repeats and what nobody asked for make no difference."""
    odd, usual = ask(f"GET {target}"), ask(f"GET {plain}")
    assert (odd.status, odd.json()) == (200, usual.json())
    assert odd.headers["access-control-allow-origin"] == "*"


BODIES = [
    ("Content-Length: 2\r\n", b"{}"),
    ("Content-Length: 2\r\nContent-Type: text/plain\r\n", b"{}"),
    ("Content-Length: 2\r\nContent-Type: application/json; charset=UTF-8\r\n", b"{}"),
    ("Content-Length: 3\r\nContent-Encoding: gzip\r\n", b"\xff\x00{"),
    ("Transfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
    ("Expect: 100-continue\r\nContent-Length: 2\r\n", b"{}"),
    ("Content-Length: 10000\r\n", b"x" * 10_000),
]


@pytest.mark.parametrize(("headers", "body"), BODIES)
def test_body_of_a_get_is_passed_over(ask: Ask, headers: str, body: bytes) -> None:
    """`flink list` sends {} with its GET, and closes; whatever the body is."""
    got = ask("GET /v1/jobs/overview", headers, body)
    assert (got.status, len(got.json()["jobs"])) == (200, 6)


def test_connection_is_kept_after_a_get_with_a_body(port: int) -> None:
    """The body is no second request."""
    asked = b"GET /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n%s\r\n{}"
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
        connection.sendall(asked % b"" + asked % b"Connection: close\r\n")
        came = b"".join(iter(lambda: connection.recv(65536), b""))
    assert came.count(b"HTTP/1.1 200 OK") == came.count(b"HTTP/1.1") == 2


INT = f"{PARAMETERS}Cannot resolve path parameter (subtaskindex) from value"
REFUSED = [
    ("GET /v2/overview", 404, "Unable to load requested file /v2/overview."),
    ("GET /v1/v1/overview", 404, "Unable to load requested file /v1/v1/overview."),
    ("GET /v1", 404, "Unable to load requested file /v1."),
    ("GET //", 404, "Unable to load requested file //."),
    ("GET /./overview", 404, "Unable to load requested file /./overview."),
    ("GET /a/../overview", 404, "Unable to load requested file /a/../overview."),
    ("GET /overview;x=1", 404, "Unable to load requested file /overview;x=1."),
    ("GET /%00", 404, "Unable to load requested file /\x00."),
    # Of an escape that is none Flink makes a 500.
    ("GET /%ff%", 404, "Unable to load requested file /\ufffd%."),
    ("GET /jobs/%zz", 400, f'{PARAMETERS}Cannot resolve path parameter (jobid) from value "%zz".'),
    (
        f"GET /jobs/{'a' * 60_000}",
        400,
        f'{PARAMETERS}Cannot resolve path parameter (jobid) from value "{"a" * 60_000}".',
    ),
    (f"GET {VERTEX}/subtasks/-1", 400, f'{INT} "-1".'),
    (f"GET {VERTEX}/subtasks/-1/metrics", 400, f'{INT} "-1".'),
    (f"GET {VERTEX}/subtasks/2147483648", 400, f'{INT} "2147483648".'),
    (f"GET {VERTEX}/subtasks/{'9' * 5_000}", 400, f'{INT} "{"9" * 5_000}".'),
    (f"GET {VERTEX}/subtasks/1_0", 400, f'{INT} "1_0".'),
    (
        f"GET {VERTEX}/subtasks/0/attempts/-2147483649",
        400,
        f'{PARAMETERS}Cannot resolve path parameter (attempt) from value "-2147483649".',
    ),
    (
        f"GET {JOB}/savepoints/xyz",
        400,
        f'{PARAMETERS}Cannot resolve path parameter (triggerid) from value "xyz".',
    ),
    (
        f"GET {JOB}/rescales/details/xyz",
        400,
        f'{PARAMETERS}Cannot resolve path parameter (rescaleuuid) from value "xyz".',
    ),
    (
        "GET /applications/xyz",
        400,
        f'{PARAMETERS}Cannot resolve path parameter (applicationid) from value "xyz".',
    ),
    ("OPTIONS /overview", 404, "Not found: /overview"),
    ("OPTIONS *", 404, "Not found: *"),
    ("PATCH /v1//overview/", 404, "Not found: /v1//overview/"),
    ("PROPFIND /overview", 404, "Not found: /overview"),
    ("TRACE /nope", 404, "Not found: /nope"),
]


@pytest.mark.parametrize(("line", "status", "message"), REFUSED, ids=[line[:90] for line, _, _ in REFUSED])
def test_refusal_is_flinks(ask: Ask, line: str, status: int, message: str) -> None:
    """Status, words and shape, with CORS where it is a GET."""
    got = ask(line)
    assert (got.status, got.json()) == (status, {"errors": [message]})
    assert got.headers.get("access-control-allow-origin") == ("*" if line.startswith("GET ") else None)


def test_head_is_refused_without_a_body(ask: Ask) -> None:
    """As any method but GET, and as HTTP has it."""
    got = ask("HEAD /overview")
    assert (got.status, got.body) == (404, b"")


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        (f"{VERTEX}/metrics", [{"id": "0.numRecordsIn", "value": "126568"}]),
        (f"{VERTEX}/subtasks/0/metrics", []),
        (f"{VERTEX}/subtasks/metrics", []),
        (f"{JOB}/metrics", []),
        ("/jobs/metrics", []),
        ("/jobmanager/metrics", []),
        ("/taskmanagers/metrics", []),
    ],
)
def test_ten_thousand_names_are_looked_up(ask: Ask, resource: str, told: list[Any]) -> None:
    """Those that are there are told; of aggregates one that is not empties the answer."""
    names = ",".join(f"{number:x}" for number in range(10_000))
    got = ask(f"GET {resource}?get=0.numRecordsIn,{names}")
    assert (got.status, got.json()) == (200, told)


NO_HTTP = [
    # A verb that nobody has registered; Flink answers 404 'Not found: /overview'.
    b"FOO /overview",
    b"get /overview",
    # Bytes that may not stand in a target, an empty target, one longer than is read: Flink answers 404 '/bad-request'.
    b"GET /over\xffview",
    b"GET /overview?get=\xff",
    b"GET /\x00",
    b"GET /a b",
    b"GET overview",
    b"GET",
    b"GET /overview?" + b"x" * 90_000,
    b"\x16\x03\x01\x02\x00",
]


@pytest.mark.parametrize("line", NO_HTTP, ids=[repr(line[:30]) for line in NO_HTTP])
def test_what_is_no_http_is_refused_by_the_server(ask: Ask, line: bytes) -> None:
    """It never comes to a handler: 4xx, and the next request is answered."""
    assert ask(line).status in (400, 404, 414)
    assert ask("GET /jobs").status == 200


@pytest.mark.parametrize("headers", ["Content-Length: x\r\n", "Transfer-Encoding: chunked\r\n", "no header\r\n"])
def test_broken_framing_is_refused_by_the_server(ask: Ask, headers: str) -> None:
    """Where a body ends cannot be told; so neither can where the next request begins."""
    assert ask("GET /jobs", headers, b"zz\r\n{}\r\n0\r\n\r\n").status in (200, 400)
    assert ask("GET /jobs").status == 200
