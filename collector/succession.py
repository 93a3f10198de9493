"""What a job or application is after a frame: pure functions from the state before to the state after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from collector.checks import shown
from collector.store import (
    Accumulated,
    AppState,
    CheckpointHistory,
    Column,
    Columns,
    JobState,
    SubtaskTimes,
    VertexState,
)
from streamgauge import catalogue, names, wire
from streamgauge.errors import MalformedFrame

_T = TypeVar("_T")
_NO_COLUMNS: Columns = {}
_KNOWN = {metric.name: metric.name for metric in catalogue.METRICS}


def next_job(
    where: str, before: JobState | None, frame: wire.Frame, job: wire.Job, now_ms: int, now_ns: int
) -> JobState:
    """
    Return the job after an admitted frame that is newer than `before`.

    Args:
        where: Names the frame in messages.
        before: None for a job that is not held.
        frame: Full if `before` is None or of an older attempt.
        job: The frame's.
        now_ms: Wall time of arrival.
        now_ns: Monotonic time of arrival.

    Returns:
        A state that shares with `before` what has not changed; arrays are read-only views of the
        frame's columns.

    Raises:
        MalformedFrame: names a vertex, operator or micro-batch that is not there, or changes a vertex's size
            without all of its columns.

    Any thread; `before` is not touched.
    """
    same_run = before is not None and frame.attempt == before.attempt
    # A full frame builds on nothing.
    base = before if frame.base else None
    vertices = _vertices(where, {} if base is None else base.vertices, frame)
    checkpoints = _checkpoints(where, CheckpointHistory() if base is None else base.checkpoints, frame)
    ended = job.state in wire.ENDED_STATES
    if ended:
        vertices = {vertex_id: _without_transient(vertex) for vertex_id, vertex in vertices.items()}
    restarts = 0 if before is None else before.restarts + (not same_run)
    # A driver that starts a query anew does not know that it ran before, in another driver.
    state = "RESTARTING" if job.state == "CREATED" and restarts else job.state
    since_ms = {state: frame.sent_at_ms, **job.since_ms}
    if state != job.state and job.state in job.since_ms:
        since_ms[state] = job.since_ms[job.state]
    if before is not None and same_run and "SUSPENDED" in before.since_ms:
        # Only the collector knows it, so no frame of the driver repeats it.
        since_ms.setdefault("SUSPENDED", before.since_ms["SUSPENDED"])
    changed = before is None or not same_run or before.state != state
    return JobState(
        job=job,
        app=frame.app,
        attempt=frame.attempt,
        seq=frame.seq,
        state=state,
        since_ms=since_ms,
        first_start_ms=frame.attempt.start_ms if before is None else before.first_start_ms,
        restarts=restarts,
        vertices=vertices,
        interval_ms=frame.interval_ms,
        seen_ns=now_ns,
        modified_ms=now_ms if changed or before is None else before.modified_ms,
        incomplete=frame.incomplete,
        series=sum(map(_series, vertices.values())) + sum(map(_checkpoint_series, checkpoints.held.values())),
        ended_ns=_ended_ns(before if same_run else None, now_ns) if ended else None,
        configuration=_kept(frame.configuration, {} if base is None else base.configuration),
        observed=_kept(frame.observed, {} if base is None else base.observed),
        checkpoints=checkpoints,
        failures=_kept(frame.failures, wire.Failures() if base is None else base.failures),
        failures_before=_failures_before(before, same_run),
    )


def resumed(job: JobState, before: JobState) -> JobState:
    """
    Return a job as it would be if `before` had been held when its first frame came.

    Args:
        job: Held since this collector heard of it.
        before: An earlier run of the job; or the same one, as it was when it left.

    Any thread; neither is touched.
    """
    goes_on = before.attempt.start_ms == job.first_start_ms
    restarts = before.restarts + job.restarts + (not goes_on)
    since_ms = dict(job.since_ms)
    if job.attempt == before.attempt and "SUSPENDED" in before.since_ms:
        since_ms.setdefault("SUSPENDED", before.since_ms["SUSPENDED"])
    state = job.state
    if state == "CREATED" and restarts:
        state = "RESTARTING"
        since_ms[state] = job.since_ms.get("CREATED", job.modified_ms)
    return replace(
        job,
        state=state,
        since_ms=since_ms,
        first_start_ms=before.first_start_ms,
        restarts=restarts,
        failures_before=job.failures_before.after(before.failures_before if goes_on else before.failure_history()),
    )


def next_app(before: AppState | None, frame: wire.Frame, now_ms: int, now_ns: int) -> AppState:
    """
    Return the application after an admitted frame that is newer than `before`, None where none is held.

    Every application frame tells all of it but what hardly ever changes, its configuration and environment: an
    executor that the frame does not list has gone, even if the frame that said so was lost.

    Any thread.
    """
    base = before if frame.base else None
    return AppState(
        app=frame.app,
        attempt=frame.attempt,
        seq=frame.seq,
        executors={executor.id: executor for executor in frame.executors if not executor.gone},
        driver=frame.driver,
        hooks=frame.hooks,
        interval_ms=frame.interval_ms,
        seen_ns=now_ns,
        heard_ms=now_ms,
        suspended=False,
        incomplete=frame.incomplete,
        end_ms=frame.end_ms,
        configuration=_kept(frame.configuration, {} if base is None else base.configuration),
        environment=_kept(frame.environment, None if base is None else base.environment),
    )


def _kept(sent: _T | None, held: _T) -> _T:
    return held if sent is None else sent


def _ended_ns(before: JobState | None, now_ns: int) -> int:
    if before is None or before.ended_ns is None:
        return now_ns
    return before.ended_ns


def _failures_before(before: JobState | None, same_run: bool) -> wire.Failures:
    # A driver that starts a query anew tells of this run only; Flink's history outlives restarts.
    if before is None:
        return wire.Failures()
    return before.failures_before if same_run else before.failure_history()


def _checkpoints(where: str, before: CheckpointHistory, frame: wire.Frame) -> CheckpointHistory:
    told = frame.checkpoints
    if told is None:
        return before
    known = {**before.held, **{checkpoint.id: checkpoint for checkpoint in told.changed}}
    for checkpoint_id in told.held:
        if checkpoint_id not in known:
            raise MalformedFrame(
                f"{where}: micro-batch {checkpoint_id} is held, but was not sent: send it with the first frame that "
                "names it"
            )
    return CheckpointHistory(
        totals=msgspec.structs.replace(told, changed=()),
        held={checkpoint_id: known[checkpoint_id] for checkpoint_id in told.held},
    )


def _vertices(where: str, before: Mapping[str, VertexState], frame: wire.Frame) -> dict[str, VertexState]:
    if frame.plan is None:
        after = dict(before)
    else:
        read = {edge.source for vertex in frame.plan.vertices for edge in vertex.inputs}
        after = {
            vertex.id: _planned(vertex, vertex.id in read, before.get(vertex.id)) for vertex in frame.plan.vertices
        }
        for vertex_id, planned in after.items():
            known = planned.latencies.within(planned.operators, after)
            taps = planned.taps.within(planned.operators)
            if known is not planned.latencies or taps is not planned.taps:
                after[vertex_id] = replace(planned, latencies=known, taps=taps)
    for figures in frame.vertices:
        held = after.get(figures.id)
        if held is None:
            raise MalformedFrame(
                f"{where}: vertex {shown(figures.id)} is not in the job's plan: send the plan with the first frame "
                "that names a new vertex"
            )
        after[figures.id] = _measured(f"{where}: vertex {shown(figures.id)}", held, figures, after)
    return after


def _planned(vertex: wire.Vertex, feeds: bool, held: VertexState | None) -> VertexState:
    if held is None:
        operators: dict[str, Columns] = {operator.id: _NO_COLUMNS for operator in vertex.operators}
        return VertexState(vertex, 0, 0, -1, _NO_COLUMNS, operators, None, feeds)
    return replace(
        held,
        vertex=vertex,
        operators={operator.id: held.operators.get(operator.id, _NO_COLUMNS) for operator in vertex.operators},
        feeds=feeds,
    )


def _measured(
    where: str, held: VertexState, figures: wire.VertexColumns, vertices: Mapping[str, VertexState]
) -> VertexState:
    operators = held.operators
    if figures.operators:
        operators = dict(held.operators)
        for group in figures.operators:
            if group.operator not in operators:
                raise MalformedFrame(
                    f"{where}: operator {shown(group.operator)} is not in the vertex's plan: send the plan with the "
                    "first frame that names a new operator"
                )
            operators[group.operator] = _merged(operators[group.operator], group.columns, figures.size)
    after = VertexState(
        vertex=held.vertex,
        parallelism=figures.parallelism,
        size=figures.size,
        start_ms=figures.start_ms,
        columns=_merged(held.columns, figures.columns, figures.size),
        operators=operators,
        subtasks=held.subtasks if figures.subtasks is None else _times(figures.subtasks),
        feeds=held.feeds,
        accumulators=_accumulated(where, held, figures),
        coordinators=held.coordinators
        if figures.coordinators is None
        else {told.operator: told.metrics for told in figures.coordinators},
        latencies=held.latencies.after(where, figures, operators, vertices),
        taps=held.taps.after(where, figures, operators),
    )
    if figures.size != held.size:
        _check_lengths(where, held.size, after)
    return after


def _check_lengths(where: str, before: int, vertex: VertexState) -> None:
    groups = {"": vertex.columns} | {f"operator {shown(one)}: ": found for one, found in vertex.operators.items()}
    for (operator, metric), found in vertex.accumulators.items():
        groups[f"accumulator of operator {shown(operator)}, {shown(metric)}: "] = {metric: found.column}
    for group, columns in groups.items():
        for metric, column in columns.items():
            if len(column.values) != vertex.size:
                raise MalformedFrame(
                    f"{where}: {group}size changed from {before} to {vertex.size}, but column {shown(metric)} was not "
                    "sent: send every column of a vertex whose size changes"
                )
    if vertex.subtasks is not None and len(vertex.subtasks.attempt) != vertex.size:
        raise MalformedFrame(
            f"{where}: size changed from {before} to {vertex.size}, but subtasks were not sent: send them with every "
            "column of a vertex whose size changes"
        )
    vertex.latencies.check_size(where, before, vertex.size)


def _merged(held: Columns, sent: tuple[wire.Column, ...], size: int) -> Columns:
    if not sent:
        return held
    after = dict(held)
    for column in sent:
        # The catalogue's own string, so that thousands of vertices do not each keep a copy of every name.
        after[_KNOWN.get(column.metric, column.metric)] = Column(column.values(), _present(column, size))
    return after


def _accumulated(where: str, held: VertexState, figures: wire.VertexColumns) -> Mapping[tuple[str, str], Accumulated]:
    if not figures.accumulators:
        return held.accumulators
    after = dict(held.accumulators)
    for told in figures.accumulators:
        if told.operator and told.operator not in held.operators:
            raise MalformedFrame(
                f"{where}: operator {shown(told.operator)} of an accumulator is not in the vertex's plan: send the "
                "plan with the first frame that names a new operator"
            )
        column = told.column
        after[told.operator, column.metric] = Accumulated(
            told.kind, Column(column.values(), _present(column, figures.size)), told.driver
        )
    return after


def _present(column: wire.Column, size: int) -> npt.NDArray[np.bool_] | None:
    present = column.mask(size)
    if present is not None:
        present.flags.writeable = False
    return present


def _times(subtasks: wire.Subtasks) -> SubtaskTimes:
    return SubtaskTimes(
        attempt=np.frombuffer(subtasks.attempt, dtype="<i8"),
        executor=np.frombuffer(subtasks.executor, dtype="<i8"),
        start_ms=np.frombuffer(subtasks.start_ms, dtype="<i8"),
        end_ms=np.frombuffer(subtasks.end_ms, dtype="<i8"),
        executors=subtasks.executors,
    )


def _without_transient(vertex: VertexState) -> VertexState:
    taps = vertex.taps.lasting()
    if (
        taps is vertex.taps
        and names.TRANSIENT.isdisjoint(vertex.columns)
        and all(names.TRANSIENT.isdisjoint(columns) for columns in vertex.operators.values())
    ):
        return vertex
    return replace(
        vertex,
        columns=_lasting(vertex.columns),
        operators={operator: _lasting(columns) for operator, columns in vertex.operators.items()},
        taps=taps,
    )


def _lasting(columns: Columns) -> Columns:
    return {metric: column for metric, column in columns.items() if metric not in names.TRANSIENT}


def _series(vertex: VertexState) -> int:
    columns = len(vertex.columns) + sum(map(len, vertex.operators.values())) + len(vertex.accumulators)
    return vertex.size * columns + vertex.latencies.series + vertex.taps.series


def _checkpoint_series(checkpoint: wire.Checkpoint) -> int:
    return 4 * sum(len(tasks.start_ms) // 8 for tasks in checkpoint.tasks)
