"""Where `jobs` and `top` print: a terminal, or whatever stdout is piped into."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

JOIN = Text("\n", no_wrap=True, overflow="crop")
"""Makes one text of lines that are neither wrapped nor filled up."""


def stdout() -> Console:
    """Return stdout's console; what its encoding does not have is printed as '?'."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False, markup=False, emoji=False)


def is_live(console: Console) -> bool:
    """Tell whether there is a terminal that can be drawn on again and again."""
    return sys.stdout.isatty() and not console.is_dumb_terminal


def width(console: Console) -> int | None:
    """Return the cells of a line; None, for as many as are needed, where neither a terminal nor COLUMNS tells."""
    return console.width if sys.stdout.isatty() or os.environ.get("COLUMNS") else None


def write(console: Console, lines: Sequence[Text]) -> None:
    """Print lines as they are, however long."""
    console.print(JOIN.join(lines), soft_wrap=True)
