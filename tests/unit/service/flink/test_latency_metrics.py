"""Latencies as metrics: ids of the granularity that is set, numbers as Flink writes them, the form of Flink 1.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.latencies import Latencies, LatencyKey, LatencyWindow
from service.flink import aggregates, metrics
from service.flink.query import Query
from streamgauge import names

JID, VERTEX = "d" * 32, "c" * 32
SOURCE, OTHER = "a" * 32, "b" * 32
MAP, SINK = f"{0:032x}", f"{1:032x}"
"""Ids of the operators, in their order."""


def window(*counts: int, first: float = 30.0) -> LatencyWindow:
    """Figure f of subtask s is `first` + f/2 + 10 s; NaN where nothing was recorded."""
    statistics = first + np.arange(11)[:, None] / 2 + np.arange(len(counts)) * 10
    statistics[:, np.array(counts) == 0] = np.nan
    return LatencyWindow(np.array(counts, dtype=np.int64), statistics)


WINDOWS = {
    LatencyKey(MAP, SOURCE, -1): window(4, 0),
    LatencyKey(SINK, SOURCE, -1): window(4, 2, first=50),
    LatencyKey(SINK, SOURCE, 0): window(0, 1, first=60),
    LatencyKey(SINK, SOURCE, 11): window(3, 1, first=70),
    LatencyKey(MAP, "", -1): window(9, 9, first=80),
    LatencyKey(SINK, OTHER, -1): window(0, 5, first=90),
}


def query(states: Any, query_string: str = "", told_apart: str | None = "operator", **path: str) -> Query:
    operators = {"Map: 1": {"x": states.column(1, None)}, "Sink: noop": {}}
    vertex = states.vertex(operators=operators, latencies=Latencies(WINDOWS), columns={"x": states.column(1, 2)})
    snapshot = states.snapshot(states.job(vertex, latency=told_apart))
    return Query.parse(snapshot, 5_000, {"jobid": JID, "vertexid": VERTEX, **path}, query_string.encode())


def marker_id(operator: str, subtask: int, statistic: str, source: str = f"source_id.{SOURCE}.") -> str:
    return f"latency.{source}operator_id.{operator}.operator_subtask_index.{subtask}.latency_{statistic}"


IDS = {
    "operator": [
        (MAP, 0, f"source_id.{SOURCE}."),
        (SINK, 0, f"source_id.{SOURCE}."),
        (SINK, 1, f"source_id.{SOURCE}."),
        (SINK, 1, f"source_id.{OTHER}."),
    ],
    "single": [(MAP, 0, ""), (MAP, 1, "")],
    "subtask": [
        (SINK, 1, f"source_id.{SOURCE}.source_subtask_index.0."),
        (SINK, 0, f"source_id.{SOURCE}.source_subtask_index.11."),
        (SINK, 1, f"source_id.{SOURCE}.source_subtask_index.11."),
    ],
}
LEGACY = {(0, "Map__1.latency"), (0, "Sink__noop.latency"), (1, "Sink__noop.latency")}


@pytest.mark.parametrize("told_apart", ["single", "operator", "subtask"])
def test_ids_are_those_of_the_granularity_that_is_set(states: Any, told_apart: str) -> None:
    """Of each subtask that has recorded, its own; eleven statistics; and each operator's in the old form."""
    expected = {
        (sub, marker_id(op, sub, each, source))
        for op, sub, source in IDS[told_apart]
        for each in names.LATENCY_STATISTICS
    }
    expected |= LEGACY
    listed = [each["id"] for each in metrics.vertex(query(states, told_apart=told_apart))]
    assert len(listed) == len(set(listed))
    assert {each for each in listed if "latency" in each} == {f"{subtask}.{name}" for subtask, name in expected}
    for subtask in (0, 1, 2):
        told = metrics.subtask(query(states, told_apart=told_apart, subtaskindex=str(subtask)))
        assert {each["id"] for each in told if "latency" in each["id"]} == {
            name for sub, name in expected if sub == subtask
        }
    everywhere = [each["id"] for each in aggregates.subtasks(query(states, told_apart=told_apart))]
    assert sorted(each for each in everywhere if "latency" in each) == sorted({name for _, name in expected})
    second = [each["id"] for each in aggregates.subtasks(query(states, "subtasks=1", told_apart))]
    assert sorted(each for each in second if "latency" in each) == sorted(name for sub, name in expected if sub == 1)


@pytest.mark.parametrize("told_apart", ["single", "operator", "subtask"])
def test_every_listed_id_has_a_value(states: Any, told_apart: str) -> None:
    """What is listed can be asked for, over the vertex and of a subtask."""
    listed = [each["id"] for each in metrics.vertex(query(states, told_apart=told_apart))]
    told = metrics.vertex(query(states, "get=" + ",".join(listed), told_apart))
    assert [each["id"] for each in told] == listed
    assert not any("nan" in each["value"].lower() for each in told)
    for subtask in ("0", "1"):
        own = [each["id"] for each in metrics.subtask(query(states, told_apart=told_apart, subtaskindex=subtask))]
        told = metrics.subtask(query(states, "get=" + ",".join(own), told_apart, subtaskindex=subtask))
        assert [each["id"] for each in told] == own


def test_nothing_is_told_of_a_job_without_markers(states: Any) -> None:
    """Switched off: neither ids nor values, whatever is held."""
    for handler in (metrics.vertex, metrics.subtask, aggregates.subtasks):
        listed = handler(query(states, told_apart=None, subtaskindex="0"))
        assert not any("latency" in each["id"] for each in listed)
    asked = f"get=0.{marker_id(MAP, 0, 'min')},0.Map__1.latency,0.x"
    assert [each["id"] for each in metrics.vertex(query(states, asked, None))] == ["0.x"]


def test_least_and_greatest_are_whole_and_the_rest_doubles(states: Any) -> None:
    """Java's Long.toString and Double.toString, as recorded: '30', '18745.66037735849'."""
    asked = ",".join(f"0.{marker_id(MAP, 0, each)}" for each in names.LATENCY_STATISTICS)
    told = [each["value"] for each in metrics.vertex(query(states, f"get={asked}"))]
    assert told == ["30", "30", "31.0", "31.5", "32.0", "32.5", "33.0", "33.5", "34.0", "34.5", "35.0"]


@pytest.mark.parametrize(
    "metric_id",
    [
        f"1.{marker_id(MAP, 0, 'p99')}",
        f"0.{marker_id(SINK, 1, 'p99')}",
        f"1.{marker_id(MAP, 1, 'p99')}",
        f"2.{marker_id(SINK, 2, 'p99')}",
        f"0.{marker_id(MAP, 0, 'p50')}",
        f"0.{marker_id(MAP, 0, 'count')}",
        f"0.{marker_id(MAP, 0, 'p99')}0",
        f"0.{marker_id(MAP, 0, 'p99', '')}",
        f"0.{marker_id(SINK, 0, 'p99', f'source_id.{SOURCE}.source_subtask_index.11.')}",
        f"0.{marker_id(MAP, 0, 'p99', f'source_id.{OTHER}.')}",
        f"0.{marker_id(MAP.upper(), 0, 'p99', f'source_id.{SOURCE.upper()}.')}",
        f"0.{marker_id(MAP, 0, 'p99').replace('index.0.', 'index.00.')}",
        f"0.{marker_id(MAP, 0, 'p99').replace('index.0.', 'index.٠.')}",
        "1.Map__1.latency",
        "0.Map: 1.latency",
        "0.latency",
        "0..latency",
        "0.latency.",
    ],
)
def test_what_was_not_recorded_there_has_no_value(states: Any, metric_id: str) -> None:
    """Another subtask's, another granularity's, a statistic that Flink has not, an id that only looks alike."""
    assert metrics.vertex(query(states, f"get={metric_id},1.x")) == [{"id": "1.x", "value": "2"}]


def test_aggregates_are_of_the_one_subtask_that_has_it(states: Any) -> None:
    """As recorded: least, greatest, mean and sum are its value, skew 0; of other subtasks there is none."""
    wanted = marker_id(SINK, 1, "max")
    [told] = aggregates.subtasks(query(states, f"get={wanted}"))
    assert {key: float(bytes(value)) for key, value in told.items() if key != "id"} == {
        **dict.fromkeys(("min", "max", "avg", "sum"), 60.0),
        "skew": 0.0,
    }
    assert len(aggregates.subtasks(query(states, f"get={wanted}&subtasks=1"))) == 1
    assert aggregates.subtasks(query(states, f"get={wanted}&subtasks=0")) == []


def test_a_text_is_left_out_of_aggregates(states: Any) -> None:
    """As every metric that is no number: the others are told."""
    assert [each["id"] for each in aggregates.subtasks(query(states, "get=Sink__noop.latency,x"))] == ["x"]


def test_old_form_of_an_operator_tells_sources_apart(states: Any) -> None:
    """A map as Java printed it, as of all of a source's subtasks."""
    [told] = metrics.vertex(query(states, "get=0.Map__1.latency"))
    assert told["value"] == (
        f"{{LatencySourceDescriptor{{vertexID={SOURCE}, subtaskIndex=-1}}="
        "{max=30.5, mean=31.0, min=30.0, p50=31.5, p95=33.5, p99=34.5}}"
    )


def test_old_form_of_a_sink_tells_source_subtasks_apart(states: Any) -> None:
    """In the order of their numbers; what this subtask did not record is left out."""
    [first, second] = metrics.vertex(query(states, "get=0.Sink__noop.latency,1.Sink__noop.latency"))
    assert [part.partition("}")[0] for part in first["value"].split("vertexID=")[1:]] == [f"{SOURCE}, subtaskIndex=11"]
    told = [part.partition("}")[0] for part in second["value"].split("vertexID=")[1:]]
    assert told == [f"{SOURCE}, subtaskIndex=0", f"{SOURCE}, subtaskIndex=11"]
    assert ", LatencySourceDescriptor{" in second["value"]


def test_old_form_of_a_sink_without_source_subtasks_tells_sources(states: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are too many to be kept."""
    for subtask in (0, 11):
        monkeypatch.delitem(WINDOWS, LatencyKey(SINK, SOURCE, subtask))
    [told] = metrics.vertex(query(states, "get=1.Sink__noop.latency"))
    found = [part.partition("}")[0] for part in told["value"].split("vertexID=")[1:]]
    assert found == [f"{SOURCE}, subtaskIndex=-1", f"{OTHER}, subtaskIndex=-1"]


def test_an_operators_own_metric_goes_before_a_latency(states: Any) -> None:
    """An operator that is called latency hides none of its metrics."""
    operators = {"latency": {"x": states.column(5, 6), "latency": states.column(7, 8)}}
    vertex = states.vertex(operators=operators, latencies=Latencies({LatencyKey(MAP, SOURCE, -1): window(1, 1)}))
    snapshot = states.snapshot(states.job(vertex, latency="operator"))
    asked = Query.parse(snapshot, 5_000, {"jobid": JID, "vertexid": VERTEX}, b"get=0.latency.x,0.latency.latency")
    assert [each["value"] for each in metrics.vertex(asked)] == ["5", "7"]
