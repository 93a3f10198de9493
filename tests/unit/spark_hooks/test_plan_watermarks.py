"""How watermarks flow through plans: the rules one by one, and all of them against a slow copy of Spark's own."""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings

from spark_hooks import plan
from spark_hooks.plan_watermarks import Mark, Marks, propagate
from spark_hooks.records import PlanNode
from streamgauge.watermarks import NO_WATERMARK_MS
from tests.unit.spark_hooks.spark_events import Ids, scan, sink, walk

NOW = 1_795_255_290_000
BEFORE = NOW - 70_000


def assign(ids: Ids, child: PlanNode) -> PlanNode:
    return ids.node("EventTimeWatermark", child, rows=False, description="EventTimeWatermark t#1: timestamp, 1 seconds")


def save(ids: Ids, child: PlanNode, eviction_ms: int, late_ms: int = 0, key: str = "k") -> PlanNode:
    told = f"StateStoreSave [{key}#1], state info [ opId = 0 ], Append, {late_ms}, {eviction_ms}, 2"
    return ids.node("StateStoreSave", child, description=told)


def join(ids: Ids, left: PlanNode, right: PlanNode, eviction_ms: int, output_ms: int, key: str = "k") -> PlanNode:
    told = (
        f"StreamingSymmetricHashJoin [{key}#1], [j#2], Inner, state info [ opId = 0 ], 0, {eviction_ms}, state cleanup "
        f"[ left value predicate: (t#1 <= {output_ms * 1000}), right = null ], 2, Append"
    )
    return ids.node("StreamingSymmetricHashJoin", left, right, description=told)


def of(root: PlanNode, query_ms: int = NO_WATERMARK_MS) -> tuple[list[int | None], dict[str, Mark]]:
    """What each vertex reads, sources first; node's name with its number → its watermarks, where it has any."""
    graph = plan.analyse(root, "NoopTable")
    marks = propagate(graph, query_ms)
    operators = {operator.name: mark for operator, mark in marks.operators.items() if mark != Mark()}
    return [marks.vertices[vertex] for vertex in graph.vertices], operators


def test_source_has_none_and_its_reader_the_threshold() -> None:
    """What withWatermark() puts out is what the first stateful operator evicts by."""
    ids = Ids()
    vertices, operators = of(sink(ids, save(ids, ids.shuffle(assign(ids, scan(ids))), NOW, BEFORE)), BEFORE)
    assert vertices == [None, NOW]
    assert operators == {"EventTimeWatermark": Mark(None, NOW), "StateStoreSave": Mark(NOW, NOW)}


def test_before_there_is_a_watermark_it_is_flinks_word() -> None:
    """Spark prints 0 then."""
    ids = Ids()
    vertices, operators = of(sink(ids, save(ids, ids.shuffle(assign(ids, scan(ids))), 0)))
    assert vertices == [None, NO_WATERMARK_MS]
    assert operators["StateStoreSave"] == Mark(NO_WATERMARK_MS, NO_WATERMARK_MS)
    assert operators["EventTimeWatermark"] == Mark(None, NO_WATERMARK_MS)


def test_join_before_there_is_a_watermark_puts_out_none_either() -> None:
    """What Spark works out of 0, a little before the epoch, is no watermark; nor is what follows from it."""
    ids = Ids()
    sides = [ids.shuffle(assign(ids, scan(ids))) for _ in range(2)]
    vertices, operators = of(sink(ids, save(ids, ids.shuffle(join(ids, *sides, 0, -20_001)), -20_001)))
    assert vertices == [None, None, NO_WATERMARK_MS, NO_WATERMARK_MS]
    assert operators["StreamingSymmetricHashJoin"] == Mark(NO_WATERMARK_MS, NO_WATERMARK_MS)
    assert operators["StateStoreSave"] == Mark(NO_WATERMARK_MS, NO_WATERMARK_MS)


def test_without_a_watermark_an_operator_has_none() -> None:
    """Spark prints 0 for good, and no withWatermark() stands below."""
    ids = Ids()
    vertices, operators = of(sink(ids, save(ids, ids.shuffle(scan(ids)), 0)))
    assert (vertices, operators) == ([None, NO_WATERMARK_MS], {})


def test_what_spark_prints_is_told_where_the_assigner_is_gone() -> None:
    """A union that lost its side with a watermark to the optimiser: Spark had seen it."""
    ids = Ids()
    vertices, operators = of(sink(ids, save(ids, ids.shuffle(scan(ids)), NOW)))
    assert vertices == [None, NOW]
    assert operators == {"StateStoreSave": Mark(NOW, NOW)}


def test_chain_passes_on_what_the_join_puts_out() -> None:
    """The second operator's threshold is the first one's output; vertices tell each its own."""
    ids = Ids()
    sides = [ids.shuffle(assign(ids, scan(ids))) for _ in range(2)]
    joined = join(ids, *sides, NOW, NOW - 20_001)
    vertices, operators = of(sink(ids, ids.shuffle(save(ids, ids.shuffle(joined), NOW - 20_001))))
    assert vertices == [None, None, NOW, NOW - 20_001, NOW - 20_001]
    assert operators["StreamingSymmetricHashJoin"] == Mark(NOW, NOW - 20_001)
    assert operators["StateStoreSave"] == Mark(NOW - 20_001, NOW - 20_001)


def test_stateless_vertex_reads_the_least_of_what_comes_in() -> None:
    """A union of an aggregate's output and of rows that nobody held back."""
    ids = Ids()
    joined = join(ids, *(ids.shuffle(assign(ids, scan(ids))) for _ in range(2)), NOW, NOW - 5000)
    both = ids.node("Union", ids.shuffle(joined), ids.shuffle(assign(ids, scan(ids))))
    vertices, _ = of(sink(ids, both))
    assert vertices == [None, None, NOW, None, NOW - 5000]


def test_stateless_query_tells_what_its_progress_told() -> None:
    """Its plan prints no watermark."""
    ids = Ids()
    root = sink(ids, ids.shuffle(assign(ids, scan(ids))))
    assert of(root, NOW) == ([None, NOW], {"EventTimeWatermark": Mark(None, NOW)})
    assert of(root)[0] == [None, NO_WATERMARK_MS]


def test_what_is_read_before_the_assigner_has_no_watermark() -> None:
    """As a Flink task whose watermarks are assigned in the midst of its chain."""
    ids = Ids()
    vertices, operators = of(sink(ids, save(ids, assign(ids, ids.shuffle(scan(ids))), NOW)))
    assert vertices == [None, NO_WATERMARK_MS]
    assert operators["StateStoreSave"] == Mark(NOW, NOW)


def test_user_code_lets_no_watermark_through() -> None:
    """What applyInPandasWithState puts out has no event time that Spark knows."""
    ids = Ids()
    told = f"FlatMapGroupsInPandasWithState fn(k#1), state info [ opId = 0 ], 2, Update, NoTimeout, 17, 0, {NOW}, false"
    made = ids.node("FlatMapGroupsInPandasWithState", ids.shuffle(assign(ids, scan(ids))), description=told)
    vertices, operators = of(sink(ids, ids.shuffle(made)))
    assert vertices == [None, NOW, NO_WATERMARK_MS]
    assert operators["FlatMapGroupsInPandasWithState"] == Mark(NOW, None)


# ---- Against Spark's simulation


class Simulation:
    """A random plan, and what Spark's `WatermarkPropagator` makes of it, node by node."""

    def __init__(self, random: Random, origin_ms: int) -> None:
        self.random, self.ids, self.origin_ms, self.numbers = random, Ids(), origin_ms, iter(range(10**6))
        self.outputs: dict[int, int | None] = {}
        self.inputs: dict[int, int | None] = {}
        self.root = sink(self.ids, self.plan(4))
        self.visit(self.root)

    def plan(self, depth: int) -> PlanNode:
        """A plan whose stateful operators print what Spark would print."""
        ids, key = self.ids, f"key{next(self.numbers)}"
        kind = self.random.choice(("scan", "filter", "assign", "shuffle", "shuffle", "save", "save", "join", "union"))
        if depth == 0 or kind == "scan":
            below = ids.node("MicroBatchScan", description=f"MicroBatchScan[{key}]")
            return assign(ids, below) if self.random.random() < 0.7 else below
        child = self.plan(depth - 1)
        if kind == "assign" and self.watermark(child) is None:
            return assign(ids, child)
        if kind == "shuffle":
            return ids.shuffle(child, f"hashpartitioning({key}, 3)")
        if kind == "save":
            return save(ids, child, self.watermark(child) or 0, key=key)
        if kind == "filter" or kind == "assign":
            return ids.node("Filter", child, description=f"Filter {key}")
        other = self.plan(depth - 1)
        if kind == "union":
            return ids.node("Union", child, other, description=f"Union {key}")
        eviction_ms = min((each for each in map(self.watermark, (child, other)) if each is not None), default=0)
        return join(ids, child, other, eviction_ms, eviction_ms - self.random.randint(0, 9) * 1000, key)

    def watermark(self, node: PlanNode) -> int | None:
        """What a node puts out."""
        if node.name == "EventTimeWatermark":
            return self.origin_ms
        came = [each for child in node.children if (each := self.watermark(child)) is not None]
        if not came:
            return None
        if node.name == "StreamingSymmetricHashJoin":
            bound_us = node.description.partition("<= ")[2].partition(")")[0]
            return min([*came, int(bound_us) // 1000])
        return min(came)

    def visit(self, node: PlanNode) -> None:
        came = [each for child in node.children if (each := self.watermark(child)) is not None]
        for accumulator in node.metrics[1::2]:
            self.inputs[accumulator] = min(came, default=None)
            self.outputs[accumulator] = self.watermark(node)
        for child in node.children:
            self.visit(child)

    def vertices(self) -> list[int | None]:
        """What each vertex reads, None of one that reads nothing, in any order."""
        tops = [self.root, *(node.children[0] for node in walk(self.root) if node.name == "Exchange")]
        return [self._vertex(top) for top in tops]

    def _vertex(self, top: PlanNode) -> int | None:
        read = [node for node in _segment(top) if node.name == "Exchange"]
        if not read:
            return None
        came = [self.watermark(node.children[0]) for node in read]
        came += [
            min([each for child in node.children if (each := self.watermark(child)) is not None], default=None)
            for node in _segment(top)
            if node.name in ("StateStoreSave", "StreamingSymmetricHashJoin") and _is_first(node)
        ]
        return min((each for each in came if each is not None), default=NO_WATERMARK_MS)


def _segment(top: PlanNode) -> list[PlanNode]:
    """The nodes of a vertex, and the exchanges that it reads."""
    below = () if top.name == "Exchange" else top.children
    return [top, *(node for child in below for node in _segment(child))]


def _is_first(node: PlanNode) -> bool:
    """Whether what an exchange hands on reaches this node before any that keeps state or makes watermarks."""
    kept = ("StateStoreSave", "StreamingSymmetricHashJoin", "EventTimeWatermark")
    return any(child.name == "Exchange" or (child.name not in kept and _is_first(child)) for child in node.children)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32).map(Random), st.booleans())
def test_watermarks_are_those_of_sparks_simulation(random: Random, is_told: bool) -> None:
    """Whatever the plan: operators that keep state have Spark's input and output, and vertices what follows."""
    spark = Simulation(random, NOW)
    graph = plan.analyse(spark.root, "NoopTable")
    marks: Marks = propagate(graph, NOW if is_told else NO_WATERMARK_MS)
    printed = [operator for operator in marks.operators if operator.thresholds is not None]
    if not is_told and not any(operator.thresholds.eviction_ms for operator in printed if operator.thresholds):
        return
    for operator in printed:
        expected = Mark(spark.inputs[operator.rows[0]], spark.outputs[operator.rows[0]])
        assert marks.operators[operator] == expected, operator.description
    assigned = {mark.output_ms for operator, mark in marks.operators.items() if operator.node == "EventTimeWatermark"}
    assert assigned <= ({NOW} if is_told else {NOW, NO_WATERMARK_MS})
    if is_told:
        assert sorted(map(str, marks.vertices.values())) == sorted(map(str, spark.vertices()))
