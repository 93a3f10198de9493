"""What a replay tells: a line a run, and one for everything that was not read."""

from __future__ import annotations

import json
from dataclasses import replace

from streamgauge.replay_report import FAULTS, Report

RUN = {
    "jid": "ab" * 16,
    "run": "r",
    "name": "two\nlines",
    "type": "STREAMING",
    "state": "CANCELED",
    "batches": 3,
    "records": 40,
    "start_ms": 1_000,
    "end_ms": 3_500,
    "written": True,
}

WHOLE = Report(
    log="app-1",
    app="app",
    spark_version="4.3.0",
    events=10,
    first_ms=1,
    last_ms=2,
    ended=True,
    unknown={},
    unreadable=0,
    lines=(),
    truncated=False,
    cut=(),
    faults=(),
    refused=(),
    left_out=0,
    runs=(RUN,),
)


def test_a_line_a_run() -> None:
    """What is not known is left out, and a name is one line."""
    batch = {**RUN, "name": "b", "batches": None, "records": None, "end_ms": None, "state": "SUSPENDED"}
    assert list(replace(WHOLE, runs=(RUN, batch)).runs_told()) == [
        f"{'ab' * 16}  two lines  CANCELED, 3 batches, 40 records, from 1970-01-01T00:00:01Z for 2.5 s",
        f"{'ab' * 16}  b  SUSPENDED, from 1970-01-01T00:00:01Z",
    ]


def test_of_a_whole_log_nothing_is_told_but_its_runs() -> None:
    assert list(WHOLE.skipped_told()) == []


def test_runs_that_were_there_before_are_told_with_what_would_replace_them() -> None:
    report = replace(WHOLE, runs=(RUN, {**RUN, "written": False}))
    assert list(report.skipped_told()) == [
        "app-1: 1 of 2 runs are in the archive already and stay as they are; --replace writes over them"
    ]


def test_everything_that_was_skipped_is_told() -> None:
    report = replace(
        WHOLE,
        ended=False,
        truncated=True,
        cut=("events_2: the file ends within a zstd block",),
        unreadable=3,
        lines=(4, 7),
        unknown={"org.b": 1, "org.a": 2},
        faults=tuple(f"fault {number}" for number in range(FAULTS + 2)),
        refused=("job x: too many values",),
        left_out=9,
        runs=(),
    )
    assert list(report.skipped_told()) == [
        "app-1: the driver did not end: the log stops before it, for it crashed or still runs",
        "app-1: its last line is cut off and was not read",
        "app-1: events_2: the file ends within a zstd block; it was read up to there",
        "app-1: 3 lines are no events of Spark's and were skipped, the first of them 4, 7",
        "app-1: 2 × org.a skipped, this release does not know it",
        "app-1: 1 × org.b skipped, this release does not know it",
        *(f"app-1: could not be applied: fault {number}" for number in range(FAULTS)),
        "app-1: could not be applied: 2 more",
        "app-1: is left out: job x: too many values",
        "app-1: 9 batch executions before the latest ones are left out",
        "app-1: no streaming query and no SQL execution ran",
    ]


def test_all_lines_that_are_none_are_named_where_they_are_few() -> None:
    (told,) = replace(WHOLE, unreadable=2, lines=(4, 7)).skipped_told()
    assert told == "app-1: 2 lines are no events of Spark's and were skipped: 4, 7"


def test_json_has_every_field() -> None:
    told = json.loads(WHOLE.json())
    assert told["runs"] == [RUN]
    assert told.keys() == set(Report.__dataclass_fields__)
