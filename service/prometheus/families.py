"""What a metric of the catalogue is called in Prometheus, and in which unit: one rule, and the exceptions to it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.prometheus.text import Kind, Value
from streamgauge import names

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_BASE_UNITS = {"ms": ("seconds", 1e3), "ns": ("seconds", 1e9), "bytes": ("bytes", 1.0), "ms/s": ("ratio", 1e3)}
"""Unit of the catalogue → base unit, and what a value is divided by."""

_CALLED: dict[str, str] = {
    names.BUSY_TIME: "busy",
    names.BACK_PRESSURED_TIME: "back_pressured",
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
_COUNTERS = frozenset({names.NUM_RESTARTS})
"""Gauges in Flink that only grow."""


@dataclass(frozen=True, slots=True)
class Family:
    """
    A metric as Prometheus knows it.

    Args:
        name: With unit, and _total on counters.
        divisor: From the catalogue's unit to the base unit; 1.0 leaves integers as they are.
        label: Further label of this metric among those that share the family, '' where it is the only one.
    """

    name: str
    kind: Kind
    help: str
    divisor: float
    label: str = ""

    def scaled(self, value: Value) -> Value:
        """Return a value of the catalogue's unit in the base unit."""
        return value if self.divisor == 1.0 else value / self.divisor


_PUSHES = {name: outcome for outcome, name in names.HOOKS_PUSHES.items()}


def _family(metric: names.Metric) -> Family | None:
    if metric.scope == "hooks" and metric.name in _PUSHES:
        outcome = f'outcome="{_PUSHES[metric.name]}"'
        return Family("streamgauge_hooks_pushes_total", "counter", "Pushes, by what became of them.", 1.0, outcome)
    # rate() tells better what a meter tells, and Flink tells what a task reads twice.
    if metric.type in ("meter", "string") or metric.name == names.GC_RATE_ALL:
        return None
    if metric.name.startswith(names.SHUFFLE_INPUT):
        return None
    kind: Kind = "counter" if metric.type == "counter" or metric.name in _COUNTERS else "gauge"
    unit, divisor = _BASE_UNITS.get(metric.unit, ("", 1.0))
    words: list[str] = [] if metric.scope == "cluster" else [metric.scope]
    words.append(_CALLED.get(metric.name) or _snake(metric.name))
    if unit and unit not in words[-1].split("_"):
        words.append(unit)
    if kind == "counter":
        words.append("total")
    return Family("streamgauge_" + "_".join(words), kind, metric.help, divisor)


def _snake(name: str) -> str:
    words = [word.lower() for word in _WORDS.findall(name.removeprefix("Status."))]
    if words[0] == "num":
        del words[0]
    return "_".join(words)


FAMILIES: dict[tuple[names.Scope, str], Family] = {
    (metric.scope, metric.name): family for metric in names.METRICS if (family := _family(metric)) is not None
}
"""(scope, Flink's name) → family. What is not in it is not in /metrics."""
