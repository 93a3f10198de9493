"""Whether a query keeps up with its sources, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spark_hooks.offsets import reached
from spark_hooks.progress import Progress, Source, milliseconds
from spark_hooks.timeline import Batch
from spark_hooks.triggers import interval_ms

BACK_TO_BACK_MS = 100
"""Batches that follow each other within this time do so at once: Spark takes some to look for rows."""
GROWTHS = 3
"""Times in a row that rows and duration grow, until the query is taken for one that cannot keep up."""

_KAFKA_BEHIND = ("maxOffsetsBehindLatest", "avgOffsetsBehindLatest")
"""Metrics of a source. Source: Spark, `KafkaMicroBatchStream`; as text, 'avg' with a fraction."""
_NOTHING_UNREAD: Mapping[str, int] = MappingProxyType({})


class Backlog:
    """
    The batches of one run, told one after the other. Not thread safe.

    `up` tells whether the query was backlogged when its latest completed batch was triggered; None before the first.
    `interval_ms` is the trigger's, 0 where it has none.

    Args:
        trigger: In Spark's words.
    """

    def __init__(self, trigger: str) -> None:
        self.up: bool | None = None
        self.interval_ms = interval_ms(trigger) or 0
        self._latest_id = -1
        self._end_ms = 0
        self._rows, self._duration_ms = 0, 0
        self._growths = 0
        self._overran = False

    def complete(self, batch: Batch, event: Progress, unread: Mapping[str, int] = _NOTHING_UNREAD) -> bool:
        """
        Take in a batch that ended; one that was told before changes nothing.

        Args:
            batch: When it ran.
            event: Its progress.
            unread: Description of a source → files that it had listed and not read when the batch was planned; a
                source that is not there has none, or does not tell.

        Returns:
            Whether the query was backlogged when it was triggered: a source had more than the batch took; or the batch
            before it ran past its slot of the trigger's interval; or, without an interval, rows and duration have grown
            `GROWTHS` times, batch upon batch.

        Raises:
            ValueError: the progress has no time.
        """
        if self.up is not None and batch.id <= self._latest_id:
            return self.up
        follows = self.up is not None and batch.id == self._latest_id + 1
        more = any(_has_more(source) for source in event.sources) or any(count > 0 for count in unread.values())
        late = follows and self._overran
        growing = self._grow(batch, event.num_input_rows, follows)
        self._overran = self._runs_past_slot(batch, milliseconds(event.timestamp))
        self._latest_id, self._end_ms = batch.id, batch.end_ms
        self.up = more or late or growing
        return self.up

    def _grow(self, batch: Batch, rows: int, follows: bool) -> bool:
        duration_ms = batch.end_ms - batch.begin_ms
        at_once = follows and batch.begin_ms - self._end_ms <= BACK_TO_BACK_MS
        grows = at_once and rows > self._rows and duration_ms > self._duration_ms
        self._growths = self._growths + 1 if grows else 0
        self._rows, self._duration_ms = rows, duration_ms
        return not self.interval_ms and self._growths >= GROWTHS

    def _runs_past_slot(self, batch: Batch, trigger_ms: int) -> bool:
        """
        Tell whether a batch that was triggered at `trigger_ms`, wall time, was not done when the next one was due.

        Batch 0 makes everything ready, and proves nothing.

        Source: Spark, `ProcessingTimeExecutor.nextBatchTime`: slots lie on the wall clock.
        """
        if not self.interval_ms or batch.id == 0:
            return False
        return trigger_ms % self.interval_ms + batch.end_ms - batch.begin_ms > self.interval_ms


def _has_more(source: Source) -> bool:
    return reached(source.end_offset, source.latest_offset) is False or any(
        _positive((source.metrics or {}).get(name)) for name in _KAFKA_BEHIND
    )


def _positive(text: str | None) -> bool:
    try:
        return text is not None and float(text) > 0
    except ValueError:
        return False
