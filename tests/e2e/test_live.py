"""Counts move while a batch runs."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.e2e.conftest import Rest, eventually
from tests.e2e.test_exact import SCHEMA, write

pytestmark = pytest.mark.spark

HEARTBEAT_S = 1.0
"""As the session's configuration says."""


def test_counts_grow_during_a_batch_and_never_go_back(attached: SparkSession, rest: Rest, tmp_path: Path) -> None:
    """In a batch of half a minute nearly every heartbeat moves the figures, and none takes anything back."""
    write(tmp_path / "in", 0, range(700))
    write(tmp_path / "in", 1, range(700, 1400))
    slow = (
        attached.readStream.schema(SCHEMA)
        .json(str(tmp_path / "in"))
        .where("java_method('java.lang.Thread', 'sleep', 42L + k * 0L) IS NOT NULL")
        .groupBy("k")
        .count()
    )
    query = (
        slow.writeStream.format("noop")
        .outputMode("update")
        .queryName("slow")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    eventually(lambda: (job := rest.job("slow")) and job["tasks"]["total"])
    jid = eventually(lambda: rest.job("slow"))["jid"]
    source = eventually(lambda: rest.get(f"/jobs/{jid}")["vertices"])[0]["id"]
    seen: list[list[int]] = []
    while query.isActive:
        values = rest.columns(jid, source).get("Filter.numRecordsOut", {})
        seen.append([int(values.get(subtask, "0")) for subtask in range(2)])
        time.sleep(HEARTBEAT_S / 4)
    batch = query.recentProgress[0]
    assert batch["numInputRows"] == 1400
    for before, after in pairwise(seen):
        assert all(now >= then for then, now in zip(before, after, strict=True)), (before, after)
    steps = len({tuple(values) for values in seen})
    heartbeats = batch["durationMs"]["addBatch"] / 1000 / HEARTBEAT_S
    assert heartbeats > 20
    assert steps > heartbeats / 2, (steps, heartbeats, seen)

    def total() -> bool:
        found = rest.columns(jid, source)["Filter.numRecordsOut"]
        return sum(map(int, found.values())) == 1400

    eventually(total)
