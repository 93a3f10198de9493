"""
How fast event logs are replayed, and what memory that takes: `python -m benchmarks.bench_replay [MB]`.

The log is made of the recorded one in tests/unit/spark_hooks/event_logs: what a streaming query does in one batch is
written again and again, with ids, times and batches that go on, until the log is as long as asked for. Each run is a
process of its own. The budgets are held here: 50 MB/s of plain JSON on one core, by the time that the process has
computed, for others may do so beside it; and no more memory for a log that is four times as long.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from spark_hooks.compression import codec_of, decompressed

RECORDED = Path(__file__).parents[1] / "tests/unit/spark_hooks/event_logs/spark-4.3.0.zstd"

BUDGET_MB_PER_S = 50.0
GROWTH_MB = 32.0
"""Of peak memory, from a log to one four times as long: what allocators keep, and no more."""

RUNS = 3
MB = 1_000_000
TASKS = 50
BATCH_MS = 10_000


def recorded() -> list[dict[str, Any]]:
    """The events of the recorded log."""
    with RECORDED.open("rb") as file:
        codec = codec_of(file.read(8))
        file.seek(0)
        text = b"".join(decompressed(file, codec))
    return [json.loads(line) for line in text.splitlines()]


def write(path: Path, nbytes: int) -> int:
    """
    Write a log of one query with many batches, each with a stage of TASKS tasks; return its length.

    Args:
        nbytes: At least.
    """
    events = recorded()
    kinds = [event["Event"].rpartition(".")[2] for event in events]
    begin = kinds.index("SparkListenerSQLExecutionStart")
    end = kinds.index("StreamingQueryListener$QueryProgressEvent") + 1
    head, batch = events[:begin], events[begin:end]
    progress = batch[-1]["progress"]
    start_ms = int(datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp() * 1000)
    executions = [event["executionId"] for event in batch if "executionId" in event]
    jobs = [event["Job ID"] for event in batch if event["Event"] == "SparkListenerJobStart"]
    stages = [info["Stage ID"] for event in batch for info in event.get("Stage Infos", ())]
    steps = {
        "execution": max(executions) - min(executions) + 1,
        "job": max(jobs) - min(jobs) + 1,
        "stage": max(stages) - min(stages) + 1,
    }
    written = 0
    with path.open("w") as file:

        def put(event: dict[str, Any]) -> None:
            nonlocal written
            written += file.write(json.dumps(event, separators=(",", ":")) + "\n")

        for event in head:
            put(event)
        number = 0
        while written < nbytes:
            for event in batch:
                for each in _widened(event):
                    put(_moved(each, number, steps, start_ms))
            number += 1
        # The driver was stopped at the end.
        put({**events[-1], "Timestamp": start_ms + (number + 1) * BATCH_MS})
    return written


def _widened(event: dict[str, Any]) -> list[dict[str, Any]]:
    """A task's events for as many tasks as the benchmark's stages have."""
    if event["Event"] not in ("SparkListenerTaskStart", "SparkListenerTaskEnd"):
        return [event]
    if event["Task Info"]["Index"]:
        return []
    tasks = []
    for index in range(TASKS):
        info = {**event["Task Info"], "Index": index, "Partition ID": index}
        info["Task ID"] = info["Task ID"] * TASKS + index
        tasks.append({**event, "Task Info": info})
    return tasks


def _moved(event: dict[str, Any], number: int, steps: dict[str, int], start_ms: int) -> dict[str, Any]:
    """An event of the recorded batch, as the `number`th batch after it would have it."""
    shift_ms = number * BATCH_MS
    moved = dict(event)
    for key in ("time", "Submission Time", "Completion Time"):
        if key in moved:
            moved[key] += shift_ms
    for key in ("executionId", "rootExecutionId"):
        if key in moved:
            moved[key] += number * steps["execution"]
    if "Job ID" in moved:
        moved["Job ID"] += number * steps["job"]
    if "Stage ID" in moved:
        moved["Stage ID"] += number * steps["stage"]
    if "description" in moved:
        moved["description"] = moved["description"].rpartition(" = ")[0] + f" = {number}"
    if "Task Info" in moved:
        info = dict(moved["Task Info"])
        info["Task ID"] += number * TASKS * 100
        for key in ("Launch Time", "Finish Time"):
            info[key] += shift_ms if info[key] else 0
        moved["Task Info"] = info
    if "Stage Info" in moved:
        moved["Stage Info"] = _stage(moved["Stage Info"], number, steps, shift_ms)
    if "Stage Infos" in moved:
        moved["Stage Infos"] = [_stage(info, number, steps, shift_ms) for info in moved["Stage Infos"]]
        moved["Stage IDs"] = [stage + number * steps["stage"] for stage in moved["Stage IDs"]]
        properties = dict(moved["Properties"])
        for key in ("spark.sql.execution.id", "spark.sql.execution.root.id"):
            if key in properties:
                properties[key] = str(int(properties[key]) + number * steps["execution"])
        properties["streaming.sql.batchId"] = str(number)
        moved["Properties"] = properties
    if "progress" in moved:
        began = datetime.fromtimestamp((start_ms + shift_ms) / 1000, timezone.utc)
        text = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        moved["progress"] = {**moved["progress"], "batchId": number, "timestamp": text}
    return moved


def _stage(info: dict[str, Any], number: int, steps: dict[str, int], shift_ms: int) -> dict[str, Any]:
    moved = {**info, "Stage ID": info["Stage ID"] + number * steps["stage"], "Number of Tasks": TASKS}
    moved["Parent IDs"] = [parent + number * steps["stage"] for parent in info["Parent IDs"]]
    for key in ("Submission Time", "Completion Time"):
        if key in moved:
            moved[key] += shift_ms
    moved["RDD Info"] = [{**rdd, "RDD ID": rdd["RDD ID"] + 1000 * number} for rdd in info["RDD Info"]]
    return moved


def once(path: Path) -> None:
    """Replay a log, and tell seconds, bytes, peak memory and batches; for a process of its own."""
    from collector.replayed import Replayed
    from collector.run import Run
    from spark_hooks.event_log import find
    from spark_hooks.replay import replay

    runs: list[Run] = []
    into = Replayed(runs.append)
    (log,) = find(path)
    began_s, computed_s = time.perf_counter(), time.process_time()
    told = replay(log, into)
    into.end()
    took_s, computed_s = time.perf_counter() - began_s, time.process_time() - computed_s
    assert not told.faults, told.faults[:3]
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (run,) = runs
    print(json.dumps([computed_s, took_s, told.nbytes, peak_kb / 1024, run.state.checkpoints.totals.completed]))


def measure(path: Path) -> tuple[float, float, int]:
    """Return the median MB/s, the greatest peak of memory in MiB, and the batches of a log."""
    found = []
    for _ in range(RUNS):
        command = [sys.executable, "-m", "benchmarks.bench_replay", "--once", str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
    rates = [nbytes / computed_s / MB for computed_s, _, nbytes, _, _ in found]
    wall = [nbytes / took_s / MB for _, took_s, nbytes, _, _ in found]
    print(f"  {min(rates):.1f} to {max(rates):.1f} MB/s; by the clock {min(wall):.1f} to {max(wall):.1f}")
    return statistics.median(rates), max(peak for _, _, _, peak, _ in found), found[0][4]


def main(megabytes: int) -> None:
    """Measure a log of so many MB, and one of a quarter of that."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        measured = []
        for size in (megabytes // 4, megabytes):
            path = Path(folder) / f"app-{size}"
            written = write(path, size * MB)
            rate, peak, batches = measure(path)
            span = timedelta(milliseconds=batches * BATCH_MS)
            print(
                f"{written / MB:.0f} MB, {batches} batches of {TASKS} tasks in {span}: {rate:.1f} MB/s, {peak:.0f} MiB"
            )
            measured.append((rate, peak))
            path.unlink()
    (_, before), (rate, after) = measured
    assert rate >= BUDGET_MB_PER_S, f"{rate:.1f} MB/s, the budget is {BUDGET_MB_PER_S:g}"
    assert after <= before + GROWTH_MB, f"{after:.0f} MiB after {before:.0f} MiB, the budget is {GROWTH_MB:g} more"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        once(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
