"""Each rule by which Spark's events become counts, on events built by hand."""

from __future__ import annotations

import pytest

from spark_hooks import records
from spark_hooks.records import PlanNode
from tests.unit.spark_hooks.spark_events import (
    READER,
    SOURCE,
    Execution,
    Ids,
    Query,
    Run,
    Task,
    completed,
    empty,
    new_model,
    scan,
    shown,
    sink,
    stage,
    submitted,
    updates,
)

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
    assert len(run.job.graph.vertices) == 2


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


def test_stage_that_writes_the_same_shuffle_again_replaces(run: Run) -> None:
    """Of an adaptive plan the reader's job has a stage of its own for the map stage: what was lost is made there."""
    of = run.map_stage()
    old = run.task(of)
    run.apply(*(run.task(of, partition).end(run.read(5, 5)) for partition in (0, 1)))
    again = stage(run.ids, 2, shuffles=True)
    again = records.Stage(again.stage, 1, 2, of.shuffle, (), ())
    run.stages(again, stage(run.ids, 1))
    run.apply(run.task(again, 1, stage_attempt=1).end(run.read(7, 7)), old.end(run.read(9, 9)))
    assert run.counts() == [5, 7]
    run.apply(run.task(of, 1, stage_attempt=2).end(run.read(9, 9)))
    assert run.counts() == [5, 7]


def test_shuffle_that_was_not_written_yet_is_of_the_execution_that_writes_it(run: Run) -> None:
    """A job lists what it would write; where it was given up before, another one's stage is that one's own work."""
    of = run.map_stage()
    run.apply(run.execution.end(error="given up"))
    run.begin()
    mine = records.Stage(stage(run.ids, 2, shuffles=True).stage, 0, 2, of.shuffle, (), ())
    run.stages(mine)
    run.apply(run.task(mine, 1).end(run.read(5, 5)))
    assert run.counts() == [0, 5]
    assert run.model._stages[mine.stage].execution.id == run.execution.id


def test_stages_that_write_different_shuffles_add_up(run: Run) -> None:
    """What is done twice is counted twice: the second write of a foreachBatch has a shuffle of its own."""
    for _ in range(2):
        run.apply(run.task(run.map_stage(), 1).end(run.read(5, 5)))
    assert run.counts() == [0, 10]


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
    assert len(run.job.graph.vertices) == 2


def test_second_execution_is_the_querys_own_plan_too(run: Run) -> None:
    """What it finds empty is the query's vertex at the same place, as in the root execution."""
    run.apply(run.execution.end())
    revision = run.job.graph.revision
    run.begin(source=empty(run.ids))
    inner = Execution(run.ids, run.plan, run.query.describe(), root=run.execution.id)
    of = stage(run.ids, 1, shuffles=True)
    run.apply(inner.start(), inner.job(of), submitted(of))
    run.apply(run.task(of).end(updates(run.plan, {"Filter": 3})), inner.end(), run.execution.end())
    assert run.counts(SOURCE, "Filter.in") == [0]
    assert len(run.job.graph.vertices) == 2
    assert run.job.graph.revision == revision


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
    assert [vertex.parallelism for vertex in run.job.graph.vertices.values()] == [0, 0]


def test_stage_is_found_by_its_scopes(run: Run) -> None:
    """A stage whose tasks read nothing sends no update; names of plan nodes tell what it executes."""
    below = stage(run.ids, 4, shuffles=True, scopes=["Exchange", "Filter", "MicroBatchScan", "mapPartitions"])
    reader = stage(run.ids, 3, scopes=["HashAggregate", "Exchange"])
    run.stages(below, reader)
    parallelism = {vertex.name: vertex.parallelism for vertex in run.job.graph.vertices.values()}
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
    assert not run.job.graph.vertices
    run.apply(run.task(run.map_stage()).end(run.read(1, 1)))
    assert [vertex.name for vertex in run.job.graph.vertices.values()] == [SOURCE]
    run.apply(run.execution.end())
    assert {vertex.name for vertex in run.job.graph.vertices.values()} == {SOURCE, READER}


def test_one_exchange_feeds_another(run: Run) -> None:
    """A segment without operators has a name all the same, or no collector would take the job."""
    ids = run.ids
    plan = sink(ids, ids.shuffle(ids.shuffle(scan(ids)), "rangepartitioning(value#1L, 3)"))
    run.apply(Execution(ids, plan, run.query.describe()).start())
    assert "Exchange" in {vertex.name for vertex in run.job.graph.vertices.values()}


# ---- Batches without rows


def test_batch_with_an_empty_source_keeps_the_graph(run: Run) -> None:
    """`LocalTableScan <empty>` stands for the source; the vertices, and that they are current, stay."""
    run.apply(run.execution.end())
    vertices, current, revision = set(run.job.graph.vertices), set(run.job.graph.current), run.job.graph.revision
    assert current == vertices
    run.begin(source=empty(run.ids))
    reader = stage(run.ids, 3)
    run.stages(reader)
    run.apply(run.task(reader).end(updates(run.plan, {"HashAggregate": 2})), run.execution.end())
    assert set(run.job.graph.vertices) == vertices
    assert run.job.graph.current == current
    assert run.job.graph.revision == revision
    assert run.counts(READER, "HashAggregate.out") == [2, 0, 0]


def test_stage_of_an_empty_source_is_the_real_vertexs(run: Run) -> None:
    """Where it runs nevertheless, its operators are found by node, from the sink."""
    run.apply(run.execution.end())
    run.begin(source=empty(run.ids))
    of = run.map_stage(1)
    run.apply(
        run.task(of).end(updates(run.plan, {"Filter": 3, "Exchange.shuffle records written": 2})), run.execution.end()
    )
    assert len(run.job.graph.vertices) == 2
    assert run.counts(SOURCE, "Filter.out") == [2]


def test_vertex_that_left_the_plan_is_no_longer_current(run: Run) -> None:
    """The latest plan tells what is there; the counts of the rest stay."""
    run.apply(run.task(run.map_stage()).end(run.read(1, 1)), run.execution.end())
    ids = run.ids
    other = Execution(ids, sink(ids, ids.node("Filter", scan(ids))), run.query.describe())
    run.apply(other.start(), other.end())
    names = {run.job.graph.vertices[vertex_id].name for vertex_id in run.job.graph.current}
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
        assert len(run.job.graph.vertices) == 2

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
        assert run.job.graph.current == run.job.graph.vertices.keys()


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
    assert [run.job.graph.vertices[vertex_id].name for vertex_id in run.job.graph.current] == [run.OUTER]


def test_user_code_that_plans_anew_in_every_batch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A literal of the batch in foreachBatch makes new vertices for ever; the oldest leave, the stream stays."""
    monkeypatch.setattr("spark_hooks.job_graph.VERTICES", 10)
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
        assert len(run.job.graph.vertices) <= 10
    assert run.counts(run.OUTER) == [40]
    assert run.job.graph.current <= run.job.graph.vertices.keys()
