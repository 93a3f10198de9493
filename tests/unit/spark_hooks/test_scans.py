"""Which scan reads which source."""

from __future__ import annotations

import pytest

from spark_hooks.plan import Operator
from spark_hooks.scans import scans


def scan(identity: str, leaf: int, node: str = "MicroBatchScan", description: str = "") -> tuple[str, Operator]:
    return "v", Operator(identity, identity, node, description, (), (), is_source=True, leaf=leaf)


A, B, C = scan("a", 0), scan("b", 1), scan("c", 2)
TABLE, FILES = scan("t", 1, "Scan parquet"), scan("f", 0, "Scan json")
EMPTY = scan("e", 1, "LocalTableScan", "LocalTableScan <empty>, [a#1]")
OTHER = ("v", Operator("p", "p", "Project", "", (), ()))


@pytest.mark.parametrize(
    ("operators", "moved", "expected"),
    [
        ([B, OTHER, A], [True, True], [["a"], ["b"]]),
        ([A, TABLE], [True], [["a"]]),
        ([A, TABLE, C], [False, True], [["a"], ["c"]]),
        ([A, EMPTY], [True, False], [["a"], []]),
        ([EMPTY, C], [False, True], [[], ["c"]]),
        ([B], [False, True, False], [[], ["b"], []]),
        ([A, TABLE], [False, True, False], [[], ["a"], []]),
        ([A, B], [True], [["a", "b"]]),
        ([FILES], [True], [["f"]]),
        ([FILES, TABLE], [True], [[]]),
        ([A, B, C], [True, True], [[], []]),
        ([], [False], [[]]),
        ([], [], []),
        ([A], [], []),
    ],
    ids=[
        "as many scans as sources",
        "a table beside the stream",
        "a table between streams",
        "a source without rows that Spark has replaced",
        "another one without rows",
        "sources without rows that Spark has left out",
        "the same with a table",
        "a self-join",
        "files",
        "files and a table of files",
        "a self-join of one of two",
        "no scan",
        "nothing",
        "no source",
    ],
)
def test_scans_are_told_where_they_can_be(
    operators: list[tuple[str, Operator]], moved: list[bool], expected: list[list[str]]
) -> None:
    """From left to right; what cannot be told apart is no source's."""
    assert [[operator.id for _, operator in found] for found in scans(operators, moved)] == expected


def files(identity: str, leaf: int, location: str) -> tuple[str, Operator]:
    description = f"FileScan json [a#1] Format: JSON, Location: InMemoryFileIndex(1 paths)[{location}, ReadSchema: x"
    return scan(identity, leaf, "Scan json", description)


@pytest.mark.parametrize(
    ("source", "location", "found"),
    [
        ("file:/data/in", "file:/data/in/0.json]", True),
        ("file:/data/in/", "file:/data/in/0.json, file:/data/in/1.json]", True),
        ("file:/data/in", "file:/data/in]", True),
        ("file:/data/in/of/many/names", "file:/data/in/of/ma...", True),
        ("file:/data/in*/day=[0-9]", "file:/data/in7/day=1/0.json]", True),
        ("file:/data/in", "file:/data/inner/0.json]", False),
        ("file:/data/in", "file:/data/other/0.json]", False),
        ("file:/data/in", "file:/data/other/of/many...", False),
    ],
)
def test_stream_of_files_is_told_from_a_table_of_files(source: str, location: str, found: bool) -> None:
    """By where its files lie, as in a stream that is joined with a table that is read from files too."""
    operators = [files("t", 0, "file:/tables/carriers.csv]"), files("s", 1, location)]
    told = scans(operators, [True], [f"FileStreamSource[{source}]"])
    assert [[operator.id for _, operator in each] for each in told] == [["s"] if found else []]
