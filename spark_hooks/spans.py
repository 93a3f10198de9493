"""What the subtasks of a vertex did in one micro-batch, up to any moment of it; all times are steady, see `steady`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.timeline import Batch

if TYPE_CHECKING:
    from spark_hooks.stages import Stage

_FAR_MS = 2**62
"""Stands for a time that has not come."""
_LONGEST_WAIT_MS = 2**31
"""24 days; a product of two of them fits into 63 bits."""

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Spent(NamedTuple):
    """
    Time that subtasks spent in a batch, ms, shape (subtasks,); the rest of it they were idle.

    Args:
        run: From their stage's first launch to their own finish, less the wait for shuffle blocks.
        slot_wait: The part of `run` before they were launched themselves.
        held: While the batch waits for others: from their stage's end on; of a source vertex also before its first
            stage.
        is_held: Whether they are held at the end of that time.
    """

    run: Whole
    slot_wait: Whole
    held: Whole
    is_held: Flags


@dataclass(frozen=True, slots=True)
class _StageRun:
    """
    One stage.

    Args:
        end_ms: When all its partitions had been won; far away while it runs.
        subtasks: Those that it runs; of one that is over, those that it ran.
        launches, finishes: Of these, far away where not yet.
        fetch_waits: Of these, as far as they have finished.
    """

    first_ms: int
    end_ms: int
    subtasks: Whole
    launches: Whole
    finishes: Whole
    fetch_waits: Whole


@dataclass(frozen=True, slots=True)
class Spans:
    """
    A vertex in a batch. Immutable.

    Args:
        begin_ms: When the batch began.
        end_ms: When it ended, −1 while it is under way.
        is_source: Its subtasks are held from the batch's beginning on.
        waiting: Subtasks of a source vertex that are held though none of its stages has begun.
    """

    begin_ms: int
    end_ms: int = -1
    stages: tuple[_StageRun, ...] = ()
    is_source: bool = False
    waiting: int = 0

    @classmethod
    def of(cls, batch: Batch, stages: Sequence[Stage], vertex_id: str, is_source: bool, waiting: int) -> Spans:
        """
        Return what a vertex does in a batch.

        Args:
            stages: Those that execute it, the first launched first.
            waiting: Its subtasks, if its stage is yet to come: then a source vertex is held.
        """
        runs = tuple(_stage_run(stage, vertex_id, batch.end_ms >= 0) for stage in stages)
        idle = runs or not is_source or batch.end_ms >= 0
        return cls(batch.begin_ms, batch.end_ms, runs, is_source, 0 if idle else waiting)

    def spent(self, until_ms: int, since_ms: Whole) -> Spent:
        """
        Return what was spent in the batch up to `until_ms`.

        Stages of one vertex run one after the other, and its subtasks are held in between; where two overlap, the one
        that began first counts.

        Args:
            since_ms: Of every subtask of the vertex; nothing before it counts.
        """
        limit = until_ms if self.end_ms < 0 else min(until_ms, self.end_ms)
        since = np.minimum(np.maximum(since_ms, self.begin_ms), limit)
        run, slot_wait, held = (np.zeros(since.size, dtype=np.int64) for _ in range(3))
        # Where what is accounted for ends, of the subtasks that are held or in a stage.
        told = since.copy()
        is_held, is_running = (np.zeros(since.size, dtype=np.bool_) for _ in range(2))
        is_held[: self.waiting] = True
        if self.is_source:
            for stage in self.stages:
                is_held[stage.subtasks[stage.subtasks < since.size]] = True
        for stage in self.stages:
            there = stage.subtasks < since.size
            subtasks = stage.subtasks[there]
            first = min(stage.first_ms, limit)
            begin = np.maximum(told[subtasks], first)
            held[subtasks] += np.where(is_held[subtasks], begin - told[subtasks], 0)
            if stage.first_ms >= limit:
                told[subtasks] = begin
                continue
            end = np.maximum(begin, min(stage.end_ms, limit))
            finish = np.clip(stage.finishes[there], begin, end)
            launch = np.clip(stage.launches[there], begin, finish)
            run[subtasks] += finish - begin - _fetch_wait(stage, there, finish - launch)
            slot_wait[subtasks] += launch - begin
            told[subtasks] = end
            is_running[subtasks] |= stage.end_ms > limit
            is_held[subtasks] = ~is_running[subtasks]
        held[is_held] += limit - told[is_held]
        return Spent(run, slot_wait, held, is_held)


def _fetch_wait(stage: _StageRun, there: Flags, worked: Whole) -> Whole:
    """Return the wait for shuffle blocks within the first `worked` ms of tasks; when they waited nobody tells."""
    waits, took = stage.fetch_waits[there], np.maximum(stage.finishes[there] - stage.launches[there], 1)
    waited: Whole = np.minimum(waits * np.minimum(worked, took) // took, worked)
    return waited


def _stage_run(stage: Stage, vertex_id: str, batch_ended: bool) -> _StageRun:
    launched, won = _column(stage.launches), _column(stage.won)
    end_ms = stage.completed_ms
    if end_ms < 0 and batch_ended and len(won) >= max(stage.tasks, 1):
        # Nobody told, but nothing was left to do.
        end_ms = max(each.finished_ms for each in stage.won.values())
    ended = end_ms >= 0
    size = 1 + max(-1 if ended else stage.tasks - 1, *(int(each.max()) for each in (launched, won) if each.size), -1)
    launches, finishes = np.full(size, _FAR_MS), np.full(size, _FAR_MS)
    fetch_waits = np.zeros(size, dtype=np.int64)
    launches[launched] = _column(stage.launches.values())
    launches[_column(stage.relaunched)] = _column(stage.relaunched.values())
    finishes[won] = _column(each.finished_ms for each in stage.won.values())
    # The launch of one that the recorder had to drop.
    for partition in stage.won.keys() - stage.launches.keys():
        found = stage.won[partition]
        launches[partition] = found.finished_ms - max(found.finish_ms - found.launch_ms, 0)
    accumulators = {each for bound in stage.vertices() if bound.vertex.id == vertex_id for each in bound.fetch_waits}
    if accumulators:
        fetch_waits[won] = _column(
            # A task cannot have waited for longer than it took, whatever it tells.
            min(max(sum(each.updates.get(accumulator, 0) for accumulator in accumulators), 0), _LONGEST_WAIT_MS)
            for each in stage.won.values()
        )
    subtasks = np.arange(size)
    if ended:
        subtasks = subtasks[launches < _FAR_MS]
        launches, finishes, fetch_waits = launches[subtasks], finishes[subtasks], fetch_waits[subtasks]
    return _StageRun(stage.first_ms, end_ms if ended else _FAR_MS, subtasks, launches, finishes, fetch_waits)


def _column(values: Iterable[int]) -> Whole:
    return np.fromiter(values, dtype=np.int64)
