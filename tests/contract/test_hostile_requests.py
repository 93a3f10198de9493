"""Whatever comes over the wire, the service stands: an answer in the one shape, no 5xx, no trace in its log."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.flink.rest import RESOURCES
from streamgauge import codec, wire
from tests.conftest import EXECUTORS, recorded_frames, recording

ROOT = Path(__file__).parents[2]
MAIN = recording("main__job.json")
LIMIT_S = 30
NOT_HTTP = b"Invalid HTTP request received."
"""The server's own words for what is no HTTP: nothing of ours has seen it."""


@dataclass(frozen=True)
class Service:
    """The real server with the recorded jobs in it."""

    host: str
    port: int

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and return all that comes until the server hangs up; nothing if it only does that."""
        with socket.create_connection((self.host, self.port), timeout=LIMIT_S) as connection:
            try:
                connection.sendall(request)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except ConnectionError:
                # Bytes that it had not read when it hung up.
                return b""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    log = tmp_path_factory.mktemp("hostile") / "log"
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    with process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://([0-9.]+):([0-9]+)", process.stdout.readline())
            assert found, log.read_text()
            headers = {"Content-Type": wire.CONTENT_TYPE}
            pushed = httpx.post(
                found.group() + wire.PUSH_PATH, content=codec.encode(recorded_frames()), headers=headers
            )
            assert pushed.status_code == 202
            yield Service(found[1], int(found[2]))
            assert httpx.get(f"{found.group()}/overview").json()["jobs-running"] == 3
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0
            assert "Traceback" not in log.read_text()
        finally:
            process.kill()


KNOWN = {
    ":applicationid": "spark-1",
    ":jobid": MAIN["jid"],
    ":vertexid": MAIN["vertices"][1]["id"],
    ":taskmanagerid": EXECUTORS[0],
}
RAW = st.binary(min_size=1, max_size=12).map(lambda raw: re.sub(rb"[ \r\n]", b"_", raw))
ESCAPED = st.binary(max_size=8).map(lambda raw: quote(raw, safe="").encode())
NUMBERS = (b"", b"-1", b"+1", b"0x1", b"1e3", b"2147483648", b"99999999999999999999")
ESCAPES = (b"%", b"%zz", b"%2F", b"%00", b"%C3%28", b"%ED%A0%80")
WORDS = (b"..", b".", b"*", b"{x}", b":jobid", b"a,b", b"0" * 32, b"G" * 32, b"x" * 3_000)
SELDOM = st.integers(0, 9).map(lambda number: number == 9)
VALUES = st.one_of(
    st.sampled_from([*NUMBERS, *ESCAPES, *WORDS]), ESCAPED, st.sampled_from([each.encode() for each in KNOWN.values()])
)
"""What a request target may have in it; raw bytes, which it may not, are rarer: the server refuses most of them."""


@st.composite
def paths(draw: st.DrawFn) -> bytes:
    """A resource's path with parameters that may or may not be any, sometimes broken up further."""
    resource = draw(
        st.sampled_from(
            [*RESOURCES, "/metrics", "/metrics/flink", "/-/ready", "/openapi.json", wire.PUSH_PATH, "", "/nope"]
        )
    )
    segments = []
    for segment in resource.strip("/").split("/"):
        known = KNOWN.get(segment, "0").encode()
        segments.append(draw(st.just(known) | VALUES) if segment.startswith(":") else segment.encode())
    if draw(SELDOM):
        segments.insert(draw(st.integers(0, len(segments))), draw(VALUES | RAW))
    front = draw(st.sampled_from([b"/", b"/", b"//", b"/v1/", b"/v1//v1/", b"http://other/", b"/./"]))
    return front + b"/".join(segments) + draw(st.sampled_from([b"", b"/", b"//"]))


@st.composite
def queries(draw: st.DrawFn) -> bytes:
    names = st.sampled_from([b"get", b"agg", b"subtasks", b"jobs", b"taskmanagers", b"maxExceptions", b"granularity"])
    asked = [b"numRecordsIn", b"0.numRecordsIn", b"max,min", b"0-3,7", b"5-1", b"0-99999999999"]
    values = VALUES | st.sampled_from(asked)
    pairs = draw(st.lists(st.tuples(names | VALUES, st.lists(values, max_size=4)), max_size=4))
    query = b"&".join(name + b"=" + b",".join(values) for name, values in pairs)
    if draw(SELDOM):
        query += b"&get=" + b",".join(b"%d.numRecordsIn" % number for number in range(draw(st.integers(1, 3_000))))
    return b"?" + query if query else b""


METHODS = st.sampled_from(
    [*[b"GET"] * 6, b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"FOO", b"get"]
)
HEADER_NAMES = (
    b"Accept",
    b"Accept-Encoding",
    b"Authorization",
    b"Content-Encoding",
    b"Content-Type",
    b"Cookie",
    b"Expect",
    b"If-None-Match",
    b"Origin",
    b"Range",
    b"TE",
    b"Upgrade",
    b"X-Forwarded-For",
    b"X" * 500,
)
HEADER_VALUES = (
    b"",
    b"gzip",
    b"application/openmetrics-text;version=x;q=1e9",
    b"*/*;q=x",
    b"bytes=0-",
    b"Basic !!!",
    b"websocket",
    b"null",
    b"y" * 9_000,
)
HEADERS = st.lists(st.tuples(st.sampled_from(HEADER_NAMES), ESCAPED | st.sampled_from(HEADER_VALUES)), max_size=4)
BODIES = st.sampled_from([b"", b"{}", b"\x00\xff", b"a=b"]) | st.binary(max_size=64)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    body = draw(BODIES)
    headers = [(b"Host", b"localhost"), *draw(HEADERS), (b"Connection", b"close")]
    if draw(SELDOM):
        headers.append((draw(RAW), draw(RAW)))
    if body:
        headers.append((b"Content-Length", str(len(body)).encode()))
    lines = [draw(METHODS) + b" " + draw(paths()) + draw(queries()) + b" HTTP/1.1"]
    return b"\r\n".join([*lines, *(name + b": " + value for name, value in headers), b"", body])


def plain(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    return b"\r\n".join([method + b" " + target + b" HTTP/1.1", *headers, b"Connection: close", b"", b""])


HOST = b"Host: localhost"
MANY = b",".join(b"%d.numRecordsIn" % number for number in range(4_000))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@example(plain(b"/overview"))
@example(plain(b"/overview", HOST, b"Host: localhost"))
@example(plain(b"/overview", HOST, b"Content-Length: -1"))
@example(plain(b"/overview", HOST, b"Content-Length: 1", b"Content-Length: 2"))
@example(plain(b"/overview", HOST, b"Transfer-Encoding: chunked"))
@example(plain(b"/overview", HOST, b"Expect: 100-continue"))
@example(plain(b"/overview", HOST, b"Upgrade: websocket", b"Connection: Upgrade"))
@example(plain(b"*", HOST, method=b"OPTIONS"))
@example(plain(b"localhost:80", HOST, method=b"CONNECT"))
@example(plain(b"/jobs/metrics?get=" + b"x" * 60_000, HOST))
@example(plain(b"/jobs/metrics?get=" + b"x" * 70_000, HOST))
@example(plain(f"/jobs/{MAIN['jid']}/vertices/{MAIN['vertices'][1]['id']}/metrics?get=".encode() + MANY, HOST))
@example(b"GET /overview\r\n\r\n")
@example(b"GET /overview HTTP/9.9\r\n" + HOST + b"\r\n\r\n")
@example(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
@example(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
@given(requests())
def test_hostile_request_is_answered_in_shape(service: Service, sent: bytes) -> None:
    """A body that is asked for, or {"errors": [message, …]} below 500; what is no HTTP may only be hung up on."""
    answer = service.ask(sent)
    if not answer:
        return
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    status = int(lines[0].split(" ")[1])
    assert status < 500, answer[:500]
    if status < 200:
        head, _, body = body.partition(b"\r\n\r\n")
        return
    if status >= 400 and body and body != NOT_HTTP:
        assert "content-type: application/json; charset=utf-8" in lines, lines
        errors = json.loads(body)
        assert list(errors) == ["errors"]
        assert errors["errors"]
        assert all(isinstance(message, str) and message for message in errors["errors"])
    elif status == 200 and "content-type: application/json; charset=utf-8" in lines:
        json.loads(body)
