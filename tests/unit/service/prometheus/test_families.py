"""Names in Prometheus."""

from __future__ import annotations

import re

import pytest

from service.prometheus import distributions, latencies, splits
from service.prometheus.families import FAMILIES, is_told_twice
from service.prometheus.labels import labels
from service.prometheus.text import Exposition, Kind
from streamgauge import catalogue, names

LEFT_OUT = {key for metric in catalogue.METRICS if (key := (metric.scope, metric.name)) not in FAMILIES}


@pytest.mark.parametrize(
    ("scope", "metric", "name", "kind", "value", "scaled"),
    [
        ("vertex", names.NUM_RECORDS_IN, "streamgauge_vertex_records_in_total", "counter", 7, 7),
        ("vertex", names.BUSY_TIME, "streamgauge_vertex_busy_ratio", "gauge", 250.0, 0.25),
        ("operator", names.NUM_RECORDS_OUT, "streamgauge_operator_records_out_total", "counter", 7, 7),
        (
            "vertex",
            names.CURRENT_INPUT_WATERMARK,
            "streamgauge_vertex_current_input_watermark_timestamp_seconds",
            "gauge",
            1_500,
            1.5,
        ),
        ("job", names.UPTIME, "streamgauge_job_uptime_seconds", "gauge", 1_500, 1.5),
        ("job", names.NUM_RESTARTS, "streamgauge_job_restarts_total", "counter", 2, 2),
        ("job", names.TOTAL_CHECKPOINTS, "streamgauge_job_checkpoints_total", "counter", 2, 2),
        ("cluster", names.TASK_SLOTS_TOTAL, "streamgauge_task_slots", "gauge", 4, 4),
        ("driver", names.CPU_TIME, "streamgauge_driver_jvm_cpu_time_seconds_total", "counter", 2_000_000_000, 2.0),
        (
            "executor",
            names.GC_TIME_ALL,
            "streamgauge_executor_jvm_garbage_collection_seconds_total",
            "counter",
            40,
            0.04,
        ),
        ("driver", names.HEAP_USED, "streamgauge_driver_jvm_memory_heap_used_bytes", "gauge", 9, 9),
    ],
)
def test_name_kind_and_unit(
    scope: catalogue.Scope, metric: str, name: str, kind: str, value: float, scaled: float
) -> None:
    """Base units, and _total on what only grows."""
    family = FAMILIES[scope, metric]
    assert (family.name, family.kind, family.scaled(value)) == (name, kind, scaled)


def test_names_are_what_promtool_asks_for() -> None:
    """Lower case, _total on counters alone, no type or milliseconds in a name, none of the reserved suffixes."""
    for family in FAMILIES.values():
        assert re.fullmatch(r"streamgauge(_[a-z0-9]+)+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert not re.search(r"_(count|sum|bucket|info|created|gauge|counter|ms|ns|milliseconds)(_|$)", family.name)


def test_no_family_takes_the_samples_of_another() -> None:
    """In OpenMetrics a counter's name is without _total, and may still be nobody else's."""
    page = Exposition()
    told: list[tuple[str, Kind]] = [(family.name, family.kind) for family in (*FAMILIES.values(), *splits.FAMILIES)]
    told += [(family.name, "histogram") for family in (*latencies.FAMILIES, *distributions.FAMILIES.values())]
    told += [("streamgauge_job_state", "gauge"), ("streamgauge_vertex_bottleneck", "gauge")]
    for number, (name, kind) in enumerate(told):
        page.add(name, kind, "", [(labels({"number": str(number)}), 1)])
    assert page.series == len(told)


def test_names_are_unique() -> None:
    """Two metrics in one family and label would be one."""
    assert len({(family.name, family.label) for family in FAMILIES.values()}) == len(FAMILIES)


def test_meters_and_what_flink_tells_twice_are_left_out() -> None:
    """rate() makes a rate of a counter; all else of the catalogue has a name."""
    for scope, name in LEFT_OUT:
        metric = catalogue.find(scope, name)
        assert metric is not None
        rate = metric.type == "meter" or name == names.GC_RATE_ALL
        assert rate or metric.type in ("string", "histogram") or is_told_twice(metric)
