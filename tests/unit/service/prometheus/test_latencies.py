"""Latencies in both expositions: exact histograms of a run, Flink's summaries of the latest values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.histogram import BOUNDS_MS
from collector.latencies import Latencies, LatencyKey, LatencyWindow
from service.prometheus.granularity import Granularity
from service.prometheus.latencies import FAMILIES
from streamgauge import wire
from streamgauge.buckets import HIGHEST_COUNTED_MS, HdrCounts
from tests.exposed import flinks, idiomatic

JID, VERTEX, SOURCE = "d" * 32, "c" * 32, "a" * 32
MAP, SINK = f"{0:032x}", f"{1:032x}"
JOB = f'job_id="{JID}",job_name="flights by hour"'
WHOSE = f'source_id="{SOURCE}",source_name="Source: ",vertex_id="{VERTEX}",vertex_name="Scan -> Filter"'
VALUES = (0, 1, 2, 150, 499, 500, 999, 1_000, 64_000)


def buckets(*values: int) -> wire.Buckets:
    counts = HdrCounts()
    counts.add(np.array(values, dtype=np.int64))
    read = counts.read()
    return wire.Buckets(
        read.indices.astype("<u2").tobytes(), read.counts.tobytes(), read.below, read.above, read.sum_ms
    )


def job(
    states: Any, total: wire.Buckets, windows: Any = None, told_apart: str | None = "operator", **changes: Any
) -> Any:
    one = wire.LatencyHistogram(SOURCE, (), total, buckets(7), buckets())
    held = Latencies(windows or {}, {(MAP, SOURCE): one, (SINK, SOURCE): one})
    vertex = states.vertex(operators={"Map": {}, "Sink: x": {}}, latencies=held)
    return states.job(states.vertex(id=SOURCE, name="Source: "), vertex, latency=told_apart, **changes)


def text(states: Any, held: Any, granularity: Granularity = "operator") -> str:
    return idiomatic(states.snapshot(held), granularity)


def lines(rendered: str, begin: str) -> list[str]:
    return [line for line in rendered.splitlines() if line.startswith(begin)]


def test_rendered_histogram_of_an_operator(states: Any) -> None:
    """Cumulative counts at every bound in seconds, all of them, and the sum."""
    own = f'operator_name="Map",{WHOSE}'
    counts = [2, 3, *[3] * 5, 4, 5, 7, 8, *[8] * 5, *[9] * 6]
    told = lines(text(states, job(states, buckets(*VALUES))), "streamgauge_latency_seconds")
    assert told[: len(BOUNDS_MS) + 3] == [
        *(
            f'streamgauge_latency_seconds_bucket{{{JOB},le="{bound / 1_000}",{own}}} {count}.0'
            for bound, count in zip(BOUNDS_MS, counts, strict=True)
        ),
        f'streamgauge_latency_seconds_bucket{{{JOB},le="+Inf",{own}}} 9.0',
        f"streamgauge_latency_seconds_count{{{JOB},{own}}} 9.0",
        f"streamgauge_latency_seconds_sum{{{JOB},{own}}} {sum(VALUES) / 1_000}",
    ]
    assert {f'operator_name="{name}"' for name in ("Map", "Sink: x")} == {
        found[0] for line in told if (found := re.search('operator_name="[^"]*"', line))
    }


def test_counts_are_those_of_the_values(states: Any) -> None:
    """What lies on a bound is within it, what lies past it is not."""
    values = [value for bound in BOUNDS_MS for value in (bound, bound + 1)]
    told = lines(text(states, job(states, buckets(*values))), "streamgauge_latency_seconds_bucket")
    read = {
        found[1]: float(line.split()[-1])
        for line in told
        if (found := re.search(r'le="([^"]*)",operator_name="Map"', line))
    }
    assert read == {
        **{str(bound / 1_000): sum(value <= bound for value in values) for bound in BOUNDS_MS},
        "+Inf": len(values),
    }


def test_queueing_and_processing_have_families_of_their_own(states: Any) -> None:
    """Each with the same labels; a histogram of nothing is told, as all its counts are 0."""
    rendered = text(states, job(states, buckets(*VALUES)))
    own = f'{JOB},operator_name="Sink: x",{WHOSE}'
    assert f"streamgauge_latency_queueing_seconds_sum{{{own}}} 0.007\n" in rendered
    assert f"streamgauge_latency_processing_seconds_count{{{own}}} 0.0\n" in rendered
    assert [family.type for family in text_string_to_metric_families(rendered) if "latency" in family.name] == [
        "histogram"
    ] * 3


def test_out_of_range_is_below_all_or_past_all(states: Any) -> None:
    """Counts stay cumulative: a negative value is within every bound, one past 70 minutes within none, and unsummed."""
    told = lines(text(states, job(states, buckets(-5, 100, HIGHEST_COUNTED_MS + 1))), "streamgauge_latency_seconds")
    counts = [float(line.split()[-1]) for line in told[: len(BOUNDS_MS) + 3]]
    assert counts == [*[1.0] * 6, *[2.0] * (len(BOUNDS_MS) - 6), 3.0, 3.0, 0.1]


def test_nothing_of_latencies_is_told_by_subtask(states: Any) -> None:
    """The histograms are of an operator; subtasks have theirs in /metrics/flink."""
    held = job(states, buckets(*VALUES), {LatencyKey(MAP, SOURCE, -1): window(3, 3)})
    assert lines(text(states, held, "subtask"), "streamgauge_latency") == lines(
        text(states, held), "streamgauge_latency"
    )


@pytest.mark.parametrize("state", ["FINISHED", "SUSPENDED"])
def test_ended_and_silent_jobs_tell_no_latency(states: Any, state: str) -> None:
    """Nothing new is heard of them, so nothing must seem to be."""
    held = job(states, buckets(*VALUES), {LatencyKey(MAP, SOURCE, -1): window(3, 3)}, state=state)
    assert "latency" not in text(states, held)
    assert "latency" not in flinks(states.snapshot(held))


def test_names_are_what_promtool_asks_for() -> None:
    """Base unit last, no word of a type."""
    for family in FAMILIES:
        assert re.fullmatch(r"streamgauge_latency(_[a-z]+)?_seconds", family.name)
        assert family.help.endswith(".")


def window(*counts: int) -> LatencyWindow:
    statistics = np.arange(11)[:, None] * 1.5 + np.arange(len(counts)) * 100.0
    statistics[:, np.array(counts) == 0] = np.nan
    return LatencyWindow(np.array(counts, dtype=np.int64), statistics)


WINDOWS = {
    LatencyKey(MAP, SOURCE, -1): window(4, 0),
    LatencyKey(SINK, SOURCE, 3): window(2, 0),
    LatencyKey(SINK, "", -1): window(9, 0),
}
NAMES = {
    "operator": ("source_id_operator_id_operator_subtask_index", MAP, f'source_id="{SOURCE}",', 4),
    "single": ("operator_id_operator_subtask_index", SINK, "", 9),
    "subtask": (
        "source_id_source_subtask_index_operator_id_operator_subtask_index",
        SINK,
        f'source_id="{SOURCE}",source_subtask_index="3",',
        2,
    ),
}


@pytest.mark.parametrize("told_apart", NAMES)
def test_rendered_summary_as_flinks_reporter_has_it(states: Any, told_apart: str) -> None:
    """Name, HELP, TYPE and labels of the granularity that is set; a subtask that has recorded nothing has none."""
    held = job(states, buckets(), WINDOWS, told_apart)
    rendered = flinks(states.snapshot(held))
    scope, operator, source, count = NAMES[told_apart]
    name = f"flink_taskmanager_job_task_latency_{scope}_latency"
    before = (
        f'host="",instance="",job_id="{JID}",job_name="flights_by_hour",operator_id="{operator}",'
        'operator_subtask_index="0"'
    )
    after = (
        f'{source}subtask_index="0",task_attempt_id="{JID}_{VERTEX}_0_0",task_attempt_num="0",task_id="{VERTEX}",'
        f'task_name="Scan____Filter",tm_id=""'
    )
    figures = {"0.5": 4.5, "0.75": 7.5, "0.95": 10.5, "0.98": 12.0, "0.99": 13.5, "0.999": 15.0}
    assert rendered[rendered.index("# HELP flink_taskmanager_job_task_latency") :] == (
        f"# HELP {name} latency (scope: taskmanager_job_task_latency_{scope})\n# TYPE {name} summary\n"
        + "".join(f'{name}{{{before},quantile="{rank}",{after}}} {value}\n' for rank, value in figures.items())
        + f"{name}_count{{{before},{after}}} {count}.0\n"
    )


def test_no_summary_of_a_job_without_markers(states: Any) -> None:
    """Switched off, whatever is held."""
    held = job(states, buckets(), WINDOWS, None)
    assert "latency" not in flinks(states.snapshot(held))


def test_scrapes_have_the_recorded_latencies(client: Any) -> None:
    """Both pages parse, with one series of each name and labels."""
    for page, name in (
        ("/metrics", "streamgauge_latency_seconds"),
        ("/metrics/flink", "flink_taskmanager_job_task_latency_source_id_operator_id_operator_subtask_index_latency"),
    ):
        [family] = [each for each in text_string_to_metric_families(client.get(page).text) if each.name == name]
        series = {(sample.name, *sorted(sample.labels.items())) for sample in family.samples}
        assert len(series) == len(family.samples) > 0
