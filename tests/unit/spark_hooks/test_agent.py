"""The hooks of one application wired together, with a recorder that replays what it is given."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from spark_hooks import agent as agent_module
from spark_hooks import records
from spark_hooks.agent import Agent
from spark_hooks.pusher import MemoryTransport, Outcome
from spark_hooks.settings import Settings
from spark_hooks.timer_reports import TimerReports
from streamgauge import catalogue, codec, names, wire
from streamgauge.errors import HookError
from tests.unit.spark_hooks.spark_events import APP, Query

WAIT_S = 30
"""What a test waits at most for a thread; no test takes that long unless it fails."""


class Recorder:
    """Hands over what a test gave it; compiles nothing and needs no JVM."""

    def __init__(self, spark: Any) -> None:
        self.events: list[records.Record] = []
        self.on_their_way: list[records.Record] = []
        self.not_posted: list[records.Record] = []
        self.active: set[str] = set()
        self.removed = 0
        self.gone = False

    def drain(self) -> bytes:
        if self.gone:
            raise ConnectionError("the JVM is gone")
        events, self.events = self.events, []
        return msgspec.msgpack.encode([7, 1_000, 3, 4, 1_795_000_000_000, 5, *events])

    def catch_up(self) -> None:
        self.events += self.on_their_way
        self.on_their_way, self.not_posted = self.not_posted, []

    def running(self) -> set[str]:
        return self.active

    def driver_metrics(self) -> bytes:
        return msgspec.msgpack.encode({names.HEAP_USED: 5})

    def remove(self) -> None:
        self.removed += 1


class Session:
    """What the hooks ask of a session."""

    def __init__(self, app_id: str = APP.id, **conf: str) -> None:
        settings = {"spark.driver.host": APP.host, **conf}
        self.version = APP.spark_version
        self.conf = SimpleNamespace(get=lambda key, default: settings.get(key, default))
        self.sparkContext = SimpleNamespace(
            applicationId=app_id,
            appName=APP.name,
            startTime=APP.start_ms,
            getConf=lambda: SimpleNamespace(getAll=lambda: list(settings.items())),
        )


class Hooks:
    """An agent whose threads are not started: a test drains and pushes itself."""

    def __init__(self) -> None:
        self.transport = MemoryTransport()
        self.agent = Agent(Session(), Settings(), self.transport)

    @property
    def recorder(self) -> Recorder:
        found = self.agent._recorder
        assert isinstance(found, Recorder)
        return found

    def drain(self, *events: records.Record) -> None:
        self.recorder.events += events
        self.agent._drain(0)

    def push(self) -> list[wire.Frame]:
        self.agent._pusher.push()
        return self.told()

    def told(self) -> list[wire.Frame]:
        return codec.decode(self.transport.bodies[-1])


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    """Every recorder that is made from here on."""
    made: list[Recorder] = []

    def make(spark: Any) -> Recorder:
        made.append(Recorder(spark))
        return made[-1]

    monkeypatch.setattr(agent_module, "Recorder", make)
    return made


@pytest.fixture
def hooks(recorders: list[Recorder]) -> Hooks:
    return Hooks()


def test_what_is_drained_is_pushed(hooks: Hooks) -> None:
    """Events become the model's state, and that the frames of the next push."""
    hooks.drain(Query(1).started())
    hooks.agent._tick(0)
    application, job = hooks.push()
    assert application.app.id == APP.id
    assert application.driver == {names.HEAP_USED: 5}
    assert job.job is not None
    assert job.job.jid == Query(1).jid


def test_hooks_tell_their_own_cost_and_drops(hooks: Hooks) -> None:
    """The recorder's counts, the drained bytes and the pushes travel with the application's frame."""
    hooks.drain()
    hooks.push()
    hooks.drain()
    [application] = hooks.push()
    drained = 2 * len(msgspec.msgpack.encode([7, 1_000, 3, 4, 1_795_000_000_000, 5]))
    figures = dict(application.hooks)
    assert figures.pop(names.HOOKS_DRAIN_TIME) > 0
    assert figures.pop(names.HOOKS_ACKNOWLEDGED_AGE) >= 0
    assert figures == {
        names.HOOKS_EVENTS: 7,
        names.HOOKS_RECORD_TIME: 1_000,
        names.HOOKS_BYTES: drained,
        names.HOOKS_DROPPED_RECORDS: 3,
        names.HOOKS_DROPPED_LIVE: 4,
        names.HOOKS_FAULTS: 0,
        names.HOOKS_SENT_BYTES: len(hooks.transport.bodies[0]),
        names.HOOKS_FRAME_BYTES: len(hooks.transport.bodies[0]),
        **dict.fromkeys(names.HOOKS_PUSHES.values(), 0),
        names.HOOKS_PUSHES["accepted"]: 1,
    }
    assert application.incomplete == wire.Incomplete(3, 4, 0)
    assert all(catalogue.find("hooks", name) for name in application.hooks)
    assert {metric.name for metric in catalogue.METRICS if metric.scope == "hooks"} == set(application.hooks)


def test_the_end_of_an_application_without_jobs_is_told_too(hooks: Hooks) -> None:
    """Its executors must not be shown until the silence is noticed; then nothing is left to tell."""
    hooks.drain(records.ExecutorAdded("driver", "host", 2, 5, 0))
    hooks.push()
    hooks.drain(records.ApplicationEnd(9))
    assert not hooks.agent._told_all()
    [application] = hooks.push()
    assert [executor.gone for executor in application.executors] == [True]
    assert hooks.agent._told_all()


def test_failures_of_ours_are_counted_and_told_once(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    """An event that cannot be applied costs one warning a run, and nothing else."""
    with caplog.at_level(logging.WARNING, logger="streamgauge"):
        hooks.drain(records.QueryProgress("no json"), Query(1).started(), records.Fault("recorder: out of luck"))
        hooks.drain(records.Fault("recorder: again"))
    assert [message.split(":")[0] for message in caplog.messages] == [
        "streamgauge missed an event, figures may be incomplete"
    ]
    application, job = hooks.push()
    assert application.hooks[names.HOOKS_FAULTS] == 3
    assert job.job is not None


def test_a_report_that_is_none_costs_no_event(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came with it in the same drain is told all the same."""
    held = TimerReports()
    monkeypatch.setattr(agent_module, "REPORTS", held)
    held.add([object()])  # type: ignore[list-item]
    hooks.drain(Query(1).started())
    application, job = hooks.push()
    assert application.hooks[names.HOOKS_FAULTS] == 1
    assert job.job is not None
    assert job.job.jid == Query(1).jid


def test_refused_deltas_are_followed_by_full_frames(hooks: Hooks) -> None:
    """A collector that has lost its state asks for everything, and gets it."""
    hooks.drain(Query(1).started())
    hooks.push()
    assert {frame.base for frame in hooks.push()} == {1}
    hooks.transport.answers = ["resend"]
    hooks.push()
    assert {frame.base for frame in hooks.push()} == {0}


def test_stopping_tells_the_last_and_takes_the_recorder_off(hooks: Hooks) -> None:
    """What had come by then is drained and pushed; a second stop does nothing."""
    hooks.recorder.events.append(Query(1).started())
    hooks.agent.stop()
    hooks.agent.stop()
    assert [frame.job and frame.job.jid for frame in hooks.told()] == [None, Query(1).jid]
    assert len(hooks.transport.bodies) == 1
    assert hooks.recorder.removed == 1


def test_stopping_tells_what_the_bus_delivers_late(hooks: Hooks) -> None:
    """Spark has posted that a query ended, and its bus has not delivered it yet."""
    hooks.drain(Query(1).started())
    hooks.recorder.on_their_way.append(Query(1).terminated())
    hooks.agent.stop()
    assert [frame.job and frame.job.state for frame in hooks.told()] == [None, "CANCELED"]


def test_stopping_tells_an_end_that_spark_has_not_posted_yet(hooks: Hooks) -> None:
    """A query is no longer active a moment before Spark posts its end; a driver that only waits for that leaves."""
    hooks.drain(Query(1).started())
    hooks.recorder.not_posted.append(Query(1).terminated())
    hooks.agent.stop()
    assert [frame.job and frame.job.state for frame in hooks.told()] == [None, "CANCELED"]


def test_stopping_does_not_wait_for_a_query_that_runs(hooks: Hooks) -> None:
    """It will not end by being waited for."""
    hooks.drain(Query(1).started())
    hooks.recorder.active = {Query(1).run_id}
    hooks.recorder.not_posted.append(Query(1).terminated())
    hooks.agent.stop()
    assert [frame.job and frame.job.state for frame in hooks.told()] == [None, "CREATED"]


def test_stopping_works_without_the_jvm(hooks: Hooks) -> None:
    """The driver may be gone before us: what is known is told all the same."""
    hooks.drain(Query(1).started())
    hooks.recorder.gone = True
    hooks.agent.stop()
    assert len(hooks.told()) == 2


def test_the_recorder_leaves_the_bus_though_nothing_more_is_heard(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark that does not say which queries run must not keep a recorder that nobody drains."""
    hooks.drain(Query(1).started())

    def fail() -> set[str]:
        raise AttributeError("no activeStreamingQueries")

    monkeypatch.setattr(hooks.recorder, "running", fail)
    hooks.agent.stop()
    assert hooks.recorder.removed == 1


def test_stopping_does_not_wait_for_a_collector_that_hangs(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that does not answer holds the driver for GOODBYE_S, not for ever."""
    answer = threading.Event()

    def hang(body: bytes) -> tuple[str, str, float]:
        answer.wait()
        return "unreachable", "", 0.0

    monkeypatch.setattr(agent_module, "GOODBYE_S", 0.05)
    monkeypatch.setattr(hooks.transport, "send", hang)
    stopping = threading.Thread(target=hooks.agent.stop)
    stopping.start()
    stopping.join(5)
    waited = stopping.is_alive()
    answer.set()
    stopping.join()
    assert not waited


class Hanging(MemoryTransport):
    """Takes a push and does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.sending = threading.Event()
        self.answer = threading.Event()

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        super().send(body)
        self.sending.set()
        assert self.answer.wait(WAIT_S)
        return "accepted", "", 0.0


def test_a_push_that_hangs_keeps_nothing_but_its_own_thread(
    recorders: list[Recorder], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The recorder leaves the bus, the log says what may be lacking, and nothing more is sent, nor told, afterwards."""
    transport = Hanging()
    monkeypatch.setattr(agent_module, "GOODBYE_S", 0.5)
    before = set(threading.enumerate())
    agent = Agent(Session(), Settings(interval_ms=100), transport)
    agent.start()
    assert transport.sending.wait(WAIT_S)
    agent.stop()
    assert recorders[0].removed == 1
    transport.answer.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_S)
    assert len(transport.bodies) == 1
    assert caplog.messages == [
        "streamgauge leaves before http://127.0.0.1:8081 has answered: it may lack the last figures"
    ]


# ---- attach and detach


@pytest.fixture
def attach(recorders: list[Recorder], monkeypatch: pytest.MonkeyPatch) -> Any:
    """`attach`, of which every agent pushes into memory and is detached at the end."""
    monkeypatch.setattr(agent_module, "HttpTransport", lambda url, token: MemoryTransport())
    monkeypatch.setattr(agent_module, "_latest", None)
    yield agent_module.attach
    agent_module.detach()


Attach = Callable[..., bool]


def test_attaching_again_changes_nothing(attach: Attach, recorders: list[Recorder]) -> None:
    """The same application with the same settings keeps its recorder."""
    session = Session()
    assert attach(session)
    assert attach(session)
    assert len(recorders) == 1


def test_other_settings_replace_the_agent(attach: Attach, recorders: list[Recorder]) -> None:
    """The old recorder leaves the bus, or every event would be recorded twice."""
    assert attach(Session())
    assert attach(Session(), interval_ms=500)
    assert [recorder.removed for recorder in recorders] == [1, 0]


def test_another_application_replaces_the_agent(attach: Attach, recorders: list[Recorder]) -> None:
    """A session may be stopped and another one begun in the same process."""
    assert attach(Session())
    assert attach(Session(app_id="app-8"))
    assert [recorder.removed for recorder in recorders] == [1, 0]


def test_session_without_a_context_is_left_alone(attach: Attach, caplog: pytest.LogCaptureFixture) -> None:
    """Spark Connect's client has no listener bus: one warning, and the job runs on."""
    assert not attach(object())
    assert "streamgauge is not attached" in caplog.text


def test_jvm_that_takes_no_recorder_is_left_alone(
    attach: Attach, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever this Spark is, attaching raises nothing into the user's program."""

    def refuse(spark: Any) -> Recorder:
        raise HookError("this Spark's JVM does not take the recorder: no Janino")

    monkeypatch.setattr(agent_module, "Recorder", refuse)
    assert not attach(Session())
    assert "no Janino" in caplog.text


def test_detaching_what_is_not_attached_does_nothing(attach: Attach) -> None:
    """It may be called at any time, and again."""
    agent_module.detach()
    assert attach(Session())
    agent_module.detach()
    agent_module.detach()
