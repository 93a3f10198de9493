"""Recorded event logs, and what tests read of them."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path

from collector.replayed import Replayed
from collector.run import Run
from spark_hooks.compression import codec_of, decompressed
from spark_hooks.event_log import find
from spark_hooks.replay import Told, replay

FOLDER = Path(__file__).parent / "event_logs"
VERSIONS = ("3.5.9", "4.3.0")

PASSWORD = "korrekt-pferd-batterie"
"""What a recorded failure has in its message."""


def content(packed: bytes) -> bytes:
    return b"".join(decompressed(BytesIO(packed), codec_of(packed[:8])))


@cache
def recorded(version: str) -> bytes:
    """The log of tests/e2e/replay_driver.py on a version of Spark; names of hosts and folders are others."""
    return content((FOLDER / f"spark-{version}.zstd").read_bytes())


@cache
def first_lines() -> bytes:
    """What the files `first_lines_by_spark` hold: Spark 4.3.0's own codecs have written them, flushing now and then."""
    return content((FOLDER / "first_lines.zstd").read_bytes())


def replayed(path: Path) -> tuple[Told, list[Run]]:
    """Replay the only log at a path."""
    runs: list[Run] = []
    into = Replayed(runs.append)
    (log,) = find(path)
    told = replay(log, into)
    into.end()
    return told, runs


def batches(runs: list[Run]) -> dict[str, int]:
    """Run id → micro-batches that were completed; of a batch execution 1 when it has succeeded."""
    return {
        run.state.attempt.run_id: run.state.checkpoints.totals.completed + (run.state.state == "FINISHED")
        for run in runs
    }
