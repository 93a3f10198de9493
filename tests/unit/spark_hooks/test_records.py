"""What the recorder hands over is read as it was written, and anything else is refused by one error."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_hooks import records

TOTALS = [142, 53_964_952, 0, 3, 1_795_000_000_123, -5_000_000]
LEAF = ["Scan json ", "FileScan json [id#8L]", ["number of output rows", 83], [], "s"]
PLAN = ["Filter", "Filter (id#8L > 3)", ["number of output rows", 82, "scan time", 84], [LEAF], "st"]
STAGE = [3, 0, 200, 6, [1, 2], ["Exchange", "WholeStageCodegen (2)"]]

EVERY_KIND: list[tuple[list[Any], records.Record]] = [
    ([0, 1_795_257_764_084], records.ApplicationEnd(1_795_257_764_084)),
    (
        [1, 7, 6, 12, None, LEAF],
        records.ExecutionStart(
            7,
            6,
            12,
            None,
            records.PlanNode("Scan json ", "FileScan json [id#8L]", ("number of output rows", 83), (), "s"),
        ),
    ),
    (
        [2, 7, PLAN],
        records.PlanUpdate(
            7,
            records.PlanNode(
                "Filter",
                "Filter (id#8L > 3)",
                ("number of output rows", 82, "scan time", 84),
                (records.PlanNode("Scan json ", "FileScan json [id#8L]", ("number of output rows", 83), (), "s"),),
                "st",
            ),
        ),
    ),
    ([3, 7, 13, ""], records.ExecutionEnd(7, 13, "")),
    ([4, 7, [118, 3, 119, -1]], records.DriverUpdates(7, (118, 3, 119, -1))),
    (
        [5, 0, 14, -1, None, "group", -1, [STAGE]],
        records.JobStart(
            0,
            14,
            -1,
            None,
            "group",
            -1,
            (records.Stage(3, 0, 200, 6, (1, 2), ("Exchange", "WholeStageCodegen (2)")),),
        ),
    ),
    ([6, 0, 15, False], records.JobEnd(0, 15, False)),
    (
        [7, -1, STAGE],
        records.StageSubmitted(-1, records.Stage(3, 0, 200, 6, (1, 2), ("Exchange", "WholeStageCodegen (2)"))),
    ),
    ([8, 3, 1, 16, "FetchFailed"], records.StageCompleted(3, 1, 16, "FetchFailed")),
    ([9, 3, 1, 900, 44, 2, 17, "driver"], records.TaskStart(3, 1, 900, 44, 2, 17, "driver")),
    (
        [10, 3, 1, 900, 44, 2, 17, "driver", 18, True, 4096, 65_536, 512, [82, 262_144, 84, 76]],
        records.TaskEnd(3, 1, 900, 44, 2, 17, "driver", 18, True, 4096, 65_536, 512, (82, 262_144, 84, 76)),
    ),
    ([24, 7, ["seen", '{"rows":3}']], records.Observed(7, ("seen", '{"rows":3}'))),
    (
        [21, 3, 1, 900, 44, 2, "driver", 18, "java.io.IOException", None],
        records.TaskFailure(3, 1, 900, 44, 2, "driver", 18, "java.io.IOException", None),
    ),
    ([11, 3, 1, 900, [82, 5]], records.LiveUpdate(3, 1, 900, (82, 5))),
    (
        [12, "1", 19, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]],
        records.ExecutorMemory("1", 19, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    ),
    ([13, "1", "host", 4, 20, 0], records.ExecutorAdded("1", "host", 4, 20, 0)),
    ([14, "1", 21], records.ExecutorRemoved("1", 21)),
    ([15, "1", "host:40101", 455_501_414], records.BlockManagerAdded("1", "host:40101", 455_501_414)),
    (
        [16, "id", "run", None, "2026-11-21T10:42:48.662Z", "ProcessingTimeTrigger(2000)", None, "file:/state", -1],
        records.QueryStarted(
            "id", "run", None, "2026-11-21T10:42:48.662Z", "ProcessingTimeTrigger(2000)", None, "file:/state", -1
        ),
    ),
    ([17, "{}"], records.QueryProgress("{}")),
    ([18, "id", "run", 22, None], records.QueryTerminated("id", "run", 22, None)),
    ([20, "id", "run", 23], records.QueryIdle("id", "run", 23)),
    (
        [22, "VM - V - 17/17.0.1", "amd64", ["-Xmx1g"], ["/a.jar"], {"spark.master": "local[2]"}],
        records.Environment("VM - V - 17/17.0.1", "amd64", ("-Xmx1g",), ("/a.jar",), {"spark.master": "local[2]"}),
    ),
    ([23, "run", -1, {"spark.sql.x": "y"}], records.Configuration("run", -1, {"spark.sql.x": "y"})),
    ([23, None, 24, {}], records.Configuration(None, 24, {})),
    ([25, "run", 7, ["files", 4, 7]], records.SourceBacklog("run", 7, ("files", 4, 7))),
    ([19, "java.lang.NullPointerException"], records.Fault("java.lang.NullPointerException")),
]
DRAIN = msgspec.msgpack.encode(TOTALS + [written for written, _ in EVERY_KIND])


@pytest.mark.parametrize(("written", "read"), EVERY_KIND, ids=lambda value: type(value).__name__)
def test_every_kind_is_read_field_by_field(written: list[Any], read: records.Record) -> None:
    """The tag names the struct, the rest are its fields in order."""
    assert records.decode(msgspec.msgpack.encode([*TOTALS, written])).records == [read]


@pytest.mark.parametrize("read", [read for _, read in EVERY_KIND], ids=lambda read: type(read).__name__)
def test_every_kind_is_written_as_the_recorder_writes_it(read: records.Record) -> None:
    """Structs and the recorder's arrays are one layout."""
    written = [written for written, one in EVERY_KIND if one is read]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(read)) == written[0]


def test_every_kind_is_tried() -> None:
    """A kind without a case here is a kind that nobody has seen read."""
    assert {type(read) for _, read in EVERY_KIND} == set(records.Record.__args__)


def test_totals_come_first_and_the_order_stays() -> None:
    """What Spark told first is applied first."""
    drained = records.decode(DRAIN)
    totals = (drained.events, drained.record_ns, drained.dropped_records, drained.dropped_live)
    assert (*totals, drained.wall_ms, drained.monotonic_ns) == tuple(TOTALS)
    assert drained.records == [read for _, read in EVERY_KIND]


def test_an_empty_drain_has_no_records() -> None:
    """Nothing happened since the last one."""
    assert records.decode(msgspec.msgpack.encode([0, 0, 0, 0, 0, 0])).records == []


def _packed(value: int) -> bytes:
    """As Packer.integer: one byte, 4 bytes signed or 8 bytes signed, never the shortest form."""
    if 0 <= value < 128:
        return bytes([value])
    if -(2**31) <= value < 2**31:
        return b"\xd2" + value.to_bytes(4, "big", signed=True)
    return b"\xd3" + value.to_bytes(8, "big", signed=True)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_integers_are_read_as_the_packer_writes_them(values: list[int]) -> None:
    """The recorder knows two widths, and arrays of fewer than 16 or any number of elements."""
    head = bytes([0x90 | len(values)]) if len(values) < 16 else b"\xdd" + len(values).to_bytes(4, "big")
    body = b"\x97" + bytes(6) + b"\x93\x04" + _packed(7) + head + b"".join(map(_packed, values))
    assert records.decode(body).records == [records.DriverUpdates(7, tuple(values))]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_read_as_the_packer_writes_it(text: str) -> None:
    """Up to 31 bytes in the short form, else with a length of 4 bytes."""
    raw = text.encode()
    head = bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xdb" + len(raw).to_bytes(4, "big")
    assert records.decode(b"\x97" + bytes(6) + b"\x92\x13" + head + raw).records == [records.Fault(text)]


# ---- What is not the recorder's


def _decoded_or_refused(body: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError):
        assert isinstance(records.decode(body), records.Drained)


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\x91" * 100_000)
@example(b"\x97\x01\x02\x03\x04\x05\x06" + b"\x93\x02\x05" + b"\x94\xa1a\xa1b\x90\x91" * 50_000)
@example(b"\x95\x01\x02\x03\x04\x92\x13\xa1\xff")
def test_arbitrary_bytes_raise_decode_errors_only(body: bytes) -> None:
    """One error is what the caller catches."""
    _decoded_or_refused(body)


@given(st.integers(0, len(DRAIN) - 1))
def test_a_cut_drain_is_refused(length: int) -> None:
    """Half a drain is no drain."""
    with pytest.raises(msgspec.DecodeError):
        records.decode(DRAIN[:length])


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.integers(0, len(DRAIN) - 1), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_mutated_drains_raise_decode_errors_only(changes: list[tuple[int, int]]) -> None:
    """A flipped byte may mean something else; it may not mean another exception."""
    body = bytearray(DRAIN)
    for position, byte in changes:
        body[position] = byte
    _decoded_or_refused(bytes(body))


loose = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=3) | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@given(st.integers(-1, 21), st.lists(loose, max_size=12))
def test_misshapen_records_raise_decode_errors_only(tag: int, fields: list[object]) -> None:
    """Whole MessagePack of the wrong shape is refused like bytes that are none."""
    _decoded_or_refused(msgspec.msgpack.encode([*TOTALS, [tag, *fields]]))


@pytest.mark.parametrize("totals", [[], [1], [1, 2, 3, 4, 5]], ids=len)
def test_a_drain_without_its_totals_is_refused(totals: list[int]) -> None:
    """Four totals and two times always come; the message says what was expected."""
    with pytest.raises(msgspec.DecodeError, match=f"a drain of {len(totals)} values: expected six numbers"):
        records.decode(msgspec.msgpack.encode(totals))


def test_an_unknown_kind_is_refused() -> None:
    """The recorder and this module are built together."""
    with pytest.raises(msgspec.DecodeError):
        records.decode(msgspec.msgpack.encode([*TOTALS, [99, 1]]))


def test_a_deep_plan_is_read() -> None:
    """Spark's plans may be hundreds of nodes deep."""
    node: list[Any] = LEAF
    for _ in range(250):
        node = ["Filter", "Filter", [], [node]]
    (update,) = records.decode(msgspec.msgpack.encode([*TOTALS, [2, 0, node]])).records
    assert isinstance(update, records.PlanUpdate)
    depth, found = 0, update.plan
    while found.children:
        depth, found = depth + 1, found.children[0]
    assert depth == 250
