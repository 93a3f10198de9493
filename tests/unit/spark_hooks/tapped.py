"""Rows of taps, as a tap writes them and as they are read, and a driver whose query is tapped."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Literal

import msgspec

from spark_hooks import records
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.job import Job
from spark_hooks.records import PlanNode
from spark_hooks.redaction import Redaction
from spark_hooks.tap_rows import DELAY_BUCKETS, PREFIX, SplitRow, TapRow
from streamgauge import wire
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Task,
    new_model,
    scan,
    sink,
    stage,
    updates,
)

Seen = Mapping[str, tuple[int, int, int]]
"""Split → rows, least and greatest event time."""

STARTED_MS = 1_795_255_200_000


def row(
    seen: Seen,
    splits: Sequence[str] = ("a", "b", "c"),
    by: Literal["column", "source"] | None = "column",
    delay_ms: int = 0,
    idleness_ms: int | None = None,
    unwatched: int = 0,
    delays: Mapping[int, int] | None = None,
    name: str = "tap",
) -> TapRow:
    """What a tap saw; without splits, of the stream as one under the name ''."""
    whole = [each for each in seen.values() if each[0]]
    return TapRow(
        name=name,
        event_time=True,
        ingest_time=delays is not None,
        by=by,
        max_out_of_orderness_ms=delay_ms,
        idleness_ms=idleness_ms,
        rows=sum(rows for rows, *_ in whole) + unwatched,
        event_min_ms=min((least for _, least, _ in whole), default=None),
        event_max_ms=max((greatest for *_, greatest in whole), default=None),
        splits=tuple(SplitRow(each, *seen.get(each, (0, None, None))) for each in splits) if by else (),
        unwatched=unwatched,
        delays=delays or {},
    )


def observed(found: TapRow) -> dict[str, object]:
    """The same as Spark tells it, in a progress event."""
    options = {
        "version": 1,
        "event_time": found.event_time,
        "ingest_time": found.ingest_time,
        "by": found.by,
        "splits": [split.name for split in found.splits],
        "max_out_of_orderness_ms": found.max_out_of_orderness_ms,
        "idleness_ms": found.idleness_ms,
    }
    told: dict[str, object] = {"options": json.dumps(options), "rows": found.rows}
    told |= {"event_min": found.event_min_ms, "event_max": found.event_max_ms}
    if found.splits:
        told["split_rows"] = sum(split.rows for split in found.splits) + found.unwatched
        for place, split in enumerate(found.splits):
            told |= {f"rows_{place}": split.rows, f"min_{place}": split.min_ms, f"max_{place}": split.max_ms}
    if found.ingest_time:
        told["ingest_rows"] = sum(found.delays.values())
        buckets = ((int(math.log(ms + 1) * DELAY_BUCKETS), rows) for ms, rows in found.delays.items() if ms >= 0)
        told["delays"] = [{"x": bucket, "y": float(rows)} for bucket, rows in buckets]
    return {PREFIX + found.name: told}


def collect(ids: Ids, child: PlanNode, name: str = "tap") -> PlanNode:
    """The plan's node of a tap."""
    description = f"CollectMetrics {PREFIX}{name}, [count(1) AS rows#7L]"
    return ids.node("CollectMetrics", child, rows=False, description=description)


class Tapped:
    """A query `scan -> tap -> exchange -> aggregate -> sink`, batch by batch, and its frames; wall times are steady."""

    def __init__(self, trigger: str = "ProcessingTimeTrigger(0)", redact: Redaction | None = None) -> None:
        self.ids, self.query, self.model = Ids(), Query(1, trigger=trigger), new_model()
        self.executors = Executors(APP.id, 1, ManualClock(now_ms=STARTED_MS))
        self.frames = Frames(APP, 1000, ManualClock(now_ms=STARTED_MS), redact or Redaction())
        self.look(0)
        self.apply(self.query.started(_timestamp(0)))

    def look(self, at_ms: int) -> None:
        """It is so long after the start."""
        self.model.time.look(STARTED_MS + at_ms, at_ms * 1_000_000)

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def plan(self) -> PlanNode:
        return sink(self.ids, self.ids.node("HashAggregate", self.ids.shuffle(collect(self.ids, scan(self.ids)))))

    def batch(
        self,
        at_ms: int,
        *rows: TapRow,
        took_ms: int = 100,
        watermark_ms: int | None = None,
        plan: PlanNode | None = None,
        listing_ms: int = 0,
    ) -> None:
        """A batch begins so long after the start and is told when it ends; its tasks are one a vertex."""
        self.look(at_ms)
        self.query.batch += 1
        plan = plan or self.plan()
        execution = Execution(self.ids, plan, self.query.describe())
        ran = [stage(self.ids, 1, shuffles=True), stage(self.ids, 1)]
        self.apply(execution.start(STARTED_MS + at_ms), execution.job(*ran))
        for each, figures in zip(ran, ({"Exchange.shuffle records written": 1}, {"HashAggregate": 1}), strict=True):
            task = Task(self.ids, each, 0, launch_ms=STARTED_MS + at_ms)
            self.apply(task.start(), task.end(updates(plan, figures), took_ms=1))
        self.apply(execution.end(STARTED_MS + at_ms + took_ms))
        self.look(at_ms + took_ms)
        told: dict[str, object] = {
            "timestamp": _timestamp(at_ms),
            "durationMs": {"triggerExecution": took_ms, "latestOffset": listing_ms},
            "observedMetrics": {name: each for found in rows for name, each in observed(found).items()},
        }
        if watermark_ms is not None:
            told["eventTime"] = {"watermark": _timestamp(watermark_ms - STARTED_MS)}
        self.apply(self.query.progress(sum(found.rows for found in rows), **told))

    def tick(self, at_ms: int) -> None:
        self.look(at_ms)
        self.model.tick()

    @property
    def job(self) -> Job:
        return self.model.jobs[self.query.jid]

    def frame(self) -> wire.Frame:
        """The query's, as a collector reads it."""
        _, built = self.frames.build(self.model, self.executors, {}, {})
        return msgspec.msgpack.decode(msgspec.msgpack.encode(built), type=wire.Frame)

    def acknowledged(self) -> wire.Frame:
        frame = self.frame()
        self.frames.acknowledge([frame], self.model, self.executors)
        return frame


def _timestamp(at_ms: int) -> str:
    moment = datetime.fromtimestamp((STARTED_MS + at_ms) / 1000, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def told(columns: Sequence[wire.Column], splits: Sequence[str]) -> dict[str, dict[str, int]]:
    """Metric → split → value, of those that are known."""
    found: dict[str, dict[str, int]] = {}
    for column in columns:
        mask = column.mask(len(splits))
        values = column.values().tolist()
        assert len(values) == len(splits)
        known = [True] * len(splits) if mask is None else mask.tolist()
        found[column.metric] = {
            split: value for split, value, there in zip(splits, values, known, strict=True) if there
        }
    return found
