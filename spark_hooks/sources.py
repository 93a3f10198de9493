"""What Spark's progress tells of a query's sources, and which operators of the plan they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from spark_hooks.file_positions import Position
from spark_hooks.intake import Intake
from spark_hooks.keep_up import KeepUp
from spark_hooks.plan import Operator
from spark_hooks.progress import Progress, moment
from spark_hooks.records import SourceBacklog
from spark_hooks.scans import of_streams
from spark_hooks.timeline import Batch
from streamgauge import wire

if TYPE_CHECKING:
    from spark_hooks.vertex import JobVertex


class Sources:
    """
    The sources of one run, in the order of its progress. Not thread safe.

    Spark's progress names no plan nodes. It lists the query's sources from left to right, each once; where the plan
    has as many scans, they are the same. A source that the plan scans twice, as in a self-join, cannot be told from
    two, and nothing is told of it.

    `intakes` are what was taken in of each; another list where their number is another.
    """

    def __init__(self) -> None:
        self.intakes: tuple[Intake, ...] = ()
        self._listed: SourceBacklog | None = None
        self._keep_up = KeepUp()
        self._matched: tuple[int, tuple[Intake, ...]] = (-1, ())

    @property
    def pending(self) -> int | None:
        """Rows that all sources together had beyond what the latest micro-batch took; None where any is not known."""
        found = [intake.pending.rows for intake in self.intakes]
        known = [rows for rows in found if rows is not None]
        return sum(known) if known and len(known) == len(found) else None

    @property
    def caught_up(self) -> bool:
        """Whether the latest micro-batch took all that any source had."""
        return bool(self.intakes) and all(intake.pending.caught_up for intake in self.intakes)

    @property
    def unread_files(self) -> dict[str, int]:
        """Description of a stream of files → the files that were left when the latest micro-batch began, if known."""
        found: dict[str, int] = {}
        for intake in self.intakes:
            if intake.figures.unread is not None:
                description = intake.latest.description
                found[description] = found.get(description, 0) + intake.figures.unread
        return found

    @property
    def positions(self) -> dict[int, Position]:
        """Place of a stream of files among the sources → where it stands, if that was ever seen."""
        places = enumerate(self.intakes)
        return {place: intake.position for place, intake in places if intake.position is not None}

    def list(self, told: SourceBacklog) -> None:
        """The streams of files were looked at, in a micro-batch whose progress is still to come."""
        self._listed = told

    def progress(self, event: Progress, batch: Batch, trigger_ms: int) -> None:
        """
        A micro-batch ended.

        Args:
            batch: The same one, as it ran.
            trigger_ms: Its beginning, wall time.
        """
        if len(event.sources) != len(self.intakes):
            self.intakes = tuple(Intake(batch.begin_ms) for _ in event.sources)
        unread = self._unread(event)
        for intake, source, files in zip(self.intakes, event.sources, unread, strict=True):
            intake.take(source, batch.end_ms, files)
        latest_ms = moment(event.event_time, "max")
        # Of several sources nobody tells whose event time it is.
        if latest_ms is not None and len(self.intakes) == 1:
            fetched_ms = trigger_ms - latest_ms
            self.intakes[0].lag(fetched_ms, fetched_ms + batch.end_ms - batch.begin_ms)
        rows = event.num_input_rows
        self._keep_up.complete(batch.begin_ms, batch.end_ms, rows, self.pending, self.caught_up)

    def metrics(self, now_ms: int, running: bool) -> dict[str, wire.Scalar]:
        """
        Return the job's metrics of whether it keeps up, and of its backlog.

        Args:
            now_ms: Steady.
            running: A micro-batch is under way.
        """
        return self._keep_up.metrics(now_ms, running)

    def wait(self, now_ms: int, reading: Iterable[JobVertex]) -> None:
        """
        See how long each source has been idle.

        Args:
            now_ms: Steady.
            reading: Vertices that a micro-batch under way has begun to execute.
        """
        busy = {intake for vertex in reading for intake in vertex.sources.intakes.values()}
        for intake in self.intakes:
            intake.wait(now_ms, intake in busy)

    def lag_behind(self, watermark_lag_ms: int) -> None:
        """The query's watermark is that much behind the driver's clock."""
        for intake in self.intakes:
            intake.figures = intake.figures._replace(watermark_lag_ms=watermark_lag_ms)

    def match(self, revision: int, vertices: Mapping[str, JobVertex], own: Collection[str]) -> None:
        """
        Tell every vertex which sources it reads, where that may have changed.

        Args:
            revision: Another one where the graph is.
            vertices: All of the job, by id.
            own: Ids of those of the query's latest own plan.
        """
        if self._matched == (revision, self.intakes):
            return
        self._matched = (revision, self.intakes)
        found = self.matched((each, operator) for each in own for operator in vertices[each].operators)
        for vertex in vertices.values():
            vertex.sources.bind({operator: intake for (owner, operator), intake in found.items() if owner == vertex.id})

    def matched(self, operators: Iterable[tuple[str, Operator]]) -> dict[tuple[str, str], Intake]:
        """
        Return (vertex id, operator id) → the source that it is; nothing where they cannot be told apart.

        Args:
            operators: All of the query's latest own plan, each with its vertex's id.
        """
        scans = sorted((found for found in operators if found[1].is_source), key=lambda found: found[1].leaf)
        if len(scans) != len(self.intakes):
            # Tables that a stream is joined with are scans too.
            scans = of_streams(scans, [intake.latest.description for intake in self.intakes])
        if len(scans) != len(self.intakes):
            return {}
        return {(vertex, scan.id): intake for (vertex, scan), intake in zip(scans, self.intakes, strict=True)}

    def _unread(self, event: Progress) -> Iterator[int | None]:
        """Yield the files left of each source, −1 where Spark kept no listing, None where nobody has looked."""
        told = self._listed
        looks: dict[str, list[tuple[int, int]]] = {}
        if told is not None:
            for description, unread, offset in zip(*(iter(told.sources),) * 3, strict=True):
                looks.setdefault(description, []).append((unread, offset))
        for source in event.sources:
            same = looks.get(source.description)
            unread, offset = same.pop(0) if same else (None, None)
            # The bus may be so late that the next trigger has been there already: then the source's offset has grown.
            # Where it has not since an earlier look, nothing has been read.
            yield unread if source.end_offset == {"logOffset": offset} else None
