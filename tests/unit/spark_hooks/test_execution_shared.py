"""Work that several plans name, or that another stage does than the one that needs it: caches, foreachBatch."""

from __future__ import annotations

import pytest

from spark_hooks import records
from spark_hooks.records import PlanNode
from tests.unit.spark_hooks.spark_events import (
    SOURCE,
    Execution,
    Ids,
    Query,
    Run,
    Task,
    adaptive,
    new_model,
    scan,
    shown,
    sink,
    stage,
    submitted,
    updates,
)

CACHED = "Source: RateStream -> Filter -> InMemoryTableScan -> HashAggregate"


@pytest.fixture
def run() -> Run:
    return Run()


def cache(ids: Ids, name: str = "InMemoryTableScan") -> PlanNode:
    return ids.node(name, ids.node("Filter", scan(ids)))


class Cached(Run):
    """A query `cache -> aggregate -> exchange -> sink`."""

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        ids = self.ids
        return sink(ids, ids.shuffle(ids.node("HashAggregate", source or cache(ids))))

    def filled(self, rows: int, kept: int, **more: int) -> tuple[int, ...]:
        return updates(self.plan, {"MicroBatchScan": rows, "Filter": kept} | more)


# ---- Caches


def test_cache_that_a_job_of_its_own_fills_counts_in_the_vertex_that_reads_it() -> None:
    """Adaptive execution fills a cache in a result stage, whatever feeds on it later."""
    run = Cached()
    filling = stage(run.ids, 2)
    run.stages(filling)
    run.apply(*(run.task(filling, partition).end(run.filled(9, 5)) for partition in range(2)))
    read = {"InMemoryTableScan": 5, "HashAggregate": 2, "Exchange.shuffle records written": 2}
    run.apply(run.task(run.map_stage()).end(updates(run.plan, read)), run.execution.end())
    labels = ("records_in", "Filter.out", "InMemoryTableScan.out", "HashAggregate.in", "records_out")
    assert [run.counts(CACHED, label) for label in labels] == [[9, 9], [5, 5], [5, 0], [5, 0], [2, 0]]
    assert run.model.unknown_updates == 0


def test_sampling_job_that_fills_a_cache_counts_below_it_only() -> None:
    """What it reads of the cache, the map stage reads again."""
    run = Cached()
    sampling = stage(run.ids, 2)
    run.stages(sampling)
    run.apply(run.task(sampling).end(run.filled(9, 5, InMemoryTableScan=5, HashAggregate=2)))
    counts = {label: value for (_, _, label), value in shown(run.job).items() if not label.startswith("records")}
    assert counts == {
        "Source: RateStream.in": 9,
        "Source: RateStream.out": 9,
        "Filter.in": 9,
        "Filter.out": 5,
        "InMemoryTableScan.in": 5,
    }


def test_sampling_job_that_reads_a_full_cache_counts_nothing() -> None:
    """Nothing below the cache runs."""
    run = Cached()
    sampling = stage(run.ids, 2)
    run.stages(sampling)
    run.apply(run.task(sampling).end(updates(run.plan, {"InMemoryTableScan": 5, "HashAggregate": 2})))
    assert shown(run.job) == {}


def test_cached_table_with_a_name_is_a_cache_too() -> None:
    """Spark calls its scan by the table."""
    run = Cached()
    run.begin(source=cache(run.ids, "Scan In-memory table t"))
    filling = stage(run.ids, 2)
    run.stages(filling)
    run.apply(run.task(filling).end(run.filled(9, 5)))
    assert run.counts(CACHED.replace("InMemoryTableScan", "Scan In-memory table t"), "Filter.out") == [5, 0]


def test_fill_counts_in_the_job_that_runs_it(run: Run) -> None:
    """Two queries read one cached table: its accumulators stand in the plans of both, the newer one's too."""
    ids = run.ids
    table = cache(ids)
    plan = sink(ids, ids.node("Project", table, rows=False))
    mine = Execution(ids, plan, run.query.describe())
    other = Query(2, name="other")
    other.batch = 0
    theirs = Execution(ids, sink(ids, ids.node("Sort", table, rows=False)), other.describe())
    run.apply(mine.start(), other.started(), theirs.start())
    filling = stage(ids, 1)
    run.apply(mine.job(filling), submitted(filling))
    run.apply(Task(ids, filling, 0).end(updates(plan, {"MicroBatchScan": 9, "Filter": 5})), mine.end(), theirs.end())
    vertex = "Source: RateStream -> Filter -> InMemoryTableScan -> Project -> Sink: Noop"
    assert run.counts(vertex, "Filter.out") == [5]
    assert shown(run.model.jobs[other.jid]) == {}
    assert not any("Sort" in each.name for each in run.job.graph.vertices.values())


# ---- Scopes are a guess until updates tell


def test_updates_correct_what_scopes_had_told(run: Run) -> None:
    """Scopes are names, and two vertices may have the same; an accumulator is one node's alone."""
    ids = run.ids
    first = ids.shuffle(ids.node("Filter", scan(ids)))
    second = ids.shuffle(ids.node("Project", ids.node("Sample", scan(ids)), rows=False))
    run.plan = sink(ids, ids.node("HashAggregate", first, second))
    run.execution = Execution(ids, run.plan, run.query.describe())
    run.apply(run.execution.start())
    of = stage(ids, 1, shuffles=True, scopes=["MicroBatchScan", "Exchange"])
    run.stages(of)
    run.apply(run.task(of).end(updates(run.plan, {"Sample": 3})), run.execution.end())
    assert run.counts("Source: RateStream -> Sample -> Project", "Sample.out") == [3]


def test_generated_code_that_no_plan_names_is_not_guessed_at(run: Run) -> None:
    """Where a cache is filled adaptively, the stage's code is of a plan that is not told yet."""
    unknown = stage(run.ids, 7, scopes=["Exchange", "WholeStageCodegen (2)"])
    run.stages(unknown)
    assert [vertex.parallelism for vertex in run.job.graph.vertices.values()] == [0, 0]


# ---- Plans within plans


def test_replanned_execution_counts_once_though_the_enclosing_plan_is_older(run: Run) -> None:
    """A scan keeps its accumulators when adaptive execution plans anew; the outer plan is not told again."""
    ids = run.ids
    source = scan(ids)
    outer = Execution(ids, sink(ids, adaptive(ids.node("Filter", source))), "save")
    inner = Execution(ids, outer.plan, "save", root=outer.id)
    final = sink(ids, adaptive(ids.node("Filter", source), final=True))
    of = stage(ids, 1)
    run.apply(outer.start(), inner.start(), inner.replan(final), inner.job(of), submitted(of))
    run.apply(Task(ids, of, 0).end(updates(final, {"MicroBatchScan": 9, "Filter": 5})), inner.end(), outer.end())
    [job] = [job for job in run.model.jobs.values() if job.kind == "BATCH"]
    vertex = "Source: RateStream -> Filter -> Sink: WriteToDataSourceV2"
    found = shown(job)
    assert (found[vertex, 0, "records_in"], found[vertex, 0, "Filter.out"]) == (9, 5)


def test_task_with_one_update_that_no_plan_names_is_told(run: Run) -> None:
    """What is known of it counts; that something is missing is not kept quiet."""
    of = run.map_stage()
    run.apply(run.task(of).end((*run.read(5, 5), 999_999, 1)), run.execution.end())
    assert run.counts() == [5, 0]
    assert run.model.unknown_updates == 1


class Stateful(Run):
    """A stream `scan -> filter -> exchange -> aggregate` that foreachBatch hands to user code."""

    OUTER = "HashAggregate -> Sink: ForeachBatch"

    def __init__(self) -> None:
        self.ids = Ids()
        self.model = new_model()
        self.query = Query(1, sink="ForeachBatchSink")
        self.apply(self.query.started())
        self.query.batch += 1
        ids = self.ids
        self.stream = ids.node("HashAggregate", ids.shuffle(ids.node("Filter", scan(ids))))
        self.outer = Execution(ids, self.stream, self.query.describe())
        self.apply(self.outer.start())

    def write(self, plan: PlanNode) -> None:
        self.plan = plan
        self.execution = Execution(self.ids, plan, self.query.describe(), root=self.outer.id)
        self.apply(self.execution.start())

    def fed(self) -> PlanNode:
        return self.ids.node("Scan ExistingRDD")


def test_streams_own_shuffle_counts_whatever_user_code_writes() -> None:
    """Its map stage does nothing of the write's plan."""
    run = Stateful()
    run.write(run.ids.node("AppendData", run.fed()))
    below = run.map_stage()
    run.apply(run.task(below).end(updates(run.stream, {"MicroBatchScan": 9, "Filter": 6})))
    assert run.counts(SOURCE) == [9, 0]


def test_batch_that_hands_on_nothing_counts_in_the_stream() -> None:
    """An aggregation that waits for its watermark reads rows and puts out none."""
    run = Stateful()
    run.write(run.ids.node("AppendData", run.fed()))
    of = stage(run.ids, 1)
    run.stages(of)
    run.apply(run.task(of).end(updates(run.stream, {"Exchange.records read": 6})))
    assert run.counts(run.OUTER) == [6]


@pytest.mark.parametrize("rows", [0, 4])
def test_sampling_of_a_stream_counts_nothing(rows: int) -> None:
    """Nor where no row comes through, and though its scopes name the exchange that it reads."""
    run = Stateful()
    ids = run.ids
    run.write(ids.node("AppendData", ids.shuffle(run.fed(), "rangepartitioning(value#1L, 3)")))
    sampling = stage(ids, 1, scopes=["Exchange"])
    run.stages(sampling)
    told = updates(run.stream, {"Exchange.records read": 6, "HashAggregate": rows})
    run.apply(run.task(sampling).end(told + updates(run.plan, {"Scan ExistingRDD": rows})))
    assert shown(run.job) == {}


def test_sampling_that_fills_a_cache_of_the_stream_counts_in_the_stream() -> None:
    """It is filled once: the map stage does not come to the stream again."""
    run = Stateful()
    ids = run.ids
    cached = ids.node("InMemoryTableScan", run.fed())
    run.write(ids.node("AppendData", ids.shuffle(cached, "rangepartitioning(value#1L, 3)")))
    sampling = stage(ids, 1)
    run.stages(sampling)
    run.apply(run.task(sampling).end(updates(run.stream, {"Exchange.records read": 6})))
    assert run.counts(run.OUTER) == [6]


def test_plan_of_the_stream_that_comes_again_names_what_came_before_it() -> None:
    """A part of it was planned anew, with other accumulators; what its tasks told counts, and counts once."""
    run = Stateful()
    ids = run.ids
    run.write(ids.node("AppendData", run.fed()))
    source = run.stream.children[0].children[0].children[0]
    told = updates(run.stream, {"MicroBatchScan": 9, "Filter": 6})
    below = run.map_stage()
    run.apply(run.task(below).end(told))
    run.stream = ids.node("HashAggregate", ids.shuffle(ids.node("Filter", source)))
    told = updates(run.stream, {"MicroBatchScan": 9, "Filter": 6, "Exchange.shuffle records written": 6})
    run.apply(run.task(below, 1).end(told))
    assert run.counts(SOURCE, "records_out") == [0, 0]
    run.apply(records.PlanUpdate(run.outer.id, run.stream), records.PlanUpdate(run.outer.id, run.stream))
    assert run.counts(SOURCE) == [9, 9]
    assert run.counts(SOURCE, "records_out") == [0, 6]
