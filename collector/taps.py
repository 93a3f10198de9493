"""The record taps of one vertex, as they are held, and what is distributed over its records and timers."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import msgspec

from collector.checks import shown
from streamgauge import names, wire
from streamgauge.errors import MalformedFrame

_NUMBERS = 6
"""Of a tap besides its columns: watermark, whether it is idle, what it is set to, and what it does not watch."""


@dataclass(frozen=True, slots=True)
class Taps:
    """
    What is held of a vertex, as it travelled.

    Args:
        taps: In the driver's order.
        distributions: (operator's id, metric) → buckets of the run.
        series: Values held, and keys by which they are found.

    Any thread, since nobody changes it once it is made.
    """

    taps: tuple[wire.Tap, ...] = ()
    distributions: Mapping[tuple[str, str], wire.Buckets] = field(default_factory=dict)
    series: int = 0

    def after(self, where: str, figures: wire.VertexColumns, operators: Container[str]) -> Taps:
        """
        Return what is held after admitted figures of the vertex: all of its taps are replaced where any are told, of
        distributions those that are told.

        Args:
            where: Names the vertex in messages.
            operators: Ids of the vertex' operators.

        Raises:
            MalformedFrame: an operator is not in the plan.
        """
        if figures.taps is None and not figures.distributions:
            return self
        for tap in figures.taps or ():
            _check_known(f"{where}: operator {shown(tap.operator)} of tap {shown(tap.name)}", tap.operator, operators)
        distributions = dict(self.distributions)
        for told in figures.distributions:
            _check_known(f"{where}: operator {shown(told.operator)} of a distribution", told.operator, operators)
            distributions[told.operator, told.metric] = told.buckets
        return _counted(self.taps if figures.taps is None else figures.taps, distributions)

    def within(self, operators: Container[str]) -> Taps:
        """Return what is held of these operators, when a plan no longer has the others."""
        taps = tuple(tap for tap in self.taps if tap.operator in operators)
        distributions = {key: buckets for key, buckets in self.distributions.items() if key[0] in operators}
        if len(taps) == len(self.taps) and len(distributions) == len(self.distributions):
            return self
        return _counted(taps, distributions)

    def lasting(self) -> Taps:
        """Return what is kept when the job has ended: all but its splits' shares of time."""
        if all(names.TRANSIENT.isdisjoint(column.metric for column in tap.columns) for tap in self.taps):
            return self
        return _counted(tuple(map(_lasting, self.taps)), self.distributions)


def figures(tap: wire.Tap) -> dict[str, list[int | float | None]]:
    """
    Return the columns of a tap that was admitted, by `names.SPLIT_…`: one value a split, None where it has none.

    Any thread.
    """
    found: dict[str, list[int | float | None]] = {}
    for column in tap.columns:
        values: list[int | float] = column.values().tolist()
        there = column.mask(len(tap.splits))
        known = [True] * len(values) if there is None else there.tolist()
        found[column.metric] = [value if has else None for value, has in zip(values, known, strict=True)]
    return found


def _check_known(what: str, operator: str, operators: Container[str]) -> None:
    if operator not in operators:
        raise MalformedFrame(
            f"{what} is not in the vertex's plan: send the plan with the first frame that names a new operator"
        )


def _lasting(tap: wire.Tap) -> wire.Tap:
    columns = tuple(column for column in tap.columns if column.metric not in names.TRANSIENT)
    return msgspec.structs.replace(tap, columns=columns)


def _counted(taps: tuple[wire.Tap, ...], distributions: Mapping[tuple[str, str], wire.Buckets]) -> Taps:
    # A split has a name, of which each counts as a value; buckets have those below, those above and a sum besides.
    series = sum(_NUMBERS + len(tap.splits) * (1 + len(tap.columns)) for tap in taps)
    series += sum(1 + 3 + len(buckets.indices) // 2 for buckets in distributions.values())
    return Taps(taps, distributions, series)
