"""Which vertex of one run is which of another, and what has become of its operators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from collector.store import VertexState
from streamgauge import wire

Rule = Literal["id", "name", "operators"]
"""
By what two vertices are taken for the same, in this order.

id: ids are hashes of a vertex' operators, so its plan is the same.
name: its operators have the same names in the same order; of several such the first is paired with the first, etc.
operators: of the operators that either has at least OVERLAP are in both, by name; the greatest overlap goes first.
"""

OVERLAP = 0.5

_NUMBERED = re.compile(r"#\d+L?|plan_id=\d+|\[id=[^\]]*\]")
"""What Spark numbers anew in every plan."""


@dataclass(frozen=True, slots=True)
class Pair:
    """
    A vertex in two runs; at least one of both is there.

    Args:
        before, after: None where that run has no such vertex.
        rule: None where one of both is None.
    """

    before: VertexState | None
    after: VertexState | None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """An operator that only one run has, the other is None; or one that Spark describes in other words in each."""

    name: str
    before: wire.Operator | None
    after: wire.Operator | None


def pairs(before: Mapping[str, VertexState], after: Mapping[str, VertexState]) -> list[Pair]:
    """
    Return every vertex of two runs once: those of `after` in their order, then those that only `before` has.

    Which are paired does not depend on which of both runs is named first.

    Args:
        before, after: Vertex id → state.

    Any thread.
    """
    left, right = dict(before), dict(after)
    found: dict[str, Pair] = {}

    def take(one: str, other: str, rule: Rule) -> None:
        found[other] = Pair(left.pop(one), right.pop(other), rule)

    for vertex_id in [vertex_id for vertex_id in after if vertex_id in before]:
        take(vertex_id, vertex_id, "id")
    named = _by_name(left)
    for name, others in _by_name(right).items():
        for one, other in zip(named.get(name, []), others, strict=False):
            take(one, other, "name")
    overlaps = [
        # Of equal ones the least ids are paired: that is so whichever run is named first.
        (-overlap, abs(place - elsewhere), one, other)
        for place, (one, vertex) in enumerate(left.items())
        for elsewhere, (other, candidate) in enumerate(right.items())
        if (overlap := _overlap(vertex, candidate)) >= OVERLAP
    ]
    for *_, one, other in sorted(overlaps):
        if one in left and other in right:
            take(one, other, "operators")
    return [
        *(found.get(vertex_id, Pair(None, vertex)) for vertex_id, vertex in after.items()),
        *(Pair(vertex, None) for vertex in left.values()),
    ]


def operator_changes(pair: Pair) -> list[OperatorChange]:
    """
    Return what has become of the operators of a vertex that both runs have; any thread.

    Operators are the same by name, which is unique in a vertex. One has changed if its id and its description differ,
    but for the numbers that Spark gives anew in each plan: an id is also of what stands before the operator.

    Returns:
        In the order of the later plan, those that it does not have last; none of a vertex that one run lacks.
    """
    if pair.before is None or pair.after is None or pair.rule == "id":
        return []
    earlier = {operator.name: operator for operator in pair.before.vertex.operators}
    later = {operator.name: operator for operator in pair.after.vertex.operators}
    changes = [
        OperatorChange(name, earlier.get(name), operator)
        for name, operator in later.items()
        if name not in earlier or _differ(earlier[name], operator)
    ]
    return changes + [OperatorChange(name, operator, None) for name, operator in earlier.items() if name not in later]


def _differ(one: wire.Operator, other: wire.Operator) -> bool:
    return one.id != other.id and _NUMBERED.sub("", one.description) != _NUMBERED.sub("", other.description)


def _by_name(vertices: Mapping[str, VertexState]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for vertex_id, vertex in vertices.items():
        found.setdefault(vertex.vertex.name, []).append(vertex_id)
    return found


def _overlap(one: VertexState, other: VertexState) -> float:
    mine = {operator.name for operator in one.vertex.operators}
    theirs = {operator.name for operator in other.vertex.operators}
    either = mine | theirs
    return len(mine & theirs) / len(either) if either else 0.0
