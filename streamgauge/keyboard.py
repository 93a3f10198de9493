"""Keys of a terminal, one by one and without an echo."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import IO, Any

if sys.platform != "win32":
    import select
    import termios
    import tty


class Keyboard:
    """
    Reads keys while it is entered, and leaves the terminal as it was; Ctrl-C still sends its signal.

    Args:
        stdin: Where keys come from; None where it is closed. Of what is no terminal, and on Windows, nothing is read.

    One thread.
    """

    def __init__(self, stdin: IO[Any] | None) -> None:
        self._stdin = stdin
        self._before: list[Any] | None = None

    def __enter__(self) -> Keyboard:
        if sys.platform != "win32" and self._stdin is not None and self._stdin.isatty():
            self._before = termios.tcgetattr(self._stdin)
            tty.setcbreak(self._stdin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if sys.platform != "win32" and self._stdin is not None and self._before is not None:
            termios.tcsetattr(self._stdin, termios.TCSADRAIN, self._before)
            self._before = None

    def pressed(self, timeout_s: float) -> str:
        """Return the keys that were pressed within `timeout_s` seconds, at once if there are any; '' for none."""
        if sys.platform == "win32" or self._stdin is None or self._before is None:
            time.sleep(timeout_s)
            return ""
        descriptor = self._stdin.fileno()
        if not select.select([descriptor], [], [], timeout_s)[0]:
            return ""
        return os.read(descriptor, 64).decode("utf-8", "replace")
