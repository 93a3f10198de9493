"""How a query's micro-batches are committed, in Flink's words: /jobs/:jobid/checkpoints/config."""

from __future__ import annotations

import re
from typing import Literal

from typing_extensions import TypedDict

from collector.store import JobState
from service.flink.checkpoint_tasks import UNKNOWN
from service.flink.checkpoints import temporary
from service.flink.query import Query

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_DEFAULT_PROVIDER = "HDFSBackedStateStoreProvider"
_CHANGE_LOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"
_DEFAULT_MAINTENANCE = "60s"
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_STORAGE = "FileSystemCheckpointStorage"
"""Flink's word for what every checkpoint of Spark's is on, a Hadoop file system."""

_INTERVAL = re.compile(r"Trigger\(([0-9]{1,18})\)")
# Spark's own table of output sinks calls these at-least-once.
_AT_LEAST_ONCE = re.compile(r"Sink: (Foreach|Kafka)")
_DURATION = re.compile(r"\s*([0-9]{1,15})\s*([a-z]*)\s*")
_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Externalization(TypedDict):
    """What becomes of the checkpoints: Spark keeps them, but those for which the user named no place."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfig(TypedDict):
    """The body of /jobs/:jobid/checkpoints/config; −1 and '' are what is not known, or what Spark does not have."""

    mode: Literal["exactly_once", "at_least_once"]
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_periodic_materialization_interval: int
    changelog_storage: str


def config(query: Query) -> CheckpointConfig:
    """
    Answer /jobs/:jobid/checkpoints/config.

    A micro-batch has no timeout; the next one waits for it, and one that fails ends the run.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job is no streaming query.
    """
    state = query.streaming_job(f"Checkpointing is not enabled for this job ({query.path['jobid']}).")
    deleted = temporary(state)
    provider = _simple(query.setting(state, _PROVIDER, _DEFAULT_PROVIDER))
    return {
        "mode": "at_least_once" if _at_least_once(state) else "exactly_once",
        "interval": interval_ms(state.job.trigger),
        "timeout": UNKNOWN,
        "min_pause": 0,
        "max_concurrent": 1,
        "externalization": {"enabled": not deleted, "delete_on_cancellation": deleted},
        "state_backend": provider,
        "checkpoint_storage": _simple(query.setting(state, _FILES, _STORAGE)),
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": 0,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": query.setting(state, _CHANGE_LOG) == "true" and provider.startswith("RocksDB"),
        "changelog_periodic_materialization_interval": duration_ms(
            query.setting(state, _MAINTENANCE, _DEFAULT_MAINTENANCE)
        ),
        "changelog_storage": "filesystem",
    }


def interval_ms(trigger: str) -> int:
    """
    Return the interval of a trigger in Spark's words, ms; UNKNOWN where there are none.

    0 for a query that runs batch upon batch until it is stopped, or until it has read everything.
    """
    if not trigger:
        return UNKNOWN
    found = _INTERVAL.search(trigger)
    return int(found.group(1)) if found else 0


def duration_ms(text: str) -> int:
    """Return a duration of Spark's configuration, '60s' or milliseconds without a unit; UNKNOWN for anything else."""
    found = _DURATION.fullmatch(text)
    if found is None or found.group(2) not in _UNITS_MS:
        return UNKNOWN
    return int(found.group(1)) * _UNITS_MS[found.group(2)]


def _at_least_once(state: JobState) -> bool:
    sinks = (operator.name for vertex in state.vertices.values() for operator in vertex.vertex.operators)
    return any(_AT_LEAST_ONCE.match(name) for name in sinks)


def _simple(name: str) -> str:
    """The name of a class without its package, as Flink has it."""
    return name.rpartition(".")[2]
