"""The committed dashboards are what their modules say."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

pytestmark = [
    # Said when the SDK is imported: its builders of the newer schema, which no released Grafana reads from a file.
    pytest.mark.filterwarnings("ignore:Prefer using dashboardv2:DeprecationWarning"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="grafana-foundation-sdk needs Python 3.11"),
]


@pytest.fixture
def build() -> ModuleType:
    from dashboards.grafana import build

    return build


@pytest.fixture
def folder(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    return tmp_path


def test_committed_files_are_what_the_modules_say(build: ModuleType) -> None:
    """After a change: make dashboards."""
    assert build.differing() == []


def test_a_dashboard_is_the_same_every_time(build: ModuleType) -> None:
    """A build changes nothing that nobody changed."""
    assert [build.render(name) for name in build.DASHBOARDS] == [build.render(name) for name in build.DASHBOARDS]


def test_every_dashboard_is_written(build: ModuleType, folder: Path) -> None:
    """Without an option all files are written, and are in order then."""
    assert CliRunner().invoke(build.main).exit_code == 0
    assert {path.stem for path in folder.iterdir()} == {*build.DASHBOARDS}
    assert CliRunner().invoke(build.main, ["--check"]).exit_code == 0


def test_check_names_what_differs_and_writes_nothing(build: ModuleType, folder: Path) -> None:
    """A file that was edited by hand, one that lacks, and one that is nobody's; exit code 1."""
    CliRunner().invoke(build.main)
    edited = folder / "job.json"
    edited.write_text(edited.read_text(encoding="utf-8").replace("Job", "Work"), encoding="utf-8")
    (folder / "latency.json").unlink()
    (folder / "old.json").write_text("{}", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    checked = CliRunner().invoke(build.main, ["--check"])
    assert checked.exit_code == 1
    assert checked.stderr == "error: job, latency, old differ from their modules; run `make dashboards`\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
