"""Which scans of a query's plan read which of its sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_hooks.operator_names import STREAM_SCANS
from spark_hooks.plan import Operator

Scan = tuple[str, Operator]
"""A source operator, with its vertex's id."""

_EMPTY = "<empty>"


def scans(operators: Iterable[Scan], moved: Sequence[bool]) -> list[list[Scan]]:
    """
    Return the scans of each source, none where they cannot be told.

    Args:
        operators: All of the query's own plan in one micro-batch.
        moved: Of each source, in the order of Spark's progress, whether the batch read on in it.

    Spark's progress names no plan nodes. It lists the sources from left to right, each once; where the plan has as many
    scans, they are the same. Tables that a stream is joined with are scans too, though a stream has nodes of its own,
    but for one of files. Spark may leave out what has no new rows: then those that are there read what has. Where there
    is one source alone, all scans of streams are of it, as in a self-join.
    """
    found = sorted(
        (scan for scan in operators if scan[1].is_source and _EMPTY not in scan[1].description),
        key=lambda scan: scan[1].leaf,
    )
    streams = [scan for scan in found if scan[1].node in STREAM_SCANS]
    everywhere = range(len(moved))
    reading = [source for source in everywhere if moved[source]]
    told: list[list[Scan]] = [[] for _ in everywhere]
    for sources in (everywhere, reading):
        for candidates in (found, streams):
            if candidates and len(candidates) == len(sources):
                for source, scan in zip(sources, candidates, strict=True):
                    told[source].append(scan)
                return told
    if len(told) == 1:
        told[0] += streams
    return told
