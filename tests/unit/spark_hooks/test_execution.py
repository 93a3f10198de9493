"""Each rule by which Spark's events become counts and states, on events built by hand."""

from __future__ import annotations

import hashlib

import pytest

from spark_hooks import execution, records
from spark_hooks.execution import Model
from spark_hooks.records import PlanNode
from streamgauge import wire
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Task,
    accumulator,
    adaptive,
    completed,
    empty,
    new_model,
    query_id,
    scan,
    shown,
    sink,
    stage,
    submitted,
    updates,
)

SOURCE = "Source: RateStream -> Filter"
READER = "HashAggregate -> Sink: Noop"


class Run:
    """A query `scan -> filter -> exchange -> aggregate -> sink` whose first batch has begun."""

    def __init__(self, model: Model | None = None, wrap: bool = False) -> None:
        self.ids = Ids()
        self.model = model or new_model()
        self.query = Query(1)
        self.apply(self.query.started())
        self.begin(wrap)

    def begin(self, wrap: bool = False, source: PlanNode | None = None) -> None:
        """The next batch begins."""
        self.query.batch += 1
        self.plan = self.new_plan(source, wrap)
        self.execution = Execution(self.ids, self.plan, self.query.describe())
        self.apply(self.execution.start())

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        ids = self.ids
        below = ids.node("Filter", source or scan(ids))
        plan = ids.node("HashAggregate", ids.shuffle(below))
        return sink(ids, adaptive(plan) if wrap else plan)

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def stages(self, *stages: records.Stage) -> None:
        self.apply(self.execution.job(*stages), *map(submitted, stages))

    def map_stage(self, tasks: int = 2) -> records.Stage:
        found = stage(self.ids, tasks, shuffles=True)
        self.stages(found)
        return found

    def read(self, rows: int, kept: int) -> tuple[int, ...]:
        """Updates of a task of the map stage that wrote as many records as its filter kept."""
        return updates(self.plan, {"MicroBatchScan": rows, "Filter": kept, "Exchange.shuffle records written": kept})

    def task(self, of: records.Stage, partition: int = 0, **more: int) -> Task:
        task = Task(self.ids, of, partition, **more)
        self.apply(task.start())
        return task

    @property
    def job(self):
        return self.model.jobs[self.query.jid]

    def counts(self, vertex: str = SOURCE, label: str = "records_in") -> list[int]:
        """A count of a vertex, subtask by subtask."""
        [found] = [each for each in self.job.vertices.values() if each.name == vertex]
        table = shown(self.job)
        return [table.get((vertex, subtask, label), 0) for subtask in range(found.size)]


@pytest.fixture
def run() -> Run:
    return Run()


# ---- Exactly once


def test_success_counts_for_its_partition(run: Run) -> None:
    """Every count of a task stands at the subtask that its partition is."""
    of = run.map_stage()
    run.apply(run.task(of, 1).end(run.read(9, 4)))
    assert shown(run.job) == {
        (SOURCE, 1, "Source: RateStream.in"): 9,
        (SOURCE, 1, "Source: RateStream.out"): 9,
        (SOURCE, 1, "Filter.in"): 9,
        (SOURCE, 1, "Filter.out"): 4,
        (SOURCE, 1, "records_in"): 9,
        (SOURCE, 1, "records_out"): 4,
    }


def test_counts_add_up_over_batches(run: Run) -> None:
    """A batch's plan has accumulators of its own, and the vertices of the batches before."""
    for _ in range(3):
        run.apply(run.task(run.map_stage()).end(run.read(5, 2)), run.execution.end())
        run.begin()
    assert run.counts() == [15, 0]
    assert len(run.job.vertices) == 2


def test_first_success_wins(run: Run) -> None:
    """Of a speculative task and its original the first to succeed counts."""
    of = run.map_stage()
    original, copy = run.task(of), run.task(of, attempt=1)
    run.apply(copy.end(run.read(7, 7)), original.end(run.read(8, 8)))
    assert run.counts() == [7, 0]


def test_loser_is_ignored_after_everything_has_ended(run: Run) -> None:
    """A loser's end may come seconds after its stage, job and execution, even as a success."""
    of = run.map_stage()
    original, copy = run.task(of), run.task(of, attempt=1)
    run.apply(copy.end(run.read(7, 7)), completed(of), run.execution.end(), run.query.progress(7))
    run.apply(original.end(run.read(8, 8)))
    assert run.counts() == [7, 0]


def test_winner_counts_after_everything_has_ended(run: Run) -> None:
    """A partition that nothing else has won is won whenever its success comes."""
    of = run.map_stage()
    task = run.task(of)
    run.apply(completed(of), run.execution.end())
    run.apply(task.end(run.read(8, 8)))
    assert run.counts() == [8, 0]


def test_failed_attempt_counts_nothing(run: Run) -> None:
    """Only a success counts, however often it was tried."""
    of = run.map_stage()
    for attempt in range(3):
        run.apply(run.task(of, attempt=attempt).end(succeeded=False))
    assert shown(run.job) == {}
    run.apply(run.task(of, attempt=3).end(run.read(3, 3)))
    assert run.counts() == [3, 0]


def test_stage_retry_replaces(run: Run) -> None:
    """A success of a higher stage attempt takes the place of the one before, it does not add to it."""
    of = run.map_stage()
    run.apply(*(run.task(of, partition).end(run.read(5, 5)) for partition in (0, 1)))
    run.apply(completed(of, failure="FetchFailed"))
    run.apply(run.task(of, 1, stage_attempt=1).end(run.read(6, 6)))
    assert run.counts() == [5, 6]


def test_stage_retry_is_keyed_by_partition(run: Run) -> None:
    """A retry runs a subset, so that a task's index is not its partition; what it does not run stands."""
    of = run.map_stage(3)
    run.apply(*(run.task(of, partition).end(run.read(5, 5)) for partition in range(3)))
    run.apply(run.task(of, 2, stage_attempt=1).end(run.read(9, 9)))
    assert run.counts() == [5, 5, 9]


def test_success_of_an_older_stage_attempt_changes_nothing(run: Run) -> None:
    """A task of a stage attempt that was given up may still end well."""
    of = run.map_stage()
    old = run.task(of)
    run.apply(run.task(of, stage_attempt=1).end(run.read(6, 6)), old.end(run.read(7, 7)))
    assert run.counts() == [6, 0]


# ---- Live values


def test_live_values_replace_each_other(run: Run) -> None:
    """Heartbeats tell cumulative values; the end takes the place of all of them."""
    task = run.task(run.map_stage())
    for rows in (3, 8):
        run.apply(task.live(run.read(rows, rows)))
        assert run.counts() == [rows, 0]
    run.apply(task.end(run.read(10, 10)))
    assert run.counts() == [10, 0]


def test_live_values_of_a_failed_attempt_are_held(run: Run) -> None:
    """What was shown stands until the retry passes it."""
    of = run.map_stage()
    task = run.task(of)
    run.apply(task.live(run.read(6, 6)))
    assert run.counts() == [6, 0]
    run.apply(task.end(succeeded=False))
    retry = run.task(of, attempt=1)
    run.apply(retry.live(run.read(2, 2)))
    assert run.counts() == [6, 0]
    run.apply(retry.end(run.read(9, 9)))
    assert run.counts() == [9, 0]


def test_live_values_of_a_copy_do_not_add_to_the_originals(run: Run) -> None:
    """Two attempts of a partition do the same work; what both told is shown once."""
    of = run.map_stage()
    original, copy = run.task(of), run.task(of, attempt=1)
    run.apply(original.live(run.read(9, 9)), copy.live(run.read(5, 5)))
    assert run.counts() == [9, 0]
    run.apply(original.end(run.read(10, 10)))
    assert run.counts() == [10, 0]
    run.apply(copy.end(succeeded=False))
    assert run.counts() == [10, 0]


def test_live_values_of_a_retry_do_not_add_to_what_it_replaces(run: Run) -> None:
    """A partition that was won keeps its counts until the stage's retry has ended."""
    of = run.map_stage()
    run.apply(run.task(of).end(run.read(10, 10)))
    retry = run.task(of, stage_attempt=1)
    run.apply(retry.live(run.read(4, 4)))
    assert run.counts() == [10, 0]
    run.apply(retry.end(run.read(10, 10)))
    assert run.counts() == [10, 0]


@pytest.mark.parametrize("when", ["before its start", "after its end"])
def test_live_values_of_a_task_that_does_not_run_are_ignored(run: Run, when: str) -> None:
    """A heartbeat may be told after the task's end; nothing would ever take its values away."""
    of = run.map_stage()
    task = Task(run.ids, of, 0)
    around = [task.start(), task.end(succeeded=False)]
    around.insert(0 if when == "before its start" else 2, task.live(run.read(6, 6)))
    run.apply(*around)
    assert run.counts() in ([], [0, 0])


def test_live_values_leave_with_the_plan_that_named_them() -> None:
    """Where adaptive execution gives a stage another vertex, the first one keeps nothing of its tasks."""
    run = Run(wrap=True)
    of = run.map_stage()
    task = run.task(of)
    told = run.read(6, 6)
    run.apply(task.live(told))
    run.apply(run.execution.replan(_renamed(run.plan, "Filter", "Other")), task.end(told))
    assert run.counts("Source: RateStream -> Other") == [6, 0]
    assert run.counts(SOURCE) == [0, 0]


def _renamed(root: PlanNode, name: str, new: str) -> PlanNode:
    return PlanNode(
        new if root.name == name else root.name,
        root.description,
        root.metrics,
        tuple(_renamed(child, name, new) for child in root.children),
    )


def test_live_values_leave_with_their_stage(run: Run) -> None:
    """The end of a task may have been dropped; once the stage is done nothing of it runs."""
    of = run.map_stage()
    run.apply(run.task(of).live(run.read(6, 6)), completed(of))
    assert run.counts() == [0, 0]


# ---- Which stage executes which vertex


@pytest.mark.parametrize("whose", ["inner", "root"])
@pytest.mark.parametrize("scopes", [[], ["MicroBatchScan", "Filter", "Exchange"]], ids=["by updates", "by scopes"])
def test_second_execution_with_the_same_accumulators_counts_once(run: Run, scopes: list[str], whose: str) -> None:
    """A V2 sink posts its plan twice, as root and inner execution; whichever id the job carries."""
    inner = Execution(run.ids, run.plan, run.query.describe(), root=run.execution.id)
    run.apply(inner.start())
    of, below = stage(run.ids, 2), stage(run.ids, 2, shuffles=True, scopes=scopes)
    run.apply((inner if whose == "inner" else run.execution).job(below, of), submitted(below))
    run.apply(run.task(below).end(run.read(5, 5)), inner.end(), run.execution.end())
    assert run.counts() == [5, 0]
    assert len(run.job.vertices) == 2


def test_second_execution_is_the_querys_own_plan_too(run: Run) -> None:
    """What it finds empty is the query's vertex at the same place, as in the root execution."""
    run.apply(run.execution.end())
    revision = run.job.revision
    run.begin(source=empty(run.ids))
    inner = Execution(run.ids, run.plan, run.query.describe(), root=run.execution.id)
    of = stage(run.ids, 1, shuffles=True)
    run.apply(inner.start(), inner.job(of), submitted(of))
    run.apply(run.task(of).end(updates(run.plan, {"Filter": 3})), inner.end(), run.execution.end())
    assert run.counts(SOURCE, "Filter.in") == [0]
    assert len(run.job.vertices) == 2
    assert run.job.revision == revision


def test_driver_adds_nothing_to_what_a_stage_did(run: Run) -> None:
    """A table that a stage scans may be told by the driver as well."""
    ids = run.ids
    table = ids.node("LocalTableScan", description="LocalTableScan [k#1]")
    run.plan = sink(ids, table)
    run.execution = Execution(ids, run.plan, run.query.describe())
    run.apply(run.execution.start())
    of = stage(ids, 1)
    run.stages(of)
    run.apply(run.task(of).end(updates(run.plan, {"LocalTableScan": 5})))
    run.apply(run.execution.driver({"LocalTableScan": 5}), run.execution.end())
    assert run.counts("Source: LocalTableScan -> Sink: Noop") == [5]


def test_broadcast_of_two_executions_is_counted_once(run: Run) -> None:
    """What the driver set is counted with the execution that was told it."""
    ids = run.ids
    table = ids.node("LocalTableScan", description="LocalTableScan [k#1]")
    exchange = ids.node("BroadcastExchange", table, rows=True)
    run.plan = sink(ids, ids.node("BroadcastHashJoin", scan(ids), exchange))
    outer = Execution(ids, run.plan, run.query.describe())
    inner = Execution(ids, run.plan, run.query.describe(), root=outer.id)
    run.apply(outer.start(), inner.start(), inner.driver({"LocalTableScan": 5}), inner.driver({"LocalTableScan": 5}))
    run.apply(inner.end(), outer.end())
    assert run.counts("Source: LocalTableScan") == [5]


def test_sampling_job_counts_nothing(run: Run) -> None:
    """Range partitioning samples its input in a result stage, on the accumulators of the map stage."""
    sampling = stage(run.ids, 2)
    run.stages(sampling)
    run.apply(run.task(sampling).end(updates(run.plan, {"MicroBatchScan": 9, "Filter": 9})))
    assert shown(run.job) == {}
    run.apply(run.task(run.map_stage()).end(run.read(9, 9)), run.execution.end())
    assert run.counts() == [9, 0]
    assert run.model.unknown_updates == 0


def test_sampling_job_is_no_stage_of_the_reader(run: Run) -> None:
    """Its scopes name the exchange too, but also nodes that only the map stage has."""
    sampling = stage(run.ids, 7, scopes=["MicroBatchScan", "Filter", "Exchange"])
    run.stages(sampling)
    assert [vertex.parallelism for vertex in run.job.vertices.values()] == [0, 0]


def test_stage_is_found_by_its_scopes(run: Run) -> None:
    """A stage whose tasks read nothing sends no update; names of plan nodes tell what it executes."""
    below = stage(run.ids, 4, shuffles=True, scopes=["Exchange", "Filter", "MicroBatchScan", "mapPartitions"])
    reader = stage(run.ids, 3, scopes=["HashAggregate", "Exchange"])
    run.stages(below, reader)
    parallelism = {vertex.name: vertex.parallelism for vertex in run.job.vertices.values()}
    assert parallelism == {SOURCE: 4, READER: 3}


def test_first_tasks_count_in_a_vertex_that_a_later_task_tells(run: Run) -> None:
    """A task without telling updates ended before the stage's vertex was known; what it wrote counts too."""
    ids = run.ids
    run.plan = ids.node("Execute InsertInto", ids.node("Filter", scan(ids)))
    run.execution = Execution(ids, run.plan, run.query.describe())
    run.apply(run.execution.start())
    of = stage(ids, 2)
    run.stages(of)
    run.apply(run.task(of, 0).end(bytes_written=500))
    run.apply(run.task(of, 1).end(updates(run.plan, {"MicroBatchScan": 1}), bytes_written=600))
    assert run.counts("Source: RateStream -> Filter -> Sink: Noop", "bytes_out") == [500, 600]


def test_updates_before_the_plan_that_names_them(run: Run) -> None:
    """Adaptive execution runs a stage, then tells the plan with its accumulators; it may tell it again."""
    run.begin(wrap=True)
    of = run.map_stage()
    run.plan = run.new_plan(wrap=True)
    task = run.task(of)
    told = run.read(8, 3)
    run.apply(task.live(told), task.end(told))
    assert shown(run.job) == {}
    for _ in range(2):
        run.apply(run.execution.replan(run.plan))
        assert run.counts() == [8, 0]
    run.apply(run.execution.end())
    assert run.counts() == [8, 0]
    assert run.model.unknown_updates == 0


def test_updates_that_no_plan_ever_names_are_told(run: Run) -> None:
    """Nothing vanishes silently: `unknown_updates` counts the tasks."""
    of = run.map_stage()
    run.apply(run.task(of, 0).end((999_999, 5)), run.task(of, 1).end(), run.execution.end())
    assert run.model.unknown_updates == 1


def test_adaptive_plan_is_shown_once_it_runs() -> None:
    """Of a plan that is still being changed only what runs is told."""
    run = Run(wrap=True)
    assert not run.job.vertices
    run.apply(run.task(run.map_stage()).end(run.read(1, 1)))
    assert [vertex.name for vertex in run.job.vertices.values()] == [SOURCE]
    run.apply(run.execution.end())
    assert {vertex.name for vertex in run.job.vertices.values()} == {SOURCE, READER}


def test_one_exchange_feeds_another(run: Run) -> None:
    """A segment without operators has a name all the same, or no collector would take the job."""
    ids = run.ids
    plan = sink(ids, ids.shuffle(ids.shuffle(scan(ids)), "rangepartitioning(value#1L, 3)"))
    run.apply(Execution(ids, plan, run.query.describe()).start())
    assert "Exchange" in {vertex.name for vertex in run.job.vertices.values()}


# ---- Batches without rows


def test_batch_with_an_empty_source_keeps_the_graph(run: Run) -> None:
    """`LocalTableScan <empty>` stands for the source; the vertices, and that they are current, stay."""
    run.apply(run.execution.end())
    vertices, current, revision = set(run.job.vertices), set(run.job.current), run.job.revision
    assert current == vertices
    run.begin(source=empty(run.ids))
    reader = stage(run.ids, 3)
    run.stages(reader)
    run.apply(run.task(reader).end(updates(run.plan, {"HashAggregate": 2})), run.execution.end())
    assert set(run.job.vertices) == vertices
    assert run.job.current == current
    assert run.job.revision == revision
    assert run.counts(READER, "HashAggregate.out") == [2, 0, 0]


def test_stage_of_an_empty_source_is_the_real_vertexs(run: Run) -> None:
    """Where it runs nevertheless, its operators are found by node, from the sink."""
    run.apply(run.execution.end())
    run.begin(source=empty(run.ids))
    of = run.map_stage(1)
    run.apply(
        run.task(of).end(updates(run.plan, {"Filter": 3, "Exchange.shuffle records written": 2})), run.execution.end()
    )
    assert len(run.job.vertices) == 2
    assert run.counts(SOURCE, "Filter.out") == [2]


def test_vertex_that_left_the_plan_is_no_longer_current(run: Run) -> None:
    """The latest plan tells what is there; the counts of the rest stay."""
    run.apply(run.task(run.map_stage()).end(run.read(1, 1)), run.execution.end())
    ids = run.ids
    other = Execution(ids, sink(ids, ids.node("Filter", scan(ids))), run.query.describe())
    run.apply(other.start(), other.end())
    names = {run.job.vertices[vertex_id].name for vertex_id in run.job.current}
    assert names == {"Source: RateStream -> Filter -> Sink: Noop"}
    assert run.counts() == [1, 0]


# ---- foreachBatch


class ForeachBatch(Run):
    """A stream whose plan ends in Scan ExistingRDD for what user code runs."""

    OUTER = "Source: RateStream -> Project -> Sink: ForeachBatch"

    def __init__(self, shows_subtree: bool) -> None:
        self.shows_subtree = shows_subtree
        self.ids = Ids()
        self.model = new_model()
        self.query = Query(1, sink="ForeachBatchSink")
        self.apply(self.query.started())
        self.query.batch += 1
        self.outer_plan = self.ids.node("Project", scan(self.ids), rows=False)
        self.outer = Execution(self.ids, self.outer_plan, self.query.describe())
        self.apply(self.outer.start())

    def write(self, shuffle: bool, partitioning: str = "hashpartitioning(value#1L, 3)") -> None:
        """User code writes, with an aggregation or without."""
        ids = self.ids
        below = ids.node("Scan ExistingRDD", *([self.outer_plan] if self.shows_subtree else []))
        above = ids.node("HashAggregate", ids.shuffle(below, partitioning)) if shuffle else ids.node("Filter", below)
        self.plan = ids.node("OverwriteByExpression", above)
        self.execution = Execution(ids, self.plan, self.query.describe(), root=self.outer.id)
        self.apply(self.execution.start())

    def told(self, rows: int, **figures: int) -> tuple[int, ...]:
        """A task that reads the stream updates the outer plan's nodes and its own execution's."""
        inner = {"Scan ExistingRDD": rows} | {name.replace("_", " "): value for name, value in figures.items()}
        return updates(self.outer_plan, {"MicroBatchScan": rows}) + updates(self.plan, inner)


@pytest.mark.parametrize("shows_subtree", [False, True], ids=["Spark 4.0", "Spark 4.3"])
class TestForeachBatch:
    """The stream's own plan has no job; the tasks of what user code runs count in both plans."""

    def test_write_counts_in_the_stream_and_in_its_own_plan(self, shows_subtree: bool) -> None:
        """One result stage executes the end of the stream and all of the write."""
        run = ForeachBatch(shows_subtree)
        run.write(shuffle=False)
        of = stage(run.ids, 1)
        run.stages(of)
        run.apply(run.task(of).end(run.told(6, Filter=2)), run.execution.end(), run.outer.end())
        assert run.counts(run.OUTER) == [6]
        assert run.counts("Source: ExistingRDD -> Filter -> Sink: OverwriteByExpression", "Filter.out") == [2]
        assert len(run.job.vertices) == 2

    def test_map_stage_of_a_write_counts_in_the_stream(self, shows_subtree: bool) -> None:
        """With an aggregation it is a map stage that reads the stream, though the stream's plan has no exchange."""
        run = ForeachBatch(shows_subtree)
        run.write(shuffle=True)
        of = run.map_stage()
        run.apply(run.task(of, 1).end(run.told(6) + updates(run.plan, {"Exchange.shuffle records written": 3})))
        assert run.counts(run.OUTER) == [0, 6]
        assert run.counts("Source: ExistingRDD", "records_out") == [0, 3]

    def test_sampling_for_a_write_does_not_count_in_the_stream(self, shows_subtree: bool) -> None:
        """A result stage that does nothing of its own plan but feed a shuffle samples."""
        run = ForeachBatch(shows_subtree)
        run.write(shuffle=True, partitioning="rangepartitioning(value#1L, 3)")
        sampling = stage(run.ids, 2)
        run.stages(sampling)
        run.apply(run.task(sampling).end(run.told(6)))
        assert shown(run.job) == {}
        run.apply(run.task(run.map_stage()).end(run.told(6)))
        assert run.counts(run.OUTER) == [6, 0]

    def test_two_writes_count_the_stream_twice(self, shows_subtree: bool) -> None:
        """Counts are what was done: the second write reads the stream again."""
        run = ForeachBatch(shows_subtree)
        for _ in range(2):
            run.write(shuffle=False)
            of = stage(run.ids, 1)
            run.stages(of)
            run.apply(run.task(of).end(run.told(6)), run.execution.end())
        run.apply(run.outer.end())
        assert run.counts(run.OUTER) == [12]

    def test_inner_plans_are_current_with_the_stream(self, shows_subtree: bool) -> None:
        """All that the batch ran is there, until the next batch."""
        run = ForeachBatch(shows_subtree)
        run.write(shuffle=False)
        of = stage(run.ids, 1)
        run.stages(of)
        run.apply(run.task(of).end(run.told(1)), run.execution.end(), run.outer.end())
        assert run.job.current == run.job.vertices.keys()


def test_plans_of_user_code_are_not_mistaken_for_the_streams() -> None:
    """An empty source in the stream's plan is the stream's own, not what user code ran at that place of its plan."""
    run = ForeachBatch(shows_subtree=False)
    run.apply(run.outer.end())
    run.outer = Execution(run.ids, run.outer_plan, run.query.describe())
    run.apply(run.outer.start())
    run.write(shuffle=False)
    of = stage(run.ids, 1)
    run.stages(of)
    run.apply(run.task(of).end(run.told(6)), run.execution.end(), run.outer.end())
    plan = run.ids.node("Project", empty(run.ids), rows=False)
    idle = Execution(run.ids, plan, run.query.describe())
    run.apply(idle.start(), idle.end())
    assert [run.job.vertices[vertex_id].name for vertex_id in run.job.current] == [run.OUTER]


def test_user_code_that_plans_anew_in_every_batch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A literal of the batch in foreachBatch makes new vertices for ever; the oldest leave, the stream stays."""
    monkeypatch.setattr("spark_hooks.job.VERTICES", 10)
    run = ForeachBatch(shows_subtree=False)
    for batch in range(40):
        run.outer = Execution(run.ids, run.outer_plan, run.query.describe())
        run.apply(run.outer.start())
        run.write(shuffle=False)
        run.plan = _renamed(run.plan, "Filter", f"Filter{batch}x")
        run.execution = Execution(run.ids, run.plan, run.query.describe(), root=run.outer.id)
        run.apply(run.execution.start())
        of = stage(run.ids, 1)
        run.stages(of)
        run.apply(run.task(of).end(run.told(1)), run.execution.end(), run.outer.end())
        assert len(run.job.vertices) <= 10
    assert run.counts(run.OUTER) == [40]
    assert run.job.current <= run.job.vertices.keys()


# ---- States


def start(model: Model, query: Query, **more: str | None) -> None:
    model.apply([query.started(**more)])
    assert model.faults == []


def test_query_is_created_until_it_is_seen_to_run() -> None:
    """A query whose first run this is has nothing to restart from; one that waits for rows runs."""
    model = new_model()
    start(model, Query(1))
    job = model.jobs[Query(1).jid]
    assert (job.state, job.end_ms) == ("CREATED", -1)
    model.apply([records.QueryIdle(query_id(1), Query(1).run_id, 1_795_255_210_000)])
    assert (job.state, job.since_ms["RUNNING"]) == ("RUNNING", 1_795_255_210_000)
    assert job.attempt == wire.Attempt(1_795_255_200_000, Query(1).run_id)


def test_query_that_told_no_start_is_as_old_as_its_application() -> None:
    """One that ran before the recorder came and has no progress yet: its attempt must not be the oldest of all."""
    model = new_model()
    start(model, Query(1), timestamp=None)
    assert model.jobs[Query(1).jid].attempt.start_ms == APP.start_ms


def test_started_query_is_told_once() -> None:
    """Attaching may tell a query that tells its start itself."""
    run = Run()
    job = run.job
    run.apply(run.query.started())
    assert run.job is job


@pytest.mark.parametrize("told", [False, True], ids=["before its end was told", "after its end was told"])
def test_second_run_is_restarting_until_its_first_batch(told: bool) -> None:
    """The same id with another run id; also when the collector knows the first run's end, and it is forgotten."""
    run = Run()
    run.apply(run.execution.end(), run.query.terminated(exception="boom"))
    if told:
        run.model.forget(run.query.jid, run.job.attempt)
        assert not run.model.jobs
    run.query = Query(1, run=1)
    run.apply(run.query.started(timestamp="2026-11-21T10:30:00.000Z"))
    assert run.job.state == "RESTARTING"
    run.begin()
    assert run.job.state == "RUNNING"
    assert run.job.since_ms["RUNNING"] == 5_000_000


def test_second_run_begins_at_zero(run: Run) -> None:
    """A run counts for itself; events of the run before do not reach it."""
    of = run.map_stage()
    late = run.task(of, 1)
    told = run.read(5, 5)
    run.apply(run.task(of).end(told), run.query.terminated())
    old = run.query
    run.query = Query(1, run=1)
    run.apply(run.query.started())
    run.apply(late.end(told), old.progress(5), old.terminated(exception="late"))
    assert run.job.state == "RESTARTING"
    assert not run.job.vertices
    assert "numInputRows" in run.job.metrics()
    assert run.job.metrics()["numInputRows"] == 0


def test_runs_that_were_replaced_are_not_held() -> None:
    """A query that restarts for ever, while no collector takes its ends, holds one run."""
    model = new_model()
    for number in range(50):
        query = Query(1, run=number)
        model.apply([query.started(), query.terminated()])
    assert len(model._runs) == len(model.jobs) == 1


@pytest.mark.parametrize("trigger", ["AvailableNowTrigger", "OneTimeTrigger", "AvailableNowTrigger$"])
def test_query_that_ends_by_itself_is_finished(trigger: str) -> None:
    """Its trigger says that it ends when it has read everything."""
    model = new_model()
    query = Query(1, trigger=trigger)
    model.apply([query.started(), query.terminated(7_000_000)])
    job = model.jobs[query.jid]
    assert (job.state, job.end_ms, job.since_ms["FINISHED"]) == ("FINISHED", 7_000_000, 7_000_000)


def test_query_that_is_stopped_is_canceled() -> None:
    """An end without an exception under any other trigger is a stop."""
    model = new_model()
    model.apply([Query(1).started(), Query(1).terminated()])
    assert model.jobs[Query(1).jid].state == "CANCELED"


def test_query_that_an_exception_ended_has_failed(run: Run) -> None:
    """The exception's text is kept, and the batch under way counts as failed; nothing changes it afterwards."""
    run.apply(run.query.terminated(7_000_000, "it broke"), run.query.terminated(8_000_000))
    assert (run.job.state, run.job.failure, run.job.end_ms) == ("FAILED", "it broke", 7_000_000)
    assert run.job.metrics()["numberOfFailedCheckpoints"] == 1
    run.apply(records.ApplicationEnd(9_000_000))
    assert (run.job.state, run.job.end_ms) == ("FAILED", 7_000_000)


@pytest.mark.parametrize("trigger", ["ProcessingTimeTrigger(0)", "AvailableNowTrigger"])
def test_end_of_the_application_cancels_what_runs(trigger: str) -> None:
    """What had not ended by then was cut off, whatever its trigger; a batch too."""
    model, ids = new_model(), Ids()
    batch = Execution(ids, ids.node("Filter", scan(ids)), "show at app.py:3")
    query = Query(1, trigger=trigger)
    model.apply([query.started(), batch.start(), batch.job(stage(ids, 1)), records.ApplicationEnd(8_000_000)])
    assert [(job.state, job.end_ms) for job in model.jobs.values()] == [("CANCELED", 8_000_000)] * 2


# ---- Names and batch executions


def test_job_is_called_by_its_querys_name(run: Run) -> None:
    """The name that the user gave."""
    assert run.job.name == "departures"


def test_job_without_a_name_is_called_by_application_source_and_sink() -> None:
    """Stable over restarts: '<app>: <source> -> <sink>'; before any plan is known, the application's name."""
    model, ids = new_model(), Ids()
    query = Query(1, name=None)
    start(model, query)
    job = model.jobs[query.jid]
    assert job.name == "flights"
    query.batch = 0
    model.apply([Execution(ids, sink(ids, ids.node("Filter", scan(ids))), query.describe()).start()])
    assert job.name == "flights: RateStream -> Noop"


def test_batch_execution_is_a_job_once_it_runs_a_spark_job() -> None:
    """Its id is the MD5 of application and root execution, its name the first line of its description."""
    model, ids = new_model(), Ids()
    plan = ids.node("Filter", scan(ids))
    batch = Execution(ids, plan, "count at app.py:7\nmore of it")
    model.apply([batch.start(4_000_000)])
    assert not model.jobs
    of = stage(ids, 2)
    task = Task(ids, of, 1)
    model.apply([batch.job(of), submitted(of), task.start(), task.end(updates(plan, {"MicroBatchScan": 5}))])
    [job] = model.jobs.values()
    assert job.jid == hashlib.md5(b"app-7:0").hexdigest()
    assert (job.kind, job.name, job.state) == ("BATCH", "count at app.py:7", "RUNNING")
    assert job.attempt == wire.Attempt(4_000_000, str(batch.id))
    assert job.metrics() == {}
    assert shown(job)["Source: RateStream -> Filter", 1, "records_in"] == 5
    model.apply([batch.end(7_000_000)])
    assert (job.state, job.end_ms) == ("FINISHED", 7_000_000)


def test_batch_execution_that_fails_says_why() -> None:
    """Spark tells the error with the execution's end."""
    model, ids = new_model(), Ids()
    batch = Execution(ids, ids.node("Filter", scan(ids)), "count at app.py:7")
    model.apply([batch.start(), batch.job(stage(ids, 1)), batch.end(7_000_000, "it broke")])
    [job] = model.jobs.values()
    assert (job.state, job.failure) == ("FAILED", "it broke")


def test_inner_executions_of_a_batch_are_one_job() -> None:
    """Executions are grouped by their root; the first Spark job of any makes the job."""
    model, ids = new_model(), Ids()
    root = Execution(ids, ids.node("Execute CreateTable", rows=False), "save at app.py:9")
    first = Execution(ids, ids.node("Filter", scan(ids)), "save at app.py:9", root=root.id)
    second = Execution(ids, ids.node("Project", scan(ids), rows=False), "save at app.py:9", root=root.id)
    model.apply([root.start(), first.start(), first.job(stage(ids, 1)), second.start(), second.job(stage(ids, 1))])
    model.apply([first.end(), second.end()])
    [job] = model.jobs.values()
    assert job.state == "RUNNING"
    model.apply([root.end()])
    assert job.state == "FINISHED"


def test_ended_batches_are_held_to_a_number() -> None:
    """With no collector to tell, the oldest ended jobs are forgotten; one that runs never is."""
    model, ids = new_model(), Ids()
    start(model, Query(1))
    for _ in range(execution.ENDED_JOBS + 20):
        batch = Execution(ids, ids.node("Filter", scan(ids)), "count")
        model.apply([batch.start(), batch.job(stage(ids, 1)), batch.end()])
    assert Query(1).jid in model.jobs
    assert len(model.jobs) <= execution.ENDED_JOBS + 2


# ---- The edge


def test_event_that_cannot_be_applied_does_not_stop_the_others() -> None:
    """It is noted in `faults` by its kind, and what follows is applied."""
    model = new_model()
    model.apply([records.QueryProgress("no json"), records.Fault("recorder: out of luck"), Query(1).started()])
    assert Query(1).jid in model.jobs
    first, second = model.faults
    assert first.startswith("QueryProgress: ")
    assert second == "recorder: out of luck"


def test_events_of_what_began_before_the_recorder_are_ignored() -> None:
    """Attached in the middle of a batch: its executions, stages and tasks are not known, and harm nothing."""
    model, ids = new_model(), Ids()
    of = stage(ids, 1)
    task = Task(ids, of, 0)
    gone = Execution(ids, scan(ids), "")
    model.apply([gone.job(of), gone.replan(scan(ids)), gone.driver({"MicroBatchScan": 1}), submitted(of)])
    model.apply([task.start(), task.live((1, 2)), task.end((1, 2)), completed(of), gone.end(), Query(1).progress()])
    assert model.faults == []
    assert not model.jobs


def test_stages_of_a_job_outside_sql_are_ignored(run: Run) -> None:
    """A job without an execution, of plain RDDs, has no plan."""
    of = stage(run.ids, 1)
    run.apply(records.JobStart(99, 0, -1, None, None, -1, (of,)), run.task(of).end())
    assert shown(run.job) == {}


def test_stage_that_a_later_job_lists_again_is_the_same(run: Run) -> None:
    """A shuffle that is there already is listed, and skipped, by every later job."""
    of = run.map_stage()
    run.apply(run.task(of).end(run.read(5, 5)))
    run.apply(run.execution.job(of), run.task(of, attempt=1).end(run.read(5, 5)))
    assert run.counts() == [5, 0]


# ---- Memory


def held(model: Model) -> int:
    return len(model._executions) + len(model._stages) + len(model._owners) + len(model._graphs) + len(model._runs)


def test_five_thousand_batches_leave_no_more_than_a_few_hundred() -> None:
    """Executions, stages and accumulators of batches long gone are forgotten."""
    run = Run()
    most = 0
    for batch in range(5_000):
        of = run.map_stage()
        run.apply(run.task(of).end(run.read(1, 1)), run.execution.end(), run.query.progress(1))
        run.begin()
        if batch == 1_000:
            most = held(run.model)
    assert held(run.model) <= most
    assert len(run.model._executions) <= execution.ENDED_EXECUTIONS + 1
    assert len(run.model._stages) <= execution.ENDED_EXECUTIONS + 1
    assert len(run.model._graphs) <= execution.ENDED_EXECUTIONS + 1
    assert run.counts() == [5_000, 0]
    assert not run.job.vertices[next(iter(run.job.vertices))].counters._live


def test_executions_whose_end_was_dropped_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder drops records where its room runs out; an end that never comes must not be waited for."""
    monkeypatch.setattr(execution, "RUNNING_EXECUTIONS", 8)
    run = Run()
    for _ in range(100):
        run.map_stage()
        run.begin()
    assert len(run.model._executions) <= 8
    assert len(run.model._stages) <= 8


def test_adaptive_plans_of_an_execution_leave_with_it() -> None:
    """Every plan that an execution had, not only its last one."""
    run = Run(wrap=True)
    for _ in range(execution.ENDED_EXECUTIONS * 2):
        for _ in range(3):
            run.apply(run.execution.replan(run.new_plan(wrap=True)))
        run.apply(run.execution.end())
        run.begin(wrap=True)
    assert len(run.model._graphs) <= 4 * (execution.ENDED_EXECUTIONS + 1)
    assert accumulator(run.plan, "Filter") in run.model._owners
