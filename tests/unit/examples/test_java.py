import os
from pathlib import Path

import pytest

from examples import java
from examples.java import Java, JavaMissing, fetch, find, version

MODERN = 'openjdk version "17.0.15" 2025-04-15'


def fake_java(home: Path, told: str, modules: bool = True) -> Path:
    """A `java` that tells a version; it does not check its arguments beyond --add-modules."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    refusal = "" if modules else 'case "$1" in --add-modules*) exit 1;; esac\n'
    executable.write_text(f"#!/bin/sh\n{refusal}echo '{told}' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("told", "release"),
    [
        ('java version "1.8.0_392"', 8),
        (MODERN, 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "17.0.1"', 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
    ids=["8", "17", "21", "early access", "tool options", "macOS without Java", "silent"],
)
def test_version_reads_every_vendors_line(told: str, release: int | None) -> None:
    """Until Java 8 the feature release is the second number, since then the first."""
    assert version(told) == release


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    """As spark-submit does it."""
    fake_java(tmp_path / "home", MODERN)
    on_path = fake_java(tmp_path / "path", MODERN)
    found = find({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}, tmp_path / "none")
    assert found == Java(tmp_path / "home" / "bin" / "java", 17, tmp_path / "home")


def test_old_java_home_falls_back_to_path_and_goes(tmp_path: Path) -> None:
    """spark-submit would take JAVA_HOME's Java 8, so the child must not see it."""
    fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    on_path = fake_java(tmp_path / "path", MODERN)
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(on_path.parent), "LANG": "C"}
    found = find(environment, tmp_path / "none")
    assert found == Java(on_path, 17, None)
    assert found.environment(environment) == {"PATH": str(on_path.parent), "LANG": "C"}


@pytest.mark.parametrize(
    ("told", "modules"), [('openjdk version "11.0.2"', True), (MODERN, False)], ids=["too old", "lacks the module"]
)
def test_java_that_spark_cannot_use_is_passed_over(tmp_path: Path, told: str, modules: bool) -> None:
    """Too old, or without jdk.incubator.vector: neither starts Spark 4."""
    executable = fake_java(tmp_path / "path", told, modules)
    assert find({"PATH": str(executable.parent)}, tmp_path / "none") is None


def test_no_java_at_all_is_none(tmp_path: Path) -> None:
    """An empty environment is no fault."""
    assert find({}, tmp_path / "none") is None


def test_fetched_java_is_found_again(tmp_path: Path) -> None:
    """The second start does not download; JAVA_HOME and PATH then point to it."""
    fetched = fetch(tmp_path, lambda folder: fake_java(folder / "jdk-17.0.15+6", MODERN))
    assert find({}, tmp_path) == fetched
    home = tmp_path / "jdk-17" / "jdk-17.0.15+6"
    assert fetched.environment({"PATH": "/bin"}) == {
        "JAVA_HOME": str(home),
        "PATH": os.pathsep.join((str(home / "bin"), "/bin")),
    }


def test_fetched_java_of_macos_is_found(tmp_path: Path) -> None:
    """There the home lies deeper in the archive."""
    found = fetch(tmp_path, lambda folder: fake_java(folder / "jdk-17.0.15+6" / "Contents" / "Home", MODERN))
    assert found.home == tmp_path / "jdk-17" / "jdk-17.0.15+6" / "Contents" / "Home"


def test_failed_download_says_what_to_install_in_one_line(tmp_path: Path) -> None:
    """The cause and the remedy, on one line."""

    def refused(folder: Path) -> None:
        raise OSError("Name or service not known")

    with pytest.raises(JavaMissing, match=r"Name or service not known.*openjdk-17-jre-headless.*openjdk@17") as caught:
        fetch(tmp_path, refused)
    assert "\n" not in str(caught.value)


def test_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    """Half an archive must not be taken for a Java by the next start."""

    def interrupted(folder: Path) -> None:
        fake_java(folder / "jdk-17.0.15+6", MODERN)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(tmp_path, interrupted)
    assert list(tmp_path.iterdir()) == []


def test_broken_earlier_fetch_is_replaced(tmp_path: Path) -> None:
    """A folder that holds no running Java does not stand in the way."""
    (tmp_path / "jdk-17" / "half").mkdir(parents=True)
    found = fetch(tmp_path, lambda folder: fake_java(folder / "jdk-17.0.16", MODERN))
    assert found.version == 17
    assert not (tmp_path / "jdk-17" / "half").exists()


def test_fetched_java_that_does_not_run_is_told(tmp_path: Path) -> None:
    """An archive for another architecture, say."""
    with pytest.raises(JavaMissing, match="does not run here"):
        fetch(tmp_path, lambda folder: (folder / "empty").mkdir())


def test_clone_keeps_its_java_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.java` beside pyproject.toml in a clone, the user's state folder for a wheel."""
    (tmp_path / "examples").mkdir()
    monkeypatch.setattr(java, "__file__", str(tmp_path / "examples" / "java.py"))
    assert tmp_path not in java.default_folder().parents
    (tmp_path / "pyproject.toml").touch()
    assert java.default_folder() == tmp_path / ".java"


def test_command_without_java_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test` stops before the tests, and says why."""

    def missing(*_: object) -> Java:
        raise JavaMissing("no Java")

    monkeypatch.setattr(java, "find_or_fetch", missing)
    with pytest.raises(SystemExit) as caught:
        java.main(["true"])
    assert caught.value.code == "error: no Java"
