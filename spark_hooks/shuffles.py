"""Who writes and who reads the shuffles of a micro-batch: its stages, as the job's vertices are linked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from spark_hooks.plan import Exchange
    from spark_hooks.stages import Stage, Won
    from spark_hooks.timeline import Batch
    from spark_hooks.vertex import Bound, JobVertex


class Ran(NamedTuple):
    """A stage, and what it is of the vertex that it executes."""

    stage: Stage
    bound: Bound

    @property
    def state(self) -> tuple[int, int, int]:
        """What figures of it are made of; while it compares equal, so are they."""
        return self.stage.id, self.stage.revision, self.stage.completed_ms


class Shuffles:
    """
    The shuffles of one micro-batch, as of now. Not thread safe; made anew for every look.

    Of several stages that executed a vertex, as with two writes in foreachBatch, the latest one is meant.

    Args:
        ran: The batch's stages, `Batch.by_vertex`.
        vertices: The job's.
    """

    def __init__(self, batch: Batch, ran: Mapping[str, Iterable[Stage]], vertices: Mapping[str, JobVertex]) -> None:
        self._vertices = vertices
        self._ran: dict[str, list[Ran]] = {}
        for vertex_id, stages in ran.items():
            self._ran[vertex_id] = [
                Ran(stage, bound) for stage in stages for bound in stage.vertices() if bound.vertex.id == vertex_id
            ]
        executions = [each for execution in batch.executions for each in (execution, *execution.inner)]
        graphs = {id(each.graph): each.graph for each in executions}
        self._planned = {vertex.id for graph in graphs.values() for vertex in graph.vertices}
        self._readers: dict[str, list[str]] = {}
        for vertex in vertices.values():
            if vertex.id in self._planned or vertex.id in self._ran:
                for source in self.sources(vertex):
                    self._readers.setdefault(source, []).append(vertex.id)
        self._finished: dict[int, list[Won]] = {}

    def ran(self, vertex_id: str) -> list[Ran]:
        """Return the stages that have executed a vertex, the first launched first."""
        return self._ran.get(vertex_id, [])

    def sources(self, vertex: JobVertex) -> list[str]:
        """Return the ids of the vertices whose shuffles a vertex reads."""
        return [source for source, exchange in vertex.inputs.items() if exchange.shuffles]

    def writer(self, vertex_id: str) -> Ran | None:
        """Return the stage that writes a vertex's shuffle; sampling for a range partitioning writes none."""
        return next((ran for ran in reversed(self.ran(vertex_id)) if ran.stage.shuffles), None)

    def reader(self, vertex_id: str, writer: Ran) -> Ran | None:
        """Return the stage of a vertex that reads what `writer` writes; None while none was launched."""
        latest = next(reversed(self.ran(vertex_id)), None)
        if latest is None or 0 <= latest.stage.completed_ms < writer.stage.first_ms:
            return None
        return latest

    def readers(self, vertex_id: str, writer: Ran) -> list[tuple[JobVertex, Ran | None]]:
        """Return the vertices that read, or are going to read, what `writer` writes for a vertex."""
        return [(self._vertices[each], self.reader(each, writer)) for each in self._readers.get(vertex_id, ())]

    def awaited(self, vertex_id: str) -> bool:
        """Whether the batch is going to run a vertex of which no task was launched yet."""
        return vertex_id in self._planned and not self.ran(vertex_id)

    def finished(self, ran: Ran) -> list[Won]:
        """Return the successes of a stage; without those whose output was lost, so that they run again."""
        found = self._finished.get(ran.stage.id)
        if found is None:
            launched_ms = ran.stage.launches.get
            # A copy of a straggler is launched before the straggler, or it, is done.
            found = self._finished[ran.stage.id] = [
                won for partition, won in ran.stage.won.items() if launched_ms(partition, -1) <= won.finished_ms
            ]
        return found

    @staticmethod
    def exchange(reader: Ran, source: str) -> Exchange | None:
        """Return the exchange over which a stage reads a vertex's shuffle, as its own plan has it."""
        return next((each for each in reader.bound.plan_vertex.reads if each.source.id == source), None)
