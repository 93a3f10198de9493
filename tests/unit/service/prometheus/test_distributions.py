"""Distributions over records and timers in /metrics: exact histograms of a run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.histogram import BOUNDS_MS
from collector.taps import Taps
from service.prometheus.distributions import FAMILIES
from streamgauge import names
from streamgauge.buckets import HIGHEST_COUNTED_MS
from tests.exposed import flinks, idiomatic

JOB = f'job_id="{"d" * 32}",job_name="flights by hour"'
VERTEX = f'vertex_id="{"c" * 32}",vertex_name="Scan -> Filter"'
VALUES = (0, 1, 2, 150, 499, 500, 999, 1_000, 64_000)


def job(states: Any, metric: str, *values: int, **changes: Any) -> Any:
    held = Taps((), {(f"{0:032x}", metric): states.buckets(*values)})
    return states.job(states.vertex(operators={"Map": {}}, taps=held), **changes)


def text(states: Any, held: Any) -> str:
    return idiomatic(states.snapshot(held))


@pytest.mark.parametrize("metric", sorted(names.DISTRIBUTIONS))
def test_histogram_of_an_operator(states: Any, metric: str) -> None:
    """Cumulative counts at every bound in seconds, and the sum, under the metric's own name."""
    name = FAMILIES[metric].name
    rendered = text(states, job(states, metric, *VALUES))
    own = f'operator_name="Map",{VERTEX}'
    assert [line for line in rendered.splitlines() if line.startswith(name)] == [
        *(
            f'{name}_bucket{{{JOB},le="{bound / 1_000}",{own}}} {sum(value <= bound for value in VALUES)}.0'
            for bound in BOUNDS_MS
        ),
        f'{name}_bucket{{{JOB},le="+Inf",{own}}} 9.0',
        f"{name}_count{{{JOB},{own}}} 9.0",
        f"{name}_sum{{{JOB},{own}}} {sum(VALUES) / 1_000}",
    ]
    assert [family.type for family in text_string_to_metric_families(rendered) if family.name == name] == ["histogram"]


def test_out_of_range_is_below_all_or_past_all(states: Any) -> None:
    """A clock that is ahead makes a record's latency negative: it is counted, and within every bound."""
    rendered = text(states, job(states, names.RECORD_LATENCY, -5, 100, HIGHEST_COUNTED_MS + 1))
    counts = [float(line.split()[-1]) for line in rendered.splitlines() if "record_latency_seconds_bucket" in line]
    assert counts == [*[1.0] * 6, *[2.0] * (len(BOUNDS_MS) - 6), 3.0]


@pytest.mark.parametrize("state", ["FINISHED", "SUSPENDED"])
def test_ended_and_silent_jobs_tell_no_distribution(states: Any, state: str) -> None:
    """Nothing new is heard of them, so nothing must seem to be."""
    held = job(states, names.TIMER_LATENESS, *VALUES, state=state)
    assert "ateness" not in text(states, held)
    assert "ateness" not in flinks(states.snapshot(held))


def test_summary_of_nothing_is_absent(states: Any) -> None:
    """In Flink's it would be all NaN; the histogram's counts are 0."""
    held = job(states, names.TIMER_LATENESS)
    assert "ateness" not in flinks(states.snapshot(held))
    assert "timer_lateness_seconds_count" in text(states, held)


def test_every_distribution_has_a_family() -> None:
    """Base unit last, no word of a type."""
    assert set(FAMILIES) == names.DISTRIBUTIONS
    for family in FAMILIES.values():
        assert re.fullmatch(r"streamgauge(_[a-z]+)+_seconds", family.name)
        assert family.help.endswith(".")
