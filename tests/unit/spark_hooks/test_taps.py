"""The taps of a run: where they are, who waits for their splits, what Spark takes for late, and records' delays."""

from __future__ import annotations

import numpy as np
import pytest

from spark_hooks.job_graph import JobGraph
from spark_hooks.taps import TAPS
from streamgauge import names, wire
from streamgauge.buckets import BUCKET_COUNT, HIGHEST_COUNTED_MS, HdrCounts, bucket_highest, bucket_index
from streamgauge.watermarks import END_OF_INPUT_MS
from tests.unit.spark_hooks.spark_events import empty, scan, sink
from tests.unit.spark_hooks.tapped import STARTED_MS, Tapped, collect, row, told


def vertex(driver: Tapped, name: str) -> wire.VertexColumns:
    """A vertex of a full frame, by a part of its name."""
    frame = driver.frame()
    assert frame.plan is not None
    [found] = [each.id for each in frame.plan.vertices if name in each.name]
    return next(each for each in frame.vertices if each.id == found)


def tap(driver: Tapped, name: str = "CollectMetrics") -> wire.Tap:
    [found] = vertex(driver, name).taps or ()
    return found


def split_watermark(driver: Tapped, name: str) -> list[int] | None:
    found = [each for each in vertex(driver, name).columns if each.metric == names.CURRENT_SPLIT_WATERMARK]
    return found[0].values().tolist() if found else None


def test_tap_is_told_at_its_vertex_and_its_splits_are_the_sources() -> None:
    """Flink has split gauges at the source operator."""
    driver = Tapped()
    driver.batch(0, row({"a": (2, 100, 500), "b": (1, 300, 300)}, ("a", "b"), delay_ms=9, idleness_ms=60_000))
    frame = driver.frame()
    assert frame.plan is not None
    [planned] = [each for each in frame.plan.vertices if "CollectMetrics" in each.name]
    found = tap(driver)
    assert found.operator == planned.operators[0].id
    assert planned.operators[0].name.startswith("Source: ")
    assert (found.name, found.splits, found.watermark_ms, found.idle) == ("tap", ("a", "b"), 290, False)
    assert (found.max_out_of_orderness_ms, found.idleness_ms, found.by_subtask) == (9, 60_000, False)
    assert told(found.columns, found.splits)[names.SPLIT_CURRENT_WATERMARK] == {"a": 490, "b": 290}
    assert vertex(driver, "HashAggregate").taps == ()


def test_tap_behind_two_sources_stands_for_itself() -> None:
    """Whose splits they are cannot be told."""
    driver = Tapped()
    ids = driver.ids
    both = ids.node("Union", scan(ids), scan(ids))
    plan = sink(ids, ids.node("HashAggregate", ids.shuffle(collect(ids, both))))
    driver.batch(0, row({"a": (1, 1, 1)}, ("a",)), plan=plan)
    frame = driver.frame()
    assert frame.plan is not None
    operators = {operator.id: operator.name for each in frame.plan.vertices for operator in each.operators}
    assert operators[tap(driver).operator] == "CollectMetrics"


def test_vertices_with_a_tap_or_behind_one_have_a_split_watermark() -> None:
    """What their input watermark would be if it followed the slowest split."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 900, 900), "b": (1, 300, 300)}, ("a", "b")))
    assert split_watermark(driver, "CollectMetrics") == [299]
    assert split_watermark(driver, "HashAggregate") == [299]


def test_without_a_tap_there_is_no_split_watermark() -> None:
    """It would be invented."""
    driver = Tapped()
    driver.batch(0)
    assert split_watermark(driver, "HashAggregate") is None


def test_splits_of_a_first_batch_are_all_waited_for() -> None:
    """What the first of them tells does not pass before the others have told."""
    driver = Tapped()
    driver.batch(0, row({"0": (1, 900, 900), "1": (1, 300, 300)}, ("0", "1")))
    assert split_watermark(driver, "HashAggregate") == [299]


def test_valve_keeps_the_watermark_of_idle_splits_and_flushes_the_greatest() -> None:
    """Where the multiplexer stays at what all had reached, the valve lets pass what any was told."""
    driver = Tapped()
    rows = [row({"a": (1, 900, 900), "b": (1, 300, 300)}, ("a", "b"), idleness_ms=500)]
    driver.batch(0, *rows)
    driver.batch(1000)
    assert (tap(driver).idle, tap(driver).watermark_ms) == (True, 299)
    assert split_watermark(driver, "HashAggregate") == [899]


def test_split_that_returns_as_the_last_active_one_turns_idle_is_seen_first() -> None:
    """Within one batch's end there is no moment at which all are idle, and nothing to flush."""
    driver = Tapped()
    splits = ("a", "b", "c")
    first = {"a": (1, 300, 300), "b": (1, 900, 900), "c": (1, 5000, 5000)}
    driver.batch(0, row(first, splits, idleness_ms=500))
    driver.batch(1000, row({"a": (1, 310, 310)}, splits))
    assert split_watermark(driver, "HashAggregate") == [309]
    driver.batch(2000, row({"b": (1, 905, 905)}, splits))
    assert split_watermark(driver, "HashAggregate") == [904]


def test_two_taps_of_one_vertex_are_waited_for_together() -> None:
    """A tap before another one is upstream of the same vertices."""
    driver = Tapped()
    ids = driver.ids
    inner = collect(ids, scan(ids), "first")
    plan = sink(ids, ids.node("HashAggregate", ids.shuffle(collect(ids, inner, "second"))))
    seen = [row({"a": (1, at_ms, at_ms)}, ("a",), name=name) for name, at_ms in (("first", 900), ("second", 300))]
    driver.batch(0, *seen, plan=plan)
    assert split_watermark(driver, "HashAggregate") == [299]
    assert [each.name for each in vertex(driver, "CollectMetrics").taps or ()] == ["first", "second"]


def test_tap_that_vanishes_from_the_plan_stays_as_it_was() -> None:
    """A batch whose source Spark shows empty has no tap; nor has a plan that goes another way."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 900, 900)}, ("a",)))
    ids = driver.ids
    driver.batch(1000, plan=sink(ids, ids.node("HashAggregate", ids.shuffle(empty(ids)))))
    assert tap(driver).watermark_ms == 899
    assert split_watermark(driver, "HashAggregate") == [899]


@pytest.mark.parametrize(("trigger", "finished"), [("AvailableNowTrigger$", True), ("ProcessingTimeTrigger(0)", False)])
def test_bounded_run_that_ends_by_itself_is_at_the_end_of_input(trigger: str, finished: bool) -> None:
    """Nobody has to wait any more; of a query that was stopped more may come."""
    driver = Tapped(trigger)
    driver.batch(0, row({"a": (1, 900, 900)}, ("a",)))
    driver.apply(driver.query.terminated(STARTED_MS + 2000))
    expected = END_OF_INPUT_MS if finished else 899
    assert tap(driver).watermark_ms == expected
    assert split_watermark(driver, "HashAggregate") == [expected]


def test_run_that_begins_anew_begins_its_taps_anew() -> None:
    """As Flink's generators, which are no state either."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 900, 900)}, ("a",)))
    driver.apply(driver.query.terminated(STARTED_MS + 2000))
    driver.query.run, driver.query.batch = 1, -1
    driver.apply(driver.query.started())
    driver.batch(3000, row({"a": (1, 200, 200)}, ("a",)))
    assert tap(driver).watermark_ms == 199


def test_late_is_what_is_behind_the_watermark_of_the_batch_before() -> None:
    """Seen on 3.5.9 and 4.3.0: a batch's own is for eviction. Of the first batch of a run its own stands for it."""
    driver = Tapped()
    seen = [row({"a": (1, at_ms, at_ms)}, ("a",)) for at_ms in (STARTED_MS + 900, STARTED_MS + 100)]
    driver.batch(0, *seen[:1], watermark_ms=0)
    driver.batch(1000, *seen[1:], watermark_ms=STARTED_MS + 800)
    assert told(tap(driver).columns, ("a",))[names.SPLIT_RECORDS_AT_RISK] == {"a": 0}
    driver.batch(2000, *seen[1:], watermark_ms=STARTED_MS + 800)
    assert told(tap(driver).columns, ("a",))[names.SPLIT_RECORDS_AT_RISK] == {"a": 1}
    again = Tapped()
    again.query.batch = 6
    again.batch(0, *seen[1:], watermark_ms=STARTED_MS + 800)
    assert told(tap(again).columns, ("a",))[names.SPLIT_RECORDS_AT_RISK] == {"a": 1}


def test_nothing_is_late_before_there_is_a_watermark() -> None:
    """Spark says 0 then, which is a time of its own in 1970; records may be older."""
    driver = Tapped()
    for at_ms in (0, 1000):
        driver.batch(at_ms, row({"a": (1, -5, -5)}, ("a",)), watermark_ms=0)
    assert told(tap(driver).columns, ("a",))[names.SPLIT_RECORDS_AT_RISK] == {"a": 0}


def test_delays_are_to_the_trigger_and_to_the_batchs_end() -> None:
    """Spark fixes a batch's time when it has asked its sources: from there on, not from the trigger's beginning."""
    driver = Tapped()
    driver.batch(0, row({"a": (3, 1, 1)}, ("a",), delays={0: 1, 40: 2}), took_ms=100, listing_ms=30)
    found = {each.metric: each for each in vertex(driver, "CollectMetrics").distributions}
    assert counted(found[names.RECORD_QUEUEING]) == {0: 1, 40: 2}
    assert counted(found[names.RECORD_LATENCY]) == {70: 1, 110: 2}
    assert found[names.RECORD_LATENCY].buckets.sum_ms == 290
    frame = driver.frame()
    assert frame.plan is not None
    operators = {operator.id: operator.name for each in frame.plan.vertices for operator in each.operators}
    assert {operators[each.operator] for each in found.values()} == {"CollectMetrics"}


def test_delays_below_zero_and_past_the_layout_are_counted_apart() -> None:
    """A record whose clock is ahead of the driver's tells no delay, and no latency either."""
    driver = Tapped()
    delays = {-1: 5, HIGHEST_COUNTED_MS: 2, HIGHEST_COUNTED_MS + 10_000: 3}
    driver.batch(0, row({"a": (10, 1, 1)}, ("a",), delays=delays), took_ms=200_000)
    found = {each.metric: each.buckets for each in vertex(driver, "CollectMetrics").distributions}
    assert (found[names.RECORD_QUEUEING].below, found[names.RECORD_QUEUEING].above) == (5, 3)
    assert (found[names.RECORD_LATENCY].below, found[names.RECORD_LATENCY].above) == (5, 5)


def counted(of: wire.Distribution) -> dict[int, int]:
    """Greatest value of each bucket → records; below 256 ms that is the value."""
    indices = np.frombuffer(of.buckets.indices, dtype="<u2").astype(np.int64)
    return dict(zip(bucket_highest(indices).tolist(), np.frombuffer(of.buckets.counts, "<i8").tolist(), strict=True))


def test_values_that_came_many_times_count_as_if_one_by_one() -> None:
    """The same buckets and sum, without the values in memory."""
    values = {0: 3, 255: 1, 256: 2, 257: 5, 100_000: 7, HIGHEST_COUNTED_MS: 1, HIGHEST_COUNTED_MS + 1: 2, -1: 4}
    together, each = HdrCounts(), HdrCounts()
    together.add_times(np.array(list(values)), np.array(list(values.values())))
    each.add([value for value, times in values.items() for _ in range(times)])
    ours, theirs = together.read(), each.read()
    assert ours.indices.tolist() == theirs.indices.tolist()
    assert ours.counts.tolist() == theirs.counts.tolist()
    assert (ours.below, ours.above, ours.sum_ms) == (theirs.below, theirs.above, theirs.sum_ms)
    assert bucket_index(np.array([HIGHEST_COUNTED_MS]))[0] == BUCKET_COUNT - 1


def test_taps_of_a_run_are_bounded() -> None:
    """What comes past the bound is not told."""
    driver = Tapped()
    driver.batch(0, *(row({"a": (1, 5, 5)}, ("a",), name=f"tap{number}") for number in range(TAPS + 3)))
    taps = driver.job.course.taps
    assert len(list(taps.of(""))) == TAPS


def test_tap_that_the_graph_does_not_show_waits_for_it() -> None:
    """Spark may tell of an observation before, or without, the plan that makes it."""
    driver = Tapped()
    ids = driver.ids
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",)), plan=sink(ids, ids.node("HashAggregate", ids.shuffle(scan(ids)))))
    assert all(not each.taps for each in driver.frame().vertices)
    driver.batch(1000, row({"a": (1, 9, 9)}, ("a",)))
    assert tap(driver).watermark_ms == 8


def test_name_that_begins_as_anothers_is_another_tap() -> None:
    """The whole name counts."""
    driver = Tapped()
    ids = driver.ids
    plan = sink(ids, ids.node("HashAggregate", ids.shuffle(collect(ids, scan(ids), "tap2"))))
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",)), plan=plan)
    assert all(not each.taps for each in driver.frame().vertices)


def test_plans_in_a_circle_end() -> None:
    """Plans of different batches, put together, might lead in one."""
    driver = Tapped()
    driver.batch(0)
    graph: JobGraph = driver.job.graph
    first, second = graph.vertices.values()
    [exchange] = (second if second.inputs else first).inputs.values()
    (first if second.inputs else second).inputs[(second if second.inputs else first).id] = exchange
    graph.revision += 1
    driver.batch(1000, row({"a": (1, 5, 5)}, ("a",)))
    assert split_watermark(driver, "HashAggregate") == [4]


def test_vertex_that_the_graph_forgets_is_forgotten() -> None:
    """User code in foreachBatch may plan differently in every batch; old plans leave the graph."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",)))
    graph, taps = driver.job.graph, driver.job.course.taps
    gone = next(vertex_id for vertex_id, each in graph.vertices.items() if each.inputs)
    del graph.vertices[gone]
    graph.revision += 1
    taps.place(graph)
    assert {each.split_watermark_ms for each in graph.vertices.values()} == {4}
