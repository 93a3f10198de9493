"""Both formats, byte by byte: prometheus_client's own rendering of the same families says what is right."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from prometheus_client.utils import floatToGoString

from service.prometheus.labels import around, labels
from service.prometheus.text import Column, Exposition, Kind, TooManySeries, histogram_lines, number, summary_lines

EDGES = (
    0,
    1,
    -1,
    999_999,
    10**6,
    1_050_000,
    -(10**6),
    2**53,
    2**63 - 1,
    -(2**63),
    0.1,
    1e6,
    999_999.5,
    12345678.9,
    1e15,
)
FINITE = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EDGES)
VALUES = FINITE | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 1e16, 1.5e16, 1e21])
HOSTILE = st.text(max_size=6) | st.text(alphabet='ab"\\\n\r\0{}=,# ', max_size=9)
NAMES = st.lists(
    st.sampled_from(["a", "job_id", "kz", "lf", "quantilf", "pz", "subtask", "z"]), unique=True, max_size=4
)
KINDS = st.sampled_from(["counter", "gauge", "histogram", "summary"])


class Family(NamedTuple):
    """Labels → values: one of a counter or gauge, of others one for each bound or rank, and last the sum or count."""

    name: str
    kind: Kind
    text: str
    label_names: list[str]
    samples: dict[tuple[str, ...], list[float]]

    def ladder(self) -> list[float]:
        """Bounds or ranks: those of 10^6 and more are written as Go does."""
        places = range(len(next(iter(self.samples.values()))) - 1)
        return [place / 8 for place in places] if self.kind == "summary" else [0.25 * 10**place for place in places]


@st.composite
def families(draw: st.DrawFn, number: int) -> Family:
    kind = draw(KINDS)
    label_names = draw(NAMES)
    if kind in ("histogram", "summary") and not label_names:
        label_names = ["a"]
    size = draw(st.integers(1, 9))
    keys, numbers = st.tuples(*[HOSTILE] * len(label_names)), st.lists(VALUES, min_size=size, max_size=size)
    values = draw(st.dictionaries(keys, numbers, min_size=1, max_size=3))
    name = f"f{number}_seconds" + ("_total" if kind == "counter" else "")
    return Family(name, kind, draw(HOSTILE), label_names, values)


@st.composite
def pages(draw: st.DrawFn) -> list[Family]:
    return [draw(families(number)) for number in range(draw(st.integers(1, 4)))]


def column(pairs: list[str], values: Any) -> Column:
    """Every label with a value, or one before and one behind them without."""
    if len(pairs) % 2:
        return Column(lambda: pairs, None, values)
    present = np.array([False, *[True] * len(pairs), False])
    return Column(lambda: ["before", *pairs, "behind"], present, values)


def ours(page: list[Family], openmetrics: bool, by_column: bool) -> bytes:
    exposition = Exposition(openmetrics)
    for family in page:
        named = {key: dict(zip(family.label_names, key, strict=True)) for key in family.samples}
        if family.kind in ("histogram", "summary"):
            for key, values in family.samples.items():
                inner = zip(family.ladder(), values[:-1], strict=True)
                if family.kind == "histogram":
                    own, lines = "le", histogram_lines(family.name, inner, values[-1], values[0])
                else:
                    own, lines = "quantile", summary_lines(family.name, inner, values[-1])
                exposition.add_block(family.name, family.kind, family.text, around(named[key], own), lines)
        elif by_column:
            numbers = np.array([float(values[0]) for values in family.samples.values()])
            pairs = [labels(each) for each in named.values()]
            exposition.add_column(family.name, family.kind, family.text, "whose", column(pairs, numbers))
        else:
            series = [(labels(named[key]), values[0]) for key, values in family.samples.items()]
            exposition.add(family.name, family.kind, family.text, series)
    return exposition.render() + (b"# EOF\n" if openmetrics else b"")


def theirs(page: list[Family], openmetrics: bool) -> bytes:
    class Told:
        def collect(self) -> list[Metric]:
            return [*map(metric, page)]

    registry = CollectorRegistry()
    registry.register(Told())
    return generate_openmetrics(registry) if openmetrics else generate_latest(registry)


def metric(family: Family) -> Metric:
    name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
    told = Metric(name, family.text, family.kind)
    for key, values in family.samples.items():
        pairs = dict(zip(family.label_names, key, strict=True))
        if family.kind in ("counter", "gauge"):
            told.add_sample(family.name, pairs, values[0])
            continue
        suffix, own = ("_bucket", "le") if family.kind == "histogram" else ("", "quantile")
        for step, value in zip(family.ladder(), values[:-1], strict=True):
            told.add_sample(name + suffix, {**pairs, own: floatToGoString(step)}, value)
        if family.kind == "histogram":
            told.add_sample(f"{name}_bucket", {**pairs, "le": "+Inf"}, values[-1])
        told.add_sample(f"{name}_count", pairs, values[-1])
        if family.kind == "histogram":
            told.add_sample(f"{name}_sum", pairs, values[0])
    return told


@settings(max_examples=300)
@given(pages(), st.booleans(), st.booleans())
def test_page_is_as_prometheus_client_renders_it(page: list[Family], openmetrics: bool, by_column: bool) -> None:
    """Byte for byte, both formats: any families, labels, help texts and values."""
    assert ours(page, openmetrics, by_column) == theirs(page, openmetrics)


def test_rendered_bytes() -> None:
    """HELP, TYPE, then the samples; families in the order they came, those without a sample left out."""
    exposition = Exposition()
    exposition.add("a_total", "counter", "Of a.", [("", 3)])
    exposition.add("b", "gauge", "Back\\slash and\nline.", [('{x="1"}', 0.5), ('{x="2"}', math.nan)])
    exposition.add("a_total", "counter", "ignored", [('{y="z"}', 1e21)])
    exposition.add("empty", "gauge", "Nothing.", [])
    exposition.add_column("none", "gauge", "Nothing.", "", column([], np.array([])))
    assert exposition.render() == (
        b"# HELP a_total Of a.\n# TYPE a_total counter\na_total 3.0\n"
        b'a_total{y="z"} 1e+21\n'
        b"# HELP b Back\\\\slash and\\nline.\n# TYPE b gauge\n"
        b'b{x="1"} 0.5\nb{x="2"} NaN\n'
    )


def test_openmetrics_names_a_counter_without_total() -> None:
    """Its samples have it; the end of the page is the caller's."""
    exposition = Exposition(openmetrics=True)
    exposition.add("a_total", "counter", 'Of "a".', [("", 3)])
    assert exposition.render() == b'# HELP a Of \\"a\\".\n# TYPE a counter\na_total 3.0\n'


@pytest.mark.parametrize("openmetrics", [False, True])
@given(st.dictionaries(st.text(), FINITE, min_size=1))
def test_any_label_value_reads_back(openmetrics: bool, samples: dict[str, float]) -> None:
    """Whatever a name holds, Prometheus reads that name."""
    exposition = Exposition(openmetrics)
    exposition.add("a", "gauge", "A.", [(labels({"x": key}), value) for key, value in samples.items()])
    page = exposition.render().decode()
    read: Any = read_openmetrics(page + "# EOF\n") if openmetrics else read_text(page)
    told = {sample.labels["x"]: sample.value for family in read for sample in family.samples}
    assert told == {key: float(value) for key, value in samples.items()}


@pytest.mark.parametrize(
    ("value", "written"),
    [(5, "5.0"), (0.1, "0.1"), (999_999, "999999.0"), (10**6, "1e+06"), (-(10**6), "-1000000.0"), (1.5e16, "1.5e+16")],
)
def test_number_is_written_as_go_does(value: float, written: str) -> None:
    """Exponents from 10^6 on, above 0."""
    assert number(value) == written


def test_a_series_that_comes_twice_is_rendered_once() -> None:
    """One duplicate could cost the whole scrape."""
    exposition = Exposition()
    exposition.add("a", "gauge", "A.", [('{x="1"}', 1), ('{x="1"}', 2)])
    exposition.add("a", "gauge", "A.", [('{x="1"}', 3)])
    assert exposition.render().endswith(b'\na{x="1"} 1.0\n')
    assert exposition.render().count(b"\na{") == exposition.series == 1


def test_a_column_that_comes_twice_is_rendered_once() -> None:
    """The first one; another's of the family is not touched."""
    exposition = Exposition()
    for whose, value in (("x", 5.0), ("x", 6.0), ("y", 7.0)):
        exposition.add_column("a", "gauge", "A.", whose, column([f'{{x="{whose}"}}'], np.array([value])))
    assert exposition.render() == b'# HELP a A.\n# TYPE a gauge\na{x="x"} 5.0\na{x="y"} 7.0\n'
    assert exposition.series == 2


def test_a_block_that_comes_twice_is_rendered_once() -> None:
    """The first one; others of the family are not touched."""
    exposition = Exposition()
    for value, count in (("1", 5), ("1", 6), ("2", 7)):
        exposition.add_block("a", "summary", "A.", around({"x": value}, "quantile"), summary_lines("a", [], count))
    assert exposition.render() == b'# HELP a A.\n# TYPE a summary\na_count{x="1"} 5.0\na_count{x="2"} 7.0\n'
    assert exposition.series == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", "summary"), ("a_count", "gauge")),
        (("a_count", "gauge"), ("a", "summary")),
        (("a_bucket", "gauge"), ("a", "histogram")),
        (("a", "gauge"), ("a_total", "counter")),
        (("a", "gauge"), ("a", "summary")),
    ],
    ids=str,
)
def test_a_family_whose_samples_are_anothers_is_left_out(first: tuple[str, Kind], second: tuple[str, Kind]) -> None:
    """Its samples would be the other's a second time, or OpenMetrics would refuse the name."""
    exposition = Exposition(openmetrics=True)
    for name, kind in (first, second):
        exposition.add(name, kind, f"{name} {kind}", [("", 1)])
    assert exposition.series == 1
    assert f"{first[0]} {first[1]}" in exposition.render().decode()


def test_lines_are_of_whatever_labels_they_get() -> None:
    """The same lines serve several; a label's value cannot take the place of another's."""
    lines = histogram_lines("a", [(0.5, 1)], 2, 3.5)
    exposition = Exposition()
    for value in ("\0", "y", 'le="+Inf"'):
        exposition.add_block("a", "histogram", "A.", around({"x": value}, "le"), lines)
    told = [sample.labels["x"] for family in read_text(exposition.render().decode()) for sample in family.samples]
    assert told == [*["\0"] * 4, *["y"] * 4, *['le="+Inf"'] * 4]


def test_what_is_no_text_does_not_cost_the_page() -> None:
    """Half a surrogate pair cannot be encoded."""
    exposition = Exposition()
    exposition.add("a", "gauge", "A.", [(labels({"x": "b\ud800"}), 1)])
    assert b'a{x="b?"} 1.0\n' in exposition.render()


def test_one_series_more_than_may_be_is_too_many() -> None:
    """However it comes; as many as may be are not."""
    exposition = Exposition(most=3)
    exposition.add("a", "gauge", "A.", [("", 1), ("", 2)])
    exposition.add_column("b", "gauge", "B.", "b", column(['{x="1"}', '{x="2"}'], np.array([1.0, 2.0])))
    exposition.foresee(0)
    with pytest.raises(TooManySeries):
        exposition.foresee(1)
    with pytest.raises(TooManySeries):
        exposition.add("c", "gauge", "C.", [("", 1)])


def test_labels_are_not_written_before_the_page_is_rendered() -> None:
    """A page that turns out too long has cost little."""
    asked = []

    def pairs() -> list[str]:
        asked.append(1)
        return [""]

    exposition = Exposition(most=1)
    exposition.add_column("a", "gauge", "A.", "a", Column(pairs, None, np.array([1.0])))
    assert not asked
    exposition.render()
    assert asked
