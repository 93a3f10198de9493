"""The micro-batches of a run, in Flink's words its checkpoints: which are under way, done and broken off."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from spark_hooks.batch_tasks import BatchTasks
from spark_hooks.progress import Progress, StateOperator
from spark_hooks.spreads import Spread
from streamgauge import names, wire

HELD = 10
"""Latest micro-batches that are held. Source: Flink, `web.checkpoints.history`."""

STOPPED = "The query was stopped before it had committed this micro-batch."
APPLICATION_ENDED = "The application ended before it had committed this micro-batch."

_COPIED = "rocksdbBytesCopied"
_CHANGE_LOG = "rocksdbChangeLogWriterCommitLatencyMs"
"""Custom metrics of the RocksDB state store."""
CHANGE_LOG_SETTING = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
"""A change log may be written in less than a millisecond, and then no metric tells of it."""


@dataclass(slots=True)
class _Batch:
    """A micro-batch that is held; `checkpoint` is all of it but its tasks."""

    checkpoint: wire.Checkpoint
    tasks: BatchTasks = field(default_factory=BatchTasks)

    def told(self) -> wire.Checkpoint:
        tasks = self.tasks.told()
        if self.checkpoint.tasks is not tasks:
            self.checkpoint = msgspec.structs.replace(self.checkpoint, tasks=tasks)
        return self.checkpoint


class Checkpoints:
    """
    The micro-batches of one run. Not thread safe.

    Spark begins a micro-batch when it has committed the one before it, so at most one is under way. One that was
    followed by another though its end was not told has ended, and nothing else is known of it.

    Args:
        start_ms: Start of the run, wall time.
        from_start: No micro-batch of the run had ended when it was first seen, so that the first one that is seen
            tells from which one the run went on.
    """

    def __init__(self, start_ms: int, from_start: bool) -> None:
        self.completed = 0
        self.failed = 0
        self._start_ms = start_ms
        self._from_start = from_start
        self._restored = -1
        self._running = -1
        self._broken_off: tuple[int, str] | None = None
        self._newest = -1
        self._latest_completed = -1
        self._latest_failed = -1
        self._held: dict[int, _Batch] = {}
        self._duration, self._state, self._written = Spread(), Spread(), Spread()

    @property
    def in_progress(self) -> int:
        """1 while a micro-batch is under way, else 0."""
        return int(self._running >= 0)

    def begin(self, batch_id: int, time_ms: int) -> BatchTasks | None:
        """
        An execution of a micro-batch begins.

        Returns:
            Where its tasks are to be told; None for a batch that is held no more.
        """
        if batch_id > self._newest:
            self._pass()
            self._running = batch_id
            self._hold(wire.Checkpoint(batch_id, "IN_PROGRESS", time_ms))
        batch = self._held.get(batch_id)
        return None if batch is None else batch.tasks

    def break_off(self, time_ms: int, reason: str) -> None:
        """The execution of the micro-batch under way ended with an error; it may yet be told why the run ends."""
        if self._running >= 0:
            self._broken_off = (time_ms, reason)

    def complete(self, progress: Progress, trigger_ms: int, change_log: bool = False) -> None:
        """
        Spark told of a micro-batch that it has committed.

        Args:
            trigger_ms: The progress's timestamp, wall time.
            change_log: Its query is set to have RocksDB write one.
        """
        duration_ms = progress.duration_ms.get("triggerExecution", -1)
        if progress.batch_id != self._running:
            self._pass()
        self._complete(
            wire.Checkpoint(
                progress.batch_id,
                "COMPLETED",
                trigger_ms,
                trigger_ms + max(duration_ms, 0),
                duration_ms,
                sum(operator.memory_used_bytes for operator in progress.state_operators),
                _written(progress.state_operators, change_log),
                progress.num_input_rows,
                progress.sink.num_output_rows,
                progress.duration_ms,
            )
        )

    def fail(self, time_ms: int, reason: str) -> None:
        """The run ended, and with it the micro-batch under way, if there is one."""
        if self._running >= 0:
            self._end_running(time_ms, reason)

    def metrics(self) -> dict[str, int]:
        """Return Flink's job metrics of checkpoints; what Spark has not told is absent."""
        found = {
            names.NUM_COMPLETED_CHECKPOINTS: self.completed,
            names.NUM_FAILED_CHECKPOINTS: self.failed,
            names.NUM_IN_PROGRESS_CHECKPOINTS: self.in_progress,
            names.TOTAL_CHECKPOINTS: self.completed + self.failed + self.in_progress,
        }
        if self._latest_completed >= 0:
            latest = self._held[self._latest_completed].checkpoint
            told = {
                names.LAST_COMPLETED_CHECKPOINT_ID: latest.id,
                names.LAST_CHECKPOINT_DURATION: latest.duration_ms,
                names.LAST_CHECKPOINT_SIZE: latest.state_bytes,
                names.LAST_CHECKPOINT_COMPLETED: latest.end_ms,
                names.LAST_CHECKPOINT_PROCESSED: latest.input_rows,
            }
            found |= {name: value for name, value in told.items() if value >= 0}
        return found

    def told(self) -> wire.Checkpoints:
        """Return all of it as it travels, `changed` being everything that is held, newest first."""
        held = tuple(batch.told() for batch in reversed(self._held.values()))
        return wire.Checkpoints(
            completed=self.completed,
            failed=self.failed,
            held=tuple(checkpoint.id for checkpoint in held),
            latest_completed=self._latest_completed,
            latest_failed=self._latest_failed,
            restored=self._restored,
            restored_ms=self._start_ms if self._restored >= 0 else -1,
            duration_ms=self._duration.told(),
            state_bytes=self._state.told(),
            checkpointed_bytes=self._written.told(),
            changed=held,
        )

    def _pass(self) -> None:
        """Another micro-batch is seen: the one that was under way has ended."""
        if self._running < 0:
            return
        if self._broken_off is not None:
            self._end_running(*self._broken_off)
        else:
            begun = self._held[self._running].checkpoint
            self._complete(wire.Checkpoint(begun.id, "COMPLETED", begun.trigger_ms))

    def _complete(self, checkpoint: wire.Checkpoint) -> None:
        self.completed += 1
        self._latest_completed = checkpoint.id
        for spread, value in (
            (self._duration, checkpoint.duration_ms),
            (self._state, checkpoint.state_bytes),
            (self._written, checkpoint.checkpointed_bytes),
        ):
            if value >= 0:
                spread.add(value)
        self._settle(checkpoint)

    def _end_running(self, time_ms: int, reason: str) -> None:
        self.failed += 1
        self._latest_failed = self._running
        begun = self._held[self._running].checkpoint
        self._settle(
            msgspec.structs.replace(
                begun,
                status="FAILED",
                end_ms=time_ms,
                duration_ms=max(time_ms - begun.trigger_ms, 0),
                failure=reason,
            )
        )

    def _settle(self, checkpoint: wire.Checkpoint) -> None:
        self._running = -1
        self._broken_off = None
        self._hold(checkpoint)

    def _hold(self, checkpoint: wire.Checkpoint) -> None:
        held = self._held.get(checkpoint.id)
        if held is not None:
            held.checkpoint = checkpoint
        else:
            if self._from_start and self._newest < 0 < checkpoint.id:
                self._restored = checkpoint.id - 1
            self._held[checkpoint.id] = _Batch(checkpoint)
            self._newest = max(self._newest, checkpoint.id)
        for old in list(self._held)[:-HELD]:
            if old not in (self._latest_completed, self._latest_failed):
                del self._held[old]


def _written(operators: tuple[StateOperator, ...], change_log: bool) -> int:
    """
    Return the bytes of state that a commit wrote, −1 where a state store does not tell; 0 without state.

    Only RocksDB's tells, and only where it says that it wrote no change log: with one it repeats the figures of an
    older snapshot. The store on files tells nothing of the kind, nor does Spark 3.5.
    """
    told = [operator.custom_metrics for operator in operators]
    if any(change_log or _COPIED not in metrics or metrics.get(_CHANGE_LOG) != 0 for metrics in told):
        return -1
    return sum(metrics[_COPIED] for metrics in told)
