"""When a run's micro-batches ran, and what executed them; all times are steady, see `steady`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_hooks.stages import Execution, Stage


_NONE_YET = -2
"""Less than the id of any batch."""


@dataclass(slots=True, eq=False)
class Batch:
    """
    One micro-batch, or the whole of a batch job.

    Args:
        id: The batch id, −1 for a batch job.
        begin_ms: When it was triggered; until Spark has told that, when its first execution began.
        executed_ms: When its last outermost execution ended, −1 before: then what it puts out is there. Of one that was
            committed though that was not told, when it ended.
        end_ms: When the trigger had done with it, −1 before.
        executions: Its outermost ones.
    """

    id: int
    begin_ms: int
    executed_ms: int = -1
    end_ms: int = -1
    executions: list[Execution] = field(default_factory=list)

    def stages(self) -> Iterator[Stage]:
        """Return the stages of all of its executions of which a task has been launched."""
        for execution in self.executions:
            for each in (execution, *execution.inner):
                yield from (stage for stage in each.stages if stage.first_ms >= 0)

    def by_vertex(self) -> dict[str, list[Stage]]:
        """Return the id of every vertex that it ran → the stages that executed it, the first launched first."""
        found: dict[str, list[Stage]] = {}
        for stage in sorted(self.stages(), key=lambda stage: stage.first_ms):
            for bound in stage.vertices():
                found.setdefault(bound.vertex.id, []).append(stage)
        return found


class Timeline:
    """
    The micro-batches of one run: the one under way, if any. Not thread safe.

    Spark begins a micro-batch when it has done with the one before it, and none a second time in a run. One that is
    followed by another though its end was not told has ended when the next one began.
    """

    def __init__(self) -> None:
        self.batch: Batch | None = None
        self._newest = _NONE_YET

    def begin(self, batch_id: int, time_ms: int, execution: Execution) -> Batch | None:
        """
        An outermost execution begins; one that a micro-batch which has ended left behind is of none.

        Returns:
            The micro-batch that was under way, if this is another one; it has ended.
        """
        if self.batch is not None and self.batch.id == batch_id:
            self.batch.executions.append(execution)
            self.batch.executed_ms = -1
            return None
        if batch_id <= self._newest:
            return None
        self._newest = batch_id
        passed = self.end(time_ms)
        self.batch = Batch(batch_id, time_ms, executions=[execution])
        return passed

    def executed(self, execution: Execution, time_ms: int) -> None:
        """An outermost execution ended; one of no micro-batch that is under way changes nothing."""
        if self.batch is not None and execution in self.batch.executions:
            self.batch.executed_ms = max(self.batch.executed_ms, time_ms)

    def complete(self, batch_id: int, begin_ms: int, end_ms: int) -> tuple[Batch | None, Batch]:
        """
        A micro-batch has been committed.

        Returns:
            Another one that was under way, if any, and this one; without executions where none was seen. Both have
            ended.
        """
        batch, passed = self.batch, None
        if batch is None or batch.id != batch_id:
            passed = self.end(begin_ms)
            batch = Batch(batch_id, begin_ms)
        self.batch, self._newest = None, max(batch_id, self._newest)
        # An execution's start is told to the millisecond, as is the trigger; neither may lie within the other.
        batch.begin_ms = min(batch.begin_ms, begin_ms) if batch.executions else begin_ms
        batch.end_ms = max(end_ms, batch.begin_ms, batch.executed_ms)
        if batch.executed_ms < 0:
            batch.executed_ms = batch.end_ms
        return passed, batch

    def end(self, time_ms: int) -> Batch | None:
        """Nothing is under way any more; return what was."""
        batch, self.batch = self.batch, None
        if batch is not None:
            batch.end_ms = max(time_ms, batch.begin_ms, batch.executed_ms)
        return batch
