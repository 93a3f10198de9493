"""What Spark's event log tells of one run of a query, attempt by attempt."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

Rows = dict[int, int]
"""Partition → rows."""

OLD_PREFIX = "Python"
"""MapInArrow is PythonMapInArrow before Spark 4; here it has its new name."""


@dataclass(frozen=True)
class Attempt:
    """A task attempt that has ended; `updates` are its SQL metrics by accumulator, `failure` its class and stack."""

    stage: int
    stage_attempt: int
    partition: int
    reason: str
    speculative: bool
    updates: dict[int, int]
    number: int
    finish_ms: int
    failure: tuple[str, str]
    launch_ms: int
    executor: str
    spilled_bytes: int


def logged(folder: Path, run_id: str = "") -> list[dict[str, Any]]:
    """The events of all logs in a folder, or of the one that has a run, as far as they are written."""
    texts = [path.read_bytes() for path in folder.iterdir()]
    wanted = [text for text in texts if not run_id or f'"{run_id}"'.encode() in text]
    return [_event(line) for text in wanted for line in text.split(b"\n")[:-1]]


def _event(line: bytes) -> dict[str, Any]:
    try:
        event: dict[str, Any] = msgspec.json.decode(line)
    except msgspec.DecodeError:
        # Of a metric that is no number Spark writes NaN.
        event = json.loads(line)
    return event


class EventLog:
    """
    A run's part of the logs in a folder, uncompressed and not rolled; `ended` tells that it has the run's end.

    A figure of a batch belongs to an accumulator of that batch's plan. A task runs again where its output was
    lost, also in another stage: of all successes of a partition the last stage's, and its last attempt's, is the
    one whose output was used.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        # Every application numbers its executions, stages and accumulators anew.
        events = logged(folder, run_id)
        starts = [event for event in events if event["Event"].endswith("SQLExecutionStart")]
        roots = {event["executionId"] for event in starts if f"runId = {run_id}" in event["description"]}
        roots |= {event["executionId"] for event in starts if event.get("rootExecutionId") in roots}
        plans = [event["sparkPlanInfo"] for event in events if "sparkPlanInfo" in event]
        owners = [event["executionId"] for event in events if "sparkPlanInfo" in event]
        self._nodes = [
            node for plan, owner in zip(plans, owners, strict=True) if owner in roots for node in _nodes(plan)
        ]
        stages = {
            stage
            for event in events
            if event["Event"] == "SparkListenerJobStart" and event["Properties"].get("spark.jobGroup.id") == run_id
            for stage in event["Stage IDs"]
        }
        self.attempts = [
            _attempt(event)
            for event in events
            if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages
        ]
        self.progress: list[dict[str, Any]] = [
            event["progress"]
            for event in events
            if event["Event"].endswith("QueryProgressEvent") and event["progress"]["runId"] == run_id
        ]
        self.ended = any(
            event["Event"].endswith("QueryTerminatedEvent") and event["runId"] == run_id for event in events
        )

    def reasons(self) -> dict[str, int]:
        """How task attempts ended → how many of them."""
        return Counter(attempt.reason for attempt in self.attempts)

    def rows(self, node: str, metric: str = "number of output rows") -> Rows:
        """A metric of the nodes whose description begins with `node`, by partition; a partition without is left out."""
        found: Rows = defaultdict(int)
        for accumulator in self._accumulators(node, metric):
            won: dict[int, tuple[int, int, int]] = {}
            for attempt in self.attempts:
                if attempt.reason == "Success" and accumulator in attempt.updates:
                    run = (attempt.stage, attempt.stage_attempt)
                    if attempt.partition not in won or run > won[attempt.partition][:2]:
                        won[attempt.partition] = (*run, attempt.updates[accumulator])
            for partition, (_, _, rows) in won.items():
                found[partition] += rows
        return {partition: rows for partition, rows in found.items() if rows}

    def stage(self, place: int) -> dict[int, Attempt]:
        """Partition → the success of it in one of the run's stages; of a single batch they count from 0."""
        stages = sorted({attempt.stage for attempt in self.attempts})
        found = [each for each in self.attempts if each.stage == stages[place] and each.reason == "Success"]
        return {each.partition: each for each in found}

    def again(self, node: str, metric: str) -> set[int]:
        """The partitions that did more than once, each time to its end, what such nodes count."""
        accumulators = self._accumulators(node, metric)
        done = Counter(
            attempt.partition
            for attempt in self.attempts
            if attempt.reason == "Success" and accumulators & attempt.updates.keys()
        )
        return {partition for partition, times in done.items() if times > 1}

    def _accumulators(self, description: str, metric: str) -> set[int]:
        found = {
            told["accumulatorId"]
            for node in self._nodes
            if node["simpleString"].removeprefix(OLD_PREFIX).startswith(description)
            for told in node["metrics"]
            if told["name"] == metric
        }
        assert found, f"no plan has a node {description!r} with {metric!r}"
        return found


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan["children"]:
        yield from _nodes(child)


def _attempt(event: dict[str, Any]) -> Attempt:
    info, reason = event["Task Info"], event["Task End Reason"]
    return Attempt(
        event["Stage ID"],
        event["Stage Attempt ID"],
        info["Partition ID"],
        reason["Reason"],
        info["Speculative"],
        {each["ID"]: int(each["Update"]) for each in info["Accumulables"] if each.get("Metadata") == "sql"},
        info["Attempt"],
        info["Finish Time"],
        (reason.get("Class Name", ""), reason.get("Full Stack Trace", "")),
        info["Launch Time"],
        info["Executor ID"],
        event.get("Task Metrics", {}).get("Disk Bytes Spilled", 0),
    )
