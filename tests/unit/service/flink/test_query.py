"""Requests are parsed as Flink parses them."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.store import Snapshot
from service.flink.query import AGGREGATES, Query
from streamgauge.errors import UnresolvableParameter

EMPTY = Snapshot(MappingProxyType({}), MappingProxyType({}))


def query(query_string: str = "", **path: str) -> Query:
    return Query.parse(EMPTY, 0, path, query_string.encode())


@pytest.mark.parametrize(
    ("query_string", "words"),
    [
        ("", None),
        ("x=1", None),
        ("get=", [""]),
        ("get=a", ["a"]),
        ("get=a,b", ["a", "b"]),
        ("get=a%2Cb", ["a", "b"]),
        ("get=a&get=b", ["a", "b"]),
        ("get=b,a,b", ["b", "a", "b"]),
        ("get=a,", ["a"]),
        ("get=,a", ["", "a"]),
        ("get=a,,b,,", ["a", "", "b"]),
        ("get=,", []),
        ("get=a+b", ["a b"]),
        ("get=a;get=b", ["a", "b"]),
        ("get=a%3Bb;x", ["a;b"]),
    ],
)
def test_words_are_split_as_java_splits(query_string: str, words: list[str] | None) -> None:
    """Java's String.split: empty words at the end are dropped, others kept; repeats are joined."""
    assert query(query_string).words("get") == words


@pytest.mark.parametrize("query_string", ["", "agg=", "get=,"])
def test_no_metric_asks_for_ids(query_string: str) -> None:
    """Without a word in `get` the ids are listed."""
    assert query(query_string).metrics() is None


@given(st.lists(st.sampled_from([*AGGREGATES, "MAX", "Skew"]), min_size=1))
def test_aggregates_are_those_named_in_flinks_order(asked: list[str]) -> None:
    """Case, order and repetition in `agg` do not matter."""
    wanted = {word.lower() for word in asked}
    assert query("agg=" + ",".join(asked)).aggregates() == tuple(mode for mode in AGGREGATES if mode in wanted)


def test_all_aggregates_without_agg() -> None:
    """Five of them."""
    assert query().aggregates() == ("min", "max", "avg", "sum", "skew")


@pytest.mark.parametrize("value", ["median", "", "max,median", ",max"])
def test_unknown_aggregate_is_refused_as_it_came(value: str) -> None:
    """The message holds the whole parameter."""
    with pytest.raises(UnresolvableParameter) as error:
        query(f"agg={value}").aggregates()
    assert str(error.value) == f'Cannot resolve query parameter (agg) from value "{value}".'


@given(st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 30)), min_size=1), st.integers(0, 20))
def test_subtasks_are_the_union_of_the_ranges(ranges: list[tuple[int, int | None]], size: int) -> None:
    """Both ends included; what the vertex does not have is passed over."""
    words = [str(first) if last is None else f"{first}-{last}" for first, last in ranges]
    wanted = {index for first, last in ranges for index in range(first, (first if last is None else last) + 1)}
    assert query("subtasks=" + ",".join(words)).subtasks(size) == sorted(index for index in wanted if index < size)


@pytest.mark.parametrize("value", ["a", "", "0,a", "-1", "0-", "0-1-2", "0-b", "\u0661"])
def test_malformed_subtasks_select_none(value: str) -> None:
    """Flink answers [] and says nothing."""
    assert query(f"subtasks={value}").subtasks(4) == []


def test_huge_subtask_range_is_cut_to_the_vertex() -> None:
    """A range costs what the vertex costs, not what it says."""
    assert query("subtasks=0-2147483647").subtasks(3) == [0, 1, 2]


@given(st.text("0123456789abcdefABCDEF", min_size=32, max_size=32))
def test_ids_are_read_in_any_case(value: str) -> None:
    """Flink parses hex digits of both cases and writes lower ones."""
    assert query(jobid=value).path["jobid"] == value.lower()


@pytest.mark.parametrize("value", ["xyz", "abcd", "g" * 32, "0" * 33, "", " " + "0" * 31, "\u0660" * 32])
@pytest.mark.parametrize("name", ["jobid", "vertexid"])
def test_malformed_ids_are_refused_as_they_came(name: str, value: str) -> None:
    """32 hex digits or 400."""
    with pytest.raises(UnresolvableParameter) as error:
        query(**{name: value})
    assert str(error.value) == f'Cannot resolve path parameter ({name}) from value "{value}".'


@pytest.mark.parametrize("value", ["abc", "-1", "1.0", "2147483648", ""])
def test_malformed_subtask_index_is_refused(value: str) -> None:
    """A Java int of at least 0."""
    with pytest.raises(UnresolvableParameter):
        query(subtaskindex=value)


@pytest.mark.parametrize(("value", "index"), [("0", 0), ("007", 7), ("+1", 1), ("2147483647", 2**31 - 1)])
def test_subtask_index_is_read_as_java_reads_it(value: str, index: int) -> None:
    """Integer.parseInt takes leading zeros and a plus sign."""
    assert query(subtaskindex=value).subtask() == index


def test_malformed_job_in_a_list_is_refused() -> None:
    """/jobs/metrics?jobs= takes ids only."""
    with pytest.raises(UnresolvableParameter) as error:
        query(f"jobs={'0' * 32},xyz").ids("jobs")
    assert str(error.value) == f'Cannot resolve query parameter (jobs) from value "{"0" * 32},xyz".'
