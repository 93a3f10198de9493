"""Executors: who is there, what runs on them, and who has gone until the collector knows."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from spark_hooks import records
from spark_hooks.executors import Executors
from streamgauge import catalogue, names, wire
from streamgauge.clock import ManualClock

APP = "local-1795257764084"
START_MS = 1_795_257_764_084
JID = "c" * 32


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS + 1000)


@pytest.fixture
def executors(clock: ManualClock) -> Executors:
    return Executors(APP, 2, clock)


def added(executor: str = "1", cores: int = 5) -> records.ExecutorAdded:
    return records.ExecutorAdded(executor, "host", cores, START_MS, 0)


def block_manager(executor: str = "1") -> records.BlockManagerAdded:
    return records.BlockManagerAdded(executor, f"host:4010{executor}", 455_501_414)


def only(executors: Executors) -> wire.Executor:
    (found,) = executors.frames()
    return found


def test_an_executor_is_told_in_full(executors: Executors) -> None:
    """Id with the application's, slots by the cores that a task takes, rounded down."""
    executors.apply(added())
    executors.apply(block_manager())
    assert msgspec.structs.replace(only(executors), metrics={}) == wire.Executor(
        id=f"{APP}-1",
        endpoint="host:40101",
        cores=5,
        slots=2,
        running={},
        memory_bytes=455_501_414,
        added_ms=START_MS,
        heartbeat_ms=START_MS,
        metrics={},
    )


def test_the_block_manager_may_come_first(executors: Executors) -> None:
    """In local mode it does."""
    executors.apply(block_manager())
    assert executors.frames() == ()
    executors.apply(added())
    assert (only(executors).endpoint, only(executors).memory_bytes) == ("host:40101", 455_501_414)


def test_without_a_block_manager_memory_is_unknown(executors: Executors) -> None:
    """The host is known; −1 is unknown."""
    executors.apply(added())
    assert (only(executors).endpoint, only(executors).memory_bytes) == ("host", -1)


@pytest.mark.parametrize("cores", [1, 5])
def test_being_told_twice_loses_nothing(executors: Executors, cores: int) -> None:
    """The recorder tells what was there when it came, and Spark's own event may follow."""
    for event in (
        added(cores=4),
        block_manager(),
        records.ExecutorMemory("1", START_MS + 5, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    ):
        executors.apply(event)
    before = only(executors)
    executors.apply(added(cores=cores))
    assert only(executors) == msgspec.structs.replace(before, cores=cores, slots=cores // 2)


def test_the_driver_outside_local_mode_is_no_executor(executors: Executors) -> None:
    """It has a block manager and no cores."""
    executors.apply(block_manager("driver"))
    executors.apply(added("driver", cores=0))
    assert executors.frames() == ()


def test_slots_are_whole_cores_if_spark_says_nothing(clock: ManualClock) -> None:
    """spark.task.cpus of 0 would divide by it."""
    executors = Executors(APP, 0, clock)
    executors.apply(added(cores=4))
    assert only(executors).slots == 4


def test_memory_is_the_last_that_was_told(executors: Executors) -> None:
    """Collections and their time are the minor and the major ones together."""
    executors.apply(added())
    executors.apply(records.ExecutorMemory("1", START_MS + 10, (9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)))
    executors.apply(records.ExecutorMemory("1", START_MS + 20, (100, 20, 3, 4, 50, 600, 7, 80, 900, 1000, 70, 8)))
    found = only(executors)
    assert found.heartbeat_ms == START_MS + 20
    assert (
        found.metrics.items()
        >= {
            names.HEAP_USED: 100,
            names.NON_HEAP_USED: 20,
            names.DIRECT_USED: 3,
            names.MAPPED_USED: 4,
            names.GC_COUNT_ALL: 57,
            names.GC_TIME_ALL: 680,
            names.MANAGED_USED: 1900,
        }.items()
    )


def test_every_metric_is_in_the_catalogue(executors: Executors) -> None:
    """Of the executors' scope."""
    executors.apply(added())
    executors.apply(records.ExecutorMemory("1", START_MS, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)))
    assert all(catalogue.find("executor", metric) for metric in only(executors).metrics)


def test_memory_of_an_unknown_executor_is_dropped(executors: Executors) -> None:
    """It may have been removed before its last heartbeat was drained."""
    executors.apply(records.ExecutorMemory("9", START_MS, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)))
    assert executors.frames() == ()


def test_tasks_are_signs_of_life(executors: Executors, clock: ManualClock) -> None:
    """Both their launch and their end."""
    executors.apply(added())
    clock.advance(500)
    executors.start_task(7, "1", JID)
    assert only(executors).heartbeat_ms == START_MS + 1500
    clock.advance(500)
    executors.end_task(7)
    assert only(executors).heartbeat_ms == START_MS + 2000


def test_running_tasks_are_counted_by_job(executors: Executors) -> None:
    """'' stands for tasks outside any job."""
    executors.apply(added())
    for task, jid in ((1, JID), (2, JID), (3, "")):
        executors.start_task(task, "1", jid)
    executors.end_task(1)
    executors.end_task(99)
    assert only(executors).running == {JID: 1, "": 1}


def test_a_removed_executor_is_told_as_gone_until_the_collector_knows(executors: Executors) -> None:
    """With its last figures, and nothing running."""
    executors.apply(added())
    executors.start_task(1, "1", JID)
    executors.apply(records.ExecutorRemoved("1", START_MS + 9))
    gone = only(executors)
    assert (gone.id, gone.gone, gone.running) == (f"{APP}-1", True, {})
    assert only(executors) == gone
    executors.forget_gone((gone,))
    assert executors.frames() == ()


def test_telling_of_those_present_forgets_none(executors: Executors) -> None:
    """One that was removed after the frame was built is told in the next."""
    executors.apply(added())
    told = executors.frames()
    executors.apply(records.ExecutorRemoved("1", START_MS + 9))
    executors.forget_gone(told)
    assert only(executors).gone


def test_an_executor_that_comes_back_is_not_gone(executors: Executors) -> None:
    """It is told once, as present."""
    executors.apply(added())
    executors.apply(records.ExecutorRemoved("1", START_MS + 9))
    executors.apply(added())
    assert not only(executors).gone


def test_other_events_are_none_of_its_business(executors: Executors) -> None:
    """The model hands it every event that it does not know itself."""
    executors.apply(added())
    before = executors.frames()
    executors.apply(records.ApplicationEnd(START_MS))
    executors.apply(records.Fault("x"))
    assert executors.frames() == before


# ---- Against a plain model

IDS = ["1", "2", "driver"]


class ExecutorsModel(RuleBasedStateMachine):
    """A plain model: who is present, who is gone and not told, which task runs where."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(START_MS)
        self.executors = Executors(APP, 1, self.clock)
        self.cores: dict[str, int] = {}
        self.gone: set[str] = set()
        self.tasks: dict[int, tuple[str, str]] = {}
        self.told: tuple[wire.Executor, ...] = ()

    @rule(executor=st.sampled_from(IDS), cores=st.integers(0, 4))
    def add(self, executor: str, cores: int) -> None:
        self.executors.apply(added(executor, cores))
        if cores:
            self.cores[executor] = cores
            self.gone.discard(executor)

    @rule(executor=st.sampled_from(IDS))
    def tell_block_manager(self, executor: str) -> None:
        self.executors.apply(block_manager(executor))

    @rule(executor=st.sampled_from(IDS))
    def remove(self, executor: str) -> None:
        self.executors.apply(records.ExecutorRemoved(executor, START_MS))
        if self.cores.pop(executor, 0):
            self.gone.add(executor)
        self.tasks = {task: place for task, place in self.tasks.items() if place[0] != executor}

    @rule(task=st.integers(0, 9), executor=st.sampled_from(IDS), jid=st.sampled_from([JID, ""]))
    def start(self, task: int, executor: str, jid: str) -> None:
        self.executors.start_task(task, executor, jid)
        self.tasks[task] = (executor, jid)

    @rule(task=st.integers(0, 9))
    def end(self, task: int) -> None:
        self.executors.end_task(task)
        self.tasks.pop(task, None)

    @rule()
    def build_a_frame(self) -> None:
        self.told = self.executors.frames()

    @rule()
    def acknowledge_it(self) -> None:
        self.executors.forget_gone(self.told)
        self.gone -= {one.id.removeprefix(f"{APP}-") for one in self.told if one.gone}

    @invariant()
    def frames_are_the_model(self) -> None:
        found = self.executors.frames()
        assert sorted(one.id for one in found if one.gone) == sorted(f"{APP}-{one}" for one in self.gone)
        present = {one.id.removeprefix(f"{APP}-"): one for one in found if not one.gone}
        assert {name: one.cores for name, one in present.items()} == self.cores
        for name, one in present.items():
            assert one.running == Counter(jid for executor, jid in self.tasks.values() if executor == name)
        assert len({one.id for one in found}) == len(found)


ExecutorsModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestExecutorsModel = ExecutorsModel.TestCase
