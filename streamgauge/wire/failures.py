"""Failures of tasks, stages and runs."""

from __future__ import annotations

import msgspec

FAILURES = 16
"""Held of a job, and below one of them. Source: Flink's default of web.exception-history-size."""


class Failure(msgspec.Struct, frozen=True):
    """
    A failure of a task, a stage or the whole run; texts are redacted.

    Args:
        name: Class of the exception.
        trace: Its text and stack, root causes included.
        time_ms: Wall time.
        vertex: Id of the vertex whose task failed; '' where that is not known, or no task did.
        subtask, attempt: Of that task, −1 likewise.
        executor: As in `Executor.id`; '' likewise.
        endpoint: host:port of its block manager; '' likewise.
        concurrent: What failed with it: below a run's failure its tasks' and stages'.
    """

    name: str
    trace: str
    time_ms: int
    vertex: str = ""
    subtask: int = -1
    attempt: int = -1
    executor: str = ""
    endpoint: str = ""
    concurrent: tuple[Failure, ...] = ()


class Failures(msgspec.Struct, frozen=True):
    """
    What failed in a run.

    Args:
        latest: Newest first.
        forgotten: How many older ones are not held any more.
    """

    latest: tuple[Failure, ...] = ()
    forgotten: int = 0

    def after(self, earlier: Failures) -> Failures:
        """Return both, those of `earlier` behind these; of more than FAILURES the oldest are forgotten."""
        both = self.latest + earlier.latest
        held = both[: max(FAILURES, len(self.latest))]
        return Failures(held, self.forgotten + earlier.forgotten + len(both) - len(held))
