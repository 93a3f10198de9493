"""Busy, idle and back-pressured time, and what adds up whatever happens."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_hooks.spans import Spans
from spark_hooks.stages import Stage
from spark_hooks.time_shares import SNAPSHOTS, TimeShares
from spark_hooks.timeline import Batch
from tests.unit.spark_hooks.stage_runs import VERTEX, Times, stage_run

Row = tuple[float, int, int, int]
"""Busy, idle, back-pressured, waited for a slot."""


def told(found: TimeShares) -> list[Row | None]:
    shares = found.shares()
    if shares is None:
        return []
    rows = zip(*(each.tolist() for each in shares[1:]), strict=True)
    return [row if present else None for present, row in zip(shares.present.tolist(), rows, strict=True)]


def accumulated(found: TimeShares) -> list[tuple[int, int, int]]:
    return list(zip(*(each.tolist() for each in found.accumulated()), strict=True))


def spans(begin_ms: int, end_ms: int, *stages: Stage, is_source: bool = False, waiting: int = 0) -> Spans:
    return Spans.of(Batch(1, begin_ms, end_ms=end_ms), stages, VERTEX, is_source, waiting)


def work(first_ms: int, end_ms: int) -> Stage:
    """A stage of one task."""
    return stage_run(first_ms, end_ms, {0: (first_ms, end_ms)})


def test_before_the_first_tick_nothing_is_known() -> None:
    """Though batches have ended; a clock that stands still tells nothing either."""
    found = TimeShares()
    found.settle(spans(0, 1000, work(0, 1000)), 1, False)
    assert (found.shares(), accumulated(found)) == (None, [(0, 0, 0)])
    found.tick(2000, 1, None, False)
    assert told(found) == [(500.0, 500, 0, 0)]
    revision = found.revision
    for now_ms in (2000, 1999):
        found.tick(now_ms, 1, None, False)
    assert (found.revision, told(found)) == (revision, [(500.0, 500, 0, 0)])


def test_a_vertex_without_subtasks_has_no_times() -> None:
    """Before its first stage."""
    found = TimeShares()
    found.tick(1000, 0, None, False)
    assert (found.shares(), found.size, found.revision) == (None, 0, 0)


def test_the_window_is_the_filled_part_of_60_seconds() -> None:
    """No ramp at first; what is older than 12 spans is forgotten."""
    found, shares = TimeShares(), []
    found.settle(spans(0, 5000, work(0, 5000)), 1, False)
    for number in range(1, SNAPSHOTS + 2):
        found.tick(5000 * number, 1, None, False)
        shares.append(told(found)[0])
    assert shares[:3] == [(1000.0, 0, 0, 0), (500.0, 500, 0, 0), (333.0, 667, 0, 0)]
    assert shares[SNAPSHOTS - 2] == (83.0, 917, 0, 0)
    assert shares[SNAPSHOTS - 1 :] == [(0.0, 1000, 0, 0)] * 2
    assert accumulated(found) == [(5000, 65_000, 0)]


def test_time_is_that_which_passed_between_ticks() -> None:
    """They may come late."""
    found = TimeShares()
    found.tick(0, 1, None, False)
    assert told(found) == [None]
    found.settle(spans(1000, 5000, work(1000, 5000)), 1, False)
    found.tick(8000, 1, None, False)
    assert told(found) == [(500.0, 500, 0, 0)]


def test_subtasks_that_come_later_count_from_then_on() -> None:
    """Those past the parallelism of the latest stage are idle."""
    found = TimeShares()
    found.settle(spans(0, 1000, stage_run(0, 1000, {0: (0, 1000), 1: (0, 1000)})), 2, False)
    found.settle(spans(1000, 2000, work(1000, 2000)), 2, False)
    three = stage_run(2000, 3000, dict.fromkeys(range(3), (2000, 3000)))
    found.settle(spans(2000, 3000, three), 3, False)
    found.tick(4000, 3, None, False)
    assert told(found) == [(750.0, 250, 0, 0), (500.0, 500, 0, 0), (500.0, 500, 0, 0)]
    assert accumulated(found) == [(3000, 1000, 0), (2000, 2000, 0), (1000, 1000, 0)]


@pytest.mark.parametrize(("backlogged", "pressed"), [(True, 700), (False, 0)])
def test_held_time_is_back_pressured_where_the_query_was_backlogged(backlogged: bool, pressed: int) -> None:
    """Else it is idle."""
    found = TimeShares()
    found.settle(spans(0, 1000, work(200, 500), is_source=True), 1, backlogged)
    found.tick(1000, 1, None, False)
    assert told(found) == [(300.0, 700 - pressed, pressed, 0)]
    assert accumulated(found) == [(300, 700 - pressed, pressed)]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_held_time_is_put_right_once_the_batch_has_told(before: bool, after: bool) -> None:
    """Until then it counts as in the batch before; what had been read meanwhile is put right too."""
    found = TimeShares()
    found.tick(0, 1, None, before)
    for number in (1, 2):
        found.tick(1000 * number, 1, spans(0, -1, work(0, 500)), before)
    assert told(found) == [(250.0, 0, 750, 0) if before else (250.0, 750, 0, 0)]
    assert found.is_back_pressured.tolist() == [before]
    # Of accumulated times nothing is told before it is known.
    assert accumulated(found) == [(500, 0, 0)]
    found.settle(spans(0, 3000, work(0, 500)), 1, after)
    for number in range(4, SNAPSHOTS + 2):
        found.tick(1000 * number, 1, None, after)
    # From second 1, which was looked at while the batch ran, to second 14: two of them held.
    assert told(found) == [(0.0, 846, 154, 0) if after else (0.0, 1000, 0, 0)]
    assert accumulated(found) == [(500, 11_000, 2500) if after else (500, 13_500, 0)]
    assert found.is_back_pressured.tolist() == [False]


def test_what_turns_out_to_be_another_vertexs_is_put_right() -> None:
    """Shares at once; an accumulated time never goes back, the next busy time makes up for it."""
    found = TimeShares()
    found.tick(0, 1, None, False)
    found.tick(1000, 1, spans(0, -1, stage_run(0, None, {0: (0, None)})), False)
    assert told(found) == [(1000.0, 0, 0, 0)]
    found.settle(spans(0, 2000), 1, False)
    found.tick(2000, 1, None, False)
    assert told(found) == [(0.0, 1000, 0, 0)]
    assert accumulated(found) == [(1000, 1000, 0)]
    found.settle(spans(2000, 4000, work(2000, 4000)), 1, False)
    found.tick(4000, 1, None, False)
    assert accumulated(found) == [(2000, 2000, 0)]


def test_the_end_of_a_run_settles_its_times() -> None:
    """Of a batch job too, which may be over before anybody looks."""
    found = TimeShares()
    found.end(5)
    assert found.size == 0
    found.settle(spans(0, 3000, work(1000, 2000)), 1, False)
    found.end(3500)
    assert (found.shares(), accumulated(found)) == (None, [(1000, 2500, 0)])
    assert found.is_back_pressured.tolist() == [False]


def test_batches_that_overlap_count_once() -> None:
    """A batch's end may be told a little later than the next one's beginning."""
    found = TimeShares()
    found.settle(spans(0, 1000, work(0, 1000)), 1, False)
    found.settle(spans(500, 2000, work(500, 2000)), 1, False)
    found.tick(4000, 1, None, False)
    assert (told(found), accumulated(found)) == ([(500.0, 500, 0, 0)], [(2000, 2000, 0)])


# ---- DESIGN's words, millisecond by millisecond


@dataclass
class Planned:
    """A batch as it will have been; `stages` are (first, completed, tasks, times)."""

    begin_ms: int
    end_ms: int
    backlogged: bool
    stages: list[tuple[int, int, int, dict[int, tuple[int, int]]]]

    def as_of(self, now_ms: int) -> list[Stage]:
        """What is known of its stages at that time."""
        found = []
        for first_ms, completed_ms, tasks, times in self.stages:
            if first_ms <= now_ms:
                known: Times = {
                    partition: (launch_ms, finish_ms if finish_ms <= now_ms else None)
                    for partition, (launch_ms, finish_ms) in times.items()
                    if launch_ms <= now_ms
                }
                found.append(stage_run(first_ms, completed_ms if completed_ms <= now_ms else None, known, tasks))
        return found

    def state(self, at_ms: int, subtask: int, now_ms: int, source: bool, waiting: int) -> str:
        """What a subtask does in a millisecond of the batch, as known at `now_ms`."""
        is_over = self.end_ms <= now_ms
        mine = []
        for first_ms, completed_ms, tasks, times in self.stages if is_over else self.known(now_ms):
            runs = completed_ms > now_ms and not is_over
            if subtask in times or (runs and subtask < tasks):
                launch_ms, finish_ms = times.get(subtask, (2**40, 2**40))
                mine.append((first_ms, completed_ms, launch_ms, finish_ms))
        for first_ms, completed_ms, launch_ms, finish_ms in mine:
            if first_ms <= at_ms < completed_ms:
                if at_ms >= finish_ms:
                    return "idle"
                return "slot wait" if at_ms < launch_ms else "busy"
        was_in_one = any(completed_ms <= at_ms for _, completed_ms, _, _ in mine)
        waits = source and (mine or (not is_over and not self.known(now_ms) and subtask < waiting))
        return "held" if was_in_one or waits else "idle"

    def known(self, now_ms: int) -> list[tuple[int, int, int, dict[int, tuple[int, int]]]]:
        return [
            (
                first_ms,
                completed_ms if completed_ms <= now_ms else 2**40,
                tasks,
                {
                    partition: (launch_ms, finish_ms if finish_ms <= now_ms else 2**40)
                    for partition, (launch_ms, finish_ms) in times.items()
                    if launch_ms <= now_ms
                },
            )
            for first_ms, completed_ms, tasks, times in self.stages
            if first_ms < now_ms
        ]


def planned(random: Random, subtasks: int) -> list[Planned]:
    batches, at_ms = [], random.randint(0, 30)
    for _ in range(random.randint(1, 6)):
        begin_ms, end_ms = at_ms, at_ms + random.randint(1, 150)
        stages = []
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            first_ms = random.randint(begin_ms, end_ms - 1)
            completed_ms = random.randint(first_ms + 1, end_ms)
            tasks = random.randint(1, subtasks)
            times = {}
            for partition in random.sample(range(tasks), random.randint(1, tasks)):
                launch_ms = random.randint(first_ms, completed_ms - 1)
                times[partition] = (launch_ms, random.randint(launch_ms, completed_ms))
            stages.append((first_ms, completed_ms, tasks, times))
        batches.append(Planned(begin_ms, end_ms, random.random() < 0.5, sorted(stages, key=lambda stage: stage[0])))
        at_ms = end_ms + random.choice((0, 0, random.randint(1, 60)))
    return batches


def by_the_word(
    batches: list[Planned], subtask: int, window: range, now_ms: int, source: bool, waiting: int
) -> dict[str, int]:
    """Busy, back-pressured and waited ms of a subtask in a window, as known at `now_ms`."""
    found = dict.fromkeys(("busy", "slot wait", "held", "idle", "back-pressured"), 0)
    up = False
    for batch in batches:
        is_over = batch.end_ms <= now_ms
        up = batch.backlogged if is_over else up
        for at_ms in range(max(batch.begin_ms, window.start), min(batch.end_ms, window.stop)):
            found[batch.state(at_ms, subtask, now_ms, source, waiting)] += 1
        if up:
            found["back-pressured"] += found["held"]
        found["held"] = 0
    return found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32).map(Random), st.booleans())
def test_shares_are_those_of_a_walk_through_every_millisecond(random: Random, source: bool) -> None:
    """The vectorised figures are what each sentence says of each subtask and each millisecond."""
    subtasks, waiting = random.randint(1, 4), random.randint(0, 4)
    batches = planned(random, subtasks)
    found, up, settled, ticks = TimeShares(), False, 0, [0]
    found.tick(0, subtasks, None, False)
    for now_ms in sorted(random.sample(range(1, batches[-1].end_ms + 40), random.randint(1, 20))):
        while settled < len(batches) and batches[settled].end_ms <= now_ms:
            batch = batches[settled]
            up, settled = batch.backlogged, settled + 1
            told_of = batch.as_of(batch.end_ms)
            found.settle(spans(batch.begin_ms, batch.end_ms, *told_of, is_source=source), subtasks, up)
        under_way = None
        if settled < len(batches) and batches[settled].begin_ms <= now_ms:
            batch = batches[settled]
            stages = [stage for stage in batch.as_of(now_ms) if stage.first_ms < now_ms]
            under_way = spans(batch.begin_ms, -1, *stages, is_source=source, waiting=waiting)
        found.tick(now_ms, subtasks, under_way, up)
        ticks.append(now_ms)
        since_ms = ticks[0] if len(ticks) < SNAPSHOTS else ticks[-SNAPSHOTS]
        passed = now_ms - since_ms
        for subtask, row in enumerate(told(found)):
            assert row is not None
            by_word = by_the_word(batches, subtask, range(since_ms, now_ms), now_ms, source, waiting)
            pressed, busy = by_word["back-pressured"], by_word["busy"] + by_word["slot wait"]
            assert row[2] == int(np.rint(1000 * pressed / passed))
            assert row[0] == pytest.approx(1000 * busy / passed, abs=1)
            assert row[3] == int(np.rint(1000 * by_word["slot wait"] / passed))
            assert row[0] + row[1] + row[2] == 1000
