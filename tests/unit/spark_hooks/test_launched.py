"""Inside a Python that was launched, with a pyspark that is none: when we attach, and what users see of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_hooks import agent, launched
from spark_hooks.launcher import environment
from streamgauge.errors import SettingError

SESSION = '''
class SparkSession:
    """Made by users."""

    def __init__(self, application, *, option=1):
        self.application, self.option = application, option
        if application is None:
            raise ValueError("no application")
'''
HOOKS = """
def made(session):
    print("made", session.application, session.option)
    if session.application == "odd":
        raise RuntimeError("something of ours")
"""


def python(folder: Path, script: str, hooks: str = HOOKS) -> subprocess.CompletedProcess[str]:
    """Run a script as `streamgauge run` would, with a pyspark and spark_hooks of the test's."""
    for name, text in {
        "pyspark/__init__.py": "",
        "pyspark/sql/__init__.py": "from pyspark.sql.session import SparkSession",
        "pyspark/sql/session.py": SESSION,
        "spark_hooks/__init__.py": "",
        "spark_hooks/launched.py": hooks,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env=environment({**os.environ, "PYTHONPATH": str(folder)}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_session_that_is_made_is_told(tmp_path: Path) -> None:
    """After it is whole; its class, its documentation and its failures are the user's."""
    done = python(
        tmp_path,
        "from pyspark.sql import SparkSession as S\n"
        "S('a'); S(application='b', option=2)\n"
        "class Mine(S): pass\n"
        "Mine('c')\n"
        "import inspect, pyspark.sql.session as session\n"
        "print(S.__doc__, inspect.signature(S), hasattr(session.__loader__, '__dict__'))\n"
        "print('exec_module' in vars(session.__loader__), session.__spec__.name)\n"
        "S(None)\n",
    )
    assert done.stdout.splitlines() == [
        "made a 1",
        "made b 2",
        "made c 1",
        "Made by users. (application, *, option=1) True",
        "False pyspark.sql.session",
    ]
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: no application\n")
    assert "streamgauge" not in done.stderr


def test_the_import_system_is_as_before_once_pyspark_is_there(tmp_path: Path) -> None:
    """Our finder leaves with the first session module, and the path never had our folder."""
    script = "import sys\nprint([type(f).__name__ for f in sys.meta_path].count('SessionFinder'))\n"
    done = python(tmp_path, f"{script}import pyspark.sql\n{script}print(any('spark_hooks' in p for p in sys.path))")
    assert done.stdout.split() == ["1", "0", "False"]


def test_a_failure_of_ours_leaves_the_session_alone(tmp_path: Path) -> None:
    """It costs one line, on standard error, and no more for further sessions."""
    done = python(tmp_path, "from pyspark.sql import SparkSession as S\nprint(S('odd').application, S('odd').option)")
    assert (done.returncode, done.stdout) == (0, "made odd 1\nmade odd 1\nodd 1\n")
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        "streamgauge is not attached, the job runs on without it"
    ]
    assert done.stderr.endswith("RuntimeError: something of ours\n")


def test_a_python_without_streamgauge_says_so(tmp_path: Path) -> None:
    """As one that spark-submit chose: the line names it."""
    done = python(tmp_path, "from pyspark.sql import SparkSession as S\nS('a')", hooks="import no_such_package")
    assert done.returncode == 0
    assert "No module named 'no_such_package'" in done.stderr
    assert f"pip install streamgauge for {sys.executable}" in done.stderr


def test_a_failing_sitecustomize_of_the_user_fails_as_ever(tmp_path: Path) -> None:
    """Python tells of it, and goes on; so do we."""
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('theirs')")
    done = python(tmp_path, "from pyspark.sql import SparkSession as S\nS('a')")
    assert (done.returncode, done.stdout) == (0, "made a 1\n")
    assert "RuntimeError: theirs" in done.stderr


# ---- launched.made


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The applications that were attached to."""
    found: list[str] = []
    monkeypatch.setattr(agent, "attach", lambda spark: found.append(spark.sparkContext.applicationId))
    monkeypatch.setattr(launched, "_seen", None)
    return found


def session(application: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(applicationId=application))


def test_an_application_is_attached_to_once(attempts: list[str]) -> None:
    """Further sessions of it do not undo a `detach` of the user's; another application is another one."""
    for application in ("a", "a", "b", "b"):
        launched.made(session(application))
    assert attempts == ["a", "b"]


def test_a_wrong_setting_costs_one_line(
    attempts: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The job did not ask for us, so it must not fail for us."""

    def attach(_: Any) -> None:
        raise SettingError("spark.streamgauge.urk is no setting; did you mean spark.streamgauge.url?")

    monkeypatch.setattr(agent, "attach", attach)
    launched.made(session("a"))
    launched.made(session("a"))
    assert [record.getMessage() for record in caplog.records] == [
        "streamgauge is not attached, the job runs on without it: "
        "spark.streamgauge.urk is no setting; did you mean spark.streamgauge.url?"
    ]
