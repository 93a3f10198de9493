"""Whatever arrives is taken whole or refused by a named error, with the store as it was."""

from __future__ import annotations

import copy

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgauge import codec, wire
from streamgauge.errors import CapacityError, IngestError


@pytest.fixture(scope="session")
def body(frames):
    """A push of a job and an application in full and then a delta of each, with something in every place."""
    columns = (
        frames.column("numRecordsIn", 1, 2, 3, present=[True, False, True]),
        frames.column("busyTimeMsPerSecond", 1.5, np.nan, 3.0),
    )
    figures = frames.figures(
        size=3,
        columns=columns,
        operators=(wire.OperatorColumns(frames.OPERATOR, columns),),
        subtasks=frames.subtasks(0, -1, 1, executors=("app-1-1", "app-1-2")),
        latencies=(frames.latency(4, 0, 2), frames.latency(1, 1, 1, subtask=2), frames.latency(5, 0, 3, source="")),
        histograms=(frames.histogram(7, 300, 300, -1, 5_000_000),),
    )
    plan = frames.plan(frames.vertex(), frames.vertex("d" * 32, inputs=(wire.Edge(frames.VERTEX, "HASH", "by key"),)))
    executors = (frames.executor(running={frames.JID: 1, "": 2}, metrics={"Status.JVM.Memory.Heap.Used": 5}),)
    job = frames.job(metrics={"uptime": 5, "bottleneck": "text"})
    return codec.encode(
        [
            frames.frame(job=job, plan=plan, vertices=(figures,)),
            frames.app_frame(executors=executors, driver={"Status.JVM.Threads.Count": 1}, hooks={"events": 1}),
            frames.frame(seq=2, base=1, vertices=(figures,)),
            frames.app_frame(seq=2, base=1),
        ]
    )


@pytest.fixture(scope="session")
def push_anything(new_collector, frames, check_snapshot):
    """Push a body onto a store that holds something; check all that must hold whether it is taken or not."""

    def push(body: bytes) -> bool:
        collector = new_collector(series=400, jobs=3, apps=3)
        collector.push(frames.frame(), frames.app_frame())
        before = collector.store.snapshot()
        try:
            outcomes = collector.ingest.push(body)
        except (IngestError, CapacityError) as error:
            message = str(error)
        else:
            message = ""
        if message:
            assert collector.store.snapshot() is before
            assert sum(collector.ingest.totals().refused.values()) == 1
            assert len(message) < 1_000
            return False
        assert outcomes.accepted or collector.store.snapshot() is before
        check_snapshot(collector.store.snapshot())
        return True

    return push


def test_unchanged_body_is_taken(push_anything, body):
    """The body that the other tests spoil is a good one."""
    assert push_anything(body)


@given(st.binary(max_size=200))
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\x91" * 5_000)
@example(b"\x91\x82\xa7version\xa1x\xa1a" + b"\x91" * 5_000 + b"\xc0")
def test_arbitrary_bytes_are_refused_by_name(push_anything, junk):
    """No bytes make anything escape but the errors of ingestion."""
    push_anything(junk)


@settings(max_examples=300)
@given(st.data())
def test_spoilt_bytes_are_taken_whole_or_refused_by_name(push_anything, body, data):
    """Bytes of a good body are overwritten, taken out or put in."""
    spoilt = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(spoilt) - 1))
        taken = data.draw(st.sampled_from([0, 1, 1, 1, 4, len(spoilt)]))
        spoilt[at : at + taken] = data.draw(st.binary(max_size=3)) or bytes(1)
    push_anything(bytes(spoilt))


def _places(value: object, path: tuple = ()) -> list[tuple]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, one in value.items():
            found += _places(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            found += _places(one, (*path, index))
    return found


values = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 4, 2**31, 2**63 - 1, 2**63, 2**64 - 1]),
    st.floats(),
    st.text(max_size=40),
    st.sampled_from(["a" * 32, "c" * 32, "FINISHED", "SUSPENDED", "f8", "x" * 10_000]),
    st.binary(max_size=40),
    st.sampled_from([bytes(8), bytes(24), b"\xff" * 24]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=3).filter(lambda numbers: all(abs(number) < 2**63 for number in numbers)),
    st.dictionaries(st.text(max_size=5), st.integers(-5, 5), max_size=3),
)


@settings(max_examples=500)
@given(st.data())
def test_body_with_wrong_values_is_taken_whole_or_refused_by_name(push_anything, body, data):
    """Any value anywhere in a good body is replaced by another, taken out, or doubled."""
    decoded = msgspec.msgpack.decode(body)
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from(_places(decoded)))
        parent = decoded
        for step in path:
            parent = parent[step]
        action = data.draw(st.sampled_from(["replace", "replace", "replace", "remove", "double"]))
        if action == "replace":
            parent[last] = data.draw(values)
        elif action == "remove":
            del parent[last]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[f"{last}2"] = parent[last]
        if not _places(decoded):
            break
    push_anything(msgspec.msgpack.encode(decoded))
