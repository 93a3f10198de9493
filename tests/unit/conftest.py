"""States built by hand, for what a push would not let through or would take long to bring about."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from collector.store import AppState, Column, JobState, Snapshot, SubtaskTimes, VertexState
from streamgauge import wire
from streamgauge.buckets import HdrCounts


class States:
    """Builds states; what is not given is that of a running job with one vertex of two subtasks."""

    JID = "d" * 32
    VERTEX = "c" * 32
    APP = wire.App("app-1", "flights", 1_000, "driver.test", "4.3.0", "0.1.0")

    def column(self, *values: float | None) -> Column:
        """Integers as int64, the rest as float64; None where there is no value."""
        whole = all(value is None or isinstance(value, int) for value in values)
        present = np.array([value is not None for value in values], dtype=bool)
        filled = np.array([0 if value is None else value for value in values], dtype=np.int64 if whole else np.float64)
        return Column(filled, None if present.all() else present)

    def vertex(self, size: int = 2, **changes: Any) -> VertexState:
        """`operators` by name, each with its columns; ids are their numbers."""
        operators: dict[str, dict[str, Column]] = changes.pop("operators", {})
        listed = tuple(
            wire.Operator(f"{number:032x}", name, "Node", f"{name} described") for number, name in enumerate(operators)
        )
        vertex = wire.Vertex(
            changes.pop("id", self.VERTEX),
            changes.pop("name", "Scan -> Filter"),
            listed,
            changes.pop("inputs", ()),
            changes.pop("current", True),
        )
        given: dict[str, Any] = {
            "vertex": vertex,
            "parallelism": size,
            "size": size,
            "start_ms": 2_000,
            "columns": {},
            "operators": {operator.id: operators[operator.name] for operator in listed},
            "subtasks": None,
        }
        return VertexState(**(given | changes))

    def tap(self, *splits: str, name: str = "fed", **changes: Any) -> wire.Tap:
        """`columns` by metric, one value a split, None where it has none; by default it is the first operator's."""
        columns: dict[str, list[float | None]] = changes.pop("columns", {})
        held = {metric: self.column(*values) for metric, values in columns.items()}
        given: dict[str, Any] = {
            "name": name,
            "operator": f"{0:032x}",
            "watermark_ms": -(2**63),
            "idle": False,
            "max_out_of_orderness_ms": 0,
            "idleness_ms": -1,
            "by_subtask": False,
            "unwatched": 0,
            "splits": splits,
            "columns": tuple(wire.column(metric, each.values, each.present) for metric, each in held.items()),
        }
        return wire.Tap(**(given | changes))

    def buckets(self, *values: int) -> wire.Buckets:
        counts = HdrCounts()
        counts.add(np.array(values, dtype=np.int64))
        read = counts.read()
        indices, counted = read.indices.astype("<u2").tobytes(), read.counts.tobytes()
        return wire.Buckets(indices, counted, read.below, read.above, read.sum_ms)

    def times(self, size: int = 2, **changes: Any) -> SubtaskTimes:
        given: dict[str, Any] = {
            "attempt": [0] * size,
            "executor": [0] * size,
            "start_ms": [2_000] * size,
            "end_ms": [-1] * size,
        }
        arrays = {name: np.array(values, dtype=np.int64) for name, values in (given | changes).items() if name in given}
        return SubtaskTimes(**arrays, executors=changes.get("executors", ("app-1-0",)))

    def job(self, *vertices: VertexState, **changes: Any) -> JobState:
        """`state` is the collector's; the rest of what `wire.Job` has, such as `name` and `end_ms`, the driver's."""
        state = changes.pop("state", "RUNNING")
        since_ms = changes.pop("since_ms", {state: 3_000})
        job = wire.Job(
            changes.pop("jid", self.JID),
            changes.pop("name", "flights by hour"),
            changes.pop("type", "STREAMING"),
            "RUNNING" if state == "SUSPENDED" else state,
            since_ms,
            changes.pop("end_ms", -1),
            changes.pop("trigger", "every 10 s"),
            "task",
            changes.pop("metrics", {}),
            changes.pop("failure", ""),
            changes.pop("checkpoint_path", ""),
            changes.pop("latency", None),
        )
        given: dict[str, Any] = {
            "job": job,
            "app": self.APP,
            "attempt": wire.Attempt(1_500, "run"),
            "seq": 1,
            "state": state,
            "since_ms": since_ms,
            "first_start_ms": 1_500,
            "restarts": 0,
            "vertices": {vertex.vertex.id: vertex for vertex in vertices},
            "interval_ms": 1_000,
            "seen_ns": 0,
            "modified_ms": 3_000,
            "incomplete": wire.Incomplete(),
        }
        return JobState(**(given | changes))

    def executor(self, executor_id: str = "app-1-0", **changes: Any) -> wire.Executor:
        given: dict[str, Any] = {
            "id": executor_id,
            "endpoint": "10.0.0.7:7079",
            "cores": 4,
            "slots": 4,
            "running": {},
            "memory_bytes": 400 * 1024 * 1024,
            "added_ms": 1_200,
            "heartbeat_ms": 4_321,
            "metrics": {},
        }
        return wire.Executor(**(given | changes))

    def app(self, *executors: wire.Executor, **changes: Any) -> AppState:
        """`id`, `host` and `start_ms` are the driver's own."""
        app = wire.App(
            changes.pop("id", self.APP.id),
            "flights",
            changes.pop("start_ms", 1_000),
            changes.pop("host", "driver.test"),
            "4.3.0",
            "0.1.0",
        )
        given: dict[str, Any] = {
            "app": app,
            "attempt": wire.Attempt(app.start_ms, app.id),
            "seq": 1,
            "executors": {executor.id: executor for executor in executors},
            "driver": {},
            "hooks": {},
            "interval_ms": 1_000,
            "seen_ns": 0,
            "heard_ms": 5_000,
            "suspended": False,
            "incomplete": wire.Incomplete(),
        }
        return AppState(**(given | changes))

    def snapshot(self, *states: JobState | AppState) -> Snapshot:
        jobs = {state.job.jid: state for state in states if isinstance(state, JobState)}
        apps = {state.app.id: state for state in states if isinstance(state, AppState)}
        return Snapshot(MappingProxyType(jobs), MappingProxyType(apps))


@pytest.fixture(scope="session")
def states() -> States:
    return States()
