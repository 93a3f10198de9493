"""The time shares of a whole query, from Spark's events."""

from __future__ import annotations

from datetime import datetime, timezone
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from spark_hooks import plan, records
from spark_hooks.job import Job
from spark_hooks.records import PlanNode
from spark_hooks.vertex_columns import groups
from streamgauge import names
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import (
    Execution,
    Ids,
    Query,
    Task,
    new_model,
    scan,
    sink,
    stage,
    submitted,
    updates,
)

START_MS = 1_795_255_200_000
"""10:00:00, at a slot of every interval."""
HOUR_MS = 3_600_000


def stamp(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


def own(tree: PlanNode) -> PlanNode:
    """The exchange that a vertex reads, without what stands below it."""
    exchange = tree.children[0]
    return PlanNode(exchange.name, exchange.description, exchange.metrics, ())


class Pipeline:
    """A query `A -> B -> C` of two tasks a vertex, driven by a clock; times are ms since its start."""

    def __init__(self, interval_ms: int = 0) -> None:
        self.ids, self.clock = Ids(), ManualClock(now_ms=START_MS)
        self.model = new_model(self.clock)
        self.look()
        self.query = Query(1, trigger=f"ProcessingTimeTrigger({interval_ms})")
        self.apply(self.query.started(stamp(START_MS)))

    @property
    def job(self) -> Job:
        return self.model.jobs[self.query.jid]

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def look(self) -> None:
        self.model.time.look(self.clock.now_ms(), self.clock.monotonic_ns())

    def until(self, time_ms: int) -> None:
        """Time passes, with a tick every 5 s."""
        now_ms = self.clock.monotonic_ns() // 1_000_000
        for tick_ms in range(now_ms - now_ms % 5000 + 5000, time_ms + 1, 5000):
            self.clock.advance(tick_ms - self.clock.monotonic_ns() // 1_000_000)
            self.look()
            self.model.tick()
        self.clock.advance(time_ms - self.clock.monotonic_ns() // 1_000_000)
        self.look()

    def plan(self) -> records.PlanNode:
        ids = self.ids
        first = ids.shuffle(ids.node("Filter", scan(ids)))
        second = ids.shuffle(ids.node("HashAggregate", first), "hashpartitioning(other#1L, 3)")
        return sink(ids, ids.node("Sort", second))

    def begin(self, time_ms: int) -> Execution:
        self.until(time_ms)
        self.query.batch += 1
        execution = Execution(self.ids, self.plan(), self.query.describe())
        self.apply(execution.start(self.clock.now_ms()))
        return execution

    def run_stage(self, execution: Execution, place: int, begin_ms: int, *took_ms: int, wait_ms: int = 0) -> None:
        """A stage of vertex A, B or C; its tasks are launched at once, and wait as long for shuffle blocks."""
        told = stage(self.ids, len(took_ms), shuffles=place < 2)
        self.apply(execution.job(told), submitted(told))
        sort = execution.plan.children[0]
        aggregate = sort.children[0].children[0]
        tree = (aggregate.children[0].children[0], aggregate, sort)[place]
        speaks = (
            {"MicroBatchScan": 5} if place == 0 else {"Exchange.records read": 5, "Exchange.fetch wait time": wait_ms}
        )
        said = updates(own(tree) if place else tree, speaks)
        tasks = [Task(self.ids, told, number, launch_ms=START_MS + begin_ms) for number in range(len(took_ms))]
        self.apply(*(task.start() for task in tasks))
        for task, took in sorted(zip(tasks, took_ms, strict=True), key=lambda pair: pair[1]):
            self.until(begin_ms + took)
            self.apply(task.end(said, took_ms=took))
        self.apply(records.StageCompleted(told.stage, 0, START_MS + begin_ms + max(took_ms), None))

    def complete(self, execution: Execution, begin_ms: int, end_ms: int, **more: Any) -> None:
        self.until(end_ms)
        self.apply(
            execution.end(START_MS + end_ms),
            self.query.progress(
                timestamp=stamp(START_MS + begin_ms), durationMs={"triggerExecution": end_ms - begin_ms}, **more
            ),
        )

    def batch(self, begin_ms: int, *took_ms: int, **more: Any) -> int:
        """A micro-batch whose stages run one after the other; returns its end."""
        execution, at_ms = self.begin(begin_ms), begin_ms
        for place, took in enumerate(took_ms):
            self.run_stage(execution, place, at_ms, took, took)
            at_ms += took
        self.complete(execution, begin_ms, at_ms, **more)
        return at_ms

    def shares(self) -> list[tuple[int, int, int]]:
        """Busy, idle and back-pressured of subtask 0 of A, B and C, as far as they have run."""
        told = [shares for vertex in self.job.graph.vertices.values() if (shares := vertex.shares.shares()) is not None]
        return [(round(each.busy[0]), int(each.idle[0]), int(each.back_pressured[0])) for each in told]

    def column(self, place: int, metric: str) -> list[float]:
        vertex = list(self.job.graph.vertices.values())[place]
        [found] = [told for group in groups(vertex) for told in group.columns() if told.metric == metric]
        return found.values.tolist()


MORE = [{"description": "source", "endOffset": 5, "latestOffset": 6}]


def test_swamped_a_is_back_pressured_b_busy_and_c_idle() -> None:
    """As on Flink."""
    found, at_ms = Pipeline(), 0
    while at_ms < 70_000:
        at_ms = found.batch(at_ms, 500, 9000, 500, sources=MORE)
    assert found.shares() == [(50, 0, 950), (900, 50, 50), (50, 950, 0)]
    assert found.job.metrics()[names.BACKLOGGED] is True


def test_the_same_work_without_a_backlog_is_idle_where_it_is_held() -> None:
    """Nothing is held up where nothing waits."""
    found, at_ms = Pipeline(), 0
    while at_ms < 70_000:
        at_ms = found.batch(at_ms, 500, 9000, 500)
    assert found.shares() == [(50, 950, 0), (900, 100, 0), (50, 950, 0)]
    assert found.job.metrics()[names.BACKLOGGED] is False


def test_healthy_batches_on_a_trigger_are_never_back_pressured() -> None:
    """3 s of work every 10 s; at no tick."""
    found = Pipeline(interval_ms=10_000)
    for number in range(9):
        found.batch(10_000 * number, 500, 2000, 500)
        assert found.job.course.backlog.up is False
        assert all(pressed == 0 for _, _, pressed in found.shares())
        assert not any(found.column(place, names.IS_BACK_PRESSURED)[0] for place in range(3) if number)
    found.until(90_000)
    assert found.shares() == [(50, 950, 0), (200, 800, 0), (50, 950, 0)]


def test_batches_that_run_past_their_slots_hold_up_what_feeds_them() -> None:
    """From the second one that follows such a batch on; batch 0 may."""
    found, at_ms, up = Pipeline(interval_ms=5000), 0, []
    for _ in range(4):
        at_ms = found.batch(at_ms, 500, 5500, 500)
        up.append(found.job.course.backlog.up)
    assert up == [False, False, True, True]
    assert found.column(0, names.ACCUMULATED_BACK_PRESSURED_TIME)[0] > 0


def test_held_in_a_batch_under_way_is_back_pressured_now() -> None:
    """Who is busy is not; and nobody is between batches."""
    found = Pipeline()
    at_ms = found.batch(0, 1000, 1000, 1000, sources=MORE)
    execution = found.begin(at_ms)
    found.run_stage(execution, 0, at_ms, 1000, 1000)
    found.run_stage(execution, 1, at_ms + 1000, 2000, 2000)
    assert [found.column(place, names.IS_BACK_PRESSURED) for place in range(3)] == [[1, 1], [0, 0], [0, 0]]
    found.run_stage(execution, 2, at_ms + 3000, 1000, 1000)
    found.complete(execution, at_ms, at_ms + 4000, sources=MORE)
    found.until(10_000)
    assert [found.column(place, names.IS_BACK_PRESSURED) for place in range(3)] == [[0, 0]] * 3


def test_the_wait_for_shuffle_blocks_is_idle() -> None:
    """It is the exchange's own metric, of the task that reads it."""
    found = Pipeline()
    execution = found.begin(0)
    found.run_stage(execution, 0, 0, 1000, 1000)
    found.run_stage(execution, 1, 1000, 3000, 3900, wait_ms=1000)
    found.complete(execution, 0, 5000)
    found.until(10_000)
    assert found.column(1, names.ACCUMULATED_BUSY_TIME) == [2000, 2900]
    assert found.column(1, names.ACCUMULATED_IDLE_TIME) == [8000, 7100]


def test_before_the_first_tick_what_readers_want_is_not_a_number() -> None:
    """And the rest is absent; afterwards what has come since is not known yet."""
    found = Pipeline()
    execution = found.begin(0)
    found.run_stage(execution, 0, 0, 1000, 1000)
    vertex = next(iter(found.job.graph.vertices.values()))
    told = {each.metric: each for group in groups(vertex) if group.name == "time" for each in group.columns()}
    assert told.keys() == {names.BUSY_TIME, names.BACK_PRESSURED_TIME}
    assert all(str(each.values.tolist()) == "[nan, nan]" for each in told.values())
    found.until(5000)
    found.run_stage(execution, 0, 5000, 100, 100, 100)
    told = {each.metric: each for group in groups(vertex) if group.name == "time" for each in group.columns()}
    assert str(told[names.BUSY_TIME].values.tolist()[2]) == "nan"
    for metric in (names.IDLE_TIME, names.BACK_PRESSURED_TIME, names.SLOT_WAIT_TIME, names.ACCUMULATED_IDLE_TIME):
        present = told[metric].present
        assert present is not None
        assert (present.tolist(), told[metric].values.dtype.kind) == ([True, True, False], "i")


def test_a_batch_job_and_a_query_before_its_first_batch_are_not_backlogged_nor_not() -> None:
    """Nobody has said so."""
    found = Pipeline()
    assert names.BACKLOGGED not in found.job.metrics()
    execution = Execution(found.ids, found.plan(), "a batch")
    told = stage(found.ids, 1, shuffles=True)
    found.apply(execution.start(START_MS), execution.job(told), submitted(told))
    [job] = [each for each in found.model.jobs.values() if each.kind == "BATCH"]
    assert names.BACKLOGGED not in job.metrics()


def test_a_batch_job_has_accumulated_its_times_when_it_ends() -> None:
    """However short it was."""
    found = Pipeline()
    execution = Execution(found.ids, found.plan(), "a batch")
    found.apply(execution.start(START_MS))
    found.run_stage(execution, 0, 100, 300, 400)
    found.apply(execution.end(START_MS + 1000))
    [job] = [each for each in found.model.jobs.values() if each.kind == "BATCH"]
    times = next(iter(job.graph.vertices.values())).shares.accumulated()
    assert [each.tolist() for each in times] == [[300, 400], [700, 600], [0, 0]]


def test_a_batch_that_is_passed_or_broken_off_is_settled_as_the_one_before() -> None:
    """Its progress never comes."""
    found = Pipeline()
    at_ms = found.batch(0, 1000, 1000, 1000, sources=MORE)
    lost = found.begin(at_ms)
    found.run_stage(lost, 0, at_ms, 1000, 1000)
    at_ms += 4000
    last = found.begin(at_ms)
    found.run_stage(last, 0, at_ms, 1000, 1000)
    assert found.column(0, names.ACCUMULATED_BACK_PRESSURED_TIME) == [2000, 2000]
    found.until(at_ms + 3000)
    found.apply(found.query.terminated(START_MS + at_ms + 3000))
    assert found.column(0, names.ACCUMULATED_BACK_PRESSURED_TIME) == [2000 + 3000 + 2000] * 2
    assert found.column(0, names.ACCUMULATED_BUSY_TIME) == [3000, 3000]


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_set_within_a_batch_changes_nothing(step_ms: int) -> None:
    """Spark tells the batch's length by the wall clock, and is not believed."""
    found = Pipeline()
    execution = found.begin(0)
    found.run_stage(execution, 0, 0, 1000, 1000)
    found.clock.step_wall(step_ms)
    found.until(3000)
    found.apply(
        execution.end(START_MS + 3000 + step_ms),
        found.query.progress(timestamp=stamp(START_MS), durationMs={"triggerExecution": 3000 + step_ms}, sources=MORE),
    )
    found.until(10_000)
    assert found.column(0, names.ACCUMULATED_BACK_PRESSURED_TIME) == [2000, 2000]
    assert found.shares() == [(100, 700, 200)]


class Anything:
    """Events of a pipeline in any order: late, told again, or never; the clock is set now and then."""

    def __init__(self, random: Random) -> None:
        self.random, self.found = random, Pipeline(random.choice((0, 1000)))
        self.executions: list[Execution] = []
        self.stages: list[records.Stage] = []
        self.tasks: list[Task] = []
        self.seen: dict[str, list[tuple[int, int, int]]] = {}
        self.quiet_ms: dict[str, tuple[int, list[int]]] = {}

    def now(self) -> int:
        """A wall time that an event may tell: of these last seconds."""
        return self.found.clock.now_ms() - self.random.choice((0, 0, self.random.randint(0, 4000)))

    def begin(self) -> None:
        query, ids = self.found.query, self.found.ids
        query.batch += 1
        self.executions.append(Execution(ids, self.found.plan(), query.describe()))
        self.found.apply(self.executions[-1].start(self.now()))

    def launch(self) -> None:
        if self.executions:
            execution, ids = self.random.choice(self.executions), self.found.ids
            told = stage(ids, self.random.randint(1, 4), shuffles=self.random.random() < 0.7)
            self.found.apply(execution.job(told), submitted(told))
            self.stages.append(told)
            for partition in range(told.tasks):
                if self.random.random() < 0.9:
                    self.tasks.append(Task(ids, told, partition, launch_ms=self.now()))
                    self.found.apply(self.tasks[-1].start())

    def finish(self) -> None:
        if self.tasks and self.executions:
            task = self.random.choice(self.tasks)
            plan = self.random.choice(self.executions).plan
            node = self.random.choice(("MicroBatchScan", "Filter", "HashAggregate"))
            said = updates(plan, {node: 3}) if self.random.random() < 0.7 else ()
            took_ms = self.random.choice((0, max(self.now() - task.launch_ms, 0)))
            self.found.apply(task.end(said, succeeded=self.random.random() < 0.9, took_ms=took_ms))

    def relaunch(self) -> None:
        if self.tasks:
            task = self.random.choice(self.tasks)
            self.tasks.append(Task(self.found.ids, task.stage, task.partition, attempt=1, launch_ms=self.now()))
            self.found.apply(self.tasks[-1].start())

    def complete_stage(self) -> None:
        if self.stages:
            told = self.random.choice(self.stages)
            self.found.apply(
                records.StageCompleted(told.stage, 0, self.now(), self.random.choice((None, None, "lost")))
            )

    def end(self) -> None:
        if self.executions:
            execution = self.random.choice(self.executions)
            self.found.apply(execution.end(self.now()))

    def progress(self) -> None:
        took = {"triggerExecution": self.random.randint(-10, 6000)}
        sources = self.random.choice(([], MORE))
        self.found.apply(self.found.query.progress(timestamp=stamp(self.now()), durationMs=took, sources=sources))

    def set_clock(self) -> None:
        self.found.clock.step_wall(self.random.choice((HOUR_MS, -HOUR_MS)))
        self.found.look()

    def wait(self) -> None:
        self.found.clock.advance(self.random.choice((10, 700, 3000)))
        self.found.look()

    def tick(self) -> None:
        self.found.clock.advance(self.random.choice((1, 4990, 5000, 9000)))
        self.found.look()
        self.found.model.tick()
        self.found.model.tick()
        now_ms = self.found.model.time.now_ms
        assert now_ms is not None
        for vertex_id, vertex in self.found.job.graph.vertices.items():
            shares, times = vertex.shares.shares(), vertex.shares.accumulated()
            if shares is not None:
                parts = (shares.busy + shares.idle + shares.back_pressured)[shares.present]
                assert (parts == 1000).all()
                assert all((each >= 0).all() for each in shares)
                assert (shares.slot_wait <= shares.busy).all()
            before = self.seen.get(vertex_id, [])
            self.seen[vertex_id] = list(zip(*(each.tolist() for each in times), strict=True))
            for old, new in zip(before, self.seen[vertex_id], strict=False):
                assert all(one <= other for one, other in zip(old, new, strict=True))
            # Whatever came before, once no batch is under way all time is told; a source's when the run has ended.
            if self.found.job.course.timeline.batch is None and not vertex.is_source:
                sums = [sum(row) for row in self.seen[vertex_id]]
                then_ms, old_sums = self.quiet_ms.get(vertex_id, (now_ms, []))
                assert all(new - old == now_ms - then_ms for old, new in zip(old_sums, sums, strict=False))
                self.quiet_ms[vertex_id] = (now_ms, sums)


STEPS = ("begin", "launch", "launch", "finish", "finish", "finish", "relaunch", "complete_stage", "end", "progress",
         "set_clock", "wait", "wait", "tick", "tick")  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32).map(Random), st.lists(st.sampled_from(STEPS), min_size=20, max_size=80))
def test_the_three_shares_are_all_of_a_second_whatever_is_told(random: Random, steps: list[str]) -> None:
    """At every tick of every subtask; accumulated times never go back, and are all time once all batches have ended."""
    driven = Anything(random)
    for step in ("begin", "launch", *steps):
        getattr(driven, step)()
    driven.found.apply(driven.found.query.progress(timestamp=stamp(driven.found.clock.now_ms())))
    driven.tick()
    driven.tick()
    end_ms = driven.found.model.time.now_ms
    driven.found.apply(driven.found.query.terminated(driven.found.clock.now_ms()))
    for vertex in driven.found.job.graph.vertices.values():
        sums = [sum(row) for row in zip(*(each.tolist() for each in vertex.shares.accumulated()), strict=True)]
        assert sums == [end_ms - since_ms for since_ms in vertex.shares._since_ms.tolist()]


def test_what_a_source_was_held_before_the_first_backlogged_batch_was_known_is_told() -> None:
    """A tick between its trigger and its first execution sees no batch."""
    found = Pipeline()
    found.batch(0, 1000, 1000, 1000)
    execution = found.begin(6000)
    found.run_stage(execution, 0, 6000, 1000, 1000)
    found.complete(execution, 4000, 8000, sources=MORE)
    found.apply(found.query.terminated(START_MS + 8000))
    assert found.column(0, names.ACCUMULATED_BACK_PRESSURED_TIME) == [3000, 3000]
    assert found.column(0, names.ACCUMULATED_BUSY_TIME) == [2000, 2000]
    assert found.column(0, names.ACCUMULATED_IDLE_TIME) == [3000, 3000]


def test_a_source_that_joins_a_broadcast_is_a_source() -> None:
    """A broadcast is no stream of records."""
    found = Pipeline()
    found.batch(0, 1000, 1000, 1000)
    first, second, _ = found.job.graph.vertices.values()
    assert (first.is_source, second.is_source) == (True, False)
    [shuffle] = second.inputs.values()
    first.inputs["other"] = plan.Exchange("BroadcastExchange", "", {}, shuffle.source, ())
    assert first.is_source


def test_a_task_that_is_launched_again_has_not_waited_for_a_slot_meanwhile() -> None:
    """Its first attempt had one."""
    found = Pipeline()
    execution, told = found.begin(0), stage(found.ids, 2, shuffles=True)
    found.apply(execution.job(told), submitted(told))
    tasks = [
        Task(found.ids, told, partition, attempt, launch_ms=START_MS + launch_ms)
        for partition, attempt, launch_ms in ((0, 0, 0), (1, 0, 1000), (1, 1, 3000))
    ]
    said = updates(execution.plan, {"MicroBatchScan": 5})
    found.apply(*(task.start() for task in tasks), tasks[1].end(succeeded=False, took_ms=1000))
    found.apply(tasks[0].end(said, took_ms=4000), tasks[2].end(said, took_ms=1000))
    found.apply(records.StageCompleted(told.stage, 0, START_MS + 4000, None))
    found.complete(execution, 0, 4000)
    found.until(5000)
    assert found.column(0, names.SLOT_WAIT_TIME) == [0, 200]
    assert found.column(0, names.BUSY_TIME) == [800, 800]
