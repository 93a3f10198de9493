"""Which scans of a query's plan read which of its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spark_hooks.operator_names import STREAM_SCANS
from spark_hooks.plan import Operator

Scan = tuple[str, Operator]
"""A source operator, with its vertex's id."""

_EMPTY = "<empty>"
_FILES = re.compile(r"FileStreamSource\[(.*)\]", re.DOTALL)
_LOCATION = re.compile(r"Location: \w+ ?\(\d+ paths?\)\[(.*?)(\.\.\.|[,\]])")
"""The first of the paths that a scan of files reads; Spark cuts them at 100 characters."""
_GLOB = re.compile(r"[*?\[{]")


def of_streams(found: Iterable[Scan], descriptions: Iterable[str]) -> list[Scan]:
    """
    Return the scans that are of streams, in their order.

    A stream of files is scanned as a table of files is, and told from one by where its files lie.

    Args:
        descriptions: Of the query's sources, as progress events tell them.
    """
    folders = [match.group(1) for match in map(_FILES.fullmatch, descriptions) if match is not None]
    return [scan for scan in found if scan[1].node in STREAM_SCANS or _lies_in(scan[1].description, folders)]


def _lies_in(description: str, folders: Iterable[str]) -> bool:
    location = _LOCATION.search(description)
    if location is None:
        return False
    path, end = location.groups()
    for folder in folders:
        known = _GLOB.split(folder)[0]
        below = known if known != folder else folder.rstrip("/") + "/"
        if f"{path}/".startswith(below) or (end == "..." and folder.startswith(path)):
            return True
    return False


def scans(operators: Iterable[Scan], moved: Sequence[bool], descriptions: Iterable[str] = ()) -> list[list[Scan]]:
    """
    Return the scans of each source, none where they cannot be told.

    Args:
        operators: All of the query's own plan in one micro-batch.
        moved: Of each source, in the order of Spark's progress, whether the batch read on in it.
        descriptions: Of the sources, as progress events tell them.

    Spark's progress names no plan nodes. It lists the sources from left to right, each once; where the plan has as many
    scans, they are the same. Tables that a stream is joined with are scans too: see `of_streams`. Spark may leave out
    what has no new rows: then those that are there read what has. Where there is one source alone, all scans of streams
    are of it, as in a self-join.
    """
    found = sorted(
        (scan for scan in operators if scan[1].is_source and _EMPTY not in scan[1].description),
        key=lambda scan: scan[1].leaf,
    )
    streams = of_streams(found, descriptions)
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
