"""Native SQL metrics of a vertex: what counts, once, and as its rule says."""

from __future__ import annotations

import random

import pytest

from spark_hooks.accumulators import COLUMNS, EXCHANGE, Accumulators
from spark_hooks.native import NativeMetric
from spark_hooks.plan import Exchange, Operator, Vertex
from streamgauge import wire

ROWS = NativeMetric("number of output rows", "sum", 1, "number of output rows")
SPILL = NativeMetric("spill size", "size", 2, "spill size")
PEAK = NativeMetric("peak memory", "size", 3, "peak memory")
STATE = NativeMetric("number of total state rows", "sum", 4, "number of total state rows")
PROBES = NativeMetric("avg hash probes per key", "average", 5, "avg hash probes per key")
METRICS = (ROWS, SPILL, PEAK, STATE, PROBES)

Shown = dict[str, list[int | None]]


def operator(*metrics: NativeMetric) -> Operator:
    return Operator("a" * 32, "HashAggregate", "HashAggregate", "", (), (), native=metrics)


def shown(held: Accumulators, size: int) -> Shown:
    """Metric → value of each subtask, None where there is none."""
    found: Shown = {}
    for told in held.columns(size):
        mask = told.column.mask(size)
        values = told.column.values().tolist()
        found[told.column.metric] = [
            value if mask is None or mask[index] else None for index, value in enumerate(values)
        ]
    return found


def one(*metrics: NativeMetric):
    """A table of one operator's metrics, and how they are read."""
    held = Accumulators()
    return held, held.reading(Vertex(operators=[operator(*metrics)]), ["a" * 32], None)


def test_flows_are_summed_levels_are_the_latest_and_peaks_the_greatest() -> None:
    """Two batches of one subtask; what the second one does not tell is 0."""
    held, reading = one(*METRICS)
    held.add(0, (1, 0), reading, {1: 10, 2: 100, 3: 7, 4: 20, 5: 13})
    held.add(0, (2, 0), reading, {1: 5, 3: 6, 4: 19})
    assert shown(held, 1) == {
        "number of output rows": [15],
        "spill size": [100],
        "peak memory": [7],
        "number of total state rows": [19],
        "avg hash probes per key": [0],
    }


def test_every_metric_is_told_though_it_is_zero() -> None:
    """The plan has it, and the stage's tasks ran."""
    held, reading = one(*METRICS)
    held.add(1, (1, 0), reading, {})
    assert all(values == [0, 0] for values in shown(held, 2).values())
    assert len(shown(held, 2)) == len(METRICS)


def test_below_zero_is_no_value() -> None:
    """Spark's sizes and times begin at −1."""
    held, reading = one(SPILL, PEAK)
    held.add(0, (1, 0), reading, {2: -1, 3: -1})
    held.add(0, (2, 0), reading, {2: 4})
    assert shown(held, 1) == {"spill size": [4], "peak memory": [0]}
    held.take_out(0, (1, 0), reading, {2: -1, 3: -1})
    assert shown(held, 1)["spill size"] == [4]


def test_what_is_taken_out_leaves_what_was_there_before() -> None:
    """Another success replaces the latest one, or the plan is another: the one before is the latest again."""
    held, reading = one(*METRICS)
    held.add(0, (1, 0), reading, {1: 10, 3: 7, 4: 20})
    before = shown(held, 1)
    held.add(0, (2, 0), reading, {1: 5, 3: 9, 4: 3})
    held.take_out(0, (2, 0), reading, {1: 5, 3: 9, 4: 3})
    assert shown(held, 1) == before


def test_the_latest_is_the_latest_stage_whatever_comes_last() -> None:
    """Where successes are counted anew, an older stage's may come after a newer one's."""
    held, reading = one(STATE)
    held.add(0, (2, 0), reading, {4: 3})
    held.add(0, (1, 0), reading, {4: 20})
    assert shown(held, 1) == {"number of total state rows": [3]}
    held.add(0, (2, 1), reading, {4: 4})
    assert shown(held, 1) == {"number of total state rows": [4]}


def test_a_peak_stands_when_its_task_is_long_past() -> None:
    """Few tasks are held; what they reached is."""
    held, reading = one(PEAK)
    for number, peak in enumerate([5, 9, 1, 1, 1, 1, 2]):
        held.add(0, (number, 0), reading, {3: peak})
    held.take_out(0, (6, 0), reading, {3: 2})
    assert shown(held, 1) == {"peak memory": [9]}


@pytest.mark.parametrize("seed", range(20))
def test_any_course_of_successes_is_what_the_winners_told(seed: int) -> None:
    """A plain model: of each stage and subtask the latest attempt's updates; sums, latest and greatest of those."""
    chance = random.Random(seed)
    held, reading = one(*METRICS)
    won: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
    for _ in range(60):
        stage, subtask = chance.randrange(8), chance.randrange(3)
        attempt = won[stage, subtask][0] + 1 if (stage, subtask) in won else 0
        # As in life: only a stage of late is run again.
        if stage < max((each for each, _ in won), default=0) - 1:
            continue
        if attempt:
            held.take_out(subtask, (stage, attempt - 1), reading, won[stage, subtask][1])
        updates = {each: chance.randrange(1, 50) for each in range(1, 6) if chance.random() < 0.7}
        held.add(subtask, (stage, attempt), reading, updates)
        won[stage, subtask] = (attempt, updates)
        if chance.random() < 0.2:
            shown(held, 3)
    expected: Shown = {metric.name: [0, 0, 0] for metric in METRICS}
    for (_, subtask), (_, updates) in sorted(won.items()):
        for metric in METRICS:
            value = updates.get(metric.accumulator, 0)
            row = expected[metric.name]
            before = row[subtask] or 0
            flows = metric in (ROWS, SPILL)
            row[subtask] = before + value if flows else max(before, value) if metric is PEAK else value
    assert shown(held, 3) == expected


def test_what_the_driver_told_is_in_no_subtask() -> None:
    """Sums and sizes add up, a level is the latest; a metric that only the driver tells has no values."""
    files = NativeMetric("number of files read", "sum", 8, "number of files read")
    width = NativeMetric("number of partitions", "sum", 9, "number of partitions")
    held, reading = one(ROWS, files, width)
    held.add(0, (1, 0), reading, {1: 10})
    assert held.add_driver(reading, {8: 2, 9: 3, 1: -1, 77: 5}) == {8, 9}
    held.add_driver(reading, {8: 1, 9: 4})
    found = {told.column.metric: told.driver for told in held.columns(1)}
    assert found == {"number of output rows": 0, "number of files read": 3, "number of partitions": 4}
    assert shown(held, 1) == {
        "number of output rows": [10],
        "number of files read": [None],
        "number of partitions": [None],
    }


def exchange(node: str, source: Vertex, first: int) -> Exchange:
    told = ("data size", "shuffle records written", "records read", "number of partitions")
    native = tuple(NativeMetric(name, "sum", first + index, name) for index, name in enumerate(told))
    return Exchange(node, node, {metric.name: metric.accumulator for metric in native}, source, (), native)


def test_an_exchange_is_written_at_one_vertex_and_read_at_the_other() -> None:
    """What is read of several is added up; of a broadcast the reader's tasks read nothing."""
    written = exchange("Exchange", Vertex(), 20)
    reader = Vertex(reads=[exchange("Exchange", Vertex(), 30), exchange("Exchange", Vertex(), 40)], writes=written)
    reader.reads.append(exchange("BroadcastExchange", Vertex(), 50))
    held = Accumulators()
    reading = held.reading(reader, [], None)
    told = range(20, 54)
    held.add(0, (1, 0), reading, dict.fromkeys(told, 1))
    assert all(each.operator == EXCHANGE for each in held.columns(1))
    assert shown(held, 1) == {
        "records read": [2],
        "data size": [1],
        "shuffle records written": [1],
        "number of partitions": [1],
    }


def test_a_stage_that_samples_tells_only_what_counts() -> None:
    """Accumulators that do not count are left out, and their levels stand."""
    held, reading = one(ROWS, STATE)
    held.add(0, (1, 0), reading, {1: 10, 4: 20})
    sampling = held.reading(Vertex(operators=[operator(ROWS, STATE)]), ["a" * 32], frozenset({1}))
    held.add(0, (2, 0), sampling, {1: 1, 4: 99})
    assert shown(held, 1) == {"number of output rows": [11], "number of total state rows": [20]}


def test_an_operator_that_the_vertex_does_not_have_is_left_out() -> None:
    """Of a plan with an empty source only what the real one has counts."""
    held = Accumulators()
    reading = held.reading(Vertex(operators=[operator(ROWS), operator(SPILL)]), [None, "a" * 32], None)
    held.add(0, (1, 0), reading, {1: 10, 2: 20})
    assert shown(held, 1) == {"spill size": [20]}


def test_columns_are_bounded_and_numbers_fit_a_long() -> None:
    """A plan cannot make a vertex hold without end, nor can sums break a frame."""
    many = [NativeMetric(f"metric {number}", "sum", number, f"metric {number}") for number in range(COLUMNS + 5)]
    held, reading = one(*many)
    held.add(0, (1, 0), reading, {0: 2**63 - 1, COLUMNS + 1: 1})
    held.add(0, (2, 0), reading, {0: 2**63 - 1})
    told = list(held.columns(1))
    assert len(told) == COLUMNS
    assert told[0].column.values().tolist() == [2**63 - 1]


def test_revision_tells_a_change() -> None:
    """Nothing is looked at, nor sent, while it stands still."""
    held, reading = one(ROWS)
    held.add(0, (1, 0), reading, {1: 1})
    before, told = held.revision, [*held.columns(1)]
    assert [*held.columns(1)] == told == [wire.Accumulator("a" * 32, "sum", told[0].column)]
    assert held.revision == before
    held.add(0, (2, 0), reading, {1: 1})
    assert held.revision > before
