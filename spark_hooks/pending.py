"""What a source has beyond what was read, where its offsets tell that in rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from spark_hooks.offsets import Path, behind
from spark_hooks.progress import Source

_MOST = 2**63 - 1
"""What no 64 bits hold does not travel."""

Offset = dict[str, dict[str, int]]
"""Topic → partition → where it has been read up to: Kafka's."""


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
        self._partitions: dict[Path, int] = {}

    @property
    def rows(self) -> int | None:
        """None where it is not known, or not known to be rows."""
        return self._rows

    @property
    def partitions(self) -> Mapping[Path, int]:
        """(topic, partition) → its rows; nothing where the source has no partitions, or does not tell."""
        return self._partitions

    @property
    def caught_up(self) -> bool:
        """Whether the batch took all that the source had, in whatever it counts."""
        latest = self._latest.latest_offset
        return latest is not None and latest == self._latest.end_offset

    def take(self, source: Source) -> None:
        """A micro-batch ended."""
        self._latest, self._rows, self._partitions = source, None, {}
        ahead: dict[Path, int] | None
        if _partitioned(source.end_offset):
            ahead = self._partitions = _ahead(source.end_offset, source.latest_offset)
        else:
            self._compare(source)
            ahead = behind(source.end_offset, source.latest_offset) if self._counts else None
        rows = sum(ahead.values()) if ahead else _MOST + 1
        if rows <= _MOST:
            self._rows = rows
        else:
            self._partitions = {}

    def _compare(self, source: Source) -> None:
        """See whether the offset counts rows; once it does not, the next batch cannot tell otherwise."""
        # Where the run began to read nobody says.
        if self._counts is False or source.start_offset is None:
            return
        read = behind(source.start_offset, source.end_offset)
        grown = None if read is None else sum(read.values())
        if grown or source.num_input_rows:
            self._counts = grown == source.num_input_rows


def _ahead(end: Offset, latest: object) -> dict[Path, int]:
    """Do for partitions what `behind` does for offsets of any kind, in a fraction of the time: there may be many."""
    if not _partitioned(latest):
        return {}
    return {
        (topic, partition): max(latest[topic][partition] - number, 0)
        for topic, partitions in end.items()
        if topic in latest
        for partition, number in partitions.items()
        if partition in latest[topic]
    }


def _partitioned(offset: object) -> TypeGuard[Offset]:
    """Whether every number stands in a map of a map; of those that tell nothing none does."""
    if not isinstance(offset, dict) or not offset:
        return False
    return all(
        isinstance(partitions, dict) and all(_whole(number) for number in partitions.values())
        for partitions in offset.values()
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
