"""What a source has beyond what was read, where its offsets tell that in rows."""

from __future__ import annotations

from spark_hooks.offsets import Path, behind
from spark_hooks.progress import Source

_MOST = 2**63 - 1
"""What no 64 bits hold does not travel."""


class Pending:
    """
    The rows that one source had, at the trigger of the latest micro-batch, beyond those that the batch took.

    A map of topics, each a map of partitions, counts rows: it is Kafka's kind. What a plain number counts, or a flat
    map of such, nobody says: the rate source's are seconds. They are rows where, in every micro-batch of this run that
    read something, the offset grew by as many as rows were read. Not thread safe.
    """

    def __init__(self) -> None:
        self._latest = Source()
        self._counts: bool | None = None
        self._rows: int | None = None

    @property
    def rows(self) -> int | None:
        """None where it is not known, or not known to be rows."""
        return self._rows

    @property
    def caught_up(self) -> bool:
        """Whether the batch took all that the source had, in whatever it counts."""
        latest = self._latest.latest_offset
        return latest is not None and latest == self._latest.end_offset

    def take(self, source: Source) -> None:
        """A micro-batch ended."""
        self._latest, self._rows = source, None
        if _partitioned(source.end_offset):
            counts: bool | None = True
        else:
            self._compare(source)
            counts = self._counts
        if counts and self.caught_up:
            self._rows = 0
        elif counts:
            ahead = behind(source.end_offset, source.latest_offset)
            rows = _MOST + 1 if ahead is None else sum(ahead.values())
            self._rows = rows if rows <= _MOST else None

    def partitions(self) -> dict[Path, int]:
        """Return (topic, partition) → its rows; nothing where the source has no partitions, or does not tell."""
        if self._rows is None or not _partitioned(self._latest.end_offset):
            return {}
        return behind(self._latest.end_offset, self._latest.latest_offset) or {}

    def _compare(self, source: Source) -> None:
        """See whether the offset counts rows; once it does not, the next batch cannot tell otherwise."""
        # Where the run began to read nobody says.
        if self._counts is False or source.start_offset is None:
            return
        read = behind(source.start_offset, source.end_offset)
        grown = None if read is None else sum(read.values())
        if grown or source.num_input_rows:
            self._counts = grown == source.num_input_rows


def _partitioned(offset: object) -> bool:
    """Whether every number stands in a map of a map; of those that tell nothing none does."""
    if not isinstance(offset, dict) or not offset:
        return False
    return all(
        isinstance(partitions, dict) and all(_whole(number) for number in partitions.values())
        for partitions in offset.values()
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
