"""Back pressure is Flink's reading of the times a second."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from service.flink import backpressure
from service.flink.query import Query
from streamgauge import names

PATH = {"jobid": "d" * 32, "vertexid": "c" * 32}
NAN = float("nan")


def asked(*states: Any, builder: Any) -> Any:
    """As it is sent."""
    query = Query.parse(builder.snapshot(*states), 9_000, PATH, b"")
    return msgspec.json.decode(msgspec.json.encode(backpressure.vertex(query)))


@pytest.mark.parametrize(
    ("ms", "ratio", "level"),
    [
        (0, 0.0, "ok"),
        (100, 0.1, "ok"),
        (101, 0.101, "low"),
        (500.0, 0.5, "low"),
        (500.1, 0.5001, "high"),
        (1000, 1.0, "high"),
        (NAN, "NaN", "ok"),
    ],
)
def test_level_follows_the_ratio(states: Any, ms: float, ratio: float | str, level: str) -> None:
    """OK up to a tenth, low up to a half; what is not known counts as none."""
    vertex = states.vertex(1, columns={names.BACK_PRESSURED_TIME: states.column(ms)})
    body = asked(states.job(vertex), builder=states)
    row = body["subtasks"][0]
    assert (row["ratio"], row["backpressureLevel"], row["backpressure-level"]) == (ratio, level, level)
    assert (body["backpressureLevel"], body["backpressure-level"]) == (level, level)


def test_vertex_has_the_level_of_its_worst_subtask(states: Any) -> None:
    """Over those that are known; the others are NaN, each figure by itself."""
    vertex = states.vertex(
        3,
        columns={
            names.BACK_PRESSURED_TIME: states.column(None, 50, 200),
            names.BUSY_TIME: states.column(2.0, NAN, None),
        },
    )
    body = asked(states.job(vertex), states.app(), builder=states)
    assert (body["status"], body["backpressureLevel"], body["end-timestamp"]) == ("ok", "low", 5_000)
    assert [(row["subtask"], row["ratio"], row["idleRatio"], row["busyRatio"]) for row in body["subtasks"]] == [
        (0, "NaN", "NaN", 0.002),
        (1, 0.05, "NaN", "NaN"),
        (2, 0.2, "NaN", "NaN"),
    ]


def test_figures_are_as_of_the_last_frame(states: Any) -> None:
    """Of an application that is not held, as of the job's last change."""
    job = states.job(states.vertex(), modified_ms=4_444)
    assert asked(job, builder=states)["end-timestamp"] == 4_444


@pytest.mark.parametrize("state", ["FINISHED", "CANCELED", "FAILED"])
def test_what_has_ended_has_no_figures(states: Any, state: str) -> None:
    """Its times are taken away at the end."""
    assert asked(states.job(states.vertex(), state=state), builder=states) == {"status": "deprecated"}


def test_what_has_not_begun_or_left_the_plan_has_no_figures(states: Any) -> None:
    """No subtask, or none that runs any more; and a silent driver's are the last ones."""
    for vertex in (states.vertex(0), states.vertex(current=False)):
        assert asked(states.job(vertex), builder=states) == {"status": "deprecated"}
    assert asked(states.job(states.vertex(), state="SUSPENDED"), builder=states)["status"] == "ok"
