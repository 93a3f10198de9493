"""`streamgauge run`: starts a command whose Python drivers attach by themselves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from streamgauge.errors import StreamgaugeError

SITE = Path(__file__).with_name("site")
"""On PYTHONPATH, so that Python reads the sitecustomize in it as it starts."""

CANNOT_RUN, NOT_FOUND = 126, 127
"""Exit codes of a command that is none, as a shell's."""

_FLAGS = frozenset({"-h", "--help", "-v", "--verbose", "--version", "--supervise", "--usage-error"})
"""Options of spark-submit without a value. Source: `SparkSubmitOptionParser`."""


class CannotRun(StreamgaugeError):
    """The command cannot be started; `code` is the exit code that a shell would give."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def command_line(command: Sequence[str], module: bool) -> list[str]:
    """
    Return what is to be executed: a script (*.py), or a module, with the Python that this is; all else as it is.

    Args:
        module: The first word names a module, as after `python -m`.
    """
    if module:
        return [sys.executable, "-m", *command]
    if command[0].endswith(".py"):
        return [sys.executable, *command]
    return list(command)


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` changed so that every Python in it attaches to the first session it makes."""
    path = os.pathsep.join(filter(None, (str(SITE), base.get("PYTHONPATH", ""))))
    return {**base, "PYTHONPATH": path}


def inherited(base: Mapping[str, str]) -> dict[str, str]:
    """
    Return `base` as this process was given it.

    In a C locale Python sets LC_CTYPE as it starts (PEP 538). A JVM that inherits it would read and print in UTF-8,
    which it does not without us. Where the system does not tell (/proc), `base` is returned as it is.
    """
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(base)
    restored = dict(base)
    restored.pop("LC_CTYPE", None)
    for entry in given:
        name, _, value = os.fsdecode(entry).partition("=")
        if name == "LC_CTYPE":
            restored[name] = value
    return restored


def is_cluster_mode(command: Sequence[str], base: Mapping[str, str]) -> bool:
    """
    Whether a command is a spark-submit whose driver will run elsewhere, out of reach of this environment.

    Asked are the options in front of the application, else the properties file.
    """
    if not re.fullmatch(r"spark-submit(\.cmd|\.sh)?", Path(command[0]).name):
        return False
    mode, properties = "", ""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-"):
            break
        if word in _FLAGS:
            continue
        option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
        value = value or next(words, "")
        if option == "--deploy-mode":
            mode = value
        elif option in ("--conf", "-c") and value.startswith("spark.submit.deployMode="):
            mode = mode or value.partition("=")[2]
        elif option == "--properties-file":
            properties = value
    return (mode or _deploy_mode(Path(properties) if properties else _defaults(base))) == "cluster"


def _defaults(base: Mapping[str, str]) -> Path:
    conf = base.get("SPARK_CONF_DIR")
    return (Path(conf) if conf else Path(base.get("SPARK_HOME", "")) / "conf") / "spark-defaults.conf"


def _deploy_mode(properties: Path) -> str:
    try:
        text = properties.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.findall(r"^\s*spark\.submit\.deployMode[\s=:]+(\S+)", text, re.MULTILINE)
    return found[-1] if found else ""


def run(command: Sequence[str], base: Mapping[str, str]) -> NoReturn:
    """
    Execute `command` in this process's place: its input, output, signals and exit code are its own.

    Raises:
        CannotRun: there is no such program, or it cannot be executed.
    """
    # Python ignores these two, and what is ignored stays so in the command; as in subprocess, they are put back.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        if sys.platform == "win32":
            sys.exit(subprocess.call(list(command), env=dict(base)))  # noqa: S603 - the user's own command
        os.execvpe(command[0], list(command), dict(base))  # noqa: S606 - the user's own command
    except FileNotFoundError:
        raise CannotRun(f"{command[0]}: there is no such command", NOT_FOUND) from None
    except OSError as error:
        raise CannotRun(
            f"{command[0]} cannot be executed ({error.strerror}): a Python file? Run it with "
            f"'streamgauge run python {command[0]}'",
            CANNOT_RUN,
        ) from None
