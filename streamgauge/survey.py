"""Asks a collector's REST for what `jobs` and `top` show: Flink's paths, and /streamgauge/drivers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from streamgauge import answers, names
from streamgauge.answers import Aggregate, Detail, DriverRow, Metric, Row
from streamgauge.clock import Clock
from streamgauge.errors import ReadError
from streamgauge.overview import Driver, Job, Overview, known
from streamgauge.rest import Rest
from streamgauge.wire import ENDED_STATES

LISTED_FOR_MS = 30_000
"""How long a vertex is held to have the metrics that it listed: one request a reading instead of two."""

_STALE_STATES = ENDED_STATES | {"SUSPENDED"}
"""Their rates are those of the last word that was heard, so they are not shown as if they were of now."""
_JOB_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Question:
    """
    What to ask for.

    Args:
        job: Jobs whose id begins with this, with dashes or without, or whose name contains it, in any case;
            those that have ended too. None for all.
        ended: Whether to list jobs that have ended.
        lines: Figures are asked for as long as jobs and vertices fit into so many lines; None for all.
        whole: Whether to tell of vertices, slots and drivers; otherwise of jobs and their rates only.
    """

    job: str | None = None
    ended: bool = False
    lines: int | None = None
    whole: bool = True


class Survey:
    """
    Reads what is to be shown; keeps between two readings what makes the next one cheaper.

    Args:
        rest: Asked.
        clock: Tells when, and how old a list of metrics is.

    One thread.
    """

    def __init__(self, rest: Rest, clock: Clock) -> None:
        self._rest = rest
        self._clock = clock
        self._listed: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._events: dict[str, tuple[float, int, float | None]] = {}

    def read(self, question: Question) -> Overview:
        """
        Ask once.

        Raises:
            ReadError: the collector is not there, refuses, or is none.
        """
        answer = self._rest.get("/jobs/overview", answers.Jobs)
        if answer is None:
            raise self._rest.foreign("/jobs/overview: HTTP 404")
        # Those in trouble first: they are what one looks for, and what a short screen must not leave out.
        rows = sorted((row for row in answer.jobs if _is_asked(row, question)), key=lambda row: _urgency(row.state))
        cluster = self._rest.get("/overview", answers.Cluster) if question.whole else None
        return Overview(
            collector=self._rest.url,
            read_ms=self._clock.now_ms(),
            states=Counter(row.state for row in answer.jobs),
            slots_total=None if cluster is None else cluster.slots_total,
            slots_available=None if cluster is None else cluster.slots_available,
            jobs=tuple(self._jobs(rows, question)),
            drivers=self._drivers() if question.whole else None,
        )

    def failed(self, error: ReadError) -> Overview:
        """Return the reading that stands for one that failed."""
        return Overview(self._rest.url, self._clock.now_ms(), error=str(error))

    def _jobs(self, rows: Sequence[Row], question: Question) -> list[Job]:
        asked = [row.jid for row in rows if _JOB_ID.fullmatch(row.jid)][: question.lines]
        found = zip(asked, self._rest.get_all([f"/jobs/{jid}" for jid in asked], Detail), strict=True)
        details = {jid: detail for jid, detail in found if detail is not None}
        told = self._rest.get_all([answers.job_metrics_path(jid) for jid in asked], list[Metric])
        metrics = dict(zip(asked, told, strict=True))
        aggregates = self._aggregates(_wanted(rows, details, question))
        return [
            answers.job(row, details.get(row.jid), metrics.get(row.jid) or (), aggregates, question.whole)
            for row in rows
        ]

    def _aggregates(self, paths: Sequence[str]) -> dict[str, dict[str, Aggregate]]:
        now_ms = self._clock.monotonic_ns() // 1_000_000
        current = set(paths)
        self._listed = {
            path: (since_ms, ids)
            for path, (since_ms, ids) in self._listed.items()
            if path in current and now_ms - since_ms < LISTED_FOR_MS
        }
        new = [path for path in paths if path not in self._listed]
        for path, listed in zip(new, self._rest.get_all(new, list[Metric]), strict=True):
            ids = (metric.id for metric in listed or () if answers.is_shown(metric.id))
            self._listed[path] = (now_ms, tuple(ids))
        asked = [path for path in paths if self._listed[path][1]]
        queries = [f"{path}?agg=sum,max&get={quote(','.join(self._listed[path][1]), safe=',')}" for path in asked]
        found: dict[str, dict[str, Aggregate]] = {}
        for path, answer in zip(asked, self._rest.get_all(queries, list[Aggregate]), strict=True):
            if answer:
                found[path] = {aggregate.id: aggregate for aggregate in answer}
            else:
                # One metric that has gone makes the whole answer empty; the next reading asks which there are.
                del self._listed[path]
        return found

    def _drivers(self) -> tuple[Driver, ...] | None:
        answer = self._rest.get("/streamgauge/drivers", answers.Drivers)
        if answer is None:
            return None
        # Ages are told by the collector's clock, so that this machine's may be wrong.
        now_ms = _wall_ms(self._rest.date)
        before, self._events = self._events, {}
        return tuple(self._driver(row, before, now_ms) for row in answer.drivers)

    def _driver(
        self, row: DriverRow, before: Mapping[str, tuple[float, int, float | None]], now_ms: int | None
    ) -> Driver:
        hooks = {name: number for name, value in row.hooks.items() if (number := known(value)) is not None}
        events, heard_ms = hooks.get(names.HOOKS_EVENTS), row.last_frame
        rate: float | None = None
        if events is not None and heard_ms is not None:
            old_events, old_heard_ms, rate = before.get(row.id, (events, heard_ms, None))
            if heard_ms > old_heard_ms:
                # A driver that was attached anew counts from 0 again.
                rate = (events - old_events) * 1000 / (heard_ms - old_heard_ms) if events >= old_events else None
            self._events[row.id] = (events, heard_ms, rate)
        return Driver(
            id=row.id,
            name=row.name,
            host=row.host,
            silent=row.silent,
            last_frame_ms=heard_ms,
            age_ms=None if now_ms is None or heard_ms is None else max(0, now_ms - heard_ms),
            events_per_second=None if row.silent else rate,
            hooks=hooks,
        )


def _is_asked(row: Row, question: Question) -> bool:
    if question.job is None:
        return question.ended or row.state not in ENDED_STATES
    wanted = question.job.casefold()
    return row.jid.startswith(wanted.replace("-", "")) or wanted in row.name.casefold()


def _urgency(state: str) -> int:
    if state in ENDED_STATES:
        return 2
    return 1 if state in ("RUNNING", "CREATED") else 0


def _wanted(rows: Sequence[Row], details: Mapping[str, Detail], question: Question) -> list[str]:
    """Return the paths of the vertices whose metrics are shown."""
    wanted: list[str] = []
    room = question.lines
    for row in rows:
        if room is not None and room <= 0:
            break
        detail = details.get(row.jid)
        if detail is None:
            room = None if room is None else room - 1
            continue
        room = None if room is None else room - 1 - len(detail.vertices)
        if row.state not in _STALE_STATES:
            # A job's own rates are those of its ends.
            ends = detail.sources() | detail.sinks()
            listed = (vertex.id for vertex in detail.vertices if question.whole or vertex.id in ends)
            wanted += [answers.metrics_path(row.jid, vertex_id) for vertex_id in listed]
    return wanted


def _wall_ms(date: str | None) -> int | None:
    """Return an HTTP date in Unix milliseconds; None where there is none that can be read."""
    try:
        return None if date is None else int(parsedate_to_datetime(date).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
