"""How a query's micro-batches are committed, in Flink's words."""

from __future__ import annotations

from typing import Any

import pytest

from collector.store import JobState
from service.errors import HANDLER, Missing
from service.flink.checkpoint_config import config, duration_ms, interval_ms
from service.flink.query import Query

JID = "d" * 32
STORE = "spark.sql.streaming.stateStore."
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def asked(states: Any, job: JobState, **configuration: str) -> Any:
    app = states.app(configuration=configuration)
    return config(Query.parse(states.snapshot(job, app), 9_000, {"jobid": JID}, b""))


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("ProcessingTimeTrigger(7000)", 7_000),
        ("ProcessingTimeTrigger(0)", 0),
        ("AvailableNowTrigger", 0),
        ("OneTimeTrigger", 0),
        ("ContinuousTrigger(1000)", 1_000),
        ("RealTimeTrigger(300000)", 300_000),
        ("", -1),
    ],
)
def test_interval_is_the_triggers(trigger: str, expected: int) -> None:
    """In Spark's words; 0 is batch upon batch, −1 not known."""
    assert interval_ms(trigger) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60s", 60_000), ("1m", 60_000), ("2min", 120_000), ("250", 250), ("250ms", 250), ("1h", 3_600_000), ("soon", -1)],
)
def test_durations_are_sparks(text: str, expected: int) -> None:
    """Milliseconds where no unit is given; what cannot be read is unknown."""
    assert duration_ms(text) == expected


@pytest.mark.parametrize("sink", ["Sink: ForeachBatch", "Sink: ForeachWriter", "Sink: Kafka"])
def test_sinks_that_may_repeat_are_at_least_once(states: Any, sink: str) -> None:
    """By Spark's own documentation; all others are told as exactly once."""
    assert asked(states, states.job(states.vertex(operators={"Scan": {}, sink: {}})))["mode"] == "at_least_once"
    assert asked(states, states.job(states.vertex(operators={"Sink: json": {}})))["mode"] == "exactly_once"


def test_state_store_is_the_configurations(states: Any) -> None:
    """The query's own before the application's; Spark's default where a configuration is told that names none."""
    own = states.job(configuration={f"{STORE}providerClass": ROCKSDB})
    other = {f"{STORE}providerClass": "a.b.MyProvider"}
    assert asked(states, own, **other)["state_backend"] == "RocksDBStateStoreProvider"
    assert asked(states, states.job(), **other)["state_backend"] == "MyProvider"
    assert asked(states, states.job(), **{"spark.app.name": "x"})["state_backend"] == "HDFSBackedStateStoreProvider"
    assert asked(states, states.job())["state_backend"] == ""


def test_change_log_is_rocksdbs(states: Any) -> None:
    """The setting means nothing to another store; its snapshots are the state store's maintenance."""
    flags = {f"{STORE}rocksdb.changelogCheckpointing.enabled": "true", f"{STORE}maintenanceInterval": "30s"}
    job = states.job(configuration=flags)
    assert asked(states, job)["state_changelog_enabled"] is False
    body = asked(states, job, **{f"{STORE}providerClass": ROCKSDB})
    assert body["state_changelog_enabled"] is True
    assert body["changelog_periodic_materialization_interval"] == 30_000


def test_what_spark_has_not_is_told_so(states: Any) -> None:
    """No timeout, no pause, one at a time, no failure tolerated; kept unless the user named no place."""
    body = asked(states, states.job(checkpoint_path="file:/data/state"))
    assert [body[key] for key in ("timeout", "min_pause", "max_concurrent", "tolerable_failed_checkpoints")] == [
        -1,
        0,
        1,
        0,
    ]
    assert body["externalization"] == {"enabled": True, "delete_on_cancellation": False}
    temporary = states.job(checkpoint_path="file:/tmp/temporary-4f9d9e9a-93a5-4cb3-9a1f-5d5f5c3c2b1a")
    assert asked(states, temporary)["externalization"] == {"enabled": False, "delete_on_cancellation": True}


def test_job_that_is_no_query_is_refused(states: Any) -> None:
    """In Flink's words."""
    with pytest.raises(Missing, match=rf"^{HANDLER}Checkpointing is not enabled for this job \({JID}\)\.$"):
        asked(states, states.job(type="BATCH"))
