"""What Spark's progress tells of a query's sources, and which operators of the plan they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark_hooks.operator_names import STREAM_SCANS
from spark_hooks.plan import Operator
from spark_hooks.progress import Source
from streamgauge import names, wire

METRICS = 100
NAME_CHARS = 200
"""Of one source that are told, and of each one's name; a connector may name as many as it likes."""

# What no 64 bits hold does not travel as a whole number.
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class Sources:
    """
    The sources of one run, in the order of its progress. Not thread safe.

    Spark's progress names no plan nodes. It lists the query's sources from left to right, each once; where the plan
    has as many scans, they are the same. A source that the plan scans twice, as in a self-join, cannot be told from
    two, and nothing is told of it.
    """

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._latest: tuple[Source, ...] = ()

    def progress(self, sources: tuple[Source, ...]) -> None:
        """A micro-batch ended."""
        if len(sources) != len(self._rows):
            self._rows = [0] * len(sources)
        self._rows = [rows + source.num_input_rows for rows, source in zip(self._rows, sources, strict=True)]
        self._latest = sources

    def metrics(self, operators: Iterable[tuple[str, Operator]]) -> dict[tuple[str, str], dict[str, wire.Scalar]]:
        """
        Return what the driver knows of each source, by vertex and operator id; empty where they cannot be told apart.

        Args:
            operators: All of the query's latest own plan, each with its vertex's id.
        """
        scans = sorted((found for found in operators if found[1].is_source), key=lambda found: found[1].leaf)
        if len(scans) != len(self._latest):
            # Tables that a stream is joined with are scans too.
            scans = [(vertex, scan) for vertex, scan in scans if scan.node in STREAM_SCANS]
        if len(scans) != len(self._latest):
            return {}
        told = zip(scans, self._latest, self._rows, strict=True)
        return {(vertex, scan.id): _told(source, rows) for (vertex, scan), source, rows in told}


def _told(source: Source, rows: int) -> dict[str, wire.Scalar]:
    found: dict[str, wire.Scalar] = {names.INPUT_ROWS: rows}
    if source.input_rows_per_second is not None:
        found[names.INPUT_RATE] = source.input_rows_per_second
    if source.processed_rows_per_second is not None:
        found[names.PROCESSED_RATE] = source.processed_rows_per_second
    for name, value in list((source.metrics or {}).items())[:METRICS]:
        found.setdefault(name[:NAME_CHARS], _number(value))
    return found


def _number(value: str) -> wire.Scalar:
    """Connectors tell text, most of it numbers: Kafka '0' and '0.5'."""
    if _WHOLE.fullmatch(value):
        return int(value)
    try:
        return float(value)
    except ValueError:
        return value
