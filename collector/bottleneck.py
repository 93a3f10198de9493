"""Whether a job keeps up, and which of its vertices holds it up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from collector import columns
from collector.store import JobState, VertexState
from streamgauge import names


class Bottleneck(NamedTuple):
    """
    The vertex that holds a job up.

    Args:
        busy_ratio: Of its busiest subtask, above 0 and at most 1.
    """

    vertex: VertexState
    busy_ratio: float


def backlogged(job: JobState) -> bool | None:
    """Tell whether a running query cannot keep up; None where nobody says, and of a job that does not run."""
    told = job.job.metrics.get(names.BACKLOGGED)
    return told if isinstance(told, bool) and job.state == "RUNNING" else None


def bottleneck(job: JobState) -> Bottleneck | None:
    """
    Return which vertex of a backlogged job's latest plan has the greatest busy share.

    That is the share of its busiest subtask, as Flink's page has it; of two that are equal, the greater mean
    counts. None where the job is not backlogged, or no vertex is known to be busy.
    """
    if not backlogged(job):
        return None
    shares = ((_shares(vertex), vertex) for vertex in job.vertices.values() if vertex.vertex.current)
    share, vertex = max(shares, key=lambda found: found[0], default=((0.0, 0.0), None))
    return Bottleneck(vertex, share[0]) if vertex is not None and share[0] > 0 else None


def _shares(vertex: VertexState) -> tuple[float, float]:
    """Return the greatest and the mean busy share of a vertex's subtasks; 0 where none is known."""
    column = vertex.columns.get(names.BUSY_TIME)
    if column is None:
        return (0.0, 0.0)
    known = column.values[columns.subtasks(column)] / 1000
    known = known[np.isfinite(known)]
    return (float(known.max()), float(known.mean())) if known.size else (0.0, 0.0)
