"""The text format, byte by byte."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from service.prometheus.text import Exposition, histogram_lines, labels, number, summary_lines

VALUES = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)


def test_rendered_bytes() -> None:
    """HELP, TYPE, then the samples; families in the order they came."""
    exposition = Exposition()
    exposition.add("a_total", "counter", "Of a.", [("", 3)])
    exposition.add("b", "gauge", "Back\\slash and\nline.", [('x="1"', 0.5), ('x="2"', math.nan), ('x="3"', -math.inf)])
    exposition.add("a_total", "counter", "ignored", [('y="z"', 1e21)])
    exposition.add("empty", "gauge", "Nothing.", [])
    assert exposition.render() == (
        b"# HELP a_total Of a.\n# TYPE a_total counter\na_total 3\n"
        b'a_total{y="z"} 1e+21\n'
        b"# HELP b Back\\\\slash and\\nline.\n# TYPE b gauge\n"
        b'b{x="1"} 0.5\nb{x="2"} NaN\nb{x="3"} -Inf\n'
    )


def test_a_series_that_comes_twice_is_rendered_once() -> None:
    """One duplicate would make Prometheus refuse everything."""
    exposition = Exposition()
    exposition.add("a", "gauge", "A.", [('x="1"', 1), ('x="1"', 2)])
    exposition.add("a", "gauge", "A.", [('x="1"', 3)])
    assert exposition.render().count(b"\na{") == 1
    assert exposition.render().endswith(b'a{x="1"} 1\n')


@given(st.dictionaries(st.text(), VALUES, min_size=1))
def test_any_label_value_reads_back(samples: dict[str, float]) -> None:
    """Whatever a name holds, Prometheus reads that name."""
    # The format ends lines with \n alone; the parser is fed by lines and takes other separators for ends too.
    samples = {key: value for key, value in samples.items() if len(f"x{key}x".splitlines()) == 1 or "\n" in key}
    samples = {key: value for key, value in samples.items() if len(key.replace("\n", "").splitlines()) <= 1}
    exposition = Exposition()
    exposition.add("a", "gauge", "A.", [(labels({"x": key}), value) for key, value in samples.items()])
    read = {
        sample.labels["x"]: sample.value
        for family in text_string_to_metric_families(exposition.render().decode())
        for sample in family.samples
    }
    assert read == {key: float(value) for key, value in samples.items()}


@pytest.mark.parametrize(("value", "written"), [(5, "5"), (0.1, "0.1"), (1e16, "1e+16"), (math.inf, "+Inf")])
def test_number(value: float, written: str) -> None:
    """As Go parses them."""
    assert number(value) == written


class Told:
    """What prometheus_client renders: one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]


def rendered(family: Metric) -> bytes:
    registry = CollectorRegistry()
    registry.register(Told(family))
    return generate_latest(registry)


COUNTS = st.lists(st.integers(0, 999_999), min_size=1, max_size=9).map(sorted)


@given(COUNTS, st.floats(0, 999_999), st.text(alphabet='ab"\\\n', max_size=5))
def test_histogram_is_as_prometheus_client_renders_it(counts: list[int], total: float, text: str) -> None:
    """Byte for byte: bounds ascending, +Inf, count, sum. (From 10^6 on it writes as Go does.)"""
    bounds = [0.001 * 2**place for place in range(len(counts) - 1)]
    exposition = Exposition()
    lines = histogram_lines("a_seconds", zip(bounds, counts[:-1], strict=True), counts[-1], total)
    exposition.add_block("a_seconds", "histogram", text, labels({"job": text}), lines)
    family = HistogramMetricFamily("a_seconds", text, labels=["job"])
    buckets = [*zip(map(str, bounds), counts[:-1], strict=True), ("+Inf", counts[-1])]
    family.add_metric([text], buckets, total)
    assert exposition.render() == rendered(family)


def test_summary_is_as_prometheus_client_renders_it() -> None:
    """Byte for byte, but for the sum: Flink's summaries have none."""
    exposition = Exposition()
    lines = summary_lines("a", [(0.5, 18930.5), (0.999, 21277.0)], 7)
    exposition.add_block("a", "summary", "A.", labels({"job": "x"}), lines)
    family = SummaryMetricFamily("a", "A.", labels=["job"])
    for rank, value in (("0.5", 18930.5), ("0.999", 21277.0)):
        family.add_sample("a", {"job": "x", "quantile": rank}, value)
    family.add_sample("a_count", {"job": "x"}, 7)
    assert exposition.render() == rendered(family)


def test_a_block_that_comes_twice_is_rendered_once() -> None:
    """The first one; others of the family are not touched."""
    exposition = Exposition()
    for pairs, count in (('x="1"', 5), ('x="1"', 6), ('x="2"', 7)):
        exposition.add_block("a", "summary", "A.", pairs, summary_lines("a", [], count))
    assert exposition.render() == b'# HELP a A.\n# TYPE a summary\na_count{x="1"} 5.0\na_count{x="2"} 7.0\n'


def test_lines_are_of_whatever_labels_they_get() -> None:
    """The same lines serve several; a label's value cannot take the place of another's."""
    lines = histogram_lines("a", [(0.5, 1)], 2, 3.5)
    exposition = Exposition()
    exposition.add_block("a", "histogram", "A.", labels({"x": "\0"}), lines)
    exposition.add_block("a", "histogram", "A.", labels({"x": "y"}), lines)
    for value in ("\0", "y"):
        assert (
            f'a_bucket{{x="{value}",le="0.5"}} 1.0\na_bucket{{x="{value}",le="+Inf"}} 2.0\n'
            in exposition.render().decode()
        )
