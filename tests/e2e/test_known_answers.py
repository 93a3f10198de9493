"""
Queries whose truth is known: latency, time shares, alignment and backlog are what the run's own batches say.

Every figure is held against the event log of that run, and against when its rows came into being; never against a
constant. Each test prints what it expected and what it measured (pytest -s).
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from streamgauge import names
from tests.e2e.conftest import WITHIN, Agree, Rest, eventually, serving
from tests.e2e.known_queries import MARKER_INTERVAL_MS, QUERIES, QUERY_IDLE_S
from tests.e2e.known_runs import Batch, Driver, Run, driver
from tests.e2e.test_collector_faults import free_port

pytestmark = pytest.mark.spark

LOOK_S = 0.5
TICK_S = 5
"""How often the hooks settle time shares."""
SLACK_S = 3.0
"""What a busy machine may take for a frame to arrive."""


class Collector:
    """A service of its own that can be lost with all it knows, and come back at the same address."""

    def __init__(self) -> None:
        self._port = str(free_port())
        self._open()

    def _open(self) -> None:
        self._serving = serving("--port", self._port)
        self.url = self._serving.__enter__()
        self.rest = Rest(self.url)

    def close(self) -> None:
        self.rest.close()
        self._serving.__exit__(None, None, None)

    def restart(self) -> None:
        self.close()
        self._open()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


@pytest.fixture(scope="module")
def known(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The driver of all queries, which runs one at a time."""
    with driver(collector.url, tmp_path_factory.mktemp("known")) as process:
        yield process
        process.end()


class Watched:
    """
    A run's job, as the service tells of it.

    Args:
        size: Vertices that it must have.
    """

    def __init__(self, collector: Collector, run: Run, size: int) -> None:
        self._collector = collector
        self._run = run

        def begun() -> Any:
            job = self._rest.job(run.name)
            if job is None or job["start-time"] < run.start_ms:
                return None
            detail = self._rest.get(f"/jobs/{job['jid']}")
            return len(detail["vertices"]) == size and detail

        detail = eventually(begun)
        self.base = f"/jobs/{detail['jid']}"
        self.vertices = [vertex["id"] for vertex in detail["vertices"]]
        self.names = [vertex["name"] for vertex in detail["vertices"]]
        self.parallelism = [vertex["parallelism"] for vertex in detail["vertices"]]

    @property
    def _rest(self) -> Rest:
        return self._collector.rest

    def told(self) -> dict[str, Any]:
        """What is ours of /jobs/:jid."""
        found: dict[str, Any] = self._rest.get(self.base)["streamgauge"]
        return found

    def figures(self, *metrics: str) -> dict[str, float]:
        """Those of the job's metrics that there are."""
        answer = self._rest.get(f"{self.base}/metrics?get={','.join(metrics)}")
        return {metric["id"]: float(metric["value"]) for metric in answer}

    def column(self, vertex: int, metric: str) -> list[float]:
        """A metric of every subtask."""
        ids = [f"{subtask}.{metric}" for subtask in range(self.parallelism[vertex])]
        answer = self._rest.get(f"{self.base}/vertices/{self.vertices[vertex]}/metrics?get={','.join(ids)}")
        values = {found["id"]: float(found["value"]) for found in answer}
        assert values.keys() == set(ids), (metric, sorted(values))
        return [values[each] for each in ids]

    def aggregates(self, vertex: int, metric: str) -> dict[str, float]:
        """A metric's minimum, maximum, mean, sum and skew over subtasks."""
        [found] = self._rest.get(f"{self.base}/vertices/{self.vertices[vertex]}/subtasks/metrics?get={metric}")
        return {name: float(value) for name, value in found.items() if name != "id"}

    def busy_share(self, vertex: int) -> float:
        """The same as `busy_share` of the batches, from accumulated times as of the last tick."""
        columns = (names.ACCUMULATED_BUSY_TIME, names.ACCUMULATED_IDLE_TIME, names.ACCUMULATED_BACK_PRESSURED_TIME)
        busy, idle, pressed = (sum(self.column(vertex, metric)) for metric in columns)
        return busy / (busy + idle + pressed)

    def pressure(self, vertex: int) -> dict[str, Any]:
        found: dict[str, Any] = self._rest.get(f"{self.base}/vertices/{self.vertices[vertex]}/backpressure")
        return found

    def ratios(self, vertex: int, key: str = "ratio") -> list[float]:
        """Parts of the last minute that each subtask was so; NaN before they are known."""
        return [float(subtask[key]) for subtask in self.pressure(vertex)["subtasks"]]

    def latency(self) -> dict[str, Any]:
        """From the job's one source to its one sink, all markers of the run."""
        [found] = self._rest.get(f"{self.base}/latency")["paths"]
        return dict(found)

    def markers(self) -> dict[str, int]:
        """What became of all markers; every one of them is somewhere."""
        keys = [names.MARKERS_EMITTED, names.MARKERS_RECORDED, names.MARKERS_IN_FLIGHT]
        found = self.figures(*keys, *names.MARKERS_DROPPED_BY.values())
        emitted, *fates = (int(found[key]) for key in (*keys, *names.MARKERS_DROPPED_BY.values()))
        assert emitted == sum(fates), found
        return {key: int(value) for key, value in found.items()}

    def settled(self, read: Callable[[], Any], batches: int = 1) -> tuple[list[Batch], Any]:
        """Return what `read` returns when the service knows of exactly the batches that have been committed."""

        def agreed() -> Any:
            before = self._run.batches()
            if len(before) < batches or self.figures(names.LAST_COMPLETED_CHECKPOINT_ID) != {
                names.LAST_COMPLETED_CHECKPOINT_ID: before[-1].id
            }:
                return None
            answer = read()
            return len(self._run.batches()) == len(before) and (before, answer)

        found: tuple[list[Batch], Any] = eventually(agreed, 60)
        return found


def wait_for(run: Run, batches: int) -> None:
    """Wait until as many batches have been committed."""
    eventually(lambda: len(run.batches()) >= batches, 90)


def busy_ms(batches: list[Batch], vertex: int) -> dict[int, int]:
    """Subtask → from the first launch of its vertex's tasks to its own finish, over all batches."""
    found: dict[int, int] = {}
    for batch in batches:
        first = min(task.launch_ms for task in batch.vertices[vertex])
        for task in batch.vertices[vertex]:
            found[task.partition] = found.get(task.partition, 0) + task.finish_ms - first
    return found


def busy_share(batches: list[Batch], vertex: int) -> float:
    """The part of its subtasks' time, from the first batch's begin to the last one's end, that a vertex was busy."""
    busy = busy_ms(batches, vertex)
    return sum(busy.values()) / len(busy) / (batches[-1].end_ms - batches[0].begin_ms)


def test_a_marker_waits_half_a_trigger_and_the_batch(known: Driver, collector: Collector, agree: Agree) -> None:
    """Under a trigger of 5 s the median at the sink is half of it, and the batch's own time."""
    with known.running("triggered") as run:
        watched = Watched(collector, run, size=2)
        wait_for(run, 8)
        batches, told = watched.settled(watched.latency)
        watched.markers()
    processing = float(np.median([batch.executed_ms - batch.begin_ms for batch in batches]))
    half = QUERIES["triggered"].trigger_ms / 2
    agree("p50 at the sink, ms: half the trigger + the batch", half + processing, told["latency"]["p50-ms"])
    agree("p50 at the sink, ms: the rows' own", np.median(run.row_latencies(batches)), told["latency"]["p50-ms"])
    agree(
        "p95 at the sink, ms: the rows' own", np.percentile(run.row_latencies(batches), 95), told["latency"]["p95-ms"]
    )
    agree("p50 of queueing, ms: half the trigger", half, told["queueing"]["p50-ms"])
    agree("p50 of processing, ms: the batch", processing, told["processing"]["p50-ms"])
    sources = QUERIES["triggered"].arrivals.partitions
    spanned = batches[-1].begin_ms - run.start_ms
    agree(
        "markers at the sink: those due until the last trigger", sources * spanned / MARKER_INTERVAL_MS, told["markers"]
    )


def test_swamped_second_vertex_holds_up_the_first(known: Driver, collector: Collector, agree: Agree) -> None:
    """The first vertex is back-pressured, the second busy and the bottleneck; latency grows with the backlog."""
    with known.running("swamped") as run:
        watched = Watched(collector, run, size=2)
        wait_for(run, 6)
        early, first = watched.settled(watched.latency)
        wait_for(run, 11)
        late, (last, told, high, busy, share) = watched.settled(
            lambda: (
                watched.latency(),
                watched.told(),
                watched.pressure(0),
                [max(watched.ratios(vertex, "busyRatio")) for vertex in (0, 1)],
                watched.busy_share(1),
            )
        )
        screen = top(collector.url, run.name)
    print(f"\n{screen}")
    assert high["backpressureLevel"] == "high", high
    assert busy[1] > 0.5 > busy[0], busy
    assert told["backlogged"] is True
    assert (told["bottleneck"]["id"], told["bottleneck"]["name"]) == (watched.vertices[1], watched.names[1])
    assert told["bottleneck"]["busy-ratio"] == pytest.approx(busy[1], abs=0.1)
    marked = [line for line in screen.splitlines() if "(bottleneck)" in line]
    assert len(marked) == 1, screen
    assert watched.names[1].split(" -> ")[0] in marked[0]
    agree("share of time that vertex 1 was busy", busy_share(late, 1), share)
    assert last["latency"]["max-ms"] > first["latency"]["max-ms"]
    for look, batches, told_then in (("first", early, first), ("last", late, last)):
        for percentile, key in ((50, "p50-ms"), (100, "max-ms")):
            expected_ms = float(np.percentile(run.row_latencies(batches), percentile))
            agree(f"{look} {key} at the sink: the rows' own", expected_ms, told_then["latency"][key])


def top(url: str, job: str) -> str:
    """One screen of `streamgauge top`, of one job."""
    command = [sys.executable, "-m", "streamgauge", "top", "--once", "--collector", url, "--job", job]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_swamped_single_vertex_holds_up_nobody(known: Driver, collector: Collector, agree: Agree) -> None:
    """It is backlogged and its only vertex the bottleneck; there is none upstream to be back-pressured."""
    levels = set()
    with known.running("alone") as run:
        watched = Watched(collector, run, size=1)
        while len(run.batches()) < 7:
            levels.add(watched.pressure(0).get("backpressureLevel"))
            time.sleep(LOOK_S)
        time.sleep(TICK_S + LOOK_S)
        batches, (told, share) = watched.settled(lambda: (watched.told(), watched.busy_share(0)))
    assert "high" not in levels
    assert told["backlogged"] is True
    assert told["bottleneck"]["id"] == watched.vertices[0]
    assert told["bottleneck"]["busy-ratio"] > 0.5
    agree("share of time that the vertex was busy", busy_share(batches, 0), share)


def test_healthy_batches_hold_up_nobody(known: Driver, collector: Collector, agree: Agree) -> None:
    """Under a trigger of 10 s a batch of 3 s is never back-pressured, at whatever moment one looks."""
    looks = []
    with known.running("healthy") as run:
        watched = Watched(collector, run, size=2)
        while len(run.batches()) < 5:
            ratios = [ratio for vertex in (0, 1) for ratio in watched.ratios(vertex)]
            told = watched.told()
            looks.append((max(ratios), told["backlogged"], told["bottleneck"]))
            time.sleep(LOOK_S)
        time.sleep(TICK_S + LOOK_S)
        batches, spent = watched.settled(lambda: watched.column(1, names.ACCUMULATED_BUSY_TIME))
    assert not [look for look in looks if look[0] > 0], looks
    assert not [look for look in looks if look[1] is True or look[2] is not None], looks
    assert len([look for look in looks if look[0] == 0 and look[1] is False]) > len(looks) / 2, looks
    agree("busy ms of vertex 1", sum(busy_ms(batches, 1).values()), sum(spent))


def test_skewed_key_keeps_one_subtask_busy(known: Driver, collector: Collector, agree: Agree) -> None:
    """The subtask that has the key is busy, the others wait for it; the vertex behind aligns for as long."""
    with known.running("skewed") as run:
        watched = Watched(collector, run, size=3)
        wait_for(run, 9)
        batches, (rows, told, aligned, spent, busy, pressed) = watched.settled(
            lambda: (
                watched.column(1, names.NUM_RECORDS_IN),
                watched.aggregates(1, names.NUM_RECORDS_IN),
                [watched.column(vertex, names.CHECKPOINT_ALIGNMENT_TIME) for vertex in (1, 2)],
                watched.column(1, names.ACCUMULATED_BUSY_TIME),
                watched.ratios(1, "busyRatio"),
                [ratio for vertex in range(3) for ratio in watched.ratios(vertex)],
            )
        )
    expected = busy_ms(batches, 1)
    hot = int(np.argmax(rows))
    assert hot == max(expected, key=lambda subtask: expected[subtask])
    # Eight of ten rows have its key, and of the others it has one in four; a batch that has begun may be among them.
    agree("the hot subtask's part of the rows", 0.85, rows[hot] / sum(rows))
    mean = float(np.mean(rows))
    skew = min(100.0, 100 * float(np.mean(np.abs(np.array(rows) - mean))) / mean)
    agree("skew of records in, %", skew, told["skew"], within=0.001)
    for subtask, ms in expected.items():
        part = spent[subtask] / sum(spent)
        agree(f"subtask {subtask}'s part of the time busy", ms / sum(expected.values()), part, least=0.03)
    share = expected[hot] / (batches[-1].end_ms - run.start_ms)
    agree("share that the hot subtask was busy", share, busy[hot])
    assert [subtask for subtask, ratio in enumerate(busy) if ratio > busy[hot] / 2] == [hot], busy
    assert max(pressed) == 0
    for vertex, columns in zip((1, 2), aligned, strict=True):
        finishes = [task.finish_ms for task in batches[-1].vertices[vertex - 1]]
        for ns in columns:
            agree(f"alignment of vertex {vertex}, ms", max(finishes) - min(finishes), ns / 1e6, within=0.01, least=1)


def test_markers_of_an_idle_source_do_not_pile_up(known: Driver, collector: Collector, agree: Agree) -> None:
    """They are dropped when Spark says that the query is idle, and nothing of the hooks grows."""
    sources = QUERIES["idle"].arrivals.partitions
    dropped = names.MARKERS_DROPPED_BY["idle"]
    with known.running("idle") as run:
        watched = Watched(collector, run, size=2)
        eventually(lambda: run.batches() and run.batches()[-1].end == QUERIES["idle"].arrivals.total)
        eventually(lambda: watched.markers()[dropped], QUERY_IDLE_S + SLACK_S)
        before = known.do("objects")
        begin, seen = time.monotonic(), []
        while time.monotonic() < begin + 3 * QUERY_IDLE_S + SLACK_S:
            seen.append(watched.markers())
            time.sleep(LOOK_S)
        since_ms = time.time() * 1000 - run.start_ms
        after = known.do("objects")
    waiting = [look[names.MARKERS_IN_FLIGHT] for look in seen]
    assert max(waiting) <= sources * (QUERY_IDLE_S + SLACK_S) * 1000 / MARKER_INTERVAL_MS, waiting
    assert len({look[names.MARKERS_RECORDED] for look in seen}) == 1, seen
    assert len({look[dropped] for look in seen}) >= 2, seen
    agree("markers dropped or in flight", sources * since_ms / MARKER_INTERVAL_MS, seen[-1][names.MARKERS_EMITTED])
    agree("objects of the driver's Python", before, after, within=0.01)


def test_latency_includes_the_wait_in_a_rate_limited_source(known: Driver, collector: Collector, agree: Agree) -> None:
    """A marker waits as the rows do that stand before it in the source, however fast the batches are."""
    arrivals = QUERIES["limited"].arrivals
    with known.running("limited") as run:
        watched = Watched(collector, run, size=2)
        wait_for(run, 20)
        batches, (told, state) = watched.settled(lambda: (watched.latency(), watched.told()))
        watched.markers()
    wait_ms = arrivals.burst / arrivals.per_second * 1000
    assert told["latency"]["p50-ms"] >= wait_ms * (1 - WITHIN)
    truth = run.row_latencies(batches)
    for percentile in (50, 95):
        expected = float(np.percentile(truth, percentile))
        agree(f"p{percentile} at the sink, ms: the rows' own", expected, told["latency"][f"p{percentile}-ms"])
    processing = float(np.median([batch.executed_ms - batch.begin_ms for batch in batches]))
    agree("p50 of processing, ms: the batch", processing, told["processing"]["p50-ms"])
    queueing = float(np.median(truth)) - processing
    agree("p50 of queueing, ms: the rest", queueing, told["queueing"]["p50-ms"])
    assert state["backlogged"] is True


def test_recorded_latencies_survive_a_restart_of_the_collector(known: Driver, collector: Collector) -> None:
    """The hooks have them all; a collector that lost everything has the same a moment later."""

    def read(watched: Watched) -> Any:
        ids = collector.rest.get(f"{watched.base}/vertices/{watched.vertices[1]}/metrics")
        windows = sorted(each["id"] for each in ids if re.match(rf"\d+\.{names.LATENCY}\.source_id\.", each["id"]))
        assert windows
        path = f"{watched.base}/vertices/{watched.vertices[1]}"
        latencies = collector.rest.get(f"{path}/latency")
        return collector.rest.get(f"{path}/metrics?get={','.join(windows)}"), latencies, watched.latency()

    with known.running("outlived") as run:
        watched = Watched(collector, run, size=2)
        eventually(lambda: run.batches() and run.batches()[-1].end == QUERIES["outlived"].arrivals.total)
        eventually(lambda: watched.markers()[names.MARKERS_DROPPED_BY["idle"]], QUERY_IDLE_S + SLACK_S)
        _, before = watched.settled(lambda: read(watched))
        collector.restart()
        Watched(collector, run, size=2)
        assert watched.settled(lambda: read(watched))[1] == before
