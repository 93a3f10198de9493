"""What subtasks did in one batch."""

from __future__ import annotations

import numpy as np
import pytest

from spark_hooks.spans import Spans
from spark_hooks.stages import Stage
from spark_hooks.timeline import Batch
from tests.unit.spark_hooks.stage_runs import VERTEX, stage_run

BEGIN_MS, END_MS = 100, 1100


def spent(
    *stages: Stage,
    until_ms: int = END_MS,
    end_ms: int = END_MS,
    size: int = 2,
    is_source: bool = False,
    waiting: int = 0,
    since_ms: int = 0,
) -> list[tuple[int, int, int, bool]]:
    """Run, waited for a slot, held, is held; of each subtask."""
    batch = Batch(1, BEGIN_MS, end_ms=end_ms)
    found = Spans.of(batch, stages, VERTEX, is_source, waiting).spent(until_ms, np.full(size, since_ms))
    return list(zip(*(each.tolist() for each in found), strict=True))


def test_a_subtask_is_busy_from_its_stages_first_launch_to_its_own_finish() -> None:
    """Until then it is idle; then it waits for the others, and from the stage's end on it is held."""
    stage = stage_run(300, 800, {0: (300, 500), 1: (300, 800)})
    assert spent(stage) == [(200, 0, 300, True), (500, 0, 300, True)]


def test_waiting_for_a_core_is_busy() -> None:
    """The vertex holds the cluster; that part is told apart."""
    stage = stage_run(300, 800, {0: (300, 500), 1: (500, 800)})
    assert spent(stage) == [(200, 0, 300, True), (500, 200, 300, True)]


def test_the_wait_for_shuffle_blocks_is_idle() -> None:
    """Of the subtask's own run, however long it says that it waited."""
    stage = stage_run(300, 800, {0: (300, 500), 1: (400, 800)}, waits={0: 50, 1: 9999})
    assert spent(stage) == [(150, 0, 300, True), (100, 100, 300, True)]
    # Half of the way half of the wait: when it waited nobody tells.
    assert spent(stage, until_ms=400) == [(75, 0, 0, False), (100, 100, 0, False)]


@pytest.mark.parametrize("end_ms", [END_MS, -1])
def test_a_source_is_held_until_its_first_launch(end_ms: int) -> None:
    """From the trigger on, whether the batch has ended or not."""
    stage = stage_run(300, 800, {0: (300, 800), 1: (300, 800)})
    assert spent(stage, is_source=True, end_ms=end_ms) == [(500, 0, 500, True)] * 2
    assert spent(stage, is_source=True, end_ms=end_ms, until_ms=250) == [(0, 0, 150, True)] * 2


def test_a_source_is_held_while_its_stage_is_yet_to_come() -> None:
    """As many subtasks as it is known to have; in a batch that has ended none came, and they were idle."""
    held = [(0, 0, 1000, True), (0, 0, 0, False)]
    assert spent(is_source=True, waiting=1, end_ms=-1) == held
    assert spent(is_source=True, waiting=1) == [(0, 0, 0, False)] * 2
    assert spent(is_source=False, waiting=1, end_ms=-1) == [(0, 0, 0, False)] * 2
    running = stage_run(1100, None, {})
    assert spent(running, is_source=True, waiting=1, end_ms=-1, size=1) == [(0, 0, 0, False)]


def test_a_stage_that_runs_is_known_up_to_now() -> None:
    """What runs, or waits for a slot, is busy; what has finished waits for the others."""
    stage = stage_run(300, None, {0: (300, 500), 1: (400, None)}, tasks=3)
    expected = [(200, 0, 0, False), (700, 100, 0, False), (700, 700, 0, False), (0, 0, 0, False)]
    assert spent(stage, until_ms=1000, end_ms=-1, size=4) == expected


def test_a_partition_that_a_completed_stage_never_launched_is_idle() -> None:
    """Nor is it held."""
    assert spent(stage_run(300, 800, {1: (300, 800)}, tasks=2)) == [(0, 0, 0, False), (500, 0, 300, True)]


def test_stages_of_a_vertex_run_one_after_the_other() -> None:
    """In between it is held."""
    first, second = stage_run(300, 400, {0: (300, 400)}), stage_run(600, 900, {0: (700, 800)})
    assert spent(first, second, size=1) == [(300, 100, 400, True)]
    assert spent(first, second, size=1, until_ms=650) == [(150, 50, 200, False)]
    assert spent(first, second, size=1, until_ms=500) == [(100, 0, 100, True)]


def test_stages_that_overlap_are_cut() -> None:
    """Nobody does two things at once: what began first counts; a subtask of one of them only loses nothing."""
    first = stage_run(300, 700, {0: (300, 700)})
    second = stage_run(400, 900, {0: (400, 900), 1: (400, 600)})
    assert spent(first, second) == [(600, 0, 200, True), (200, 0, 200, True)]
    within = stage_run(400, 500, {0: (400, 500)})
    assert spent(first, within, size=1) == [(400, 0, 400, True)]
    assert spent(stage_run(300, None, {0: (300, None)}), within, size=1, end_ms=-1) == [(800, 0, 0, False)]
    assert spent(first, first, size=1) == spent(first, size=1)


def test_a_retry_waits_for_its_first_launch_only() -> None:
    """In between it worked, in vain."""
    stage = stage_run(300, 800, {0: (700, 800)})
    stage.relaunched[0] = 400
    assert spent(stage, size=1) == [(500, 100, 300, True)]


def test_a_success_whose_launch_was_lost_tells_it_itself() -> None:
    """By how long it took."""
    stage = stage_run(300, 800, {0: (400, 800)})
    del stage.launches[0]
    assert spent(stage, size=1) == [(500, 100, 300, True)]


def test_a_stage_whose_end_was_lost_ended_with_its_last_task() -> None:
    """If the batch has ended, and nothing was left to do; else it ran to the batch's end."""
    all_won = stage_run(300, None, {0: (300, 500), 1: (300, 800)})
    assert spent(all_won) == [(200, 0, 300, True), (500, 0, 300, True)]
    assert spent(all_won, end_ms=-1) == [(200, 0, 0, False), (500, 0, 0, False)]
    one_missing = stage_run(300, None, {0: (300, 500), 1: (300, None)})
    assert spent(one_missing) == [(200, 0, 0, False), (800, 0, 0, False)]


def test_nothing_counts_outside_of_the_batch() -> None:
    """Nor before what is settled already."""
    stage = stage_run(50, 1500, {0: (50, 1500), 1: (1200, 1500)})
    assert spent(stage) == [(1000, 0, 0, False), (1000, 1000, 0, False)]
    assert spent(stage, since_ms=900) == [(200, 0, 0, False), (200, 200, 0, False)]
    assert spent(stage, since_ms=5000) == [(0, 0, 0, False)] * 2
    assert spent(stage, until_ms=40) == [(0, 0, 0, False)] * 2


def test_partitions_that_the_vertex_has_not_got_are_left_out() -> None:
    """It may be bound to its stage later than a task of it is launched."""
    assert spent(stage_run(300, 800, {0: (300, 500), 9: (300, 800)}), size=1) == [(200, 0, 300, True)]
