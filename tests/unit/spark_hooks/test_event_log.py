"""Logs are found where Spark writes them, put together in its order, and cut into lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks import compression
from spark_hooks.event_log import EventLog, Lines, find
from spark_hooks.logged import lines
from streamgauge.errors import ReplayError
from tests.unit.spark_hooks.logs import FOLDER, first_lines


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"{name}\n")


def test_a_folder_of_logs(tmp_path: Path) -> None:
    """Files and rolled logs, by name; what is hidden is none."""
    put(tmp_path, "app-2", "app-1.zstd.inprogress", ".app-3.crc", "_SUCCESS")
    put(tmp_path / "eventlog_v2_app-4", "events_1_app-4", "appstatus_app-4")
    put(tmp_path / "other", "events")
    found = find(tmp_path)
    assert [log.name for log in found] == ["app-1.zstd.inprogress", "app-2", "eventlog_v2_app-4"]
    assert [log.in_progress for log in found] == [True, False, False]
    assert [log.app_id for log in found] == ["app-1", "app-2", "app-4"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(
            ["events_2_a.zstd", "events_10_a.zstd", "events_1_a.zstd"],
            ["events_1_a.zstd", "events_2_a.zstd", "events_10_a.zstd"],
            id="by number",
        ),
        pytest.param(
            ["events_1_a", "events_2_a", "events_2_a.compact", "events_3_a"],
            ["events_2_a.compact", "events_3_a"],
            id="a compacted one stands for all before it",
        ),
        pytest.param(
            ["events_1_a.lz4.compact", "events_2_a.lz4", "events_3_a.lz4.compact", "events_4_a.lz4"],
            ["events_3_a.lz4.compact", "events_4_a.lz4"],
            id="the last compacted one",
        ),
    ],
)
def test_rolled_files(tmp_path: Path, names: list[str], expected: list[str]) -> None:
    """Source: Spark, RollingEventLogFilesFileReader."""
    folder = tmp_path / "eventlog_v2_a"
    put(folder, *names, "appstatus_a.inprogress")
    (log,) = find(folder)
    assert [path.name for path in log.files] == expected
    assert log.in_progress
    assert b"".join(Lines(log)) == "".join(f"{name}\n" for name in expected).encode()


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="there is no such file or folder"):
        find(tmp_path / "nowhere")
    with pytest.raises(ReplayError, match=r"holds no event log; spark\.eventLog\.dir says"):
        find(tmp_path)
    (tmp_path / "eventlog_v2_a").mkdir()
    with pytest.raises(ReplayError, match="a rolled event log without its files"):
        find(tmp_path)


def test_a_file_that_has_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="gone cannot be read: No such file"):
        list(Lines(EventLog("gone", (tmp_path / "gone",), False)))


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 30), st.booleans())
def test_lines_are_those_of_the_file(found: list[bytes], chunk: int, ended: bool) -> None:
    """However the chunks fall, and with a last line that has no end."""
    text = b"".join(line + b"\n" for line in found) if ended else b"\n".join(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "CHUNK_BYTES", chunk)
        path = FOLDER / "never-written"
        held = Lines(EventLog("a", (path,), False))
        patch.setattr(Lines, "_chunks", lambda self, path: (text[at : at + chunk] for at in range(0, len(text), chunk)))
        got = [line for part in held for line in lines(part)]
    assert got == text.split(b"\n")[: None if text and not text.endswith(b"\n") else -1]
    assert held.rest == text.rpartition(b"\n")[2]


@pytest.mark.parametrize("codec", ["lz4", "lzf", "snappy", "zstd"])
def test_progress_is_told_in_bytes_on_disk(codec: str) -> None:
    path = FOLDER / f"first_lines_by_spark.{codec}"
    told: list[int] = []
    held = Lines(EventLog(path.name, (path,), False), told.append)
    assert b"".join(held) == first_lines()
    assert sum(told) == path.stat().st_size


def test_a_cut_file_says_so_and_the_next_one_is_read(tmp_path: Path) -> None:
    whole = (FOLDER / "first_lines_by_spark.lz4").read_bytes()
    (tmp_path / "events_1_a.lz4").write_bytes(whole[:-30])
    (tmp_path / "events_2_a.lz4").write_bytes(whole)
    (log,) = find(tmp_path)
    held = Lines(log)
    assert b"".join(held).endswith(first_lines())
    assert held.cut == ["events_1_a.lz4: the file ends within an LZ4 block"]
