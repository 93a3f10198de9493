"""Rows that a source has beyond what was read, and of which sources that is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_hooks.pending import Pending
from spark_hooks.progress import Progress, Source

RECORDED = [json.loads(line) for line in Path(__file__).with_name("recorded_progress.jsonl").read_text().splitlines()]
"""What Spark told of queries on files, a rate, a socket, and files with a rate; see `backlog` for what was unread."""


def recorded(spark: str, query: str) -> list[Progress]:
    rows = [row["progress"] for row in RECORDED if (row["spark"], row["query"]) == (spark, query)]
    return [msgspec.convert(row, Progress) for row in rows]


def source(start: Any, end: Any, latest: Any, rows: int) -> Source:
    return Source("any", start, end, latest, rows)


def after(*batches: Source) -> Pending:
    pending = Pending()
    for batch in batches:
        pending.take(batch)
    return pending


def test_kafkas_offsets_are_rows_from_the_first_batch_on() -> None:
    """A map of topics, each a map of partitions."""
    start, end = {"a": {"0": 0, "1": 0}, "b": {"0": 5}}, {"a": {"0": 10, "1": 4}, "b": {"0": 5}}
    pending = after(source(start, end, {"a": {"0": 123, "1": 4}, "b": {"0": 7}}, 14))
    assert pending.rows == 115
    assert pending.partitions() == {("a", "0"): 113, ("a", "1"): 0, ("b", "0"): 2}
    assert not pending.caught_up


def test_kafkas_gaps_change_nothing() -> None:
    """Transactions and compaction leave holes: fewer rows than offsets."""
    assert after(source({"a": {"0": 0}}, {"a": {"0": 10}}, {"a": {"0": 12}}, 7)).rows == 2


def test_source_that_took_all_has_nothing_pending() -> None:
    """As Spark knew at the trigger."""
    pending = after(source({"a": {"0": 0}}, {"a": {"0": 10}}, {"a": {"0": 10}}, 10))
    assert (pending.rows, pending.caught_up, pending.partitions()) == (0, True, {("a", "0"): 0})


def test_plain_number_is_rows_once_a_batch_has_shown_it() -> None:
    """Before, nobody knows; and a batch that reads nothing shows nothing."""
    assert after(source(None, 5, 9, 5)).rows is None
    assert after(source(5, 5, 9, 0)).rows is None
    assert after(source(5, 8, 9, 3)).rows == 1
    assert after(source(5, 8, 9, 3), source(8, 8, 20, 0)).rows == 12


def test_plain_number_that_once_was_no_row_is_none_for_good() -> None:
    """Seconds of ten rows each; that one of them had a single row proves nothing."""
    assert after(source(0, 1, 4, 10), source(1, 2, 4, 1)).rows is None
    assert after(source(0, 1, 4, 1), source(1, 2, 4, 10), source(2, 3, 4, 1)).rows is None


def test_offset_that_grows_without_rows_counts_none() -> None:
    """A second of a slow rate in which no row came."""
    assert after(source(0, 1, 4, 1), source(1, 2, 4, 0)).rows is None


@pytest.mark.parametrize(("rows", "pending"), [(8, 4), (7, None)], ids=["rows", "no rows"])
def test_flat_map_is_held_to_the_same_as_a_number(rows: int, pending: int | None) -> None:
    """A source may count by partitions alone, or tell an offset and a time."""
    assert after(source({"0": 0, "1": 0}, {"0": 5, "1": 3}, {"0": 9, "1": 3}, rows)).rows == pending


@pytest.mark.parametrize(
    ("end", "latest"),
    [
        ({"t": {"0": 5}}, None),
        (None, {"t": {"0": 5}}),
        ({"t": {"0": "x"}}, {"t": {"0": "y"}}),
        ({}, {}),
        ({"t": {"0": True}}, {"t": {"0": True}}),
        ({"t": 5}, {"t": 6}),
    ],
    ids=["latest unknown", "no end", "texts", "nothing", "truths", "flat"],
)
def test_what_cannot_be_counted_is_not_known(end: Any, latest: Any) -> None:
    """Never 0 in its place."""
    pending = after(source(None, end, latest, 5))
    assert pending.rows is None
    assert pending.partitions() == {}


def test_more_rows_than_travel_are_not_known() -> None:
    """A frame must not fail over a number of a connector's."""
    assert after(source(None, {"t": {"0": 0}}, {"t": {"0": 2**63}}, 5)).rows is None
    assert after(source(None, {"t": {"0": 0}}, {"t": {"0": 2**63 - 1}}, 5)).rows == 2**63 - 1


def test_nothing_is_known_before_the_first_batch() -> None:
    """Not even that it has caught up."""
    assert (Pending().rows, Pending().caught_up) == (None, False)


@pytest.mark.parametrize("spark", ["4.3.0", "3.5.9"])
def test_socket_counts_rows(spark: str) -> None:
    """Real progress: its offsets grow by the rows it read, and it takes all there is."""
    pending = Pending()
    batches = recorded(spark, "socket")
    assert sum(batch.num_input_rows for batch in batches) > 0
    for batch in batches:
        pending.take(batch.sources[0])
    assert (pending.rows, pending.caught_up) == (0, True)


@pytest.mark.parametrize("spark", ["4.3.0", "3.5.9"])
@pytest.mark.parametrize("query", ["rate", "files"])
def test_rates_and_files_do_not(spark: str, query: str) -> None:
    """Real progress: a rate's offsets are seconds, those of files batches."""
    pending = Pending()
    for batch in recorded(spark, query):
        pending.take(batch.sources[0])
        assert pending.rows is None
    assert pending.caught_up == (query == "rate")
