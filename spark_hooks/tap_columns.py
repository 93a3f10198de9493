"""What of a vertex' taps travels: their splits, and the distributions of their records' delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spark_hooks.redaction import distinct
from spark_hooks.splits import Splits
from spark_hooks.taps import Tap
from streamgauge import names, wire

_NEVER_MS = -1

Wanted = Callable[[tuple[str, ...], object], bool]
"""Asked whether something is to be told, by what tells it apart in its vertex and a state that changes when it does."""


def taps(found: Iterable[Tap], wanted: Wanted, redact: Callable[[str], str]) -> tuple[wire.Tap, ...] | None:
    """
    Return the taps of a vertex that have an event time, as they travel; None where they are not wanted.

    Args:
        redact: Makes of a user's word what may leave the driver, cut.
    """
    parted = [(tap, tap.splits) for tap in found if tap.splits is not None]
    if not wanted(("taps",), tuple((tap.name, tap.source, splits.revision) for tap, splits in parted)):
        return None
    called = distinct(redact(tap.name) for tap, _ in parted)
    return tuple(_told(name, tap, splits, redact) for name, (tap, splits) in zip(called, parted, strict=True))


def distributions(found: Iterable[Tap], wanted: Wanted) -> Iterator[wire.Distribution]:
    """Yield the distributions of delays that are wanted, of the taps that have an ingest time."""
    for tap in found:
        delays = tap.delays
        if delays is not None and delays.revision and wanted(("delays", tap.name), (tap.operator, delays.revision)):
            yield wire.Distribution(tap.operator, names.RECORD_QUEUEING, wire.Buckets.of(delays.queueing.read()))
            yield wire.Distribution(tap.operator, names.RECORD_LATENCY, wire.Buckets.of(delays.latency.read()))


def _told(name: str, tap: Tap, splits: Splits, redact: Callable[[str], str]) -> wire.Tap:
    return wire.Tap(
        name=name,
        operator=tap.source,
        watermark_ms=splits.watermark_ms,
        idle=splits.idle,
        max_out_of_orderness_ms=splits.max_out_of_orderness_ms,
        idleness_ms=_NEVER_MS if splits.idleness_ms is None else splits.idleness_ms,
        by_subtask=splits.by_subtask,
        unwatched=splits.unwatched,
        splits=tuple(distinct(map(redact, splits.names))),
        columns=tuple(splits.columns()),
    )
