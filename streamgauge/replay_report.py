"""What `streamgauge replay` tells of a log: its runs, one a line, and what was skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import msgspec

FAULTS = 5
"""Of one kind, that are told in full."""


@dataclass(frozen=True, slots=True)
class Report:
    """
    A log that was replayed; its fields are the keys of `json`, and stay.

    Args:
        log, app, spark_version: Its name, the application's id, and Spark's version, '' where not told.
        events: That were read.
        first_ms, last_ms: First and last time that it tells, Unix ms; −1 where none.
        ended: It tells the application's end.
        unknown: Kinds of events that this release does not know → how many.
        unreadable, lines: Lines that are no events, and the numbers of the first of them.
        truncated: Its last line is cut off.
        cut: Files that could be read no further, and why.
        faults: Events that could not be applied.
        refused: Jobs that are too large to be held, and why.
        left_out: Batch executions before the latest ones.
        runs: As `collector.replayed.summary` has them, and whether they were `written` into the archive.
    """

    log: str
    app: str
    spark_version: str
    events: int
    first_ms: int
    last_ms: int
    ended: bool
    unknown: dict[str, int]
    unreadable: int
    lines: tuple[int, ...]
    truncated: bool
    cut: tuple[str, ...]
    faults: tuple[str, ...]
    refused: tuple[str, ...]
    left_out: int
    runs: tuple[dict[str, Any], ...]

    def json(self) -> str:
        """Return all of it on one line."""
        return msgspec.json.encode(self).decode()

    def runs_told(self) -> Iterator[str]:
        """Yield a line a run."""
        for run in self.runs:
            batches = "" if run["batches"] is None else f", {run['batches']} batches"
            read = "" if run["records"] is None else f", {run['records']} records"
            yield f"{run['jid']}  {_one_line(run['name'])}  {run['state']}{batches}{read}, {_span(run)}"

    def skipped_told(self) -> Iterator[str]:
        """Yield a line for everything that was not read or written, or is not whole."""
        if not self.ended:
            yield f"{self.log}: the driver did not end: the log stops before it, for it crashed or still runs"
        if self.truncated:
            yield f"{self.log}: its last line is cut off and was not read"
        for cut in self.cut:
            yield f"{self.log}: {cut}; it was read up to there"
        if self.unreadable:
            more = "" if len(self.lines) == self.unreadable else f", the first of them {_listed(self.lines)}"
            numbers = f": {_listed(self.lines)}" if len(self.lines) == self.unreadable else more
            yield f"{self.log}: {self.unreadable} lines are no events of Spark's and were skipped{numbers}"
        for kind, count in sorted(self.unknown.items()):
            yield f"{self.log}: {count} × {kind} skipped, this release does not know it"
        yield from self._told("could not be applied", self.faults)
        yield from self._told("is left out", self.refused)
        if self.left_out:
            yield f"{self.log}: {self.left_out} batch executions before the latest ones are left out"
        held = sum(not run["written"] for run in self.runs)
        if held:
            yield (
                f"{self.log}: {held} of {len(self.runs)} runs are in the archive already and stay as they are; "
                "--replace writes over them"
            )
        if not self.runs:
            yield f"{self.log}: no streaming query and no SQL execution ran"

    def _told(self, what: str, faults: tuple[str, ...]) -> Iterator[str]:
        for fault in faults[:FAULTS]:
            yield f"{self.log}: {what}: {fault}"
        if len(faults) > FAULTS:
            yield f"{self.log}: {what}: {len(faults) - FAULTS} more"


def _listed(lines: tuple[int, ...]) -> str:
    return ", ".join(map(str, lines))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _span(run: dict[str, Any]) -> str:
    start_ms, end_ms = run["start_ms"], run["end_ms"]
    begun = datetime.fromtimestamp(start_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if end_ms is None:
        return f"from {begun}"
    return f"from {begun} for {(end_ms - start_ms) / 1000:.1f} s"
