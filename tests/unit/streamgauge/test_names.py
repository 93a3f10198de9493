"""The catalogue's own order: unique, complete, consistent."""

import dataclasses
from collections import Counter
from typing import get_args

import pytest

from streamgauge import catalogue, names


def test_a_name_is_there_once_a_scope() -> None:
    """Two entries for one name would hide each other."""
    counted = Counter((metric.scope, metric.name) for metric in catalogue.METRICS)
    assert [key for key, count in counted.items() if count > 1] == []


@pytest.mark.parametrize("metric", catalogue.METRICS, ids=lambda metric: f"{metric.scope}-{metric.name}")
def test_every_entry_is_found_and_says_what_it_is(metric: catalogue.Metric) -> None:
    """`find` knows each entry at its scope; type and scope are of the declared ones, the help is a sentence."""
    assert catalogue.find(metric.scope, metric.name) is metric
    assert metric.type in get_args(catalogue.Type)
    assert metric.scope in get_args(catalogue.Scope)
    assert metric.source
    assert metric.help.endswith(".")
    for text in (metric.source, metric.help, metric.formula, metric.estimate):
        assert text.strip() == text
        assert "\n" not in text
    assert not metric.formula.endswith(".")
    assert not metric.estimate.endswith(".")


def test_patterns_name_what_varies() -> None:
    """A '<…>' stands for each part; no entry of one name has any, and no pattern has the name of an entry."""
    assert not any("<" in metric.name for metric in catalogue.METRICS)
    for pattern in catalogue.PATTERNS:
        assert pattern.name.count("<") == pattern.name.count(">") > 0
        assert pattern.help.endswith(".")


def test_a_name_that_is_not_there_is_none() -> None:
    """`find` looks at the scope too."""
    assert catalogue.find("vertex", "numberOfUnicorns") is None
    assert catalogue.find("vertex", names.BUSY_TIME) is not None
    assert catalogue.find("job", names.BUSY_TIME) is None


def test_rates_and_only_rates_are_meters_per_second() -> None:
    """A meter is a counter's name with `PerSecond`, in its unit a second; a coordinator's names are Spark's."""
    for metric in catalogue.METRICS:
        if metric.type != "meter":
            continue
        assert metric.name.endswith(names.PER_SECOND)
        counter = catalogue.find(metric.scope, metric.name.removesuffix(names.PER_SECOND))
        assert counter is not None
        assert (counter.type, f"{counter.unit}/s") == ("counter", metric.unit)
    for metric in catalogue.METRICS:
        if metric.name.endswith(names.PER_SECOND) and metric.type != "meter" and metric.scope != "coordinator":
            assert metric.unit == "ms/s"


def test_operators_have_what_vertices_have() -> None:
    """An operator's records are a part of its vertex's: the ends of the chain are the vertex's own."""
    counted = (names.NUM_RECORDS_IN, names.NUM_RECORDS_OUT)
    operator = {
        metric.name: metric
        for metric in catalogue.METRICS
        if metric.scope == "operator" and metric.name.startswith(counted)
    }
    assert operator
    for name, metric in operator.items():
        of_vertex = catalogue.find("vertex", name)
        assert of_vertex is not None
        assert (of_vertex.type, of_vertex.unit) == (metric.type, metric.unit)


def test_what_a_task_reads_is_told_under_both_names() -> None:
    """Flink tells network input plainly and under `Shuffle.Netty.Input.`; the two agree in type and unit."""
    prefixed = [
        metric
        for metric in catalogue.METRICS
        if metric.name.startswith(names.SHUFFLE_INPUT) and not metric.name.startswith(names.INPUT_BUFFERS)
    ]
    assert prefixed
    for metric in prefixed:
        plain = catalogue.find("vertex", metric.name.removeprefix(names.SHUFFLE_INPUT))
        assert plain is not None
        assert (plain.type, plain.unit, plain.help) == (metric.type, metric.unit, metric.help) or metric.type == "meter"


def test_transient_gauges_are_the_shares_of_time() -> None:
    """They go when a job ends; of a vertex three make 1000 ms a second together, of a split all three."""
    assert sorted(names.TRANSIENT) == [
        "backPressuredTimeMsPerSecond",
        "busyTimeMsPerSecond",
        "idleTimeMsPerSecond",
        "slotWaitTimeMsPerSecond",
        "watermark.activeTimeMsPerSecond",
        "watermark.idleTimeMsPerSecond",
        "watermark.pausedTimeMsPerSecond",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Source: datagen", "Source__datagen"),
        ("Count Map", "Count_Map"),
        ("a.b,c", "a_b_c"),
        ("Source: src[1]", "Source__src[1]"),
        ("Sort -> Sink", "Sort_->_Sink"),
        ("größe", "größe"),
        ("", ""),
    ],
)
def test_only_four_characters_are_filtered(name: str, shown: str) -> None:
    """' ', '.', ':' and ',' become '_'; everything else stays."""
    assert names.filtered(name) == shown


def test_an_entry_cannot_be_changed() -> None:
    """The catalogue is shared by everything in the process."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalogue.METRICS[0].name = "other"  # type: ignore[misc]
