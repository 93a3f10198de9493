"""`streamgauge top` on a terminal: draws what is read until q or a signal, and leaves the terminal as it was."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from streamgauge import terminal
from streamgauge.clock import Clock
from streamgauge.figures import age
from streamgauge.keyboard import Keyboard
from streamgauge.overview import Overview
from streamgauge.survey import Question, Survey
from streamgauge.top import Size, page, screen
from streamgauge.watch import Watch, readings

TICK_S = 0.1
"""How long a key, a signal, a resize or a reading may wait to be seen."""
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_QUIT_KEYS = frozenset("qQ")


def follow(survey: Survey, question: Question, interval_s: float, once: bool, clock: Clock) -> None:
    """
    Show readings: live on a terminal, else, or `once`, printed one below the other.

    Args:
        survey: Asked every `interval_s` seconds.
        question: What to ask for; on a terminal, as much of it as fits.
        once: Print one reading and return.
        clock: Tells how old what is drawn is.

    Raises:
        ReadError: the first reading failed.

    Main thread only. Returns on q or a signal where it is live, otherwise never, but for `once`.
    """
    console = terminal.stdout()
    if terminal.is_live(console) and not once:
        source = readings(survey, lambda: replace(question, lines=console.height), interval_s)
        Live(Watch(source), console, sys.stdin, clock).run()
        return
    for number, overview in enumerate(readings(survey, lambda: question, interval_s, once)):
        lines = page(overview, terminal.width(console))
        terminal.write(console, [Text(), *lines] if number else lines)


class Live:
    """
    The live view.

    Args:
        watch: What is drawn.
        console: Where.
        stdin: Where keys come from; None where it is closed.
        clock: Tells how old what is drawn is.

    Main thread only: it catches the signals while it runs.
    """

    def __init__(self, watch: Watch, console: Console, stdin: IO[Any] | None, clock: Clock) -> None:
        self._watch = watch
        self._console = console
        self._stdin = stdin
        self._clock = clock
        self._ended = False
        self._suspended = False
        self._shown: Overview | None = None
        self._status = ""
        self._read_ns = 0

    def run(self) -> None:
        """
        Draw until q, SIGINT, SIGTERM or SIGHUP; Ctrl-Z suspends, as of any program.

        Raises:
            ReadError: the first reading failed; nothing has been drawn then.
        """
        with _caught(_ENDING, self._end), _caught(("SIGTSTP",), self._suspend):
            with Keyboard(self._stdin) as keyboard:
                while self._shown is None and not self._is_over(keyboard):
                    self._take()
            while not self._ended:
                self._draw_until_left()
                if self._suspended:
                    self._stop_here()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _suspend(self, *_: object) -> None:
        self._suspended = True

    def _is_over(self, keyboard: Keyboard) -> bool:
        if not _QUIT_KEYS.isdisjoint(keyboard.pressed(TICK_S)):
            self._ended = True
        return self._ended

    def _draw_until_left(self) -> None:
        drawn: object = None
        with Keyboard(self._stdin) as keyboard, self._console.screen(hide_cursor=True) as view:
            while not self._suspended:
                self._take()
                width, height = self._console.size
                status = self._told_status()
                if self._shown is not None and drawn != (self._shown, status, width, height):
                    drawn = (self._shown, status, width, height)
                    view.update(terminal.JOIN.join(screen(self._shown, status, Size(width, height))))
                if self._is_over(keyboard):
                    return

    def _stop_here(self) -> None:
        self._suspended = False
        with _caught(("SIGTSTP",), signal.SIG_DFL):
            signal.raise_signal(signal.SIGTSTP)

    def _take(self) -> None:
        newest = self._watch.newest()
        if newest is None:
            return
        if newest.error is None:
            self._shown, self._status = newest, ""
            self._read_ns = self._clock.monotonic_ns()
        else:
            self._status = newest.error

    def _told_status(self) -> str:
        if not self._status:
            return ""
        return f"{age((self._clock.monotonic_ns() - self._read_ns) / 1e6)} old: {self._status}"


@contextmanager
def _caught(signals: tuple[str, ...], handler: Callable[..., None] | signal.Handlers) -> Iterator[None]:
    """Have signals handled, by name since not every system has all of them; then as before."""
    before = {name: signal.signal(getattr(signal, name), handler) for name in signals if hasattr(signal, name)}
    try:
        yield
    finally:
        for name, old in before.items():
            signal.signal(getattr(signal, name), old)
