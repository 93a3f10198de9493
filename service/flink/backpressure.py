"""Back pressure of a vertex: …/vertices/:vertexid/backpressure."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import NotRequired, TypedDict

from collector.store import JobState, VertexState
from collector.tasks import vertex_state
from service.flink.numbers import Double, json_double
from service.flink.query import Query
from streamgauge import names
from streamgauge.wire import ENDED_STATES

Level = Literal["ok", "low", "high"]
_LOW_ABOVE, _HIGH_ABOVE = 0.1, 0.5


SubtaskBackpressure = TypedDict(
    "SubtaskBackpressure",
    {
        "subtask": int,
        "backpressureLevel": Level,
        "ratio": Double,
        "idleRatio": Double,
        "busyRatio": Double,
        "backpressure-level": Level,
    },
)
Backpressure = TypedDict(
    "Backpressure",
    {
        "status": Literal["ok", "deprecated"],
        "backpressureLevel": NotRequired[Level],
        "end-timestamp": NotRequired[int],
        "subtasks": NotRequired[list[SubtaskBackpressure]],
        "backpressure-level": NotRequired[Level],
    },
)
"""Where there are no figures only `status`: deprecated."""


def vertex(query: Query) -> Backpressure:
    """
    Answer …/backpressure; of a vertex that is unknown, has not begun or has ended there are no figures.

    A ratio that Spark does not tell is NaN, and its level 'ok', as Flink takes what is not told for 0.

    Source: Flink's `JobVertexBackPressureHandler`.
    """
    job = query.known_job()
    state = query.known_vertex()
    if job is None or state is None or not state.size or vertex_state(job, state) in ENDED_STATES:
        return {"status": "deprecated"}
    pressed = _ratios(state, names.BACK_PRESSURED_TIME)
    rows = zip(
        pressed.tolist(),
        _ratios(state, names.IDLE_TIME).tolist(),
        _ratios(state, names.BUSY_TIME).tolist(),
        strict=True,
    )
    whole = _level(float(np.fmax.reduce(pressed)))
    return {
        "status": "ok",
        "backpressureLevel": whole,
        "end-timestamp": _heard_ms(query, job),
        "subtasks": [
            {
                "subtask": index,
                "backpressureLevel": _level(ratio),
                "ratio": json_double(ratio),
                "idleRatio": json_double(idle),
                "busyRatio": json_double(busy),
                "backpressure-level": _level(ratio),
            }
            for index, (ratio, idle, busy) in enumerate(rows)
        ],
        "backpressure-level": whole,
    }


def _ratios(state: VertexState, metric: str) -> npt.NDArray[np.float64]:
    column = state.columns.get(metric)
    if column is None:
        return np.full(state.size, np.nan)
    ratios: npt.NDArray[np.float64] = column.values / 1_000
    return ratios if column.present is None else np.where(column.present, ratios, np.nan)


def _level(ratio: float) -> Level:
    # NaN is above nothing.
    if ratio > _HIGH_ABOVE:
        return "high"
    return "low" if ratio > _LOW_ABOVE else "ok"


def _heard_ms(query: Query, job: JobState) -> int:
    """Return as of when the figures are: when the job's driver was last heard."""
    app = query.app(job)
    return job.modified_ms if app is None else app.heard_ms
