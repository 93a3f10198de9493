"""Whatever becomes of a query's tasks, its timers are those that plain rules give for the list of their attempts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from spark_hooks import records
from spark_hooks.timer_reports import TimerReport
from streamgauge import names
from streamgauge.buckets import bucket_index
from tests.unit.spark_hooks.spark_events import Task
from tests.unit.spark_hooks.timer_runs import TimerRun, report

PARTITIONS = 3


@dataclass
class Attempt:
    """A task attempt; `told` are Spark's own counts, `reports` what its timer services reported."""

    task: Task
    succeeded: bool
    told: dict[str, int]
    reports: list[TimerReport]


@dataclass
class Slow:
    """The rules: of each (stage, partition) the first success of the highest stage attempt that had one counts."""

    ended: list[Attempt] = field(default_factory=list)
    greatest: Counter[int] = field(default_factory=Counter)

    def won(self) -> list[Attempt]:
        winners: dict[tuple[int, int], Attempt] = {}
        for each in self.ended:
            key = (each.task.stage.stage, each.task.partition)
            before = winners.get(key)
            if each.succeeded and (before is None or each.task.stage_attempt > before.task.stage_attempt):
                winners[key] = each
        return list(winners.values())

    def fired(self) -> dict[int, int]:
        """Subtask → timers; of those that anything was reported of, and no less than ever before."""
        now: Counter[int] = Counter()
        for each in self.won():
            now[each.task.partition] += sum(told.fired_event + told.fired_processing for told in each.reports)
        self.greatest |= now
        reported = {each.task.partition for each in self.won() if each.reports}
        return {subtask: self.greatest[subtask] for subtask in reported}

    def registered(self) -> Counter[int]:
        """Subtask → what Spark counted."""
        found: Counter[int] = Counter()
        for each in self.won():
            found[each.task.partition] += each.told["registered"]
        return found

    def pending(self) -> dict[int, int]:
        """Subtask → keys in the store as its latest stage left them, halved."""
        latest: dict[int, Attempt] = {}
        for each in self.won():
            before = latest.get(each.task.partition)
            run = (each.task.stage.stage, each.task.stage_attempt)
            if before is None or run > (before.task.stage.stage, before.task.stage_attempt):
                latest[each.task.partition] = each
        return {subtask: each.told["keys"] // 2 for subtask, each in latest.items()}

    def late(self) -> dict[int, int]:
        """Bucket → timers."""
        found: Counter[int] = Counter()
        for told in (told for each in self.won() for told in each.reports):
            for late_ms, timers in told.lateness.items():
                found[int(bucket_index(np.array([late_ms]))[0])] += timers
        return dict(found)


def attempts(run: TimerRun, random: Random, services: bool, batches: int) -> list[Attempt]:
    """The task attempts of some batches, all launched; of each partition as many as it may have."""
    found = []
    for _ in range(batches):
        reading = run.reading(PARTITIONS)
        for partition in range(PARTITIONS):
            for stage_attempt in range(random.choice((1, 1, 2))):
                places = [(partition, stage_attempt, attempt) for attempt in range(random.choice((1, 1, 2, 3)))]
                found += [made(run, random, reading, place, services) for place in places]
    return found


def made(run: TimerRun, random: Random, reading: records.Stage, place: tuple[int, int, int], services: bool) -> Attempt:
    partition, stage_attempt, attempt = place
    task = run.task(reading, partition, stage_attempt=stage_attempt, attempt=attempt)
    told = {"registered": random.randint(0, 9), "keys": 2 * random.randint(1, 9), "families": 2}
    reports = []
    for service in random.sample(("a", "b"), random.choice((0, 1, 1, 2)) if services else 0):
        lateness = {random.choice((0, 3, 200, 256, 10**6)): random.randint(1, 5) for _ in range(random.randint(0, 3))}
        fired = sum(lateness.values())
        reports.append(report(task, fired, fired_processing=1, service=service, lateness=lateness))
    return Attempt(task, random.random() < 0.7, told, reports)


@given(random=st.randoms(use_true_random=False), services=st.booleans())
@settings(max_examples=150, deadline=None)
def test_timers_are_those_of_the_attempts_that_count(random: Random, services: bool) -> None:
    """In any order of ends, and with reports before or after them: retries, speculation, stages that ran again."""
    run, slow = TimerRun(), Slow()
    pending = attempts(run, random, services, batches=2)
    random.shuffle(pending)
    for attempt in pending:
        # A loser may report too: Spark merges the accumulators of every success of a task that writes a shuffle.
        now, after = [], []
        for told in attempt.reports if attempt.succeeded else ():
            (now if random.random() < 0.8 else after).append(told)
        run.model.report(now)
        run.apply(attempt.task.end(run.told(**attempt.told), attempt.succeeded))
        run.model.report(after)
        slow.ended.append(attempt)
        compare(run, slow)


def compare(run: TimerRun, slow: Slow) -> None:
    shown = run.shown() if slow.won() else {}
    fired = slow.fired()
    for metric in (names.NUM_FIRED_TIMERS, f"0.{names.NUM_FIRED_TIMERS}"):
        told = dict(enumerate(shown.get(metric, ())))
        assert {subtask: value for subtask, value in told.items() if value is not None} == fired, metric
    if slow.won() and not fired:
        registered = shown[f"0.{names.NUM_REGISTERED_TIMERS}"]
        assert registered == [slow.registered()[subtask] for subtask in range(len(registered))]
    waiting = dict(enumerate(shown.get(f"0.{names.NUM_PENDING_TIMERS}", ())))
    assert {subtask: value for subtask, value in waiting.items() if value is not None} == slow.pending()
    assert run.lateness() == slow.late()
