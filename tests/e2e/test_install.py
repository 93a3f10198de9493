"""A plain `pip install` into a user's environment: what it brings, what it leaves alone, and that it suffices."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.conftest import Rest, eventually, serving

ROOT = Path(__file__).parents[2]
USER = Path(__file__).with_name("user")

THEIRS = ("click==8.1.7", "numpy==1.26.4", "packaging==24.0", "setuptools==75.8.0", "urllib3==2.0.7")
"""What a user may have pinned, some of it long ago."""
OURS = {"msgspec", "streamgauge"}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**variables: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | variables


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Anywhere but in the clone, whose packages Python would find."""
    return subprocess.run(
        list(map(str, command)),
        cwd=ROOT.anchor,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


class Environment:
    """A user's virtual environment, and what pip told of it before and after."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / "bin" / "python"
        self.command = folder / "bin" / "streamgauge"
        self.packages = Path(
            run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
        )
        self._pip("install", *THEIRS)
        self.before = self._freeze()
        self.there = {entry.name for entry in self.packages.iterdir()}
        self._pip("install", str(ROOT))
        self.after = self._freeze()

    def _pip(self, *words: str) -> str:
        done = run(self.python, "-m", "pip", "--disable-pip-version-check", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _freeze(self) -> set[str]:
        return set(self._pip("freeze", "--all").splitlines())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("plain") / "venv")


def test_nothing_else_is_changed(plain: Environment) -> None:
    """Every package that was there keeps its version; what is new is ours and msgspec."""
    assert plain.before <= plain.after
    assert len(plain.before) >= len(THEIRS)
    assert {line.partition("==")[0].partition(" @ ")[0] for line in plain.after - plain.before} == OURS


def test_no_common_names_are_taken(plain: Environment) -> None:
    """A user may have packages called service, collector, examples or tests; ours lie apart in a wheel."""
    new = {entry.name for entry in plain.packages.iterdir()} - plain.there
    assert {name for name in new if not name.endswith(".dist-info")} == {"msgspec", "spark_hooks", "streamgauge"}


def test_the_users_packages_win_wherever_they_are(plain: Environment) -> None:
    """Those of an editable install come last on the path, and are found all the same."""
    (plain.packages / "theirs.pth").write_text(f"{USER}\n")
    look = "import collector, service, tests, streamgauge; print(collector.NAME, service.NAME, tests.NAME)"
    done = run(plain.python, "-c", look)
    assert done.stdout == "the user's own collector the user's own service the user's own tests\n"


def test_the_command_says_what_is_missing(plain: Environment) -> None:
    """The service is an extra; its packages are there, what they need is not."""
    done = run(plain.command, "serve")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: platformdirs is not installed, the service needs it: pip install 'streamgauge[service]'\n"
    )


def test_the_wheels_service_serves(plain: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its packages are found apart, once what it needs is installed."""
    (plain.packages / "theirs.pth").unlink(missing_ok=True)
    monkeypatch.setenv("PYTHONPATH", sysconfig.get_path("purelib"))
    monkeypatch.chdir(ROOT.anchor)
    monkeypatch.setattr(sys, "executable", str(plain.python))
    with serving("--port", "0") as url:
        client = Rest(url)
        assert client.get("/overview")["jobs-running"] == 0
        client.close()
    where = run(plain.python, "-c", "import streamgauge; print(streamgauge.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(plain.packages)


@pytest.mark.spark
def test_a_plain_install_attaches(plain: Environment, service: str, rest: Rest, tmp_path: Path) -> None:
    """With PySpark beside it, and nothing of the service's."""
    spark = tmp_path / "spark"
    spark.mkdir()
    for package in ("pyspark", "py4j"):
        found = find_spec(package)
        assert found is not None
        assert found.origin is not None
        (spark / package).symlink_to(Path(found.origin).parent)
    (plain.packages / "spark.pth").write_text(f"{spark}\n")
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "a.txt").write_text("one\ntwo\n")
    submit = "--master local[2] --conf spark.ui.enabled=false --driver-memory 1g pyspark-shell"
    done = run(
        plain.command,
        *("run", "--collector", service, USER / "submitted.py", lines, "plain"),
        PYSPARK_SUBMIT_ARGS=submit,
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert (done.returncode, done.stdout) == (1, "plain 2\n"), done.stderr

    def read() -> bool:
        job = rest.job("plain")
        vertices = rest.get(f"/jobs/{job['jid']}")["vertices"] if job else []
        return bool(vertices) and vertices[0]["metrics"]["read-records"] == 2

    eventually(read)
