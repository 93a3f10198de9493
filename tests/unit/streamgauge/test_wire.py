"""Frames: what is written is read, and what does not fit is refused by name."""

import contextlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import codec, wire
from streamgauge.errors import MalformedFrame, UnsupportedVersion

int64s = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40)
doubles = st.lists(st.floats(width=64), max_size=40)


def _frame(**changes: object) -> wire.Frame:
    vertex = wire.Vertex(
        "a" * 32, "Source: rate -> Filter", (wire.Operator("b" * 32, "Source: rate", "MicroBatchScan", "rate"),), ()
    )
    columns = (wire.column("numRecordsIn", np.array([1, 2, 3])), wire.column("busyTimeMsPerSecond", np.array([0.5])))
    every = wire.Frame(
        version=wire.WIRE_VERSION,
        app=wire.App("app-1", "flights", 1, "host", "4.3.0", "0.1"),
        attempt=wire.Attempt(5, "run-1"),
        seq=7,
        base=3,
        sent_at_ms=1_700_000_000_000,
        interval_ms=1000,
        job=wire.Job("c" * 32, "query", "STREAMING", "RUNNING", {"RUNNING": 5}, -1, "5 seconds", "task", {"uptime": 4}),
        plan=wire.Plan((vertex,)),
        vertices=(
            wire.VertexColumns(
                "a" * 32,
                3,
                3,
                9,
                columns,
                (wire.OperatorColumns("b" * 32, columns[:1]),),
                wire.Subtasks(b"\0" * 24, b"\0" * 24, b"\0" * 24, b"\0" * 24, ("app-1-driver",)),
            ),
        ),
        executors=(
            wire.Executor("app-1-1", "host:1", 4, 4, {"": 1}, 2**33, 1, 2, {"Status.JVM.CPU.Load": 0.5}, gone=True),
        ),
        driver={"Status.JVM.Threads.Count": 40, "flag": True, "text": "yes", "load": float("inf")},
        hooks={"events": 3},
        incomplete=wire.Incomplete(1, 2, 3),
    )
    return msgspec.structs.replace(every, **changes)


def _loose(frame: wire.Frame) -> dict[str, object]:
    """A frame as plain maps, to be spoilt."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(frame))  # type: ignore[no-any-return]


def test_a_frame_comes_back_as_it_was() -> None:
    """Encoding and decoding lose nothing, in any field."""
    frames = [_frame(), _frame(job=None, plan=None, vertices=(), base=0)]
    assert codec.decode(codec.encode(frames)) == frames


def test_an_empty_push_is_an_empty_list() -> None:
    """No frames, no error."""
    assert codec.decode(codec.encode([])) == []


@given(values=int64s)
def test_whole_numbers_come_back_from_a_column(values: list[int]) -> None:
    """Integers travel as little-endian int64, exactly."""
    column = wire.column("m", np.array(values, dtype=np.int64))
    assert (column.dtype, column.present) == ("i8", None)
    assert column.data == b"".join(value.to_bytes(8, "little", signed=True) for value in values)
    assert column.values().tolist() == values


@given(values=doubles)
def test_floating_point_comes_back_from_a_column(values: list[float]) -> None:
    """Doubles travel as they are, NaN and the infinities included."""
    array = np.array(values, dtype=np.float64)
    column = wire.column("m", array)
    assert (column.dtype, column.present) == ("f8", None)
    assert column.values().dtype == np.float64
    assert column.data == array.astype("<f8").tobytes()
    np.testing.assert_array_equal(column.values(), array)


@pytest.mark.parametrize(
    ("given_dtype", "dtype"), [("i1", "i8"), ("u4", "i8"), (">i8", "i8"), ("f4", "f8"), (">f8", "f8"), ("f2", "f8")]
)
def test_any_width_and_byte_order_may_be_given(given_dtype: str, dtype: str) -> None:
    """A column has 8 little-endian bytes a subtask, whatever the array had."""
    column = wire.column("m", np.array([1, 2, 3], dtype=given_dtype))
    assert column.dtype == dtype
    assert column.values().tolist() == [1, 2, 3]
    assert len(column.data) == 24


@given(present=st.lists(st.booleans(), max_size=40))
def test_the_bitmap_tells_which_subtasks_have_a_value(present: list[bool]) -> None:
    """Bit i of byte i // 8, least significant first; no bitmap where every subtask has a value."""
    column = wire.column("m", np.zeros(len(present)), np.array(present, dtype=np.bool_))
    mask = column.mask(len(present))
    if all(present):
        assert (column.present, mask) == (None, None)
        return
    assert column.present is not None
    assert mask is not None
    assert mask.tolist() == present
    assert len(column.present) == (len(present) + 7) // 8
    assert [bool(column.present[i // 8] >> (i % 8) & 1) for i in range(len(present))] == present


def test_a_columns_values_cannot_be_written() -> None:
    """They are a view of the frame's bytes."""
    values = wire.column("m", np.array([1])).values()
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 2


@pytest.mark.parametrize("length", [1, 7, 9, 15])
def test_broken_values_are_refused(length: int) -> None:
    """The message tells the metric and the length."""
    column = wire.Column("numRecordsIn", "i8", b"\0" * length)
    with pytest.raises(MalformedFrame, match=f"column 'numRecordsIn': {length} bytes"):
        column.values()


@pytest.mark.parametrize(("subtasks", "length"), [(8, 2), (9, 1), (1, 0)])
def test_a_bitmap_of_another_length_is_refused(subtasks: int, length: int) -> None:
    """ceil(subtasks / 8) bytes, not one more or less."""
    column = wire.Column("numRecordsIn", "i8", b"", b"\1" * length)
    with pytest.raises(MalformedFrame, match=f"'numRecordsIn': a bitmap of {length} bytes cannot tell {subtasks}"):
        column.mask(subtasks)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version_is_told_apart(version: int) -> None:
    """The message tells both versions and what to do."""
    body = codec.encode([_frame(), _frame(version=version)])
    with pytest.raises(UnsupportedVersion, match=rf"frame version {version}, but .* reads version 1: install the same"):
        codec.decode(body)


def test_another_version_is_told_apart_where_its_layout_differs() -> None:
    """A frame of the future need not look like one of today."""
    body = msgspec.msgpack.encode([{"version": 2, "app": 7, "everything": "else"}])
    with pytest.raises(UnsupportedVersion, match="frame version 2"):
        codec.decode(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", codec.encode([_frame()])[:-1], codec.encode([_frame()]) + b"\0", b"\xdd\xff\xff\xff\xff"],
    ids=["empty", "no MessagePack", "cut off", "more behind", "announces 4 billion frames"],
)
def test_what_is_no_whole_messagepack_is_refused(body: bytes) -> None:
    """A body is one array, no less and no more."""
    with pytest.raises(MalformedFrame, match="no whole MessagePack array of frames"):
        codec.decode(body)


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("seq", "7", r"\$\[0\].seq"),
        ("seq", 1.5, r"\$\[0\].seq"),
        ("app", {"id": "x"}, r"\$\[0\].app"),
        ("attempt", [5], r"\$\[0\].attempt"),
        ("vertices", [{"id": 3}], r"\$\[0\].vertices\[0\]"),
        ("driver", {"a": None}, r"\$\[0\].driver"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_with_the_place(field: str, value: object, place: str) -> None:
    """The message names the place."""
    body = msgspec.msgpack.encode([_loose(_frame()) | {field: value}])
    with pytest.raises(MalformedFrame, match=f"does not fit the wire format: .*{place}"):
        codec.decode(body)


@pytest.mark.parametrize("field", ["version", "app", "attempt", "seq", "base", "sent_at_ms", "interval_ms"])
def test_a_frame_without_a_required_field_is_refused(field: str) -> None:
    """What has no default must be there; the message names it."""
    loose = _loose(_frame())
    del loose[field]
    with pytest.raises(MalformedFrame, match=f"`{field}`"):
        codec.decode(msgspec.msgpack.encode([loose]))


@pytest.mark.parametrize("body", [{"version": 1}, [1], 5, None], ids=["a map", "a number in it", "a number", "nil"])
def test_a_body_that_is_no_array_of_frames_is_refused(body: object) -> None:
    """Any valid MessagePack may come in."""
    with pytest.raises(MalformedFrame):
        codec.decode(msgspec.msgpack.encode(body))


@pytest.mark.parametrize("nest", [b"\x81\xa1x", b"\x91"], ids=["maps", "arrays"])
@pytest.mark.parametrize(
    "before",
    [b"\x91\x81\xa4news", b"\x91\x83\xa7version\x01\xa3seq\xa4text\xa4news"],
    ids=["at once", "behind another fault"],
)
def test_a_body_nested_too_deeply_is_refused(before: bytes, nest: bytes) -> None:
    """A hostile body is a refusal like any other, also where only the look at its version meets the depth."""
    with pytest.raises(MalformedFrame):
        codec.decode(before + nest * 100_000 + b"\xc0")


def test_a_string_that_is_no_utf8_is_refused() -> None:
    """MessagePack calls text UTF-8, and whoever sends something else is told so."""
    body = codec.encode([_frame()]).replace(b"flights", b"fl\xffghts")
    with pytest.raises(MalformedFrame, match="no UTF-8"):
        codec.decode(body)


def test_unknown_fields_are_passed_over() -> None:
    """A newer writer of the same version may say more."""
    body = msgspec.msgpack.encode([_loose(_frame()) | {"news": [1, 2]}])
    assert codec.decode(body) == [_frame()]


@given(st.binary(max_size=200))
def test_no_body_ends_in_another_error(body: bytes) -> None:
    """Whatever is sent, it is read, or refused by one of the two errors."""
    with contextlib.suppress(MalformedFrame, UnsupportedVersion):
        codec.decode(body)


@given(
    one=st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c"])),
    other=st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c"])),
)
def test_attempts_are_ordered_by_start_then_run_id(one: tuple[int, str], other: tuple[int, str]) -> None:
    """The greater (start_ms, run_id) wins."""
    assert (wire.Attempt(*one) < wire.Attempt(*other)) is (one < other)
    assert (wire.Attempt(*one) == wire.Attempt(*other)) is (one == other)


def test_ended_states_are_states() -> None:
    """Every state that ends a job is one of the wire format's words."""
    words = {"CREATED", "RUNNING", "FAILED", "FINISHED", "CANCELED", "RESTARTING", "SUSPENDED"}
    assert sorted(wire.ENDED_STATES) == ["CANCELED", "FAILED", "FINISHED"]
    for word in words:
        assert codec.decode(codec.encode([_frame(job=msgspec.structs.replace(_frame().job, state=word))]))
