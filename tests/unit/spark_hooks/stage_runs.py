"""Stages that ran at times of one's own, without the events that tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from spark_hooks.plan import Graph
from spark_hooks.stages import Execution, Stage, Won

VERTEX = "v" * 32
FETCH_WAIT = 7
"""An accumulator."""

Times = Mapping[int, tuple[int, int | None]]
"""Partition → launch and finish, None where it has not come."""


def execution(number: int = 1) -> Execution:
    return Execution(number, None, "", 0, None, True, Graph([], ()), False)


def stage_run(
    first_ms: int,
    completed_ms: int | None,
    times: Times,
    tasks: int | None = None,
    waits: Mapping[int, int] | None = None,
) -> Stage:
    """A stage of the vertex; partitions without times have not been launched."""
    found = Stage([1], execution(), len(times) if tasks is None else tasks, -1, frozenset())
    bound: Any = SimpleNamespace(vertex=SimpleNamespace(id=VERTEX), fetch_waits=(FETCH_WAIT,))
    found.bound[found.execution] = (None, bound)
    found.first_ms = first_ms
    found.completed_ms = -1 if completed_ms is None else completed_ms
    for partition, (launch_ms, finish_ms) in times.items():
        found.launches[partition] = launch_ms
        if finish_ms is not None:
            told = {FETCH_WAIT: (waits or {}).get(partition, 0)}
            found.won[partition] = Won((1, 0), partition, told, 0, launch_ms, finish_ms, finish_ms, "1", 0, 0)
    return found
