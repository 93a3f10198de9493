"""Tables: what goes when there is no room, and names that mean harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from streamgauge.table import Cell, Column, Label, Row, Table, clean, cut

TABLE = Table((Column("STATE", left=True), Column("IN/S", keep=2), Column("TOOK", keep=1, least=6)), "NAME", 8)


def row(name: str, *cells: str) -> Row:
    styled: list[Cell] = [(cell, "") for cell in cells]
    return styled, Label(name)


def laid_out(width: int | None, *rows: Row) -> list[str]:
    return [line.plain for line in TABLE.lines(rows, width)[0]]


def test_without_a_width_nothing_is_cut() -> None:
    """Columns two spaces apart, figures to the right, and no blanks at the end."""
    assert laid_out(None, row("a long name", "OK", "12.5k", "-"), row("b", "FAILED", "7", "182ms")) == [
        "STATE    IN/S    TOOK  NAME",
        "OK      12.5k       -  a long name",
        "FAILED      7   182ms  b",
    ]


def test_names_are_cut_before_columns_are_left_out() -> None:
    """Down to what names get at least."""
    rows = [row("0123456789abcdef", "OK", "12.5k", "182ms")]
    assert laid_out(28, *rows)[1] == "OK    12.5k  182ms 0123…cdef"
    assert TABLE.lines(rows, 28)[1] == []


def test_the_least_column_goes_first() -> None:
    """What has gone is told; what may not go stays."""
    lines, hidden = TABLE.lines([row("0123456789abcdef", "OK", "12.5k", "182ms")], 22)
    assert ([line.plain for line in lines], hidden) == (["STATE  IN/S NAME", "OK    12.5k 01234…cdef"], ["TOOK"])
    assert TABLE.lines([row("0123456789abcdef", "OK", "12.5k", "182ms")], 10)[1] == ["IN/S", "TOOK"]


def test_a_column_that_knows_nothing_goes_before_a_name_is_cut() -> None:
    """Even one that is worth more; with room for all it stays."""
    assert TABLE.lines([row("0123456789abcdef", "OK", "-", "182ms")], 30)[1] == ["IN/S"]
    assert TABLE.lines([row("01234567", "OK", "-", "182ms")], 30)[1] == []


def test_a_mark_is_never_cut() -> None:
    """It stands around what is left of the name."""
    rows: list[Row] = [([("OK", ""), ("1", ""), ("2ms", "")], Label("0123456789", before="  ", behind=" (hot)"))]
    assert laid_out(31, *rows)[1] == "OK       1    2ms   01…89 (hot)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\ufffd[2J\ufffd]0;owned\ufffd"),
        ("[red]not red[/red]", "[red]not red[/red]"),
        (":bomb:", ":bomb:"),
        ("two\nlines\r\t", "two\ufffdlines\ufffd\ufffd"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\u2066\u200b\u200d", "\ufffd\ufffd\ufffd"),
        ("\ud800", "\ufffd"),
        ("流れ שלום größe", "流れ שלום größe"),
    ],
    ids=["escapes", "markup", "emoji code", "lines", "override", "zero width", "surrogate", "letters"],
)
def test_names_cannot_command_the_terminal(name: str, shown: str) -> None:
    """What does not print is replaced, all else is shown as it is: no markup, no codes."""
    lines = laid_out(None, row(name, "OK", "1", "2ms"))
    assert clean(name) == shown
    assert lines[1].endswith(f"  {shown}")


def test_wide_names_displace_no_figure() -> None:
    """A wide sign has two cells, and is not halved."""
    assert laid_out(27, row("流れるデータの仕事", "OK", "12.5k", "2ms")) == [
        "STATE  IN/S   TOOK NAME",
        "OK    12.5k    2ms 流れ…事",
    ]


@given(st.text(max_size=60), st.integers(-3, 70))
def test_a_cut_name_fits(text: str, width: int) -> None:
    """Whatever it holds; a name that fits is left alone."""
    name = clean(text)
    shown = cut(name, width)
    assert cell_len(shown) <= max(0, width)
    assert shown == name or cell_len(name) > width


def test_both_ends_of_a_name_are_kept() -> None:
    """The source and the sink of a chain tell it from others."""
    assert cut("Source: kafka -> Project -> Sink: delta", 21) == "Source: ka…ink: delta"
