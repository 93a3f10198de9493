"""Accumulators of jobs, vertices, subtasks and attempts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.store import Accumulated, Column
from service.errors import Missing
from service.flink import accumulators
from service.flink.query import Query
from streamgauge.errors import UnknownAttempt, UnknownJob, UnknownSubtask

PATH = {"jobid": "d" * 32, "vertexid": "c" * 32}
OPERATOR = f"{0:032x}"


def column(*values: int | None) -> Column:
    present = np.array([value is not None for value in values], dtype=np.bool_)
    return Column(np.array([value or 0 for value in values], dtype=np.int64), None if present.all() else present)


def held(states: Any, told: dict[tuple[str, str], Accumulated], **more: Any) -> Any:
    times = states.times(3, attempt=[2, 0, 0], executor=[0, 1, -1], executors=("app-1-0", "app-1-9"))
    vertex = states.vertex(
        3, parallelism=2, operators={"Aggregate": {}}, accumulators=told, **({"subtasks": times} | more)
    )
    return states.snapshot(states.job(vertex), states.app(states.executor("app-1-0")))


def whole(states: Any, told: dict[tuple[str, str], Accumulated]) -> dict[str, tuple[str, str]]:
    body = accumulators.vertex(Query.parse(held(states, told), 5_000, PATH, b""))
    return {each["name"]: (each["type"], each["value"]) for each in body["user-accumulators"]}


def test_observed_metrics_are_sorted_and_typed_as_their_values(states: Any) -> None:
    """As Java prints them; there is nothing that Java has serialized."""
    job = states.job(observed={"b.x": 1e10, "a.n": 3, "c.ok": True, "d.word": "[1, 2]"})
    body = accumulators.job(Query.parse(states.snapshot(job), 5_000, PATH, b"includeSerializedValue=true"))
    assert body == {
        "job-accumulators": [],
        "user-task-accumulators": [
            {"name": "a.n", "type": "Long", "value": "3"},
            {"name": "b.x", "type": "Double", "value": "1.0E10"},
            {"name": "c.ok", "type": "Boolean", "value": "true"},
            {"name": "d.word", "type": "String", "value": "[1, 2]"},
        ],
        "serialized-user-task-accumulators": {},
    }


def test_subtasks_make_a_vertex_as_each_metrics_rule_says(states: Any) -> None:
    """Sums and levels are added up, with the driver's share; of peaks the greatest; averages as Spark's page."""
    assert whole(
        states,
        {
            (OPERATOR, "number of output rows"): Accumulated("sum", column(5, 0, 7), driver=2),
            (OPERATOR, "number of total state rows 2"): Accumulated("sum", column(1, 2, 3)),
            (OPERATOR, "peak memory"): Accumulated("size", column(5, 9, 7), driver=8),
            (OPERATOR, "avg hash probes per key"): Accumulated("average", column(10, 0, 15)),
            ("", "shuffle write time"): Accumulated("nsTiming", column(1, None, 3)),
            ("", "number of files read"): Accumulated("sum", column(None, None, None), driver=4),
            ("f" * 32, "of no operator"): Accumulated("sum", column(1, 1, 1)),
        },
    ) == {
        "Aggregate.avg hash probes per key": ("DoubleSpread", "(min, med, max): (1.0, 1.5, 1.5)"),
        "Aggregate.number of output rows": ("LongCounter", "14"),
        "Aggregate.number of total state rows 2": ("LongGauge", "6"),
        "Aggregate.peak memory": ("LongMaximum", "9"),
        "Exchange.number of files read": ("LongCounter", "4"),
        "Exchange.shuffle write time": ("LongCounter", "4"),
    }


@pytest.mark.parametrize(
    ("values", "told"),
    [((0, 0, 0), {}), ((0, 12, 0), {"Aggregate.avg hash probes per key": ("DoubleGauge", "1.2")})],
    ids=["none", "one"],
)
def test_average_of_few_is_a_number_or_absent(states: Any, values: tuple[int, ...], told: dict[str, Any]) -> None:
    """0 is no average."""
    assert whole(states, {(OPERATOR, "avg hash probes per key"): Accumulated("average", column(*values))}) == told


def test_units_stand_beside_flinks_body(states: Any) -> None:
    """Names are Spark's, which do not tell them."""
    snapshot = held(
        states,
        {
            (OPERATOR, "spill size"): Accumulated("size", column(1, 1, 1)),
            (OPERATOR, "sort time"): Accumulated("timing", column(1, 1, 1)),
            (OPERATOR, "number of output rows"): Accumulated("sum", column(1, 1, 1)),
            ("", "shuffle write time"): Accumulated("nsTiming", column(1, 1, 1)),
        },
    )
    assert accumulators.vertex(Query.parse(snapshot, 5_000, PATH, b""))["streamgauge"] == {
        "units": {"Aggregate.sort time": "ms", "Aggregate.spill size": "bytes", "Exchange.shuffle write time": "ns"}
    }


def test_every_subtask_has_its_own(states: Any) -> None:
    """Also those past the parallelism; what it has not told is absent."""
    snapshot = held(
        states,
        {
            (OPERATOR, "peak memory"): Accumulated("size", column(5, None, 7), driver=8),
            (OPERATOR, "avg hash probes per key"): Accumulated("average", column(10, 12, 0)),
        },
    )
    body = accumulators.subtasks(Query.parse(snapshot, 5_000, PATH, b""))
    assert (body["id"], body["parallelism"]) == ("c" * 32, 2)
    assert [(row["subtask"], row["attempt"], row["endpoint"]) for row in body["subtasks"]] == [
        (0, 2, "10.0.0.7:7079"),
        (1, 0, "(unassigned)"),
        (2, 0, "(unassigned)"),
    ]
    assert [[(each["type"], each["value"]) for each in row["user-accumulators"]] for row in body["subtasks"]] == [
        [("DoubleGauge", "1.0"), ("LongMaximum", "5")],
        [("DoubleGauge", "1.2")],
        [("LongMaximum", "7")],
    ]


def test_before_any_task_there_are_subtasks_without_a_place(states: Any) -> None:
    """Attempt 0, and Flink's word for no place."""
    body = accumulators.subtasks(Query.parse(held(states, {}, subtasks=None), 5_000, PATH, b""))
    assert body["subtasks"][2] == {"subtask": 2, "attempt": 0, "endpoint": "(unassigned)", "user-accumulators": []}


def test_only_the_latest_attempt_is_held(states: Any) -> None:
    """Its id names job, vertex, subtask and attempt; others are refused in Flink's words."""
    snapshot = held(states, {(OPERATOR, "spill size"): Accumulated("size", column(1, 2, 3))})

    def asked(subtask: str, attempt: str) -> Any:
        path = PATH | {"subtaskindex": subtask, "attempt": attempt}
        return accumulators.attempt(Query.parse(snapshot, 5_000, path, b""))

    assert asked("0", "2") == {
        "subtask": 0,
        "attempt": 2,
        "id": f"{'d' * 32}_{'c' * 32}_0_2",
        "user-accumulators": [{"name": "Aggregate.spill size", "type": "LongCounter", "value": "1"}],
    }
    with pytest.raises(UnknownAttempt, match=r"Attempt 1 not found in subtask Scan -> Filter \(1/2\)"):
        asked("0", "1")
    for attempt in ("3", "-1"):
        with pytest.raises(UnknownAttempt, match=f"Invalid attempt num {attempt}"):
            asked("0", attempt)
    with pytest.raises(UnknownSubtask):
        asked("3", "0")


def test_unknown_job_and_vertex_are_told_apart(states: Any) -> None:
    """The job is looked for first."""
    for handler in (accumulators.vertex, accumulators.subtasks):
        with pytest.raises(UnknownJob):
            handler(Query.parse(states.snapshot(), 0, PATH, b""))
        with pytest.raises(Missing):
            handler(Query.parse(states.snapshot(states.job()), 0, PATH, b""))
