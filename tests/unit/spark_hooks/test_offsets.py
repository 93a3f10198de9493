"""Offsets of sources, compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.offsets import DEPTH, behind, between, reached


def deep(levels: int, value: int = 1) -> object:
    nested: object = value
    for _ in range(levels):
        nested = {"a": nested}
    return nested


DELTA = {"sourceVersion": 1, "reservoirId": "a-b", "reservoirVersion": 7, "index": -1, "isStartingVersion": False}


@pytest.mark.parametrize(
    ("end", "target", "expected"),
    [
        pytest.param(17, 17, True, id="equal"),
        pytest.param(18, 17, True, id="past"),
        pytest.param(16, 17, False, id="before"),
        pytest.param("16", 17, False, id="numeric-string"),
        pytest.param("17", "17", True, id="numeric-strings"),
        pytest.param("9", "10", False, id="numeric-strings-compare-as-numbers"),
        pytest.param(2**63 - 2, 2**63 - 1, False, id="longs-that-no-float-holds-apart"),
        pytest.param({"t": {"0": 5, "1": 9}}, {"t": {"0": 5, "1": 8}}, True, id="kafka-all-partitions"),
        pytest.param({"t": {"0": 5, "1": 9}}, {"t": {"0": 6, "1": 8}}, False, id="kafka-one-partition-short"),
        pytest.param({"t": {"0": 5}}, {"t": {"0": 5, "1": 8}, "gone": {"0": 1}}, True, id="partition-and-topic-gone"),
        pytest.param({"t": {"0": 5, "1": 1}, "new": {"0": 1}}, {"t": {"0": 5}}, True, id="only-end-has"),
        pytest.param('{"t":{"0":5}}', {"t": {"0": 6}}, False, id="json-text"),
        pytest.param('{"t":{"0":5}}', '{"t": {"0": 5}}', True, id="json-texts"),
        pytest.param({}, {}, True, id="empty-maps"),
        pytest.param({"logOffset": 3}, {"logOffset": 4}, False, id="log-offset"),
        pytest.param("at noon", "at noon", True, id="equal-text"),
        pytest.param("at noon", "at one", None, id="other-text"),
        pytest.param([1, 2], [1, 2], True, id="equal-list"),
        pytest.param([1, 2], [1, 3], None, id="other-list"),
        pytest.param(DELTA, DELTA, True, id="equal-map-of-all-kinds"),
        pytest.param(DELTA, DELTA | {"reservoirVersion": 6, "index": 4}, None, id="map-of-all-kinds"),
        pytest.param({"t": 5}, 5, None, id="map-and-number"),
        pytest.param({"t": {"0": 5}}, {"t": 5}, None, id="maps-of-other-shape"),
        pytest.param(None, 5, None, id="end-unknown"),
        pytest.param(5, None, None, id="target-unknown"),
        pytest.param(None, None, None, id="both-unknown"),
        pytest.param("null", "null", None, id="null-as-text"),
        pytest.param({"0": None}, {"0": 1}, None, id="unknown-partition"),
        pytest.param(True, False, None, id="bools-are-no-numbers"),
        pytest.param("NaN", 5, None, id="not-a-number"),
        pytest.param(5, float("inf"), None, id="not-finite"),
        pytest.param(deep(50_000), {"a": 1}, None, id="deep-and-number"),
        pytest.param(deep(50_000), deep(49_999), None, id="much-too-deep"),
        pytest.param(deep(DEPTH + 2), deep(DEPTH + 2, 2), None, id="too-deep"),
        pytest.param(deep(DEPTH), deep(DEPTH, 2), False, id="as-deep-as-it-may-be"),
        pytest.param("[" * 100_000, 5, None, id="text-too-deep"),
    ],
)
def test_reached_compares_numbers_and_maps_of_them(end: object, target: object, expected: bool | None) -> None:
    """What cannot be compared is not known."""
    assert reached(end, target) is expected


@pytest.mark.parametrize(
    ("end", "latest", "expected"),
    [
        pytest.param(5, 12, {(): 7}, id="number"),
        pytest.param(12, 5, {(): 0}, id="never-negative"),
        pytest.param("5", "12", {(): 7}, id="numeric-strings"),
        pytest.param(0, 2**63 - 1, {(): 2**63 - 1}, id="exact-longs"),
        pytest.param(1.5, 3, {(): 2}, id="part-of-one-is-one"),
        pytest.param(
            {"t": {"0": 5, "1": 9}, "u": {"0": 1}},
            {"t": {"0": 9, "1": 8}, "u": {"0": 3}},
            {("t", "0"): 4, ("t", "1"): 0, ("u", "0"): 2},
            id="kafka",
        ),
        pytest.param({"t": {"0": 5}}, {"t": {"0": 6, "1": 3}}, {("t", "0"): 1}, id="new-partition-is-not-known"),
        pytest.param('{"t":{"0":5}}', {"t": {"0": 6}}, {("t", "0"): 1}, id="json-text"),
        pytest.param({"t": {"0": "5"}}, {"t": {"0": "6"}}, {("t", "0"): 1}, id="numeric-strings-in-a-map"),
        pytest.param("at noon", "at noon", {(): 0}, id="equal-text"),
        pytest.param(DELTA, DELTA, {(): 0}, id="equal-map-of-all-kinds"),
        pytest.param(DELTA, DELTA | {"index": 4}, None, id="map-of-all-kinds"),
        pytest.param("at noon", "at one", None, id="other-text"),
        pytest.param(5, None, None, id="latest-unknown"),
        pytest.param({}, {}, {}, id="empty-maps"),
    ],
)
def test_behind_tells_each_part(end: object, latest: object, expected: dict[tuple[str, ...], int] | None) -> None:
    """Parts by their path; what cannot be compared is not known."""
    assert behind(end, latest) == expected


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(_JSON, _JSON)
def test_the_two_agree_on_any_json(end: object, latest: object) -> None:
    """Reached is nothing behind; neither raises, whatever a source tells."""
    ahead = behind(end, latest)
    assert reached(end, latest) is (None if ahead is None else all(distance == 0 for distance in ahead.values()))
    assert ahead is None or all(distance >= 0 for distance in ahead.values())


@pytest.mark.parametrize(
    ("before", "after", "share", "found"),
    [
        (10, 20, 0.0, 10),
        (10, 20, 0.25, 13),
        (10, 20, 1.0, 20),
        ("10", "20", 0.5, 15),
        (20, 10, 0.5, 10),
        ({"t": {"0": 4, "1": 10}}, {"t": {"0": 8, "1": 10}}, 0.5, {"t": {"0": 6, "1": 10}}),
        ({"t": {"0": 4}}, {"t": {"0": 8, "1": 6}}, 0.5, {"t": {"0": 6, "1": 6}}),
        ('{"t": {"0": 4}}', {"t": {"0": 8}}, 0.5, {"t": {"0": 6}}),
        (None, 20, 0.5, 20),
        ("here", "there", 0.5, "there"),
        ({"t": "here"}, {"t": "there"}, 0.5, {"t": "there"}),
        (2**62, 2**62 + 4, 0.5, 2**62 + 2),
    ],
)
def test_between_two_offsets_lies_where_a_source_stood(
    before: object, after: object, share: float, found: object
) -> None:
    """Numbers part by part, rounded up; the later one where nothing else can be told."""
    assert between(before, after, share) == found
