"""A job's figures from REST, and Spark's own for the same plan nodes from its event log."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import logged
from tests.e2e.test_exact import SCHEMA, write

Files = tuple[tuple[int, int], ...]
"""Ids from and to of every file; a row's key is its id modulo 7."""


def ids(files: Files) -> list[int]:
    return [row for start, end in files for row in range(start, end)]


def table(spark: SparkSession, folder: Path, files: Files) -> DataFrame:
    """Read what is written to `folder`."""
    for number, (start, end) in enumerate(files):
        write(folder, number, range(start, end))
    return spark.read.schema(SCHEMA).json(str(folder))


def stream(spark: SparkSession, folder: Path, files: Files) -> DataFrame:
    """Read what is written to `folder` as a stream, a file a batch."""
    table(spark, folder, files)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Have these settings of spark.sql, dots written as __."""
    keys = {f"spark.sql.{key.replace('__', '.')}": value for key, value in values.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(key)


@dataclass
class Vertex:
    """
    A vertex of /jobs/:jid and its metrics.

    Args:
        operators: Names, from the source.
        rows: '<operator>.in', '<operator>.out', 'in', 'out' → records over all subtasks; unknown is absent.
    """

    id: str
    name: str
    status: str
    parallelism: int
    operators: list[str]
    rows: dict[str, int]


@dataclass
class Told:
    """What REST tells of a job."""

    job: dict[str, Any]
    vertices: list[Vertex]

    def vertex(self, name: str) -> Vertex:
        [found] = [vertex for vertex in self.vertices if vertex.name == name]
        return found

    def names(self) -> list[str]:
        return sorted(vertex.name for vertex in self.vertices)

    def nodes(self) -> tuple[Counter[str], set[str]]:
        """Rows out of all operators of a node's name, and the names of those that are not known."""
        rows: Counter[str] = Counter()
        unknown = set()
        for vertex in self.vertices:
            for operator in vertex.operators:
                node = re.sub(r" \d+$", "", operator.removeprefix("Source: "))
                if operator.startswith("Sink: ") or not any(vertex.rows.values()):
                    continue
                if f"{operator}.out" in vertex.rows:
                    rows[node] += vertex.rows[f"{operator}.out"]
                else:
                    unknown.add(node)
        return rows, unknown


def finished(rest: Rest, name: str) -> Told:
    """Wait for the end of the job of this name; return what REST tells of it."""
    found = eventually(lambda: (job := rest.job(name)) and job["state"] == "FINISHED" and job)
    job = rest.get(f"/jobs/{found['jid']}")
    return Told(job, [_vertex(rest, job["jid"], vertex) for vertex in job["vertices"]])


def _vertex(rest: Rest, jid: str, told: dict[str, Any]) -> Vertex:
    columns = rest.columns(jid, told["id"])
    operators = told["name"].split(" -> ")
    rows = {}
    for label in ("", *operators):
        key = re.sub("[ .:,]", "_", label) + "." if label else ""
        for way in ("In", "Out"):
            column = columns.get(f"{key}numRecords{way}")
            if column is not None:
                rows[f"{_plain(label)}.{way.lower()}".lstrip(".")] = sum(map(int, column.values()))
    return Vertex(
        told["id"], _plain(told["name"]), told["status"], told["parallelism"], [*map(_plain, operators)], rows
    )


def _plain(name: str) -> str:
    """Take out what Spark 4 adds to the name of a sink."""
    return name.replace(" noop-table", "")


@dataclass
class Work:
    """
    What the tasks of a job did, as Spark's event log has it.

    Args:
        rows: Plan node → its output rows; of a scan without the word.
        written, read: Shuffle records.
        stages: Stage id → the same as `rows`, of that stage alone.
        plans: Every plan of its executions, in the order of time.
        kinds: Names of the events that tell of its executions.
    """

    rows: Counter[str] = field(default_factory=Counter)
    written: int = 0
    read: int = 0
    stages: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    plans: list[dict[str, Any]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def final_nodes(self) -> list[dict[str, Any]]:
        """Every node of the last plan."""
        return list(_walk(self.plans[-1]))


class EventLog:
    """Spark's event log; none of our code reads it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def work(self, job: dict[str, Any], run_id: str = "") -> Work:
        """
        Return what the tasks of a job did.

        Args:
            run_id: Of a streaming query; a batch is known by its id alone.
        """
        context = self._spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty(30_000)
        events = logged(self._folder)
        roots = {}
        for event in events:
            if event["Event"].endswith("SQLExecutionStart"):
                root = event.get("rootExecutionId", event["executionId"])
                digest = hashlib.md5(f"{context.applicationId}:{root}".encode()).hexdigest()
                if digest == job["jid"] or (run_id and f"runId = {run_id}" in event["description"]):
                    roots[event["executionId"]] = root
        assert roots, f"Spark's event log has no execution of {job['name']}"
        return _work(events, set(roots))


def _work(events: list[dict[str, Any]], executions: set[int]) -> Work:
    found = Work()
    named: dict[int, tuple[str, str]] = {}
    stages: dict[int, int] = {}
    winners: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events:
        if "sparkPlanInfo" in event:
            # A cached table's nodes are named where adaptive execution has planned them, maybe in a later execution.
            for node in _walk(event["sparkPlanInfo"]):
                for metric in node["metrics"]:
                    name = node["nodeName"].strip().removeprefix("Scan ").removesuffix("(skew=true)")
                    named[metric["accumulatorId"]] = (name, metric["name"])
        if event.get("executionId") in executions:
            found.kinds.add(event["Event"].rpartition(".")[2])
            found.plans += [event["sparkPlanInfo"]] if "sparkPlanInfo" in event else []
        elif event["Event"] == "SparkListenerJobStart":
            execution = event["Properties"].get("spark.sql.execution.id")
            for stage in event["Stage IDs"]:
                stages.setdefault(stage, -1 if execution is None else int(execution))
        elif event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            # Nothing fails in these jobs, so no partition has two successes.
            winners[event["Stage ID"], event["Task Info"]["Partition ID"]] = event["Task Info"]
    for (stage, _), task in winners.items():
        if stages[stage] not in executions:
            continue
        for update in task["Accumulables"]:
            node, metric = named.get(update["ID"], ("", ""))
            value = int(update["Update"]) if update.get("Metadata") == "sql" else 0
            if metric == "number of output rows":
                found.rows[node] += value
                found.stages[stage][node] += value
            elif node == "Exchange":
                found.written += value * (metric == "shuffle records written")
                found.read += value * (metric == "records read")
    return found


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def assert_same(told: Told, work: Work) -> None:
    """Every node's rows are what the event log has, and none is missing unless REST says that it does not know."""
    rows, unknown = told.nodes()
    for node, value in work.rows.items():
        if value and node not in unknown:
            assert rows[node] == value, (node, rows, work.rows)
    for node, value in rows.items():
        if node in work.rows:
            assert work.rows[node] == value, (node, rows, work.rows)


class Session:
    """Runs jobs in a driver that is observed."""

    def __init__(self, spark: SparkSession, rest: Rest, log: EventLog, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self._rest = rest
        self._log = log

    def batch(self, name: str, action: Callable[[], object]) -> tuple[Told, Work]:
        """Run one batch execution under a name."""
        self.spark.sparkContext.setJobDescription(name)
        try:
            action()
        finally:
            self.spark.sparkContext.setJobDescription(None)
        told = finished(self._rest, name)
        assert told.job["job-type"] == "BATCH"
        return told, self._log.work(told.job)

    def work(self, told: Told) -> Work:
        """Read the event log once more, for a batch."""
        return self._log.work(told.job)

    def start(self, name: str, frame: DataFrame, each: Callable[[DataFrame, int], None] | None, mode: str) -> Any:
        writer = frame.writeStream.format("noop") if each is None else frame.writeStream.foreachBatch(each)
        return (
            writer.queryName(name)
            .outputMode(mode)
            .option("checkpointLocation", str(self.folder / f"checkpoint {name}"))
            .trigger(availableNow=True)
            .start()
        )

    def end(self, name: str, query: Any) -> tuple[Told, Work]:
        """Wait for the end of a query that runs out."""
        query.awaitTermination(120)
        assert query.exception() is None
        told = finished(self._rest, name)
        return told, self._log.work(told.job, str(query.runId))

    def statuses(self, name: str) -> dict[str, str]:
        """Return the status of every vertex of the latest job of this name, as it is now."""
        job = self._rest.job(name)
        vertices = [] if job is None else self._rest.get(f"/jobs/{job['jid']}")["vertices"]
        return {_plain(vertex["name"]): vertex["status"] for vertex in vertices}

    def streaming(
        self,
        name: str,
        frame: DataFrame,
        each: Callable[[DataFrame, int], None] | None = None,
        mode: str = "append",
    ) -> tuple[Told, Work, list[Any]]:
        """Run a query over what is there; return what it did, and its progress."""
        query = self.start(name, frame, each, mode)
        told, work = self.end(name, query)
        return told, work, query.recentProgress


def input_rows(progress: list[Any]) -> int:
    return sum(each["numInputRows"] for each in progress)
