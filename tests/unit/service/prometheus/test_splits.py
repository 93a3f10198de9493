"""Splits in /metrics: a series of each, none where nothing is known."""

from __future__ import annotations

import re
from typing import Any

import pytest

from collector.taps import Taps
from service.prometheus.granularity import Granularity
from service.prometheus.splits import FAMILIES
from streamgauge import names
from tests.exposed import idiomatic

JOB = f'job_id="{"d" * 32}",job_name="flights by hour"'
VERTEX = f'vertex_id="{"c" * 32}",vertex_name="Scan -> Filter"'
COLUMNS = {
    names.SPLIT_CURRENT_WATERMARK: [4_500, -3_000, -(2**63) + 2_001, 2**63 - 1, None],
    names.SPLIT_WATERMARK_DRIFT: [0, 7_500, None, None, None],
    names.SPLIT_RECORDS: [10, 20, 0, 3, None],
    names.SPLIT_RECORDS_AT_RISK: [0, 5, None, None, None],
    names.SPLIT_IDLE: [0, 0, 1, 1, None],
}


def job(states: Any, **changes: Any) -> Any:
    tap = states.tap("0", 'a"b', "2", "3", "4", columns=COLUMNS, max_out_of_orderness_ms=2_000)
    return states.job(states.vertex(operators={"Source": {}}, taps=Taps((tap,))), **changes)


def told(states: Any, held: Any, granularity: Granularity = "operator") -> list[str]:
    rendered = idiomatic(states.snapshot(held), granularity)
    return [line for line in rendered.splitlines() if line.startswith("streamgauge_split_")]


def series(name: str, split: str, value: str) -> str:
    return f'streamgauge_split_{name}{{{JOB},split="{split}",tap="fed",{VERTEX}}} {value}'


def test_every_split_has_its_series(states: Any) -> None:
    """Seconds and counts; a watermark that is no time has neither time nor lag; what is not told is absent."""
    assert told(states, job(states)) == [
        series("watermark_timestamp_seconds", "0", "4.5"),
        series("watermark_timestamp_seconds", r"a\"b", "-3.0"),
        series("watermark_lag_seconds", "0", "0.5"),
        series("watermark_lag_seconds", r"a\"b", "8.0"),
        series("watermark_drift_seconds", "0", "0.0"),
        series("watermark_drift_seconds", r"a\"b", "7.5"),
        series("records_total", "0", "10.0"),
        series("records_total", r"a\"b", "20.0"),
        series("records_total", "2", "0.0"),
        series("records_total", "3", "3.0"),
        series("records_at_risk_total", "0", "0.0"),
        series("records_at_risk_total", r"a\"b", "5.0"),
        series("idle", "0", "0.0"),
        series("idle", r"a\"b", "0.0"),
        series("idle", "2", "1.0"),
        series("idle", "3", "1.0"),
    ]


def test_splits_are_not_told_by_subtask(states: Any) -> None:
    """A split is what it is, whichever task reads it."""
    assert told(states, job(states), "subtask") == told(states, job(states))


@pytest.mark.parametrize("state", ["FINISHED", "SUSPENDED"])
def test_ended_and_silent_jobs_tell_no_splits(states: Any, state: str) -> None:
    """Nothing new is heard of them, so nothing must seem to be."""
    assert told(states, job(states, state=state)) == []


def test_names_are_what_promtool_asks_for() -> None:
    """Base units, _total on counters alone."""
    for family in FAMILIES:
        assert re.fullmatch(r"streamgauge_split(_[a-z]+)+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert (family.divisor == 1e3) == family.name.endswith("_seconds")
        assert family.help.endswith(".")
