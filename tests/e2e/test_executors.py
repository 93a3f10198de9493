"""Executors that are killed and tasks that have a copy on another one: what the winners did counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.attempts import Driver, counted_again, driver, exact, run
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Two executors of one core on two hosts, with speculation."""
    with driver(service, "cluster", tmp_path_factory.mktemp("cluster")) as process:
        yield process
        process.end()


def test_counts_outlive_the_executor_that_made_them(cluster: Driver, rest: Rest) -> None:
    """What the killed executor had written, that alone, is made again and replaces what it had counted."""
    scenario = "killed_executor adaptive"
    run_id = run(cluster, scenario)
    log, (source, _) = exact(cluster, rest, scenario, run_id)
    assert log.reasons()["ExecutorLostFailure"] == 1
    assert log.reasons()["FetchFailed"] >= 1
    counted_again(log, source)


def test_of_a_straggler_and_its_copy_one_counts(cluster: Driver, rest: Rest) -> None:
    """Where the copy wins and where the original does; the loser, which goes on for a while, is killed."""
    run_id = run(cluster, "stragglers")
    log, (source, _) = exact(cluster, rest, "stragglers", run_id)
    copies = [attempt for attempt in log.attempts if attempt.speculative]
    assert [attempt.partition for attempt in copies if attempt.reason == "Success"] == [0]
    # The copy puts out every row twice.
    assert source["MapInArrow.numRecordsOut"][0] == 2 * source["numRecordsOut"][0]
    assert log.reasons()["TaskKilled"] >= 1


def test_executors_tell_the_autoscaler_what_spark_tells(cluster: Driver, rest: Rest) -> None:
    """The heap they were given, what their heartbeats told; metaspace nobody tells, and NaN is no absence."""
    asked = ("Status.JVM.Memory.Heap.Max", "Status.JVM.Memory.Heap.Used", "Status.Flink.Memory.Managed.Used")

    def figures() -> dict[str, str]:
        for executor in rest.get("/taskmanagers")["taskmanagers"]:
            path = f"/taskmanagers/{executor['id']}/metrics?get={','.join(asked)},Status.JVM.Memory.Metaspace.Used"
            found = {each["id"]: each["value"] for each in rest.get(path)}
            if found["Status.JVM.Memory.Heap.Max"] == str(512 * 1024 * 1024) and "NaN" not in map(found.get, asked):
                return found
        return {}

    run(cluster, "stragglers adaptive")
    found = eventually(figures, 60)
    assert 0 < int(found["Status.JVM.Memory.Heap.Used"]) < 512 * 1024 * 1024
    assert found["Status.JVM.Memory.Metaspace.Used"] == "NaN"
    aggregate = rest.get(f"/taskmanagers/metrics?get={','.join(asked)},Status.JVM.Memory.Metaspace.Used")
    assert [each["id"] for each in aggregate] == [*asked, "Status.JVM.Memory.Metaspace.Used"]
