"""The real server in a process of its own: push, read back, refuse, end."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import urllib3

from service.config import Config
from service.server import listen, url
from spark_hooks.transport import HttpTransport
from streamgauge import codec, wire
from streamgauge.errors import SettingError

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "streamgauge", "serve"]
LIMIT_S = 60


def environment(**settings: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STREAMGAUGE_")}
    return {**inherited, "PYTHONUNBUFFERED": "1", "STREAMGAUGE_ARCHIVE": "none", **settings}


@contextmanager
def serving(*options: str, **settings: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A service on a free port, its URL and process; ended if the test has not done so."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        cwd=ROOT,
        env=environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        announced = re.fullmatch(r"Streamgauge listens on (http://\S+)\n", process.stdout.readline())
        assert announced, process.communicate()
        yield announced.group(1), process
    finally:
        process.kill()
        process.communicate()
        watchdog.cancel()


def refusal(*options: str, **settings: str) -> str:
    """What a service that does not start says; one line, and exit code 1."""
    done = subprocess.run(
        [*COMMAND, *options], cwd=ROOT, env=environment(**settings), capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture
def body(recorded: list[wire.Frame]) -> bytes:
    return codec.encode(recorded)


def test_pushed_frames_read_back_over_http(body: bytes) -> None:
    """The whole way: socket, uvicorn, push, store, every kind of answer; then a clean end."""
    http = urllib3.PoolManager()
    with serving() as (base, process):
        pushed = http.request("POST", base + wire.PUSH_PATH, body=body, headers={"Content-Type": wire.CONTENT_TYPE})
        assert (pushed.status, pushed.json()) == (202, {"accepted": 8, "repeated": 0, "late": 0})
        main, vertex = "9e283f61da6ac64998d5e31ca6520bee", "23ab3a59b17e9c45f95cff4c728611fc"

        read = http.request("GET", f"{base}/v1//jobs/{main.upper()}/vertices/{vertex}/metrics?get=0.numRecordsIn,nope")
        assert read.json() == [{"id": "0.numRecordsIn", "value": "126568"}]
        assert read.headers["content-type"] == "application/json; charset=UTF-8"
        assert http.request("GET", f"{base}/overview").json()["jobs-running"] == 3
        assert "flink_taskmanager_job_task_numRecordsIn" in http.request("GET", f"{base}/metrics/flink").data.decode()
        assert "streamgauge_vertex_records_in_total" in http.request("GET", f"{base}/metrics").data.decode()
        assert http.request("GET", f"{base}/-/ready").status == 200

        assert http.request("GET", f"{base}/overview?get={'x' * 60_000}").status == 200
        head = http.request("HEAD", f"{base}/overview")
        assert (head.status, head.data) == (404, b"")
        head = http.request("HEAD", f"{base}/metrics")
        assert (head.status, head.data) == (200, b"")
        assert int(head.headers["content-length"]) > 1_000
        small = http.request("GET", f"{base}/metrics", headers={"Accept-Encoding": "gzip"}, decode_content=False)
        assert int(small.headers["content-length"]) == len(small.data) < int(head.headers["content-length"])
        assert b"streamgauge_vertex_records_in_total" in gzip.decompress(small.data)
        assert http.request("GET", f"{base}/overview", headers={"Host": "evil.test"}).status == 403
        assert http.request("GET", f"{base}/overview", body=b"{}", headers={"Connection": "close"}).status == 200

        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
        assert process.communicate() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_ends_it_cleanly_while_a_client_holds_its_connection() -> None:
    """Ctrl-C: exit code 0, nothing printed, no waiting for idle connections."""
    with serving() as (base, process):
        host, _, port = base.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as held:
            held.sendall(b"GET /overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert held.recv(12) == b"HTTP/1.1 200"
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 0
        assert process.communicate() == ("", "")


def test_token_from_the_environment_guards_pushes(body: bytes) -> None:
    """Without it 401, with it 202; reads need none."""
    http = urllib3.PoolManager()
    with serving(STREAMGAUGE_TOKEN="secret") as (base, _):
        headers = {"Content-Type": wire.CONTENT_TYPE}
        assert http.request("POST", base + wire.PUSH_PATH, body=body, headers=headers).status == 401
        headers["Authorization"] = "Bearer secret"
        assert http.request("POST", base + wire.PUSH_PATH, body=body, headers=headers).status == 202
        assert http.request("GET", f"{base}/jobs/overview").status == 200


def test_the_hooks_transport_understands_every_answer(recorded: list[wire.Frame]) -> None:
    """Taken, to be sent in full, too long, wrong token: what the driver's side makes of the real service."""
    delta = msgspec.structs.replace(recorded[-1], seq=3, base=2, attempt=wire.Attempt(2**60, "unseen"))
    with serving("--max-push-bytes", "1000000", STREAMGAUGE_PUSH_TOKEN="sécret") as (base, _):
        transport = HttpTransport(base, "sécret")
        assert transport.send(codec.encode(recorded))[0] == "accepted"
        assert transport.send(codec.encode([delta]))[0] == "resend"
        outcome, words, _ = transport.send(b"x" * 20_000_000)
        assert (outcome, words[:8]) == ("rejected", "HTTP 413")
        assert transport.send(codec.encode(recorded))[0] == "accepted"
        transport.close()
        stranger = HttpTransport(base, "other")
        assert stranger.send(codec.encode(recorded))[1].startswith("HTTP 401")
        stranger.close()


def test_taken_port_says_so_and_offers_another() -> None:
    """One line."""
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        message = refusal("--port", str(port))
    expected = f"Error: port {port} on 127.0.0.1 is taken: stop what listens there, or choose another with --port\n"
    assert message == expected


def test_beyond_loopback_it_refuses_to_start_without_a_token() -> None:
    """One line that names the remedies."""
    message = refusal("--host", "0.0.0.0", "--port", "0")
    assert message.startswith("Error: --host 0.0.0.0 is open to the network")
    assert all(remedy in message for remedy in ("--push-token", "STREAMGAUGE_PUSH_TOKEN", "--insecure"))


def test_unknown_setting_stops_startup() -> None:
    """With the nearest valid name."""
    assert "did you mean STREAMGAUGE_PORT?" in refusal(STREAMGAUGE_PROT="1")


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_address_that_is_not_here_is_refused_in_one_line(host: str) -> None:
    """An address of documentation is nobody's; a name may not resolve."""
    with pytest.raises(SettingError) as error:
        listen(host, 0)
    assert host in str(error.value)


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("", "127.0.0.1")])
def test_url_is_one_to_open(host: str, shown: str) -> None:
    """Loopback for all interfaces; the port that was found."""
    assert Config(host=host, insecure=True).host == host
    with listen(host if host else "127.0.0.1", 0) as listener:
        assert url(host, listener) == f"http://{shown}:{listener.getsockname()[1]}"


def test_url_of_ipv6_has_brackets() -> None:
    """[::1], and for all interfaces too."""

    class Bound:
        def __init__(self, address: str) -> None:
            self.address = address

        def getsockname(self) -> tuple[Any, ...]:
            return (self.address, 8081, 0, 0)

    listeners: list[Any] = [Bound("::1"), Bound("::")]
    assert [url(each.address, each) for each in listeners] == ["http://[::1]:8081"] * 2
