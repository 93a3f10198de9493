"""Streams whose rows a test writes, a file a micro-batch, and what Spark and the service say of the queries on them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamgauge import names
from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import logged

WAIT_S = 120
"""For what a busy machine takes its time to do."""

SCHEMA = "id BIGINT, split INT, at TIMESTAMP, made TIMESTAMP"


@dataclass(frozen=True)
class Row:
    """A row of a split: of event time `at_ms`, made at `made_ms`, Unix time."""

    split: int
    at_ms: int
    made_ms: int = 0


class Feed:
    """A folder that a stream reads, a file a micro-batch. Every row's `id` is unique."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._rows = 0
        folder.mkdir(parents=True)

    def add(self, rows: Iterable[Row]) -> None:
        """Write one file, that is one micro-batch; it is there at once or not at all."""
        lines = []
        for row in rows:
            told = {"id": self._rows, "split": row.split, "at": timestamp(row.at_ms), "made": timestamp(row.made_ms)}
            lines.append(json.dumps(told))
            self._rows += 1
        file, hidden = self._folder / f"{self._files}.json", self._folder / f".{self._files}"
        hidden.write_text("\n".join(lines))
        # The file source reads files in the order of their times, which may be equal.
        os.utime(hidden, (1_700_000_000 + self._files, 1_700_000_000 + self._files))
        hidden.rename(file)
        self._files += 1

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self._folder))


def timestamp(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")


def milliseconds(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The session's settings below spark.sql, while a query starts; afterwards what they were."""
    before = {key: spark.conf.get(f"spark.sql.{key}", None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.{key}", value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(f"spark.sql.{key}")
            else:
                spark.conf.set(f"spark.sql.{key}", old)


class FedQuery:
    """A query on what a test feeds: as Spark tells of it, and as the service does."""

    def __init__(self, query: StreamingQuery, rest: Rest) -> None:
        self.query = query
        self.run_id = str(query.runId)
        self._rest = rest

    def batches(self) -> list[dict[str, Any]]:
        """Progress of every micro-batch, oldest first, without triggers that found nothing to do."""
        found = [json.loads(each.json) if hasattr(each, "json") else each for each in self.query.recentProgress]
        return [each for each in found if "addBatch" in each["durationMs"]]

    def drain(self) -> list[dict[str, Any]]:
        """Wait until all that was fed is processed, and the service knows of it; return the batches."""
        self.query.processAllAvailable()
        return self.settled()

    def settled(self) -> list[dict[str, Any]]:
        """Wait until the service knows of the last batch of Spark's."""

        def known() -> Any:
            batches = self.batches()
            last = {names.LAST_COMPLETED_CHECKPOINT_ID: batches[-1]["batchId"]} if batches else None
            return self.job is not None and self.figures(names.LAST_COMPLETED_CHECKPOINT_ID) == last and batches

        found: list[dict[str, Any]] = eventually(known, WAIT_S)
        return found

    @property
    def job(self) -> dict[str, Any] | None:
        return self._rest.job(str(self.query.name))

    @property
    def base(self) -> str:
        job = self.job
        assert job is not None
        return f"/jobs/{job['jid']}"

    def figures(self, *metrics: str) -> dict[str, int]:
        """Those of the job's metrics that there are."""
        return self._whole(f"{self.base}/metrics", metrics)

    def vertices(self) -> dict[str, str]:
        """A vertex' name → its path."""
        return {each["name"]: f"{self.base}/vertices/{each['id']}" for each in self._rest.get(self.base)["vertices"]}

    def vertex(self, operator: str) -> str:
        """The path of the one vertex with this word in its name."""
        [path] = [path for name, path in self.vertices().items() if operator in name]
        return path

    def watermarks(self, vertex: str) -> list[int]:
        """Of a vertex, subtask by subtask."""
        return [int(each["value"]) for each in self._rest.get(f"{vertex}/watermarks")]

    def subtask(self, vertex: str, *metrics: str) -> dict[str, int]:
        """Those metrics that subtask 0 of a vertex has."""
        return self._whole(f"{vertex}/subtasks/0/metrics", metrics)

    def columns(self, vertex: str, metric: str) -> list[int]:
        """A metric of every subtask that has it."""
        path = f"{vertex}/metrics"
        ids = [each["id"] for each in self._rest.get(path) if each["id"].partition(".")[2] == metric]
        return list(self._whole(path, ids).values()) if ids else []

    def get(self, path: str) -> Any:
        return self._rest.get(path)

    def _whole(self, path: str, metrics: Iterable[str]) -> dict[str, int]:
        found = self._rest.get(f"{path}?get={','.join(metrics)}")
        return {each["id"]: int(float(each["value"])) if "." in each["value"] else int(each["value"]) for each in found}


@contextmanager
def running(
    rest: Rest, rows: DataFrame, name: str, folder: Path, settings: dict[str, str] | None = None, **options: Any
) -> Iterator[FedQuery]:
    """
    A query that puts `rows` nowhere, until the end of the block.

    Args:
        settings: Of the session while it starts, without `spark.sql.`; one reducer unless they say otherwise.
        options: A trigger, or an `outputMode`.
    """
    mode = options.pop("outputMode", "append")
    with configured(rows.sparkSession, {"shuffle.partitions": "1"} | (settings or {})):
        writer = rows.writeStream.format("noop").queryName(name).outputMode(mode)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        query = (writer.trigger(**options) if options else writer).start()
    try:
        yield FedQuery(query, rest)
    finally:
        query.stop()


def dropped(batches: Iterable[dict[str, Any]]) -> int:
    """Rows that Spark's operators dropped for being late."""
    return sum(each["numRowsDroppedByWatermark"] for batch in batches for each in batch["stateOperators"])


def trigger_ms(batch: dict[str, Any]) -> int:
    """When a batch was triggered, Unix time."""
    return milliseconds(batch["timestamp"])


def watermark_ms(batch: dict[str, Any]) -> int:
    """Spark's watermark in a batch."""
    return milliseconds(batch["eventTime"]["watermark"])


def executed_ms(folder: Path, run_id: str) -> dict[int, int]:
    """Batch → when its outermost execution ended, Unix time, from the event logs in a folder."""
    events = logged(folder, run_id)
    begun = {
        event["executionId"]: int(event["description"].rpartition("batch = ")[2])
        for event in events
        if event["Event"].endswith("SQLExecutionStart")
        and f"runId = {run_id}" in event["description"]
        and event["rootExecutionId"] == event["executionId"]
    }
    return {
        begun[event["executionId"]]: event["time"]
        for event in events
        if event["Event"].endswith("SQLExecutionEnd") and event["executionId"] in begun
    }


Thresholds = list[tuple[str, int]]
"""(node, the watermark by which it evicts state), from sink to source."""


def thresholds(spark: SparkSession, query: StreamingQuery) -> Thresholds:
    """Those of every stateful node of the query's last plan, which must not be running: the plan's own fields."""
    jvm: Any = spark
    execution = jvm._jsparkSession.streams().get(str(query.id)).streamingQuery().lastExecution()
    return list(_thresholds(execution.executedPlan()))


def _thresholds(node: Any) -> Iterator[tuple[str, int]]:
    kind = node.getClass().getSimpleName()
    if any(method.getName() == "eventTimeWatermarkForEviction" for method in node.getClass().getMethods()):
        found = node.eventTimeWatermarkForEviction()
        if found.isDefined():
            yield str(node.nodeName()), int(found.get())
    # What adaptive execution wraps is no child of it.
    if kind == "AdaptiveSparkPlanExec":
        children = [node.executedPlan()]
    elif kind.endswith("QueryStageExec"):
        children = [node.plan()]
    else:
        children = [node.children().apply(place) for place in range(node.children().size())]
    for child in children:
        yield from _thresholds(child)
