"""What a metric of the catalogue is called in Prometheus, and in which unit: one rule, and the exceptions to it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from service.prometheus.text import Value
from service.watermarks import standing_ms
from streamgauge import catalogue, names

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_BASE_UNITS = {"ms": ("seconds", 1e3), "ns": ("seconds", 1e9), "bytes": ("bytes", 1.0), "ms/s": ("ratio", 1e3)}
"""Unit of the catalogue → base unit, and what a value is divided by."""

_CALLED: dict[str, str] = {
    names.BUSY_TIME: "busy",
    names.BACK_PRESSURED_TIME: "back_pressured",
    names.IDLE_TIME: "idle",
    names.SLOT_WAIT_TIME: "slot_wait",
    names.ACCUMULATED_BUSY_TIME: "busy",
    names.ACCUMULATED_BACK_PRESSURED_TIME: "back_pressured",
    names.ACCUMULATED_IDLE_TIME: "idle",
    names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH: "output_queue_length",
    names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_SIZE: "output_queue_size",
    names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE: "out_pool_usage",
    names.INPUT_BUFFERS + names.INPUT_QUEUE_LENGTH: "input_queue_length",
    names.INPUT_BUFFERS + names.INPUT_QUEUE_SIZE: "input_queue_size",
    names.INPUT_BUFFERS + names.IN_POOL_USAGE: "in_pool_usage",
    names.CHECKPOINT_START_DELAY: "checkpoint_start_delay",
    names.TIMER_TIME: "timer_processing",
    names.TRIGGER_INTERVAL: "trigger_interval",
    names.STATE_MEMORY_USED: "state_memory",
    names.STATE_COMMIT_TIME: "state_commit",
    names.BACKLOG_TIME: "backlog_time",
    names.BACKLOG_TIME_TREND: "backlog_time_growth",
    names.NUM_COMPLETED_CHECKPOINTS: "completed_checkpoints",
    names.NUM_FAILED_CHECKPOINTS: "failed_checkpoints",
    names.NUM_IN_PROGRESS_CHECKPOINTS: "in_progress_checkpoints",
    names.TOTAL_CHECKPOINTS: "checkpoints",
    names.TASK_SLOTS_TOTAL: "task_slots",
    names.THREADS: "jvm_threads",
    names.DIRECT_COUNT: "jvm_memory_direct_buffers",
    names.DIRECT_USED: "jvm_memory_direct_used",
    names.MAPPED_COUNT: "jvm_memory_mapped_buffers",
    names.MAPPED_USED: "jvm_memory_mapped_used",
    names.GC_COUNT_ALL: "jvm_garbage_collections",
    names.GC_TIME_ALL: "jvm_garbage_collection",
    names.MANAGED_TOTAL: "managed_memory",
    names.MANAGED_USED: "managed_memory_used",
    names.MEMORY_TOTAL: "machine_memory",
    names.CLASSES_LOADED: "jvm_classes_loaded",
    names.CLASSES_UNLOADED: "jvm_classes_unloaded",
    names.HOOKS_ACKNOWLEDGED_AGE: "acknowledged_age",
    names.HOOKS_DRAIN_TIME: "drain_time",
    names.HOOKS_RECORD_TIME: "record_time",
}
_COUNTERS = frozenset(
    {
        names.NUM_RESTARTS,
        names.ACCUMULATED_BUSY_TIME,
        names.ACCUMULATED_BACK_PRESSURED_TIME,
        names.ACCUMULATED_IDLE_TIME,
    }
)
"""Gauges in Flink that only grow."""
_LEVELS = frozenset({names.NUM_PENDING_TIMERS, names.NUM_STATE_ROWS, names.STATE_MEMORY_USED})
"""Gauges of what each subtask holds a part of."""
_WATERMARKS = frozenset(
    {
        names.CURRENT_INPUT_WATERMARK,
        names.CURRENT_OUTPUT_WATERMARK,
        names.CURRENT_LOW_WATERMARK,
        names.CURRENT_SPLIT_WATERMARK,
    }
)
"""Unix times, but for two values; see `service.watermarks`."""


@dataclass(frozen=True, slots=True)
class Family:
    """
    A metric as Prometheus knows it.

    Args:
        name: With unit, and _total on counters.
        divisor: From the catalogue's unit to the base unit; 1.0 leaves integers as they are.
        label: Name and value of this metric's label among those that share the family; None where it is alone.
        is_watermark: It is told where it is a time.
        whole: What stands for all subtasks: their sum, or the greatest or least of them.
    """

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    divisor: float
    label: tuple[str, str] | None = None
    is_watermark: bool = False
    whole: Literal["sum", "max", "min"] = "max"

    def scaled(self, value: Value) -> Value:
        """Return a value of the catalogue's unit in the base unit."""
        return value if self.divisor == 1.0 else value / self.divisor

    def is_told(self, value: Value) -> bool:
        """Return whether a value of the catalogue's unit says something: no NaN, and as a watermark or count one."""
        if self.is_watermark:
            return math.isfinite(value) and standing_ms(int(value)) is not None
        return value >= 0 if self.kind == "counter" else value == value


_LABELLED = {
    ("hooks", metric): ("streamgauge_hooks_pushes_total", "Pushes, by what became of them.", ("outcome", outcome))
    for outcome, metric in names.HOOKS_PUSHES.items()
} | {
    ("job", metric): (
        "streamgauge_job_latency_markers_dropped_total",
        "Latency markers that were dropped, by the reason.",
        ("reason", reason),
    )
    for reason, metric in names.MARKERS_DROPPED_BY.items()
}
"""Metrics that are told apart by a label: the family's name and help, and the label."""


def _family(metric: catalogue.Metric) -> Family | None:
    labelled = _LABELLED.get((metric.scope, metric.name))
    if labelled is not None:
        name, text, label = labelled
        return Family(name, "counter", text, 1.0, label, whole="sum")
    # rate() tells better what a meter tells; a histogram has families of its own.
    if metric.type in ("meter", "string", "histogram") or metric.name == names.GC_RATE_ALL or is_told_twice(metric):
        return None
    kind: Literal["counter", "gauge"] = "counter" if metric.type == "counter" or metric.name in _COUNTERS else "gauge"
    unit, divisor = _BASE_UNITS.get(metric.unit, ("", 1.0))
    words: list[str] = [] if metric.scope == "cluster" else [metric.scope]
    words.append(_CALLED.get(metric.name) or _snake(metric.name))
    is_watermark = metric.name in _WATERMARKS
    if is_watermark:
        words.append("timestamp")
    if unit and unit not in words[-1].split("_"):
        words.append(unit)
    if kind == "counter":
        words.append("total")
    # A vertex is as far as the last of its subtasks.
    whole: Literal["sum", "max", "min"] = "min" if is_watermark else "max"
    if kind == "counter" or metric.name in _LEVELS:
        whole = "sum"
    return Family("streamgauge_" + "_".join(words), kind, metric.help, divisor, None, is_watermark, whole)


def is_told_twice(metric: catalogue.Metric) -> bool:
    """Whether Flink tells the same under another name too, the one by which it is known here."""
    if metric.name.startswith(names.INPUT_BUFFERS):
        return False
    return metric.name.startswith((names.SHUFFLE_INPUT, names.OLD_BUFFERS))


def _snake(name: str) -> str:
    words = [word.lower() for word in _WORDS.findall(name.removeprefix("Status."))]
    if words[0] == "num":
        del words[0]
    return "_".join(words)


FAMILIES: dict[tuple[catalogue.Scope, str], Family] = {
    (metric.scope, metric.name): family for metric in catalogue.METRICS if (family := _family(metric)) is not None
}
"""(scope, Flink's name) → family. What is not in it is not in /metrics."""
