"""
Spark's physical plan → operators, vertices, stable ids; pure functions.

A vertex is a plan segment between exchanges. Its id, and its operators', is a Merkle hash of node names
and descriptions from the segment's heads (a source, or an exchange with its partitioning) with everything
volatile taken out. A segment's id does not depend on the segments before it: in a join of two streams one
side is often empty in a batch, Spark then puts `LocalTableScan <empty>` in its place and optimises what
stands above it away, and neither the other side nor the join may change its name for that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from spark_hooks.descriptions import SKEW, readable, stable
from spark_hooks.native import NativeMetric, native_metrics
from spark_hooks.operator_names import NAME_LENGTH, operator_name, short_name
from spark_hooks.records import PlanNode
from spark_hooks.thresholds import Thresholds, thresholds

ROWS = "number of output rows"
STATE = "memory used by state"
COMMIT = "time to commit changes"
LATE = "number of rows which are dropped by watermark"

# A collector takes 8,192 and 65,536 characters at most, and refuses a push for one that is longer.
CHAIN_LENGTH = 4096
DESCRIPTION_LENGTH = 16_384

# Not operators: wrappers of code generation and of adaptive execution.
_WRAPPERS = re.compile(
    r"WholeStageCodegen \(\d+\)|InputAdapter|AdaptiveSparkPlan|\w*QueryStage|AQEShuffleRead|CustomShuffleReader"
    r"|ReusedExchange|ReusedSubquery|LogicalQueryStage|PlanLater"
)
CODEGEN = "WholeStageCodegen "
_SHUFFLE = "Exchange"
BROADCAST = "BroadcastExchange"
# What the driver collects and hands on as a value; its rows are no operator's input.
_SUBQUERIES = frozenset({"Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast"})
_EXCHANGES = frozenset({_SHUFFLE, BROADCAST}) | _SUBQUERIES

# Their row metrics come from the driver alone; what they got is the last count of the chain.
_SINKS = re.compile(
    r"WriteToDataSourceV2|AppendData|OverwriteByExpression|OverwritePartitionsDynamic|WriteFiles|Execute InsertInto|"
    r"WriteToContinuousDataSource|ReplaceData|WriteDelta"
)
# Below them stands what fills the cache, once, in whichever stage comes first.
_CACHED = re.compile(r"InMemoryTableScan|Scan In-memory table .*", re.DOTALL)
# What adaptive execution found to be empty; below it stands the plan that it gave up: nodes of the logical plan, but
# for the stages that had run.
_EMPTY = "EmptyRelation"
_RAN = "LogicalQueryStage"
# Spark 4.1 and later show under it the plan of the stream that fed it; it is a plan of its own.
FED_BY_RDD = "Scan ExistingRDD"


@dataclass(slots=True, eq=False)
class Exchange:
    """
    An edge of the graph, at the vertex that reads it.

    Args:
        position: Inputs taken from the plan's root to here; tells vertices apart that Spark shows empty.
        metrics: Display name → accumulator id.
        native: The same, with their kinds.
    """

    node: str
    description: str
    metrics: Mapping[str, int]
    source: Vertex
    position: tuple[int, ...]
    native: tuple[NativeMetric, ...] = ()

    @property
    def shuffles(self) -> bool:
        """Whether the reader's tasks read it record by record."""
        return self.node == _SHUFFLE

    @property
    def partitions(self) -> int:
        """What it parts its rows into, 0 where its description does not tell; adaptive execution may join some."""
        found = _PARTITIONS.search(self.description)
        return (int(found[1]) if found[1] else 1) if found else 0

    @property
    def ship_strategy(self) -> str:
        """The partitioning in Flink's words."""
        if self.node != _SHUFFLE:
            return "BROADCAST"
        for partitioning, strategy in _STRATEGIES:
            if partitioning in self.description:
                return strategy
        return "CUSTOM"


_PARTITIONS = re.compile(r"SinglePartition|artitioning\((?:.*, )?(\d{1,9})\)", re.DOTALL)

_STRATEGIES = (
    ("hashpartitioning", "HASH"),
    ("rangepartitioning", "RANGE"),
    ("SinglePartition", "GLOBAL"),
    ("RoundRobinPartitioning", "REBALANCE"),
)


@dataclass(slots=True, eq=False)
class Operator:
    """
    One physical operator.

    Args:
        rows: Accumulator ids of its row metrics; stateful nodes have two, the greater one counts.
        inputs: Operators of the same vertex, and exchanges, each once, in the plan's order.
        is_source: Rows come into the plan here; subqueries may stand below, values that the driver hands on.
        sink: It ends the plan: what it got is what it put out.
        state, commits: Accumulator ids of the bytes of its state, and of the time that it took to commit it.
        late: Accumulator ids of the rows that it dropped as late.
        thresholds: How far event time is at it in the plan's micro-batch; None where Spark does not say.
        leaf: Its place among the plan's sources from left to right, from 0; −1 for what is none.
        native: Every metric; what Spark counts for all of the code that it generated stands at its last operator.
    """

    id: str
    name: str
    node: str
    description: str
    rows: tuple[int, ...]
    inputs: tuple[Operator | Exchange, ...]
    is_source: bool = False
    sink: bool = False
    state: tuple[int, ...] = ()
    commits: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    thresholds: Thresholds | None = None
    leaf: int = -1
    native: tuple[NativeMetric, ...] = ()


@dataclass(slots=True, eq=False)
class Vertex:
    """
    A plan segment.

    Args:
        operators: From source to sink; every operator after its inputs.
        reads: Every exchange that it reads, once.
        shared: What several of its operators read, an exchange or what fills a cache; Spark counts for all of
            them together.
        writes: The exchange that it feeds; None for the last vertex of a plan.
        scopes: Names that the RDD scopes of its stages carry.
        empty: A source of it is Spark's stand-in for a source without new rows.
        cached: Accumulators of what fills a cache that it reads.
    """

    id: str = ""
    operators: list[Operator] = field(default_factory=list)
    reads: list[Exchange] = field(default_factory=list)
    shared: frozenset[Operator | Exchange] = frozenset()
    writes: Exchange | None = None
    scopes: set[str] = field(default_factory=set)
    empty: bool = False
    cached: frozenset[int] = frozenset()
    position: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The operators' names, from source to sink, cut at CHAIN_LENGTH."""
        return " -> ".join(operator.name for operator in self.operators)[:CHAIN_LENGTH]

    @property
    def shuffles(self) -> bool:
        """Whether its stages write a shuffle."""
        return self.writes is not None and self.writes.shuffles


@dataclass(slots=True, eq=False)
class Graph:
    """
    A plan's vertices, sources first.

    Args:
        accumulators: Of every metric of every node, once; what tells two plans apart.
    """

    vertices: list[Vertex]
    accumulators: tuple[int, ...]


def analyse(root: PlanNode, sink: str | None = None) -> Graph:
    """
    Return a plan's graph.

    Args:
        root: Spark's plan.
        sink: What the streaming query says of its sink; None for a plan that is not a query's own.

    Any thread; depends on nothing but its arguments.
    """
    return _Analysis(sink).graph(root)


def accumulators(root: PlanNode) -> tuple[int, ...]:
    """Return the accumulator ids of every metric of a plan's own nodes, each once, in the plan's order."""
    return tuple(dict.fromkeys(_accumulators(root)))


class _Analysis:
    """One walk through one plan."""

    def __init__(self, sink: str | None) -> None:
        self._sink = sink
        self._exchanges: dict[int, Exchange] = {}
        self._caches: dict[tuple[Vertex, tuple[int, ...]], list[Operator | Exchange]] = {}
        self._vertices: list[Vertex] = []
        self._leaves = 0

    def graph(self, root: PlanNode) -> Graph:
        vertex = Vertex()
        self._segment(root, vertex)
        if self._sink is not None:
            self._end(vertex)
        self._vertices.append(vertex)
        for found in self._vertices:
            if not found.operators:
                found.operators.append(_stand_in(found))
            _name(found)
            found.shared = _shared(found)
        _identify(self._vertices)
        return Graph(self._vertices, accumulators(root))

    def _segment(self, node: PlanNode, vertex: Vertex, codegen: str | None = None) -> list[Operator | Exchange]:
        """Add what stands at and below `node` to `vertex`; return what its parent reads."""
        name = SKEW.sub("", node.name).strip()
        if name in _EXCHANGES:
            return [self._exchange(node, name, vertex)]
        if _WRAPPERS.fullmatch(name) or (name == _EMPTY and all(child.name == _RAN for child in node.children)):
            if name.startswith(CODEGEN):
                codegen = name
            elif name == "InputAdapter":
                codegen = None
            if name.startswith("PlanLater"):
                return []
            ends = [found for child in node.children for found in self._segment(child, vertex, codegen)]
            if name.startswith(CODEGEN) and ends and isinstance(ends[0], Operator):
                ends[0].native += native_metrics(node, CODEGEN)
            return ends
        if name == _EMPTY:
            inputs = self._given_up(node, vertex)
        elif _CACHED.fullmatch(name):
            inputs = self._cache(node, vertex)
        else:
            children = () if name == FED_BY_RDD else node.children
            inputs = [found for child in children for found in self._segment(child, vertex, codegen)]
        vertex.scopes.add(codegen or node.name)
        if name == _EMPTY or (name == "LocalTableScan" and "<empty>" in node.description):
            vertex.empty = True
        sink = bool(_SINKS.match(name))
        source = name != _EMPTY and all(isinstance(found, Exchange) and found.node in _SUBQUERIES for found in inputs)
        told = _named(node)
        operator = Operator(
            id=_hash(name, "" if sink else stable(node.description), *map(_reference, inputs)),
            name=operator_name(name, node.description, leaf=source, sink=sink),
            node=name,
            description=readable(node.description)[:DESCRIPTION_LENGTH],
            rows=told[ROWS],
            state=told[STATE],
            commits=told[COMMIT],
            late=told[LATE],
            thresholds=thresholds(name, node.description),
            inputs=tuple(dict.fromkeys(inputs)),
            is_source=source,
            sink=sink,
            leaf=self._leaves if source else -1,
            native=native_metrics(node),
        )
        self._leaves += source
        vertex.operators.append(operator)
        return [operator]

    def _given_up(self, node: PlanNode, vertex: Vertex) -> list[Operator | Exchange]:
        """Add the stages that ran before the plan at `node` was found to be empty; they do not tell it apart."""
        for child in node.children:
            (self._segment if child.name == _RAN else self._given_up)(child, vertex)
        return []

    def _cache(self, node: PlanNode, vertex: Vertex) -> list[Operator | Exchange]:
        """Add what fills the cache that `node` reads to `vertex`, once however many of its nodes read it."""
        key = (vertex, accumulators(node)[len(node.metrics) // 2 :])
        found = self._caches.get(key)
        if found is None:
            first = len(vertex.operators)
            found = self._caches[key] = [each for child in node.children for each in self._segment(child, vertex)]
            for operator in vertex.operators[first:]:
                read = (each.metrics.values() for each in operator.inputs if isinstance(each, Exchange))
                own = (metric.accumulator for metric in operator.native)
                vertex.cached = vertex.cached.union(operator.rows, own, *read)
        return found

    def _exchange(self, node: PlanNode, name: str, reader: Vertex) -> Exchange:
        metrics = dict(_metrics(node))
        # A reused exchange repeats its whole subtree, with the same accumulators: it is the same vertex.
        key = min(metrics.values(), default=-1)
        found = self._exchanges.get(key)
        if found is None:
            source = Vertex(position=(*reader.position, len(reader.reads)))
            found = Exchange(name, node.description, metrics, source, source.position, native_metrics(node))
            source.writes = found
            for child in node.children:
                self._segment(child, source)
            source.scopes.add(_SHUFFLE)
            self._vertices.append(source)
            if key >= 0:
                self._exchanges[key] = found
        reader.scopes.add(_SHUFFLE)
        if found not in reader.reads:
            reader.reads.append(found)
        return found

    def _end(self, vertex: Vertex) -> None:
        """Let the last vertex end in the query's sink, whether or not Spark's plan shows one."""
        name = f"Sink: {short_name(self._sink or '')}"
        last = vertex.operators[-1] if vertex.operators else None
        if last is not None and last.sink:
            last.name = name
            return
        inputs: tuple[Operator | Exchange, ...] = (last,) if last is not None else tuple(vertex.reads)
        identity = _hash("sink", "", *(_reference(found) for found in inputs))
        vertex.operators.append(Operator(identity, name, "", "", (), inputs, sink=True))


def _stand_in(vertex: Vertex) -> Operator:
    """What a vertex does whose exchange reads another one directly, and a plan that was found to be empty."""
    node = vertex.reads[0].node if vertex.reads else _EMPTY
    identity = _hash(node, "", *(_reference(found) for found in vertex.reads))
    return Operator(identity, node, node, "", (), tuple(vertex.reads))


def _metrics(node: PlanNode) -> Iterator[tuple[str, int]]:
    return zip(node.metrics[::2], node.metrics[1::2], strict=True)


def _named(node: PlanNode) -> dict[str, tuple[int, ...]]:
    """Return the accumulators of the metrics that operators tell apart, by name."""
    found: dict[str, tuple[int, ...]] = {ROWS: (), STATE: (), COMMIT: (), LATE: ()}
    for metric, accumulator in _metrics(node):
        if metric in found:
            found[metric] += (accumulator,)
    return found


def _accumulators(node: PlanNode) -> Iterator[int]:
    yield from node.metrics[1::2]
    for child in () if node.name == FED_BY_RDD else node.children:
        yield from _accumulators(child)


def _hash(*parts: str) -> str:
    return blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _reference(found: Operator | Exchange) -> str:
    return found.id if isinstance(found, Operator) else stable(found.description)


def _name(vertex: Vertex) -> None:
    """Make the operators' names and ids unique in their vertex, counted from the source."""
    names: set[str] = set()
    ids: dict[str, int] = {}
    for operator in vertex.operators:
        name, ordinal = operator.name, 1
        while operator.name in names:
            ordinal += 1
            suffix = f" {ordinal}"
            operator.name = name[: NAME_LENGTH - len(suffix)] + suffix
        names.add(operator.name)
        ids[operator.id] = ids.get(operator.id, 0) + 1
        if ids[operator.id] > 1:
            operator.id = _hash(operator.id, str(ids[operator.id]))


def _shared(vertex: Vertex) -> frozenset[Operator | Exchange]:
    readers = Counter(found for operator in vertex.operators for found in operator.inputs)
    return frozenset(found for found, times in readers.items() if times > 1)


def _identify(vertices: list[Vertex]) -> None:
    """Give every vertex its id: its operators', and an ordinal among equals."""
    seen: dict[str, int] = {}
    for vertex in vertices:
        identity = _hash("vertex", *(operator.id for operator in vertex.operators))
        seen[identity] = seen.get(identity, 0) + 1
        vertex.id = identity if seen[identity] == 1 else _hash(identity, str(seen[identity]))
