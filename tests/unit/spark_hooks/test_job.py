"""A run's figures, and where and when the subtasks of its vertices ran."""

from __future__ import annotations

import numpy as np
import pytest

from spark_hooks import records
from spark_hooks.checkpoints import CHANGE_LOG_SETTING
from spark_hooks.plan import Graph, analyse
from spark_hooks.records import PlanNode
from spark_hooks.vertex import subtask_columns
from streamgauge import catalogue, names
from tests.unit.spark_hooks.spark_events import (
    Execution,
    Ids,
    Query,
    Task,
    new_model,
    scan,
    sink,
    stage,
    submitted,
    updates,
)


@pytest.fixture
def query() -> Query:
    return Query(1)


def test_metrics_of_a_query_before_its_first_progress(query: Query) -> None:
    """What Spark has not told is absent: there is no last checkpoint yet."""
    model = new_model()
    model.apply([query.started()])
    assert model.jobs[query.jid].metrics() == {
        names.NUM_COMPLETED_CHECKPOINTS: 0,
        names.NUM_FAILED_CHECKPOINTS: 0,
        names.NUM_IN_PROGRESS_CHECKPOINTS: 0,
        names.TOTAL_CHECKPOINTS: 0,
        names.INPUT_ROWS: 0,
        names.OUTPUT_ROWS: 0,
    }


def test_metrics_follow_progress(query: Query) -> None:
    """Rows add up; the last batch is told with its duration, its end and the state's size."""
    model = new_model()
    model.apply([query.started(), query.progress(rows=7, out=3)])
    query.batch = 5
    state = [{"memoryUsedBytes": 100}, {"memoryUsedBytes": 23}]
    model.apply([query.progress(rows=4, out=0, stateOperators=state)])
    assert model.faults == []
    assert model.jobs[query.jid].metrics() == {
        names.NUM_COMPLETED_CHECKPOINTS: 2,
        names.NUM_FAILED_CHECKPOINTS: 0,
        names.NUM_IN_PROGRESS_CHECKPOINTS: 0,
        names.TOTAL_CHECKPOINTS: 2,
        names.INPUT_ROWS: 11,
        names.OUTPUT_ROWS: 3,
        names.LAST_COMPLETED_CHECKPOINT_ID: 5,
        names.LAST_CHECKPOINT_DURATION: 250,
        names.LAST_CHECKPOINT_SIZE: 123,
        names.LAST_CHECKPOINT_COMPLETED: 1_795_255_201_250,
        names.LAST_CHECKPOINT_PROCESSED: 4,
        names.BACKLOGGED: False,
    }


@pytest.mark.parametrize(
    ("trigger", "told"),
    [("ProcessingTimeTrigger(5000)", 5000), ("ProcessingTimeTrigger(0)", None), ("AvailableNowTrigger", None)],
)
def test_the_trigger_interval_is_told_where_there_is_one(query: Query, trigger: str, told: int | None) -> None:
    """Of one that begins its batches as soon as it can there is none."""
    model = new_model()
    query.trigger = trigger
    model.apply([query.started()])
    assert model.jobs[query.jid].metrics().get(names.TRIGGER_INTERVAL) == told


@pytest.mark.parametrize(
    ("session", "application", "written"),
    [
        ({}, "false", 40),
        ({}, "true", -1),
        ({CHANGE_LOG_SETTING: "true"}, "false", -1),
        ({CHANGE_LOG_SETTING: "false"}, "true", 40),
    ],
)
def test_a_change_log_is_known_by_the_querys_settings(
    query: Query, session: dict[str, str], application: str, written: int
) -> None:
    """Those of its session go before the application's."""
    model = new_model()
    metrics = {"rocksdbBytesCopied": 40, "rocksdbChangeLogWriterCommitLatencyMs": 0}
    model.apply(
        [
            records.Environment("", "", (), (), {CHANGE_LOG_SETTING: application}),
            query.started(),
            records.Configuration(query.run_id, -1, session),
            query.progress(stateOperators=[{"customMetrics": metrics}]),
        ]
    )
    assert model.faults == []
    assert model.jobs[query.jid].checkpoints.told().changed[0].checkpointed_bytes == written


def test_rows_of_a_sink_that_does_not_know_are_absent(query: Query) -> None:
    """−1 means unknown; a sum with an unknown part is unknown for good."""
    model = new_model()
    model.apply([query.started(), query.progress(out=3), query.progress(out=-1), query.progress(out=5)])
    assert names.OUTPUT_ROWS not in model.jobs[query.jid].metrics()


def test_batch_is_in_progress_from_its_execution_to_its_progress(query: Query) -> None:
    """It counts among all batches from its start."""
    model, ids = new_model(), Ids()
    query.batch = 0
    model.apply([query.started(), Execution(ids, sink(ids, scan(ids)), query.describe()).start()])
    found = model.jobs[query.jid].metrics()
    assert (found[names.NUM_IN_PROGRESS_CHECKPOINTS], found[names.TOTAL_CHECKPOINTS]) == (1, 1)
    model.apply([query.progress()])
    found = model.jobs[query.jid].metrics()
    assert (found[names.NUM_IN_PROGRESS_CHECKPOINTS], found[names.TOTAL_CHECKPOINTS]) == (0, 1)


def test_every_metric_of_a_job_is_in_the_catalogue(query: Query) -> None:
    """A name that the catalogue does not have has no type and no help."""
    model = new_model()
    model.apply([query.started(), query.progress(out=3)])
    for name in model.jobs[query.jid].metrics():
        assert catalogue.find("job", name) is not None


class Ran:
    """A vertex of two subtasks, and what its columns tell."""

    def __init__(self) -> None:
        self.ids, self.model, self.query = Ids(), new_model(), Query(1)
        self.query.batch = 0
        self.plan = sink(self.ids, scan(self.ids))
        self.execution = Execution(self.ids, self.plan, self.query.describe())
        self.stage = stage(self.ids, 2, scopes=["MicroBatchScan"])
        self.model.apply([self.query.started(), self.execution.start()])
        self.model.apply([self.execution.job(self.stage), submitted(self.stage)])

    def task(self, partition: int, attempt: int, launch_ms: int, executor: str = "1") -> Task:
        return Task(self.ids, self.stage, partition, attempt, 0, launch_ms, executor)

    @property
    def vertex(self):
        [vertex] = self.model.jobs[self.query.jid].graph.vertices.values()
        return vertex

    def told(self) -> dict[str, list[int] | tuple[str, ...]]:
        columns = subtask_columns(self.vertex, "app-7")
        found = {name: np.frombuffer(getattr(columns, name), "<i8").tolist() for name in ("attempt", "executor")}
        found |= {name: np.frombuffer(getattr(columns, name), "<i8").tolist() for name in ("start_ms", "end_ms")}
        return found | {"executors": columns.executors}


def test_subtasks_that_have_not_run_are_unknown() -> None:
    """−1, and attempt 0."""
    assert Ran().told() == {
        "attempt": [0, 0],
        "executor": [-1, -1],
        "start_ms": [-1, -1],
        "end_ms": [-1, -1],
        "executors": (),
    }


def test_subtasks_tell_their_latest_task() -> None:
    """Where the latest attempt ran, when it was launched, and its end once it has one."""
    ran = Ran()
    first, second = ran.task(0, 0, 100, "1"), ran.task(1, 0, 120, "2")
    ran.model.apply([first.start(), second.start(), first.end(succeeded=False), ran.task(0, 1, 300, "2").start()])
    assert ran.told() == {
        "attempt": [1, 0],
        "executor": [1, 1],
        "start_ms": [300, 120],
        "end_ms": [-1, -1],
        "executors": ("app-7-1", "app-7-2"),
    }
    ran.model.apply([second.end()])
    assert ran.told()["end_ms"] == [-1, 220]
    assert ran.vertex.start_ms == 100


def test_end_of_an_older_task_changes_nothing() -> None:
    """The loser of a speculation ends after the winner was launched: the subtask shows the later one."""
    ran = Ran()
    original, copy = ran.task(0, 0, 100), ran.task(0, 1, 300)
    ran.model.apply([original.start(), copy.start(), copy.end(), original.end(succeeded=False)])
    assert ran.told()["start_ms"] == [300, -1]
    assert ran.told()["end_ms"] == [400, -1]


def test_task_whose_start_was_dropped_is_told_by_its_end() -> None:
    """The recorder may have given the start up; the end tells the launch too."""
    ran = Ran()
    ran.model.apply([ran.task(1, 0, 100).end(updates(ran.plan, {"MicroBatchScan": 3}))])
    assert ran.told()["start_ms"] == [-1, 100]
    assert ran.told()["end_ms"] == [-1, 200]


def test_parallelism_is_that_of_the_latest_stage() -> None:
    """Subtasks past it keep their counters: the size never shrinks."""
    ran = Ran()
    wide = stage(ran.ids, 5, scopes=["MicroBatchScan"])
    narrow = stage(ran.ids, 1, scopes=["MicroBatchScan"])
    ran.model.apply([ran.execution.job(wide), submitted(wide), ran.execution.job(narrow), submitted(narrow)])
    assert (ran.vertex.parallelism, ran.vertex.size) == (1, 5)


def test_rates_are_those_of_what_is_shown() -> None:
    """Ticks look at the shown counts, live ones among them; an ended run ticks no more."""
    ran = Ran()
    task = ran.task(0, 0, 100)
    ran.model.tick()
    ran.model.apply([task.start(), task.live(updates(ran.plan, {"MicroBatchScan": 600}))])
    ran.model.tick()
    assert ran.vertex.views.rates()[0, 0] == 10.0
    ran.model.apply([ran.query.terminated()])
    for _ in range(20):
        ran.model.tick()
    assert ran.vertex.views.rates()[0, 0] == 10.0


def test_exchanges_of_all_plans_are_inputs() -> None:
    """An edge that one plan has stays, as its vertices do; a plan without it takes nothing away."""
    ran = Ran()
    ids = ran.ids
    job = ran.model.jobs[ran.query.jid]
    joined = sink(ids, ids.node("Join", *(ids.shuffle(ids.node(name, scan(ids))) for name in ("One", "Two"))))
    graph: Graph = analyse(joined, "NoopTable")
    job.graph.merge(graph, own=True)
    reader = job.graph.vertices[graph.vertices[-1].id]
    assert [exchange.source.name for exchange in reader.inputs.values()] == [
        "Source: RateStream -> One",
        "Source: RateStream -> Two",
    ]
    revision = job.graph.revision
    job.graph.merge(analyse(joined, "NoopTable"), own=True)
    assert job.graph.revision == revision
    assert len(reader.inputs) == 2


def test_vertices_come_sources_first() -> None:
    """In the order in which they were found, which the collector and the page keep."""
    ids = Ids()
    plan: PlanNode = sink(ids, ids.node("Aggregate", ids.shuffle(ids.node("Filter", scan(ids)))))
    query = Query(1, name=None)
    query.batch = 0
    model = new_model()
    model.apply([query.started(), Execution(ids, plan, query.describe()).start()])
    assert [vertex.name for vertex in model.jobs[query.jid].graph.vertices.values()] == [
        "Source: RateStream -> Filter",
        "Aggregate -> Sink: Noop",
    ]
