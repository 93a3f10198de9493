"""What `jobs` prints."""

from __future__ import annotations

from streamgauge.listing import listing
from streamgauge.overview import Job, Overview

RUNNING = Job(
    "9db08cbfb75c4c0ba705afe8c513cb2f",
    "flights by hour",
    "STREAMING",
    "RUNNING",
    0,
    99_000,
    192_000,
    2,
    47,
    182,
    1234.5,
    7,
)
YOUNG = Job("0" * 32, "late aircraft -> noop", "STREAMING", "CREATED", 0, 400, 0.0, 0)
FAILED = Job("f" * 32, "broken", "BATCH", "FAILED", 0, 61_000, None, 0, failure="it broke\n  at Row.scala")


def printed(*jobs: Job, width: int | None = None, ended: bool = False, **states: int) -> list[str]:
    return [line.plain for line in listing(Overview("http://c", 0, states=states, jobs=jobs), width, ended)]


def test_a_job_is_a_line_with_its_whole_id() -> None:
    """'-' is what is not known."""
    assert printed(RUNNING, YOUNG) == [
        "STATE    JOB ID                            TYPE       UPTIME   IN/S  OUT/S  BATCH   TOOK  RESTARTS  NAME",
        "RUNNING  9db08cbfb75c4c0ba705afe8c513cb2f  STREAMING   3m12s  1.23k      7     47  182ms         2"
        "  flights by hour",
        "CREATED  00000000000000000000000000000000  STREAMING     0ms      -      -      -      -         0"
        "  late aircraft -> noop",
    ]


def test_at_80_columns_the_id_stays_whole() -> None:
    """What has no room is told."""
    assert printed(RUNNING, YOUNG, width=80) == [
        "STATE   JOB ID                           UPTIME  IN/S OUT/S NAME",
        "RUNNING 9db08cbfb75c4c0ba705afe8c513cb2f  3m12s 1.23k     7 flights by hour",
        "CREATED 00000000000000000000000000000000    0ms     -     - late aircr…t -> noop",
        "No room for TYPE, BATCH, TOOK, RESTARTS: widen the terminal, or use --json.",
    ]


def test_ended_jobs_stand_apart_with_the_time_they_ran() -> None:
    """Behind those that run, and with why they failed."""
    assert printed(RUNNING, FAILED, ended=True)[2:] == [
        "",
        "STATE   JOB ID                            TYPE     RAN  IN/S  OUT/S  BATCH  TOOK  RESTARTS  NAME",
        "FAILED  ffffffffffffffffffffffffffffffff  BATCH  1m01s     -      -      -     -         0  broken: it broke",
    ]


def test_nothing_to_list_is_said() -> None:
    """And where the ended ones are."""
    assert printed() == ["No running jobs."]
    assert printed(FINISHED=3) == ["No running jobs.", "3 ended: streamgauge jobs --all"]
    assert printed(ended=True) == ["No running jobs.", "", "No ended jobs."]
