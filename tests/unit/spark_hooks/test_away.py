"""While the collector is away nothing of ours grows; when it is back, it is told all that is still to be told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from spark_hooks import agent as agent_module
from spark_hooks import execution, executors, records
from spark_hooks.agent import Agent
from spark_hooks.pusher import MemoryTransport, Outcome
from spark_hooks.settings import Settings
from streamgauge import codec
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import APP, Execution, Ids, Query, Task, scan, sink, stage, submitted, updates

FAILURES: list[Outcome] = ["unreachable", "overloaded", "refused", "rejected"]
HELD = 5


class Application:
    """Queries that are started again and again, batches, and executors that come and go."""

    def __init__(self) -> None:
        self.ids = Ids()
        self.queries = [Query(number, name=f"query {number}") for number in range(3)]
        self.lives = 0
        self.rows: dict[str, int] = {}

    def live(self) -> Iterator[records.Record]:
        """One run of a query and one batch, from start to end, on an executor of their own."""
        self.lives += 1
        executor = str(self.lives)
        yield records.ExecutorAdded(executor, "host", 2, 5, 0)
        yield records.BlockManagerAdded(executor, "host:1", 1 << 20)
        query = self.queries[self.lives % len(self.queries)]
        query.run, query.batch = self.lives, 0
        yield query.started(f"2026-11-21T{10 + self.lives // 60:02d}:{self.lives % 60:02d}:00.000Z")
        yield from self._run(query.describe(), executor)
        yield query.progress(self.lives)
        yield query.terminated()
        yield from self._run(f"batch {self.lives}", executor)
        yield records.ExecutorRemoved(executor, 9)
        self.rows[query.jid] = self.lives

    def _run(self, description: str, executor: str) -> Iterator[records.Record]:
        ids = self.ids
        plan = sink(ids, ids.node("HashAggregate", ids.shuffle(ids.node("Filter", scan(ids)))))
        run = Execution(ids, plan, description)
        source = stage(ids, 2, shuffles=True)
        yield from (run.start(), run.job(source), submitted(source))
        for partition in range(2):
            task = Task(ids, source, partition, executor=executor)
            rows = self.lives // 2 + partition * (self.lives % 2)
            yield from (task.start(), task.end(updates(plan, {"MicroBatchScan": rows})))
        yield run.end()


class Hooks:
    """An agent whose threads are not started and whose recorder is `application`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[records.Record] = []
        recorder = SimpleNamespace(drain=self._drained, driver_metrics=lambda: msgspec.msgpack.encode({}))
        monkeypatch.setattr(agent_module, "Recorder", lambda _: recorder)
        for module, bound in (
            (execution, "ENDED_EXECUTIONS"),
            (execution, "ENDED_JOBS"),
            (executors, "GONE_EXECUTORS"),
        ):
            monkeypatch.setattr(module, bound, HELD)
        self.transport = MemoryTransport()
        session = SimpleNamespace(
            version=APP.spark_version,
            conf=SimpleNamespace(get=lambda _, default: default),
            sparkContext=SimpleNamespace(
                applicationId=APP.id,
                appName=APP.name,
                startTime=APP.start_ms,
                getConf=lambda: SimpleNamespace(getAll=list),
            ),
        )
        self.agent = Agent(session, Settings(), self.transport)

    def _drained(self) -> bytes:
        told, self.waiting = self.waiting, []
        return msgspec.msgpack.encode([0, 0, 0, 0, 0, 0, *told])

    def live(self, application: Application, *answers: Outcome) -> None:
        """One life of the application, with pushes all the while."""
        for event in application.live():
            self.waiting.append(event)
            if isinstance(event, (records.TaskEnd, records.QueryProgress, records.QueryTerminated)):
                self.agent._drain(0)
                self.agent._tick(0)
                self.push(*answers)
        self.agent._drain(0)
        self.push(*answers)

    def push(self, *answers: Outcome) -> None:
        self.transport.answers = [*answers] * 100
        self.agent._pusher.push()

    @property
    def size(self) -> int:
        """Everything that the agent holds: objects, and the elements of arrays and texts."""
        self.transport.bodies.clear()
        self.transport.answers.clear()
        return size((self.agent._model, self.agent._frames, self.agent._executors, self.agent._pusher))


def size(*roots: Any) -> int:
    """Count what can be reached: items of containers, fields of objects, bytes and characters."""
    seen: set[int] = set()
    waiting, total = deque(roots), 0
    while waiting:
        found = waiting.popleft()
        if id(found) in seen or callable(found) or type(found).__module__ in ("threading", "_thread"):
            continue
        seen.add(id(found))
        total += 1
        if isinstance(found, (str, bytes)):
            total += len(found)
        elif isinstance(found, np.ndarray):
            total += found.size
        elif isinstance(found, dict):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, (list, tuple, set, frozenset, deque)):
            waiting += found
        elif type(found).__module__.startswith(("spark_hooks", "streamgauge")):
            waiting += [getattr(found, name, None) for name in fields(type(found))]
            waiting.append(getattr(found, "__dict__", None))
    return total


def fields(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        slots = getattr(each, "__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
    yield from getattr(kind, "__struct_fields__", ())


@pytest.mark.parametrize("answers", [*([failure] for failure in FAILURES), FAILURES], ids=[*FAILURES, "any"])
def test_nothing_grows_with_pushes_that_fail(monkeypatch: pytest.MonkeyPatch, answers: list[Outcome]) -> None:
    """However often, for whatever reason, and whatever starts, restarts, ends, comes and goes meanwhile."""
    hooks, application, random = Hooks(monkeypatch), Application(), Random(7)
    hooks.live(application, "accepted")
    sizes = []
    for lives in range(8 * HELD):
        hooks.live(application, random.choice(answers))
        if lives % len(application.queries) == 0:
            sizes.append(hooks.size)
    settled = sizes[len(sizes) // 2 :]
    # Numbers gain digits and texts with them; a job that were kept would be thousands.
    assert max(settled) - min(settled) < 100, sizes


def test_whatever_is_still_held_is_whole_when_the_collector_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries that started and ended while it was away are there with their counts, up to ENDED_JOBS."""
    hooks, application = Hooks(monkeypatch), Application()
    for _ in range(4 * HELD):
        hooks.live(application, "unreachable")
    hooks.push()
    store = MetricStore()
    Ingest(store, ManualClock(now_ms=2_000_000), Limits()).push(hooks.transport.bodies[-1])
    jobs = store.snapshot().jobs
    assert len(jobs) == HELD + 1  # the last that ended, until another begins
    streams = {jid: held for jid, held in jobs.items() if jid in application.rows}
    assert len(streams) == len(application.queries)
    for jid, held in streams.items():
        assert held.state == "CANCELED"
        [source] = [vertex for vertex in held.vertices.values() if vertex.vertex.name.startswith("Source")]
        assert int(source.columns["numRecordsIn"].values.sum()) == application.rows[jid]
        assert held.job.metrics["numInputRows"] == application.rows[jid]
    hooks.push()
    assert [frame.job for frame in codec.decode(hooks.transport.bodies[-1])] == [None]
