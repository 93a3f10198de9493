"""Two runs beside each other: which vertex is which, what their figures are, and what counts as a change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.comparison import FINDINGS, RELATIVE_CHANGE, Comparison, Figure, compare
from collector.history import Course
from collector.latencies import Latencies
from collector.pairing import operator_changes, pairs
from collector.run import Run, VertexCourse
from collector.run_figures import BATCH_DURATION, DURATION, EXCEPTIONS, JOB_KINDS, VERTEX_KINDS, Kind
from collector.store import CheckpointHistory, VertexState
from streamgauge import names, wire

NOW_MS = 2_000_000
START_MS = 1_000_000
RATE = names.NUM_RECORDS_IN + names.PER_SECOND
BUSY = f"{names.BUSY_TIME}.avg"


def key(text: str) -> str:
    """An id that is easy to read."""
    return f"{text:0>32}"


@pytest.fixture(scope="session")
def make(states: Any) -> Any:
    """Runs and vertices from what matters of them."""

    class Make:
        def vertex(self, name: str, *operators: str, ids: tuple[str, ...] = (), **changes: Any) -> VertexState:
            """Operators by name; their ids are of the vertex, unless they are given."""
            columns, given = changes.pop("columns", {}), changes.pop("descriptions", {})
            found = states.vertex(
                changes.pop("size", 2),
                id=key(name),
                name=changes.pop("called", " -> ".join(operators) or name),
                columns={metric: states.column(*values) for metric, values in columns.items()},
                **changes,
            )
            listed = tuple(
                wire.Operator(
                    key(ids[place] if ids else f"{name}{place}"), each, each, given.get(each, f"{name} {each}")
                )
                for place, each in enumerate(operators)
            )
            return replace(found, vertex=wire.Vertex(key(name), found.vertex.name, listed, found.vertex.inputs))

        def run(self, *vertices: VertexState, course: Course | None = None, **changes: Any) -> Run:
            """One that has lasted 100 s."""
            courses = changes.pop("courses", {})
            app = changes.pop("app", None)
            given = {
                "state": "FINISHED",
                "end_ms": START_MS + 100_000,
                "attempt": wire.Attempt(START_MS, "run"),
                **changes,
            }
            state = states.job(*vertices, **given)
            return Run(state, app, course, {key(name): VertexCourse(one) for name, one in courses.items()})

        def course(self, **figures: list[float | None]) -> Course:
            size = max(map(len, figures.values()), default=0)
            held = {}
            for name, values in figures.items():
                padded = [*values, *[None] * (size - len(values))]
                held[name.replace("__", ".")] = np.array(
                    [np.nan if each is None else each for each in padded], np.float32
                )
            return Course(np.arange(size, dtype=np.int64) * 5_000 + START_MS, held)

        def histograms(self, source: str, *values: int, operator: str) -> dict[tuple[str, str], wire.LatencyHistogram]:
            buckets = states.buckets(*values)
            told = wire.LatencyHistogram(key(source), (key(operator),), buckets, buckets, buckets)
            return {(key(operator), key(source)): told}

        def app(self, **configuration: str) -> Any:
            return states.app(configuration={name.replace("__", "."): each for name, each in configuration.items()})

    return Make()


def job(told: Comparison, figure: str) -> Figure:
    """A figure of the job."""
    [found] = [each for each in told.figures if each.kind.id == figure]
    return found


def vertex(told: Comparison, figure: str, place: int = 0) -> Figure:
    [found] = [each for each in told.vertices[place].figures if each.kind.id == figure]
    return found


# Which vertex is which.


def paired(before: list[VertexState], after: list[VertexState]) -> set[tuple[str, str, str]]:
    """(Id before, id after, rule), '' where there is none."""
    found = pairs({one.vertex.id: one for one in before}, {one.vertex.id: one for one in after})
    return {
        (
            "" if pair.before is None else pair.before.vertex.id.lstrip("0"),
            "" if pair.after is None else pair.after.vertex.id.lstrip("0"),
            pair.rule or "",
        )
        for pair in found
    }


def test_vertices_are_paired_by_id_before_anything_else(make: Any) -> None:
    """Though another one has the same name."""
    before = [make.vertex("a1", "Scan"), make.vertex("a2", "Scan")]
    after = [make.vertex("a3", "Scan"), make.vertex("a2", "Sort", "Sink")]
    assert paired(before, after) == {("a2", "a2", "id"), ("a1", "a3", "name")}


def test_of_several_of_one_name_each_is_paired_in_its_place(make: Any) -> None:
    before = [make.vertex("a1", "Scan"), make.vertex("a2", "Scan"), make.vertex("a3", "Scan")]
    after = [make.vertex("b1", "Scan"), make.vertex("b2", "Scan")]
    assert paired(before, after) == {("a1", "b1", "name"), ("a2", "b2", "name"), ("a3", "", "")}


def test_what_is_left_is_paired_by_the_operators_that_both_have(make: Any) -> None:
    """The greatest overlap first; less than half is another vertex."""
    before = [make.vertex("a1", "Scan", "Filter", "Project"), make.vertex("a2", "Sort", "Sink")]
    after = [
        make.vertex("b1", "Scan", "Project"),
        make.vertex("b2", "Scan", "Filter", "Project", "Expand"),
        make.vertex("b3", "Window", "Sink", "Limit"),
    ]
    assert paired(before, after) == {
        ("a1", "b2", "operators"),
        ("", "b1", ""),
        ("a2", "", ""),
        ("", "b3", ""),
    }


def test_vertices_are_told_in_the_later_plans_order(make: Any) -> None:
    """Those that it does not have last."""
    before = make.run(make.vertex("a1", "Gone"), make.vertex("a2", "Scan"))
    after = make.run(make.vertex("b1", "New"), make.vertex("a2", "Scan"))
    told = compare(after, before, NOW_MS).vertices
    there = [[state and state.vertex.id.lstrip("0") for state in (each.pair.before, each.pair.after)] for each in told]
    assert there == [[None, "b1"], ["a2", "a2"], ["a1", None]]


def test_operators_are_told_that_are_new_gone_or_say_something_else(make: Any) -> None:
    """Not those whose ids differ for what stands before them, nor those whose expressions are numbered anew."""
    plain = {"Project": "Project [a#1]", "Sink": "parquet"}
    before = make.vertex("a1", "Scan", "Filter", "Project", "Sink", descriptions=plain | {"Filter": "Filter (a#1 > 1)"})
    after = make.vertex(
        "b1",
        "Scan",
        "Filter",
        "Project",
        "Sort",
        descriptions={"Project": "Project [a#77]", "Filter": "Filter (a#7 > 2)"},
    )
    renamed = replace(after, vertex=replace_operator(after.vertex, 0, description="a1 Scan"))
    [pair] = pairs({key("a1"): before}, {key("b1"): renamed})
    changes = [
        (change.before and change.before.description, change.after and change.after.description)
        for change in operator_changes(pair)
    ]
    # What has the same id is the same, whatever Spark writes of it.
    aliased = replace(before, vertex=replace_operator(before.vertex, 1, description="another"))
    renumbered = wire.Vertex(key("c1"), aliased.vertex.name, aliased.vertex.operators, ())
    [pair] = pairs({key("a1"): before}, {key("c1"): replace(aliased, vertex=renumbered)})
    assert operator_changes(pair) == []
    assert changes == [("Filter (a#1 > 1)", "Filter (a#7 > 2)"), (None, "b1 Sort"), ("parquet", None)]


def replace_operator(told: wire.Vertex, place: int, **changes: str) -> wire.Vertex:
    operators = list(told.operators)
    operators[place] = wire.Operator(
        **{name: getattr(operators[place], name) for name in ("id", "name", "node", "description")} | changes
    )
    return wire.Vertex(told.id, told.name, tuple(operators), told.inputs, told.current)


# What the figures are.


def test_totals_are_those_of_the_whole_run_and_rates_what_they_come_to(make: Any, states: Any) -> None:
    """Over its duration, where no history is held of one of both."""
    before = make.run(make.vertex("a", "Scan", columns={names.NUM_RECORDS_IN: (300, 100)}))
    after = make.run(
        make.vertex("a", "Scan", columns={names.NUM_RECORDS_IN: (900, None)}),
        courses={"a": make.course(numRecordsInPerSecond=[7.0])},
    )
    told = compare(after, before, NOW_MS)
    total, rate = vertex(told, names.NUM_RECORDS_IN), vertex(told, RATE)
    assert (total.basis, total.before, total.after, total.difference, total.ratio) == ("run", 400, 900, 500, 2.25)
    assert (rate.basis, rate.before, rate.after) == ("run", 4.0, 9.0)
    assert job(told, names.NUM_RECORDS_IN).after == 900


def test_a_rate_is_the_mean_of_the_moments_at_which_something_came(make: Any) -> None:
    """What is not known counts for nothing, and neither does a pause; a share of time counts always."""
    columns = {names.NUM_RECORDS_IN: (1, 1)}
    figures: dict[str, list[float | None]] = {
        RATE: [0.0, 10.0, None, 30.0],
        BUSY.replace(".", "__"): [0.0, 500, 1_000, 100],
    }
    course = make.course(**figures)
    still = make.course(**{RATE: [0.0, 0.0]})
    told = compare(
        make.run(make.vertex("a", "Scan", columns=columns), courses={"a": course}),
        make.run(make.vertex("a", "Scan", columns=columns), courses={"a": still}),
        NOW_MS,
    )
    rate = vertex(told, RATE)
    assert (rate.basis, rate.before, rate.after) == ("history", 0.0, 20.0)
    assert (vertex(told, BUSY).basis, vertex(told, BUSY).before, vertex(told, BUSY).after) == ("history", None, 400.0)


def test_what_was_sampled_before_the_run_is_of_another(make: Any) -> None:
    """A job's history goes on when it is started anew."""
    one = make.vertex("a", columns={names.NUM_RECORDS_IN: (1, 1)})
    # 5 s lie between samples, the first is of the start.
    course = make.course(**{RATE: [900.0, 10.0, 20.0]})
    told = compare(
        make.run(one, courses={"a": course}, course=course, attempt=wire.Attempt(START_MS + 5_000, "second")),
        make.run(one, courses={"a": course}, course=course),
        NOW_MS,
    )
    assert (vertex(told, RATE).before, vertex(told, RATE).after) == (310.0, 15.0)
    assert (job(told, RATE).before, job(told, RATE).after) == (310.0, 15.0)


def test_records_of_a_job_are_those_of_its_ends(make: Any) -> None:
    """What goes from one vertex to another is not counted twice; a source that a broadcast joins is a source."""
    both = {names.NUM_RECORDS_IN: (5, 5), names.NUM_RECORDS_OUT: (2, 2)}
    inner = make.vertex("b", "Sink", columns=both, inputs=(wire.Edge(key("a"), "HASH", ""),), feeds=False)
    joined = make.vertex("c", "Scan", columns=both, inputs=(wire.Edge(key("a"), wire.BROADCAST, ""),))
    told = compare(*[make.run(make.vertex("a", "Scan", columns=both), joined, inner)] * 2, NOW_MS)
    assert (job(told, names.NUM_RECORDS_IN).after, job(told, names.NUM_RECORDS_OUT).after) == (20, 4)


def test_latencies_are_those_at_the_last_operator_of_all_sources(make: Any) -> None:
    """Where markers leave; the first operator's are another thing."""
    first = make.histograms("s1", *[5_000] * 9, operator="a0")
    last = make.histograms("s1", *[100] * 50, operator="a1") | make.histograms("s2", *[200] * 50, operator="a1")
    slow = make.vertex("a", "Scan", "Sink", latencies=Latencies(histograms=first | last), feeds=False)
    told = compare(make.run(slow), make.run(make.vertex("a", "Scan", "Sink", feeds=False)), NOW_MS)
    p50, p99 = vertex(told, "latency.p50"), vertex(told, "latency.p99")
    assert (p50.before, p50.after, p99.after, p50.difference, p50.ratio) == (None, 100, 200, None, None)
    assert job(told, "latency.p99").after == 200


def test_state_and_late_records_are_those_of_all_operators(make: Any, states: Any) -> None:
    """State as it was last, late records in all and by the second."""
    columns = {
        "one": {names.NUM_STATE_ROWS: states.column(10, 20), names.NUM_LATE_RECORDS_DROPPED: states.column(5, 0)},
        "two": {names.NUM_STATE_ROWS: states.column(1, 2), names.STATE_MEMORY_USED: states.column(7, None)},
    }
    stateful = make.vertex("a", "Scan")
    stateful = replace(stateful, operators=columns)
    told = compare(make.run(stateful), make.run(make.vertex("a", "Scan")), NOW_MS)
    assert vertex(told, names.NUM_STATE_ROWS).after == 33
    assert job(told, names.STATE_MEMORY_USED).after == 7
    assert vertex(told, names.NUM_LATE_RECORDS_DROPPED).after == 5
    assert vertex(told, names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND).after == 0.05
    # Of a vertex that tells nothing of it nothing is known: it is no zero.
    assert vertex(told, names.NUM_LATE_RECORDS_DROPPED).before is None


def test_micro_batches_are_told_with_their_phases(make: Any) -> None:
    """Of the run as its driver has counted; phases are the mean of those that are held and were completed."""
    held = {
        number: wire.Checkpoint(number, status, 0, 10, 10, phases={"addBatch": ms, f"p{number}": 1})
        for number, status, ms in ((3, "COMPLETED", 40), (2, "FAILED", 9_000), (1, "COMPLETED", 20))
    }
    spread = wire.Spread(10, 90, 50, 40.0, 60.0, 70.0, 88.0, 90.0)
    checkpoints = CheckpointHistory(wire.Checkpoints(12, 1, duration_ms=spread), held)
    told = compare(make.run(checkpoints=checkpoints), make.run(), NOW_MS)
    assert (job(told, BATCH_DURATION).after, job(told, "batchDuration.p99").after) == (50, 88)
    assert (job(told, "phase.addBatch").after, job(told, "phase.addBatch").before) == (30, None)
    assert {each.kind.id for each in told.figures} >= {"phase.p1", "phase.p3"}
    assert not {each.kind.id for each in told.figures} & {"phase.p2"}
    assert (job(told, names.NUM_COMPLETED_CHECKPOINTS).after, job(told, names.NUM_FAILED_CHECKPOINTS).before) == (12, 0)


@pytest.mark.parametrize(
    ("changes", "lasted_ms"),
    [
        ({}, 100_000),
        ({"state": "RUNNING", "end_ms": -1}, NOW_MS - START_MS),
        ({"state": "SUSPENDED", "end_ms": -1, "modified_ms": START_MS + 7_000}, 7_000),
        ({"end_ms": START_MS - 5}, 0),
    ],
)
def test_a_run_lasts_to_its_end_its_silence_or_now(make: Any, changes: dict[str, Any], lasted_ms: int) -> None:
    assert job(compare(make.run(**changes), make.run(), NOW_MS), DURATION).after == lasted_ms


def test_a_run_without_a_start_has_no_duration_and_no_rates(make: Any) -> None:
    told = compare(
        *[make.run(make.vertex("a", columns={names.NUM_RECORDS_IN: (1, 1)}), attempt=wire.Attempt(-1, "run"))] * 2,
        NOW_MS,
    )
    assert {each.kind.id for each in told.vertices[0].figures} & {DURATION, RATE} == set()
    assert DURATION not in {each.kind.id for each in told.figures}


def test_what_is_no_number_is_unknown(make: Any) -> None:
    """It does not make all else unknown, and no answer holds it."""
    told = compare(
        make.run(make.vertex("a", columns={names.NUM_RECORDS_IN: (float("nan"), 3.0)})),
        make.run(make.vertex("a", columns={names.NUM_RECORDS_IN: (float("inf"), float("nan"))})),
        NOW_MS,
    )
    assert (vertex(told, names.NUM_RECORDS_IN).before, vertex(told, names.NUM_RECORDS_IN).after) == (None, 3.0)


# What has changed.


def changed(make: Any, before: float, after: float, noise: tuple[float, ...] = (), metric: str = RATE) -> bool:
    """Whether a mean that has changed so is a finding, where samples lie so far from it."""
    courses = [make.course(**{metric: [value, *(value + each for each in noise)]}) for value in (before, after)]
    runs = [
        make.run(make.vertex("a", columns={names.NUM_RECORDS_IN: (1, 1)}), courses={"a": course}) for course in courses
    ]
    told = compare(runs[1], runs[0], NOW_MS)
    return metric in {finding.figure.kind.id for finding in told.findings if finding.pair is not None}


def test_a_finding_is_a_fifth_of_the_greater_and_more_than_nothing(make: Any) -> None:
    """The rule does not depend on which way it has gone; a rate of less than one a second is nothing."""
    assert changed(make, 100, 80)
    assert changed(make, 80, 100)
    assert not changed(make, 100, 81)
    assert not changed(make, 0.5, 1.4)


def test_what_the_samples_differ_among_themselves_is_no_finding(make: Any) -> None:
    """Half of them lie farther than 30 from the middle: a difference of 25 says nothing, one of 70 does."""
    swings = (-40.0, 40.0, -40.0, 40.0)
    assert not changed(make, 100, 125, swings)
    assert changed(make, 100, 125)
    assert changed(make, 100, 170, swings)


def test_totals_that_grow_with_the_run_are_told_but_no_findings(make: Any) -> None:
    """A stream that has run ten times as long is no worse; a batch that took ten times as long is."""
    runs = [
        make.run(
            make.vertex("a", columns={names.NUM_RECORDS_IN: (much, much)}), end_ms=START_MS + 100 * much, type=kind
        )
        for kind in ("STREAMING", "BATCH")
        for much in (1_000, 10_000)
    ]
    assert compare(runs[1], runs[0], NOW_MS).findings == ()
    found = compare(runs[3], runs[2], NOW_MS).findings
    assert [(finding.figure.kind.id, finding.pair, finding.score) for finding in found] == [(DURATION, None, 0.9)]


def test_findings_are_told_the_worst_first_and_the_best_last(make: Any) -> None:
    """What is neither stands between them; less of a rate is for the worse."""

    def one(busy: float, rate: float, parallelism: int, pressed: float) -> Run:
        figures = {RATE: [rate], BUSY.replace(".", "__"): [busy], "backPressuredTimeMsPerSecond__avg": [pressed]}
        vertex = make.vertex("a", columns={names.NUM_RECORDS_IN: (1, 1)}, parallelism=parallelism)
        return make.run(vertex, courses={"a": make.course(**figures)})

    found = compare(one(900, 50, 2, 100), one(300, 100, 8, 500), NOW_MS).findings
    assert [(finding.figure.kind.id, round(finding.score, 3)) for finding in found] == [
        (BUSY, 0.667),
        (RATE, 0.5),
        ("parallelism", 0.0),
        (f"{names.BACK_PRESSURED_TIME}.avg", -0.8),
    ]


def test_of_many_findings_the_greatest_are_told(make: Any) -> None:
    """And how many are not."""
    amount = FINDINGS + 5
    runs = [
        make.run(*(make.vertex(f"{place:x}", f"v{place}", parallelism=value(place)) for place in range(amount)))
        for value in (lambda place: 100, lambda place: 10 + place)
    ]
    told = compare(runs[1], runs[0], NOW_MS)
    assert (len(told.findings), told.left_out) == (FINDINGS, 5)
    assert {finding.figure.after for finding in told.findings} == set(range(10, 10 + FINDINGS))


def test_failures_are_findings_at_once(make: Any) -> None:
    """One is one more than none; but every run that follows another has one restart more."""
    failures = wire.Failures((wire.Failure("java.io.IOException", "trace", 5),), 2)
    found = compare(make.run(failures=failures, restarts=1), make.run(), NOW_MS).findings
    told = [(each.figure.kind.id, each.figure.before, each.figure.after, each.figure.ratio) for each in found]
    assert told == [(EXCEPTIONS, 0, 3, None)]
    assert job(compare(make.run(restarts=1), make.run(), NOW_MS), names.NUM_RESTARTS).after == 1


def test_what_is_of_one_vertex_alone_is_not_told_of_the_job_again(make: Any) -> None:
    """It stands in the job's figures, but is one finding."""
    runs = [
        make.run(make.vertex("a", columns={names.NUM_BYTES_SPILLED: (much, 0)}), make.vertex("b"))
        for much in (10**6, 10**9)
    ]
    told = compare(runs[1], runs[0], NOW_MS)
    rate = names.NUM_BYTES_SPILLED + names.PER_SECOND
    assert [(each.figure.kind.id, each.pair is None) for each in told.findings] == [(rate, False)]
    assert job(told, rate).is_finding


# How they were set.


def test_settings_that_differ_are_told(make: Any) -> None:
    """The job's own go before the application's; what is another in every run is no difference."""
    before = make.run(app=make.app(a="1", both="same", spark__app__id="x", gone="g"), configuration={"own": "1"})
    after = make.run(app=make.app(a="2", both="same", spark__app__id="y"), configuration={"own": "2", "a": "3"})
    told = [(each.key, each.before, each.after) for each in compare(after, before, NOW_MS).settings]
    assert told == [("a", "1", "3"), ("gone", "g", None), ("own", "1", "2")]


def test_an_application_that_one_run_does_not_know_is_not_compared(make: Any) -> None:
    """Its settings are not gone; they are unknown."""
    before = make.run(app=make.app(a="1"), configuration={"own": "1"})
    after = make.run(configuration={"own": "2"})
    assert [each.key for each in compare(after, before, NOW_MS).settings] == ["own"]
    assert [each.key for each in compare(before, after, NOW_MS).settings] == ["own"]


# Of any two runs.

FINITE = st.floats(0, 1e15, allow_nan=False) | st.integers(0, 10**9)
OPERATORS = ("Scan", "Filter", "Project", "Sort", "Sink")
SAMPLES = st.lists(st.none() | st.floats(0, 1e6, width=32), max_size=5)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """What a run is made of, for `made`."""
    ids = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
    return {
        "vertices": [
            {
                "id": each,
                "operators": draw(st.lists(st.sampled_from(OPERATORS), unique=True, min_size=1)),
                "columns": {
                    metric: draw(st.lists(st.none() | st.integers(0, 10**9), min_size=2, max_size=2))
                    for metric in (names.NUM_RECORDS_IN, names.NUM_RECORDS_OUT, names.NUM_BYTES_SPILLED)
                    if draw(st.booleans())
                },
                "state": draw(st.none() | st.integers(0, 10**9)),
                "parallelism": draw(st.integers(0, 100)),
                "course": {figure: draw(SAMPLES) for figure in (RATE, BUSY) if draw(st.booleans())},
                "latency": draw(st.lists(st.integers(1, 100_000), max_size=3)),
            }
            for each in ids
        ],
        "course": draw(st.none() | st.fixed_dictionaries({names.WATERMARK_LAG: SAMPLES, RATE: SAMPLES})),
        "state": draw(st.sampled_from(["RUNNING", "SUSPENDED", "FINISHED", "FAILED"])),
        "type": draw(st.sampled_from(["STREAMING", "BATCH"])),
        "lasted": draw(st.integers(0, 10**9)),
        "restarts": draw(st.integers(0, 3)),
        "configuration": draw(st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"))),
        "app": draw(st.none() | st.dictionaries(st.sampled_from("uvw"), st.sampled_from("12"))),
    }


def made(make: Any, states: Any, told: dict[str, Any]) -> Run:
    vertices, courses = [], {}
    for each in told["vertices"]:
        last = f"{each['id']}{len(each['operators']) - 1}"
        one = make.vertex(
            each["id"],
            *each["operators"],
            columns=each["columns"],
            parallelism=each["parallelism"],
            latencies=Latencies(histograms=make.histograms("a", *each["latency"], operator=last)),
        )
        if each["state"] is not None:
            one = replace(one, operators={key(last): {names.NUM_STATE_ROWS: states.column(each["state"])}})
        vertices.append(one)
        if each["course"]:
            courses[each["id"]] = make.course(
                **{name.replace(".", "__"): each["course"][name] for name in each["course"]}
            )
    return make.run(
        *vertices,
        course=None if told["course"] is None else make.course(**told["course"]),
        courses=courses,
        state=told["state"],
        type=told["type"],
        end_ms=START_MS + told["lasted"] if told["state"] in wire.ENDED_STATES else -1,
        modified_ms=START_MS + told["lasted"],
        restarts=told["restarts"],
        configuration=told["configuration"],
        app=None if told["app"] is None else make.app(**told["app"]),
    )


@given(runs())
def test_a_run_beside_itself_has_not_changed(make: Any, states: Any, told: dict[str, Any]) -> None:
    """No finding, no setting, no operator; every vertex is itself."""
    run = made(make, states, told)
    found = compare(run, run, NOW_MS)
    assert (found.findings, found.settings, found.left_out) == ((), (), 0)
    assert [each.pair.rule for each in found.vertices] == ["id"] * len(run.state.vertices)
    assert all(not each.operators for each in found.vertices)
    assert {figure.difference for figure in all_figures(found)} <= {0}


@given(runs(), runs())
def test_the_other_way_round_everything_is_the_opposite(
    make: Any, states: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Pairs, figures, findings, settings and operators, whatever both runs are."""
    first, second = made(make, states, one), made(make, states, other)
    there, back = compare(second, first, NOW_MS), compare(first, second, NOW_MS)
    turned = {(vertex_id(each.pair.after), vertex_id(each.pair.before)): each for each in back.vertices}
    assert {(vertex_id(each.pair.before), vertex_id(each.pair.after)) for each in there.vertices} == set(turned)
    couples = list(zip(there.figures, back.figures, strict=True))
    for each in there.vertices:
        same = turned[vertex_id(each.pair.before), vertex_id(each.pair.after)]
        assert each.pair.rule == same.pair.rule
        couples += zip(each.figures, same.figures, strict=True)
        gone = {(vertex and vertex.name) for change in each.operators for vertex in (change.before, change.after)}
        assert gone == {
            (vertex and vertex.name) for change in same.operators for vertex in (change.before, change.after)
        }
    for figure, opposite in couples:
        assert (figure.kind, figure.basis, figure.floor) == (opposite.kind, opposite.basis, opposite.floor)
        assert (figure.before, figure.after) == (opposite.after, opposite.before)
        assert figure.is_finding == opposite.is_finding
        if figure.difference is not None and figure.change is not None:
            assert opposite.difference == -figure.difference
            assert opposite.change == -figure.change
            assert abs(figure.change) <= 1
    assert [(each.key, each.before, each.after) for each in there.settings] == [
        (each.key, each.after, each.before) for each in back.settings
    ]
    assert len(there.findings) + there.left_out == len(back.findings) + back.left_out


@given(runs(), runs())
def test_every_vertex_is_told_once_and_nothing_unknown_is_a_number(
    make: Any, states: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """And findings are what the rule says, in its order."""
    before, after = made(make, states, one), made(make, states, other)
    told = compare(after, before, NOW_MS)
    for side, run in (("before", before), ("after", after)):
        found = [vertex_id(getattr(each.pair, side)) for each in told.vertices]
        assert sorted(each for each in found if each) == sorted(run.state.vertices)
    for figure in all_figures(told):
        assert not (figure.before is None and figure.after is None)
        assert all(value is None or np.isfinite(value) for value in (figure.before, figure.after, figure.floor))
        assert figure.ratio is None or figure.before
    expected = [
        figure
        for figure in all_figures(told)
        if figure.floor is not None
        and figure.before is not None
        and figure.after is not None
        and abs(figure.after - figure.before) > figure.floor
        and abs(figure.after - figure.before) >= RELATIVE_CHANGE * max(figure.before, figure.after)
    ]
    of_vertices = {(figure.kind.id, figure.before, figure.after) for each in told.vertices for figure in each.figures}
    of_job = {id(figure) for figure in told.figures}
    once = [
        each
        for each in expected
        if id(each) not in of_job or (each.kind.id, each.before, each.after) not in of_vertices
    ]
    assert len(told.findings) + told.left_out == len(once)
    assert {id(finding.figure) for finding in told.findings} <= {id(figure) for figure in expected}
    scores = [finding.score for finding in told.findings]
    assert scores == sorted(scores, reverse=True)


def vertex_id(state: VertexState | None) -> str:
    return "" if state is None else state.vertex.id


def all_figures(told: Comparison) -> list[Figure]:
    return [*told.figures, *(figure for each in told.vertices for figure in each.figures)]


def test_every_kind_has_an_id_of_its_own() -> None:
    for kinds in (JOB_KINDS, VERTEX_KINDS):
        assert len({kind.id for kind in kinds}) == len(kinds)
    assert Kind("x", "ms").floor is None
