"""What a tap refuses before it looks at a stream's columns."""

from __future__ import annotations

from typing import Any

import pytest

import streamgauge
from streamgauge.errors import TapError


class Stream:
    """A stream that says no more than that it is one: nothing that is refused here may touch its columns."""

    isStreaming = True  # noqa: N815

    def observe(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "x" * 65, "a\n", None, 3])
def test_name_that_cannot_be_part_of_an_id_is_refused(name: Any) -> None:
    """1 to 64 of A-Z, a-z, 0-9, '_' and '-'."""
    with pytest.raises(TapError, match=r"tap\(name=.*expected 1 to 64"):
        streamgauge.tap(Stream(), name)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "partition without event time": ({"partition": "p"}, r"tap\(partition=…\): needs event_time="),
    "out-of-orderness without": ({"max_out_of_orderness": "1 second"}, r"tap\(max_out_of_orderness=…\): needs event"),
    "idleness without": ({"idleness": "1 second", "ingest_time": "t"}, r"tap\(idleness=…\): needs event_time="),
    "splits without partition": ({"event_time": "t", "splits": 3}, r"tap\(splits=…\): needs partition="),
    "no splits": ({"splits": 0}, r"tap\(splits=0\): expected 1 to 64 splits"),
    "too many splits": ({"splits": 65}, r"tap\(splits=65\): expected 1 to 64 splits"),
    "none listed": ({"splits": []}, r"tap\(splits=\[…\]\): lists 0, expected 1 to 64"),
    "too many listed": ({"splits": list(range(65))}, r"tap\(splits=\[…\]\): lists 65, expected 1 to 64"),
    "truth as a number": ({"splits": True}, "expected a number of splits, or a list"),
    "text as a list": ({"splits": "abc"}, "expected a number of splits, or a list"),
    "bytes as a list": ({"splits": b"abc"}, "expected a number of splits, or a list"),
    "half a split": ({"splits": [1, 1.5]}, r"tap\(splits=\[…, 1.5, …\]\): expected integers"),
    "truth as a split": ({"splits": [True, 0]}, r"\[…, True, …\]"),
    "huge split": ({"splits": [2**63]}, "integers that a long holds"),
    "empty split": ({"splits": ["a", ""]}, "texts of 1 to 200 characters"),
    "long split": ({"splits": ["a" * 201]}, "texts of 1 to 200 characters"),
    "split that nobody can read": ({"splits": ["\ud800"]}, "texts of 1 to 200 characters"),
    "two kinds": ({"splits": [1, "1"]}, "integers only or texts only"),
    "a split twice": ({"splits": ["a", "b", "a"]}, r"tap\(splits=\[…\]\): 'a' is listed twice"),
    "values of source splits": ({"partition": streamgauge.SOURCE_SPLIT, "splits": [0, 1]}, "SOURCE_SPLIT numbers"),
    "negative out-of-orderness": ({"max_out_of_orderness": "-1 second"}, "must not be negative"),
    "idle at once": ({"idleness": "0 seconds"}, r"tap\(idleness='0 seconds'\): expected 1 millisecond or more"),
    "no duration": ({"idleness": 60}, r"tap\(idleness=60\): expected a duration"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    """The message names the argument and the rule."""
    if "needs" not in message:
        options = {"event_time": "t", "partition": "p"} | options
    with pytest.raises(TapError, match=message):
        streamgauge.tap(Stream(), "clicks", **options)


def test_what_is_no_dataframe_is_refused() -> None:
    """A tap is put on a stream, not on its query."""
    with pytest.raises(TapError, match=r"tap\(df=str\): expected a streaming DataFrame"):
        streamgauge.tap("a stream", "clicks")


def test_marker_reads_as_it_is_written() -> None:
    """In messages and in a debugger."""
    assert repr(streamgauge.SOURCE_SPLIT) == "SOURCE_SPLIT"
