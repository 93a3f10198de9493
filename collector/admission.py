"""Whether a frame may come in: everything that the frame alone can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import get_args

import numpy as np

from collector.checks import Checks, shown
from collector.latency_admission import LatencyAdmission
from collector.limits import Limits
from collector.tap_admission import TapAdmission
from streamgauge import wire
from streamgauge.errors import FrameTooLarge, InvalidName, MalformedFrame

_STATES = frozenset(get_args(wire.JobState))
_NONE = (None, None, None)


def place(index: int, frame: wire.Frame) -> str:
    """
    Return the words by which messages name a frame: its index in the body and whose it is.

    Any thread.
    """
    if frame.job is None:
        return f"frame {index} (application {shown(frame.app.id)})"
    return f"frame {index} (job {shown(frame.job.jid)})"


class Admission(Checks):
    """
    Checks frames against the wire format and the limits.

    Holds no state but the limits: any thread.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._latencies = LatencyAdmission(limits)
        self._taps = TapAdmission(limits)

    def check_body(self, body: bytes) -> None:
        """
        Check a push before it is decoded.

        Raises:
            FrameTooLarge: longer than `body_bytes`.
        """
        if len(body) > self._limits.body_bytes:
            raise FrameTooLarge(
                f"the body has {len(body)} bytes, at most {self._limits.body_bytes} are taken: "
                "push fewer frames at a time or raise the limit body_bytes"
            )

    def check(self, frames: list[wire.Frame]) -> None:
        """
        Check all that needs no knowledge of the store: numbers, ids, names, lengths, limits.

        Raises:
            MalformedFrame: contradicts itself or the wire format.
            InvalidName: a name or text is empty where it must not be, too long, or not unique.
            FrameTooLarge: past a limit.
        """
        self._bound("the body", "frames", frames)
        for index, frame in enumerate(frames):
            self._frame(place(index, frame), frame)

    def _frame(self, where: str, frame: wire.Frame) -> None:
        if not 0 <= frame.base < frame.seq:
            raise MalformedFrame(
                f"{where}: seq {frame.seq} with base {frame.base}, expected 0 <= base < seq: "
                "seq counts up from 1, and base is an earlier seq that was acknowledged, or 0 for a full frame"
            )
        if not 1 <= frame.interval_ms <= self._limits.interval_ms:
            raise MalformedFrame(
                f"{where}: interval_ms {frame.interval_ms}, expected 1 to {self._limits.interval_ms}: "
                "set a push interval in this range"
            )
        self._app(where, frame)
        self._settings(f"{where}: configuration", frame.configuration or {})
        if frame.job is None:
            self._application_frame(where, frame)
        else:
            self._job_frame(where, frame, frame.job)

    def _app(self, where: str, frame: wire.Frame) -> None:
        self._name(where, "app.id", frame.app.id)
        self._name(where, "attempt.run_id", frame.attempt.run_id)
        for field in ("name", "host", "spark_version", "hooks_version"):
            self._length(where, f"app.{field}", getattr(frame.app, field), "name_chars")

    def _application_frame(self, where: str, frame: wire.Frame) -> None:
        if frame.plan is not None or frame.vertices or (frame.observed, frame.checkpoints, frame.failures) != _NONE:
            raise MalformedFrame(
                f"{where}: an application's frame has no plan, vertices, observed metrics, checkpoints and failures; "
                "send them with their job"
            )
        if frame.environment is not None:
            self._environment(f"{where}: environment", frame.environment)
        self._scalars(f"{where}: driver", frame.driver)
        self._scalars(f"{where}: hooks", frame.hooks)
        self._bound(where, "executors", frame.executors)
        self._unique(where, "executor", (executor.id for executor in frame.executors))
        for executor in frame.executors:
            self._executor(f"{where}: executor {shown(executor.id)}", executor)

    def _executor(self, where: str, executor: wire.Executor) -> None:
        self._name(where, "id", executor.id)
        self._length(where, "endpoint", executor.endpoint, "name_chars")
        if executor.cores < 0 or executor.slots < 0:
            raise MalformedFrame(
                f"{where}: {executor.cores} cores and {executor.slots} slots, expected 0 or more: send 0 where unknown"
            )
        if len(executor.running) > self._limits.jobs:
            raise FrameTooLarge(f"{where}: tasks of {len(executor.running)} jobs, at most {self._limits.jobs} are held")
        for jid, tasks in executor.running.items():
            if jid:
                self._id(where, "running", jid)
            if tasks < 0:
                raise MalformedFrame(f"{where}: {tasks} running tasks of job {shown(jid)}, expected 0 or more")
        self._scalars(where, executor.metrics)

    def _job_frame(self, where: str, frame: wire.Frame, job: wire.Job) -> None:
        if frame.executors or frame.driver or frame.hooks or frame.environment is not None:
            raise MalformedFrame(
                f"{where}: executors, driver, hooks and environment belong to the application; send them in a frame "
                "without job"
            )
        self._id(where, "jid", job.jid)
        self._name(where, "name", job.name)
        self._length(where, "trigger", job.trigger, "name_chars")
        self._length(where, "failure", job.failure, "text_chars")
        for state in job.since_ms:
            if state not in _STATES:
                raise MalformedFrame(f"{where}: since_ms names {shown(state)}, expected one of {sorted(_STATES)}")
        self._length(where, "checkpoint_path", job.checkpoint_path, "name_chars")
        self._scalars(where, job.metrics)
        self._scalars(f"{where}: observed", frame.observed or {})
        if frame.checkpoints is not None:
            self._checkpoints(where, frame.checkpoints)
        if frame.failures is not None:
            self._failures(where, frame.failures.latest)
        if frame.plan is not None:
            self._plan(where, frame.plan)
        self._bound(where, "vertices", frame.vertices)
        self._unique(where, "vertex", (vertex.id for vertex in frame.vertices))
        for vertex in frame.vertices:
            self._vertex_columns(f"{where}: vertex {shown(vertex.id)}", vertex)

    def _plan(self, where: str, plan: wire.Plan) -> None:
        self._bound(where, "vertices", plan.vertices)
        self._unique(where, "vertex", (vertex.id for vertex in plan.vertices))
        graph = {vertex.id: [edge.source for edge in vertex.inputs] for vertex in plan.vertices}
        for vertex in plan.vertices:
            self._vertex(f"{where}: vertex {shown(vertex.id)}", vertex)
            for source in graph[vertex.id]:
                if source not in graph:
                    raise MalformedFrame(
                        f"{where}: vertex {shown(vertex.id)} reads vertex {shown(source)}, which the plan does not "
                        "have: send the whole plan"
                    )
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            raise MalformedFrame(f"{where}: the plan's edges form a cycle through {shown(error.args[1][0])}") from None

    def _vertex(self, where: str, vertex: wire.Vertex) -> None:
        self._id(where, "id", vertex.id)
        self._name(where, "name", vertex.name)
        self._bound(where, "operators", vertex.operators)
        self._bound(where, "inputs", vertex.inputs)
        self._unique(where, "operator", (operator.id for operator in vertex.operators))
        names: set[str] = set()
        for operator in vertex.operators:
            self._id(where, "operator id", operator.id)
            self._name(where, "operator name", operator.name)
            if operator.name in names:
                raise InvalidName(
                    f"{where}: two operators are called {shown(operator.name)}, but metric ids need names that are "
                    "unique in a vertex: number them"
                )
            names.add(operator.name)
            self._length(where, "node", operator.node, "name_chars")
            self._length(where, "description", operator.description, "text_chars")
        for edge in vertex.inputs:
            self._length(where, "ship_strategy", edge.ship_strategy, "name_chars")
            self._length(where, "edge description", edge.description, "text_chars")

    def _vertex_columns(self, where: str, vertex: wire.VertexColumns) -> None:
        self._id(where, "id", vertex.id)
        if not 0 <= vertex.parallelism <= vertex.size:
            raise MalformedFrame(
                f"{where}: parallelism {vertex.parallelism} of size {vertex.size}, expected 0 <= parallelism <= size: "
                "size counts every subtask that any stage had"
            )
        if vertex.size > self._limits.subtasks:
            raise FrameTooLarge(
                f"{where}: {vertex.size} subtasks, at most {self._limits.subtasks} are taken: raise the limit subtasks"
            )
        self._columns(where, vertex.columns, vertex.size)
        self._bound(where, "operators", vertex.operators)
        self._unique(where, "operator", (group.operator for group in vertex.operators))
        for group in vertex.operators:
            self._columns(f"{where}: operator {shown(group.operator)}", group.columns, vertex.size)
        if vertex.subtasks is not None:
            self._subtasks(where, vertex.subtasks, vertex.size)
        self._bound(where, "operators", vertex.coordinators or ())
        self._unique(where, "coordinator", (told.operator for told in vertex.coordinators or ()))
        for told in vertex.coordinators or ():
            self._id(where, "coordinator", told.operator)
            self._scalars(f"{where}: coordinator {shown(told.operator)}", told.metrics)
        self._bound(where, "accumulators", vertex.accumulators)
        by_operator: dict[str, list[wire.Column]] = {}
        for accumulator in vertex.accumulators:
            if accumulator.column.dtype != "i8":
                raise MalformedFrame(
                    f"{where}: accumulator {shown(accumulator.column.metric)} is {accumulator.column.dtype}, expected "
                    "i8: Spark's SQL metrics are whole numbers"
                )
            by_operator.setdefault(accumulator.operator, []).append(accumulator.column)
        for operator, columns in by_operator.items():
            self._columns(f"{where}: accumulators of operator {shown(operator)}", tuple(columns), vertex.size)
        self._latencies.check(where, vertex)
        self._taps.check(where, vertex)

    def _checkpoints(self, where: str, told: wire.Checkpoints) -> None:
        self._bound(where, "checkpoints", told.held)
        self._bound(where, "checkpoints", told.changed)
        self._unique(where, "micro-batch", map(str, told.held))
        for checkpoint in told.changed:
            place = f"{where}: micro-batch {checkpoint.id}"
            self._length(place, "failure", checkpoint.failure, "text_chars")
            self._scalars(f"{place}: phases", checkpoint.phases)
            self._bound(place, "vertices", checkpoint.tasks)
            self._unique(place, "vertex", (tasks.vertex for tasks in checkpoint.tasks))
            for tasks in checkpoint.tasks:
                self._checkpoint_tasks(f"{place}: vertex {shown(tasks.vertex)}", tasks)

    def _checkpoint_tasks(self, where: str, tasks: wire.CheckpointTasks) -> None:
        self._id(where, "id", tasks.vertex)
        size = len(tasks.start_ms) // 8
        if size > self._limits.subtasks:
            raise FrameTooLarge(
                f"{where}: {size} subtasks, at most {self._limits.subtasks} are taken: raise the limit subtasks"
            )
        for field in ("start_ms", "end_ms", "state_bytes", "commit_ms"):
            data: bytes = getattr(tasks, field)
            if len(data) != size * 8:
                raise MalformedFrame(
                    f"{where}: {field} has {len(data)} bytes for {size} subtasks, expected {size * 8}: 8 bytes each"
                )

    def _failures(self, where: str, failures: tuple[wire.Failure, ...], nested: bool = False) -> None:
        self._bound(where, "failures", failures)
        for index, failure in enumerate(failures):
            place = f"{where}: failure {index}"
            if nested and failure.concurrent:
                raise MalformedFrame(f"{place}: it stands below another one and has some below itself: send one level")
            self._length(place, "name", failure.name, "name_chars")
            self._length(place, "trace", failure.trace, "text_chars")
            self._length(place, "executor", failure.executor, "name_chars")
            self._length(place, "endpoint", failure.endpoint, "name_chars")
            if failure.vertex:
                self._id(place, "vertex", failure.vertex)
            self._failures(place, failure.concurrent, nested=True)

    def _settings(self, where: str, settings: Mapping[str, str]) -> None:
        self._bound(where, "settings", settings)
        for key, value in settings.items():
            self._length(where, "setting", key, "name_chars")
            self._length(where, f"setting {shown(key)}", value, "text_chars")

    def _environment(self, where: str, environment: wire.Environment) -> None:
        self._length(where, "java_version", environment.java_version, "name_chars")
        self._length(where, "architecture", environment.architecture, "name_chars")
        for words in (environment.java_options, environment.class_path):
            self._bound(where, "settings", words)
            for word in words:
                self._length(where, "option", word, "text_chars")

    def _columns(self, where: str, columns: tuple[wire.Column, ...], size: int) -> None:
        self._bound(where, "columns", columns)
        data_bytes = size * 8
        bitmap_bytes = math.ceil(size / 8)
        seen: set[str] = set()
        for column in columns:
            metric = column.metric
            self._metric(where, metric)
            if metric in seen:
                raise MalformedFrame(f"{where}: two columns of {shown(metric)}, expected one a metric")
            seen.add(metric)
            if len(column.data) != data_bytes:
                raise MalformedFrame(
                    f"{where}: column {shown(metric)} has {len(column.data)} bytes for {size} subtasks, expected "
                    f"{data_bytes}: 8 bytes a subtask"
                )
            if column.present is not None and len(column.present) != bitmap_bytes:
                raise MalformedFrame(
                    f"{where}: column {shown(metric)} has a bitmap of {len(column.present)} bytes for {size} subtasks, "
                    f"expected {bitmap_bytes}: 1 bit a subtask"
                )

    def _subtasks(self, where: str, subtasks: wire.Subtasks, size: int) -> None:
        for field in ("attempt", "executor", "start_ms", "end_ms"):
            data: bytes = getattr(subtasks, field)
            if len(data) != size * 8:
                raise MalformedFrame(
                    f"{where}: subtasks.{field} has {len(data)} bytes for {size} subtasks, expected {size * 8}: "
                    "8 bytes a subtask"
                )
        self._bound(where, "executors", subtasks.executors)
        for executor in subtasks.executors:
            self._name(where, "executor id", executor)
        if size:
            indices = np.frombuffer(subtasks.executor, dtype="<i8")
            least, greatest = int(indices.min()), int(indices.max())
            if least < -1 or greatest >= len(subtasks.executors):
                raise MalformedFrame(
                    f"{where}: subtasks.executor has indices from {least} to {greatest}, expected -1 to "
                    f"{len(subtasks.executors) - 1}: they index subtasks.executors, -1 where no task has started"
                )
