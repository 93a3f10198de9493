"""Every expression of every panel and variable: it parses, and asks for what /metrics tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql
import pytest

from dashboards.grafana.expressions import Expression, resolved
from tests.contract.exposed import known

VALUES = {
    **dict.fromkeys(("application", "executor", "job", "source", "vertex"), ".*"),
    "__rate_interval": "1m",
    "__range": "1h",
}
EXPRESSIONS = [*resolved(VALUES)]
each_expression = pytest.mark.parametrize(
    "asked", EXPRESSIONS, ids=[f"{each.dashboard}: {each.panel}" for each in EXPRESSIONS]
)


def nodes(node: Any) -> Iterator[Any]:
    """A node and all below it."""
    yield node
    for inner in below(node):
        yield from nodes(inner)


def below(node: Any) -> list[Any]:
    match node:
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return [node.expr]
        case promql.BinaryExpr():
            return [node.lhs, node.rhs]
        case promql.Call():
            return list(node.args)
        case promql.MatrixSelector():
            return [node.vector_selector]
    return []


def series(selector: Any) -> list[str]:
    """The names that a selector may match: its own, or those of a pattern a|b or prefix_(a|b)."""
    if selector.name:
        return [selector.name]
    (pattern,) = [each.value for each in selector.matchers.matchers if each.name == "__name__"]
    parts = re.fullmatch(r"(\w*)\(?([\w|]+)\)?(\w*)", pattern)
    assert parts is not None, pattern
    return [parts[1] + choice + parts[3] for choice in parts[2].split("|")]


def selectors(expr: str) -> Iterator[Any]:
    return (node for node in nodes(promql.parse(expr)) if isinstance(node, promql.VectorSelector))


def kept(node: Any) -> frozenset[str]:
    """The labels that a result has; of a selector of several names those that one of them has."""
    match node:
        case promql.VectorSelector():
            return frozenset().union(*(known(name).labels for name in series(node)))
        case promql.AggregateExpr():
            return frozenset(node.modifier.labels) if node.modifier else frozenset()
        case promql.BinaryExpr():
            sides = [kept(side) for side in (node.lhs, node.rhs) if is_vector(side)]
            # Without on() they match where all labels are the same, else nothing comes out.
            assert len({*sides}) == 1 or str(node.op) == "or", node.prettify()
            return frozenset().union(*sides)
        case promql.Call() if node.func.name == "histogram_quantile":
            return kept(node.args[1]) - {"le"}
    return frozenset().union(*map(kept, below(node)))


def is_vector(node: Any) -> bool:
    return any(isinstance(inner, promql.VectorSelector) for inner in nodes(node))


def test_there_are_expressions() -> None:
    """Every dashboard asks something, else the tests below would say nothing."""
    assert len({asked.dashboard for asked in EXPRESSIONS}) == 6
    assert len(EXPRESSIONS) > 150


@each_expression
def test_only_what_is_told_is_asked_for(asked: Expression) -> None:
    """It parses; each name is a family of /metrics, and each label that it is chosen by is one of that family."""
    for selector in selectors(asked.expr):
        names = series(selector)
        chosen = {matcher.name for matcher in selector.matchers.matchers} - {"__name__"}
        assert chosen <= frozenset().union(*(known(name).labels for name in names)), (asked.expr, chosen)


@each_expression
def test_results_have_the_labels_that_are_shown(asked: Expression) -> None:
    """What an expression is grouped by, what its legend names and what a variable lists are labels that are there."""
    root = promql.parse(asked.expr)
    for node in nodes(root):
        if isinstance(node, promql.AggregateExpr) and node.modifier:
            assert {*node.modifier.labels} <= kept(node.expr), asked.expr
    shown = {*re.findall(r"{{(\w+)}}", asked.legend), *([asked.label] if asked.label else [])}
    assert shown <= kept(root), (asked.expr, asked.legend)


@each_expression
def test_rates_are_taken_of_counters_and_of_nothing_else(asked: Expression) -> None:
    """A counter as it is says nothing: it begins anew in every run. A rate of a gauge says nothing either."""
    ranges = [node for node in nodes(promql.parse(asked.expr)) if isinstance(node, promql.MatrixSelector)]
    grown = [name for each in ranges for name in series(each.vector_selector)]
    assert {known(name).kind for name in grown} <= {"counter"}, asked.expr
    plain = [name for each in selectors(asked.expr) for name in series(each) if name not in grown]
    if not asked.label:
        # Restarts are counted over the whole life of a job.
        assert {known(name).kind for name in plain if name != "streamgauge_job_restarts_total"} <= {"gauge"}, asked.expr
    functions = {node.func.name for node in nodes(promql.parse(asked.expr)) if isinstance(node, promql.Call)}
    assert functions <= {"rate", "increase", "histogram_quantile", "time"}, asked.expr


@each_expression
def test_subtasks_are_made_one_as_the_default_page_does(asked: Expression) -> None:
    """So that a page with a series a subtask gives the same panels: sums of counters, the greatest gauge, …"""
    root = promql.parse(asked.expr)
    if asked.label:
        return
    for node in nodes(root):
        for inner in below(node):
            selector = inner.vector_selector if isinstance(inner, promql.MatrixSelector) else inner
            if isinstance(selector, promql.VectorSelector):
                whole = {known(name).whole for name in series(selector)} - {""}
                within = nearest(root, selector)
                assert not whole or within in whole, (asked.expr, within)


def nearest(root: Any, selector: Any) -> str:
    """The aggregation nearest above a selector, '' where there is none."""
    found = ""
    node = root
    while node is not selector:
        if isinstance(node, promql.AggregateExpr):
            found = str(node.op)
        node = next(inner for inner in below(node) if any(each is selector for each in nodes(inner)))
    return found
