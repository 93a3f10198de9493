"""…/vertices/:vertexid/latency and /jobs/:jobid/latency: paths, distributions, windows, markers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from collector.histogram import BOUNDS_MS
from collector.latencies import Latencies, LatencyKey, LatencyWindow
from service.errors import Missing
from service.flink import latency
from service.flink.query import Query
from streamgauge import names, wire
from streamgauge.buckets import HIGHEST_COUNTED_MS, HdrCounts
from streamgauge.errors import UnknownJob, UnresolvableParameter

JID, VERTEX, SOURCE = "d" * 32, "c" * 32, "a" * 32
MAP, SINK = f"{0:032x}", f"{1:032x}"
VALUES = (40, 150, 600, 600, 90_000)


def buckets(*values: int) -> wire.Buckets:
    counts = HdrCounts()
    counts.add(np.array(values, dtype=np.int64))
    read = counts.read()
    indices, counted = read.indices.astype("<u2").tobytes(), read.counts.tobytes()
    return wire.Buckets(indices, counted, read.below, read.above, read.sum_ms)


def histogram(*values: int, source: str = SOURCE) -> wire.LatencyHistogram:
    """All but 30 ms of each was spent in the queue."""
    waited = [value - 30 for value in values]
    return wire.LatencyHistogram(source, (), buckets(*values), buckets(*waited), buckets(*[30] * len(values)))


def window(*counts: int) -> LatencyWindow:
    statistics = 5.0 + np.arange(11)[:, None] + np.arange(len(counts)) * 100
    statistics[:, np.array(counts) == 0] = np.nan
    return LatencyWindow(np.array(counts, dtype=np.int64), statistics)


WINDOWS = {
    LatencyKey(MAP, SOURCE, -1): window(2, 0),
    LatencyKey(SINK, SOURCE, -1): window(4, 6),
    LatencyKey(SINK, SOURCE, 3): window(0, 6),
    LatencyKey(SINK, "", -1): window(9, 9),
}


def job(states: Any, windows: Any = WINDOWS, histograms: Any = None, **changes: Any) -> Any:
    found = {(MAP, SOURCE): histogram(1), (SINK, SOURCE): histogram(*VALUES)} if histograms is None else histograms
    held = Latencies(windows, found)
    vertex = states.vertex(operators={"Map": {}, "Sink: noop": {}}, latencies=held)
    return states.job(states.vertex(id=SOURCE, name="Source: rate"), vertex, **({"latency": "operator"} | changes))


def ask(states: Any, held: Any, query_string: str = "", handler: Callable[[Query], Any] = latency.vertex) -> Any:
    """The body as it is sent."""
    path = {"jobid": JID, "vertexid": VERTEX}
    body = handler(Query.parse(states.snapshot(held), 5_000, path, query_string.encode()))
    return msgspec.json.decode(msgspec.json.encode(body))


def test_path_to_each_operator(states: Any) -> None:
    """By operator from source to sink, with the source's name and how many markers arrived."""
    told = ask(states, job(states))["paths"]
    assert [{key: value for key, value in path.items() if not isinstance(value, dict)} for path in told] == [
        {
            "source-id": SOURCE,
            "source-name": "Source: rate",
            "operator-id": operator,
            "operator-name": name,
            "markers": markers,
        }
        for operator, name, markers in ((MAP, "Map", 1), (SINK, "Sink: noop", 5))
    ]


def test_distribution_of_a_latency(states: Any) -> None:
    """Percentiles of the HDR histogram in ms, the exact mean, counts between the bounds, what is out of range apart."""
    body = ask(states, job(states))
    told = body["paths"][1]["latency"]
    expected = {"count": 5, "min-ms": 40, "max-ms": 90_111, "mean-ms": sum(VALUES) / 5, "p50-ms": 603, "p75-ms": 603}
    expected |= {f"p{rank}-ms": 90_111 for rank in ("90", "95", "98", "99", "999")}
    assert {key: told[key] for key in expected} == expected
    assert body["bounds-ms"] == list(BOUNDS_MS)
    assert len(told["buckets"]) == len(BOUNDS_MS) + 1
    between = {body["bounds-ms"][place]: count for place, count in enumerate(told["buckets"]) if count}
    assert between == {50: 1, 200: 1, 999: 2, 127_999: 1}
    assert told["out-of-range"] == {"below": 0, "above": 0}
    read = HdrHistogram.decode(told["hdr"])
    assert [read.get_count_at_value(value) for value in (40, 150, 600, 90_000)] == [1, 1, 2, 1]


def test_queueing_and_processing_are_apart(states: Any) -> None:
    """What was waited for the batch, and what was spent in it."""
    path = ask(states, job(states))["paths"][1]
    assert [path[part]["mean-ms"] for part in ("latency", "queueing", "processing")] == [
        sum(VALUES) / 5,
        sum(VALUES) / 5 - 30,
        30.0,
    ]
    assert (path["processing"]["min-ms"], path["processing"]["max-ms"]) == (30, 30)


def test_nothing_counted_has_no_figures(states: Any) -> None:
    """Null, not 0: no marker has arrived."""
    [path] = ask(states, job(states, histograms={(SINK, SOURCE): histogram()}))["paths"]
    told = path["latency"]
    figures = {value for key, value in told.items() if key.endswith("-ms")}
    assert (path["markers"], told["count"], sum(told["buckets"]), figures) == (0, 0, 0, {None})


def test_what_is_out_of_range_is_counted_apart(states: Any) -> None:
    """It is a marker that arrived, but in no bucket."""
    held = job(states, histograms={(SINK, SOURCE): histogram(-1, 7, HIGHEST_COUNTED_MS + 1)})
    [path] = ask(states, held)["paths"]
    told = path["latency"]
    assert (path["markers"], told["count"], told["out-of-range"]) == (3, 1, {"below": 1, "above": 1})
    assert sum(told["buckets"]) == 1


def test_past_the_last_bound_has_a_count_of_its_own(states: Any) -> None:
    """Buckets reach a little further than the bounds."""
    held = job(states, histograms={(SINK, SOURCE): histogram(HIGHEST_COUNTED_MS)})
    [path] = ask(states, held)["paths"]
    assert path["latency"]["buckets"] == [*[0] * len(BOUNDS_MS), 1]


FORMS = {
    "operator": [(SOURCE, None, "Map", [0]), (SOURCE, None, "Sink: noop", [0, 1])],
    "single": [(None, None, "Sink: noop", [0, 1])],
    "subtask": [(SOURCE, 3, "Sink: noop", [1])],
    "legacy": [(SOURCE, None, "Map", [0]), (SOURCE, 3, "Sink: noop", [1])],
}


@pytest.mark.parametrize("form", FORMS)
def test_windows_of_a_granularity(states: Any, form: str) -> None:
    """Each subtask that has recorded; what is told together is null. By operator and the old form need no setting."""
    held = job(states, latency=form if form in ("single", "subtask") else "operator")
    body = ask(states, held, f"granularity={form}")
    assert body["granularity"] == form
    assert [
        (
            each["source-id"],
            each["source-subtask"],
            each["operator-name"],
            [subtask["subtask"] for subtask in each["subtasks"]],
        )
        for each in body["windows"]
    ] == FORMS[form]


@pytest.mark.parametrize("told_apart", ["single", "operator", "subtask"])
def test_without_a_word_windows_are_as_recorded(states: Any, told_apart: str) -> None:
    """The granularity that is set in the driver."""
    held = job(states, latency=told_apart)
    assert ask(states, held) == ask(states, held, f"granularity={told_apart}")


def test_statistics_of_a_subtask(states: Any) -> None:
    """All eleven of the latest values; the count is of the run."""
    [told] = ask(states, job(states))["windows"][0]["subtasks"]
    figures = {f"{name}-ms": 5.0 + row for row, name in enumerate(names.LATENCY_STATISTICS)}
    assert told == {"subtask": 0, "markers": 2, **figures}


@pytest.mark.parametrize(
    ("recorded", "asked", "why"),
    [
        ("operator", "single", "told apart by 'operator': set spark.streamgauge.latency_granularity to 'single'."),
        ("single", "subtask", "told apart by 'single': set spark.streamgauge.latency_granularity to 'subtask'."),
        (None, "operator", "no latency markers are emitted: set spark.streamgauge.latency_interval_ms."),
        (None, "legacy", "no latency markers are emitted: set spark.streamgauge.latency_interval_ms."),
    ],
)
def test_what_is_not_recorded_names_the_setting(states: Any, recorded: str | None, asked: str, why: str) -> None:
    """404, as Flink answers what is switched off, and how to switch it on."""
    with pytest.raises(Missing, match=rf"RestHandlerException: Latencies of job d+ were .*{re.escape(why)}$"):
        ask(states, job(states, latency=recorded), f"granularity={asked}")


@pytest.mark.parametrize("word", ["", "vertex", "Operator", "operator,single", "operator&granularity=single"])
def test_unknown_granularity_does_not_parse(states: Any, word: str) -> None:
    """400, as a bad `agg`."""
    with pytest.raises(UnresolvableParameter, match=r"query parameter \(granularity\)"):
        ask(states, job(states), f"granularity={word}")


def test_without_markers_there_is_nothing_to_tell(states: Any) -> None:
    """Switched off, and asked without a word: 200, nothing."""
    held = job(states, {}, {}, latency=None)
    assert ask(states, held) == {"granularity": None, "bounds-ms": list(BOUNDS_MS), "paths": [], "windows": []}
    told = ask(states, held, handler=latency.job)
    assert told == {"granularity": None, "markers": None, "bounds-ms": list(BOUNDS_MS), "paths": []}


def test_unknown_job_and_vertex_are_refused(states: Any) -> None:
    """As by the other resources of a vertex."""
    snapshot = states.snapshot(job(states))
    for handler in (latency.vertex, latency.job):
        with pytest.raises(UnknownJob):
            handler(Query.parse(snapshot, 0, {"jobid": "e" * 32, "vertexid": VERTEX}, b""))
    with pytest.raises(Missing, match=r"No vertex with ID 'e+' exists"):
        latency.vertex(Query.parse(snapshot, 0, {"jobid": JID, "vertexid": "e" * 32}, b""))


def test_job_tells_of_sinks_alone(states: Any) -> None:
    """From each source to each sink, and where the sink stands."""
    body = ask(states, job(states), handler=latency.job)
    [path] = body["paths"]
    assert (path["source-id"], path["source-name"], path["sink-name"]) == (SOURCE, "Source: rate", "Sink: noop")
    assert path["sinks"] == [{"vertex-id": VERTEX, "vertex-name": "Scan -> Filter", "operator-id": SINK}]
    assert (path["markers"], path["latency"]["count"], body["granularity"]) == (5, 5, "operator")


def test_one_sink_of_several_plans_is_merged(states: Any) -> None:
    """A plan that changes puts the same sink at the end of another vertex: to the user it is one."""
    held = (Latencies({}, {(f"{0:032x}", SOURCE): histogram(*values)}) for values in (VALUES, (7, -1)))
    vertices = [
        states.vertex(id=str(number) * 32, operators={"Sink: noop": {}}, latencies=latencies)
        for number, latencies in enumerate(held, start=1)
    ]
    other = states.vertex(operators={"Sink: x": {}}, latencies=Latencies({}, {(f"{0:032x}", SOURCE): histogram(1)}))
    body = ask(states, states.job(*vertices, other, latency="operator"), handler=latency.job)
    first, second = body["paths"]
    assert [place["vertex-id"] for place in first["sinks"]] == ["1" * 32, "2" * 32]
    assert (first["markers"], first["latency"]["count"], first["latency"]["min-ms"]) == (7, 6, 7)
    assert (second["sink-name"], second["markers"]) == ("Sink: x", 1)


def test_job_tells_what_became_of_the_markers(states: Any) -> None:
    """Emitted = recorded + in flight + dropped, by the reason."""
    metrics = {names.MARKERS_EMITTED: 30, names.MARKERS_RECORDED: 10, names.MARKERS_IN_FLIGHT: 10}
    metrics |= dict(zip(names.MARKERS_DROPPED_BY.values(), (1, 2, 3, 4), strict=True))
    told = ask(states, job(states, metrics=metrics), handler=latency.job)["markers"]
    dropped = {"idle": 1, "ended": 2, "lost": 3, "crowded": 4}
    assert told == {"emitted": 30, "recorded": 10, "in-flight": 10, "dropped": dropped}
    assert list(names.MARKERS_DROPPED_BY) == list(dropped)


def test_source_that_is_not_in_the_plan_has_no_name(states: Any) -> None:
    """It cannot come in; if it did, the answer would not fail."""
    held = job(states, histograms={(SINK, "b" * 32): histogram(5)})
    assert ask(states, held)["paths"][0]["source-name"] == ""
