"""/jobs/:jobid/compare: which runs stand beside each other, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.archive import Archive, open_archive
from collector.run import Run
from collector.segment import run_id
from collector.store import JobState
from service.errors import Missing
from service.flink import compare
from service.flink.query import Query
from service.flink.rest import RESOURCES, WAITING
from streamgauge import names, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import UnknownJob, UnresolvableParameter

NOW_MS = 2_000_000
START_MS = 1_000_000
JID, OTHER = "d" * 32, "e" * 32
RUNS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(5)]
PLAIN = [run.replace("-", "") for run in RUNS]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    held = open_archive(str(tmp_path / "archive.db"), ManualClock(NOW_MS))
    yield held
    held.close()


@pytest.fixture
def state(states: Any) -> Any:
    """A run of a job: the number-th is 100 s later, and had so many records."""

    def made(number: int, jid: str = JID, records: int = 100, **changes: Any) -> JobState:
        columns = {names.NUM_RECORDS_IN: states.column(records, records)}
        start_ms = START_MS + 100_000 * number
        given = {"state": "FINISHED", "end_ms": start_ms + 50_000, "attempt": wire.Attempt(start_ms, RUNS[number])}
        made: JobState = states.job(states.vertex(columns=columns), jid=jid, **(given | changes))
        return made

    return made


def asked(states: Any, archive: Archive | None, *live: Any, jid: str = JID, given: str | None = None) -> dict[str, Any]:
    """The body, as it is read."""
    parameters = {} if given is None else {"with": [given]}
    query = Query(states.snapshot(*live), NOW_MS, {"jobid": jid}, parameters, archive=archive)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(compare.of_job(query)))
    return found


def both(body: dict[str, Any]) -> tuple[str, str]:
    return body["before"]["run"], body["after"]["run"]


def test_it_may_wait_for_the_archive() -> None:
    """So it is answered by a thread of its own, and not where pushes are."""
    [resource] = [path for path, handler in RESOURCES.items() if handler is compare.of_job]
    assert resource in WAITING


def test_without_more_words_the_run_before_is_compared(states: Any, archive: Archive, state: Any) -> None:
    """Of the same job, the latest that began before it, whatever else is archived."""
    for number in (0, 1, 3):
        archive.write(Run(state(number)))
    archive.write(Run(state(2, jid=OTHER)))
    live = state(4, state="RUNNING", end_ms=-1)
    assert both(asked(states, archive, live)) == (PLAIN[3], PLAIN[4])
    assert both(asked(states, archive, live, jid=PLAIN[3])) == (PLAIN[1], PLAIN[3])
    assert both(asked(states, archive, live, jid=PLAIN[1])) == (PLAIN[0], PLAIN[1])


def test_the_live_run_is_not_compared_with_itself_as_it_was_archived(states: Any, archive: Archive, state: Any) -> None:
    """One that has ended is both at once."""
    archive.write(Run(state(0)))
    archive.write(Run(state(1)))
    assert both(asked(states, archive, state(1))) == (PLAIN[0], PLAIN[1])


@pytest.mark.parametrize("given", [RUNS[0], PLAIN[0], RUNS[0].upper()])
def test_a_run_is_named_as_spark_writes_it_or_without_dashes(
    states: Any, archive: Archive, state: Any, given: str
) -> None:
    archive.write(Run(state(0)))
    assert both(asked(states, archive, state(3), given=given)) == (PLAIN[0], PLAIN[3])


def test_runs_of_two_jobs_are_compared_by_the_jobs_ids(states: Any, archive: Archive, state: Any) -> None:
    """Of an archived one the latest run, of a live one that; later or earlier does not matter."""
    archive.write(Run(state(2, jid=OTHER)))
    archive.write(Run(state(3, jid=OTHER)))
    body = asked(states, archive, state(0), given=OTHER)
    assert both(body) == (PLAIN[3], PLAIN[0])
    assert (body["before"]["jid"], body["after"]["jid"]) == (OTHER, JID)
    assert both(asked(states, archive, state(0), jid=PLAIN[2], given=JID)) == (PLAIN[0], PLAIN[2])


def test_without_a_run_before_it_says_what_to_do(states: Any, archive: Archive, state: Any) -> None:
    """With an archive and without one; later runs and other jobs are none."""
    archive.write(Run(state(3)))
    archive.write(Run(state(1, jid=OTHER)))
    for held in (archive, None):
        with pytest.raises(Missing, match=f"No run of job {JID} before {PLAIN[2]} is archived.*/jobs/{JID}/runs"):
            asked(states, held, state(2))


def test_what_is_unknown_is_refused_with_its_name(states: Any, archive: Archive, state: Any) -> None:
    with pytest.raises(Missing, match=f"No job and no run {PLAIN[3]} is known.*/jobs/{JID}/runs"):
        asked(states, archive, state(2), given=RUNS[3])
    with pytest.raises(UnknownJob):
        asked(states, archive, given=RUNS[3])


@pytest.mark.parametrize("given", ["", "x", "1" * 31, "1" * 33, f"{'1' * 32},{'2' * 32}", "../../etc/passwd"])
def test_what_is_no_id_is_refused(states: Any, archive: Archive, state: Any, given: str) -> None:
    with pytest.raises(UnresolvableParameter, match="with"):
        asked(states, archive, state(2), given=given)


def test_both_runs_are_told_with_when_and_what_they_were(states: Any, archive: Archive, state: Any) -> None:
    """Each with its own start, though the job began earlier; one that runs is as of now."""
    archive.write(Run(state(0, state="FAILED", name="old", failure="java.io.IOException: away")))
    body = asked(states, archive, state(3, state="RUNNING", end_ms=-1, first_start_ms=5))
    assert body["now"] == NOW_MS
    assert body["before"] == {
        "jid": JID,
        "run": PLAIN[0],
        "name": "old",
        "job-type": "STREAMING",
        "state": "FAILED",
        "start-time": START_MS,
        "end-time": START_MS + 50_000,
        "duration": 50_000,
        "as-of": START_MS + 50_000,
        "failure": "java.io.IOException: away",
        "application": "app-1",
        "spark-version": "4.3.0",
        "hooks-version": "0.1.0",
    }
    after = body["after"]
    assert (after["start-time"], after["end-time"], after["as-of"]) == (START_MS + 300_000, -1, NOW_MS)
    assert after["duration"] == NOW_MS - START_MS - 300_000


def test_figures_and_findings_are_told(states: Any, archive: Archive, state: Any) -> None:
    """A figure with both values, difference and ratio; a finding with the vertex' ids and its score."""
    archive.write(Run(state(0, records=1_000)))
    body = asked(states, archive, state(1, records=500))
    [vertex] = body["vertices"]
    assert (vertex["id-before"], vertex["id-after"], vertex["rule"]) == (states.VERTEX, states.VERTEX, "id")
    figures = {figure["id"]: figure for figure in vertex["figures"]}
    assert figures[names.NUM_RECORDS_IN] == {
        "id": names.NUM_RECORDS_IN,
        "unit": "records",
        "basis": "run",
        "before": 2_000.0,
        "after": 1_000.0,
        "difference": -1_000.0,
        "ratio": 0.5,
        "direction": 0,
        "floor": None,
    }
    rate = f"{names.NUM_RECORDS_IN}{names.PER_SECOND}"
    assert body["findings"]["relative-change"] == 0.2
    told = {(each["figure"], each["id-after"]): each for each in body["findings"]["entries"]}
    assert set(told) == {(rate, states.VERTEX)}
    assert told[rate, states.VERTEX] == {
        "figure": rate,
        "id-before": states.VERTEX,
        "id-after": states.VERTEX,
        "unit": "records/s",
        "before": 40.0,
        "after": 20.0,
        "difference": -20.0,
        "ratio": 0.5,
        "score": 0.5,
    }


def test_plans_and_settings_that_differ_are_told(states: Any, archive: Archive, state: Any) -> None:
    """A vertex that is new, one that is gone, one whose operators are others."""

    def vertex(number: int, name: str, *operators: str) -> Any:
        made = states.vertex(id=f"{number:032x}", name=name)
        listed = tuple(
            wire.Operator(f"{number}{place:031x}", each, "", f"{number} {each}") for place, each in enumerate(operators)
        )
        return replace(made, vertex=wire.Vertex(made.vertex.id, name, listed, ()))

    def run(number: int, *vertices: Any, **configuration: str) -> JobState:
        return replace(state(number), vertices={each.vertex.id: each for each in vertices}, configuration=configuration)

    archive.write(Run(run(0, vertex(1, "Scan", "Scan"), vertex(2, "A -> B", "A", "B"), partitions="8")))
    body = asked(
        states, archive, run(1, vertex(3, "New", "New"), vertex(4, "A -> C -> B", "A", "C", "B"), partitions="9")
    )
    assert [(each["name-before"], each["name-after"], each["rule"]) for each in body["vertices"]] == [
        (None, "New", None),
        ("A -> B", "A -> C -> B", "operators"),
        ("Scan", None, None),
    ]
    assert body["vertices"][1]["operators"] == [
        {"name": "A", "before": "2 A", "after": "4 A"},
        {"name": "C", "before": None, "after": "4 C"},
        {"name": "B", "before": "2 B", "after": "4 B"},
    ]
    assert body["configuration"] == [{"key": "partitions", "before": "8", "after": "9"}]


def test_a_run_beside_itself_has_no_finding(states: Any, archive: Archive, state: Any) -> None:
    """By its own id, live on one side and archived on the other as well."""
    live = state(1)
    assert asked(states, archive, live, given=JID)["findings"]["entries"] == []
    archive.write(Run(live))
    body = asked(states, archive, jid=JID, given=run_id(live))
    assert both(body) == (PLAIN[1], PLAIN[1])
    assert body["findings"]["entries"] == []
