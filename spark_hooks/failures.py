"""What failed in one run: its tasks, its stages, and at last the run itself."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import msgspec

from spark_hooks import records
from streamgauge import wire

STAGES = 100
"""Stages with failed tasks, and failed stages, that are remembered of one batch to find what broke it."""

_CLASS = re.compile(r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?=[:\s]|$)")
_CAUSED_BY = "\nCaused by: "
_STACK = re.compile(r"\n\tat |\n\t\.\.\. \d+ more|\nDriver stacktrace:")
_TASK = re.compile(r"\(TID (\d+)\)")
_STOPPED = re.compile(r"cancell?ed", re.IGNORECASE)
_ABORTED = "org.apache.spark.SparkException"
"""What Spark throws for a stage whose failure no exception of a task explains."""


def root_cause(text: str) -> str:
    """Return the last cause in the text of a Java exception, without its stack: its class and message."""
    _, _, last = text.rpartition(_CAUSED_BY)
    stack = _STACK.search(last)
    return last[: stack.start()].rstrip() if stack else last


def exception_class(text: str) -> str:
    """Return the class that the text of a Java exception begins with, Spark's general one where there is none."""
    found = _CLASS.match(text)
    return found.group() if found else _ABORTED


@dataclass(frozen=True, slots=True)
class _Failed:
    """A failure, the batch that it is of, and the task, −1 for a stage's."""

    batch: int
    task: int
    failure: wire.Failure


class Failures:
    """
    The failures of one run, newest first. Not thread safe.

    At most `wire.FAILURES` are held, as many again below the run's own. A batch is told by the id of the execution
    that no other one encloses.
    """

    def __init__(self) -> None:
        self._latest: deque[_Failed] = deque()
        self._forgotten = 0
        self._batch: int | None = None
        # (stage, attempt) → its latest failed task: when a stage fails, that is the one that failed it.
        self._tasks: dict[tuple[int, int], _Failed] = {}
        self._stages: deque[tuple[str, wire.Failure]] = deque(maxlen=STAGES)
        self._went_on = False
        self._run: wire.Failure | None = None
        self._told: wire.Failures | None = None

    def told(self) -> wire.Failures:
        """Return what travels; the same object while nothing has changed."""
        if self._told is None:
            latest = [failed.failure for failed in self._latest]
            if self._run is not None:
                latest.insert(0, self._run)
            self._told = wire.Failures(tuple(latest), self._forgotten)
        return self._told

    def begin(self, batch: int) -> None:
        """A micro-batch, or the batch execution, begins."""
        self.finish()
        self._batch = batch

    def finish(self) -> None:
        """The micro-batch has been executed: what failed in it was overcome."""
        self._batch = None
        self._tasks.clear()
        self._stages.clear()

    def task(self, event: records.TaskFailure, batch: int, vertex: str, executor: str, endpoint: str) -> None:
        """
        A task failed; one that the recorder has left the text of out is counted.

        Args:
            vertex: Id of the vertex that it ran, '' where that is not known.
            executor, endpoint: As in `wire.Failure`.
        """
        failed = _Failed(
            batch,
            event.task,
            wire.Failure(
                event.name or "",
                event.text or "",
                event.time_ms,
                vertex,
                event.partition,
                event.attempt,
                executor,
                endpoint,
            ),
        )
        if batch == self._batch and (len(self._tasks) < STAGES or (event.stage, event.stage_attempt) in self._tasks):
            self._tasks[event.stage, event.stage_attempt] = failed
        if event.name is None:
            self._forgotten += 1
        else:
            self._hold(failed)
        self._told = None

    def stage(self, event: records.StageCompleted, batch: int) -> None:
        """A stage attempt ended; its failure is one of its own where no task's is the reason."""
        if batch != self._batch:
            return
        reason = event.failure
        if reason is None:
            self._went_on = True
            return
        task = self._tasks.get((event.stage, event.attempt))
        line = _first_line(reason)
        if task is not None and _explains(task, reason):
            self._stages.append((line, task.failure))
            self._went_on = False
        elif not _STOPPED.search(line) and all(line != known for known, _ in self._stages):
            failure = wire.Failure(exception_class(reason), reason, event.time_ms)
            self._stages.append((line, failure))
            self._went_on = False
            self._hold(_Failed(batch, -1, failure))
            self._told = None

    def end(self, text: str, time_ms: int) -> None:
        """
        The run failed.

        Its failure stands on top, where the task was that caused it; below it what failed in the batch that broke.
        """
        cause = self._cause(text)
        broken = [failed.failure for failed in self._latest if failed.batch == self._batch]
        self._latest = deque(failed for failed in self._latest if failed.batch != self._batch)
        if len(self._latest) == wire.FAILURES:
            self._latest.pop()
            self._forgotten += 1
        self._run = wire.Failure(
            exception_class(text),
            text,
            time_ms,
            cause.vertex,
            cause.subtask,
            cause.attempt,
            cause.executor,
            cause.endpoint,
            tuple(broken),
        )
        self._told = None

    def _cause(self, text: str) -> wire.Failure:
        for line, failure in reversed(self._stages):
            if line and line in text:
                return failure
        # User code in foreachBatch may tell of it in words of its own.
        if self._stages and not self._went_on:
            return self._stages[-1][1]
        return wire.Failure("", "", time_ms=-1)

    def _hold(self, failed: _Failed) -> None:
        if self._run is not None:
            # Spark told of a task's end after that of the run.
            if len(self._run.concurrent) < wire.FAILURES:
                self._run = msgspec.structs.replace(self._run, concurrent=(failed.failure, *self._run.concurrent))
            else:
                self._forgotten += 1
            return
        self._latest.appendleft(failed)
        if len(self._latest) > wire.FAILURES:
            self._latest.pop()
            self._forgotten += 1


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _explains(task: _Failed, reason: str) -> bool:
    """Whether a stage failed for its latest failed task: its reason names the task, or has the task's words."""
    named = _TASK.search(_first_line(reason))
    if named is not None:
        return int(named.group(1)) == task.task
    return not task.failure.trace or _first_line(reason) in task.failure.trace
