"""A vertex's figures: columns, native metrics, latencies, and where its subtasks ran."""

from __future__ import annotations

from typing import Literal

import msgspec

from streamgauge.wire.columns import Column
from streamgauge.wire.latencies import Latency, LatencyHistogram
from streamgauge.wire.taps import Distribution, Tap

Scalar = bool | int | float | str
"""A metric without subtasks: of a job, an executor or the driver."""


class Subtasks(msgspec.Struct, frozen=True):
    """
    Where and when the latest task of each subtask ran; int64 columns, one value a subtask.

    Args:
        attempt: Number of the task attempt, 0 for the first.
        executor: Index into `executors`, −1 where no task has started yet.
        start_ms: Launch of the latest task, wall time; −1 where none has started yet.
        end_ms: Its end, −1 while it runs.
        executors: Executor ids as in `Executor.id`.
    """

    attempt: bytes
    executor: bytes
    start_ms: bytes
    end_ms: bytes
    executors: tuple[str, ...]


class OperatorColumns(msgspec.Struct, frozen=True, array_like=True):
    """The changed columns of one operator."""

    operator: str
    columns: tuple[Column, ...]


AccumulatorKind = Literal["sum", "size", "timing", "nsTiming", "average"]
"""Spark's kinds of SQL metrics: a plain number, bytes, ms, ns, and ten times an average."""


class Accumulator(msgspec.Struct, frozen=True, array_like=True):
    """
    One native SQL metric of a vertex over its subtasks.

    Args:
        operator: Id of the operator whose metric it is; '' for an exchange that the vertex reads or writes.
        kind: Spark's; tells what the numbers are.
        column: int64; `column.metric` is Spark's display name, unique among those of one operator.
        driver: What the driver itself set, which is of no subtask: files listed, what was broadcast.
    """

    operator: str
    kind: AccumulatorKind
    column: Column
    driver: int = 0


class Coordinator(msgspec.Struct, frozen=True, array_like=True):
    """What the driver itself knows of a source operator, by metric name without 'coordinator.'."""

    operator: str
    metrics: dict[str, Scalar]


class VertexColumns(msgspec.Struct, frozen=True):
    """
    A vertex's figures.

    Args:
        id: Id of a vertex of the plan.
        parallelism: Tasks of its latest stage.
        size: Subtasks that any of its stages had, ≥ parallelism: the length of every column.
        start_ms: First task launch of this run, wall time; −1 before it.
        columns: Changed columns of vertex scope.
        operators: Changed columns of its operators.
        subtasks: None where nothing has changed.
        accumulators: Changed ones.
        coordinators: Of its source operators; None where nothing has changed.
        latencies, histograms, distributions: Changed ones.
        taps: All of its taps; None where nothing has changed.
    """

    id: str
    parallelism: int
    size: int
    start_ms: int
    columns: tuple[Column, ...] = ()
    operators: tuple[OperatorColumns, ...] = ()
    subtasks: Subtasks | None = None
    accumulators: tuple[Accumulator, ...] = ()
    coordinators: tuple[Coordinator, ...] | None = None
    latencies: tuple[Latency, ...] = ()
    histograms: tuple[LatencyHistogram, ...] = ()
    taps: tuple[Tap, ...] | None = None
    distributions: tuple[Distribution, ...] = ()
