"""What `streamgauge run` executes, and in which environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spark_hooks import launcher
from spark_hooks.launcher import SITE, CannotRun, command_line, environment, is_cluster_mode


@pytest.mark.parametrize(
    ("command", "module", "executed"),
    [
        (["app.py", "-x", "1"], False, [sys.executable, "app.py", "-x", "1"]),
        (["package.app", "-x"], True, [sys.executable, "-m", "package.app", "-x"]),
        (["spark-submit", "app.py"], False, ["spark-submit", "app.py"]),
        (["python3.12", "-u", "app.py"], False, ["python3.12", "-u", "app.py"]),
    ],
)
def test_only_scripts_and_modules_get_a_python(command: list[str], module: bool, executed: list[str]) -> None:
    """A command that names its own interpreter keeps it."""
    assert command_line(command, module) == executed


def test_the_users_path_stays_behind_ours() -> None:
    """So that Python finds our sitecustomize first, and that one the user's."""
    assert environment({"A": "b"}) == {"A": "b", "PYTHONPATH": str(SITE)}
    assert environment({"PYTHONPATH": "theirs"})["PYTHONPATH"] == f"{SITE}{os.pathsep}theirs"
    assert [entry.name for entry in SITE.glob("*.py")] == ["sitecustomize.py"]


@pytest.mark.parametrize(
    ("command", "cluster"),
    [
        ("spark-submit --deploy-mode cluster app.py", True),
        ("spark-submit --deploy-mode=cluster app.py", True),
        ("/opt/spark/bin/spark-submit -v --supervise --master yarn --deploy-mode cluster app.py", True),
        ("spark-submit --conf spark.submit.deployMode=cluster app.py", True),
        ("spark-submit -c spark.submit.deployMode=cluster app.py", True),
        ("spark-submit --conf spark.submit.deployMode=cluster --deploy-mode client app.py", False),
        ("spark-submit --deploy-mode client app.py", False),
        ("spark-submit app.py --deploy-mode cluster", False),
        ("spark-submit --name cluster app.py", False),
        ("spark-submit --name --deploy-mode cluster app.py", False),
        ("spark-submit", False),
        ("spark-submit --deploy-mode", False),
        ("my-spark-submit-wrapper --deploy-mode cluster app.py", False),
        ("python app.py --deploy-mode cluster", False),
    ],
)
def test_cluster_mode_is_told_by_the_options_of_spark_submit(command: str, cluster: bool) -> None:
    """Those in front of the application only; the option beats the configuration, as in Spark."""
    assert is_cluster_mode(command.split(), {}) is cluster


@pytest.mark.parametrize("line", ["spark.submit.deployMode cluster", "  spark.submit.deployMode = cluster"])
def test_cluster_mode_may_be_a_default(tmp_path: Path, line: str) -> None:
    """Of SPARK_CONF_DIR, of SPARK_HOME, or of a properties file that is named."""
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text(f"# spark.submit.deployMode client\nspark.master yarn\n{line}\n")
    submit = ["spark-submit", "app.py"]
    assert is_cluster_mode(submit, {"SPARK_HOME": str(tmp_path)})
    assert is_cluster_mode(submit, {"SPARK_CONF_DIR": str(defaults.parent), "SPARK_HOME": "elsewhere"})
    assert is_cluster_mode(["spark-submit", "--properties-file", str(defaults), "app.py"], {})
    assert not is_cluster_mode(["spark-submit", "--deploy-mode", "client", "app.py"], {"SPARK_HOME": str(tmp_path)})


def test_a_command_that_is_none_has_a_shells_exit_code(tmp_path: Path) -> None:
    """127 where it is not found, 126 where it cannot be executed."""
    for path, code in ((tmp_path / "missing", launcher.NOT_FOUND), (tmp_path, launcher.CANNOT_RUN)):
        with pytest.raises(CannotRun) as refused:
            launcher.run([str(path)], {})
        assert refused.value.code == code
        assert str(path) in str(refused.value)
