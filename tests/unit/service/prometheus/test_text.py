"""The text format, byte by byte."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from service.prometheus.text import Exposition, labels, number

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
