"""Labels: sorted, escaped, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.prometheus.labels import LABEL_CHARS, around, bounded, labels

PAIRS = st.dictionaries(st.sampled_from(["a", "kz", "lf", "z"]), st.text(max_size=5), min_size=1)


def test_labels_are_sorted_and_escaped() -> None:
    """By name; backslashes, quotes and line feeds of values."""
    assert labels({"b": 'x"y\\z\n', "a": "1"}) == '{a="1",b="x\\"y\\\\z\\n"}'
    assert labels({}) == ""


@given(PAIRS, st.sampled_from(["a0", "le", "quantile", "zz", "A"]))
def test_a_label_that_is_put_in_stands_where_it_is_sorted(pairs: dict[str, str], name: str) -> None:
    """As if it had been one of them; without it they are as ever."""
    own = around(pairs, name)
    assert f'{own.before}{name}="0.5"{own.after}' == labels({**pairs, name: "0.5"})
    assert own.whole == labels(pairs)


@pytest.mark.parametrize("length", [LABEL_CHARS, LABEL_CHARS + 1, 10_000])
def test_no_value_is_longer_than_the_bound(length: int) -> None:
    """A value that fits is left as it is, a longer one begins as it did."""
    value = "é" * length
    assert len(bounded(value)) == LABEL_CHARS
    assert (bounded(value) == value) == (length == LABEL_CHARS)
    assert bounded(value)[:400] == value[:400]


def test_long_values_that_differ_still_do() -> None:
    """Wherever they differ; or two series would be one."""
    values = ["x" * 10_000, "x" * 9_999, "x" * 9_999 + "y", "y" + "x" * 9_999, "\ud800" + "x" * 9_999]
    assert len(set(map(bounded, values))) == len(values)
