"""Any life of some queries leaves the counts that plain rules give for the list of their task attempts."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings

from spark_hooks import records
from spark_hooks.job import Job
from spark_hooks.records import PlanNode
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Shown,
    Task,
    adaptive,
    completed,
    empty,
    new_model,
    scan,
    shown,
    stage,
    submitted,
)

Owner = tuple[str, str]
"""(jid, run id) of a job."""

Work = dict[str, int]
"""What one task did: rows of the segment's nodes by name, and what it read and wrote."""

READ = ("records read", "local bytes read", "remote bytes read", "local blocks read", "remote blocks read")
WRITTEN = ("shuffle records written", "shuffle bytes written")


def metric(node: PlanNode, name: str = "number of output rows") -> int:
    return int(node.metrics[node.metrics.index(name) + 1])


@dataclass
class Segment:
    """A vertex of one instance of a plan, with the nodes that its tasks update."""

    nodes: list[tuple[str, PlanNode]] = field(default_factory=list)
    end: str | None = None
    reads: PlanNode | None = None
    writes: PlanNode | None = None
    sampled: bool = False

    @property
    def name(self) -> str:
        return " -> ".join([name for name, _ in self.nodes] + ([self.end] if self.end else []))

    @property
    def scopes(self) -> set[str]:
        exchange = {"Exchange"} if self.reads or self.writes else set()
        return {node.name for _, node in self.nodes} | exchange

    def work(self, random: Random, least: Work | None = None) -> Work:
        """What a task might do; no less than `least`."""
        what = [name for name, _ in self.nodes]
        what += READ if self.reads else ()
        what += WRITTEN if self.writes else ()
        return {name: (least or {}).get(name, 0) + random.choice((0, 1, 7, 10**9)) for name in what}

    def updates(self, work: Work) -> dict[int, int]:
        told = {metric(node): work[name] for name, node in self.nodes}
        if self.reads:
            told |= {metric(self.reads, name): work[name] for name in READ}
        if self.writes:
            told |= {metric(self.writes, name): work[name] for name in WRITTEN}
        return told

    def counts(self, work: Work) -> Work:
        """The rules: in is what came from below, out is the node's rows, or what was written for an exchange."""
        found: Work = {}
        came = work[READ[0]] if self.reads else work[self.nodes[0][0]]
        found["records_in"] = came
        for name, _ in self.nodes:
            found[f"{name}.in"] = came
            came = found[f"{name}.out"] = work[name]
        if self.writes:
            came = found[f"{name}.out"] = work[WRITTEN[0]]
            found["bytes_out"] = work[WRITTEN[1]]
        if self.end:
            found[f"{self.end}.in"] = found[f"{self.end}.out"] = came
        found["records_out"] = came
        if self.reads:
            totals = ("bytes_local", "bytes_remote", "blocks_local", "blocks_remote")
            found |= {total: work[name] for total, name in zip(totals, READ[1:], strict=True)}
            found["bytes_in"] = found["bytes_local"] + found["bytes_remote"]
        return found


@dataclass
class Shape:
    """A query's plan: how many exchanges of which kind, a broadcast table or none."""

    exchanges: tuple[str, ...]
    broadcast: bool
    leaf: str
    end: str | None

    def build(self, ids: Ids, no_rows: bool = False, below: PlanNode | None = None) -> tuple[PlanNode, list[Segment]]:
        """An instance with accumulators of its own."""
        if self.leaf == "ExistingRDD":
            node = ids.node("Scan ExistingRDD", *([below] if below else []))
        else:
            node = empty(ids) if no_rows else scan(ids)
        segment = Segment([(f"Source: {self.leaf}", node)])
        segments = [segment]
        node = ids.node("Filter", node)
        segment.nodes.append(("Filter", node))
        if self.broadcast:
            table = ids.node("LocalTableScan", description="LocalTableScan [name#1]")
            segments.append(Segment([("Source: LocalTableScan", table)]))
            node = ids.node("BroadcastHashJoin", node, ids.node("BroadcastExchange", table))
            segment.nodes.append(("BroadcastHashJoin", node))
        for number, partitioning in enumerate(self.exchanges):
            node = ids.shuffle(node, f"{partitioning}(value#1L, 3)")
            segment.writes, segment.sampled = node, partitioning == "rangepartitioning"
            segment = Segment(reads=node)
            node = ids.node(f"Aggregate{number}", node)
            segment.nodes.append((f"Aggregate{number}", node))
            segments.append(segment)
        segment.end = self.end
        if self.end is not None:
            node = ids.node("WriteToDataSourceV2" if self.end == "Sink: Noop" else "AppendData", node)
        return node, segments


def shapes(random: Random, leaf: str, end: str | None) -> Shape:
    exchanges = tuple(random.choice(("hashpartitioning", "rangepartitioning")) for _ in range(random.randint(0, 2)))
    return Shape(exchanges, leaf == "RateStream" and random.random() < 0.3, leaf, end)


class Life:
    """Events of one query or batch, and who does what in them."""

    def __init__(self, random: Random, ids: Ids, orderly: bool) -> None:
        self.random = random
        self.ids = ids
        self.orderly = orderly
        self.events: list[records.Record] = []
        self.late: list[tuple[records.Record, records.Record]] = []
        # Task → what counts where if it wins; driver work counts by itself.
        self.meaning: dict[int, list[tuple[Owner, str, Work]]] = {}
        self.by_driver: list[tuple[Owner, str, Work]] = []

    # ---- Stages

    def run(self, owner: Owner, execution: Execution, segments: list[Segment], outer: Segment | None = None) -> None:
        """Run the stages of one execution, sampling ones among them, in one Spark job or several."""
        for index, segment in enumerate(segments):
            if segment.nodes[0][0] == "Source: LocalTableScan":
                continue
            also = outer if index == 0 else None
            if segment.sampled:
                self.stage(None, execution, segment, also)
            self.stage(owner, execution, segment, also)

    def stage(self, owner: Owner | None, execution: Execution, segment: Segment, outer: Segment | None) -> None:
        """One stage with all its attempts; without an owner it samples, and counts nothing."""
        random = self.random
        scopes = sorted(segment.scopes | {"parallelize"}) if random.random() < 0.5 else []
        told = stage(self.ids, random.randint(1, 3), owner is not None and segment.writes is not None, scopes)
        self.events += [execution.job(told), submitted(told)]
        least = [segment.work(random) for _ in range(told.tasks)]
        ran = range(told.tasks)
        for attempt in range(random.choice((1, 1, 1, 2, 3))):
            if attempt:
                self.events += [completed(told, attempt - 1, "FetchFailed"), submitted(told)]
                ran = sorted(random.sample(range(told.tasks), random.randint(1, told.tasks)))
                for partition in ran:
                    least[partition] = self.perhaps_other(segment, least[partition])
            attempts = [
                self.partition(owner, segment, outer, told, partition, attempt, least[partition]) for partition in ran
            ]
            while any(attempts):
                self.events.append(random.choice([left for left in attempts if left]).pop(0))
        self.events.append(completed(told, attempt))

    def perhaps_other(self, segment: Segment, work: Work) -> Work:
        """What another attempt does: where counts are watched no less, or what was shown could not be taken back."""
        return segment.work(self.random, work) if self.orderly else segment.work(self.random)

    def partition(
        self,
        owner: Owner | None,
        segment: Segment,
        outer: Segment | None,
        told: records.Stage,
        partition: int,
        stage_attempt: int,
        work: Work,
    ) -> list[records.Record]:
        """Attempts of one partition in one stage attempt: failures, then one or two that succeed, in any order."""
        random = self.random
        events: list[records.Record] = []
        number = 0

        def attempt() -> Task:
            nonlocal number
            task = Task(self.ids, told, partition, number, stage_attempt, 5_000_000 + number)
            number += 1
            return task

        def live(task: Task) -> list[records.Record]:
            """Cumulative values that heartbeats tell, at most those of the end."""
            values = sorted(random.random() for _ in range(random.choice((0, 0, 1, 3))))
            ceiling = work if self.orderly else segment.work(random)
            return [
                task.live(said(segment, outer, {k: int(v * share) for k, v in ceiling.items()})) for share in values
            ]

        for _ in range(random.choice((0, 0, 0, 1, 2))):
            task = attempt()
            events += scattered(random, [task.start(), task.end(succeeded=False)], live(task))
        tasks = [attempt() for _ in range(random.choice((1, 1, 2)))]
        for index, task in enumerate(tasks):
            done = work if self.orderly or not index else segment.work(random)
            # Whichever succeeds first wins, so a loser may also be the one that was started first.
            succeeds = index == 0 or random.random() < 0.5
            self.meaning[task.id] = []
            if owner is not None:
                self.meaning[task.id].append((owner, segment.name, segment.counts(done)))
                if outer is not None:
                    self.meaning[task.id].append((owner, outer.name, outer.counts(outer_work(outer, done))))
            end = task.end(said(segment, outer, done), succeeded=succeeds)
            start = task.start()
            own = scattered(random, [start, end], live(task))
            if len(tasks) > 1 and random.random() < 0.4:
                own.remove(end)
                self.late.append((start, end))
            events = scattered(random, events, own)
        return events

    # ---- Executions

    def with_replans(self, execution: Execution, plan: PlanNode, start: int) -> None:
        """Tell the plan that the tasks' accumulators are of, once or more, at any time after the start."""
        for final in sorted(self.random.random() < 0.5 for _ in range(self.random.randint(1, 3))):
            self.events.insert(self.random.randint(start, len(self.events)), execution.replan(adaptive(plan, final)))

    def settle(self) -> list[records.Record]:
        """All events in an order that Spark may tell: an end that is late comes at any time after its start."""
        for start, end in self.late:
            place = next(index for index, event in enumerate(self.events) if event is start)
            self.events.insert(self.random.randint(place + 1, len(self.events)), end)
        return self.events


def said(segment: Segment, outer: Segment | None, work: Work) -> tuple[int, ...]:
    told = segment.updates(work)
    if outer is not None:
        told |= outer.updates(outer_work(outer, work))
    return tuple(one for pair in told.items() if pair[1] for one in pair)


def outer_work(outer: Segment, work: Work) -> Work:
    """What a task of user code in foreachBatch does in the stream's own plan: it reads the same rows."""
    return {name: work["Source: ExistingRDD"] for name, _ in outer.nodes}


def scattered(random: Random, events: list[records.Record], more: list[records.Record]) -> list[records.Record]:
    """Both in their own order, mixed at random."""
    left, right, mixed = list(events), list(more), []
    while left or right:
        mixed.append((random.choice([one for one in (left, right) if one])).pop(0))
    return mixed


def query_life(random: Random, ids: Ids, orderly: bool, number: int) -> Life:
    """Some batches of a streaming query, over one run or two."""
    life = Life(random, ids, orderly)
    foreach = random.choice((None, None, "4.0", "4.3"))
    adapts, twice = random.random() < 0.4, random.random() < 0.5
    shape = shapes(random, "ExistingRDD" if foreach else "RateStream", "Sink: AppendData" if foreach else "Sink: Noop")
    for run in range(random.choice((1, 1, 2))):
        query = Query(number, run=run, sink="ForeachBatchSink" if foreach else "NoopTable")
        owner = (query.jid, query.run_id)
        life.events.append(query.started(f"2026-11-21T1{run}:00:00.000Z"))
        for batch in range(random.randint(1, 4)):
            query.batch = batch
            if foreach:
                foreach_batch(life, owner, query, shape, foreach == "4.3")
            else:
                micro_batch(life, owner, query, shape, adapts, twice)
            life.events.append(query.progress())
        life.events.append(query.terminated())
    return life


def micro_batch(life: Life, owner: Owner, query: Query, shape: Shape, adapts: bool, twice: bool) -> None:
    random, ids = life.random, life.ids
    no_rows = bool(shape.exchanges) and not adapts and random.random() < 0.3
    plan, segments = shape.build(ids, no_rows)
    final, final_segments = shape.build(ids) if adapts else (plan, segments)
    first = Execution(ids, adaptive(plan) if adapts else plan, query.describe())
    life.events.append(first.start())
    execution = first
    if twice:
        execution = Execution(ids, first.plan, query.describe(), root=first.id)
        life.events.append(execution.start())
    start = len(life.events)
    # Where there is nothing to read the first stage is never submitted.
    life.run(owner, execution, final_segments[1 + shape.broadcast :] if no_rows else final_segments)
    if shape.broadcast:
        table = final_segments[1]
        for rows in sorted(random.sample(range(1, 9), random.randint(1, 2))):
            life.events.append(records.DriverUpdates(execution.id, (metric(table.nodes[0][1]), rows)))
        life.by_driver.append((owner, table.name, table.counts({"Source: LocalTableScan": rows})))
    if adapts:
        life.with_replans(execution, final, start)
    life.events += [each.end() for each in ((execution, first) if twice else (first,))]


def foreach_batch(life: Life, owner: Owner, query: Query, shape: Shape, shows_subtree: bool) -> None:
    random, ids = life.random, life.ids
    leaf = scan(ids)
    outer_plan = ids.node("Filter", leaf)
    outer = Segment([("Source: RateStream", leaf), ("Filter", outer_plan)], end="Sink: ForeachBatch")
    root = Execution(ids, outer_plan, query.describe())
    life.events.append(root.start())
    for _ in range(random.randint(0, 2)):
        adapts = random.random() < 0.4
        below = outer_plan if shows_subtree else None
        plan, segments = shape.build(ids, below=below)
        final, final_segments = (
            shape.build(ids, below=outer_plan if shows_subtree else None) if adapts else (plan, segments)
        )
        write = Execution(ids, adaptive(plan) if adapts else plan, query.describe(), root=root.id)
        life.events.append(write.start())
        start = len(life.events)
        life.run(owner, write, final_segments, outer)
        if adapts:
            life.with_replans(write, final, start)
        life.events.append(write.end())
    life.events.append(root.end())


def batch_life(random: Random, ids: Ids, orderly: bool) -> Life:
    """A SQL execution outside any query."""
    life = Life(random, ids, orderly)
    adapts = random.random() < 0.5
    shape = shapes(random, "RateStream", None)
    plan, segments = shape.build(ids)
    final, final_segments = shape.build(ids) if adapts else (plan, segments)
    execution = Execution(ids, adaptive(plan) if adapts else plan, "count at app.py:3")
    owner = (hashlib.md5(f"{APP.id}:{execution.id}".encode()).hexdigest(), str(execution.id))
    life.events.append(execution.start())
    start = len(life.events)
    life.run(owner, execution, final_segments)
    if shape.broadcast:
        table = final_segments[1]
        life.events.append(records.DriverUpdates(execution.id, (metric(table.nodes[0][1]), 5)))
        life.by_driver.append((owner, table.name, table.counts({"Source: LocalTableScan": 5})))
    if adapts:
        life.with_replans(execution, final, start)
    life.events.append(execution.end())
    return life


def truth(lives: list[Life], events: list[records.Record]) -> dict[Owner, Shown]:
    """
    The counts by the rules alone: of every (stage, partition) the first success of its highest stage attempt,
    and what the driver did.
    """
    won: dict[tuple[int, int], records.TaskEnd] = {}
    for event in events:
        if isinstance(event, records.TaskEnd) and event.succeeded:
            key = (event.stage, event.partition)
            if key not in won or won[key].stage_attempt < event.stage_attempt:
                won[key] = event
    found: dict[Owner, Counter[tuple[str, int, str]]] = {}
    meaning = {task: what for life in lives for task, what in life.meaning.items()}
    work = [(what, end.partition) for end in won.values() for what in meaning[end.task]]
    work += [(what, 0) for life in lives for what in life.by_driver]
    for (owner, vertex, counts), subtask in work:
        table = found.setdefault(owner, Counter())
        for label, value in counts.items():
            table[vertex, subtask, label] += value
    return {owner: {key: value for key, value in table.items() if value} for owner, table in found.items()}


def check_never_back(before: Shown, after: Shown) -> None:
    for key, value in before.items():
        assert after.get(key, 0) >= value, f"{key} went back from {value} to {after.get(key, 0)}"


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32).map(Random), st.booleans())
def test_any_life_leaves_the_counts_of_its_winning_attempts(random: Random, watched: bool) -> None:
    """
    Two queries and a batch, interleaved: in the end the counts are the winners', and no count ever goes back.

    Where the counts are watched all along, attempts of a partition do the same work, and later stage attempts
    no less: what was shown stands, so that nothing else could be exact.
    """
    ids = Ids()
    lives = [query_life(random, ids, watched, number) for number in (1, 2)] + [batch_life(random, ids, watched)]
    events: list[records.Record] = []
    for life in lives:
        events = scattered(random, events, life.settle())
    model = new_model()
    jobs: dict[Owner, Job] = {}
    seen: dict[Owner, Shown] = {}
    for event in events:
        model.apply([event])
        jobs |= {(job.jid, job.attempt.run_id): job for job in model.jobs.values()}
        if watched and random.random() < 0.3:
            for owner, job in jobs.items():
                now = shown(job)
                check_never_back(seen.get(owner, {}), now)
                seen[owner] = now
    assert model.faults == []
    expected = truth(lives, events)
    assert {owner: shown(job) for owner, job in jobs.items()} == {owner: expected.get(owner, {}) for owner in jobs}
    assert expected.keys() <= jobs.keys()
    assert model.unknown_updates == 0
    assert not any(vertex.counters._live for job in jobs.values() for vertex in job.graph.vertices.values())
