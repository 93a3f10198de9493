"""The Java that Spark needs: the one that is there, or one fetched into a folder of ours."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import platformdirs

from streamgauge.errors import StreamgaugeError

OLDEST = 17
"""Source: Spark 4 documentation, "Spark runs on Java 17/21"."""

FETCHED = "17"
"""The version that is fetched: every supported Spark runs on it."""

SPARK_MODULE = "jdk.incubator.vector"
"""Spark 4 starts its JVM with this module, which some small runtimes lack."""

PROBE_LIMIT_S = 30.0
FETCH_SILENCE_LIMIT_S = 60.0
"""A download that stands still for so long has failed."""

INSTALL_HINT = (
    "install a Java 17 or newer (Debian and Ubuntu: the package openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17; elsewhere: adoptium.net) and run this again"
)


class JavaMissing(StreamgaugeError):
    """There is no Java that Spark can run on, and none could be fetched; the message says what to install."""


@dataclass(frozen=True)
class Java:
    """
    A Java that Spark can run on.

    Args:
        executable: The `java` program.
        version: Feature release, ≥ OLDEST.
        home: JAVA_HOME to set; None for the one that PATH finds, which may be a launcher script.
    """

    executable: Path
    version: int
    home: Path | None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` changed so that Spark starts this Java; a JAVA_HOME of another one goes."""
        changed = {name: value for name, value in base.items() if name != "JAVA_HOME"}
        if self.home is not None:
            changed["JAVA_HOME"] = str(self.home)
            changed["PATH"] = os.pathsep.join(filter(None, (str(self.home / "bin"), base.get("PATH", ""))))
        return changed


def version(text: str) -> int | None:
    """
    Return the feature release that `java -version` tells, or None where it tells none.

    '1.8.0_392' is 8, '17.0.15' is 17, '25-ea' is 25. Lines before it, such as 'Picked up JAVA_TOOL_OPTIONS', do
    not disturb.
    """
    found = re.search(r'\bversion "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def probe(executable: Path, home: Path | None) -> Java | None:
    """Return the Java behind a program, or None where it does not run, is too old, or lacks Spark's module."""
    told = _output(executable, "-version")
    release = version(told) if told is not None else None
    if release is None or release < OLDEST or _output(executable, f"--add-modules={SPARK_MODULE}", "-version") is None:
        return None
    return Java(executable, release, home)


def find(environment: Mapping[str, str], folder: Path) -> Java | None:
    """
    Return the first Java that Spark can run on: of JAVA_HOME, on PATH, fetched earlier into `folder`.

    Args:
        environment: Of this process or of the child that Spark will run in.
        folder: Need not exist.
    """
    home = environment.get("JAVA_HOME")
    if home:
        java = probe(Path(home) / "bin" / "java", Path(home))
        if java is not None:
            return java
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        java = probe(Path(on_path), None)
        if java is not None:
            return java
    return _fetched(folder)


def fetch(folder: Path, install: Callable[[Path], object] | None = None) -> Java:
    """
    Download a Java into `folder`, about 200 MB, in minutes. An interrupted download leaves nothing that `find` finds.

    Args:
        folder: Made where it does not exist.
        install: Puts a Java into an empty folder; install-jdk's, unless a test gives another.

    Raises:
        JavaMissing: the download failed, or what came does not run.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as name:
            landing = Path(name) / "jdk"
            landing.mkdir()
            (install or _install_jdk)(landing)
            settled = folder / f"jdk-{FETCHED}"
            if settled.exists():
                shutil.rmtree(settled)
            landing.rename(settled)
    except OSError as error:
        raise JavaMissing(f"no Java was found and fetching one failed ({error}); {INSTALL_HINT}") from error
    java = _fetched(folder)
    if java is None:
        raise JavaMissing(f"no Java was found and the one fetched into {folder} does not run here; {INSTALL_HINT}")
    return java


def find_or_fetch(environment: Mapping[str, str], say: Callable[[str], None]) -> Java:
    """
    Return a Java that Spark can run on; the first time on a machine without one it is downloaded.

    Args:
        environment: Where JAVA_HOME and PATH are looked up.
        say: Takes one line for people, before the download.

    Raises:
        JavaMissing: there is none and fetching one failed.
    """
    folder = default_folder()
    java = find(environment, folder)
    if java is not None:
        return java
    say(f"no Java {OLDEST} or newer was found; fetching one into {folder}, about 200 MB")
    return fetch(folder)


def default_folder() -> Path:
    """Return where a fetched Java is kept: `.java` of a clone, else this user's own folder for state."""
    project = Path(__file__).resolve().parents[1]
    if (project / "pyproject.toml").is_file():
        return project / ".java"
    return platformdirs.user_state_path("streamgauge") / "java"


def main(command: Sequence[str]) -> NoReturn:
    """
    Run `command` in this process's place, with a Java that Spark can run on.

    Raises:
        SystemExit: there is no Java, told in one line.
    """
    try:
        java = find_or_fetch(os.environ, lambda line: print(line, file=sys.stderr, flush=True))
    except JavaMissing as error:
        sys.exit(f"error: {error}")
    os.execvpe(command[0], list(command), java.environment(os.environ))  # noqa: S606 - the caller's own command


def _output(executable: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [executable, *arguments], capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _fetched(folder: Path) -> Java | None:
    # Two layouts: <release>/bin/java and, on macOS, <release>/Contents/Home/bin/java.
    for pattern in ("jdk-*/*/bin/java", "jdk-*/*/Contents/Home/bin/java"):
        for executable in sorted(folder.glob(pattern)):
            java = probe(executable, executable.parents[1])
            if java is not None:
                return java
    return None


def _install_jdk(folder: Path) -> None:
    import jdk

    # install-jdk waits without end for a server that has gone silent.
    limit = socket.getdefaulttimeout()
    socket.setdefaulttimeout(FETCH_SILENCE_LIMIT_S)
    try:
        jdk.install(FETCHED, path=str(folder))
    except (jdk.JdkError, AttributeError, ValueError) as error:
        # The last two are its way of saying that it does not know this machine's architecture.
        raise OSError(str(error)) from error
    finally:
        socket.setdefaulttimeout(limit)


if __name__ == "__main__":
    main(sys.argv[1:])
