"""What becomes of task attempts changes no count: what the winners did counts, as event log and data say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from tests.e2e.attempts import FILES, Driver, counted_again, counts, driver, exact, run, written
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def local(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Two cores, four attempts a task."""
    with driver(service, "local", tmp_path_factory.mktemp("local")) as process:
        yield process
        process.end()


def test_failed_attempts_count_nothing(local: Driver, rest: Rest) -> None:
    """Tasks that fail after they have read and put out all their rows; the successes that follow count once."""
    run_id = run(local, "retries")
    log, (source, _) = exact(local, rest, "retries", run_id)
    assert log.reasons() == {"Success": 7, "ExceptionFailure": 4}
    # A second attempt puts out every row twice.
    assert sorted(source["MapInArrow.numRecordsOut"].values()) == sorted(
        [FILES[0] * 2, FILES[1], FILES[2] * 2, FILES[3]]
    )
    assert written(local, "retries") == sum(FILES) * 15 // 20


def test_live_counts_of_a_failed_attempt_stand_until_the_retry_passes_them(local: Driver, rest: Rest) -> None:
    """What heartbeats told of a task that fails then is shown, never goes back, and is not in the end."""
    run_id = run(local, "slow_retry", (160,))
    jid = eventually(lambda: (job := rest.job("slow_retry")) and job["tasks"]["total"] and job)["jid"]
    vertex = eventually(lambda: rest.get(f"/jobs/{jid}")["vertices"])[0]["id"]
    seen: list[tuple[int, int]] = []
    while rest.get(f"/jobs/{jid}")["state"] == "RUNNING":
        [subtask] = rest.get(f"/jobs/{jid}/vertices/{vertex}")["subtasks"]
        rows = counts(rest, jid, {"id": vertex}).get("MapInArrow.numRecordsOut", {})
        seen.append((subtask["attempt"], rows.get(0, 0)))
        time.sleep(0.25)
    assert all(now >= before for (_, before), (_, now) in pairwise(seen)), seen
    assert max(rows for attempt, rows in seen if attempt == 0) >= 60, seen
    assert len({rows for attempt, rows in seen if attempt == 1}) > 1, seen
    log = eventually(partial(local.log, run_id))
    assert log.reasons() == {"Success": 1, "ExceptionFailure": 1}
    columns = counts(rest, jid, {"id": vertex})
    assert len(columns) == 8
    assert all(column == {0: 160} == log.rows("MapInArrow slow") for column in columns.values()), columns
    assert written(local, "slow_retry") == 160


@pytest.mark.parametrize("scenario", ["lost_shuffle", "lost_shuffle adaptive"])
def test_map_tasks_that_run_again_for_lost_output_count_once(local: Driver, rest: Rest, scenario: str) -> None:
    """The later success replaces the first one; adaptive execution runs it under another stage's id."""
    run_id = run(local, scenario)
    log, (source, _) = exact(local, rest, scenario, run_id)
    assert log.reasons()["FetchFailed"] >= 1
    counted_again(log, source)
