"""What one task's updates say of every operator and of the vertex, rule by rule; metrics as Spark calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks import plan
from spark_hooks.counts import BYTES_SPILLED, BYTES_WRITTEN, TOTALS, Terms, terms
from spark_hooks.records import PlanNode

FILES = "FileSink[file:/data/out]"
NOOP = "a.b.NoopTable$@1f"


def node(name: str, *children: PlanNode, rows: int | tuple[int, ...] = (), description: str = "") -> PlanNode:
    """A node whose row metrics have these accumulator ids."""
    numbers = (rows,) if isinstance(rows, int) else rows
    metrics = tuple(part for number in numbers for part in ("number of output rows", number))
    return PlanNode(name, description or name, metrics, children)


def exchange(first: int, child: PlanNode, partitioning: str = "hashpartitioning(k#1, 3)") -> PlanNode:
    """Written records and bytes, read records, local and remote bytes, local and remote blocks: first, first + 1, …"""
    metrics = tuple(
        part
        for number, metric in enumerate(
            (
                "shuffle records written",
                "shuffle bytes written",
                "records read",
                "local bytes read",
                "remote bytes read",
                "local blocks read",
                "remote blocks read",
            ),
            first,
        )
        for part in (metric, number)
    )
    return PlanNode("Exchange", f"Exchange {partitioning}", metrics, (child,))


@dataclass(frozen=True, slots=True)
class Counts:
    """
    What one task did in one vertex, None where the plan cannot tell: (in, out) of each operator, and TOTALS.
    """

    operators: tuple[tuple[int | None, int | None], ...]
    totals: tuple[int | None, ...]


def count(vertex: plan.Vertex, updates: Mapping[int, int], bytes_written: int) -> Counts:
    """Evaluate the terms of a vertex for one task; zero is never sent, so what is missing is 0."""
    values = {**updates, BYTES_WRITTEN: bytes_written}

    def total(found: Terms | None) -> int | None:
        return None if found is None else sum(max(values.get(each, 0) for each in term) for term in found)

    operators, totals = terms(vertex)
    return Counts(tuple((total(came), total(went)) for came, went in operators), tuple(map(total, totals)))


def counted(root: PlanNode, updates: Mapping[int, int], sink: str | None = None, bytes_written: int = 0) -> Counts:
    """The counts of the plan's last vertex."""
    return count(plan.analyse(root, sink).vertices[-1], updates, bytes_written)


def upstream(root: PlanNode, updates: Mapping[int, int]) -> Counts:
    """The counts of the plan's first vertex."""
    return count(plan.analyse(root).vertices[0], updates, 0)


def totals(counts: Counts) -> dict[str, int | None]:
    return dict(zip(TOTALS, counts.totals, strict=True))


SCAN = node("MicroBatchScan", rows=1)
READ = exchange(10, SCAN)


# ---- Operators

CHAINS = [
    ("a source's in and out are its rows", SCAN, {1: 7}, [(7, 7)]),
    ("a source without a metric is unknown", node("Scan t"), {}, [(None, None)]),
    ("zero is never sent", node("Filter", SCAN, rows=2), {1: 7}, [(7, 7), (7, 0)]),
    ("an operator reads what its input put out", node("Filter", SCAN, rows=2), {1: 7, 2: 3}, [(7, 7), (7, 3)]),
    (
        "of two row metrics the greater counts",
        node("FlatMapGroupsInPandasWithState", READ, rows=(2, 3)),
        {2: 3, 3: 9, 12: 5},
        [(5, 9)],
    ),
    (
        "of two row metrics the greater counts, in either order",
        node("FlatMapGroupsInPandasWithState", READ, rows=(2, 3)),
        {2: 9, 12: 5},
        [(5, 9)],
    ),
    (
        "an aggregation after an exchange reads its records",
        node("HashAggregate", READ, rows=2),
        {12: 50, 2: 5},
        [(50, 5)],
    ),
    (
        "what a restore adds is its own",
        node("HashAggregate", node("StateStoreRestore", node("HashAggregate", READ, rows=2), rows=3), rows=4),
        {12: 50, 2: 5, 3: 9, 4: 6},
        [(50, 5), (5, 9), (9, 6)],
    ),
    ("an exchange that was not read gave nothing", node("HashAggregate", READ, rows=2), {}, [(0, 0)]),
]


@pytest.mark.parametrize(
    ("root", "updates", "expected"), [case[1:] for case in CHAINS], ids=[case[0] for case in CHAINS]
)
def test_operators_count(root: PlanNode, updates: dict[int, int], expected: list[tuple[int, int]]) -> None:
    """SQL metrics of the operator itself, and what its inputs put out."""
    assert counted(root, updates).operators == tuple(expected)


@pytest.mark.parametrize("name", ["Project", "Sort", "EventTimeWatermark", "Coalesce", "Window", "CollectMetrics"])
def test_what_has_no_metric_passes_through(name: str) -> None:
    """As many rows out as in, and then the next operator's in."""
    counts = counted(node("Filter", node(name, SCAN), rows=3), {1: 7, 3: 2})
    assert counts.operators == ((7, 7), (7, 7), (7, 2))


@pytest.mark.parametrize("name", ["LocalLimit", "GlobalLimit", "CollectLimit", "TakeOrderedAndProject", "MapElements"])
def test_what_may_drop_rows_unseen_is_unknown(name: str) -> None:
    """It reads what is known; what it puts out is not, nor what the next one reads."""
    counts = counted(node("Project", node(name, SCAN)), {1: 7})
    assert counts.operators == ((7, 7), (7, None), (None, None))
    assert totals(counts)["records_out"] is None


def test_an_unknown_operator_hides_nothing_behind_the_next_metric() -> None:
    """The next operator with a metric of its own is known again."""
    counts = counted(node("Filter", node("MapElements", SCAN), rows=3), {1: 7, 3: 2})
    assert counts.operators == ((7, 7), (7, None), (None, 2))


def test_a_union_without_a_metric_adds_its_branches_up() -> None:
    """Spark 3.5: a task runs one branch, the others' counts are 0."""
    root = node("Union", node("Project", SCAN), node("Filter", node("Scan b", rows=2), rows=3))
    counts = counted(root, {2: 9, 3: 4})
    assert counts.operators == ((0, 0), (0, 0), (9, 9), (9, 4), (4, 4))
    assert totals(counts)["records_in"] == 9


def test_a_union_with_a_metric_tells_its_own() -> None:
    """Spark 4.3 counts it."""
    root = node("Union", node("Project", SCAN), node("Scan b", rows=2), rows=3)
    assert counted(root, {1: 4, 3: 4}).operators[-1] == (4, 4)


def test_a_join_reads_both_sides() -> None:
    """Two exchanges are two heads: they add up."""
    root = node("StreamingSymmetricHashJoin", READ, exchange(20, node("Scan b", rows=2)), rows=3)
    counts = counted(root, {12: 50, 22: 8, 3: 11})
    assert counts.operators == ((58, 11),)
    assert (totals(counts)["records_in"], totals(counts)["records_out"]) == (58, 11)


def test_a_broadcast_side_is_no_input() -> None:
    """Its rows were read by the driver, not by this task."""
    small = PlanNode("BroadcastExchange", "BroadcastExchange", ("number of output rows", 30), (node("Scan b", rows=2),))
    counts = counted(node("BroadcastHashJoin", SCAN, small, rows=3), {1: 7, 3: 9, 30: 1000, 2: 1000})
    assert counts.operators == ((7, 7), (7, 9))
    assert (totals(counts)["records_in"], totals(counts)["bytes_in"]) == (7, 0)


def test_what_a_subquery_read_is_no_input() -> None:
    """Nor does it keep a scan from being a source."""
    subquery = PlanNode("SubqueryBroadcast", "SubqueryBroadcast", ("time to collect", 31), (node("Scan b", rows=2),))
    counts = counted(node("Filter", node("Scan parquet t", subquery, rows=1), rows=3), {1: 7, 3: 2})
    assert counts.operators == ((7, 7), (7, 2))
    assert totals(counts)["records_in"] == 7


def test_an_exchange_read_twice_by_one_vertex_is_counted_once() -> None:
    """Both readers share its accumulators: the whole is known, what each of them read is not."""
    sides = [node("Sort", READ), node("Sort", node("ReusedExchange", READ))]
    counts = counted(node("SortMergeJoin", *sides, rows=3), {12: 50, 13: 4000, 15: 6, 3: 11})
    assert counts.operators == ((None, None), (None, None), (None, 11))
    found = totals(counts)
    assert (found["records_in"], found["bytes_in_local"], found["buffers_in_local"]) == (50, 4000, 6)


def test_what_fills_a_cache_is_counted_once_however_often_it_is_read() -> None:
    """Two scans of one cache in a vertex: which of them got what filled it is not known."""
    filling = node("Filter", SCAN, rows=2)
    root = node("Union", *(node("InMemoryTableScan", filling, rows=number) for number in (3, 4)), rows=5)
    counts = counted(root, {1: 7, 2: 6, 3: 6, 4: 6, 5: 12})
    assert counts.operators == ((7, 7), (7, 6), (None, 6), (None, 6), (12, 12))
    assert totals(counts)["records_in"] == 7


def test_an_exchange_read_twice_by_one_operator_is_counted_once() -> None:
    """Then what the operator read is known, too."""
    counts = counted(node("ShuffledHashJoin", READ, node("ReusedExchange", READ), rows=3), {12: 50, 3: 11})
    assert counts.operators == ((50, 11),)


# ---- The end of a chain


@pytest.mark.parametrize("name", ["HashAggregate", "LocalLimit", "Project"])
def test_a_chain_ends_with_the_records_it_wrote(name: str) -> None:
    """Whatever the last operator before an exchange tells: a limit tells nothing, and is right all the same."""
    root = node("Filter", exchange(10, node(name, SCAN, rows=2 if name == "HashAggregate" else ())), rows=4)
    counts = upstream(root, {1: 7, 2: 6, 10: 5, 11: 640})
    assert counts.operators == ((7, 7), (7, 5))
    found = totals(counts)
    assert (found["records_out"], found["bytes_out"]) == (5, 640)


def test_a_source_right_before_an_exchange_keeps_its_in() -> None:
    """Out is what was written."""
    assert upstream(node("Filter", READ, rows=4), {1: 7, 10: 6}).operators == ((7, 6),)


def test_a_chain_before_a_broadcast_ends_with_its_own_rows() -> None:
    """Nothing is written to a shuffle."""
    small = PlanNode("BroadcastExchange", "BroadcastExchange", ("data size", 30), (node("Scan b", rows=2),))
    counts = upstream(node("BroadcastHashJoin", SCAN, small, rows=3), {2: 8})
    assert counts.operators == ((8, 8),)
    assert totals(counts)["bytes_out"] is None


def test_between_two_exchanges_what_is_read_passes_through() -> None:
    """A stage without an operator hands on what it reads."""
    middle = plan.analyse(node("Filter", exchange(20, READ), rows=4)).vertices[1]
    counts = count(middle, {12: 50, 20: 50, 21: 640}, 0)
    assert counts.operators == ((50, 50),)
    assert (totals(counts)["records_in"], totals(counts)["records_out"], totals(counts)["bytes_out"]) == (50, 50, 640)


# ---- Sinks


@pytest.mark.parametrize("rows", [(), 3], ids=["3.5.9", "4.3.0"])
def test_a_sink_put_out_what_it_got(rows: int | tuple[int, ...]) -> None:
    """Its own metric, where it has one, comes from the driver alone."""
    counts = counted(node("WriteToDataSourceV2", node("Filter", SCAN, rows=2), rows=rows), {1: 7, 2: 4}, NOOP)
    assert counts.operators == ((7, 7), (7, 4), (4, 4))
    assert totals(counts)["records_out"] == 4


def test_a_sink_that_the_plan_does_not_show_counts_as_well() -> None:
    """The streaming file sink has no node."""
    counts = counted(node("MapInArrow", SCAN, rows=2), {1: 7, 2: 4}, FILES, bytes_written=4096)
    assert counts.operators == ((7, 7), (7, 4), (4, 4))
    assert totals(counts)["bytes_out"] == 4096


def test_a_sink_behind_an_exchange_reads_its_records() -> None:
    """Rebalanced rows are written as they come."""
    assert counted(exchange(10, SCAN, "RoundRobinPartitioning(2)"), {12: 9}, FILES).operators == ((9, 9),)


def test_a_sink_after_an_unknown_count_is_unknown() -> None:
    """Absent, never 0."""
    assert counted(node("MapElements", SCAN), {1: 7}, FILES).operators[-1] == (None, None)


@pytest.mark.parametrize(
    ("root", "sink", "expected"),
    [
        (node("Project", SCAN), FILES, 4096),
        (node("Execute InsertIntoHadoopFsRelationCommand", node("WriteFiles", SCAN)), None, 4096),
        (node("WriteToDataSourceV2", SCAN), NOOP, None),
        (node("AppendData", SCAN), None, None),
        (node("Project", SCAN), None, None),
    ],
    ids=["file sink", "batch files", "noop", "table", "no sink"],
)
def test_bytes_out_are_known_of_files_alone(root: PlanNode, sink: str | None, expected: int | None) -> None:
    """No other sink tells Spark what it wrote."""
    assert totals(counted(root, {1: 7}, sink, bytes_written=4096))["bytes_out"] == expected


# ---- The vertex


def test_bytes_and_blocks_are_those_of_all_exchanges_read() -> None:
    """Local and remote apart; bytes in are both."""
    root = node("Join", READ, exchange(20, node("Scan b", rows=2)), rows=3)
    updates = {13: 100, 14: 20, 15: 3, 16: 1, 23: 1000, 24: 200, 25: 30, 26: 10}
    assert totals(counted(root, updates)) == {
        "records_in": 0,
        "records_out": 0,
        "bytes_in": 1320,
        "bytes_in_local": 1100,
        "bytes_in_remote": 220,
        "buffers_in_local": 33,
        "buffers_in_remote": 11,
        "bytes_out": None,
        "bytes_spilled": 0,
    }


@pytest.mark.parametrize("root", [node("Filter", SCAN, rows=2), node("Join", READ, rows=3)], ids=["source", "reader"])
def test_what_any_vertex_spilled_is_known(root: PlanNode) -> None:
    """Spark tells it of every task, whatever the task does."""
    [*_, spilled] = terms(plan.analyse(root).vertices[-1])[1]
    assert spilled == ((BYTES_SPILLED,),)


def test_a_source_vertex_reads_no_bytes() -> None:
    """It reads no shuffle: that is known to be 0, as on Flink."""
    found = totals(counted(node("Filter", SCAN, rows=2), {1: 7, 2: 3}))
    assert [found[name] for name in TOTALS[2:7]] == [0, 0, 0, 0, 0]


def test_a_vertex_with_an_unknown_head_does_not_tell_what_came_in() -> None:
    """Half a sum is no sum."""
    found = totals(counted(node("Union", SCAN, node("Scan b"), rows=3), {1: 7, 3: 9}))
    assert (found["records_in"], found["records_out"]) == (None, 9)


def test_an_exchange_that_lacks_a_metric_leaves_it_unknown() -> None:
    """Another version of Spark may not have it."""
    bare = PlanNode("Exchange", "Exchange SinglePartition", ("records read", 12), (SCAN,))
    found = totals(counted(node("Filter", bare, rows=2), {12: 4}))
    assert (found["records_in"], found["bytes_in"], found["bytes_in_local"]) == (4, None, None)


def test_updates_of_other_plans_say_nothing() -> None:
    """A task may update what stands in another execution's plan."""
    assert counted(node("Filter", SCAN, rows=2), {1: 7, 2: 3, 99: 5}) == counted(
        node("Filter", SCAN, rows=2), {1: 7, 2: 3}
    )


# ---- Any plan


@st.composite
def plans(draw: st.DrawFn) -> tuple[PlanNode, list[int]]:
    """A plan with at most one row metric a node, and its accumulators."""
    issued = iter(range(1, 10_000))
    names = {
        1: ["Filter", "Project", "LocalLimit", "HashAggregate", "Exchange", "StateStoreRestore"],
        2: ["Union", "SortMergeJoin"],
    }

    def below(depth: int) -> PlanNode:
        children = draw(st.integers(0, 2)) if depth else 0
        if not children:
            return node("Scan t", rows=next(issued))
        name = draw(st.sampled_from(names[children]))
        inputs = [below(depth - 1) for _ in range(children)]
        if name == "Exchange":
            first = next(issued)
            for _ in range(6):
                next(issued)
            return exchange(first, inputs[0])
        has_rows = name not in ("Project", "LocalLimit") and (name != "Union" or draw(st.booleans()))
        return node(name, *inputs, rows=next(issued) if has_rows else ())

    root = below(draw(st.integers(1, 5)))
    return root, list(plan.accumulators(root))


def _flat(counts: Counts) -> list[int | None]:
    return [value for pair in counts.operators for value in pair] + list(counts.totals)


@given(plans(), st.sampled_from([None, FILES, NOOP]), st.data())
def test_counts_of_disjoint_updates_add_up(
    drawn: tuple[PlanNode, list[int]], sink: str | None, data: st.DataObject
) -> None:
    """Where no maximum is taken, two halves of a task's updates count as much as the whole."""
    root, accumulators = drawn
    values = {one: data.draw(st.integers(0, 10**12)) for one in accumulators}
    half = {one: value for one, value in values.items() if data.draw(st.booleans())}
    rest = {one: value for one, value in values.items() if one not in half}
    for vertex in plan.analyse(root, sink).vertices:
        whole, one, two = (
            _flat(count(vertex, values, 12)),
            _flat(count(vertex, half, 5)),
            _flat(count(vertex, rest, 7)),
        )
        for all_of_it, left, right in zip(whole, one, two, strict=True):
            if all_of_it is None or left is None or right is None:
                assert (all_of_it, left, right) == (None, None, None)
            else:
                assert all_of_it == left + right


@given(plans(), st.sampled_from([None, FILES, NOOP]), st.data())
def test_what_is_known_depends_on_the_plan_alone(
    drawn: tuple[PlanNode, list[int]], sink: str | None, data: st.DataObject
) -> None:
    """A metric is there for all tasks of a vertex or for none, and never negative."""
    root, accumulators = drawn
    updates = {one: data.draw(st.integers(1, 100)) for one in accumulators if data.draw(st.booleans())}
    for vertex in plan.analyse(root, sink).vertices:
        found, nothing = _flat(count(vertex, updates, 3)), _flat(count(vertex, {}, 0))
        assert [value is None for value in found] == [value is None for value in nothing]
        assert all(value == 0 for value in nothing if value is not None)
        assert all(value >= 0 for value in found if value is not None)
