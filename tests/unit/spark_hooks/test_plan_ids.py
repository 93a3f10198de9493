"""Ids of plans: what they depend on and what not, on plans that were seen and on any plan."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks import plan
from spark_hooks.descriptions import stable
from spark_hooks.records import PlanNode
from tests.unit.spark_hooks.spark_plans import (
    AGGREGATION_4,
    BROADCAST_FIRST,
    RATE,
    SINK,
    analyse,
    chains,
    ids,
    node,
)

LEFT = """
  Exchange | Exchange hashpartitioning(k#{0}, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=58]
    Filter | Filter isnotnull(t#{0}-T10000ms)
      EventTimeWatermark | EventTimeWatermark 3e180203-9c89-4880-81f4-0ca219d12bf6, t#{0}: timestamp, 10 seconds
        {1}
"""
RIGHT = """
  Exchange | Exchange hashpartitioning(k2#7, 2), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=63]
    Project | Project [k#3 AS k2#7, t#4-T10000ms AS t2#6-T10000ms]
      EventTimeWatermark | EventTimeWatermark 3df93fb5-6fa5-48b3-b8da-01228a0b4c39, t#4: timestamp, 10 seconds
        {0}
"""
JOIN = (
    "StreamingSymmetricHashJoin | StreamingSymmetricHashJoin [k#12], [k2#7], Inner, condition = [ both = (t2 >= t) ],"
    " state info [ checkpoint = file:/data/cp, opId = 0, ver = {0}, numPartitions = 2], 0, 0, 2"
)
EMPTY = "LocalTableScan | LocalTableScan <empty>, [k#3, t#4]"
JSON = (
    "Scan json  | FileScan json [k#12,t#13] Batched: false, Format: JSON, Location: InMemoryFileIndex(1 paths)"
    "[file:/data/{0}], PartitionFilters: [], ReadSchema: struct<k:int>"
)


def changed(graph: plan.Graph, other: plan.Graph) -> list[int]:
    """Which vertices have another id; both graphs have as many."""
    assert len(graph.vertices) == len(other.vertices)
    return [i for i, (one, two) in enumerate(zip(ids(graph), ids(other), strict=True)) if one[0] != two[0]]


# ---- Ids

SAME = [
    (
        "reused subquery",
        "Filter (a#1 > ReusedSubquery Subquery subquery#9, [id=#5])",
        "Filter (a#1 > Subquery subquery#9)",
    ),
    ("expression ids", "Filter (value#1L > k#22)", "Filter (value#101L > k#9)"),
    ("plan id", "Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=75]", "Exchange SinglePartition"),
    ("subquery id", "Subquery subquery#9, [id=#34]", "Subquery subquery#19, [id=#340]"),
    ("hash partitions", "Exchange hashpartitioning((k#1 % 5), 3)", "Exchange hashpartitioning((k#1 % 5), 200)"),
    (
        "range partitions",
        "Exchange rangepartitioning(k#1 ASC NULLS FIRST, 3), REPARTITION_BY_NUM, [plan_id=1]",
        "Exchange rangepartitioning(k#1 ASC NULLS FIRST, 40), ENSURE_REQUIREMENTS, [plan_id=1]",
    ),
    ("round robin partitions", "Exchange RoundRobinPartitioning(2)", "Exchange RoundRobinPartitioning(16)"),
    (
        "who asked for an exchange",
        "Exchange hashpartitioning(k#1, 3), ENSURE_REQUIREMENTS, [plan_id=1]",
        "Exchange hashpartitioning(k#1, 3), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=1]",
    ),
    (
        "state info",
        "StreamingDeduplicate [v#1L], state info [ checkpoint = file:/a, opId = 0, ver = 0, numPartitions = 3], 0, 0",
        "StreamingDeduplicate [v#9L], state info [ checkpoint = s3:/b, opId = 0, ver = 17, numPartitions = 200]"
        " stateStoreCkptIds = None, 1795257770000, 1795257769000",
    ),
    (
        "watermark uuid",
        "EventTimeWatermark 9bdbeca8-7a75-4551-8a2a-ff1760c5e321, t#0: timestamp, 1 seconds",
        "EventTimeWatermark t#4: timestamp, 1 seconds",
    ),
    (
        "late rows of a processor",
        "UpdateEventTimeColumn t#1485: timestamp, 10 seconds, 0",
        "UpdateEventTimeColumn t#1485: timestamp, 10 seconds, 1795255000000",
    ),
    ("epoch", "Write MicroBatchWrite[epoch: 1, writer: W]", "Write MicroBatchWrite[epoch: 22, writer: W]"),
    (
        "lambda",
        "MapElements a.B$$Lambda$2066/0x00007f65b4b23e08@1c3f0401, obj#3",
        "MapElements a.B$$Lambda/0x00007f3744baad50@47b, obj#3",
    ),
    ("address", "Foo a.b.Bar@47b45e0f, 1", "Foo a.b.Bar@6704af9, 1"),
    (
        "current_timestamp()",
        "Project [2026-11-21 10:42:48.662 AS now#1]",
        "Project [2026-11-22 10:42:49 AS now#1]",
    ),
    ("current_date()", "Filter (d#1 >= 2026-11-21)", "Filter (d#1 >= 2026-11-22)"),
    ("unix_timestamp()", "Filter (s#1L < 1795257769)", "Filter (s#1L < 1795257770)"),
    ("unix_millis()", "Filter (s#1L < 1795257769084)", "Filter (s#1L < 1795257770001)"),
    ("unix_micros()", "Filter (s#1L < 1795257769084000)", "Filter (s#1L < 1795257770000000)"),
    ("rand()", "Project [rand(-5862441267331) AS r#1]", "Project [rand(7) AS r#1]"),
    ("uuid()", "Project [uuid(Some(-586244126733198)) AS u#1]", "Project [uuid(Some(11)) AS u#1]"),
    ("sample()", "Sample 0.0, 0.1, false, -5862441267331", "Sample 0.0, 0.1, false, 8"),
    ("other seeds", "Project [randstr(5, 5862441267331984421)]", "Project [randstr(5, -862441267331984421)]"),
    ("splits", "Range (0, 100, step=1, splits=Some(2))", "Range (0, 100, step=1, splits=16)"),
    ("skew", "SortMergeJoin(skew=true) [k#1], [k#2], Inner", "SortMergeJoin [k#1], [k#2], Inner"),
    (
        "paths",
        "FileScan json [k#1] Format: JSON, Location: InMemoryFileIndex(1 paths)[file:/data/a], PartitionFilters: []",
        "FileScan json [k#1] Format: JSON, Location: InMemoryFileIndex(2 paths)[file:/b, ...], PartitionFilters: []",
    ),
    (
        "a path that Spark cut",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/data/a], PartitionFilters: [], ReadSchema: s",
        "FileScan json [k#1] Location: InMemoryFileIndex(2 paths)[file:/data/part-00001-425e5ec3-1d79-451e-..., "
        "PartitionFilters: [], ReadSchema: s",
    ),
    (
        "a filter that Spark cut",
        "FileScan json [k#98] Batched: false, DataFilters: [isnotnull(k#98), (k#98 > 3), (k..., Format: JSON",
        "FileScan json [k#101] Batched: false, DataFilters: [isnotnull(k#101), (k#101 > 3)..., Format: JSON",
    ),
    (
        "what a tap was asked for",
        'CollectMetrics streamgauge.tap.clicks, [{"version":1,"splits":[]} AS options#5, count(1) AS rows#6L]',
        'CollectMetrics streamgauge.tap.clicks, [{"version":1,"splits":["a, [b"]} AS options#9, ... 12 more fields]',
    ),
]


@pytest.mark.parametrize(("one", "other"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_what_is_volatile_is_in_no_id(one: str, other: str) -> None:
    """Batches, restarts, machines, partition counts and versions differ in these."""
    assert stable(one) == stable(other)


DIFFERENT = [
    ("constant", "Filter (value#1L > 3)", "Filter (value#1L > 4)"),
    ("column", "Project [a#1]", "Project [b#1]"),
    ("key", "Exchange hashpartitioning(a#1, 3)", "Exchange hashpartitioning(b#1, 3)"),
    ("hash or range", "Exchange hashpartitioning(a#1, 3)", "Exchange rangepartitioning(a#1, 3)"),
    ("join type", "SortMergeJoin [k#1], [k#2], Inner", "SortMergeJoin [k#1], [k#2], LeftOuter"),
    ("watermark delay", "EventTimeWatermark t#0: timestamp, 1 seconds", "EventTimeWatermark t#0: timestamp, 2 seconds"),
    ("window of minutes", "Project [(t#1 % 1800000000)]", "Project [(t#1 % 1900000000)]"),
    ("window of weeks", "Project [(t#1 % 1209600000000)]", "Project [(t#1 % 1814400000000)]"),
    ("coalesce", "Coalesce 2", "Coalesce 3"),
    ("sample", "Sample 0.0, 0.1, false, 8", "Sample 0.0, 0.2, false, 8"),
    ("a scan's filter", "FileScan json [k#1] DataFilters: [a#1]", "FileScan json [k#1] DataFilters: [b#1]"),
    (
        "what stands behind a path",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/a], PartitionFilters: [p#1]",
        "FileScan json [k#1] Location: InMemoryFileIndex(1 paths)[file:/a], PartitionFilters: [q#1]",
    ),
    ("state keys", "StateStoreSave [a#1], state info [ x", "StateStoreSave [b#1], state info [ x"),
    ("a tap's name", "CollectMetrics streamgauge.tap.a, [1 AS x#1]", "CollectMetrics streamgauge.tap.b, [1 AS x#1]"),
    ("a user's observation", "CollectMetrics seen, [count(1) AS n#1L]", "CollectMetrics seen, [sum(k#2) AS n#1L]"),
]


@pytest.mark.parametrize(("one", "other"), [case[1:] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT])
def test_other_code_has_other_ids(one: str, other: str) -> None:
    """What the user wrote is what tells operators apart."""
    assert stable(one) != stable(other)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("> 3)", "> 4)"), [1]),
        (("explode(", "explode_outer("), [1]),
        (("isnotnull(k#2)", "isnull(k#2)"), [0]),
        (("RoundRobinPartitioning(2)", "SinglePartition"), [2]),
    ],
    ids=["filter", "generator", "broadcast side", "partitioning"],
)
def test_a_change_renames_its_own_vertex_alone(change: tuple[str, str], expected: list[int]) -> None:
    """An id does not depend on the segments before; an exchange's partitioning belongs to its reader."""
    text = BROADCAST_FIRST.replace("cast((value#1L % 7) as int)", "(value#1L > 3)")
    assert changed(analyse(text), analyse(text.replace(*change))) == expected


def test_a_skew_join_keeps_its_id() -> None:
    """Spark tells the skew in the node's name, too."""
    text = "SortMergeJoin{0} | SortMergeJoin{0} [k#1], [k#2], Inner\n  Scan a\n  Scan b"
    plain, skewed = analyse(text.format(""), None), analyse(text.format("(skew=true)"), None)
    assert ids(skewed) == ids(plain)
    assert chains(skewed) == chains(plain)


def test_equal_siblings_get_ordinals() -> None:
    """Two equal scans in one vertex, and two equal vertices, have ids of their own, the same in every batch."""
    scan = f"\n    Scan a\n    MicroBatchScan | MicroBatchScan[v#1] {RATE}"
    side = f"\n  Exchange | Exchange hashpartitioning(k#1, 3)\n    Union{scan.replace('    ', '      ')}"
    text = f"SortMergeJoin{side}{side}"
    graph = analyse(text, None)
    left, right, join = graph.vertices
    assert left.id != right.id
    assert [operator.id for operator in left.operators] == [operator.id for operator in right.operators]
    assert len(join.operators) == 1
    one_vertex = analyse("Union\n  Scan a\n  Scan a\n  Scan a", None).vertices[0]
    assert len({operator.id for operator in one_vertex.operators}) == 4
    assert ids(analyse(text.replace("#1", "#77"), None)) == ids(graph)


@pytest.mark.parametrize("empty_side", [0, 1], ids=["left", "right"])
def test_an_empty_side_of_a_join_renames_nothing_else(empty_side: int) -> None:
    """Spark puts LocalTableScan <empty> in its place and prunes above it; join and other side stay."""
    full = analyse(JOIN.format(0) + LEFT.format(13, JSON.format("f1")) + RIGHT.format(JSON.format("g1")))
    left = LEFT.format(0, EMPTY) if empty_side == 0 else LEFT.format(13, JSON.format("a/f2"))
    right = RIGHT.format(EMPTY) if empty_side == 1 else RIGHT.format(JSON.format("b/g2"))
    batch = analyse(JOIN.format(5) + left + right)
    assert changed(full, batch) == [empty_side]
    assert [vertex.empty for vertex in batch.vertices] == [empty_side == 0, empty_side == 1, False]
    assert [vertex.position for vertex in batch.vertices] == [vertex.position for vertex in full.vertices]
    assert not any(vertex.empty for vertex in full.vertices)


def test_a_tap_is_described_by_its_name() -> None:
    """Its aggregates are hundreds, and nobody reads them; what a user observes stays as Spark has it."""
    text = "CollectMetrics | CollectMetrics {0}, [count(1) AS rows#6L, ... 90 more fields]\n  Scan json t"
    tap, other = (
        analyse(text.format(name)).vertices[0].operators[1] for name in ("streamgauge.tap.clicks-2", "streamgauge.taps")
    )
    assert tap.description == "CollectMetrics streamgauge.tap.clicks-2"
    assert other.description == "CollectMetrics streamgauge.taps, [count(1) AS rows#6L, ... 90 more fields]"


def test_sinks_keep_their_id_whatever_their_description() -> None:
    """Writers print addresses and lambdas; of a sink its node and what it reads count."""
    text = "OverwriteByExpression | OverwriteByExpression {0}\n  Scan json t"
    assert ids(analyse(text.format("x$$Lambda$22/0x7@5, Write@1"), None)) == ids(analyse(text.format("other"), None))


def test_ids_are_what_they_always_were() -> None:
    """A new release renames no vertex of a running job: change these only with a note to the users."""
    assert [vertex.id for vertex in analyse(AGGREGATION_4).vertices] == GOLDEN


GOLDEN = ["bd51612aef68684ef7c3bb9a3a0d26d9", "da7a441a65f9001ce93a597bfa6cfa27"]


# ---- Any plan

UNARY = {
    "Filter": "Filter (isnotnull(value#{e}L) AND (value#{e}L > {code}))",
    "Project": "Project [value#{e}L, ({code} + value#{e}L) AS v#{e}L, 1795257{ms:06d} AS now#{e}]",
    "HashAggregate": "HashAggregate(keys=[k#{e}L], functions=[sum({code})])",
    "StreamingDeduplicate": "StreamingDeduplicate [c{code}#{e}], state info [ checkpoint = /{ms}, ver = {e}], {e}, 0",
    "MapElements": "MapElements a.F{code}$$Lambda${e}/0x{ms:x}@{ms:x}, obj#{e}",
}
LEAVES = {
    "MicroBatchScan": "MicroBatchScan[c{code}#{e}] " + RATE,
    "Scan json ": "FileScan json [c{code}#{e}] Location: InMemoryFileIndex({e} paths)[file:/{ms}], ReadSchema: s",
    "Scan ExistingRDD": "Scan ExistingRDD[c{code}#{e}]",
}
SHUFFLES = {
    "Exchange": "Exchange hashpartitioning(c{code}#{e}, {e}), ENSURE_REQUIREMENTS, [plan_id={ms}]",
    "BroadcastExchange": "BroadcastExchange HashedRelationBroadcastMode(List(c{code}#{e})), [plan_id={ms}]",
}
BINARY = {"Union": "Union", "SortMergeJoin": "SortMergeJoin [a{code}#{e}], [b#{e}], Inner"}

Shape = tuple[str, str, int, tuple["Shape", ...]]


def shapes() -> st.SearchStrategy[Shape]:
    def kind(table: dict[str, str], children: st.SearchStrategy[tuple[Shape, ...]]) -> st.SearchStrategy[Shape]:
        return st.sampled_from(sorted(table.items())).flatmap(
            lambda item: st.tuples(st.just(item[0]), st.just(item[1]), st.integers(0, 2), children)
        )

    leaves = kind(LEAVES, st.just(()))
    return st.recursive(
        leaves,
        lambda below: kind({**UNARY, **SHUFFLES}, st.tuples(below)) | kind(BINARY, st.tuples(below, below)),
        max_leaves=12,
    )


def rendered(shape: Shape, seed: int) -> PlanNode:
    """A plan of this shape in some batch: other numbers, and wrapped as code generation and AQE please."""
    noise, numbers = random.Random(seed), itertools.count(seed % 1000)

    def render(one: Shape) -> PlanNode:
        name, description, code, children = one
        text = description.format(e=noise.randrange(1, 400), ms=noise.randrange(1_000, 999_999), code=code)
        found = node(name, text, [render(child) for child in children], numbers)
        for wrapper in noise.sample(["InputAdapter", "WholeStageCodegen (3)", "ShuffleQueryStage"], noise.randrange(3)):
            found = node(wrapper, wrapper, [found], numbers)
        return found

    return render(shape)


@given(shapes(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_ids_and_names_are_the_same_in_every_batch(shape: Shape, one: int, other: int) -> None:
    """Whatever the plan, what is volatile changes neither graph nor names."""
    first, second = plan.analyse(rendered(shape, one), SINK), plan.analyse(rendered(shape, other), SINK)
    assert ids(first) == ids(second)
    assert chains(first) == chains(second)
    assert [[read.source.id for read in vertex.reads] for vertex in first.vertices] == [
        [read.source.id for read in vertex.reads] for vertex in second.vertices
    ]


@given(shapes(), st.integers(0, 10**6), st.sampled_from([None, SINK]))
def test_graphs_are_in_order_and_without_doubles(shape: Shape, seed: int, sink: str | None) -> None:
    """Sources first, operators after their inputs, every id and name once."""
    graph = plan.analyse(rendered(shape, seed), sink)
    assert len({vertex.id for vertex in graph.vertices}) == len(graph.vertices)
    seen: set[plan.Vertex] = set()
    for vertex in graph.vertices:
        before: set[plan.Operator] = set()
        assert vertex.name
        assert vertex.operators
        for operator in vertex.operators:
            assert {found for found in operator.inputs if isinstance(found, plan.Operator)} <= before
            assert {found for found in operator.inputs if isinstance(found, plan.Exchange)} <= set(vertex.reads)
            before.add(operator)
        assert {read.source for read in vertex.reads} <= seen
        assert len({operator.name for operator in before}) == len(before)
        assert len({operator.id for operator in before}) == len(before)
        assert all(len(operator.name) <= plan.NAME_LENGTH for operator in before)
        seen.add(vertex)
    assert all(read.source.writes is read for vertex in graph.vertices for read in vertex.reads)


@given(shapes(), st.integers(0, 10**6), st.data())
def test_a_change_of_code_reaches_an_id(shape: Shape, seed: int, data: st.DataObject) -> None:
    """Not one constant of the user's may be lost."""
    places = list(_places(shape))
    place = data.draw(st.sampled_from(places))
    name, description, code, children = place(shape, None)
    if "{code}" not in description:
        return
    other = place(shape, (name, description, code + 1, children))
    assert ids(plan.analyse(rendered(shape, seed), SINK)) != ids(plan.analyse(rendered(other, seed), SINK))


Place = Callable[[Shape, Shape | None], Shape]


def _places(shape: Shape) -> Iterator[Place]:
    """For every node of a shape, what reads it, or the whole shape with another node in its place."""
    yield lambda whole, new: whole if new is None else new
    for index, child in enumerate(shape[3]):
        for below in _places(child):

            def place(whole: Shape, new: Shape | None, index: int = index, below: Place = below) -> Shape:
                inner = below(whole[3][index], new)
                if new is None:
                    return inner
                return (*whole[:3], (*whole[3][:index], inner, *whole[3][index + 1 :]))

            yield place


@given(shapes(), st.integers(0, 10**6))
def test_analysis_depends_on_nothing_but_its_arguments(shape: Shape, seed: int) -> None:
    """The plan is read, never changed."""
    root = rendered(shape, seed)
    before = msgspec.msgpack.encode(root)
    assert ids(plan.analyse(root)) == ids(plan.analyse(root))
    assert msgspec.msgpack.encode(root) == before
