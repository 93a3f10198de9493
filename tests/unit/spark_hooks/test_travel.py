"""Which operators latency markers pass in the batch that carries them, and when."""

from __future__ import annotations

import pytest

from tests.unit.spark_hooks.marker_runs import TWO_VERTICES, MarkerRun, source
from tests.unit.spark_hooks.spark_events import Ids, scan, sink

FIRST, SECOND = "Source: RateStream -> Project", "HashAggregate -> Sink: Noop"

DIAMOND = """
WriteToDataSourceV2
  Union
    Filter
      Exchange | Exchange hashpartitioning(a#1, 2)
        Project
          MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable
    Sort
      Exchange | Exchange hashpartitioning(b#1, 2)
        Window
          MicroBatchScan | MicroBatchScan[b#1] class b.OtherTable
"""

BROADCAST = """
WriteToDataSourceV2
  BroadcastHashJoin
    MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable
    BroadcastExchange | BroadcastExchange HashedRelation
      Filter
        Scan parquet | Scan parquet [b#2]
"""


def run_two(seed: int = 1, readers: dict[int, int] | None = None, **more: object) -> MarkerRun:
    run = MarkerRun(TWO_VERTICES, seed=seed)
    tasks = {FIRST: {0: 300, 1: 400}, SECOND: {0: 700, 1: 800} if readers is None else readers}
    run.batch(0, 900, 1_000, tasks, source(None, 10, 10), **more)  # type: ignore[arg-type]
    return run


def maxima(run: MarkerRun, vertex: str) -> dict[tuple[int, tuple[str, ...]], dict[int, float]]:
    return {
        (subtask, operators): {at: figures["max"] for at, figures in told.items()}
        for (_, subtask, operators), told in run.told(vertex).items()
    }


def test_a_marker_is_recorded_when_its_subtask_finishes_and_at_the_sink_when_the_batch_is_executed() -> None:
    """The source operator records nothing; a sink at the execution's end, for there the result is."""
    run = run_two()
    assert maxima(run, FIRST) == {(-1, ("Project",)): {0: 300, 1: 400}}
    second = maxima(run, SECOND)
    [at_aggregate] = [told for (subtask, operators), told in second.items() if operators == ("HashAggregate",)]
    assert set(at_aggregate.items()) <= {(0, 700), (1, 800)}
    assert set(second[-1, ("Sink: Noop",)].values()) == {900}
    assert run.figures() == {"emitted": 2, "recorded": 2}


def test_one_marker_stays_one_marker_at_an_exchange() -> None:
    """It goes to one channel, drawn at random: over many seeds to each."""
    ways = set()
    for seed in range(20):
        run = run_two(seed)
        told = run.told(SECOND)
        counts = {at: figures["count"] for at, figures in told[FIRST, -1, ("HashAggregate",)].items()}
        assert sum(counts.values()) == 2
        ways.add(tuple(sorted(counts.items())))
    assert ways == {((0, 2),), ((1, 2),), ((0, 1), (1, 1))}


def test_a_channel_is_a_task_that_ran() -> None:
    """Partitions that had no task in this batch are no channels."""
    run = run_two(readers={3: 850})
    assert maxima(run, SECOND)[-1, ("HashAggregate",)] == {3: 850}


def test_sinks_tell_the_sources_subtasks_apart() -> None:
    """For the older form of the ids; other operators do not by default."""
    run = run_two()
    apart = {subtask for subtask, operators in maxima(run, SECOND) if operators == ("Sink: Noop",)}
    assert apart == {-1, 0, 1}
    assert {subtask for subtask, operators in maxima(run, SECOND) if operators == ("HashAggregate",)} == {-1}


def test_a_marker_is_lost_where_the_reader_ran_no_task_though_rows_were_written() -> None:
    """What became of them was not told."""
    run = run_two(readers={})
    assert run.figures() == {"emitted": 2, "lost": 2}
    assert maxima(run, FIRST) == {(-1, ("Project",)): {0: 300, 1: 400}}


def test_a_reader_that_was_passed_over_without_rows_ends_at_the_sink_all_the_same() -> None:
    """No operator of it did anything; the result, nothing, is there when the batch has been executed."""
    run = run_two(readers={}, wrote={FIRST: 0})
    assert run.figures() == {"emitted": 2, "recorded": 2}
    assert (-1, ("HashAggregate",)) not in maxima(run, SECOND)
    [histogram] = run.latencies.histograms(run.vertex(SECOND).id, lambda key, state: True)
    assert histogram.total.sum_ms == 1_800


def test_in_a_union_each_source_passes_its_branch_and_what_is_behind() -> None:
    """Operators that see the same markers are told together, and no others."""
    run = MarkerRun(DIAMOND)
    one, other, last = (
        "Source: RateStream -> Project",
        "Source: Other -> Window",
        "Filter -> Sort -> Union -> Sink: Noop",
    )
    tasks = {one: {0: 100}, other: {0: 200}, last: {0: 500}}
    run.batch(0, 900, 1_000, tasks, source(None, 1, 1), source(None, 1, 1))
    assert {(key[0], key[2]) for key in run.told(last)} == {
        (one, ("Filter",)),
        (one, ("Union",)),
        (one, ("Sink: Noop",)),
        (other, ("Sort",)),
        (other, ("Union",)),
        (other, ("Sink: Noop",)),
    }
    assert run.figures() == {"emitted": 2, "recorded": 2}


def test_a_table_that_a_stream_is_joined_with_emits_nothing() -> None:
    """It is scanned in every batch, and no record arrives there."""
    run = MarkerRun(BROADCAST)
    stream, table = "Source: RateStream -> BroadcastHashJoin -> Sink: Noop", "Source: parquet -> Filter"
    run.batch(0, 900, 1_000, {stream: {0: 800}, table: {0: 100}}, source(None, 1, 1))
    assert run.figures() == {"emitted": 1, "recorded": 1}
    assert run.told(table) == {}
    assert {key[0] for key in run.told(stream)} == {stream}


def test_one_of_several_readers_gets_a_marker() -> None:
    """A reused exchange has several: each marker goes to one of them, and is recorded at the sink once."""
    ids = Ids()
    reused = ids.shuffle(ids.node("Project", scan(ids)))
    left = ids.shuffle(ids.node("Filter", reused), "hashpartitioning(left#1L, 3)")
    right = ids.shuffle(ids.node("Sort", reused), "hashpartitioning(right#1L, 3)")
    run = MarkerRun(sink(ids, ids.node("SortMergeJoin", left, right)))
    first, join = "Source: RateStream -> Project", "SortMergeJoin -> Sink: Noop"
    tasks = {first: {0: 100}, "Filter": {0: 200, 1: 201}, "Sort": {0: 300, 1: 301}, join: {0: 400}}
    for number in range(20):
        begin_ms = 2_000 * number
        run.batch(begin_ms, begin_ms + 900, begin_ms + 1_000, tasks, source(number, number + 1, number + 1))
    assert run.figures() == {"emitted": 20, "recorded": 20}
    [through_filter], [through_sort] = (
        [sum(figures["count"] for figures in told.values()) for told in run.told(name).values()]
        for name in ("Filter", "Sort")
    )
    assert through_filter + through_sort == 20
    assert 0 < through_filter < 20


def test_a_source_scanned_twice_hands_a_marker_to_one_scan() -> None:
    """A self-join: Spark tells of one source, and the plan has two scans."""
    run = MarkerRun(
        """
WriteToDataSourceV2
  StreamingSymmetricHashJoin
    Exchange | Exchange hashpartitioning(a#1, 2)
      Filter
        MicroBatchScan | MicroBatchScan[a#1] class a.RateStreamTable
    Exchange | Exchange hashpartitioning(b#1, 2)
      Project
        MicroBatchScan | MicroBatchScan[b#1] class a.RateStreamTable
"""
    )
    join = "StreamingSymmetricHashJoin -> Sink: Noop"
    left, right = "Source: RateStream -> Filter", "Source: RateStream -> Project"
    tasks = {left: {0: 500}, right: {0: 600}, join: {0: 800}}
    ways = set()
    for number in range(20):
        begin_ms = 2_000 * number
        run.batch(begin_ms, begin_ms + 900, begin_ms + 1_000, tasks, source(number, number + 1, number + 1))
    ways = {key[0] for key in run.told(join)}
    assert ways == {left, right}
    assert run.figures() == {"emitted": 20, "recorded": 20}


@pytest.mark.parametrize("subtasks", [1, 3])
def test_a_batch_that_carries_very_many_markers_takes_them_in_parts(
    monkeypatch: pytest.MonkeyPatch, subtasks: int
) -> None:
    """However many pass at once, all arrive."""
    monkeypatch.setattr("spark_hooks.travel.AT_ONCE", 4)
    run = MarkerRun(TWO_VERTICES)
    tasks = {FIRST: dict.fromkeys(range(subtasks), 60_100), SECOND: {0: 60_200, 1: 60_300}}
    run.batch(0, 60_400, 60_500, tasks, source(None, 1, 2))
    run.batch(60_501, 61_000, 61_100, tasks, source(1, 2, 2))
    assert run.figures() == {"emitted": 31 * subtasks, "recorded": 31 * subtasks}
