"""The latency markers of one source: those that came due, and those that wait for the batch that carries them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks import file_positions
from spark_hooks.offsets import between, reached
from spark_hooks.progress import Source

Integers = npt.NDArray[np.int64]

WAITING = 10_000
"""Marked times of one source that wait at most; one more is dropped."""


class Position(NamedTuple):
    """
    What a micro-batch told of a source.

    Args:
        moved: Whether it read on in it.
        end: Where it ended reading; compared by `offsets.reached`.
        latest: Where the source stood at its trigger; None where it did not tell.
        rows: That it read.
    """

    moved: bool
    end: object
    latest: object
    rows: int


def position(source: Source, files: file_positions.Position | None = None) -> Position:
    """
    Return what a batch tells of one source: the one place where markers' targets come from.

    Args:
        source: As its progress event tells it.
        files: Where a stream of files stands, of which Spark tells no latest offset; None of another source, and where
            that was not seen.
    """
    told = source.start_offset is not None or source.end_offset is not None
    moved = source.start_offset != source.end_offset if told else source.num_input_rows > 0
    end, latest = (source.end_offset, source.latest_offset) if files is None else (files.read, files.listed)
    return Position(moved, end, latest, source.num_input_rows)


@dataclass(slots=True)
class _Due:
    """Marked times one after the other, of as many subtasks each."""

    times: int
    subtasks: int


class Stand(NamedTuple):
    """Where a source stood at a batch's trigger, steady time."""

    time_ms: int
    latest: object


class Waiting(NamedTuple):
    """
    Markers that one batch binds. A source is taken to grow evenly from one batch's trigger to the next one's.

    Args:
        marked_ms: Marked times, steady, int64, ascending.
        subtasks: Of each, as many.
        bound: Where the source stood at the batch's trigger.
        before: At that of the batch before; None where that is not known: then the markers stand behind all that had
            come until they were bound.
    """

    marked_ms: Integers
    subtasks: int
    bound: Stand
    before: Stand | None

    @property
    def markers(self) -> int:
        """How many there are."""
        return self.marked_ms.size * self.subtasks

    def part(self, times: slice) -> Waiting:
        """Return some of the marked times alone."""
        return self._replace(marked_ms=self.marked_ms[times])

    def read(self, end: object) -> int:
        """Return how many marked times, the oldest, a source has come past that has been read up to `end`."""
        if reached(end, self.bound.latest) is not False:
            return self.marked_ms.size
        return bisect_left(
            range(self.marked_ms.size), True, key=lambda place: reached(end, self._stood(place)) is False
        )

    def _stood(self, place: int) -> object:
        """Return where the source stood at one of the marked times."""
        if self.before is None:
            return self.bound.latest
        passed_ms = int(self.marked_ms[place]) - self.before.time_ms
        share = passed_ms / max(self.bound.time_ms - self.before.time_ms, 1)
        return between(self.before.latest, self.bound.latest, min(max(share, 0.0), 1.0))


class Emitter:
    """
    One source of one run. Not thread safe.

    Markers that came due are counted, and not kept: an idle source costs nothing. A marker has as many copies as its
    source had subtasks when it came due; more, if the source is seen to have more before its fate is known.

    `emitted` counts all that ever came due, `subtasks` is how many the source has now, at least 1.

    Args:
        times: Marked times that came due before the source was seen, and whose fate is open.
    """

    def __init__(self, times: int = 0) -> None:
        self.emitted = 0
        self.subtasks = 1
        self._due: deque[_Due] = deque()
        self._waiting: deque[Waiting] = deque()
        self._stood: Stand | None = None
        self.come_due(times)

    @property
    def in_flight(self) -> int:
        """Markers whose fate is open."""
        return sum(due.times * due.subtasks for due in self._due) + sum(each.markers for each in self._waiting)

    @property
    def waits(self) -> bool:
        """Whether markers wait for a batch that reaches their offset."""
        return bool(self._waiting)

    def grow(self, subtasks: int) -> None:
        """The source has `subtasks` subtasks now."""
        self.subtasks = max(subtasks, 1)
        for due in self._due:
            if due.subtasks < self.subtasks:
                self.emitted += due.times * (self.subtasks - due.subtasks)
                due.subtasks = self.subtasks

    def come_due(self, times: int) -> None:
        """So many more marked times came due."""
        if times <= 0:
            return
        self.emitted += times * self.subtasks
        if self._due and self._due[-1].subtasks == self.subtasks:
            self._due[-1].times += times
        else:
            self._due.append(_Due(times, self.subtasks))

    def settle(self, times: int) -> Iterator[tuple[int, int]]:
        """Yield the oldest `times` marked times that came due, in portions: (times, subtasks); they are due no more."""
        while times > 0 and self._due:
            due = self._due[0]
            taken = min(times, due.times)
            times -= taken
            due.times -= taken
            if not due.times:
                self._due.popleft()
            yield taken, due.subtasks

    def stand(self, latest: object, time_ms: int) -> tuple[Stand, Stand | None]:
        """
        Return where the source stands at a batch's trigger, and where it stood at that of the batch before.

        Args:
            latest: None where that is not known.
        """
        before, now = self._stood, Stand(time_ms, latest)
        self._stood = None if latest is None else now
        return now, before

    def bind(self, waiting: Waiting) -> int:
        """Let markers wait, the oldest ones where there is no room for all; return how many are not let."""
        room = max(WAITING - sum(each.marked_ms.size for each in self._waiting), 0)
        kept = waiting.part(slice(room))
        if kept.markers:
            self._waiting.append(kept)
        return waiting.markers - kept.markers

    def release(self, end: object) -> Iterator[Waiting]:
        """Yield the markers that a batch carries which ends at `end`, in the order in which they wait."""
        while self._waiting:
            first = self._waiting[0]
            times = first.read(end)
            if times < first.marked_ms.size:
                self._waiting[0] = first.part(slice(times, None))
                if times:
                    yield first.part(slice(times))
                return
            yield self._waiting.popleft()

    def drop(self) -> int:
        """Let go of all markers whose fate is open; return how many there were."""
        dropped = self.in_flight
        self._due.clear()
        self._waiting.clear()
        return dropped
