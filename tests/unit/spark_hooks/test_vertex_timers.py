"""What is told of timers: Spark's counts, a timer service's, how late they were, and what stays unknown."""

from __future__ import annotations

import pytest

from spark_hooks import vertex_timers
from spark_hooks.vertex_timers import WaitingReports
from streamgauge import names
from streamgauge.buckets import HIGHEST_COUNTED_MS
from tests.unit.spark_hooks.spark_events import Run, Task, accumulator, stage
from tests.unit.spark_hooks.timer_runs import JVM, PYTHON, TimerRun, report

FIRED, RATE = names.NUM_FIRED_TIMERS, names.NUM_FIRED_TIMERS + names.PER_SECOND


def test_python_tells_what_was_registered_deleted_and_waits_and_nothing_of_what_fired() -> None:
    """Spark leaves the metric of expired timers at 0 there: what fired, and its time, are unknown and so absent."""
    run = TimerRun()
    reading = run.reading()
    for partition, (registered, keys) in enumerate([(8, 12), (12, 18)]):
        run.apply(run.task(reading, partition).end(run.told(registered=registered, keys=keys, families=2)))
    assert run.shown() == {
        "0.numRegisteredTimers": [8, 12],
        "0.numDeletedTimers": [0, 0],
        "0.numPendingTimers": [6, 9],
    }


def test_counts_add_up_over_batches_and_what_waits_is_the_latest_batchs() -> None:
    """The counts are those of this run; timers that a run before has left wait too."""
    run = TimerRun()
    for told in (run.told(registered=5, keys=10, families=2), None, None):
        reading = run.reading(tasks=1)
        run.apply(run.task(reading).end(told or run.told(deleted=2, families=2)), run.execution.end())
        run.begin()
    assert run.shown() == {"0.numRegisteredTimers": [5], "0.numDeletedTimers": [4], "0.numPendingTimers": [0]}


def test_what_waits_is_absent_where_the_store_counts_no_rows() -> None:
    """As with `trackTotalNumberOfRows` off: of its keys there is no word; 0 is one."""
    run = TimerRun()
    reading = run.reading(tasks=1)
    run.apply(run.task(reading).end(run.told(registered=5, families=2)))
    assert "0.numPendingTimers" not in run.shown()
    keys = accumulator(run.plan, PYTHON, vertex_timers.KEYS)
    run.apply(run.task(reading, stage_attempt=1).end((*run.told(families=2), keys, 0)))
    assert run.shown()["0.numPendingTimers"] == [0]


@pytest.mark.parametrize("families", [0, 1, 3])
def test_what_waits_is_absent_where_keys_are_not_all_timers(families: int) -> None:
    """Lists, and state that expires, have keys in column families of the same kind; without rows kept, none is told."""
    run = TimerRun()
    run.apply(run.task(run.reading(tasks=1)).end(run.told(registered=5, keys=25, families=families)))
    assert run.shown()["0.numPendingTimers"] == [None]


def test_the_jvms_flavour_tells_what_fired_and_how_long_it_took() -> None:
    """At its operator, and at its vertex as Flink does; 0 is a figure there."""
    run = TimerRun(JVM)
    reading = run.reading()
    run.apply(run.task(reading, 0).end(run.told(expired=4, took_ms=30)), run.task(reading, 1).end(run.told()))
    shown = run.shown()
    assert (shown["0." + FIRED], shown[FIRED], shown["0.timerProcessingTimeMs"]) == ([4, 0], [4, 0], [30, 0])


@pytest.mark.parametrize("node", [PYTHON, JVM])
def test_a_query_without_a_time_mode_has_no_timers(node: str) -> None:
    """Its lists would be taken for them."""
    run = TimerRun(node, mode="NoTime")
    run.apply(run.task(run.reading(tasks=1)).end(run.told(keys=4, families=2)))
    assert all(vertex.timers is None for vertex in run.job.graph.vertices.values())


def test_a_vertex_without_such_an_operator_has_no_timers() -> None:
    """As most have."""
    assert all(vertex.timers is None for vertex in Run().job.graph.vertices.values())


def test_a_timer_service_goes_before_sparks_counts() -> None:
    """It tells timers where Spark tells calls; a subtask that it told nothing of has no figure."""
    run = TimerRun()
    reading = run.reading()
    first, second = run.task(reading, 0), run.task(reading, 1)
    told = report(first, 2, fired_processing=1, registered=5, deleted=1, callback_ns=2_999_999)
    run.model.report([told])
    run.apply(first.end(run.told(registered=9, deleted=7, keys=2, families=2)), second.end(run.told(registered=1)))
    assert run.shown() == {
        FIRED: [3, None],
        RATE: [0, None],
        "0." + FIRED: [3, None],
        "0." + RATE: [0, None],
        "0.numRegisteredTimers": [5, None],
        "0.numDeletedTimers": [1, None],
        "0.timerProcessingTimeMs": [2, None],
        "0.numPendingTimers": [1, None],
    }


@pytest.mark.parametrize("first", ["report", "end"])
def test_a_report_counts_whether_it_comes_before_or_after_the_end_of_its_task(first: str) -> None:
    """Spark sends it before; events wait in a queue."""
    run = TimerRun()
    task = run.task(run.reading(tasks=1))
    if first == "report":
        run.model.report([report(task, 3)])
        assert FIRED not in run.shown()
    run.apply(task.end(run.told()))
    if first == "end":
        run.model.report([report(task, 3)])
    assert run.shown()[FIRED] == [3]


def test_only_the_success_that_counts_counts_its_report() -> None:
    """The first of a (stage, partition); a higher stage attempt replaces it, and what it told of lateness too."""
    run = TimerRun()
    reading = run.reading(tasks=1)
    failed, won, speculative = (run.task(reading, attempt=attempt) for attempt in range(3))
    run.model.report([report(failed, 100, lateness={7: 100})])
    run.apply(failed.end(succeeded=False))
    run.model.report([report(won, 3, lateness={5: 3}), report(speculative, 50, lateness={9: 50})])
    run.apply(won.end(run.told()), speculative.end(run.told()))
    assert (run.shown()[FIRED], run.lateness()) == ([3], {5: 3})
    again = run.task(reading, stage_attempt=1)
    run.model.report([report(again, 4, lateness={6: 4})])
    run.apply(again.end(run.told()))
    assert (run.shown()[FIRED], run.lateness()) == ([4], {6: 4})


def test_what_fired_does_not_go_back_when_a_success_is_replaced() -> None:
    """Counters of a run only grow."""
    run = TimerRun()
    reading = run.reading(tasks=1)
    for stage_attempt, fired in ((0, 5), (1, 2)):
        task = run.task(reading, stage_attempt=stage_attempt)
        run.model.report([report(task, fired)])
        run.apply(task.end(run.told()))
        assert run.shown()[FIRED] == [5]


def test_reports_of_several_services_of_a_task_add_up() -> None:
    """What they are called by is not told apart."""
    run = TimerRun()
    task = run.task(run.reading(tasks=1))
    run.model.report([report(task, 3), report(task, 4, service="other")])
    run.apply(task.end(run.told()))
    assert run.shown()[FIRED] == [7]


def test_of_several_operators_in_python_only_the_vertex_tells_what_fired() -> None:
    """Nobody tells which of them reported; Spark's own counts are told of each."""
    run = TimerRun(operators=2)
    task = run.task(run.reading(tasks=1))
    run.model.report([report(task, 3, registered=5, lateness={5: 3})])
    told = (
        metric for node in (run.plan.children[0], run.plan.children[0].children[0]) for metric in node.metrics[1::2]
    )
    run.apply(task.end(tuple(number for metric in told for number in (int(metric), 2))))
    shown = run.shown()
    assert {name for name in shown if FIRED in name} == {FIRED, RATE}
    assert shown[FIRED] == [3]
    assert shown["0.numRegisteredTimers"] == shown["1.numRegisteredTimers"] == [2]
    assert run.lateness() == {}


def test_lateness_is_counted_in_buckets() -> None:
    """By the lowest value of each; what none takes is above, and what is not late is 0."""
    run = TimerRun()
    task = run.task(run.reading(tasks=1))
    timers = run.vertex.timers
    assert timers is not None
    assert timers.lateness() is None
    late = {0: 1, -5: 1, 200: 2, 256: 1, 257: 1, HIGHEST_COUNTED_MS: 1, HIGHEST_COUNTED_MS + 1: 2, 10**12: 3}
    run.model.report([report(task, 12, lateness=late)])
    run.apply(task.end(run.told()))
    told = timers.lateness()
    assert told is not None
    assert told.metric == names.TIMER_LATENESS
    assert told.operator == run.vertex.operators[0].id
    assert told.buckets.above == 5
    assert told.buckets.sum_ms == 2 * 200 + 256 + 257 + HIGHEST_COUNTED_MS
    assert run.lateness() == {0: 2, 200: 2, 256: 2, max(run.lateness()): 1}


def test_a_rate_is_the_meters_of_what_fired() -> None:
    """Adopted at one tick, updated from the next: 120 timers in a span of 60 s."""
    run = TimerRun()
    task = run.task(run.reading(tasks=1))
    run.model.report([report(task, 120)])
    run.apply(task.end(run.told()))
    run.model.tick()
    assert run.shown()[RATE] == run.shown()["0." + RATE] == [0]
    run.model.tick()
    assert run.shown()[RATE] == run.shown()["0." + RATE] == [2]


def test_columns_are_made_anew_only_where_something_has_changed() -> None:
    """Frames travel every second."""
    run = TimerRun()
    timers = run.vertex.timers
    assert timers is not None
    before = timers.state()
    assert timers.state() == before
    task = run.task(run.reading(tasks=1))
    run.apply(task.end(run.told(registered=1)))
    registered = timers.state()
    assert registered != before
    run.model.report([report(task, 1)])
    assert timers.state() != registered


def test_waiting_reports_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest task's leave."""
    monkeypatch.setattr(vertex_timers, "WAITING", 2)
    run = Run()
    of = stage(run.ids, 3)
    tasks = [Task(run.ids, of, partition) for partition in range(3)]
    waiting = WaitingReports()
    for task in tasks:
        waiting.hold(report(task, task.partition))
    assert [len(waiting.claim(task.id, of.stage, task.partition)) for task in tasks] == [0, 1, 1]
    assert [len(waiting.claim(task.id, of.stage, task.partition)) for task in tasks] == [0, 0, 0]


def test_a_report_of_another_applications_task_is_not_claimed() -> None:
    """Each numbers its tasks from 0."""
    run = Run()
    task = Task(run.ids, stage(run.ids, 3), 1)
    waiting = WaitingReports()
    waiting.hold(report(task, 1))
    assert waiting.claim(task.id, task.stage.stage, 2) == []
