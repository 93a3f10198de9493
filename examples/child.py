"""A program that the demo has started: its output in a file, its whole process group ended when it should end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_POLL_S = 0.05
_KILLED_WITHIN_S = 5.0
_TAIL_LINES = 15


class Child:
    """
    A running program, in a process group of its own, so that Ctrl-C reaches only us and we end things in order.

    Args:
        name: For messages.
        command: Program and arguments.
        environment: Whole, nothing is inherited.
        folder: Its working directory, where its log file goes too.
        log_output: Whether its standard output goes to the log, as its errors always do, or to ours.

    One thread.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, log_output: bool
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                command,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log if log_output else None,
                stderr=log,
                start_new_session=True,
            )

    def exit_code(self) -> int | None:
        """Return how it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return its log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def reason(self) -> str:
        """
        Return why it ended, from the end of its log.

        One line where there is an error meant for people, which a JVM may still have written after; else all of the
        end, for then nobody has foreseen it.
        """
        lines = [line for line in self.output().splitlines() if line.strip()][-_TAIL_LINES:]
        meant = [line for line in lines if line.lower().startswith("error: ")]
        if meant:
            return meant[-1][len("error: ") :]
        return "\n  ".join([f"the {self.name} ended with exit code {self.exit_code()}", *lines])

    def end(self, within_s: float) -> None:
        """
        Ask it to end, wait for all of its process group, and kill what is left after `within_s` seconds.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + within_s
        while self._is_running() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if self._is_running():
            self._kill()
            deadline = time.monotonic() + _KILLED_WITHIN_S
            while self._is_running() and time.monotonic() < deadline:
                time.sleep(_POLL_S)

    def _is_running(self) -> bool:
        if self._process.poll() is None:
            return True
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            # The second is macOS's answer for a group of which only zombies are left.
            return False
        return True

    def _kill(self) -> None:
        if sys.platform == "win32":
            self._process.kill()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
