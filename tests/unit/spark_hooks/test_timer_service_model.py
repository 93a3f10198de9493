"""The timer service on Spark's timers against the internal timer service, which is in memory."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_hooks.key_timers import TimeMode
from tests.unit.spark_hooks.scripted_timers import Fires, Model, Op, Scripted, Scripts
from tests.unit.spark_hooks.spark_timers import SparkTimers

KEYS = (("a",), (float("nan"), 1), (["array"],))
"""Among them what is unequal to itself and what has no hash; told apart by their repr."""


class Batch(NamedTuple):
    rows: list[tuple[int, Op]]
    advance_ms: int


def ops(namespaces: bool) -> st.SearchStrategy[Op]:
    names = st.sampled_from(["", "a", "b"]) if namespaces else st.just("")
    return st.builds(Op, st.integers(0, 3).map(bool), names, st.integers(0, 24))


@st.composite
def courses(draw: st.DrawFn, namespaces: bool) -> tuple[list[Batch], Scripts]:
    op = ops(namespaces)
    rows = st.lists(st.tuples(st.integers(0, len(KEYS) - 1), op), max_size=12)
    batches = draw(st.lists(st.builds(Batch, rows, st.integers(0, 12)), min_size=1, max_size=5))
    timers = st.tuples(
        st.sampled_from(KEYS).map(repr), st.sampled_from(["", "a", "b"] if namespaces else [""]), st.integers(0, 24)
    )
    return batches, draw(st.dictionaries(timers, st.lists(op, min_size=1, max_size=4), max_size=30))


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "plain"])
@pytest.mark.parametrize("mode", ["EventTime", "ProcessingTime"])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_the_same_timers_fire_in_the_same_order_as_in_memory(
    mode: TimeMode, namespaces: bool, data: st.DataObject
) -> None:
    """None twice, none lost; rows before timers, a key's timers by timestamp, then as they were registered."""
    batches, scripts = data.draw(courses(namespaces))
    spark = SparkTimers(Scripted(mode, namespaces, scripts), mode == "EventTime")
    model = Model(mode, scripts)
    registered = deleted = fired = now_ms = 0
    for batch in batches:
        now_ms += batch.advance_ms
        rows: dict[int, list[Op]] = defaultdict(list)
        for key, op in batch.rows:
            rows[key].append(op)

        task, out = spark.batch([(KEYS[key], ops) for key, ops in rows.items()], now_ms)
        found: Fires = defaultdict(list)
        for timer in out:
            found[repr(timer.key)].append((timer.namespace, timer.timestamp_ms))
        assert found == model.batch([(repr(KEYS[key]), op) for key, ops in rows.items() for op in ops], now_ms)
        told = task.timers._counts.report()
        registered, deleted = registered + told.registered, deleted + told.deleted
        fired += told.fired_event + told.fired_processing
        assert sum(told.lateness.values()) == told.fired_event + told.fired_processing == len(out)
        assert registered - deleted - fired == model.pending
    assert spark.warnings == 0, "Spark was told to register what was there, or to delete what was not"
    rows_left = spark.states["streamgauge_timers"]
    assert all(
        at_ms in spark.timers[key] and row != ([""],)
        for key, held in rows_left.items()
        for (at_ms,), row in held.items()
    )
