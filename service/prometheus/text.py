"""
Prometheus' text format and OpenMetrics: families in the order they came, each series once.

Source: `prometheus_client.generate_latest` of both formats, whose bytes these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from prometheus_client.utils import floatToGoString

from service.prometheus.labels import Around

Kind = Literal["counter", "gauge", "histogram", "summary"]
Value = int | float

_TEXT_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_OPENMETRICS_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_PLAIN_BELOW = 1e6
"""From here on Go, and so the client library, writes exponents where Python writes digits."""
_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "counter": ("_total", "_created"),
    "gauge": (),
    "summary": ("_count", "_sum", "_created"),
    "histogram": ("_bucket", "_count", "_sum", "_created"),
}
"""What samples of a family may end in besides nothing. Source: OpenMetrics 1.0, "Suffixes"."""


class TooManySeries(Exception):
    """A page would have more series than it may."""


def number(value: Value) -> str:
    """Return a value as the client library writes it: a float's shortest digits, with Go's exponents from 10^6 on."""
    [written] = _numbers([float(value)])
    return written


def _numbers(values: Iterable[float]) -> list[str]:
    # Python writes most numbers as the library does, and three times as fast; NaN fails both comparisons.
    low, high, go = -math.inf, _PLAIN_BELOW, cast(Callable[[float], str], floatToGoString)
    return [repr(value) if low < value < high else go(value) for value in values]


class Lines(NamedTuple):
    """
    The samples of one histogram or summary with places for its labels: several that are alike share them.

    Args:
        pieces: What stands between the places, and before and after them.
        inner: How many lines have a label of their own, `le` or `quantile`; they come first.
        series: How many lines there are.
    """

    pieces: tuple[str, ...]
    inner: int
    series: int

    def filled(self, whose: Around) -> str:
        """Return the lines of somebody, each with a line's end before it."""
        places = [whose.before, whose.after] * self.inner + [whose.whole] * (self.series - self.inner)
        text = [""] * (2 * len(self.pieces) - 1)
        text[::2] = self.pieces
        text[1::2] = places
        return "".join(text)


def histogram_lines(name: str, buckets: Iterable[tuple[float, int]], count: int, total: float) -> Lines:
    """
    Return the samples of a histogram; its labels are to be put around `le`.

    Args:
        name: Of the family.
        buckets: Upper bound, inclusive and finite, and how many values are at most that; ascending.
        count: Of all values.
        total: Sum of them.
    """
    inner = [*((f'le="{number(bound)}"', upto) for bound, upto in buckets), ('le="+Inf"', count)]
    return _lines(f"{name}_bucket", inner, [(f"{name}_count", count), (f"{name}_sum", total)])


def summary_lines(name: str, quantiles: Iterable[tuple[float, float]], count: int) -> Lines:
    """
    Return the samples of a summary; its labels are to be put around `quantile`. It has no sum, as Flink's have none.

    Args:
        name: Of the family.
        quantiles: 0 to 1, and the value there.
        count: Of all values.
    """
    inner = [(f'quantile="{number(rank)}"', value) for rank, value in quantiles]
    return _lines(name, inner, [(f"{name}_count", count)])


def _lines(name: str, inner: Sequence[tuple[str, Value]], last: Sequence[tuple[str, Value]]) -> Lines:
    pieces, begin = [], f"\n{name}"
    for label, value in inner:
        pieces += [begin, label]
        begin = f" {number(value)}\n{name}"
    # What the last line before ends with, and the name of the next one.
    end = begin.removesuffix(f"\n{name}")
    for own, value in last:
        pieces.append(f"{end}\n{own}")
        end = f" {number(value)}"
    return Lines((*pieces, end), len(inner), len(inner) + len(last))


class Column(NamedTuple):
    """
    Samples with labels of their own.

    Args:
        pairs: Returns labels, as `labels` does, no two alike; shape (m,). It is called when the page is rendered, and
            so not of one that turns out too long.
        present: Which of them have a value, shape (m,); None where all do.
        values: Of those, shape (n,).
    """

    pairs: Callable[[], Sequence[str]]
    present: npt.NDArray[np.bool_] | None
    values: npt.NDArray[np.float64]

    def told(self) -> Sequence[str]:
        """Return the labels that have a value."""
        return self.pairs() if self.present is None else [*compress(self.pairs(), self.present.tolist())]


@dataclass(slots=True)
class _Family:
    """`samples` by their labels; `columns` of labels and values, and `blocks` of lines, by whose they are."""

    kind: Kind
    text: str
    samples: dict[str, Value] = field(default_factory=dict)
    columns: dict[Hashable, Column] = field(default_factory=dict)
    blocks: dict[str, tuple[Lines, Around]] = field(default_factory=dict)


class Exposition:
    """
    Collects samples and renders them.

    Not thread safe. Values are written when they are rendered, so a page that turns out too long has cost little. A
    series that comes a second time is left out, for one duplicate can cost the whole scrape, and so is a family whose
    samples could be taken for another's.

    Args:
        openmetrics: OpenMetrics 1.0, without its end; else the text format 0.0.4.
        most: How many series there may be; None for any number.
    """

    def __init__(self, openmetrics: bool = False, most: int | None = None) -> None:
        self._openmetrics = openmetrics
        self._most = most
        self._families: dict[str, _Family] = {}
        self._owners: dict[str, str] = {}
        self.series = 0

    def foresee(self, series: int) -> None:
        """
        Look whether there is room, before work is put into them.

        Raises:
            TooManySeries: there is not.
        """
        if self._most is not None and self.series + series > self._most:
            raise TooManySeries

    def add(self, name: str, kind: Kind, text: str, series: Iterable[tuple[str, Value]]) -> None:
        """
        Add samples to a family, which the first call describes.

        Args:
            name: Of the family and of its samples; counters end in _total.
            kind: Its type.
            text: Its help.
            series: Labels, as `labels` returns them, and value.

        Raises:
            TooManySeries: there is no room for them.
        """
        family = self._family(name, kind, text)
        if family is not None:
            before = len(family.samples)
            for pairs, value in series:
                family.samples.setdefault(pairs, value)
            self._count(len(family.samples) - before)

    def add_column(self, name: str, kind: Kind, text: str, whose: Hashable, column: Column) -> None:
        """
        Add one sample for each of many labels to a family, which the first call describes.

        Args:
            name, kind, text: As of `add`.
            whose: What the labels have in common; a second column of the same is left out.

        Raises:
            TooManySeries: there is no room for them.
        """
        family = self._family(name, kind, text) if len(column.values) else None
        if family is not None and whose not in family.columns:
            family.columns[whose] = column
            self._count(len(column.values))

    def add_block(
        self, name: str, kind: Literal["histogram", "summary"], text: str, whose: Around, told: Lines
    ) -> None:
        """
        Add one histogram or summary to a family of such, which the first call describes.

        Args:
            name, kind, text: As of `add`.
            whose: Its labels.
            told: As `histogram_lines` or `summary_lines` returns them.

        Raises:
            TooManySeries: there is no room for it.
        """
        family = self._family(name, kind, text)
        if family is not None and whose.whole not in family.blocks:
            family.blocks[whose.whole] = (told, whose)
            self._count(told.series)

    def _count(self, series: int) -> None:
        self.series += series
        self.foresee(0)

    def _family(self, name: str, kind: Kind, text: str) -> _Family | None:
        family = self._families.get(name)
        if family is None:
            base = name.removesuffix("_total") if kind == "counter" else name
            claimed = [base, *(base + suffix for suffix in _SUFFIXES[kind])]
            if any(each in self._owners for each in claimed):
                return None
            self._owners.update(dict.fromkeys(claimed, name))
            self._families[name] = family = _Family(kind, text)
        return family if family.kind == kind else None

    def render(self) -> bytes:
        """Return the page, UTF-8; families without a sample are left out. What cannot be encoded becomes '?'."""
        parts: list[str] = []
        for name, family in self._families.items():
            if family.samples or family.columns or family.blocks:
                parts.append(self._header(name, family))
                parts.extend(_samples(name, family.samples, map(float, family.samples.values())))
                for column in family.columns.values():
                    parts.extend(_samples(name, column.told(), column.values.tolist()))
                parts.extend(told.filled(whose) for told, whose in family.blocks.values())
                parts.append("\n")
        return "".join(parts).encode("utf-8", "replace")

    def _header(self, name: str, family: _Family) -> str:
        # No line's end behind it: every sample has one before it.
        if self._openmetrics:
            called = name.removesuffix("_total") if family.kind == "counter" else name
            return f"# HELP {called} {family.text.translate(_OPENMETRICS_HELP)}\n# TYPE {called} {family.kind}"
        return f"# HELP {name} {family.text.translate(_TEXT_HELP)}\n# TYPE {name} {family.kind}"


def _samples(name: str, pairs: Collection[str], values: Iterable[float]) -> list[str]:
    text = [" "] * (4 * len(pairs))
    text[::4] = [f"\n{name}"] * len(pairs)
    text[1::4] = pairs
    text[3::4] = _numbers(values)
    return text
