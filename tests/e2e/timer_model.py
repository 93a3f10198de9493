"""What the timers of `Reminders` do, by a model in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

AFTER_MS = 15_000
"""From a row's event time to when its timer is due."""


@dataclass
class Model:
    """Batch by batch: timers that wait as (key, due ms), and how late those that fired were, ms."""

    registered: int = 0
    deleted: int = 0
    pending: set[tuple[int, int]] = field(default_factory=set)
    lateness: list[int] = field(default_factory=list)

    def run(self, rows: list[tuple[int, int, int]], watermark_ms: int) -> None:
        """
        A micro-batch runs.

        Args:
            rows: (key, event time, the due time of the timer that it deletes or 0).
            watermark_ms: Spark's in this batch.
        """
        for key, at_ms, deletes_ms in rows:
            if deletes_ms:
                self.deleted += (key, deletes_ms) in self.pending
                self.pending.discard((key, deletes_ms))
            else:
                self.registered += (key, at_ms + AFTER_MS) not in self.pending
                self.pending.add((key, at_ms + AFTER_MS))
        due = {timer for timer in self.pending if timer[1] <= watermark_ms}
        self.pending -= due
        self.lateness += [watermark_ms - due_ms for _, due_ms in due]
