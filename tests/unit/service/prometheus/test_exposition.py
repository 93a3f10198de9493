"""/metrics: what of the store is told, and what not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.prometheus.exposition import STATES
from service.prometheus.granularity import GRANULARITIES, Granularity
from streamgauge import names
from tests.exposed import idiomatic

JOB = f'job_id="{"d" * 32}",job_name="flights by hour"'
OF_VERTEX = f'vertex_id="{"c" * 32}",vertex_name="Scan -> Filter"'
VERTEX = f"{JOB},{OF_VERTEX}"


def text(states: Any, *held: Any, now_ms: int = 5_000, granularity: Granularity = "operator") -> str:
    return idiomatic(states.snapshot(*held), granularity, now_ms)


def samples(rendered: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = [sample for family in text_string_to_metric_families(rendered) for sample in family.samples]
    read = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in found}
    assert len(read) == len(found), "a series is there twice"
    return read


def lines(rendered: str, prefix: str) -> list[str]:
    return [line for line in rendered.splitlines() if line.startswith(prefix)]


def test_what_the_driver_knows_of_a_source_is_told(states: Any) -> None:
    """The catalogue's names of it; what a connector calls as it likes is told by REST alone."""
    known = {f"{0:032x}": {names.INPUT_ROWS: 1_000_000, names.INPUT_RATE: 812.5, "startOffset": 3}}
    vertex = states.vertex(operators={"Source: Kafka": {}}, coordinators=known)
    mine = f'{JOB},operator_name="Source: Kafka",{OF_VERTEX}'
    assert lines(text(states, states.job(vertex)), "streamgauge_coordinator") == [
        f"streamgauge_coordinator_input_rows_total{{{mine}}} 1e+06",
        f"streamgauge_coordinator_input_rows_per_second{{{mine}}} 812.5",
    ]


@pytest.fixture
def job(states: Any) -> Any:
    columns = {
        names.NUM_RECORDS_IN: states.column(5, None, 7),
        names.NUM_RECORDS_IN + names.PER_SECOND: states.column(1.0, 1.0, 1.0),
        names.BUSY_TIME: states.column(250.0, 900.0, float("nan")),
        "notInTheCatalogue": states.column(1, 1, 1),
    }
    operators = {'Sink: "x"\\': {names.NUM_RECORDS_OUT: states.column(1, 2, 3)}}
    return states.job(
        states.vertex(3, columns=columns, operators=operators), metrics={names.INPUT_ROWS: 12, "why": "x"}
    )


def test_vertices_and_operators_are_told_as_a_whole(states: Any, job: Any) -> None:
    """Counters are sums, gauges the greatest; exactly these lines."""
    rendered = text(states, job)
    assert lines(rendered, "streamgauge_vertex") + lines(rendered, "streamgauge_operator") == [
        f"streamgauge_vertex_records_in_total{{{VERTEX}}} 12.0",
        f"streamgauge_vertex_busy_ratio{{{VERTEX}}} 0.9",
        f'streamgauge_operator_records_out_total{{{JOB},operator_name="Sink: \\"x\\"\\\\",{OF_VERTEX}}} 6.0',
    ]
    assert lines(rendered, "# TYPE streamgauge_vertex") == [
        "# TYPE streamgauge_vertex_records_in_total counter",
        "# TYPE streamgauge_vertex_busy_ratio gauge",
    ]
    assert lines(rendered, "streamgauge_job_input_rows_total") == [f"streamgauge_job_input_rows_total{{{JOB}}} 12.0"]
    assert lines(rendered, "streamgauge_job_uptime_seconds") == [f"streamgauge_job_uptime_seconds{{{JOB}}} 2.0"]


def test_subtasks_are_told_on_request(states: Any, job: Any) -> None:
    """One series each, of those that have a value; NaN is none."""
    rendered = text(states, job, granularity="subtask")
    assert lines(rendered, "streamgauge_vertex") == [
        f'streamgauge_vertex_records_in_total{{{JOB},subtask="0",{OF_VERTEX}}} 5.0',
        f'streamgauge_vertex_records_in_total{{{JOB},subtask="2",{OF_VERTEX}}} 7.0',
        f'streamgauge_vertex_busy_ratio{{{JOB},subtask="0",{OF_VERTEX}}} 0.25',
        f'streamgauge_vertex_busy_ratio{{{JOB},subtask="1",{OF_VERTEX}}} 0.9',
    ]


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_what_is_not_known_is_absent(states: Any, granularity: Granularity) -> None:
    """A column without a value, or of NaN alone, makes no series and no family."""
    columns = {names.NUM_RECORDS_IN: states.column(None, None), names.BUSY_TIME: states.column(float("nan"), None)}
    held = states.job(states.vertex(columns=columns))
    assert "streamgauge_vertex" not in text(states, held, granularity=granularity)


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED", "SUSPENDED"])
def test_ended_and_silent_jobs_are_told_by_their_state_only(states: Any, state: str) -> None:
    """Nothing new is heard of them, so nothing must seem to be."""
    column = {names.NUM_RECORDS_IN: states.column(5, 5)}
    held = states.job(states.vertex(columns=column), state=state, metrics={names.INPUT_ROWS: 12})
    told = {name for name, pairs in samples(text(states, held)) if ("job_id", "d" * 32) in pairs}
    assert told == {"streamgauge_job_state"}


@pytest.mark.parametrize("state", STATES)
def test_state_is_1_for_the_one_and_0_for_the_others(states: Any, state: str) -> None:
    """So an alert on `== 1` and one on a change both work."""
    told = {
        dict(pairs)["state"]: value
        for (name, pairs), value in samples(text(states, states.job(state=state))).items()
        if name == "streamgauge_job_state"
    }
    assert told == {each: float(each == state) for each in STATES}


def test_state_of_an_ended_job_stays_15_minutes(states: Any) -> None:
    """Long enough for an alert to see it; that of a silent one stays as long as the job is held."""
    end = 1_000_000
    ended, silent = (states.job(state=state, modified_ms=end) for state in ("FAILED", "SUSPENDED"))
    quarter = 15 * 60 * 1000
    assert "streamgauge_job_state" in text(states, ended, now_ms=end + quarter)
    assert "streamgauge_job_state" not in text(states, ended, now_ms=end + quarter + 1)
    assert "streamgauge_job_state" in text(states, silent, now_ms=end + 10 * quarter)


def test_applications_are_told_while_their_driver_speaks(states: Any) -> None:
    """Driver, hooks and executors apart; and what all are together."""
    told = states.app(
        states.executor("a-1", metrics={names.HEAP_USED: 5}),
        id="a",
        driver={names.CPU_LOAD: 0.5, names.HEAP_USED: float("nan")},
        hooks={names.HOOKS_RECORD_TIME: 2_000_000_000, "pushesAccepted": 7, "pushesUnreachable": 2},
    )
    silent = states.app(states.executor("b-1", metrics={names.HEAP_USED: 5}), id="b", suspended=True)
    whose = 'application_id="a",application_name="flights"'
    rendered = text(states, told, silent)
    assert lines(rendered, "streamgauge") == [
        "streamgauge_task_slots 4.0",
        "streamgauge_task_slots_available 4.0",
        "streamgauge_registered_task_managers 1.0",
        "streamgauge_running_jobs 0.0",
        f"streamgauge_driver_jvm_cpu_load{{{whose}}} 0.5",
        f"streamgauge_hooks_record_time_seconds_total{{{whose}}} 2.0",
        f'streamgauge_hooks_pushes_total{{{whose},outcome="accepted"}} 7.0',
        f'streamgauge_hooks_pushes_total{{{whose},outcome="unreachable"}} 2.0',
        f'streamgauge_executor_jvm_memory_heap_used_bytes{{{whose},executor_id="a-1"}} 5.0',
    ]


def test_hostile_names_read_back(states: Any) -> None:
    """A query may be called anything; no label ends early, no series is there twice."""
    name = 'a"} 1\nevil{x="'
    held = states.job(states.vertex(name=name, columns={names.NUM_RECORDS_IN: states.column(1, 2)}), name=name)
    read = samples(text(states, held))
    assert ("streamgauge_vertex_records_in_total", "vertex_name", name) in {
        (metric, key, value) for metric, pairs in read for key, value in pairs
    }
    assert not any(metric.startswith("evil") for metric, _ in read)


def test_the_bottleneck_of_a_backlogged_job_is_told(states: Any) -> None:
    """Its vertex has a series, the others have none; so has none where the job keeps up."""
    slow = states.vertex(columns={names.BUSY_TIME: states.column(900.0, 1.0)})
    quick = states.vertex(id="b" * 32, columns={names.BUSY_TIME: states.column(100.0, 1.0)})
    rendered = text(states, states.job(quick, slow, metrics={names.BACKLOGGED: True}))
    assert lines(rendered, "streamgauge_vertex_bottleneck") == [f"streamgauge_vertex_bottleneck{{{VERTEX}}} 1.0"]
    assert lines(rendered, "streamgauge_job_backlogged") == [f"streamgauge_job_backlogged{{{JOB}}} 1.0"]
    assert "bottleneck" not in text(states, states.job(quick, slow, metrics={names.BACKLOGGED: False}))
    assert "bottleneck" not in text(
        states, states.job(quick, slow, metrics={names.BACKLOGGED: True}, state="SUSPENDED")
    )


WATERMARK = f"streamgauge_vertex_current_input_watermark_timestamp_seconds{{{VERTEX}}}"


@pytest.mark.parametrize(
    ("watermarks", "told"),
    [
        ((1_500, 2_500), [f"{WATERMARK} 1.5"]),
        ((1_500, None), [f"{WATERMARK} 1.5"]),
        ((-(2**63), 2_500), []),
        ((1_500, 2**63 - 1), [f"{WATERMARK} 1.5"]),
        ((2**63 - 1, 2**63 - 1), []),
        ((0, 5), [f"{WATERMARK} 0.0"]),
        ((float("inf"), 1e300), []),
    ],
    ids=["least", "one unknown", "one has none", "one has ended", "end of input", "1970", "no time"],
)
def test_watermark_is_told_where_it_is_a_time(states: Any, watermarks: tuple[Any, ...], told: list[str]) -> None:
    """The least of a vertex, in seconds; neither Long.MIN_VALUE nor Long.MAX_VALUE becomes a year."""
    columns = {names.CURRENT_INPUT_WATERMARK: states.column(*watermarks)}
    rendered = text(states, states.job(states.vertex(columns=columns)))
    assert lines(rendered, "streamgauge_vertex_current_input_watermark") == told


def test_timers_that_wait_are_counted_over_subtasks(states: Any) -> None:
    """Each subtask has its own keys, and they theirs."""
    held = states.vertex(operators={"TransformWithState": {names.NUM_PENDING_TIMERS: states.column(3, 4)}})
    [told] = lines(text(states, states.job(held)), "streamgauge_operator_pending_timers")
    assert told.endswith("} 7.0")


def test_watermarks_of_subtasks_are_told_each_where_they_are_times(states: Any) -> None:
    """As with all of them together."""
    columns = {names.CURRENT_INPUT_WATERMARK: states.column(1_500, -(2**63), 2**63 - 1)}
    rendered = text(states, states.job(states.vertex(3, columns=columns)), granularity="subtask")
    assert lines(rendered, "streamgauge_vertex_current_input_watermark") == [
        f'streamgauge_vertex_current_input_watermark_timestamp_seconds{{{JOB},subtask="0",{OF_VERTEX}}} 1.5',
    ]


def test_a_sum_of_large_counts_does_not_begin_anew_below_0(states: Any) -> None:
    """Four of them are more than 64 bits hold."""
    columns = {names.NUM_RECORDS_IN: states.column(*[2**62] * 4)}
    rendered = text(states, states.job(states.vertex(4, columns=columns)))
    assert lines(rendered, "streamgauge_vertex") == [
        f"streamgauge_vertex_records_in_total{{{JOB},{OF_VERTEX}}} 1.8446744073709552e+19"
    ]


def test_a_count_below_0_is_no_count(states: Any) -> None:
    """Nobody counts backwards, and OpenMetrics would refuse the page."""
    columns = {names.NUM_RECORDS_IN: states.column(-5, 2), names.NUM_RECORDS_OUT: states.column(-1.0, float("nan"))}
    held = states.job(states.vertex(columns=columns), metrics={names.INPUT_ROWS: -1})
    assert "_rows_total" not in text(states, held)
    assert lines(text(states, held), "streamgauge_vertex") == [
        f"streamgauge_vertex_records_in_total{{{JOB},{OF_VERTEX}}} 2.0"
    ]
    assert lines(text(states, held, granularity="subtask"), "streamgauge_vertex") == [
        f'streamgauge_vertex_records_in_total{{{JOB},subtask="1",{OF_VERTEX}}} 2.0'
    ]


@pytest.mark.parametrize(("granularity", "series"), [("operator", 1), ("subtask", 2)])
def test_operators_of_one_name_make_one_series(states: Any, granularity: Granularity, series: int) -> None:
    """They have no label that tells them apart, and one duplicate could cost the whole scrape; the first is told."""
    vertex = states.vertex(operators={"Map": {}, "Other": {}})
    ids = [operator.id for operator in vertex.vertex.operators]
    alike = tuple(msgspec.structs.replace(operator, name="Map") for operator in vertex.vertex.operators)
    columns = [{names.NUM_RECORDS_OUT: states.column(value, value)} for value in (3, 4)]
    held = replace(
        vertex,
        vertex=msgspec.structs.replace(vertex.vertex, operators=alike),
        operators=dict(zip(ids, columns, strict=True)),
    )
    told = lines(text(states, states.job(held), granularity=granularity), "streamgauge_operator")
    assert len(told) == series
    assert {line.rpartition(" ")[2] for line in told} == {"6.0" if granularity == "operator" else "3.0"}
