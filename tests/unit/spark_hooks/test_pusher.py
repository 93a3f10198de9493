"""The sender: one push an interval, one line an outage, nothing of ours in the driver."""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spark_hooks import pusher
from spark_hooks.pusher import HttpTransport, MemoryTransport, Outcome, Pusher
from streamgauge import names, wire
from streamgauge.clock import ManualClock

WAIT_S = 30
"""What a test waits at most for a thread; no test takes that long unless it fails."""
BODY = b"\x90"


# ---- HttpTransport against a server on loopback


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
    for transport in made:
        transport.close()


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
        (400, b"\xff" + b"y" * 600, {}, ("rejected", "HTTP 400 \ufffd" + "y" * 499, 0.0)),
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
    """Only 202 is accepted; a redirect is not followed; the words are cut at 500 bytes."""
    collector.status, collector.body, collector.headers = status, body, headers
    assert transport_to(collector.url).send(BODY) == answer
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
    monkeypatch.setattr(pusher, "READ_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome, words, _ = transport_to(f"http://127.0.0.1:{silent.getsockname()[1]}").send(BODY)
    assert outcome == "unreachable"
    assert "timed out" in words.lower() or "timeout" in words.lower()


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


@pytest.mark.parametrize("url", ["http://name with spaces", "http://127.0.0.1:99999", "http://[bad"])
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


# ---- Pusher


class Desk:
    """A pusher on a MemoryTransport, and what it asked and told."""

    def __init__(self) -> None:
        self.transport = MemoryTransport()
        self.settled: list[tuple[int, Outcome]] = []
        self.seq = 0
        self.clock = ManualClock()
        self.pusher = Pusher(self.build, self.settle, self.transport, 1.0, "http://gauge:8081", self.clock)

    def build(self) -> list[wire.Frame]:
        self.seq += 1
        app = wire.App("app-1", "flights", 1, "driver.test", "4.3.0", "0.1.0")
        return [wire.Frame(wire.WIRE_VERSION, app, wire.Attempt(1, "app-1"), self.seq, 0, 10, 1000)]

    def settle(self, frames: list[wire.Frame], outcome: Outcome) -> None:
        self.settled.append((frames[0].seq, outcome))

    def push(self, *answers: Outcome) -> None:
        for answer in answers:
            self.transport.answers.append(answer)
            assert self.pusher.push() == (answer, 0.0)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_push_sends_the_frames_of_now_and_settles_them(desk: Desk) -> None:
    """Every push builds anew; nothing is queued."""
    desk.push("accepted", "unreachable", "resend")
    assert [wire.decode(body)[0].seq for body in desk.transport.bodies] == [1, 2, 3]
    assert desk.settled == [(1, "accepted"), (2, "unreachable"), (3, "resend")]


def test_outcomes_and_bytes_are_counted(desk: Desk) -> None:
    """What was sent counts, whether or not it was taken; the age is that of the last that was."""
    counted = dict.fromkeys(names.HOOKS_PUSHES.values(), 0)
    assert desk.pusher.figures() == {**counted, names.HOOKS_SENT_BYTES: 0}
    desk.push("accepted", "refused", "accepted")
    desk.clock.advance(2_500)
    desk.push("overloaded")
    bodies = [len(body) for body in desk.transport.bodies]
    assert desk.pusher.figures() == {
        **counted,
        "pushesAccepted": 2,
        "pushesRefused": 1,
        "pushesOverloaded": 1,
        names.HOOKS_SENT_BYTES: sum(bodies),
        names.HOOKS_FRAME_BYTES: bodies[-1],
        names.HOOKS_ACKNOWLEDGED_AGE: 2_500,
    }


def test_an_outage_is_one_line_and_its_end_another(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """The second counts what was not taken; the next outage is told again."""
    desk.push("accepted", "unreachable", "overloaded", "refused", "accepted", "accepted", "unreachable", "accepted")
    begun = (
        "streamgauge cannot push to http://gauge:8081 (unreachable): "
        "the job runs on, its figures follow once it is back"
    )
    assert warnings_of(caplog) == [
        begun,
        "streamgauge reaches http://gauge:8081 again; 3 pushes were not taken",
        begun,
        "streamgauge reaches http://gauge:8081 again; 1 pushes were not taken",
    ]


def test_health_is_silent(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A collector that asks for everything again is reached."""
    desk.push("accepted", "resend", "accepted")
    assert warnings_of(caplog) == []


def test_the_line_gives_the_collectors_words(caplog: pytest.LogCaptureFixture) -> None:
    """Why it was refused is what the user needs."""
    desk = Desk()
    desk.transport.send = lambda body: ("refused", "HTTP 401 a token is missing", 0.0)  # type: ignore[method-assign]
    desk.pusher.push()
    assert "(HTTP 401 a token is missing)" in warnings_of(caplog)[0]


# ---- Its thread


class StepTransport:
    """Lets each push end when the test says so; answers 'accepted' with the pause it is given."""

    def __init__(self) -> None:
        self.sending = threading.Semaphore(0)
        self.release = threading.Semaphore(0)
        self.closed = False

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        self.sending.release()
        assert self.release.acquire(timeout=WAIT_S)
        return "accepted", "", 0.0

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def threads() -> Callable[[], list[str]]:
    """Tells the senders that the test has started; a driver of other tests may have one all the while."""
    before = set(threading.enumerate())
    return lambda: [
        thread.name for thread in threading.enumerate() if thread not in before and thread.name == "streamgauge-pusher"
    ]


def test_the_thread_pushes_until_it_is_stopped(desk: Desk, threads: Callable[[], list[str]]) -> None:
    """Several pushes, then stop() ends it and nothing is sent any more."""
    transport = StepTransport()
    sender = Pusher(desk.build, desk.settle, transport, 0.001, "x", ManualClock())
    sender.start()
    for _ in range(3):
        assert transport.sending.acquire(timeout=WAIT_S)
        transport.release.release()
    assert transport.sending.acquire(timeout=WAIT_S)
    transport.release.release(100)
    sender.stop(WAIT_S)
    assert threads() == []
    assert desk.settled[:4] == [(number, "accepted") for number in range(1, 5)]
    assert not transport.closed
    sender.close()
    assert transport.closed


def test_stop_waits_no_longer_than_told(desk: Desk, threads: Callable[[], list[str]]) -> None:
    """A push under way may hang; the driver's end must not."""
    transport = StepTransport()
    sender = Pusher(desk.build, desk.settle, transport, 0.001, "x", ManualClock())
    sender.start()
    assert transport.sending.acquire(timeout=WAIT_S)
    sender.stop(0.0)
    assert threads() == ["streamgauge-pusher"]
    transport.release.release()
    sender.stop(WAIT_S)
    assert threads() == []
    assert desk.settled == [(1, "accepted")]


def test_stop_before_start_or_again_does_nothing(desk: Desk, threads: Callable[[], list[str]]) -> None:
    """Detaching may come at any time."""
    desk.pusher.stop(0.0)
    desk.pusher.start()
    desk.pusher.stop(WAIT_S)
    desk.pusher.stop(0.0)
    assert threads() == []
    assert desk.transport.bodies == []


def test_it_dies_with_the_driver(desk: Desk) -> None:
    """A thread of ours never keeps a process alive."""
    assert desk.pusher._thread.daemon


class Pauses(threading.Event):
    """Notes what the sender waits, and lets it go on at once, `left` times; then it is stopped."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.waited: list[float | None] = []
        self.left = left

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (("accepted", "", 0.0), 1.0),
        (("resend", "", 0.0), 1.0),
        (("unreachable", "", 0.0), 1.0),
        (("overloaded", "", 0.0), 1.0),
        (("overloaded", "", 7.0), 7.0),
        (("overloaded", "", 0.5), 1.0),
        (("overloaded", "", 3600.0), pusher.SLOWEST_S),
        (("refused", "", 0.0), pusher.SLOWEST_S),
    ],
)
def test_the_pause_is_what_the_answer_asks_for(desk: Desk, answer: tuple[Outcome, str, float], expected: float) -> None:
    """Never below the interval nor above SLOWEST_S; one that says no is asked less often."""
    desk.transport.send = lambda body: answer  # type: ignore[method-assign]
    desk.pusher._stop = pauses = Pauses(1)
    desk.pusher._run()
    assert pauses.waited == [1.0, expected]


def test_a_failure_of_ours_does_not_end_the_thread(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """It is told in one line, however often it happens, and so is its end; pushes go on, seldom."""
    calls = iter([KeyError("spoilt"), KeyError("spoilt"), KeyError("spoilt"), None])

    def settle(frames: list[wire.Frame], outcome: Outcome) -> None:
        error = next(calls)
        if error is not None:
            raise error

    desk.pusher._settle = settle
    desk.pusher._stop = pauses = Pauses(4)
    desk.pusher._run()
    begun, ended = warnings_of(caplog)
    assert "(KeyError: 'spoilt')" in begun
    assert "again; 3 pushes were not taken" in ended
    assert pauses.waited == [1.0, pusher.SLOWEST_S, pusher.SLOWEST_S, pusher.SLOWEST_S, 1.0]


# ---- One job that the collector does not take


class Choosy(MemoryTransport):
    """Takes no push that holds the frame of a job of `bad`."""

    def __init__(self, bad: set[str]) -> None:
        super().__init__()
        self.bad = bad

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        super().send(body)
        jobs = {"" if frame.job is None else frame.job.jid for frame in wire.decode(body)}
        return ("rejected", "HTTP 400 too long", 0.0) if jobs & self.bad else ("accepted", "", 0.0)


def job_frame(jid: str) -> wire.Frame:
    app = wire.App("app", "app", 1, "host", "4.3.0", "0.1.0")
    job = None
    if jid:
        job = wire.Job(jid, "name", "STREAMING", "RUNNING", {"RUNNING": 1}, -1, "", "task", {})
    return wire.Frame(wire.WIRE_VERSION, app, wire.Attempt(1, "run"), 1, 0, 1, 1000, job)


def test_a_job_that_is_not_taken_does_not_cost_the_others_theirs(caplog: pytest.LogCaptureFixture) -> None:
    """It is found by sending one by one, told once, and left out from then on."""
    transport = Choosy({"b" * 32})
    settled: list[tuple[list[str], Outcome]] = []
    frames = [job_frame(""), job_frame("a" * 32), job_frame("b" * 32)]
    sender = Pusher(
        lambda: frames,
        lambda sent, outcome: settled.append(([frame.job.jid if frame.job else "" for frame in sent], outcome)),
        transport,
        1.0,
        "here",
        ManualClock(),
    )
    assert sender.push() == ("accepted", 0.0)
    assert settled[1:] == [([""], "accepted"), (["a" * 32], "accepted"), (["b" * 32], "rejected")]
    assert sender.push() == ("accepted", 0.0)
    assert settled[-1] == (["", "a" * 32], "accepted")
    assert [record.getMessage() for record in caplog.records] == [
        f"streamgauge leaves {'b' * 32} out, here does not take it: HTTP 400 too long"
    ]


def test_nothing_is_left_out_where_nothing_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """A collector of another version rejects every frame; it may be replaced."""
    transport = Choosy({"", "a" * 32})
    sender = Pusher(
        lambda: [job_frame(""), job_frame("a" * 32)], lambda *_: None, transport, 1.0, "here", ManualClock()
    )
    assert sender.push()[0] == "rejected"
    transport.bad = set()
    assert sender.push()[0] == "accepted"
    assert len(wire.decode(transport.bodies[-1])) == 2
    assert ["cannot push" in record.getMessage() for record in caplog.records] == [True, False]


def test_the_thread_ends_by_itself_once_all_is_told() -> None:
    """An application that has ended needs no sender."""
    told = threading.Event()
    sender = Pusher(
        lambda: [job_frame("")], lambda *_: told.set(), MemoryTransport(), 0.001, "here", ManualClock(), told.is_set
    )
    sender.start()
    assert told.wait(WAIT_S)
    sender._thread.join(WAIT_S)
    assert not sender._thread.is_alive()
