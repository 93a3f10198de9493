"""Watermarks and late rows of real queries, held against what Spark's own operators and progress say."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streamgauge import names
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark

NO_WATERMARK_MS = -(2**63)
START = 1_795_255_200
"""Event times begin here, Unix s."""

Rows = list[tuple[int, int]]
"""(key, seconds after START) of what a stream gets at a time."""

LEFT: list[Rows] = [[(1, 0), (2, 5), (1, 30)], [(1, 100), (1, 2)], [(2, 300), (1, 50), (1, 250)], [(2, 400)]]
RIGHT: list[Rows] = [[(1, 0), (2, 10)], [(1, 200)], [(1, 300), (2, 10)], []]

STATEFUL = r"StateStoreSave|SessionWindowStateStoreSave|StreamingDeduplicate\w*|StreamingSymmetricHashJoin"

ASKED = ("Watermark", names.NUM_LATE_RECORDS_DROPPED)

Make = Callable[[DataFrame, DataFrame], DataFrame]


def window(column: str, length: str = "10 seconds") -> Any:
    return f.window(column, length)


def aggregated(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.groupBy(window("t"), "k").count()


def chained(left: DataFrame, right: DataFrame) -> DataFrame:
    minute = f.window(f.window_time("window"), "60 seconds")
    return left.groupBy(window("t"), "k").count().groupBy(minute).agg(f.sum("count"))


def sessions(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.groupBy(f.session_window("t", "7 seconds"), "k").count()


def deduplicated(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.dropDuplicates(["k", "t"])


def deduplicated_within(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.dropDuplicatesWithinWatermark(["k"])


def joined(left: DataFrame, right: DataFrame, how: str = "inner") -> DataFrame:
    return left.join(right, f.expr("k = j and u >= t and u <= t + interval 20 seconds"), how)


def joined_outer(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right, "leftOuter")


def joined_semi(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right, "leftSemi")


def joined_then_counted(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right).groupBy(window("t")).count()


def joined_then_shuffled(left: DataFrame, right: DataFrame) -> DataFrame:
    return joined(left, right).repartition(2, "v")


class Watched:
    """A query that is observed, and the two streams of files that feed it."""

    def __init__(self, spark: SparkSession, rest: Rest, folder: Path, name: str, make: Make, mode: str) -> None:
        self._rest, self._folder, self.name = rest, folder, name
        for side in "ab":
            (folder / side).mkdir()
        read = spark.readStream.schema("k int, v int, t timestamp")
        left = read.json(str(folder / "a")).withWatermark("t", "10 seconds")
        right = read.json(str(folder / "b")).selectExpr("k j", "v x", "t u").withWatermark("u", "30 seconds")
        writer = make(left, right).writeStream.format("noop").queryName(name).outputMode(mode)
        self.query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        self._batches = 0

    def feed(self, left: Rows, right: Rows) -> None:
        """Have rows, and wait until the query has done with them, batches without data included."""
        self._batches += 1
        for side, rows in (("a", left), ("b", right)):
            if rows:
                lines = [json.dumps({"k": key, "v": key, "t": moment(seconds)}) for key, seconds in rows]
                hidden = self._folder / side / f".{self._batches}"
                hidden.write_text("\n".join(lines) + "\n")
                hidden.rename(self._folder / side / f"{self._batches}.json")
        self.query.processAllAvailable()

    def progress(self) -> list[dict[str, Any]]:
        return [json.loads(each.json) if hasattr(each, "json") else each for each in self.query.recentProgress]

    def operators(self) -> dict[str, list[tuple[int, int]]]:
        """Node → input and output watermark of each stateful operator of the latest batch, as Spark's has them."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        stack = [self.query._jsq.streamingQuery().lastExecution().executedPlan()]
        while stack:
            node = stack.pop()
            if re.fullmatch(STATEFUL, node.nodeName()):
                evicts_ms = node.eventTimeWatermarkForEviction().get()
                found[node.nodeName()].append((evicts_ms, node.produceOutputWatermark(evicts_ms).get()))
            children = node.children()
            stack += [children.apply(place) for place in range(children.size())]
        return {node: sorted(values) for node, values in found.items()}

    def told(self) -> list[tuple[str, list[int], dict[str, dict[str, int]]]]:
        """Each vertex's name, what /watermarks says of its subtasks, and operator → metric → value or sum."""
        job = eventually(lambda: self._rest.job(self.name))
        vertices = []
        for vertex in self._rest.get(f"/jobs/{job['jid']}")["vertices"]:
            marks, columns = self._moment(job["jid"], vertex["id"])
            operators: dict[str, dict[str, int]] = defaultdict(dict)
            for metric, column in columns.items():
                operator, _, name = metric.rpartition(".")
                if name == names.NUM_LATE_RECORDS_DROPPED:
                    operators[operator][name] = sum(map(int, column.values()))
                elif "Watermark" in name and operator:
                    assert len(set(column.values())) == 1
                    operators[operator][name] = int(column[0])
                elif name == names.CURRENT_LOW_WATERMARK:
                    assert sorted(column.items()) == [(place, each["value"]) for place, each in enumerate(marks)]
            vertices.append((vertex["name"], [int(each["value"]) for each in marks], dict(operators)))
        return vertices

    def _moment(self, jid: str, vertex: str) -> tuple[list[dict[str, Any]], dict[str, dict[int, str]]]:
        """What /watermarks and the metrics say while neither changes."""
        path = f"/jobs/{jid}/vertices/{vertex}/watermarks"
        before = self._rest.get(path)
        while True:
            # Few enough to be of one moment.
            columns = self._rest.columns(jid, vertex, lambda metric: metric.endswith(ASKED))
            marks = self._rest.get(path)
            if before == marks:
                return marks, columns
            before = marks

    def watermarks(self) -> dict[str, list[tuple[int | None, int | None]]]:
        """What `operators` says, from REST."""
        found = defaultdict(list)
        for _, _, operators in self.told():
            for operator, metrics in operators.items():
                node = re.sub(r"_\d+$", "", operator)
                if re.fullmatch(STATEFUL, node) and names.CURRENT_INPUT_WATERMARK in metrics:
                    found[node].append(
                        (metrics.get(names.CURRENT_INPUT_WATERMARK), metrics.get(names.CURRENT_OUTPUT_WATERMARK))
                    )
        return {node: sorted(values) for node, values in found.items()}

    def late(self) -> Counter[str]:
        """Stateful node → rows that it dropped as late."""
        found: Counter[str] = Counter()
        for _, _, operators in self.told():
            for operator, metrics in operators.items():
                found[re.sub(r"_\d+$|Restore|Save", "", operator)] += metrics.get(names.NUM_LATE_RECORDS_DROPPED, 0)
        return +found


def moment(seconds: int) -> str:
    return f"2026-11-21T{10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


@pytest.fixture
def watch(attached: SparkSession, rest: Rest, tmp_path: Path) -> Callable[..., Any]:
    """Starts a query that is stopped in the end."""

    @contextmanager
    def start(name: str, make: Make, mode: str = "append", policy: str = "min") -> Iterator[Watched]:
        attached.conf.set("spark.sql.streaming.multipleWatermarkPolicy", policy)
        try:
            watched = Watched(attached, rest, tmp_path, name, make, mode)
        finally:
            attached.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")
        try:
            yield watched
        finally:
            watched.query.stop()

    return start


FOLLOWS_S = {"join min": 300 - 30, "join max": 400 - 10}
"""Latest event less delay of the slower stream, which a query follows, or of the faster one, where it is told so."""

QUERIES: dict[str, tuple[Make, str, str]] = {
    "append": (aggregated, "append", "min"),
    "update": (aggregated, "update", "min"),
    "complete": (aggregated, "complete", "min"),
    "chain": (chained, "append", "min"),
    "session": (sessions, "append", "min"),
    "deduplicate": (deduplicated, "append", "min"),
    "deduplicate within": (deduplicated_within, "append", "min"),
    "join min": (joined, "append", "min"),
    "join max": (joined, "append", "max"),
    "outer join": (joined_outer, "append", "min"),
    "semi join": (joined_semi, "append", "min"),
    "join and aggregate": (joined_then_counted, "append", "min"),
}


@pytest.mark.parametrize("which", QUERIES)
def test_watermarks_are_those_of_sparks_operators(watch: Callable[..., Any], which: str) -> None:
    """In and out, of every stateful operator, after each step; a vertex' is that of the operator in it."""
    make, mode, policy = QUERIES[which]
    with watch(f"watermarks {which}", make, mode, policy) as watched:
        for left, right in zip(LEFT, RIGHT, strict=True):
            watched.feed(left, right)
            expected = watched.operators()
            if which == "complete" and len(watched.progress()) == 1:
                expected = {node: [(NO_WATERMARK_MS,) * 2 for _ in values] for node, values in expected.items()}
            assert eventually(lambda expected=expected: watched.watermarks() == expected), watched.watermarks()
        print(f"\n{which}: {expected}; late {watched.late()}")
        inputs = {ms for values in expected.values() for ms, _ in values}
        for name, marks, operators in watched.told():
            own = [m[names.CURRENT_INPUT_WATERMARK] for m in operators.values() if names.CURRENT_INPUT_WATERMARK in m]
            assert set(marks) == set(own[:1]), name
            assert set(own) <= inputs
            assert own or name.startswith("Source: ")
        if which in FOLLOWS_S:
            assert inputs == {(START + FOLLOWS_S[which]) * 1000}
        watermark = watched.progress()[-1]["eventTime"]["watermark"]
        assigned = [
            metrics[names.CURRENT_OUTPUT_WATERMARK]
            for _, _, operators in watched.told()
            for operator, metrics in operators.items()
            if operator.startswith("EventTimeWatermark")
        ]
        assert assigned
        assert {moment(ms // 1000 - START) for ms in assigned} == {watermark.replace(".000Z", "Z")}
        dropped: Counter[str] = Counter()
        for each in watched.progress():
            for node, operator in zip(_in_order(watched), each["stateOperators"], strict=True):
                dropped[node] += operator["numRowsDroppedByWatermark"]
        assert eventually(lambda: watched.late() == +dropped), (watched.late(), dropped)
        assert dropped.total() or which == "complete"


def _in_order(watched: Watched) -> list[str]:
    """The nodes of the progress' state operators, which are in the order of the plan."""
    found = [node for node, values in watched.operators().items() for _ in values]
    return [re.sub("Restore|Save", "", node) for node in found]


def test_what_follows_a_join_reads_what_the_join_puts_out(watch: Callable[..., Any]) -> None:
    """A vertex without state has the least of its upstream vertices' outputs."""
    with watch("watermarks behind a join", joined_then_shuffled) as watched:
        for left, right in zip(LEFT, RIGHT, strict=True):
            watched.feed(left, right)
        [(evicts_ms, puts_out_ms)] = watched.operators()["StreamingSymmetricHashJoin"]
        assert evicts_ms - puts_out_ms == 20_001
        last = eventually(
            lambda: [
                marks for name, marks, _ in watched.told() if name.startswith("Sink: ") and marks[0] == puts_out_ms
            ]
        )
        assert [set(marks) for marks in last] == [{puts_out_ms}]


def test_without_a_watermark_there_is_none(watch: Callable[..., Any]) -> None:
    """Operators have none; a vertex with inputs has Long.MIN_VALUE, as in Flink."""

    def unmarked(left: DataFrame, right: DataFrame) -> DataFrame:
        # A deduplication of what has no event time any more, on a stream without withWatermark().
        return left.sparkSession.readStream.format("rate").load().selectExpr("value % 5 k").dropDuplicates(["k"])

    with watch("no watermark", unmarked) as watched:
        eventually(lambda: any(each["numInputRows"] for each in watched.progress()))
        found = eventually(lambda: [each for each in watched.told() if "StreamingDeduplicate" in each[0] and each[1]])
        [(_, marks, operators)] = found
        assert set(marks) == {NO_WATERMARK_MS}
        assert not any(names.CURRENT_INPUT_WATERMARK in metrics for metrics in operators.values())
