"""The sender: one push an interval, one line an outage, nothing of ours in the driver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from spark_hooks import pusher
from spark_hooks.pusher import MemoryTransport, Outcome, Pusher
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock

WAIT_S = 30
"""What a test waits at most for a thread; no test takes that long unless it fails."""


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
        return [wire.Frame(wire.WIRE_VERSION, app, wire.Attempt(1, "app-1"), self.seq, self.seq - 1, 10, 1000)]

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
    assert [codec.decode(body)[0].seq for body in desk.transport.bodies] == [1, 2, 3]
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
    """Whatever the kinds of failure are; the end counts what was not taken, by kind."""
    desk.push("accepted", "unreachable", "overloaded", "refused", "overloaded", "accepted", "accepted")
    assert warnings_of(caplog) == [
        "streamgauge cannot push to http://gauge:8081 (unreachable): "
        "the job runs on, its figures follow once it is back",
        "streamgauge reaches http://gauge:8081 again: 4 pushes were not taken in 0 s "
        "(2 overloaded, 1 unreachable, 1 refused)",
    ]


def test_an_outage_that_lasts_to_the_end_is_told_with_its_counts(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Leaving is the last chance to say that the collector lacks the end."""
    desk.push("accepted", "refused")
    desk.pusher.leave(answered=True)
    assert warnings_of(caplog)[1:] == [
        "streamgauge leaves before http://gauge:8081 is back (refused): 1 push was not taken in 0 s (1 refused)"
    ]


def test_full_frames_that_are_asked_for_again_are_refused(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """They build on nothing that a collector could lack, so whoever answers 409 to them is none, and that is told."""
    desk.push("accepted", "resend")
    desk.seq = 0
    desk.transport.answers = ["resend"]
    assert desk.pusher.push() == ("refused", 0.0)
    assert desk.settled[-1] == (1, "refused")
    assert len(warnings_of(caplog)) == 1


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
    desk.seq = 1
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
    assert "again: 3 pushes were not taken" in ended
    assert pauses.waited == [1.0, pusher.SLOWEST_S, pusher.SLOWEST_S, pusher.SLOWEST_S, 1.0]


# ---- One job that the collector does not take


class Choosy(MemoryTransport):
    """Takes no push that holds the frame of a job of `bad`."""

    def __init__(self, bad: set[str]) -> None:
        super().__init__()
        self.bad = bad

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        super().send(body)
        jobs = {"" if frame.job is None else frame.job.jid for frame in codec.decode(body)}
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
        f"streamgauge leaves {'b' * 32} out, here does not take it: HTTP 400 too long (1 so far)"
    ]


def test_what_is_left_out_neither_fills_the_log_nor_the_driver(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of jobs may be of a kind that is not taken: every tenfold is told, and only what is held remembered."""
    jids = [f"{number:032x}" for number in range(120)]
    transport = Choosy(set(jids))
    frames = [job_frame("")]
    sender = Pusher(lambda: frames, lambda *_: None, transport, 1.0, "here", ManualClock())
    for jid in jids:
        frames[1:] = [job_frame(jid)]
        assert sender.push() == ("accepted", 0.0)
    assert [message.rpartition("(")[2] for message in warnings_of(caplog)] == [
        "1 so far)",
        "10 so far)",
        "100 so far)",
    ]
    assert sender._left_out == {jids[-1]}


def test_nothing_is_left_out_where_nothing_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """A collector of another version rejects every frame; it may be replaced."""
    transport = Choosy({"", "a" * 32})
    sender = Pusher(
        lambda: [job_frame(""), job_frame("a" * 32)], lambda *_: None, transport, 1.0, "here", ManualClock()
    )
    assert sender.push()[0] == "rejected"
    transport.bad = set()
    assert sender.push()[0] == "accepted"
    assert len(codec.decode(transport.bodies[-1])) == 2
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
