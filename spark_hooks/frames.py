"""The model → frames: what has changed since the collector last acknowledged, or everything."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from spark_hooks import tap_columns
from spark_hooks.configuration import NAME_CHARS, configuration, cut, environment
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.job import Job
from spark_hooks.redaction import Redaction, distinct
from spark_hooks.vertex import JobVertex, subtask_columns
from spark_hooks.vertex_columns import groups
from streamgauge import names, wire
from streamgauge.clock import Clock

METRIC_CHARS = 500
TEXT_CHARS = 30_000
"""Longer texts are cut: a collector refuses a whole push for one that is too long."""

METRIC_NAMES = 10_000
"""Of sources, that are known redacted."""

_PLAN = ("plan",)
_CONFIGURATION = ("configuration",)
_ENVIRONMENT = ("environment",)
_OBSERVED = ("observed",)
_FAILURES = ("failures",)
_CHECKPOINTS = ("checkpoints",)
_WHOLE = frozenset(key[0] for key in (_PLAN, _CONFIGURATION, _ENVIRONMENT, _OBSERVED, _FAILURES, _CHECKPOINTS))
"""How keys of a channel begin that are no vertex's; every other one begins with a vertex id."""


@dataclass(slots=True)
class _Changed:
    """Something that travels, and the frame in which it last changed."""

    value: object
    seq: int


@dataclass(slots=True)
class _Channel:
    """What the collector knows of one run: frames sent, and the last one acknowledged."""

    seq: int = 0
    acknowledged: int = 0
    revision: int = -1
    plan: wire.Plan | None = None
    told: dict[str, str] | None = None
    configuration: dict[str, str] = field(default_factory=dict)
    redacted: dict[wire.Failure, wire.Failure] = field(default_factory=dict)
    parts: dict[tuple[str, ...], _Changed] = field(default_factory=dict)

    def note(self, key: tuple[str, ...], value: object) -> bool:
        """Remember `value`; return whether the collector may not have it."""
        known = self.parts.get(key)
        if known is None or known.value != value:
            known = self.parts[key] = _Changed(value, self.seq)
        return known.seq > self.acknowledged

    def forget_vertices(self, present: Container[str]) -> None:
        """Forget the vertices that the job has no longer."""
        for key in [key for key in self.parts if key[0] not in _WHOLE and key[0] not in present]:
            del self.parts[key]


class Frames:
    """
    Builds the frames of one push. Not thread safe.

    Args:
        app: This application.
        interval_ms: The push interval.
        redact: Applied to everything that a user may have written.
        sequences: (jid or '', attempt) → last seq, of hooks that were attached before; counting goes on.
    """

    def __init__(
        self,
        app: wire.App,
        interval_ms: int,
        clock: Clock,
        redact: Redaction,
        sequences: Mapping[tuple[str, wire.Attempt], int] | None = None,
    ) -> None:
        self._redact = redact
        self._app = msgspec.structs.replace(app, name=self._name(app.name))
        self._interval_ms = interval_ms
        self._clock = clock
        self._environment: wire.Environment | None = None
        self._metrics: dict[str, str] = {}
        self._sequences = dict(sequences or {})
        self._channels: dict[tuple[str, wire.Attempt], _Channel] = {}

    def build(
        self, model: Model, executors: Executors, driver: dict[str, wire.Scalar], hooks: dict[str, wire.Scalar]
    ) -> list[wire.Frame]:
        """Return the application's frame and one of each job that has not ended and been told so."""
        # Here and not when the collector answers, which it may not do for days.
        held = {(job.jid, job.attempt) for job in model.jobs.values()}
        for key in [key for key in self._channels if key[0] and key not in held]:
            del self._channels[key]
        incomplete = wire.Incomplete(
            int(hooks.get(names.HOOKS_DROPPED_RECORDS, 0)),
            int(hooks.get(names.HOOKS_DROPPED_LIVE, 0)),
            model.unknown_updates,
        )
        own = msgspec.structs.replace(
            self._application_frame(model),
            executors=executors.frames(),
            driver=driver,
            hooks=hooks,
            incomplete=incomplete,
        )
        return [own, *(self._job_frame(job, incomplete) for job in list(model.jobs.values()))]

    def acknowledge(self, sent: list[wire.Frame], model: Model, executors: Executors) -> None:
        """The collector took `sent` in: later frames build on them, and what has ended is forgotten."""
        for frame in sent:
            key = ("" if frame.job is None else frame.job.jid, frame.attempt)
            channel = self._channels.get(key)
            if channel is None:
                continue
            channel.acknowledged = max(channel.acknowledged, frame.seq)
            executors.forget_gone(frame.executors)
            if frame.job is not None and frame.job.state in wire.ENDED_STATES:
                model.forget(frame.job.jid, frame.attempt)
                del self._channels[key]

    def _name(self, text: str) -> str:
        return cut(self._redact(text), NAME_CHARS)

    def _text(self, text: str) -> str:
        return cut(self._redact(text), TEXT_CHARS)

    def _metric(self, name: str) -> str:
        # They are the same ones in every batch, and to redact one takes longer than all else that is done with it.
        found = self._metrics.get(name)
        if found is None:
            if len(self._metrics) >= METRIC_NAMES:
                self._metrics.clear()
            found = self._metrics[name] = cut(self._redact(name), METRIC_CHARS)
        return found

    def _scalar(self, value: wire.Scalar) -> wire.Scalar:
        return self._text(value) if isinstance(value, str) else value

    def sequences(self) -> dict[tuple[str, wire.Attempt], int]:
        """Return the last seq of every run, for hooks that are attached after these."""
        return self._sequences | {key: channel.seq for key, channel in self._channels.items()}

    def start_over(self) -> None:
        """The collector has lost its state: send everything."""
        for channel in self._channels.values():
            channel.acknowledged = 0

    def _head(self, jid: str, attempt: wire.Attempt) -> wire.Frame:
        channel = self._channels.get((jid, attempt))
        if channel is None:
            channel = self._channels[jid, attempt] = _Channel(self._sequences.get((jid, attempt), 0))
        channel.seq += 1
        return wire.Frame(
            version=wire.WIRE_VERSION,
            app=self._app,
            attempt=attempt,
            seq=channel.seq,
            base=channel.acknowledged,
            sent_at_ms=self._clock.now_ms(),
            interval_ms=self._interval_ms,
        )

    def _application_frame(self, model: Model) -> wire.Frame:
        attempt = wire.Attempt(self._app.start_ms, self._app.id)
        head = msgspec.structs.replace(self._head("", attempt), end_ms=model.end_ms)
        told = model.environment
        if told is None:
            return head
        channel = self._channels["", attempt]
        if self._environment is None:
            self._environment = environment(told, self._redact)
        return msgspec.structs.replace(
            head,
            configuration=self._configuration(channel, told.settings),
            environment=self._environment if channel.note(_ENVIRONMENT, self._environment) else None,
        )

    def _configuration(self, channel: _Channel, told: dict[str, str]) -> dict[str, str] | None:
        if channel.told != told:
            channel.told, channel.configuration = told, configuration(told, self._redact)
        return channel.configuration if channel.note(_CONFIGURATION, channel.configuration) else None

    def _job_frame(self, job: Job, incomplete: wire.Incomplete) -> wire.Frame:
        job.course.look()
        head = self._head(job.jid, job.attempt)
        channel = self._channels[(job.jid, job.attempt)]
        if channel.revision != job.graph.revision:
            channel.revision, channel.plan = job.graph.revision, self._plan(job)
            channel.forget_vertices(job.graph.vertices)
        coordinators = job.course.coordinators()
        return msgspec.structs.replace(
            head,
            job=wire.Job(
                jid=job.jid,
                name=self._name(job.name),
                type=job.kind,
                state=job.state,
                since_ms=dict(job.since_ms),
                end_ms=job.end_ms,
                trigger=job.trigger,
                level="task",
                metrics=job.metrics(),
                failure=self._text(job.failure),
                checkpoint_path=self._name(job.checkpoint_path),
                latency=None if job.course.markers is None else job.course.markers.granularity,
            ),
            plan=channel.plan if channel.note(_PLAN, channel.plan) else None,
            vertices=tuple(self._vertex(channel, job, vertex, coordinators) for vertex in job.graph.vertices.values()),
            incomplete=incomplete,
            configuration=self._configuration(channel, job.settings),
            observed=self._observed(job) if channel.note(_OBSERVED, job.observed) else None,
            checkpoints=self._checkpoints(channel, job) if job.kind == "STREAMING" else None,
            failures=self._failures(channel, job.failures.told()),
        )

    def _observed(self, job: Job) -> dict[str, wire.Scalar]:
        return {cut(self._redact(key), METRIC_CHARS): self._scalar(value) for key, value in job.observed.items()}

    def _checkpoints(self, channel: _Channel, job: Job) -> wire.Checkpoints | None:
        told = job.checkpoints.told()
        totals = msgspec.structs.replace(told, changed=())
        changed = tuple(each for each in told.changed if channel.note((*_CHECKPOINTS, str(each.id)), each))
        if not channel.note(_CHECKPOINTS, totals) and not changed:
            return None
        held = {_CHECKPOINTS, *((*_CHECKPOINTS, str(checkpoint_id)) for checkpoint_id in told.held)}
        for key in [key for key in channel.parts if key[0] == _CHECKPOINTS[0] and key not in held]:
            del channel.parts[key]
        redacted = (msgspec.structs.replace(each, failure=self._name(each.failure)) for each in changed)
        return msgspec.structs.replace(totals, changed=tuple(redacted))

    def _failures(self, channel: _Channel, told: wire.Failures) -> wire.Failures | None:
        # Once a failure: their stacks are long, and the same ones come every second.
        known, channel.redacted = channel.redacted, {}
        latest = tuple(self._failure(failure, known, channel.redacted) for failure in told.latest)
        redacted = wire.Failures(latest, told.forgotten)
        return redacted if channel.note(_FAILURES, redacted) else None

    def _failure(
        self,
        failure: wire.Failure,
        known: Mapping[wire.Failure, wire.Failure],
        kept: dict[wire.Failure, wire.Failure],
    ) -> wire.Failure:
        redacted = known.get(failure)
        if redacted is None:
            redacted = msgspec.structs.replace(
                failure,
                name=self._name(failure.name),
                trace=_cut_within(self._redact(failure.trace), TEXT_CHARS),
                endpoint=self._name(failure.endpoint),
                concurrent=tuple(self._failure(each, known, kept) for each in failure.concurrent),
            )
        kept[failure] = redacted
        return redacted

    def _plan(self, job: Job) -> wire.Plan:
        return wire.Plan(
            tuple(
                wire.Vertex(
                    id=vertex.id,
                    name=self._name(vertex.name),
                    operators=tuple(
                        wire.Operator(operator.id, name, self._name(operator.node), self._text(operator.description))
                        for operator, name in zip(
                            vertex.operators,
                            distinct(self._name(operator.name) for operator in vertex.operators),
                            strict=True,
                        )
                    ),
                    inputs=tuple(
                        wire.Edge(source, exchange.ship_strategy, self._text(exchange.description))
                        for source, exchange in vertex.inputs.items()
                        if source in job.graph.vertices
                    ),
                    current=vertex.id in job.graph.current,
                )
                for vertex in job.graph.vertices.values()
            )
        )

    def _vertex(
        self,
        channel: _Channel,
        job: Job,
        vertex: JobVertex,
        coordinators: Mapping[tuple[str, str], Mapping[str, wire.Scalar]],
    ) -> wire.VertexColumns:
        columns: dict[str, list[wire.Column]] = {"": []}
        for group in groups(vertex) if vertex.size else ():
            # One look at what a group of columns is made of spares the look at each of them where nothing has moved.
            if not channel.note((vertex.id, "group", group.name), (vertex.size, group.state)):
                continue
            for told in group.columns():
                column = wire.column(told.metric, told.values, told.present)
                if channel.note((vertex.id, told.operator, told.metric), column):
                    columns.setdefault(told.operator, []).append(column)
        subtasks = subtask_columns(vertex, self._app.id)

        def wanted(key: tuple[str, ...], state: object) -> bool:
            return channel.note((vertex.id, *key), state)

        taps = list(job.course.taps.of(vertex.id))
        return wire.VertexColumns(
            id=vertex.id,
            parallelism=vertex.parallelism,
            size=vertex.size,
            start_ms=vertex.start_ms,
            columns=tuple(columns.pop("")),
            operators=tuple(wire.OperatorColumns(name, tuple(found)) for name, found in columns.items() if found),
            subtasks=subtasks if channel.note((vertex.id, "", ""), subtasks) else None,
            accumulators=tuple(_accumulators(channel, vertex)),
            coordinators=self._coordinators(channel, vertex.id, coordinators),
            latencies=tuple(_latencies(channel, job, vertex)),
            histograms=tuple(_histograms(channel, job, vertex)),
            taps=tap_columns.taps(taps, wanted, self._metric),
            distributions=(*_distributions(channel, vertex), *tap_columns.distributions(taps, wanted)),
        )

    def _coordinators(
        self, channel: _Channel, vertex_id: str, coordinators: Mapping[tuple[str, str], Mapping[str, wire.Scalar]]
    ) -> tuple[wire.Coordinator, ...] | None:
        known = tuple((operator, told) for (owner, operator), told in coordinators.items() if owner == vertex_id)
        # Before anything is redacted: a source may have a thousand partitions, and their topics' names are a user's.
        if not channel.note((vertex_id, "coordinators"), known):
            return None
        return tuple(
            wire.Coordinator(operator, {self._metric(name): self._scalar(value) for name, value in told.items()})
            for operator, told in known
        )


def _accumulators(channel: _Channel, vertex: JobVertex) -> Iterator[wire.Accumulator]:
    """Yield the native metrics that the collector may not have."""
    held = vertex.accumulators
    if channel.note((vertex.id, "accumulators"), (held.revision, vertex.size)):
        for found in held.columns(vertex.size):
            if channel.note((vertex.id, "accumulators", found.operator, found.column.metric), found):
                yield found


def _latencies(channel: _Channel, job: Job, vertex: JobVertex) -> Iterator[wire.Latency]:
    """Yield the latencies that the collector may not have."""
    if job.course.markers is not None:
        held = job.course.markers.latencies
        yield from held.latencies(vertex.id, vertex.size, lambda key, state: channel.note((vertex.id, *key), state))


def _histograms(channel: _Channel, job: Job, vertex: JobVertex) -> Iterator[wire.LatencyHistogram]:
    """Yield the histograms that the collector may not have."""
    if job.course.markers is not None:
        held = job.course.markers.latencies
        yield from held.histograms(vertex.id, lambda key, state: channel.note((vertex.id, *key), state))


def _distributions(channel: _Channel, vertex: JobVertex) -> Iterator[wire.Distribution]:
    """Yield the distributions that the collector may not have."""
    timers = vertex.timers
    if timers is not None and channel.note((vertex.id, "distribution", names.TIMER_LATENESS), timers.revision):
        lateness = timers.lateness()
        if lateness is not None:
            yield lateness


def _cut_within(text: str, chars: int) -> str:
    """Keep what a text begins with, and its end: root causes stand there."""
    tail = chars // 4
    return text if len(text) <= chars else f"{text[: chars - tail - 3]}\n…\n{text[-tail:]}"
