"""What the driver knows of a query's sources, and whose it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_hooks.plan import Operator, analyse
from spark_hooks.progress import Progress, Source, read
from spark_hooks.records import PlanNode, QueryProgress, SourceBacklog
from spark_hooks.sources import Sources
from spark_hooks.timeline import Batch
from spark_hooks.vertex import JobVertex
from streamgauge import catalogue, names

TRIGGER_MS = 1_795_255_200_000
"""2026-11-21T10:00:00Z."""


def scan(identity: str, leaf: int, node: str = "MicroBatchScan") -> Operator:
    return Operator(identity, f"Source: {identity}", node, "", (), (), is_source=True, leaf=leaf)


def ended(sources: Sources, *told: Source, batch: int = 0, begin_ms: int = 0, end_ms: int = 250, **more: Any) -> None:
    """A micro-batch ended, in which each source was read so far."""
    progress = Progress("i", "r", batch, "t", sources=told, **more)
    sources.progress(progress, Batch(batch, begin_ms, end_ms=end_ms), TRIGGER_MS)


def told(*of: Source) -> Sources:
    found = Sources()
    ended(found, *of)
    return found


def metrics(sources: Sources, *operators: tuple[str, Operator]) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: intake.metrics() for key, intake in sources.matched(operators).items()}


def files(rows: int, offset: int, path: str = "/data/in") -> Source:
    """A stream of files that was read up to a number of its own log."""
    return Source(f"FileStreamSource[file:{path}]", None, {"logOffset": offset}, None, rows)


def rows(of: int, name: str = "rate", **more: Any) -> Source:
    return Source(name, num_input_rows=of, **more)


def test_sources_are_the_scans_from_left_to_right() -> None:
    """The order in which vertices are held says nothing; where the scan stands in the plan does."""
    found = metrics(
        told(rows(3), rows(4)),
        ("v2", scan("b", 1)),
        ("v1", scan("a", 0)),
        ("v1", Operator("c", "Project", "", "", (), ())),
    )
    assert found == {("v1", "a"): {names.INPUT_ROWS: 3}, ("v2", "b"): {names.INPUT_ROWS: 4}}


def test_rows_add_up_over_the_run() -> None:
    """Rows are those of all batches, rates those of the last one; a rate that Spark leaves out is absent."""
    sources = told(rows(3, input_rows_per_second=30.0, processed_rows_per_second=15.0))
    ended(sources, rows(4, processed_rows_per_second=20.0), batch=1)
    assert metrics(sources, ("v", scan("a", 0))) == {
        ("v", "a"): {names.INPUT_ROWS: 7, names.PROCESSED_RATE: 20.0},
    }


def test_every_metric_of_a_source_is_in_the_catalogue() -> None:
    """But those that a connector names."""
    source = Source("kafka", num_input_rows=3, input_rows_per_second=30.0, processed_rows_per_second=15.0)
    source.metrics = {"avgOffsetsBehindLatest": "0.5"}
    [found] = metrics(told(source), ("v", scan("a", 0))).values()
    assert found.pop("avgOffsetsBehindLatest") == 0.5
    assert {metric.name for metric in catalogue.METRICS if metric.scope == "coordinator"} == set(found)


def test_equal_scans_of_two_vertices_are_kept_apart() -> None:
    """Two streams that are read alike have the same operator id, each in its own vertex."""
    found = metrics(told(rows(1), rows(2)), ("v1", scan("a", 0)), ("v2", scan("a", 1)))
    assert {key: value[names.INPUT_ROWS] for key, value in found.items()} == {("v1", "a"): 1, ("v2", "a"): 2}


def test_table_that_a_stream_is_joined_with_is_no_source() -> None:
    """Spark's progress names streams only."""
    found = metrics(told(rows(5)), ("v", scan("table", 0, "Scan parquet ")), ("w", scan("stream", 1)))
    assert list(found) == [("w", "stream")]


@pytest.mark.parametrize(
    "scans",
    [[], [scan("a", 0), scan("a2", 1)], [scan("files", 0, "Scan json "), scan("table", 1, "Scan parquet ")]],
    ids=["no plan yet", "self-join", "files and a table"],
)
def test_what_cannot_be_told_apart_is_not_told(scans: list[Operator]) -> None:
    """One source, but none or several scans that it may be."""
    assert told(rows(5)).matched(("v", each) for each in scans) == {}


def test_sources_that_change_in_number_begin_anew() -> None:
    """Spark's progress of a run names the same sources always; were it otherwise, rows would not be mixed up."""
    sources = told(rows(1))
    ended(sources, rows(2), rows(3), batch=1)
    assert [intake.rows for intake in sources.intakes] == [2, 3]


def test_progress_without_metrics_and_rates_is_read() -> None:
    """Older versions and some connectors leave them out, or say null."""
    body = {"id": "i", "runId": "r", "batchId": 0, "timestamp": "t", "sources": [{"numInputRows": 1, "metrics": None}]}
    (source,) = read(QueryProgress(json.dumps(body))).sources
    assert (source.num_input_rows, source.input_rows_per_second, source.metrics) == (1, None, None)


def test_event_time_lags_behind_a_batchs_beginning_and_its_end() -> None:
    """Both from the latest event time of the batch; kept while batches read no row that has one."""
    sources = Sources()
    ended(sources, rows(1), begin_ms=100, end_ms=500, event_time={"max": "2026-11-21T09:59:58.500Z"})
    (intake,) = sources.intakes
    assert (intake.figures.fetch_lag_ms, intake.figures.emit_lag_ms) == (1500, 1900)
    ended(sources, rows(0), batch=1, begin_ms=600, end_ms=900, event_time={"watermark": "2026-11-21T09:59:58.500Z"})
    assert (intake.figures.fetch_lag_ms, intake.figures.emit_lag_ms) == (1500, 1900)


def test_event_time_of_the_future_is_a_negative_lag() -> None:
    """A clock that is ahead is worth seeing."""
    sources = Sources()
    ended(sources, rows(1), end_ms=0, event_time={"max": "2026-11-21T10:00:02.000Z"})
    assert sources.intakes[0].figures.fetch_lag_ms == -2000


def test_event_time_of_several_sources_is_nobodys() -> None:
    """Spark tells one for all of them together."""
    sources = Sources()
    ended(sources, rows(1), rows(1), event_time={"max": "2026-11-21T10:00:02.000Z"})
    assert {intake.figures.fetch_lag_ms for intake in sources.intakes} == {None}


def test_files_left_are_those_of_the_batch() -> None:
    """What was seen when it began is told when it ends."""
    sources = Sources()
    sources.list(SourceBacklog("r", 0, ("FileStreamSource[file:/data/in]", 4, 0)))
    ended(sources, files(1, offset=0))
    assert sources.intakes[0].figures.unread == 4
    assert sources.unread_files == {"FileStreamSource[file:/data/in]": 4}


@pytest.mark.parametrize(
    "seen",
    [
        SourceBacklog("r", 0, ("FileStreamSource[file:/data/in]", 3, 0)),
        SourceBacklog("r", 1, ("FileStreamSource[file:/data/in]", 3, 2)),
        SourceBacklog("r", 1, ("FileStreamSource[file:/data/in]", -1, 1)),
        SourceBacklog("r", 1, ("FileStreamSource[file:/data/other]", 3, 1)),
    ],
    ids=["of the batch before", "after the next trigger", "no listing", "another source"],
)
def test_files_left_are_unknown_where_they_were_not_seen(seen: SourceBacklog) -> None:
    """And what was known of an earlier batch holds no longer."""
    sources = Sources()
    sources.list(SourceBacklog("r", 0, ("FileStreamSource[file:/data/in]", 4, 0)))
    ended(sources, files(1, offset=0))
    sources.list(seen)
    ended(sources, files(1, offset=1), batch=1)
    assert sources.intakes[0].figures.unread is None
    assert sources.unread_files == {}


def test_position_of_a_batch_that_nobody_has_looked_at_is_the_one_before() -> None:
    """It is no end of a listing: what is seen later goes on from what was seen before."""
    sources, name = Sources(), "FileStreamSource[file:/data/in]"
    found = []
    for offset, left in enumerate((4, None, 2, -1)):
        if left is not None:
            sources.list(SourceBacklog("r", offset, (name, left, offset)))
        ended(sources, files(1, offset=offset), batch=offset)
        found.append(sources.intakes[0].position)
    assert found == [(0, 4), (0, 4), (2, 4), (4, 4)]


def test_two_streams_of_the_same_files_have_each_their_own() -> None:
    """They are called alike, and come in the same order here and there; as one backlog they count together."""
    sources = Sources()
    name = "FileStreamSource[file:/data/in]"
    sources.list(SourceBacklog("r", 0, (name, 4, 0, name, 9, 0)))
    ended(sources, files(1, offset=0), rows(7), files(1, offset=0))
    assert [intake.figures.unread for intake in sources.intakes] == [4, None, 9]
    assert sources.unread_files == {name: 13}


def kafka(latest: int) -> Source:
    return Source("KafkaV2[Subscribe[t]]", {"t": {"0": 1}}, {"t": {"0": 5}}, {"t": {"0": latest}}, 4)


def test_backlog_of_all_sources_is_known_where_that_of_each_is() -> None:
    """A part of a sum is no sum."""
    assert told(kafka(7), kafka(10)).pending == 7
    assert told(kafka(7), files(1, offset=0)).pending is None
    assert Sources().pending is None


def test_query_has_caught_up_where_every_source_has() -> None:
    """A batch that took all there was; of files nobody knows."""
    assert told(kafka(5), Source("RateStreamV2", 1, 2, 2, 10)).caught_up
    assert not told(kafka(5), kafka(6)).caught_up
    assert not told(kafka(5), files(1, offset=0)).caught_up
    assert not Sources().caught_up


def test_source_is_idle_since_it_was_last_read() -> None:
    """Each for itself; one that has never been read, since the run was first seen."""
    sources = Sources()
    ended(sources, rows(1), rows(0), begin_ms=1000, end_ms=1400)
    assert [intake.figures.idle_ms for intake in sources.intakes] == [0, 400]
    sources.wait(6400, ())
    assert [intake.figures.idle_ms for intake in sources.intakes] == [5000, 5400]
    vertex = JobVertex(analyse(PlanNode("MicroBatchScan", "MicroBatchScan", (), ())).vertices[0])
    vertex.sources.bind({"a": sources.intakes[1]})
    sources.wait(7000, [vertex])
    assert [intake.figures.idle_ms for intake in sources.intakes] == [5600, 0]
    ended(sources, rows(0), rows(0), batch=1, begin_ms=6900, end_ms=7400)
    assert [intake.figures.idle_ms for intake in sources.intakes] == [6000, 6400]


def test_stream_of_files_beside_a_table_of_files_is_known() -> None:
    """By where its files lie."""
    sources = Sources()
    ended(sources, files(3, 0))
    place = "Location: InMemoryFileIndex(1 paths)[file:{}/0.json], ReadSchema: x"
    table, stream = scan("t", 0, "Scan csv"), scan("s", 1, "Scan json")
    table.description, stream.description = place.format("/tables"), place.format("/data/in")
    assert list(sources.matched([("v", table), ("v", stream)])) == [("v", "s")]
