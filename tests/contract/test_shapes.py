"""The comparator itself: what it lets pass, what it does not, and how the table of differences is read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.recordings import FOLDER, Answer, Documented, documented, parse_row, recordings
from tests.contract.shapes import Difference, Shape, compare
from tests.contract.walk import Places, Walk, known_metrics

EPOCH = 1_795_248_819_809
ID = "9e283f61da6ac64998d5e31ca6520bee"


def differences(recorded: Any, given: Any, *others: Any) -> list[tuple[str, str, str]]:
    """Compare with one answer of Flink's, and what it answered to the like."""
    shape = Shape()
    for each in (recorded, *others):
        shape.learn(each)
    return [(each.place, each.flink, each.here) for each in compare(shape, recorded, given)]


def test_every_recording_is_in_the_index_once() -> None:
    """A file that is not listed would not be asked, one that is listed twice would be counted twice."""
    listed = sorted(each.file for each in recordings())
    assert listed == sorted(path.name for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("recording", recordings(), ids=lambda each: each.name)
def test_flink_does_not_differ_from_itself(recording: Any) -> None:
    """Every recorded answer is one that Flink could give."""
    body = recording.body if recording.method != "HEAD" else None
    assert recording.differences(Answer(recording.status, recording.content_type, body), {}) == []


@pytest.mark.parametrize(
    ("recorded", "given"),
    [
        ({"a": 5}, {"a": 7}),
        ({"a": 5}, {"a": -1}),
        ({"a": EPOCH}, {"a": EPOCH + 5}),
        ({"a": EPOCH}, {"a": -1}),
        ({"a": -1}, {"a": EPOCH}),
        ({"a": 0.5}, {"a": "NaN"}),
        ({"a": "RUNNING"}, {"a": "FAILED"}),
        ({"a": ID}, {"a": "0" * 32}),
        ({"a": "some text"}, {"a": "12"}),
        ({"a": "localhost:4711"}, {"a": "10.0.0.7:8081"}),
        ({"a": "localhost:4711"}, {"a": "(unassigned)"}),
        ([1, 2], [3]),
        ({"user-config": {"a": "b"}}, {"user-config": {"other": "c"}}),
        ({"a": 1}, {"a": 1, "streamgauge": {"b": 1}}),
        ([{"id": "0.x", "value": "1"}], [{"id": "1.x", "value": "2"}]),
    ],
    ids=str,
)
def test_values_of_a_kind_are_the_same(recorded: Any, given: Any) -> None:
    """What a value is does not matter, only what it looks like; 0 and −1 are words for unknown."""
    assert differences(recorded, given) == []


@pytest.mark.parametrize(
    ("recorded", "given", "expected"),
    [
        ({"a": 1}, {}, ("a", "number", "absent")),
        ({}, {"a": [{"b": 1}]}, ("a", "absent", "list")),
        ({"a": 5}, {"a": 5.0}, ("a", "number", "decimal")),
        ({"a": 5}, {"a": "5"}, ("a", "number", "long as text")),
        ({"a": 5}, {"a": EPOCH}, ("a", "number", "epoch ms")),
        ({"a": EPOCH}, {"a": 5}, ("a", "epoch ms", "number")),
        ({"a": 5}, {"a": True}, ("a", "number", "boolean")),
        ({"a": 5}, {"a": None}, ("a", "number", "null")),
        ({"a": None}, {"a": 5}, ("a", "null", "number")),
        ({"a": None}, {"a": {"b": 1}}, ("a", "null", "object")),
        ({"a": {"b": 1}}, {"a": None}, ("a", "object", "null")),
        ({"a": ID}, {"a": "app-1"}, ("a", "id", "text")),
        ({"a": ID}, {"a": ID.upper()}, ("a", "id", "text")),
        ({"a": "12"}, {"a": "12.0"}, ("a", "long as text", "double as text")),
        ({"a": "12.0"}, {"a": "12"}, ("a", "double as text", "long as text")),
        ({"a": "1.0E7"}, {"a": "1e7"}, ("a", "double as text", "text")),
        ({"a": "RUNNING"}, {"a": "running"}, ("a", "word", "text")),
        ({"a": "text of it"}, {"a": ""}, ("a", "text", "empty text")),
        ([1], [], ("body", "filled", "empty")),
        ([], [1], ("body", "empty", "filled")),
        ([{"a": [1]}], [{"a": []}], ("[].a", "filled", "empty")),
        ({"user-config": {}}, {"user-config": {"a": "b"}}, ("user-config", "empty", "filled")),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {}], ("[].a", "number", "absent")),
        ({"tasks": {ID: {"a": 1}}}, {"tasks": {"0" * 32: {"a": "x y"}}}, ("tasks{}.a", "number", "text")),
    ],
    ids=str,
)
def test_values_of_another_kind_differ(recorded: Any, given: Any, expected: tuple[str, str, str]) -> None:
    """Keys, types, nullability and the formats of texts and times."""
    assert differences(recorded, given) == [expected]


def test_what_flink_leaves_out_now_and_then_may_be_left_out() -> None:
    """A key is needed if every such answer of Flink's had it; other answers tell what else may be there."""
    assert differences({"a": 1, "b": 2}, {"a": 1}, {"a": 1}) == []
    assert differences({"a": None}, {"a": 5}, {"a": 5}) == []
    assert differences({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}) == []
    assert differences({"a": 1}, {"a": 1, "b": "x y"}, {"a": 1, "b": 3}) == [("b", "number", "text")]


def test_metrics_are_compared_by_name() -> None:
    """What is a long in Flink is none with a point in it here, though other metrics have one."""
    recorded = [{"id": "0.busy", "value": "1.0"}, {"id": "0.Source__a.rows", "value": "5"}]
    assert differences(recorded, [{"id": "0.rows", "value": "5.0"}]) == [
        ("[rows].value", "long as text", "double as text"),
    ]
    assert differences(recorded, [{"id": "0.ours", "value": "5.0"}]) == []


def test_refusals_are_compared_word_for_word() -> None:
    """Where our ids stand for Flink's."""
    recording = next(each for each in recordings() if each.name == "err_job_unknown")
    body = {"errors": [recording.body["errors"][0].replace("0" * 32, "1" * 32)]}
    answer = Answer(recording.status, recording.content_type, body)
    assert recording.differences(answer, {"0" * 32: "1" * 32}) == []
    [difference] = recording.differences(answer, {})
    assert (difference.place, difference.here) == ("message", body["errors"][0])


def test_status_and_content_type_are_compared() -> None:
    """Another status says all: the body is then another thing."""
    recording = recordings()[0]
    assert recording.differences(Answer("404", "text/html", None), {}) == [Difference("status", "200", "404")]
    found = recording.differences(Answer("200", "text/html", recording.body), {})
    assert found == [Difference("content type", recording.content_type, "text/html")]


def test_row_covers_the_difference_that_it_names() -> None:
    """A star stands for anything, all else for itself."""
    named = {each.name: each for each in recordings()}
    text = Difference("[].a", "number", "text")
    row = parse_row("| `/jobs/:jobid/p*` `[].a` | number | `text` | it is so |")
    assert row == Documented("/jobs/:jobid/p*", text, "it is so")
    assert row.covers(named["main__plan"], text)
    assert not row.covers(named["main__job"], text)
    assert not row.covers(named["main__plan"], Difference("[].ab", "number", "text"))
    assert not row.covers(named["main__plan"], Difference("[].a", "number", "null"))
    queried = parse_row("| `/jobs/metrics?get=uptime&jobs=x*` `[].a` | number | text | it is so |")
    assert queried.covers(named["err_jobs_metrics_bad_job"], text)
    assert not queried.covers(named["err_jobs_metrics_unknown_job"], text)


@pytest.mark.parametrize("line", ["| `/jobs` `a` | 1 | 2 |", "| jobs | 1 | 2 | why |", "| `/jobs` `a` | 1 | 2 | |"])
def test_row_without_place_or_reason_is_none(line: str) -> None:
    """A difference has a reason."""
    with pytest.raises(ValueError, match=r"expected|four cells"):
        parse_row(line)


def test_the_table_has_rows_each_of_which_is_there_once() -> None:
    """Whatever the walk then makes of them."""
    keys = [(row.request, row.difference) for row in documented()]
    assert keys
    assert len(set(keys)) == len(keys)


def test_requests_are_asked_of_our_jobs() -> None:
    """Ids in path and query, in either case, and the checkpoint that is there; of errors only the ids."""
    jid, vertex = ID, "f362c87ffabe89c8a91fa7d0a523ba6c"
    places = Places(
        {jid: "a" * 32, "127.0.0.1:33081-ee3b94": "app-1-driver"}, {}, {jid: {vertex: "b" * 32}}, {jid: lambda: "7"}
    )
    targets = {each.name: places.target(each) for each in recordings()}
    assert targets["main__v0__watermarks"] == f"/jobs/{'a' * 32}/vertices/{'b' * 32}/watermarks"
    assert targets["err_job_uppercase"] == f"/jobs/{'A' * 32}"
    assert targets["main__checkpoint_details_v0"] == f"/jobs/{'a' * 32}/checkpoints/details/7/subtasks/{'b' * 32}"
    assert targets["err_checkpoint_unknown"] == f"/jobs/{'a' * 32}/checkpoints/details/999999"
    assert targets["tm0_metrics"] == "/taskmanagers/app-1-driver/metrics"
    assert targets["jobs_metrics_jobs_filter"].endswith(f"jobs={'a' * 32}")


def test_metrics_that_are_lacking_are_asked_for_of_another_operator_or_not_at_all() -> None:
    """So that one unknown name does not hide what is known."""
    known = ["0.rows", "0.Source__ours.lag", "1.rows"]
    assert known_metrics(["0.rows", "0.Source__theirs.lag", "0.other"], known) == ["0.rows", "0.Source__ours.lag"]
    assert known_metrics(["0.other"], known) == sorted(known)


def test_a_missing_endpoint_is_a_difference() -> None:
    """Not a crash, whatever the body of the refusal."""
    recording = next(each for each in recordings() if each.name == "main__v0__metrics_get_all_part0")
    walk = Walk(lambda *_: Answer("404", "", None), Places())
    assert walk.differences(recording) == [Difference("status", "200", "404")]
