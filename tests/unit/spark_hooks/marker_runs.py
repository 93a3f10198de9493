"""Runs whose latency markers are driven by hand: a plan, its vertices, and micro-batches of which all is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from spark_hooks import plan
from spark_hooks.file_positions import Position
from spark_hooks.latencies import Latencies
from spark_hooks.markers import Emission, Markers
from spark_hooks.progress import Progress, Source
from spark_hooks.records import PlanNode
from spark_hooks.stages import Execution, Stage, Won
from spark_hooks.steady import SteadyTime
from spark_hooks.timeline import Batch
from spark_hooks.vertex import Bound, JobVertex
from streamgauge import names, wire
from tests.unit.spark_hooks.spark_plans import SINK, tree

ONE_VERTEX = """
WriteToDataSourceV2
  Project
    Filter
      MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable
"""

TWO_VERTICES = """
WriteToDataSourceV2
  HashAggregate
    Exchange | Exchange hashpartitioning(a#1, 2)
      Project
        MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable
"""

Tasks = Mapping[str, Mapping[int, int]]
"""Name of a vertex → partition → when its task finished, steady."""


class MarkerRun:
    """One run of a query with a plan; steady times are wall times."""

    def __init__(
        self,
        shape: str | PlanNode = ONE_VERTEX,
        emission: Emission | None = None,
        trigger: str = "ProcessingTimeTrigger(0)",
        start_ms: int = 0,
        seed: int = 1,
    ) -> None:
        self.graph = plan.analyse(tree(shape) if isinstance(shape, str) else shape, SINK)
        self.vertices = {vertex.id: JobVertex(vertex) for vertex in self.graph.vertices}
        self.bounds = {}
        for vertex in self.graph.vertices:
            known = self.vertices[vertex.id]
            known.link(vertex)
            self.bounds[vertex.name] = Bound(vertex, known, tuple(range(len(known.known))))
        self.time = SteadyTime()
        self.markers = Markers(emission or Emission(), start_ms, start_ms, trigger, self.time, Random(seed))

    @property
    def latencies(self) -> Latencies:
        return self.markers.latencies

    def vertex(self, name: str) -> JobVertex:
        return self.bounds[name].vertex

    def batch(
        self,
        begin_ms: int,
        executed_ms: int,
        end_ms: int,
        tasks: Tasks,
        *sources: Source,
        wrote: Mapping[str, int] | None = None,
        files: Position | None = None,
        own: Sequence[str] | None = None,
        revision: int = 1,
    ) -> None:
        """
        A micro-batch is committed.

        Args:
            wrote: Rows that each task of a vertex wrote to its shuffle, 1 unless said.
            files: Where all sources stand, which are streams of files then.
            own: Names of the vertices that the plan has in this batch, all unless said.
            revision: Of the graph.
        """
        execution = Execution(0, None, "", begin_ms, None, True, self.graph, False)
        for number, (name, finished) in enumerate(tasks.items()):
            bound = self.bounds[name]
            stage = Stage([number], execution, len(finished), 0, frozenset(), {execution: (self.graph, bound)})
            stage.first_ms = begin_ms + number
            rows = (wrote or {}).get(name, 1)
            told = {bound.written: rows} if bound.written is not None and rows else {}
            for partition, finished_ms in finished.items():
                stage.won[partition] = Won((0, 0), partition, told, 0, 0, 0, finished_ms, "1", 0, 0)
            if finished:
                bound.vertex.run_stage(max(finished) + 1)
            execution.stages.append(stage)
        done = Batch(0, begin_ms, executed_ms, end_ms, [execution])
        rows = sum(source.num_input_rows for source in sources)
        told_of = Progress("q", "r", 0, "", num_input_rows=rows, sources=sources)
        stand = {} if files is None else dict.fromkeys(range(len(sources)), files)
        there = self.vertices if own is None else {self.vertex(name).id: self.vertex(name) for name in own}
        self.markers.settle(done, told_of, there, revision, stand)

    def figures(self) -> dict[str, int]:
        """What became of the markers: 'emitted', 'recorded', 'flying' and the reasons why some were dropped."""
        told = self.markers.metrics()
        found = {
            "emitted": told[names.MARKERS_EMITTED],
            "recorded": told[names.MARKERS_RECORDED],
            "flying": told[names.MARKERS_IN_FLIGHT],
        }
        found |= {reason: told[metric] for reason, metric in names.MARKERS_DROPPED_BY.items()}
        return {name: value for name, value in found.items() if value}

    def told(self, name: str) -> dict[tuple[str, int, tuple[str, ...]], dict[int, dict[str, float]]]:
        """(source vertex's name or '', its subtask, operators' names) → subtask → 'count', 'min', … of a vertex."""
        vertex = self.vertex(name)
        owners = {each.id: each.name for each in self.vertices.values()}
        operators = {operator.id: operator.name for operator in vertex.operators}
        found: dict[tuple[str, int, tuple[str, ...]], dict[int, dict[str, float]]] = {}
        for latency in self.latencies.latencies(vertex.id, vertex.size, lambda key, state: True):
            key = (
                owners.get(latency.source, ""),
                latency.source_subtask,
                tuple(operators[operator] for operator in latency.operators),
            )
            assert key not in found
            found[key] = {subtask: figures for subtask, figures in enumerate(statistics(latency)) if figures["count"]}
        return found


def statistics(latency: wire.Latency) -> list[dict[str, float]]:
    """The figures of each subtask."""
    recorded = np.frombuffer(latency.counts, dtype="<i8")
    table = np.frombuffer(latency.statistics, dtype="<f8").reshape(len(names.LATENCY_STATISTICS), recorded.size)
    return [
        {"count": int(recorded[subtask]), **dict(zip(names.LATENCY_STATISTICS, column, strict=True))}
        for subtask, column in enumerate(table.T.tolist())
    ]


def source(start: object, end: object, latest: object = None, rows: int = 1) -> Source:
    return Source(start_offset=start, end_offset=end, latest_offset=latest, num_input_rows=rows)
