"""What full frames and deltas make of the state before them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from streamgauge import wire
from streamgauge.errors import MalformedFrame

OTHER = "d" * 32
NEW_OPERATOR = "e" * 32


@pytest.fixture
def held(collector, frames):
    """A job of one vertex of two subtasks with columns at both scopes and subtask times."""
    collector.push(
        frames.frame(
            vertices=(
                frames.figures(
                    columns=(frames.column("numRecordsIn", 1, 2), frames.column("busyTimeMsPerSecond", 10.0, 20.0)),
                    operators=(wire.OperatorColumns(frames.OPERATOR, (frames.column("numRecordsIn", 3, 4),)),),
                    subtasks=frames.subtasks(0, -1),
                ),
            )
        )
    )
    return collector


def _delta(frames, figures=None, **changes):
    return frames.frame(seq=2, base=1, vertices=() if figures is None else (figures,), **changes)


def test_delta_replaces_the_columns_it_has_and_shares_the_rest(held, frames):
    """A column is replaced whole; what is absent from a delta stays the same object."""
    before = held.job().vertices[frames.VERTEX]
    held.push(_delta(frames, frames.figures(columns=(frames.column("numRecordsIn", 5, 6),))))
    after = held.job().vertices[frames.VERTEX]
    assert after.columns["numRecordsIn"].values.tolist() == [5, 6]
    assert after.columns["busyTimeMsPerSecond"] is before.columns["busyTimeMsPerSecond"]
    assert after.operators is before.operators
    assert after.subtasks is before.subtasks
    assert before.columns["numRecordsIn"].values.tolist() == [1, 2]


def test_delta_without_a_vertex_keeps_it(held, frames):
    """A vertex that nothing is said of is the same object in the next snapshot."""
    before = held.job().vertices[frames.VERTEX]
    held.push(_delta(frames))
    assert held.job().vertices[frames.VERTEX] is before
    assert held.job().series == 6


def test_full_frame_replaces_all(held, frames):
    """A full frame of the same run drops what it does not repeat."""
    held.push(frames.frame(seq=2))
    vertex = held.job().vertices[frames.VERTEX]
    assert (vertex.size, dict(vertex.columns), vertex.subtasks) == (0, {}, None)
    assert vertex.operators == {frames.OPERATOR: {}}
    assert held.job().series == 0


def test_new_attempt_starts_from_its_own_frame(held, frames):
    """Nothing of an earlier run is carried over but the first start and the count of restarts."""
    app = msgspec.structs.replace(frames.APP, id="app-2")
    held.push(frames.frame(attempt=wire.Attempt(9, "run-2"), app=app))
    job = held.job()
    assert job.vertices[frames.VERTEX].size == 0
    assert (job.first_start_ms, job.restarts, job.app.id) == (1, 1, "app-2")


def test_vertex_without_figures_is_empty(collector, frames):
    """A vertex of the plan that nothing is known of yet has no subtasks and every operator."""
    collector.push(frames.frame())
    vertex = collector.job().vertices[frames.VERTEX]
    assert (vertex.parallelism, vertex.size, vertex.start_ms, vertex.subtasks) == (0, 0, -1, None)
    assert dict(vertex.operators) == {frames.OPERATOR: {}}


def test_plan_of_a_delta_adds_vertices_and_operators_and_keeps_figures(held, frames):
    """A plan that grows keeps what is held of the vertices and operators that it still has, in its order."""
    grown = frames.plan(
        frames.vertex(OTHER), frames.vertex(operators=(NEW_OPERATOR, frames.OPERATOR), name="Scan -> Filter -> Map")
    )
    held.push(_delta(frames, plan=grown))
    vertices = held.job().vertices
    assert list(vertices) == [OTHER, frames.VERTEX]
    vertex = vertices[frames.VERTEX]
    assert vertex.vertex.name == "Scan -> Filter -> Map"
    assert vertex.columns["numRecordsIn"].values.tolist() == [1, 2]
    assert list(vertex.operators) == [NEW_OPERATOR, frames.OPERATOR]
    assert vertex.operators[NEW_OPERATOR] == {}
    assert vertex.operators[frames.OPERATOR]["numRecordsIn"].values.tolist() == [3, 4]


@pytest.mark.parametrize("base", [0, 1], ids=["full", "delta"])
def test_unknown_vertex_is_malformed(held, frames, base):
    """Figures need a vertex of the plan: the frame's own, or the one that is held."""
    before = held.store.snapshot()
    with pytest.raises(MalformedFrame, match=f"vertex '{OTHER}' is not in the job's plan: send the plan"):
        held.push(frames.frame(seq=2, base=base, vertices=(frames.figures(OTHER),)))
    assert held.store.snapshot() is before


def test_figures_without_any_plan_are_malformed(collector, frames):
    """A full frame without a plan says that there is none."""
    with pytest.raises(MalformedFrame, match="is not in the job's plan"):
        collector.push(frames.frame(plan=None, vertices=(frames.figures(),)))


def test_unknown_operator_is_malformed(held, frames):
    """Columns need an operator of the vertex."""
    group = wire.OperatorColumns(NEW_OPERATOR, ())
    with pytest.raises(MalformedFrame, match=f"operator '{NEW_OPERATOR}' is not in the vertex's plan"):
        held.push(_delta(frames, frames.figures(operators=(group,))))


def test_grown_vertex_takes_all_its_columns_anew(held, frames):
    """A vertex may grow if every column and the subtask times come with it."""
    held.push(
        _delta(
            frames,
            frames.figures(
                size=3,
                columns=(frames.column("numRecordsIn", 1, 2, 3), frames.column("busyTimeMsPerSecond", 1.0, 2.0, 3.0)),
                operators=(wire.OperatorColumns(frames.OPERATOR, (frames.column("numRecordsIn", 3, 4, 5),)),),
                subtasks=frames.subtasks(0, 0, -1),
            ),
        )
    )
    vertex = held.job().vertices[frames.VERTEX]
    assert vertex.size == 3
    assert vertex.subtasks.executor.tolist() == [0, 0, -1]
    assert held.job().series == 9


GROWN = {
    "vertex column": ("columns", "size changed from 2 to 3, but column 'busyTimeMsPerSecond' was not sent"),
    "operator column": ("operators", f"operator '{'b' * 32}': size changed from 2 to 3, but column 'numRecordsIn'"),
    "subtasks": ("subtasks", "size changed from 2 to 3, but subtasks were not sent"),
}


@pytest.mark.parametrize("missing", GROWN)
def test_grown_vertex_without_all_its_columns_is_malformed(held, frames, missing):
    """Old columns cannot tell the new subtasks, so the sender must send them all."""
    field, message = GROWN[missing]
    full = {
        "columns": (frames.column("numRecordsIn", 1, 2, 3), frames.column("busyTimeMsPerSecond", 1.0, 2.0, 3.0)),
        "operators": (wire.OperatorColumns(frames.OPERATOR, (frames.column("numRecordsIn", 3, 4, 5),)),),
        "subtasks": frames.subtasks(0, 0, -1),
    }
    full[field] = {"columns": full["columns"][:1], "operators": (), "subtasks": None}[field]
    with pytest.raises(MalformedFrame) as caught:
        held.push(_delta(frames, frames.figures(size=3, **full)))
    assert message in str(caught.value)


def test_absent_values_stay_absent(collector, frames):
    """The bitmap becomes a mask: what is not known is absent, not zero."""
    column = frames.column("numRecordsIn", 1, 2, 3, present=[True, False, True])
    collector.push(frames.frame(vertices=(frames.figures(size=3, columns=(column,)),)))
    assert collector.job().vertices[frames.VERTEX].columns["numRecordsIn"].present.tolist() == [True, False, True]


def test_arrays_are_read_only_views_of_their_own_column(collector, frames):
    """A held column keeps its own bytes alive and not the whole body; nobody can write to it."""
    column = frames.column("numRecordsIn", 1, 2, present=[True, False])
    collector.push(frames.frame(vertices=(frames.figures(columns=(column,), subtasks=frames.subtasks(0, 0)),)))
    vertex = collector.job().vertices[frames.VERTEX]
    held = vertex.columns["numRecordsIn"]
    assert type(held.values.base) is bytes
    assert len(held.values.base) == 16
    for array in (held.values, held.present, vertex.subtasks.attempt, vertex.subtasks.start_ms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9
    assert held.values.dtype == np.int64


def test_subtask_times_are_kept_apart(collector, frames):
    """Each of the four arrays arrives in its own place, with the executors that one of them indexes."""
    arrays = [np.array([number, -1], dtype="<i8").tobytes() for number in (1, 0, 3, 4)]
    collector.push(frames.frame(vertices=(frames.figures(subtasks=wire.Subtasks(*arrays, ("app-1-7",))),)))
    found = collector.job().vertices[frames.VERTEX].subtasks
    assert [array.tolist() for array in (found.attempt, found.executor, found.start_ms, found.end_ms)] == [
        [1, -1],
        [0, -1],
        [3, -1],
        [4, -1],
    ]
    assert found.executors == ("app-1-7",)


def test_transient_gauges_leave_when_the_job_ends(held, frames):
    """Busy, idle and back-pressured time are removed at the end, as in Flink's store; counts stay."""
    ended = frames.job(state="FINISHED", since_ms={"FINISHED": 9}, end_ms=9)
    idle = wire.OperatorColumns(frames.OPERATOR, (frames.column("idleTimeMsPerSecond", 1.0, 1.0),))
    held.clock.advance(7)
    held.push(_delta(frames, frames.figures(operators=(idle,)), job=ended))
    job = held.job()
    assert list(job.vertices[frames.VERTEX].columns) == ["numRecordsIn"]
    assert list(job.vertices[frames.VERTEX].operators[frames.OPERATOR]) == ["numRecordsIn"]
    assert job.series == 4
    assert job.ended_ns == 7_000_000
    held.clock.advance(1)
    held.push(frames.frame(seq=3, base=2, job=ended))
    assert held.job().ended_ns == 7_000_000


def test_ended_job_that_starts_again_has_not_ended(held, frames):
    """A new run of an ended query is alive, and ends anew."""
    held.push(_delta(frames, job=frames.job(state="FAILED")))
    held.push(frames.frame(attempt=wire.Attempt(2, "run-2"), job=frames.job(state="RESTARTING")))
    assert held.job().ended_ns is None
    assert held.job().state == "RESTARTING"
    held.clock.advance(3)
    held.push(frames.frame(attempt=wire.Attempt(3, "run-3"), job=frames.job(state="FAILED")))
    assert held.job().ended_ns == 3_000_000
    held.clock.advance(1)
    held.push(frames.frame(attempt=wire.Attempt(4, "run-4"), job=frames.job(state="FAILED")))
    assert held.job().ended_ns == 4_000_000


def test_modified_ms_tells_the_latest_change_of_state(collector, frames):
    """A frame that leaves the state as it was does not touch it; a new state or run does."""
    seen = []
    for seq, state, run in [(1, "CREATED", 1), (2, "RUNNING", 1), (3, "RUNNING", 1), (1, "RUNNING", 2)]:
        collector.clock.advance(10)
        collector.push(frames.frame(seq=seq, attempt=wire.Attempt(run, "run"), job=frames.job(state=state)))
        seen.append(collector.job().modified_ms - 1_000_000)
    assert seen == [10, 20, 20, 40]


def test_state_without_a_time_is_dated_by_its_frame(collector, frames):
    """A driver that names a state but not since when means now."""
    collector.push(frames.frame(job=frames.job(since_ms={"CREATED": 4})))
    assert dict(collector.job().since_ms) == {"CREATED": 4, "RUNNING": 10}


def test_application_frame_tells_all(collector, frames):
    """Executors that are gone, or that a frame no longer lists, are dropped; figures are replaced."""
    collector.push(
        frames.app_frame(
            executors=(frames.executor("1"), frames.executor("2"), frames.executor("3", gone=True)),
            driver={"Status.JVM.Threads.Count": 5},
            hooks={"events": 1},
        )
    )
    assert list(collector.store.snapshot().apps["app-1"].executors) == ["1", "2"]
    collector.push(frames.app_frame(seq=2, base=1, executors=(frames.executor("2", cores=8),), hooks={"events": 2}))
    app = collector.store.snapshot().apps["app-1"]
    assert {key: executor.cores for key, executor in app.executors.items()} == {"2": 8}
    assert (dict(app.driver), dict(app.hooks)) == ({}, {"events": 2})


def test_vertex_knows_whether_another_one_reads_it(collector, frames):
    """By the plan as a whole; with figures and without, running and ended."""
    first, last = frames.vertex(), frames.vertex(OTHER, inputs=(wire.Edge(frames.VERTEX, "HASH", ""),))
    figures = (frames.figures(), frames.figures(OTHER, columns=(frames.column("busyTimeMsPerSecond", 1.0, 2.0),)))
    collector.push(frames.frame(plan=frames.plan(first, last), vertices=figures))
    collector.push(frames.frame(seq=2, base=1, vertices=(), job=frames.job(state="FAILED")))
    assert {vertex.vertex.id: vertex.feeds for vertex in collector.job().vertices.values()} == {
        frames.VERTEX: True,
        OTHER: False,
    }
    third = frames.vertex("f" * 32, inputs=(wire.Edge(OTHER, "HASH", ""),))
    collector.push(frames.frame(seq=3, base=2, plan=frames.plan(first, last, third)))
    assert collector.job().vertices[OTHER].feeds


def test_what_hardly_changes_is_carried_over_until_a_full_frame(collector, frames):
    """None says that configuration and environment are as they were; a full frame says all there is."""
    environment = wire.Environment("17", "amd64", (), ())
    collector.push(frames.app_frame(configuration={"a": "1"}, environment=environment))
    collector.push(frames.app_frame(seq=2, base=1))
    app = collector.store.snapshot().apps["app-1"]
    assert (dict(app.configuration), app.environment, app.end_ms) == ({"a": "1"}, environment, -1)
    collector.push(frames.app_frame(seq=3, base=2, configuration={"b": "2"}, end_ms=5))
    app = collector.store.snapshot().apps["app-1"]
    assert (dict(app.configuration), app.environment, app.end_ms) == ({"b": "2"}, environment, 5)
    collector.push(frames.app_frame(seq=4))
    app = collector.store.snapshot().apps["app-1"]
    assert (dict(app.configuration), app.environment, app.end_ms) == ({}, None, -1)


def test_micro_batch_that_was_never_sent_is_malformed(held, frames):
    """Those that are held must have been sent; those that are not held any more leave."""
    seven = wire.Checkpoint(7, "COMPLETED", 5)
    held.push(_delta(frames, checkpoints=wire.Checkpoints(held=(7,), changed=(seven,))))
    with pytest.raises(MalformedFrame, match="micro-batch 6 is held, but was not sent"):
        held.push(frames.frame(seq=3, base=2, checkpoints=wire.Checkpoints(held=(7, 6))))
    eight = wire.Checkpoint(8, "IN_PROGRESS", 6)
    held.push(frames.frame(seq=3, base=2, checkpoints=wire.Checkpoints(completed=1, held=(8,), changed=(eight,))))
    history = held.job().checkpoints
    assert (dict(history.held), history.totals.completed) == ({8: eight}, 1)


def test_accumulator_of_an_unknown_operator_is_malformed(held, frames):
    """An accumulator belongs to an operator of the plan, or to an exchange."""
    column = frames.column("spill size", 1, 2)
    held.push(_delta(frames, frames.figures(accumulators=(wire.Accumulator("", "size", column),))))
    with pytest.raises(
        MalformedFrame, match=f"operator '{NEW_OPERATOR}' of an accumulator is not in the vertex's plan"
    ):
        held.push(
            frames.frame(
                seq=3,
                base=2,
                vertices=(frames.figures(accumulators=(wire.Accumulator(NEW_OPERATOR, "size", column),)),),
            )
        )
    assert list(held.job().vertices[frames.VERTEX].accumulators) == [("", "spill size")]


def test_the_drivers_share_of_an_accumulator_is_held(held, frames):
    """It is of no subtask, so the column cannot tell it."""
    told = wire.Accumulator(frames.OPERATOR, "sum", frames.column("number of files read", 0, 0), 7)
    held.push(_delta(frames, frames.figures(accumulators=(told,))))
    [found] = held.job().vertices[frames.VERTEX].accumulators.values()
    assert (found.kind, found.driver, found.column.values.tolist()) == ("sum", 7, [0, 0])


def test_grown_vertex_takes_all_its_accumulators_anew(held, frames):
    """An accumulator of the old size cannot stand beside columns of the new one."""
    old, other = (
        wire.Accumulator(frames.OPERATOR, "sum", frames.column(metric, 1, 2)) for metric in ("spill size", "rows")
    )
    held.push(_delta(frames, frames.figures(accumulators=(old, other))))
    grown = frames.figures(
        size=3,
        columns=(frames.column("numRecordsIn", 1, 2, 3), frames.column("busyTimeMsPerSecond", 1.0, 2.0, 3.0)),
        operators=(wire.OperatorColumns(frames.OPERATOR, (frames.column("numRecordsIn", 3, 4, 5),)),),
        subtasks=frames.subtasks(0, 0, 0),
        accumulators=(wire.Accumulator(frames.OPERATOR, "sum", frames.column("rows", 1, 2, 3)),),
    )
    with pytest.raises(MalformedFrame, match="size changed from 2 to 3, but column 'spill size' was not sent"):
        held.push(frames.frame(seq=3, base=2, vertices=(grown,)))


def test_query_that_another_driver_starts_anew_is_restarting(held, frames):
    """The driver cannot know that the query ran before; until its first batch the job is RESTARTING, then RUNNING."""
    again = wire.Attempt(9_000_000_000_000, "run-2")
    created = frames.job(state="CREATED", since_ms={"CREATED": 7})
    held.push(frames.frame(attempt=again, job=created))
    assert (held.job().state, held.job().restarts, held.job().since_ms["RESTARTING"]) == ("RESTARTING", 1, 7)
    held.push(
        frames.frame(attempt=again, seq=2, job=frames.job(state="RUNNING", since_ms={"CREATED": 7, "RUNNING": 8}))
    )
    assert (held.job().state, held.job().restarts) == ("RUNNING", 1)


def test_query_that_is_seen_for_the_first_time_is_created(collector, frames):
    """Nothing is restarted where nothing ran before."""
    collector.push(frames.frame(job=frames.job(state="CREATED", since_ms={"CREATED": 7})))
    assert (collector.job().state, collector.job().restarts) == ("CREATED", 0)


def failures(*names, forgotten=0):
    return wire.Failures(tuple(wire.Failure(name, f"{name}: no", 5) for name in names), forgotten)


def test_failures_are_kept_until_others_come(held, frames):
    """None on the wire says that nothing has changed; a full frame of the same run tells them all."""
    held.push(_delta(frames, failures=failures("a.A")))
    held.push(frames.frame(seq=3, base=2))
    assert held.job().failures == held.job().failure_history() == failures("a.A")
    held.push(frames.frame(seq=4))
    assert held.job().failures == failures()


def test_failures_of_earlier_runs_stand_behind(held, frames):
    """Flink's history outlives a restart of the job; a repeated or late frame changes nothing."""
    end = _delta(frames, job=frames.job(state="FAILED"), failures=failures("a.A"))
    again = frames.frame(attempt=wire.Attempt(2, "run-2"), failures=failures("b.B"))
    for frame in (end, end, again, end, again):
        held.push(frame)
    assert (held.job().failures, held.job().failure_history()) == (failures("b.B"), failures("b.B", "a.A"))
    held.push(frames.frame(seq=2, attempt=wire.Attempt(2, "run-2"), failures=failures("c.C", "b.B")))
    assert held.job().failure_history() == failures("c.C", "b.B", "a.A")
    held.push(frames.frame(attempt=wire.Attempt(3, "run-3")))
    assert (held.job().failures, held.job().failure_history()) == (failures(), failures("c.C", "b.B", "a.A"))


def test_history_of_failures_is_bounded(held, frames):
    """The oldest are forgotten, and counted with those that the drivers had forgotten."""
    for run in range(2, 8):
        told = failures(*(f"run{run}.E{number}" for number in range(4)), forgotten=run)
        held.push(frames.frame(attempt=wire.Attempt(run, f"run-{run}"), failures=told))
    history = held.job().failure_history()
    assert [failure.name for failure in history.latest][:5] == [*(f"run7.E{n}" for n in range(4)), "run6.E0"]
    assert len(history.latest) == wire.FAILURES
    assert history.forgotten == sum(range(2, 8)) + 6 * 4 - wire.FAILURES
