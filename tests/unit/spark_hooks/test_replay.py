"""A log through the model: whole logs of both ends of what is supported, cut ones, broken ones, and ones of days."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.replayed import Replayed
from collector.run import Run
from spark_hooks import replay as replaying
from spark_hooks.event_log import find
from spark_hooks.replay import replay
from spark_hooks.survey import survey
from streamgauge import names
from streamgauge.errors import ReplayError
from tests.unit.spark_hooks.logs import FOLDER, PASSWORD, VERSIONS, batches, recorded, replayed

WHOLE = {
    "counted": ("CANCELED", 360),
    "replayed: json -> File": ("CANCELED", 103),
    "handed": ("CANCELED", 180),
}


def write(folder: Path, content: bytes, name: str = "app") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@cache
def whole(version: str) -> dict[str, int]:
    with TemporaryDirectory() as folder:
        return batches(replayed(write(Path(folder), recorded(version)))[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_log(version: str, tmp_path: Path) -> None:
    """Every query and execution of it is an ended run, with the rows that the driver's files have."""
    told, runs = replayed(write(tmp_path, recorded(version)))
    assert told.ended
    assert told.app.spark_version == version
    assert (told.faults, told.cut) == ((), ())
    found = {run.state.job.name: run.state for run in runs}
    for name, (state, rows) in WHOLE.items():
        assert (found[name].state, found[name].job.metrics[names.INPUT_ROWS]) == (state, rows)
        assert found[name].checkpoints.totals.failed == 0
    assert found["failing"].state == "FAILED"
    ends = [run.state.state for run in runs if run.state.job.type == "BATCH"]
    assert ends == ["FINISHED", "FINISHED", "FINISHED", "FAILED"]
    assert all(run.app is not None and run.app.app.name == "replayed" for run in runs)
    counted = next(run for run in runs if run.state.job.name == "counted")
    source = next(iter(counted.state.vertices.values()))
    assert source.columns["numRecordsIn"].values.sum() == 360
    assert counted.course is not None
    assert counted.course.times_ms.size >= 2


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_known_before_the_first_event(version: str, tmp_path: Path) -> None:
    """Which stages write a shuffle, sinks, ends of queries and of the log, and the application."""
    (log,) = find(write(tmp_path, recorded(version)))
    found = survey(log)
    events = [json.loads(line) for line in recorded(version).splitlines()]
    tasks = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert {task["Stage ID"]: found.writes(task["Stage ID"]) for task in tasks} == {
        task["Stage ID"]: task["Task Type"] == "ShuffleMapTask" for task in tasks
    }
    assert not found.writes(10_000)
    progress = [event["progress"] for event in events if "progress" in event]
    assert found.sinks == {told["runId"]: told["sink"]["description"] for told in progress}
    assert found.ends_ms == sorted(found.ends_ms)
    assert found.ends_ms[-1] == events[-1]["Timestamp"]
    assert len(found.ends_ms) == 1 + sum(event["Event"].endswith("QueryTerminatedEvent") for event in events)
    assert found.events == len(events)
    assert found.ended
    app = found.app(log)
    assert (app.name, app.spark_version, app.host) == ("replayed", version, "127.0.0.1")


@pytest.mark.parametrize("version", VERSIONS)
def test_secrets_are_redacted(version: str, tmp_path: Path) -> None:
    """By the patterns that the log's own settings have."""
    assert PASSWORD.encode() in recorded(version)
    for run in replayed(write(tmp_path, recorded(version)))[1]:
        assert PASSWORD not in repr(run)


def is_whole(line: bytes) -> bool:
    try:
        json.loads(line or b"{}")
    except ValueError:
        return False
    return True


@settings(max_examples=40)
@given(st.sampled_from(VERSIONS), st.floats(0, 1))
def test_a_cut_log_gives_a_beginning(version: str, part: float) -> None:
    """Wherever it is cut, nothing raises unless there is no event at all, and only whole batches are there."""
    content = recorded(version)
    content = content[: int(part * len(content))]
    with TemporaryDirectory() as folder:
        path = write(Path(folder), content)
        if b"}\n" not in content and not content.endswith(b"}"):
            with pytest.raises(ReplayError):
                replayed(path)
            return
        told, runs = replayed(path)
    assert told.faults == ()
    assert told.skipped.truncated == (not is_whole(content.rpartition(b"\n")[2]))
    found = batches(runs)
    assert found.keys() <= whole(version).keys()
    assert all(found[run] <= whole(version)[run] for run in found)
    ended = {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}
    assert all(run.state.state in ended for run in runs)


def test_an_unfinished_log_leaves_suspended_jobs(tmp_path: Path) -> None:
    """The driver was killed within a query's batch: so far it came, and its end is told by nobody."""
    content = recorded("4.3.0")
    events = content.splitlines(keepends=True)
    place = next(at for at, line in enumerate(events) if b"QueryProgressEvent" in line)
    told, (run,) = replayed(write(tmp_path, b"".join(events[: place + 1]), "app.inprogress"))
    assert not told.ended
    assert (run.state.state, run.state.job.name) == ("SUSPENDED", "counted")
    assert run.state.checkpoints.totals.completed == 1


def test_unknown_events_are_told_and_change_nothing(tmp_path: Path) -> None:
    events = recorded("4.3.0").splitlines(keepends=True)
    events[40:40] = [b'{"Event":"org.example.Strange","x":[1]}\n', b"junk\n"]
    told, runs = replayed(write(tmp_path, b"".join(events)))
    assert told.skipped.unknown == {"org.example.Strange": 1}
    assert told.skipped.lines == [42]
    assert batches(runs) == whole("4.3.0")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "app is empty: an event log is what Spark writes", id="empty"),
        pytest.param(b"\x00\x01 no log\n" * 50, "app holds no event of Spark's", id="no log"),
        pytest.param(b'{"a": 1}\n', "app holds no event of Spark's", id="JSON of another kind"),
    ],
)
def test_what_is_no_log_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=message):
        replayed(write(tmp_path, content))


def test_a_rolled_log_is_one(tmp_path: Path) -> None:
    """Two files, one of them compressed: the same runs as of one."""
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    content = recorded("4.3.0")
    half = content.index(b"\n", len(content) // 2) + 1
    write(folder, b"", "appstatus_app")
    write(folder, content[:half], "events_1_app")
    write(folder, content[half:], "events_2_app")
    assert batches(replayed(folder)[1]) == whole("4.3.0")


def test_a_compressed_log_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, (FOLDER / "spark-3.5.9.zstd").read_bytes(), "app.zstd")
    assert batches(replayed(path)[1]) == whole("3.5.9")


def moved(version: str, hours: float) -> bytes:
    """A recorded log, whose first query waited so long between its second batch and its third."""
    text = recorded(version).splitlines(keepends=True)
    places = [at for at, line in enumerate(text) if b"QueryProgressEvent" in line]
    later = b"".join(text[places[1] + 1 :])
    for stamp in sorted(_stamps(later), reverse=True):
        later = later.replace(str(stamp).encode(), str(stamp + int(hours * 3_600_000)).encode())
    return b"".join(text[: places[1] + 1]) + later


def _stamps(text: bytes) -> set[int]:
    found: set[int] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        elif isinstance(value, int) and 1_790_000_000_000 < value < 1_800_000_000_000:
            found.add(value)

    for line in text.splitlines():
        walk(json.loads(line))
    return found


def test_what_nobody_sees_of_a_long_run_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query that waited for an hour the last 15 minutes are sampled; the outcome is as if all of it had been."""
    path = write(tmp_path, moved("4.3.0", 1))
    ticks: list[int] = []

    class Counted(Replayed):
        def sample(self) -> None:
            ticks.append(self.clock.now_ms())
            super().sample()

    def run() -> list[Run]:
        runs: list[Run] = []
        into = Counted(runs.append)
        (log,) = find(path)
        replay(log, into)
        into.end()
        return runs

    quick = run()
    few = len(ticks)
    assert few < 300
    monkeypatch.setattr(replaying, "HISTORY_MS", 2 * 3_600_000)
    slow = run()
    assert len(ticks) - few > 400
    for one, other in zip(quick, slow, strict=True):
        assert (one.course is None) == (other.course is None)
        if one.course is not None and other.course is not None:
            assert one.course.times_ms.tolist() == other.course.times_ms.tolist()
            assert one.course.figures.keys() == other.course.figures.keys()
            for name, values in one.course.figures.items():
                np.testing.assert_allclose(values, other.course.figures[name], rtol=1e-5, err_msg=name)
        assert batches([one]) == batches([other])
        assert {key: vertex.columns.keys() for key, vertex in one.state.vertices.items()} == {
            key: vertex.columns.keys() for key, vertex in other.state.vertices.items()
        }
