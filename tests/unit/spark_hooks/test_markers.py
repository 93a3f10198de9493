"""When latency markers come due, which batch carries them, and what becomes of the others."""

from __future__ import annotations

import pytest

from spark_hooks.emitter import WAITING
from spark_hooks.file_positions import Position
from spark_hooks.markers import Emission
from spark_hooks.progress import Source
from spark_hooks.timeline import Batch
from tests.unit.spark_hooks.marker_runs import ONE_VERTEX, TWO_VERTICES, MarkerRun, source

CHAIN = "Source: RateStream -> Filter -> Project -> Sink: Noop"
FIVE = "ProcessingTimeTrigger(5000)"


def sink(run: MarkerRun, name: str = CHAIN) -> dict[int, dict[str, float]]:
    """The figures at the sink, subtask by subtask, of all of the source's subtasks."""
    [found] = [
        told for (_, subtask, operators), told in run.told(name).items() if subtask < 0 and "Sink" in operators[-1]
    ]
    return found


def test_markers_come_due_at_a_fixed_rate_from_the_start() -> None:
    """At start + n · interval, the start itself included."""
    run = MarkerRun(start_ms=10_000)
    run.markers.look(9_999)
    assert run.figures() == {}
    run.markers.look(10_000)
    assert run.figures() == {"emitted": 1, "flying": 1}
    run.markers.look(13_999)
    assert run.figures() == {"emitted": 2, "flying": 2}
    run.markers.look(14_000)
    run.markers.look(12_000)
    assert run.figures() == {"emitted": 3, "flying": 3}


def test_a_marker_waits_for_the_next_slot_and_for_the_batch() -> None:
    """Latency at the sink: from the marked time over the trigger to the end of the batch's execution."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(5_003, 5_700, 5_800, {CHAIN: {0: 5_600}}, source(1, 2, 2))
    # Marked 0 to the first batch; 2,000 and 4,000 to the second; 6,000 is open.
    run.markers.look(6_000)
    assert run.figures() == {"emitted": 4, "recorded": 3, "flying": 1}
    assert sink(run)[0] | {"count": 3, "min": 900, "max": 3_700, "median": 1_700} == sink(run)[0]


def test_no_batch_at_the_slot_drops_the_marker() -> None:
    """No record waited, or a batch would have begun."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(10_050, 10_700, 10_800, {CHAIN: {0: 10_600}}, source(1, 2, 2))
    # 2,000 and 4,000 had the slot at 5,000.
    assert run.figures() == {"emitted": 6, "recorded": 4, "idle": 2}


@pytest.mark.parametrize(("late_ms", "bound"), [(100, 2), (101, 0)])
def test_a_batch_a_tenth_of_a_second_late_began_at_the_slot(late_ms: int, bound: int) -> None:
    """Within 100 ms; later than that, another trigger began it."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(5_000 + late_ms, 5_700, 5_800, {CHAIN: {0: 5_600}}, source(1, 2, 2))
    assert run.figures().get("recorded") == 1 + bound


@pytest.mark.parametrize(("begin_ms", "bound"), [(2_100, True), (2_101, False)])
def test_without_slots_a_batch_begins_at_once_or_no_record_waited(begin_ms: int, bound: bool) -> None:
    """On the default trigger a marker that is due while nothing runs is bound by the batch that begins there."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(begin_ms, 2_700, 2_800, {CHAIN: {0: 2_600}}, source(1, 2, 2))
    assert run.figures() == {"emitted": 2, "recorded": 1 + bound, **({} if bound else {"idle": 1})}


@pytest.mark.parametrize(
    "trigger", ["ProcessingTimeTrigger(0)", "ProcessingTimeTrigger(1000)", "AvailableNowTrigger", ""]
)
def test_a_marker_due_while_a_batch_runs_waits_for_its_end(trigger: str) -> None:
    """Whatever the trigger, if the batch runs past the slot."""
    run = MarkerRun(trigger=trigger)
    run.batch(0, 6_900, 7_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(7_004, 8_000, 8_100, {CHAIN: {0: 7_500}}, source(1, 2, 2))
    assert run.figures() == {"emitted": 4, "recorded": 4}
    assert sink(run)[0]["max"] == 6_900
    assert sink(run)[0]["median"] == (6_000 + 4_000) / 2


def test_a_batch_that_follows_an_overrun_at_once_binds_before_the_next_slot() -> None:
    """Spark does not wait for a slot after a batch that ran past one: that trigger is the first after the mark."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 5_900, 6_500, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(6_503, 7_000, 7_100, {CHAIN: {0: 6_900}}, source(1, 2, 2))
    # 6,000 lies behind the slot at 5,000, and would have that at 10,000.
    assert run.figures() == {"emitted": 4, "recorded": 4}
    assert sink(run)[0]["min"] == 1_000


def test_slots_are_multiples_of_the_interval_on_the_wall_clock() -> None:
    """A clock that was set moves the slots, and no marked time."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.time.look(0, 0)
    run.time.look(4_000, 1_000_000_000)
    # The clock was set 3 s ahead: its 5,000 is 2,000 on the steady clock.
    run.batch(2_000, 2_700, 2_800, {CHAIN: {0: 2_600}}, source(1, 2, 2))
    run.batch(7_000, 7_700, 7_800, {CHAIN: {0: 7_600}}, source(2, 3, 3))
    assert run.figures() == {"emitted": 4, "recorded": 4}


def test_markers_wait_in_the_source_until_a_batch_reaches_their_offset() -> None:
    """The binding batch tells where the source stood; under a backlog a later batch carries them."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    assert run.figures() == {"emitted": 1, "flying": 1}
    run.batch(1_000, 1_900, 2_000, {CHAIN: {0: 1_800}}, source(10, 29, 50))
    assert run.figures() == {"emitted": 1, "flying": 1}
    run.batch(2_000, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(29, 30, 70))
    # The first had arrived when there were 30; the second finds 70.
    assert run.figures() == {"emitted": 2, "recorded": 1, "flying": 1}
    assert sink(run)[0]["max"] == 2_900


def test_offsets_of_partitions_are_reached_one_by_one() -> None:
    """A map: every partition must be past the target."""
    run = MarkerRun()
    first = {"t": {"0": 5, "1": 5}}
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, first, {"t": {"0": 9, "1": 6}}))
    run.batch(
        1_000, 1_900, 1_990, {CHAIN: {0: 1_800}}, source(first, {"t": {"0": 20, "1": 5}}, {"t": {"0": 20, "1": 6}})
    )
    assert run.figures() == {"emitted": 1, "flying": 1}
    run.batch(1_995, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(0, {"t": {"0": 20, "1": 6}}, {"t": {"0": 20, "1": 6}}))
    assert run.figures() == {"emitted": 1, "recorded": 1}


@pytest.mark.parametrize("latest", [None, "no number", {"other": "kind"}])
def test_offsets_that_cannot_be_compared_are_carried_by_the_batch_that_binds(latest: object) -> None:
    """Also where the source tells nothing, as files do not."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, {"logOffset": 0}, latest))
    assert run.figures() == {"emitted": 1, "recorded": 1}


def test_markers_of_files_wait_until_what_was_listed_has_been_read() -> None:
    """Spark's own offsets of files do not tell how many are left; the listing does."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, {"logOffset": 0}), files=Position(2, 4))
    run.batch(
        1_000, 1_900, 1_950, {CHAIN: {0: 1_800}}, source({"logOffset": 0}, {"logOffset": 1}), files=Position(3, 4)
    )
    assert run.figures() == {"emitted": 1, "flying": 1}
    run.batch(
        1_951, 2_900, 3_000, {CHAIN: {0: 2_800}}, source({"logOffset": 1}, {"logOffset": 2}), files=Position(4, 4)
    )
    assert run.figures() == {"emitted": 1, "recorded": 1}
    assert sink(run)[0]["max"] == 2_900


def test_a_waiting_marker_is_carried_where_its_offset_can_be_compared_no_more() -> None:
    """It would wait for ever."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    run.batch(1_000, 1_900, 1_950, {CHAIN: {0: 1_800}}, source(10, "elsewhere"))
    assert run.figures() == {"emitted": 1, "recorded": 1}


def test_a_batch_that_read_nothing_of_a_source_carries_none_of_its_markers() -> None:
    """As one for the watermark alone: no record waited."""
    run = MarkerRun()
    run.batch(0, 900, 1_900, {CHAIN: {0: 800}}, source(None, 10, 10))
    run.batch(2_000, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(10, 10, 10, rows=0))
    assert run.figures() == {"emitted": 2, "recorded": 1, "idle": 1}


def test_a_batch_that_read_nothing_though_rows_were_there_lets_markers_wait() -> None:
    """As where a source waits for more rows: these records are not lost."""
    run = MarkerRun()
    run.batch(0, 900, 1_900, {CHAIN: {0: 800}}, source(None, 10, 10))
    run.batch(2_000, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(10, 10, 15, rows=0))
    assert run.figures() == {"emitted": 2, "recorded": 1, "flying": 1}
    run.batch(3_000, 3_900, 3_950, {CHAIN: {0: 3_800}}, source(10, 15, 15))
    assert run.figures() == {"emitted": 2, "recorded": 2}


def test_waiting_markers_wait_on_where_a_batch_reads_nothing() -> None:
    """What has not been reached has not been reached."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    run.batch(1_000, 1_900, 1_950, {CHAIN: {0: 1_800}}, source(10, 10, 10, rows=0))
    assert run.figures() == {"emitted": 1, "flying": 1}


def test_each_source_binds_and_carries_its_own() -> None:
    """A join of two streams: one has a backlog, of the other nothing is waiting."""
    run = MarkerRun(
        """
WriteToDataSourceV2
  StreamingSymmetricHashJoin
    Exchange | Exchange hashpartitioning(a#1, 2)
      MicroBatchScan | MicroBatchScan[a#1] class a.LeftTable
    Exchange | Exchange hashpartitioning(b#1, 2)
      MicroBatchScan | MicroBatchScan[b#1] class a.RightTable
"""
    )
    join = "StreamingSymmetricHashJoin -> Sink: Noop"
    tasks = {"Source: Left": {0: 500}, "Source: Right": {0: 600}, join: {0: 800, 1: 850}}
    run.batch(0, 900, 1_000, tasks, source(None, 3, 9), source(None, 4, 4))
    assert run.figures() == {"emitted": 2, "recorded": 1, "flying": 1}
    assert {key[0] for key in run.told(join)} == {"Source: Right"}
    run.batch(1_005, 1_500, 1_600, tasks, source(3, 9, 9), source(4, 4, 4, rows=0))
    assert run.figures() == {"emitted": 2, "recorded": 2}


def test_every_subtask_of_the_source_emits_and_travels_with_a_task() -> None:
    """Marker j travels with task j mod n; a source that has more subtasks than was known emits more."""
    run = MarkerRun(emission=Emission(granularity="subtask"))
    run.batch(0, 900, 1_990, {CHAIN: {0: 700, 1: 750, 2: 800}}, source(None, 10, 10))
    assert run.figures() == {"emitted": 3, "recorded": 3}
    run.markers.look(2_000)
    run.batch(2_000, 2_900, 3_000, {CHAIN: {1: 2_700, 2: 2_800}}, source(10, 20, 20))
    assert run.figures() == {"emitted": 6, "recorded": 6}
    told = run.told(CHAIN)
    found = {
        subtask: {at: each["max"] for at, each in told[CHAIN, subtask, ("Filter", "Project")].items()}
        for subtask in range(3)
    }
    assert found == {0: {0: 700, 1: 700}, 1: {1: 750, 2: 800}, 2: {1: 700, 2: 800}}


def test_a_marker_has_as_many_copies_as_its_source_had_subtasks_when_it_came_due() -> None:
    """Those that were due before a source shrank are no fewer for it, and keep their marked times."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 700, 1: 750, 2: 800}}, source(None, 10, 10))
    run.markers.look(4_000)
    run.batch(2_000, 8_400, 8_500, {CHAIN: {0: 2_700}}, source(10, 20, 20))
    run.markers.look(8_000)
    run.batch(8_501, 9_000, 9_100, {CHAIN: {0: 8_900}}, source(20, 30, 30))
    # 0, 2,000 and 4,000 three times each; 6,000 and 8,000 once.
    assert run.figures() == {"emitted": 11, "recorded": 11}
    vertex = run.vertex(CHAIN)
    sums = {
        each.operators[-1]: each.total.sum_ms for each in run.latencies.histograms(vertex.id, lambda key, state: True)
    }
    assert sums[vertex.operators[-1].id] == 3 * (900 + 6_400 + 5_000) + 3_000 + 1_000


def test_a_source_that_progress_names_no_more_loses_its_markers() -> None:
    """Nobody tells what became of it."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1), source(None, None, None, rows=0))
    assert run.figures() == {"emitted": 2, "recorded": 1, "idle": 1}
    run.batch(2_000, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(1, 2, 2))
    assert run.figures() == {"emitted": 4, "recorded": 2, "idle": 1, "lost": 1}


def test_the_ways_are_those_of_the_batchs_own_plan() -> None:
    """A plan that gets another vertex hands markers on to it."""
    run = MarkerRun(TWO_VERTICES)
    first, second = "Source: RateStream -> Project", "HashAggregate -> Sink: Noop"
    tasks = {first: {0: 500}, second: {0: 800}}
    run.batch(0, 900, 1_000, tasks, source(None, 1, 1), own=[first])
    assert run.figures() == {"emitted": 1, "lost": 1}
    run.batch(2_000, 2_900, 3_000, tasks, source(1, 2, 2), revision=2)
    assert run.figures() == {"emitted": 2, "recorded": 1, "lost": 1}


def test_markers_without_room_to_wait_are_dropped_and_the_oldest_stay() -> None:
    """A bounded number of marked times waits."""
    run = MarkerRun(emission=Emission(interval_ms=100))
    run.batch(0, 1, 100 * WAITING + 50, {CHAIN: {0: 1}}, source(None, 1, 5))
    run.batch(100 * WAITING + 51, 100 * WAITING + 60, 100 * WAITING + 70, {CHAIN: {0: 1}}, source(1, 2, 9))
    assert run.figures() == {"emitted": WAITING + 1, "flying": WAITING, "crowded": 1}
    run.batch(100 * WAITING + 71, 100 * WAITING + 80, 100 * WAITING + 90, {CHAIN: {0: 1}}, source(2, 9, 9))
    assert run.figures() == {"emitted": WAITING + 1, "recorded": WAITING, "crowded": 1}
    assert sink(run)[0]["count"] == WAITING
    # The newest would have had 80.
    assert sink(run)[0]["min"] == 180


def test_idle_query_drops_what_no_batch_began_for_and_keeps_nothing() -> None:
    """An idle source costs nothing, however long."""
    run = MarkerRun(trigger=FIVE)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    for now_ms in range(10_000, 3_600_001, 10_000):
        run.markers.idle(now_ms)
        [emitter] = run.markers._emitters
        assert len(emitter._due) <= 1
        assert not emitter._waiting
    # 3,596,000 to 3,600,000 have the slot at 3,600,000, where a batch may just be beginning.
    assert run.figures() == {"emitted": 1_801, "recorded": 1, "idle": 1_797, "flying": 3}
    run.batch(3_600_010, 3_600_500, 3_600_600, {CHAIN: {0: 3_600_400}}, source(1, 2, 2))
    assert run.figures() == {"emitted": 1_801, "recorded": 4, "idle": 1_797}


def test_a_long_silence_without_a_word_of_idleness_keeps_nothing_either() -> None:
    """Between two looks the markers that came due are only counted."""
    run = MarkerRun()
    for now_ms in range(0, 3_600_000, 1_000):
        run.markers.look(now_ms)
    [emitter] = run.markers._emitters
    assert [(due.times, due.subtasks) for due in emitter._due] == [(1_800, 1)]


def test_the_end_of_a_run_drops_what_is_in_flight() -> None:
    """Waiting or not bound yet; what comes afterwards changes nothing."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    run.markers.end(4_100)
    expected = {"emitted": 3, "ended": 3}
    assert run.figures() == expected
    run.markers.look(100_000)
    run.markers.idle(100_000)
    run.batch(4_200, 4_900, 5_000, {CHAIN: {0: 800}}, source(10, 30, 30))
    run.markers.end(200_000)
    assert run.figures() == expected


@pytest.mark.parametrize("rows", [0, 7])
def test_a_source_without_tasks_hands_nothing_on(rows: int) -> None:
    """Where it read rows its markers are lost; where there were none, none waited."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {}, source(None, 10, 10, rows=rows))
    assert run.figures() == {"emitted": 1, "lost" if rows else "idle": 1}


def test_a_source_that_the_plan_does_not_show_hands_nothing_on() -> None:
    """Two sources and one scan, and both have read: whose it is cannot be told."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 10), source(None, 3, 3))
    assert run.figures() == {"emitted": 2, "lost": 2}


def test_a_batch_that_was_not_executed_has_put_nothing_out() -> None:
    """Its end was not told: the sink cannot have recorded."""
    run = MarkerRun()
    run.batch(0, -1, 1_000, {CHAIN: {0: 800}}, source(None, 10, 10))
    assert run.figures() == {"emitted": 1, "lost": 1}


def test_progress_that_names_no_source_goes_by_its_rows() -> None:
    """Some Spark may not say: the only source there is has read what was read."""
    run = MarkerRun()
    run.batch(0, 900, 1_990, {CHAIN: {0: 800}})
    assert run.figures() == {"emitted": 1, "idle": 1}


def test_markers_before_the_run_was_seen_are_not_emitted() -> None:
    """Nobody saw what became of them; the schedule stays the run's."""
    late = MarkerRun(start_ms=0)
    late.markers._open = late.markers._next = 3
    late.batch(6_000, 6_900, 7_000, {CHAIN: {0: 6_800}}, source(1, 2, 2))
    assert late.figures() == {"emitted": 1, "recorded": 1}


def test_latency_is_the_wait_and_the_work() -> None:
    """Queueing until the batch that carries the marker begins, processing from there; each summed exactly."""
    run = MarkerRun(ONE_VERTEX)
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    run.batch(1_000, 1_900, 1_990, {CHAIN: {0: 1_700}}, source(10, 30, 30))
    vertex = run.vertex(CHAIN)
    told = {each.operators: each for each in run.latencies.histograms(vertex.id, lambda key, state: True)}
    *_, before, last = vertex.operators
    assert {operators[-1] for operators in told} == {before.id, last.id}
    at_sink = told[last.id,]
    assert (at_sink.total.sum_ms, at_sink.queueing.sum_ms, at_sink.processing.sum_ms) == (1_900, 1_000, 900)
    [before_sink] = [each for operators, each in told.items() if operators[-1] == before.id]
    assert (before_sink.total.sum_ms, before_sink.queueing.sum_ms, before_sink.processing.sum_ms) == (1_700, 1_000, 700)


def test_a_batch_that_no_marker_is_due_to_is_passed_by() -> None:
    """It still holds up what comes due while it runs."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 1, 1))
    run.batch(1_001, 2_900, 3_000, {CHAIN: {0: 2_800}}, source(1, 2, 2))
    run.batch(3_001, 3_500, 3_600, {CHAIN: {0: 3_400}}, source(2, 3, 3))
    assert run.figures() == {"emitted": 2, "recorded": 2}
    assert sink(run)[0]["max"] == 1_500


def test_a_missed_batch_ends_what_it_bound() -> None:
    """It has ended, and what it read was not told: its markers' way is not known."""
    run = MarkerRun()
    run.batch(0, 900, 1_000, {CHAIN: {0: 800}}, source(None, 10, 30))
    run.markers.miss(Batch(1, 2_050, 2_900, 6_500))
    assert run.figures() == {"emitted": 2, "ended": 1, "flying": 1}
    run.batch(6_501, 6_900, 7_000, {CHAIN: {0: 6_800}}, source(10, 30, 30))
    # It ran until 6,500: 4,000 and 6,000 had to wait for its end.
    assert run.figures() == {"emitted": 4, "recorded": 3, "ended": 1}


def test_positions_of_a_new_source_count_from_the_first_open_mark() -> None:
    """Spark names the sources when the first batch has ended."""
    run = MarkerRun()
    run.batch(4_000, 4_900, 5_000, {CHAIN: {0: 4_800}}, Source(num_input_rows=2), Source())
    # 0 and 2,000 of both were idle; at 4,000 the second read nothing.
    assert run.figures() == {"emitted": 6, "idle": 5, "recorded": 1}
