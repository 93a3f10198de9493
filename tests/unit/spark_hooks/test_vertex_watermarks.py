"""What a run tells of event time, batch by batch: watermarks as columns, their lag, late rows."""

from __future__ import annotations

import pytest

from spark_hooks import plan, records
from spark_hooks.vertex_columns import groups
from streamgauge import names
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import (
    Execution,
    Ids,
    Query,
    Task,
    accumulator,
    empty,
    new_model,
    scan,
    sink,
    stage,
    submitted,
)

NO_WATERMARK_MS = -(2**63)
FIRST, SECOND = 1_795_255_220_000, 1_795_255_290_000
SAVE = "StateStoreSave"


class Run:
    """A query `scan -> withWatermark -> exchange -> aggregate -> sink`; each batch has its own plan."""

    def __init__(self) -> None:
        self.ids, self.clock = Ids(), ManualClock(now_ms=SECOND)
        self.model, self.query = new_model(self.clock), Query(1)
        self.apply(self.query.started())

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def begin(self, eviction_ms: int, source: records.PlanNode | None = None, shuffles: bool = True) -> None:
        self.query.batch += 1
        ids = self.ids
        self.below = ids.node(
            "EventTimeWatermark", source or scan(ids), rows=False, description="EventTimeWatermark t#1"
        )
        told = f"{SAVE} [k#1], state info [ opId = 0 ], Append, 0, {eviction_ms}, 2"
        read = ids.shuffle(self.below) if shuffles else self.below
        above = ids.node(SAVE, read, metrics=[plan.LATE], description=told)
        self.plan = sink(ids, above)
        self.execution = Execution(ids, self.plan, self.query.describe())
        self.apply(self.execution.start())

    def aggregate(self, *dropped: int) -> records.Stage:
        """Run the vertex of the aggregate: a task for each number of rows that it drops."""
        found = stage(self.ids, len(dropped), scopes=[SAVE])
        self.apply(self.execution.job(found), submitted(found))
        for partition, rows in enumerate(dropped):
            self.task(found, partition, rows)
        return found

    def task(self, of: records.Stage, partition: int, dropped: int, **more: int) -> None:
        task = Task(self.ids, of, partition, **more)
        updates = (accumulator(self.plan, SAVE), 7, accumulator(self.plan, SAVE, plan.LATE), dropped)
        self.apply(task.start(), task.end(updates if dropped else updates[:2]))

    def look(self) -> None:
        """Five seconds pass."""
        self.clock.advance(5000)
        self.model.time.look(self.clock.now_ms(), self.clock.monotonic_ns())
        self.model.tick()

    def told(self) -> dict[tuple[str, str], list[int | None]]:
        """(node or '', metric) → a value a subtask, of the vertex of the aggregate; those of event time."""
        [vertex] = [each for each in self.job.graph.vertices.values() if SAVE in each.name]
        nodes = {"": ""} | {operator.id: operator.node for operator in vertex.operators}
        found: dict[tuple[str, str], list[int | None]] = {}
        for group in groups(vertex):
            for each in group.columns():
                if "atermark" in each.metric or "Late" in each.metric:
                    present = [True] * vertex.size if each.present is None else each.present.tolist()
                    values = zip(each.values.tolist(), present, strict=True)
                    found[nodes[each.operator], each.metric] = [value if there else None for value, there in values]
        return found

    @property
    def job(self):
        return self.model.jobs[self.query.jid]


def test_watermarks_are_of_the_batch_that_runs() -> None:
    """As soon as it begins; of all subtasks."""
    run = Run()
    for eviction_ms, expected_ms in ((0, NO_WATERMARK_MS), (FIRST, FIRST), (SECOND, SECOND)):
        run.begin(eviction_ms)
        if not eviction_ms:
            run.aggregate(0, 0)
        told = run.told()
        assert told["", names.CURRENT_INPUT_WATERMARK] == told["", names.CURRENT_LOW_WATERMARK] == [expected_ms] * 2
        assert told[SAVE, names.CURRENT_INPUT_WATERMARK] == [expected_ms] * 2
        assert told[SAVE, names.CURRENT_OUTPUT_WATERMARK] == [expected_ms] * 2
        run.apply(run.execution.end(), run.query.progress())


def test_batch_without_data_moves_the_watermark() -> None:
    """Spark shows an empty source in it, and evicts state."""
    run = Run()
    run.begin(0)
    run.aggregate(0)
    run.apply(run.execution.end(), run.query.progress())
    run.begin(FIRST, empty(run.ids))
    assert run.told()[SAVE, names.CURRENT_INPUT_WATERMARK] == [FIRST]
    assert len(run.job.graph.vertices) == 2


def test_progress_without_a_plan_between_changes_nothing() -> None:
    """What it tells is what the plan has told."""
    run = Run()
    run.begin(FIRST)
    run.aggregate(0)
    before = run.told()
    run.apply(run.execution.end(), run.query.progress(eventTime={"watermark": "2026-11-21T10:00:20.000Z"}))
    assert run.told() == before


def test_operators_lag_is_looked_at_every_five_seconds() -> None:
    """Wall time less its input watermark; none before there is one."""
    run = Run()
    run.begin(0)
    run.aggregate(0)
    run.look()
    assert (SAVE, names.WATERMARK_LAG) not in run.told()
    run.apply(run.execution.end(), run.query.progress())
    run.begin(FIRST)
    run.look()
    assert run.told()[SAVE, names.WATERMARK_LAG] == [SECOND + 10_000 - FIRST]
    run.look()
    assert run.told()[SAVE, names.WATERMARK_LAG] == [SECOND + 15_000 - FIRST]


def test_operator_of_no_latest_plan_does_not_fall_behind() -> None:
    """The plan is another one now: its watermark stays, and a lag that grows would alarm for nothing."""
    run = Run()
    run.begin(FIRST)
    run.aggregate(0)
    run.look()
    assert (SAVE, names.WATERMARK_LAG) in run.told()
    run.apply(run.execution.end(), run.query.progress())
    run.query.batch += 1
    other = Execution(run.ids, sink(run.ids, run.ids.node("Filter", scan(run.ids))), run.query.describe())
    run.apply(other.start())
    run.look()
    told = run.told()
    assert told[SAVE, names.CURRENT_INPUT_WATERMARK] == [FIRST]
    assert told[SAVE, names.WATERMARK_LAG] == [None]


def test_query_without_state_tells_what_its_progress_told() -> None:
    """No plan prints its watermark."""
    run = Run()
    run.query.batch += 1
    ids = run.ids
    below = ids.node("EventTimeWatermark", scan(ids), rows=False, description="EventTimeWatermark t#1")
    run.plan = sink(ids, ids.node("HashAggregate", ids.shuffle(below)))
    run.execution = Execution(ids, run.plan, run.query.describe())
    run.apply(run.execution.start())
    [last] = [vertex for vertex in run.job.graph.vertices.values() if not vertex.is_source]
    for told, expected_ms in (({}, NO_WATERMARK_MS), ({"watermark": "2026-11-21T10:00:20.000Z"}, FIRST)):
        run.apply(run.query.progress(eventTime=told))
        assert last.watermarks.input_ms == expected_ms


def test_what_is_not_known_any_more_is_told_without_values() -> None:
    """Else the collector would keep the last ones; this plan's operator has no watermark."""
    run = Run()
    run.begin(FIRST)
    run.aggregate(0, 0)
    assert run.told()[SAVE, names.CURRENT_INPUT_WATERMARK] == [FIRST] * 2
    [vertex] = [each for each in run.job.graph.vertices.values() if SAVE in each.name]
    vertex.watermarks.operators.clear()
    assert run.told()[SAVE, names.CURRENT_INPUT_WATERMARK] == [None, None]


def test_late_rows_are_counted_by_subtask_over_batches() -> None:
    """What the tasks that count have dropped; Spark does not send zeros."""
    run = Run()
    run.begin(FIRST)
    run.aggregate(2, 0)
    run.apply(run.execution.end(), run.query.progress())
    run.begin(SECOND)
    run.aggregate(1, 4)
    assert run.told()[SAVE, names.NUM_LATE_RECORDS_DROPPED] == [3, 4]


def test_late_rows_of_a_retried_stage_count_once() -> None:
    """A success of a higher stage attempt replaces the first; another attempt of the same changes nothing."""
    run = Run()
    run.begin(FIRST)
    found = run.aggregate(2, 5)
    run.task(found, 0, 9, attempt=1)
    run.task(found, 1, 3, stage_attempt=1)
    assert run.told()[SAVE, names.NUM_LATE_RECORDS_DROPPED] == [2, 3]


@pytest.mark.parametrize("shuffles", [True, False], ids=["behind a shuffle", "in the source's vertex"])
def test_batch_without_data_is_told_at_the_real_operators(shuffles: bool) -> None:
    """Its plan has an empty source, whose vertex has another id, and operators that are matched to the known ones."""
    run = Run()
    run.begin(FIRST, shuffles=shuffles)
    run.aggregate(2)
    run.apply(run.execution.end(), run.query.progress())
    run.begin(SECOND, empty(run.ids), shuffles)
    run.aggregate(3)
    told = run.told()
    assert told[SAVE, names.NUM_LATE_RECORDS_DROPPED] == [5]
    assert told[SAVE, names.CURRENT_INPUT_WATERMARK] == [SECOND]


def test_rate_of_late_rows_is_a_meter() -> None:
    """Flink's: over 60 s, adopted at the first tick."""
    run = Run()
    run.begin(FIRST)
    run.look()
    run.aggregate(0)
    run.look()
    run.look()
    assert run.told()[SAVE, names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND] == [0.0]
    run.begin(SECOND)
    run.aggregate(30)
    run.look()
    assert run.told()[SAVE, names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND] == [0.5]
