"""What the driver knows of a query's sources, and whose it is."""

from __future__ import annotations

import json

import pytest

from spark_hooks.plan import Operator
from spark_hooks.progress import Source, read
from spark_hooks.records import QueryProgress
from spark_hooks.sources import METRICS, NAME_CHARS, Sources
from streamgauge import catalogue, names


def scan(identity: str, leaf: int, node: str = "MicroBatchScan") -> Operator:
    return Operator(identity, f"Source: {identity}", node, "", (), (), is_source=True, leaf=leaf)


def told(*sources: Source) -> Sources:
    found = Sources()
    found.progress(sources)
    return found


def test_sources_are_the_scans_from_left_to_right() -> None:
    """The order in which vertices are held says nothing; where the scan stands in the plan does."""
    sources = told(Source("left", 3), Source("right", 4))
    found = sources.metrics(
        [("v2", scan("b", 1)), ("v1", scan("a", 0)), ("v1", Operator("c", "Project", "", "", (), ()))]
    )
    assert found == {("v1", "a"): {names.INPUT_ROWS: 3}, ("v2", "b"): {names.INPUT_ROWS: 4}}


def test_rows_add_up_over_the_run() -> None:
    """Rows are those of all batches, rates those of the last one; a rate that Spark leaves out is absent."""
    sources = told(Source("rate", 3, 30.0, 15.0))
    sources.progress((Source("rate", 4, None, 20.0),))
    assert sources.metrics([("v", scan("a", 0))]) == {
        ("v", "a"): {names.INPUT_ROWS: 7, names.PROCESSED_RATE: 20.0},
    }


def test_every_metric_of_a_source_is_in_the_catalogue() -> None:
    """But those that a connector names."""
    sources = told(Source("kafka", 3, 30.0, 15.0, {"avgOffsetsBehindLatest": "0.5"}))
    [found] = sources.metrics([("v", scan("a", 0))]).values()
    assert found.pop("avgOffsetsBehindLatest") == 0.5
    assert {metric.name for metric in catalogue.METRICS if metric.scope == "coordinator"} == set(found)


def test_equal_scans_of_two_vertices_are_kept_apart() -> None:
    """Two streams that are read alike have the same operator id, each in its own vertex."""
    sources = told(Source("one", 1), Source("two", 2))
    found = sources.metrics([("v1", scan("a", 0)), ("v2", scan("a", 1))])
    assert {key: value[names.INPUT_ROWS] for key, value in found.items()} == {("v1", "a"): 1, ("v2", "a"): 2}


def test_table_that_a_stream_is_joined_with_is_no_source() -> None:
    """Spark's progress names streams only."""
    found = told(Source("stream", 5)).metrics([("v", scan("table", 0, "Scan parquet ")), ("w", scan("stream", 1))])
    assert list(found) == [("w", "stream")]


@pytest.mark.parametrize(
    "scans",
    [[], [scan("a", 0), scan("a2", 1)], [scan("files", 0, "Scan json "), scan("table", 1, "Scan parquet ")]],
    ids=["no plan yet", "self-join", "files and a table"],
)
def test_what_cannot_be_told_apart_is_not_told(scans: list[Operator]) -> None:
    """One source, but none or several scans that it may be."""
    assert told(Source("rate", 5)).metrics(("v", each) for each in scans) == {}


def test_connectors_own_metrics_are_numbers_where_they_are() -> None:
    """Kafka tells text; what is no number stays text, what no 64 bits hold becomes a float, and there is an end."""
    own = {"behind": "12", "share": "0.5", "topic": "t1", "huge": "9" * 30, names.INPUT_ROWS: "-1", "n" * 999: "1"}
    sources = told(Source("kafka", 5, metrics=own))
    assert sources.metrics([("v", scan("a", 0))])["v", "a"] == {
        names.INPUT_ROWS: 5,
        "behind": 12,
        "share": 0.5,
        "topic": "t1",
        "huge": 1e30,
        "n" * NAME_CHARS: 1,
    }
    many = told(Source("kafka", 5, metrics={f"m{number}": "1" for number in range(2 * METRICS)}))
    assert len(many.metrics([("v", scan("a", 0))])["v", "a"]) == METRICS + 1


def test_sources_that_change_in_number_begin_anew() -> None:
    """Spark's progress of a run names the same sources always; were it otherwise, rows would not be mixed up."""
    sources = told(Source("one", 1))
    sources.progress((Source("one", 2), Source("two", 3)))
    found = sources.metrics([("v", scan("a", 0)), ("v", scan("b", 1))])
    assert [value[names.INPUT_ROWS] for value in found.values()] == [2, 3]


def test_progress_without_metrics_and_rates_is_read() -> None:
    """Older versions and some connectors leave them out, or say null."""
    body = {"id": "i", "runId": "r", "batchId": 0, "timestamp": "t", "sources": [{"numInputRows": 1, "metrics": None}]}
    (source,) = read(QueryProgress(json.dumps(body))).sources
    assert (source.num_input_rows, source.input_rows_per_second, source.metrics) == (1, None, None)
