"""One run of a job, whole: its last state with its last 15 minutes, as it is archived, read back and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.history import Course, Heat
from collector.store import AppState, JobState


@dataclass(frozen=True, slots=True)
class VertexCourse:
    """
    The last 15 minutes of a vertex.

    Args:
        figures: None where nothing is held of it.
        heat: None where no marker left it.
    """

    figures: Course | None = None
    heat: Heat | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """
    One run of a job.

    Args:
        state: As it last was; its monotonic times mean nothing once it has been read back.
        app: The application that ran it, as it then was; None where it was not held.
        course: Of the job; None where nothing is held.
        vertices: Vertex id → its course; a vertex may lack.

    Any thread, since nobody changes it once it is made.
    """

    state: JobState
    app: AppState | None = None
    course: Course | None = None
    vertices: Mapping[str, VertexCourse] = field(default_factory=dict)
