"""HTTP to a collector: every answer has an outcome, and nothing that answers can hold or fill the driver."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spark_hooks import transport
from spark_hooks.pusher import Outcome
from spark_hooks.transport import HttpTransport
from streamgauge import wire

WAIT_S = 30
"""What a test waits at most for a thread; no test takes that long unless it fails."""
BODY = b"\x90"
PAGE = b"""<!DOCTYPE html>
<html><head><title>Oops</title><style>body { margin: 0 }
</style></head>
<body><script type="x">if (1 < 2) alert()</script>nginx/1.27 & more</body></html>
"""
WORDS = ("HTTP 200" + " Oops nginx/1.27 & more" * 50)[:199] + "…"


class Collector:
    """Answers as it is told, and keeps what it was sent. Does not check tokens."""

    def __init__(self) -> None:
        self.status = 202
        self.body = b""
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), sent))
                self.send_response(collector.status)
                for name, value in {"Content-Length": str(len(collector.body)), **collector.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(collector.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # It prints a stack trace of every client that hangs up before it has read a long answer.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def transport_to() -> Iterator[Callable[..., HttpTransport]]:
    made: list[HttpTransport] = []

    def make(url: str, token: str | None = None) -> HttpTransport:
        made.append(HttpTransport(url, token))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "answer"),
    [
        (202, b'{"accepted": 1}', {}, ("accepted", "", 0.0)),
        (400, b'{"errors": ["no"]}', {}, ("rejected", 'HTTP 400 {"errors": ["no"]}', 0.0)),
        (401, b"", {"WWW-Authenticate": "Bearer"}, ("refused", "HTTP 401", 0.0)),
        (404, b"x", {}, ("refused", "HTTP 404 x", 0.0)),
        (409, b"all", {}, ("resend", "HTTP 409 all", 0.0)),
        (413, b"", {"Retry-After": "1"}, ("rejected", "HTTP 413", 0.0)),
        (415, b"", {}, ("refused", "HTTP 415", 0.0)),
        (429, b"", {"Retry-After": "7"}, ("overloaded", "HTTP 429", 7.0)),
        (429, b"", {}, ("overloaded", "HTTP 429", 0.0)),
        (429, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, ("overloaded", "HTTP 429", 0.0)),
        (429, b"", {"Retry-After": "-1"}, ("overloaded", "HTTP 429", 0.0)),
        (429, b"", {"Retry-After": "\xb2"}, ("overloaded", "HTTP 429", 0.0)),
        (503, b"", {"Retry-After": "2"}, ("overloaded", "HTTP 503", 2.0)),
        (500, b"oops", {}, ("unreachable", "HTTP 500 oops", 0.0)),
        (502, b"", {}, ("unreachable", "HTTP 502", 0.0)),
        (302, b"", {"Location": "http://127.0.0.1:9/"}, ("refused", "HTTP 302", 0.0)),
        (200, b"", {}, ("refused", "HTTP 200", 0.0)),
        (400, b"\xff" + b"y" * 600, {}, ("rejected", "HTTP 400 \ufffd" + "y" * 189 + "…", 0.0)),
        (403, b"two\r\n\r\nlines \x1b[31mred\x07", {}, ("refused", "HTTP 403 two lines \ufffd[31mred\ufffd", 0.0)),
        (403, b"not hunter2 again", {}, ("refused", "HTTP 403 not [token] again", 0.0)),
        (500, PAGE, {"Content-Type": "text/html"}, ("unreachable", "HTTP 500 Oops nginx/1.27 & more", 0.0)),
        (200, PAGE * 50, {"Content-Type": "text/html"}, ("refused", WORDS, 0.0)),
    ],
)
def test_every_answer_has_an_outcome(
    collector: Collector,
    transport_to: Callable[..., HttpTransport],
    status: int,
    body: bytes,
    headers: dict[str, str],
    answer: tuple[Outcome, str, float],
) -> None:
    """Only 202 is accepted; a redirect is not followed; the words are one short line without markup and token."""
    collector.status, collector.body, collector.headers = status, body, headers
    assert transport_to(collector.url, "hunter2").send(BODY) == answer
    assert len(collector.requests) == 1


@pytest.mark.parametrize(
    ("slash", "path"), [("", "/push/v1/frames"), ("/", "/push/v1/frames"), ("/x/", "/x/push/v1/frames")]
)
def test_a_push_is_what_the_collector_reads(
    collector: Collector, transport_to: Callable[..., HttpTransport], slash: str, path: str
) -> None:
    """Path, content type, token and body."""
    transport_to(collector.url + slash, "hunter2").send(BODY)
    ((found, headers, body),) = collector.requests
    assert (found, body) == (path, BODY)
    assert (headers["Content-Type"], headers["Authorization"]) == (wire.CONTENT_TYPE, "Bearer hunter2")


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_there_is_no_header(
    collector: Collector, transport_to: Callable[..., HttpTransport], token: str | None
) -> None:
    """An empty one is none."""
    transport_to(collector.url, token).send(BODY)
    assert "Authorization" not in collector.requests[0][1]


def test_a_refused_connection_is_told_by_its_cause(transport_to: Callable[..., HttpTransport]) -> None:
    """Nobody listens: the innermost reason, without address and class names."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        outcome, words, pause_s = transport_to(f"http://127.0.0.1:{taken.getsockname()[1]}").send(BODY)
    assert (outcome, pause_s) == ("unreachable", 0.0)
    assert words.endswith("Connection refused")
    assert "object at 0x" not in words


def test_a_server_that_hangs_is_unreachable(
    transport_to: Callable[..., HttpTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the connection and says nothing."""
    monkeypatch.setattr(transport, "ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome, words, _ = transport_to(f"http://127.0.0.1:{silent.getsockname()[1]}").send(BODY)
    assert (outcome, words) == ("unreachable", "no whole answer within 0.05 s")


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\nhalf"]
)
def test_what_is_no_answer_is_unreachable(transport_to: Callable[..., HttpTransport], answer: bytes) -> None:
    """A closed connection, another protocol, half a body: never an exception, nor a second try at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        outcome, words, _ = transport_to(f"http://127.0.0.1:{listener.getsockname()[1]}").send(BODY)
        thread.join(WAIT_S)
        again, _, _ = select.select([listener], [], [], 0)
    assert (outcome, bool(words), again) == ("unreachable", True, [])


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[bad", "ftp://127.0.0.1:0/\x00"])
def test_a_url_that_cannot_work_does_not_raise(transport_to: Callable[..., HttpTransport], url: str) -> None:
    """Settings refuse these; the sender's thread survives them."""
    assert transport_to(url).send(BODY)[0] == "unreachable"


def test_a_transport_works_again_after_an_outage(
    collector: Collector, transport_to: Callable[..., HttpTransport]
) -> None:
    """Connections that the server has closed are made anew."""
    transport = transport_to(collector.url)
    collector.headers = {"Connection": "close"}
    assert [transport.send(BODY)[0] for _ in range(3)] == ["accepted"] * 3


class Server:
    """Answers every connection as `handle` does, in a thread of its own; knows nothing of HTTP."""

    def __init__(self, handle: Callable[[socket.socket], None]) -> None:
        self._handle = handle
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, suppress(OSError):
                self._handle(connection)

    def close(self) -> None:
        # shutdown() wakes accept(); close() alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], Server]]:
    servers: list[Server] = []

    def start(handle: Callable[[socket.socket], None]) -> Server:
        servers.append(Server(handle))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


Serve = Callable[[Callable[[socket.socket], None]], Server]


@pytest.mark.parametrize(
    "before",
    [b"", b"HTTP/1.1 ", b"HTTP/1.1 202 Accepted\r\nX: ", b"HTTP/1.1 202 Accepted\r\nContent-Length: 99999\r\n\r\n"],
    ids=["nothing", "status", "header", "body"],
)
def test_a_server_that_drips_is_given_up(
    serve: Serve,
    transport_to: Callable[..., HttpTransport],
    monkeypatch: pytest.MonkeyPatch,
    before: bytes,
) -> None:
    """A byte now and then keeps a socket's own timeout from ever passing; the whole answer has one bound."""
    monkeypatch.setattr(transport, "ANSWER_S", 0.2)
    given_up = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(before)
        while not given_up.wait(0.01):
            connection.sendall(b"1")

    sent: list[tuple[Outcome, str, float]] = []
    url = serve(drip).url
    sending = threading.Thread(target=lambda: sent.append(transport_to(url).send(BODY)), daemon=True)
    sending.start()
    sending.join(WAIT_S)
    given_up.set()
    assert sent == [("unreachable", "no whole answer within 0.2 s", 0.0)]


@pytest.mark.parametrize("head", [b"Content-Length: 99999999999\r\n", b"", b"Transfer-Encoding: chunked\r\n"])
def test_of_an_endless_answer_only_the_beginning_is_read(
    serve: Serve, transport_to: Callable[..., HttpTransport], head: bytes
) -> None:
    """A page of gigabytes must not pass through the driver's memory: the sender sees the connection end."""
    hung_up = threading.Event()

    def pour(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 500 Oops\r\n" + head + b"\r\n")
        try:
            while True:
                connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
        except OSError:
            hung_up.set()

    outcome, words, _ = transport_to(serve(pour).url).send(BODY)
    assert hung_up.wait(WAIT_S)
    assert outcome == "unreachable"
    assert len(words) == transport.WORDS_CHARS


@pytest.mark.parametrize("odd", [b"no header", b"  continued: nothing"])
def test_headers_that_are_none_are_told_to_no_logger(
    serve: Serve, transport_to: Callable[..., HttpTransport], caplog: pytest.LogCaptureFixture, odd: bytes
) -> None:
    """Some HTTP clients log a stack trace of such at every answer, and the driver's console is not ours."""

    def answer(connection: socket.socket) -> None:
        # Whole: what is left unread would reset the connection, and the answer with it.
        while not connection.recv(65536).endswith(BODY):
            pass
        connection.sendall(b"HTTP/1.1 202 Accepted\r\n" + odd + b"\r\nContent-Length: 0\r\n\r\n")

    assert transport_to(serve(answer).url).send(BODY)[0] == "accepted"
    assert caplog.records == []


def test_a_long_push_may_take_longer_than_a_connection(
    serve: Serve, transport_to: Callable[..., HttpTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a large application at once, on a slow link: it would never get through, however often it is tried."""
    monkeypatch.setattr(transport, "CONNECT_S", 0.1)
    body = BODY * 30_000_000

    def read_late(connection: socket.socket) -> None:
        threading.Event().wait(0.3)
        left = len(body)
        while left > 0:
            left -= len(connection.recv(1 << 20))
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    assert transport_to(serve(read_late).url).send(body)[0] == "accepted"


def test_a_connection_is_kept_and_one_that_the_server_closed_is_made_anew(
    serve: Serve, transport_to: Callable[..., HttpTransport]
) -> None:
    """Servers close what idles, without a word; that is no failed push."""

    def answer_twice(connection: socket.socket) -> None:
        for _ in range(2):
            while not connection.recv(65536).endswith(BODY):
                pass
            connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")

    server = serve(answer_twice)
    pushes = transport_to(server.url)
    assert [pushes.send(BODY)[0] for _ in range(5)] == ["accepted"] * 5
    assert server.connections == 3


# A script that the end of a pipe is to end, as `| head` does.
PIPED = """
import signal, sys
from spark_hooks.transport import HttpTransport
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
transport = HttpTransport(sys.argv[1], None)
for _ in range(20):
    print(transport.send(b"\\x90" * 1_000_000)[0])
transport.close()
"""


def test_a_connection_that_the_server_closed_does_not_end_a_script_that_pipes_end(serve: Serve) -> None:
    """Python ignores SIGPIPE, but a script may have put it back; it would kill the driver without a word."""

    def answer_once(connection: socket.socket) -> None:
        left = 1_000_000
        while left > 0:
            left -= connection.recv(1 << 20).count(BODY)
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    done = subprocess.run(
        [sys.executable, "-c", PIPED, serve(answer_once).url],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "accepted\n" * 20), done.stderr
