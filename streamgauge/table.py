"""A table of one line a row, for terminals: names are cut where there is no room, figures never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from streamgauge.figures import UNKNOWN

ELLIPSIS = "…"
_REPLACEMENT = "\ufffd"
_BLANK = ("", UNKNOWN)
_WIDE_FROM = 100
"""From this width on columns stand two spaces apart."""


@dataclass(frozen=True, slots=True)
class Column:
    """
    One column of figures.

    Args:
        keep: Where there is no room, columns are left out by this, the least first; those of 0 never. Those in
            which nothing is known go before all others, as soon as a name would be cut.
        left: Whether it is aligned to the left.
        least: Cells that it has at least, so that columns do not move whenever a figure gets longer.
    """

    title: str
    keep: int = 0
    left: bool = False
    least: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """
    The name at the end of a row, where it displaces nothing, however wide or from right to left it is.

    Args:
        text: Anything; what does not print is replaced, and its middle is left out where there is no room.
        before, behind: Around it, never cut.
    """

    text: str
    style: str = ""
    before: str = ""
    behind: str = ""

    def cells(self) -> int:
        """Return how wide it is, uncut."""
        return cell_len(self.before) + cell_len(clean(self.text)) + cell_len(self.behind)


Cell = tuple[str, str]
"""Text and style."""
Row = tuple[Sequence[Cell], Label]
"""A cell a column, and the name."""


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table with a line a row.

    Args:
        columns: Of figures, from the left.
        label: Title of the names.
        label_width: What names get at least, before columns are left out.
    """

    columns: Sequence[Column]
    label: str
    label_width: int

    def lines(self, rows: Sequence[Row], width: int | None) -> tuple[list[Text], list[str]]:
        """
        Lay rows out.

        Args:
            rows: From the top.
            width: Cells a line has; None for as many as are needed.

        Returns:
            The lines, the titles' first, and the titles of the columns that had no room.
        """
        widths = [
            max(len(column.title), column.least, *(cell_len(cells[index][0]) for cells, _ in rows))
            for index, column in enumerate(self.columns)
        ]
        gap = "  " if width is None or width >= _WIDE_FROM else " "
        shown = self._shown(rows, widths, len(gap), width)
        room = None if width is None else width - sum(widths[index] + len(gap) for index in shown)
        titles = [(column.title, "bold") for column in self.columns]
        lines = [
            self._line(cells, label, shown, widths, gap, room)
            for cells, label in ((titles, Label(self.label, "bold")), *rows)
        ]
        hidden = [column.title for index, column in enumerate(self.columns) if index not in shown]
        return lines, hidden

    def _shown(self, rows: Sequence[Row], widths: Sequence[int], gap: int, width: int | None) -> list[int]:
        shown = list(range(len(self.columns)))
        if width is None:
            return shown
        blank = [index for index in shown if all(cells[index][0] in _BLANK for cells, _ in rows)]
        longest = max((label.cells() for _, label in rows), default=0)
        droppable = sorted((index for index in shown if self.columns[index].keep), key=lambda i: self.columns[i].keep)
        for candidates, wanted in (([i for i in droppable if i in blank], longest), (droppable, self.label_width)):
            for index in candidates:
                if index in shown and sum(widths[i] + gap for i in shown) + wanted > width:
                    shown.remove(index)
        return shown

    def _line(
        self,
        cells: Sequence[Cell],
        label: Label,
        shown: Sequence[int],
        widths: Sequence[int],
        gap: str,
        room: int | None,
    ) -> Text:
        line = Text(no_wrap=True, end="")
        for index in shown:
            text, style = cells[index]
            padding = " " * (widths[index] - cell_len(text))
            line.append(padding if not self.columns[index].left else "")
            line.append(text, style)
            line.append(padding if self.columns[index].left else "")
            line.append(gap)
        name = clean(label.text)
        if room is not None:
            name = cut(name, room - cell_len(label.before) - cell_len(label.behind))
        line.append(label.before)
        line.append(name, label.style)
        line.append(label.behind, label.style)
        line.rstrip()
        return line


def clean(text: str) -> str:
    """
    Return text with what does not print replaced: control characters, marks that change the direction, joiners.

    A terminal would obey them, and nobody knows how wide they are.
    """
    return "".join(sign if sign.isprintable() else _REPLACEMENT for sign in text)


def cut(text: str, width: int) -> str:
    """Return text in at most `width` cells, its middle left out: both ends of a chain tell more than its middle."""
    if cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    tail = (width - 1) // 2
    return _start(text, width - 1 - tail) + ELLIPSIS + _start(text[::-1], tail)[::-1]


def _start(text: str, width: int) -> str:
    used = 0
    for index, sign in enumerate(text):
        used += cell_len(sign)
        if used > width:
            return text[:index]
    return text
