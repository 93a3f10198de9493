"""One request to the Flink REST: what was asked, parsed as Flink parses it, and what it is asked of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs

from collector.archive import Archive, Entries
from collector.history import NO_HISTORY, Course, Heat, History
from collector.run import Run, VertexCourse
from collector.segment import Entry, run_id
from collector.store import AppState, JobState, Snapshot, VertexState
from service.cluster import application_id
from service.errors import HANDLER, NOT_FOUND, Missing
from service.flink.ids import is_id
from streamgauge.errors import UnknownJob, UnknownVertex, UnresolvableParameter
from streamgauge.wire import ENDED_STATES, FAILURES, Checkpoint

_INDEX = re.compile(r"\+?[0-9]{1,10}")
_INT = re.compile(r"[+-]?[0-9]{1,10}")
_LONG = re.compile(r"[+-]?[0-9]{1,19}")
_MIN_INT, _MAX_INT = -(2**31), 2**31 - 1
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
AGGREGATES = ("min", "max", "avg", "sum", "skew")
"""In the order of Flink's answers."""


def _id(name: str, value: str) -> str:
    if not is_id(value):
        raise UnresolvableParameter("path", name, value)
    return value.lower()


def _index(name: str, value: str) -> str:
    if _INDEX.fullmatch(value) is None or int(value) > _MAX_INT:
        raise UnresolvableParameter("path", name, value)
    return str(int(value))


def _int(name: str, value: str) -> str:
    if _INT.fullmatch(value) is None or not _MIN_INT <= int(value) <= _MAX_INT:
        raise UnresolvableParameter("path", name, value)
    return str(int(value))


def _long(name: str, value: str) -> str:
    if _LONG.fullmatch(value) is None or not _MIN_LONG <= int(value) <= _MAX_LONG:
        raise UnresolvableParameter("path", name, value)
    return str(int(value))


_CONVERTERS = {
    "jobid": _id,
    "vertexid": _id,
    "triggerid": _id,
    "rescaleuuid": _id,
    "subtaskindex": _index,
    "attempt": _int,
    "checkpointid": _long,
}


_NO_ENTRIES = Entries()


def live(snapshot: Snapshot, wanted: str) -> JobState | None:
    """Return a live job by its id, or by that of its run; None where there is none."""
    found = snapshot.jobs.get(wanted)
    if found is None:
        found = next((state for state in snapshot.jobs.values() if run_id(state) == wanted), None)
    return found


@dataclass(frozen=True, slots=True)
class Query:
    """
    One request.

    Args:
        snapshot: What it is answered from, as a whole.
        now_ms: Wall time of the answer.
        path: Path parameters by Flink's name (jobid, vertexid, subtaskindex, …), as `parse` checked them.
        parameters: Query parameters by name, in the order they came.
        history: What was before the snapshot.
        archive: What ended before it; None where there is none.
        archived: The run that the path's jobid names, or the last one of its application, where that is not live; it is
            read before the answer is made.
    """

    snapshot: Snapshot
    now_ms: int
    path: Mapping[str, str]
    parameters: Mapping[str, list[str]]
    history: History = NO_HISTORY
    archive: Archive | None = None
    archived: Run | None = None

    @classmethod
    def parse(
        cls,
        snapshot: Snapshot,
        now_ms: int,
        path: Mapping[str, str],
        query_string: bytes,
        history: History = NO_HISTORY,
        archive: Archive | None = None,
    ) -> Query:
        """
        Check a request's path parameters and read its query string; any thread.

        Raises:
            UnresolvableParameter: an id is not 32 hex digits, a subtask index is no Java int ≥ 0, an attempt none, or a
                checkpoint's id no Java long.
        """
        checked = {
            name: _CONVERTERS[name](name, value) if name in _CONVERTERS else value for name, value in path.items()
        }
        # As in Flink's Netty a semicolon parts parameters too.
        text = query_string.decode("latin-1").replace(";", "&")
        return cls(snapshot, now_ms, checked, parse_qs(text, keep_blank_values=True) if text else {}, history, archive)

    def words(self, name: str) -> list[str] | None:
        """
        Return a comma-separated query parameter's values, repeats of it joined; None where it was not given.

        An empty value is one empty word, empty words at the end are dropped.

        Source: Flink's `MessageQueryParameter.resolveFromString`, that is Java's `String.split`.
        """
        if name not in self.parameters:
            return None
        words = ",".join(self.parameters[name]).split(",")
        if words == [""]:
            return words
        while words and not words[-1]:
            words.pop()
        return words

    def metrics(self) -> list[str] | None:
        """Return the metrics asked for with `get`; None where their ids are asked for."""
        return self.words("get") or None

    def aggregates(self) -> tuple[str, ...]:
        """
        Return the aggregates asked for with `agg`, in the order of AGGREGATES; all where none is named.

        Raises:
            UnresolvableParameter: one is none of them, in any case.
        """
        asked = self.words("agg")
        if asked is None:
            return AGGREGATES
        lower = {word.lower() for word in asked}
        if not lower.issubset(AGGREGATES):
            raise UnresolvableParameter("query", "agg", ",".join(self.parameters["agg"]))
        return tuple(mode for mode in AGGREGATES if mode in lower) or AGGREGATES

    def ids(self, name: str) -> list[str] | None:
        """
        Return the ids of a query parameter, in lower case; None where it was not given.

        Raises:
            UnresolvableParameter: one is not 32 hex digits.
        """
        words = self.words(name)
        if words is None:
            return None
        if not all(map(is_id, words)):
            raise UnresolvableParameter("query", name, ",".join(self.parameters[name]))
        return [word.lower() for word in words]

    def since_ms(self) -> int | None:
        """
        Return the moment that `since` names, Unix ms; None where it was not given.

        Raises:
            UnresolvableParameter: it is no Java long.
        """
        words = self.words("since")
        if words is None:
            return None
        if len(words) != 1 or _LONG.fullmatch(words[0]) is None or not _MIN_LONG <= int(words[0]) <= _MAX_LONG:
            raise UnresolvableParameter("query", "since", ",".join(self.parameters["since"]))
        return int(words[0])

    def subtasks(self, size: int) -> list[int] | None:
        """
        Return the subtasks below `size` that `subtasks` selects ('0-3,7'); None for all of them.

        What does not parse selects none, as in Flink.
        """
        words = self.words("subtasks")
        if words is None:
            return None
        chosen: set[int] = set()
        for word in words:
            first, dash, last = word.partition("-")
            if _INDEX.fullmatch(first) is None or (dash and _INDEX.fullmatch(last) is None):
                return []
            chosen.update(range(int(first), min(int(last) if dash else int(first), size - 1) + 1))
        return sorted(chosen)

    def job(self) -> JobState:
        """
        Return the job of the path, or the run that it names: live, or as it was archived.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
        """
        found = self.known_job()
        if found is None:
            raise UnknownJob(self.path["jobid"])
        return found

    def known_job(self) -> JobState | None:
        """Return the job of the path, as `job`; None where it is unknown."""
        return self.snapshot.jobs.get(self.path["jobid"]) if self.archived is None else self.archived.state

    def app(self, state: JobState) -> AppState | None:
        """Return the application of the path's job as it is, or of an archived one as it was; None if not held."""
        return self.snapshot.apps.get(state.app.id) if self.archived is None else self.archived.app

    def run(self, wanted: str | None = None) -> Run:
        """
        Return a run whole, live or archived; only for resources of `service.flink.rest.WAITING`, for it may wait.

        Args:
            wanted: A job's id, or a run's own; that of the path where it is None.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
            ArchiveAway: the archive does not answer.
            CorruptSegment: what it holds of the run cannot be read.
        """
        if wanted is None and self.archived is not None:
            return self.archived
        asked = self.path["jobid"] if wanted is None else wanted
        state = live(self.snapshot, asked)
        if state is not None:
            return Run.of(state, self.snapshot.apps.get(state.app.id), self.history)
        found = None if self.archive is None else self.archive.read(asked)
        if found is None:
            raise UnknownJob(asked)
        return found

    @property
    def entries(self) -> Entries:
        """What is archived, as of a moment ago; a live run may be among it, as it was before."""
        return _NO_ENTRIES if self.archive is None else self.archive.entries

    def runs(self, jid: str) -> tuple[Entry, ...]:
        """Return the archived runs of a job, newest first; its live one may be among them, as it was before."""
        return self.entries.runs.get(jid, ())

    def archived_jobs(self) -> list[Entry]:
        """Return the latest run of each archived job that is not live, the job first that started last."""
        return [entry for entry in self.entries.jobs if entry.jid not in self.snapshot.jobs]

    def of_run(self) -> Query:
        """Return the query of a live job that names it by its run; any other as it is."""
        wanted = self.path.get("jobid")
        if wanted is None or wanted in self.snapshot.jobs:
            return self
        state = live(self.snapshot, wanted)
        return self if state is None else replace(self, path={**self.path, "jobid": state.job.jid})

    def is_live(self) -> bool:
        """Tell whether the path's job or application is live, or it names none."""
        wanted, application = self.path.get("jobid"), self.path.get("applicationid")
        if application is not None:
            return self._live_application(application) is not None
        return wanted is None or wanted in self.snapshot.jobs

    def opened(self) -> Query:
        """
        Return the query with what is archived of the path's job or application, where that is not live; it may wait.

        Raises:
            ArchiveAway: the archive does not answer.
            CorruptSegment: what it holds of the run cannot be read.
        """
        if self.archive is None or self.is_live():
            return self
        asked = self.path.get("applicationid")
        wanted = self.path["jobid"] if asked is None else self._run_of(asked)
        run = None if wanted is None else self.archive.read(wanted)
        if run is None:
            return self
        # Of a run whose end nobody told, everything is told as of when it fell silent: it no longer runs.
        now_ms = self.now_ms if run.state.state in ENDED_STATES else min(self.now_ms, run.state.modified_ms)
        return replace(self, archived=run, now_ms=now_ms)

    def jobs_of(self, application: str) -> list[JobState]:
        """Return the jobs of the path's application: the live ones, or of an archived one what FAILED last of it."""
        if self.archive is None or self.archived is None:
            return [state for state in self.snapshot.jobs.values() if state.app.id == application]
        failed = [each for each in self.entries.jobs if each.application == application and each.state == "FAILED"]
        runs = (self.archive.read(entry.run) for entry in failed[:FAILURES])
        return [run.state for run in runs if run is not None]

    def _run_of(self, application: str) -> str | None:
        """Return the latest archived run of an application, by Spark's id for it or by Flink's."""
        names = {
            spark
            for spark in {each.application for each in self.entries}
            if application == spark or application.lower() == application_id(spark)
        }
        of_it = [each for each in self.entries if each.application in names]
        return max(of_it, key=lambda entry: entry.archived_ms).run if of_it else None

    def course(self, since_ms: int | None) -> Course | None:
        """Return the course of the path's job, of what was sampled after `since_ms`; as `History.job`."""
        if self.archived is None:
            return self.history.job(self.path["jobid"], since_ms)
        return None if self.archived.course is None else self.archived.course.since(since_ms)

    def vertex_course(self, vertex: str, since_ms: int | None) -> Course | None:
        """Return that of a vertex of it; as `History.vertex`."""
        if self.archived is None:
            return self.history.vertex(self.path["jobid"], vertex, since_ms)
        held = self.archived.vertices.get(vertex, VertexCourse())
        return None if held.figures is None else held.figures.since(since_ms)

    def heat(self, vertex: str, since_ms: int | None) -> Heat | None:
        """Return the latencies of markers that left a vertex of it; as `History.heat`."""
        if self.archived is None:
            return self.history.heat(self.path["jobid"], vertex, since_ms)
        held = self.archived.vertices.get(vertex, VertexCourse())
        return None if held.heat is None else held.heat.since(since_ms)

    def streaming_job(self, refusal: str) -> JobState:
        """
        Return the job of the path, a streaming query.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
            Missing: it is none; with `refusal` as the message.
        """
        state = self.job()
        if state.job.type != "STREAMING":
            raise Missing(HANDLER, refusal)
        return state

    def checkpoint(self) -> Checkpoint:
        """
        Return the micro-batch of the path.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
            Missing: the job is no streaming query, or the micro-batch has not begun, or is held no more.
        """
        state = self.streaming_job(f"Checkpointing was not enabled for job {self.path['jobid']}.")
        checkpoint_id = int(self.path["checkpointid"])
        if checkpoint_id not in state.checkpoints.held:
            raise Missing(HANDLER, f"Could not find checkpointing statistics for checkpoint {checkpoint_id}.")
        return state.checkpoints.held[checkpoint_id]

    def setting(self, state: JobState, key: str, default: str = "") -> str:
        """
        Return a setting of a job's own, or else of its application's configuration.

        Args:
            default: Spark's, where the configuration does not name it; where no configuration was told it is ''.
        """
        app = self.app(state)
        known = {**({} if app is None else app.configuration), **state.configuration}
        return known.get(key, default if known else "")

    def vertex(self) -> VertexState:
        """
        Return the vertex of the path.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
            UnknownVertex: the job has none of this id.
        """
        vertices = self.job().vertices
        vertex_id = self.path["vertexid"]
        if vertex_id not in vertices:
            raise UnknownVertex(vertex_id)
        return vertices[vertex_id]

    def job_vertex(self) -> VertexState:
        """
        Return the vertex of the path, where Flink refuses an unknown one in other words than `vertex` does.

        Raises:
            UnknownJob: never seen, or evicted and not archived.
            Missing: the job has none of this id.

        Source: Flink's `AbstractJobVertexHandler`.
        """
        vertex_id = self.path["vertexid"]
        found = self.job().vertices.get(vertex_id)
        if found is None:
            raise Missing(HANDLER, f"No vertex with ID '{vertex_id}' exists.")
        return found

    def known_vertex(self) -> VertexState | None:
        """Return the vertex of the path; None where it, or its job, is unknown."""
        job = self.known_job()
        return None if job is None else job.vertices.get(self.path["vertexid"])

    def subtask(self) -> int:
        """Return the subtask index of the path, ≥ 0; it need not exist."""
        return int(self.path["subtaskindex"])

    def attempt(self) -> int:
        """Return the number of the attempt of the path; it need not exist, and may be below 0."""
        return int(self.path["attempt"])

    def application(self) -> AppState:
        """
        Return the application of the path, by Flink's id for it or by Spark's own.

        Raises:
            Missing: never seen, or evicted and not archived. Flink answers 500 there.
            UnresolvableParameter: it is neither 32 hex digits nor the id of an application that is held.
        """
        asked = self.path["applicationid"]
        found = self._live_application(asked)
        if found is None and self.archived is not None:
            found = self.archived.app
        if found is not None:
            return found
        wanted = _id("applicationid", asked)
        raise Missing(NOT_FOUND, f"Could not find Flink application ({wanted})")

    def _live_application(self, asked: str) -> AppState | None:
        found = self.snapshot.apps.get(asked)
        if found is None and is_id(asked):
            wanted = asked.lower()
            found = next((app for app in self.snapshot.apps.values() if application_id(app.app.id) == wanted), None)
        return found
