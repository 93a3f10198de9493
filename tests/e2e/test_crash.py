"""A driver that is killed in the middle of a batch: what each of the two runs counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.attempts import FILES, counts, driver, run, write
from tests.e2e.conftest import Rest, eventually
from tests.e2e.event_log import EventLog

pytestmark = pytest.mark.spark


def test_batch_that_a_crash_broke_off_counts_in_the_run_that_ran_it(service: str, rest: Rest, tmp_path: Path) -> None:
    """
    A stateful query whose driver is killed in its third batch, and started again.

    The first run shows what it read, the broken batch too; the second one, a restart later, counts what it ran:
    that batch and the next one. Its driver's end stops it.
    """
    with driver(service, "local", tmp_path) as first:
        run(first, "hanging", FILES[:3])
        jid = eventually(lambda: rest.job("hanging"))["jid"]

        def hangs() -> bool:
            vertices = rest.get(f"/jobs/{jid}")["vertices"]
            return bool(vertices) and vertices[0]["metrics"]["read-records"] == sum(FILES[:3])

        eventually(hangs, 60)
        begun = rest.get(f"/jobs/{jid}")
        assert job_metrics(rest, jid) == [2, 1, sum(FILES[:2]), 0]
        first.kill()
    (tmp_path / "hanging" / "go").touch()
    with driver(service, "local", tmp_path) as second:
        write(tmp_path / "hanging" / "in", 3, sum(FILES[:3]), FILES[3])
        run_id = second.start("hanging")
        eventually(lambda: job_metrics(rest, jid) == [2, 0, sum(FILES[2:]), 1], 60)
        running = rest.get(f"/jobs/{jid}")
        assert running["state"] == "RUNNING"
        assert running["start-time"] == begun["start-time"]
        second.end()
    job = eventually(lambda: (found := rest.get(f"/jobs/{jid}"))["state"] == "CANCELED" and found)
    assert [vertex["id"] for vertex in job["vertices"]] == [vertex["id"] for vertex in begun["vertices"]]
    log = EventLog(tmp_path / "log", run_id)
    assert [progress["batchId"] for progress in log.progress] == [2, 3]
    assert [progress["sources"][0]["numInputRows"] for progress in log.progress] == list(FILES[2:])
    source, state = (counts(rest, jid, vertex) for vertex in job["vertices"])
    assert source["MapInArrow.numRecordsIn"] == log.rows("FileScan json")
    assert sum(source["numRecordsIn"].values()) == sum(FILES[2:])
    assert source["MapInArrow.numRecordsOut"] == log.rows("MapInArrow gate")
    assert source["numRecordsOut"] == log.rows("Exchange", "shuffle records written")
    assert state["numRecordsIn"] == log.rows("Exchange", "records read")
    assert state["StateStoreSave.numRecordsOut"] == log.rows("StateStoreSave")
    # Both batches update every key; the sink got these, by the sink's own word too.
    updated = [progress["stateOperators"][0]["numRowsUpdated"] for progress in log.progress]
    assert updated == [20, 20] == [progress["sink"]["numOutputRows"] for progress in log.progress]
    assert sum(state["numRecordsOut"].values()) == sum(updated)


def job_metrics(rest: Rest, jid: str) -> list[int]:
    """Batches that are done, that are under way, rows by Spark's progress, restarts."""
    names = ("numberOfCompletedCheckpoints", "numberOfInProgressCheckpoints", "numInputRows", "numRestarts")
    found = {each["id"]: int(each["value"]) for each in rest.get(f"/jobs/{jid}/metrics?get={','.join(names)}")}
    return [found.get(name, -1) for name in names]
