"""Metrics of plan nodes: names, kinds, bounds."""

from __future__ import annotations

from spark_hooks import plan
from spark_hooks.native import METRICS, NAME_LENGTH, native_metrics
from spark_hooks.records import PlanNode


def test_names_are_unique_and_kinds_are_sparks() -> None:
    """A stateful node has two of a name; a letter stands for each kind, and what has none is a plain number."""
    told = ("number of output rows", 1, "spill size", 2, "number of output rows", 3, "sort time", 4, "avg", 5, "x", 6)
    found = native_metrics(PlanNode("Save", "", told, (), "sbsta"))
    assert [(metric.name, metric.kind, metric.accumulator, metric.plain) for metric in found] == [
        ("number of output rows", "sum", 1, "number of output rows"),
        ("spill size", "size", 2, "spill size"),
        ("number of output rows 2", "sum", 3, "number of output rows"),
        ("sort time", "timing", 4, "sort time"),
        ("avg", "average", 5, "avg"),
        ("x", "sum", 6, "x"),
    ]


def test_what_grows_without_end_or_has_no_name_is_left_out() -> None:
    """Spark 4.0 has a metric for every partition of a state store; a data source may name its own anything."""
    version = "The last uploaded version of the snapshot for a specific state store instance"
    assert native_metrics(PlanNode("Save", "", (version, 1, "", 2), (), "ss")) == ()
    many = tuple(part for number in range(METRICS + 9) for part in (f"m{number}", number))
    assert len(native_metrics(PlanNode("Scan", "", many, ()))) == METRICS
    [long] = native_metrics(PlanNode("Scan", "", ("m" * 999, 1), ()))
    assert len(long.name) == NAME_LENGTH


def test_time_of_generated_code_stands_at_its_last_operator() -> None:
    """The code of several operators has one duration, which is none of theirs alone."""
    scan = PlanNode("Scan json ", "FileScan", ("number of output rows", 1), (), "s")
    below = PlanNode("Filter", "Filter", ("number of output rows", 2), (scan,), "s")
    code = PlanNode("WholeStageCodegen (1)", "", ("duration", 3), (below,), "t")
    [vertex] = plan.analyse(code).vertices
    found = {operator.name: [metric.name for metric in operator.native] for operator in vertex.operators}
    assert found == {
        "Source: json": ["number of output rows"],
        "Filter": ["number of output rows", "WholeStageCodegen duration"],
    }


def test_all_metrics_of_what_fills_a_cache_count_where_it_is_filled() -> None:
    """It is filled once, also by a stage of which nothing else counts."""
    below = PlanNode("Sort", "Sort", ("spill size", 1), (PlanNode("Scan json", "", (), ()),), "b")
    [vertex] = plan.analyse(PlanNode("InMemoryTableScan", "", ("number of output rows", 2), (below,), "s")).vertices
    assert vertex.cached == {1}
