"""One run of a job, whole: its last state with its last 15 minutes, as it is archived, read back and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from collector.history import Course, Heat, History
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

    def until(self, time_ms: int) -> VertexCourse:
        """Return what was sampled up to a wall time."""
        return VertexCourse(
            None if self.figures is None else self.figures.until(time_ms),
            None if self.heat is None else self.heat.until(time_ms),
        )


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

    @classmethod
    def of(cls, state: JobState, app: AppState | None, history: History) -> Run:
        """Return a job as it is held, with what `history` has of it."""
        jid = state.job.jid
        vertices = {
            vertex: VertexCourse(history.vertex(jid, vertex), history.heat(jid, vertex)) for vertex in state.vertices
        }
        return cls(state, app, history.job(jid), vertices)

    def until(self, time_ms: int) -> Run:
        """Return it with what was sampled up to a wall time: what came later is of the run that took its place."""
        course = None if self.course is None else self.course.until(time_ms)
        return replace(
            self, course=course, vertices={vertex: one.until(time_ms) for vertex, one in self.vertices.items()}
        )
