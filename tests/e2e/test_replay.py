"""A log that is replayed gives the figures that the live hooks gave of the same run, but for what no log holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import pytest

from collector.ingest import Ingest
from collector.limits import Limits
from collector.replayed import Replayed
from collector.run import Run
from collector.store import AppState, JobState, MetricStore
from spark_hooks.event_log import find
from spark_hooks.hadoop_log import fetch
from spark_hooks.replay import Told, replay
from streamgauge.clock import SystemClock
from streamgauge.errors import CollectorError
from tests.e2e.replay_driver import PASSWORD

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

JOBS = {"counted", "handed", "failing", "replayed: json -> File"}

ANY, STREAMING, BATCH = ".*", "counted|handed|failing|replayed: .*", "joined|sorted|subquery|broken"

NOT_IN_A_LOG = (
    ("the frames themselves", ANY, r"seq|interval_ms|seen_ns|modified_ms|ended_ns"),
    ("the trigger", STREAMING, r"job\.trigger|job\.metrics\.(triggerIntervalMs|backlogged)|job\.metrics#"),
    ("the trigger: ended by itself, or stopped", "handed|replayed: .*", r"(job\.)?state|(job\.)?since_ms(\.\w+|#)"),
    (
        "when a query ended",
        STREAMING,
        r"job\.end_ms|(job\.)?since_ms\.(CANCELED|FAILED)|failures\.latest\[\d\]\.time_ms",
    ),
    ("when a query ended, and its last batch", "failing", r"checkpoints\.held\.\d\.(duration_ms|end_ms)"),
    ("where it keeps its checkpoints", STREAMING, r"job\.checkpoint_path"),
    (
        "the sink of a query before its first batch has ended",
        "failing",
        r"vertices\.\w+\.vertex\.(operators\[\d+\]\.)?name",
    ),
    ("the stack of what an execution failed with", "broken", r"job\.failure|failures\.latest\[\d\]\.(name|trace)"),
    ("plans of adaptive subqueries", "subquery", r"vertices\.\w+\.(start_ms|subtasks\.(start_ms|end_ms))"),
    ("files that are listed and not read", STREAMING, r"vertices\.\w+\.operators\.\w+(\.unreadFiles\..*|#)|series"),
    ("the rounding of a source's rates", STREAMING, r"vertices\.\w+\.coordinators\.\w+\.\w+RowsPerSecond"),
    (
        "by when it was looked: ticks every 5 s",
        STREAMING,
        r"vertices\.\w+\.(columns|operators\.\w+)\.\w+(Lag|IdleTime)\.values",
    ),
    ("two queues of Spark's may have the events of two threads in another order", ANY, r"incomplete\.unknown_updates"),
    (
        "by when it was looked: while a batch ran",
        ANY,
        r"vertices\.\w+\.columns\.(checkpointAlignmentTime|checkpointStartDelayNanos)\.(values|present)",
    ),
    (
        "by when it was looked: rates and time shares",
        ANY,
        r"vertices\.\w+\.(columns|operators\.\w+)\.(\w+PerSecond|accumulate\w+TimeMs)\.(values|present)",
    ),
    (
        "the ways of latency markers, which are drawn",
        STREAMING,
        r"vertices\.\w+\.latencies\..*|job\.metrics\.latencyMarkers\w+",
    ),
)
"""What, of which jobs, which parts of their state: these may differ; everything else must be equal."""


@contextmanager
def receiving() -> Iterator[tuple[str, MetricStore]]:
    """A collector within this process: its URL, and its store."""
    store = MetricStore()
    ingest = Ingest(store, SystemClock(), Limits())

    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body, status = self.rfile.read(int(self.headers["Content-Length"])), 202
            try:
                ingest.push(body)
            except CollectorError:
                status = 409
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", store
        finally:
            server.shutdown()
            thread.join()


def drive(folder: Path, url: str, *conf: str) -> None:
    command = [sys.executable, "-m", "tests.e2e.replay_driver", str(folder), url, *conf]
    with (folder / "stderr").open("w") as stderr:
        subprocess.run(command, cwd=ROOT, stderr=stderr, stdout=stderr, check=True, timeout=300)


def read(path: Path) -> tuple[Told, dict[str, Run]]:
    runs: list[Run] = []
    into = Replayed(runs.append)
    (log,) = find(path)
    told = replay(log, into)
    into.end()
    assert not into.refused
    return told, {run.state.job.jid: run for run in runs}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, JobState], AppState]:
    """A driver that has run with hooks and with an event log: its folder, and its jobs and itself as the hooks told."""
    folder = tmp_path_factory.mktemp("lived")
    with receiving() as (url, store):
        drive(folder, url)
        snapshot = store.snapshot()
    (app,) = snapshot.apps.values()
    assert app.end_ms > 0, (folder / "stderr").read_text()
    return folder, snapshot.jobs, app


@pytest.fixture(scope="module")
def replayed(lived: tuple[Path, Mapping[str, JobState], AppState]) -> tuple[Told, dict[str, Run]]:
    return read(lived[0] / "log")


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every part of a state that is none of others, by where it stands."""
    if isinstance(value, np.ndarray):
        yield path, value.tolist()
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from flat(each, f"{path}.{':'.join(map(str, key)) if isinstance(key, tuple) else key}")
        yield f"{path}#", len(value)
    elif isinstance(value, tuple | list):
        for place, each in enumerate(value):
            yield from flat(each, f"{path}[{place}]")
        yield f"{path}#", len(value)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from flat(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from flat(getattr(value, name), f"{path}.{name}")
    else:
        yield path, repr(value)


def differences(live: object, again: object) -> dict[str, tuple[object, object]]:
    one, other = dict(flat(live)), dict(flat(again))
    paths = one.keys() | other.keys()
    return {path: (one.get(path), other.get(path)) for path in paths if one.get(path) != other.get(path)}


def excused(name: str, path: str) -> bool:
    return any(re.fullmatch(jobs, name) and re.fullmatch(rf"\.({parts})", path) for _, jobs, parts in NOT_IN_A_LOG)


def test_replay_gives_what_the_hooks_gave(
    lived: tuple[Path, Mapping[str, JobState], AppState], replayed: tuple[Told, dict[str, Run]]
) -> None:
    """Job by job, everything that a collector holds of it is equal, but for what is listed."""
    _, jobs, _ = lived
    told, runs = replayed
    assert told.ended
    assert not told.faults
    assert not told.skipped.unknown
    assert runs.keys() == jobs.keys()
    assert {run.state.job.name for run in runs.values()} >= JOBS
    wrong = {}
    for jid, state in jobs.items():
        for path, pair in differences(state, runs[jid].state).items():
            if not excused(state.job.name, path):
                wrong[f"{state.job.name} {path}"] = pair
    assert not wrong, "\n".join(
        f"{path}: {str(one)[:150]} ≠ {str(other)[:150]}" for path, (one, other) in wrong.items()
    )


def test_what_is_in_the_log_of_the_application_is_told(
    lived: tuple[Path, Mapping[str, JobState], AppState], replayed: tuple[Told, dict[str, Run]]
) -> None:
    """The application, its settings and its environment, and that no executor is left when it has ended."""
    _, _, live = lived
    again = next(iter(replayed[1].values())).app
    assert again is not None
    assert again.app == live.app
    # Spark sets this one when the first session comes, after it has written the environment.
    assert live.configuration.keys() - again.configuration.keys() <= {"spark.sql.warehouse.dir"}
    common = live.configuration.keys() & again.configuration.keys()
    assert {key: live.configuration[key] for key in common} == {key: again.configuration[key] for key in common}
    assert again.environment is not None
    assert live.environment is not None
    assert again.environment.java_version == live.environment.java_version
    assert again.environment.architecture == live.environment.architecture
    told = replayed[0]
    assert told.first_ms < told.last_ms == live.end_ms


def test_no_secret_comes_back(replayed: tuple[Told, dict[str, Run]], lived: tuple[Path, object, object]) -> None:
    """The log has a password in a message; nothing that is replayed has it."""
    (log,) = (lived[0] / "log").iterdir()
    assert PASSWORD.encode() in log.read_bytes()
    for run in replayed[1].values():
        assert all(PASSWORD not in str(value) for _, value in flat(run.state))
        assert run.app is not None
        assert all(PASSWORD not in str(value) for _, value in flat(run.app))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "streamgauge", "replay", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_command_writes_the_archive(lived: tuple[Path, Mapping[str, JobState], AppState], tmp_path: Path) -> None:
    """A line a run; once more they are the same runs, as JSON, and are written over only where that is asked for."""
    folder, jobs, _ = lived
    place = ["--archive", str(tmp_path / "archive.db")]
    done = command(str(folder / "log"), *place)
    assert done.returncode == 0, done.stderr
    assert {line.partition(" ")[0] for line in done.stdout.splitlines()} == set(jobs)
    assert "counted  CANCELED, " in done.stdout
    assert done.stderr == ""
    again = command(str(folder / "log"), *place)
    assert again.stdout == done.stdout
    assert f"{len(jobs)} of {len(jobs)} runs are in the archive already" in again.stderr
    again = command(str(folder / "log"), *place, "--replace", "--json")
    assert again.stderr == ""
    (told,) = map(json.loads, again.stdout.splitlines())
    assert {run["jid"]: run["written"] for run in told["runs"]} == dict.fromkeys(jobs, True)
    assert told["unknown"] == {}
    rows = {run["name"]: run["records"] for run in told["runs"]}
    assert rows["counted"] == 360


def test_path_that_spark_reads(lived: tuple[Path, Mapping[str, JobState], AppState], tmp_path: Path) -> None:
    """A URL with a wildcard goes through Hadoop's file system."""
    folder, jobs, _ = lived
    (copy,) = fetch(f"{(folder / 'log').as_uri()}/*", tmp_path)
    assert set(read(copy)[1]) == set(jobs)
    done = command(f"{folder.as_uri()}/nothing-*", "--archive", str(tmp_path / "archive.db"))
    assert done.returncode == 1
    assert "there is no such file or folder" in done.stderr
