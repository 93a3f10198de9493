"""Prometheus' text format: families in the order they came, each series once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge"]
Value = int | float

_LABEL = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_PAIRS = "\0"
"""Where a block's labels go: no name and no number has it."""


def labels(pairs: Mapping[str, str]) -> str:
    """Return label pairs as they stand between the braces, values escaped; names are the caller's to get right."""
    return ",".join(f'{name}="{value.translate(_LABEL)}"' for name, value in pairs.items())


def number(value: Value) -> str:
    """Return a sample's value: an integer plainly, a float by its shortest digits, NaN, +Inf or -Inf."""
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def histogram_lines(name: str, buckets: Iterable[tuple[float, int]], count: int, total: float) -> str:
    """
    Return the samples of a histogram, their labels left out: several that are alike are written once.

    Args:
        name: Of the family.
        buckets: Upper bound, inclusive and finite, and how many values are at most that; ascending.
        count: Of all values.
        total: Sum of them.
    """
    lines = [f'{name}_bucket{{{_PAIRS},le="{number(bound)}"}} {number(float(upto))}\n' for bound, upto in buckets]
    lines.append(f'{name}_bucket{{{_PAIRS},le="+Inf"}} {number(float(count))}\n')
    lines.append(f"{name}_count{{{_PAIRS}}} {number(float(count))}\n")
    lines.append(f"{name}_sum{{{_PAIRS}}} {number(float(total))}\n")
    return "".join(lines)


def summary_lines(name: str, quantiles: Iterable[tuple[float, float]], count: int) -> str:
    """
    Return the samples of a summary, their labels left out; it has no sum, as Flink's have none.

    Args:
        name: Of the family.
        quantiles: 0 to 1, and the value there.
        count: Of all values.
    """
    lines = [f'{name}{{{_PAIRS},quantile="{number(rank)}"}} {number(value)}\n' for rank, value in quantiles]
    lines.append(f"{name}_count{{{_PAIRS}}} {number(float(count))}\n")
    return "".join(lines)


@dataclass(slots=True)
class _Family:
    """`samples` of one line each by their labels; `blocks` of lines by those that the lines have in common."""

    header: str
    samples: dict[str, Value] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)


class Exposition:
    """
    Collects samples and renders them.

    Not thread safe. A series that comes a second time is left out: one duplicate would make Prometheus refuse
    the whole scrape.
    """

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def add(self, name: str, kind: Kind, text: str, series: Iterable[tuple[str, Value]]) -> None:
        """
        Add samples to a family, which the first call describes.

        Args:
            name: Of the family and of its samples; counters end in _total.
            kind: Its type.
            text: Its help.
            series: Labels, as `labels` returns them, and value.
        """
        samples = self._family(name, kind, text).samples
        for pairs, value in series:
            samples.setdefault(pairs, value)

    def add_block(self, name: str, kind: Literal["histogram", "summary"], text: str, pairs: str, lines: str) -> None:
        """
        Add one histogram or summary to a family of such, which the first call describes.

        Args:
            pairs: Labels, as `labels` returns them; at least one.
            lines: As `histogram_lines` or `summary_lines` returns them.
        """
        blocks = self._family(name, kind, text).blocks
        if pairs not in blocks:
            blocks[pairs] = lines.replace(_PAIRS, pairs)

    def _family(self, name: str, kind: Kind | Literal["histogram", "summary"], text: str) -> _Family:
        family = self._families.get(name)
        if family is None:
            family = _Family(f"# HELP {name} {text.translate(_HELP)}\n# TYPE {name} {kind}\n")
            self._families[name] = family
        return family

    def render(self) -> bytes:
        """Return the text, UTF-8; families without a sample are left out."""
        parts = []
        for name, family in self._families.items():
            if family.samples or family.blocks:
                parts.append(family.header)
                parts.extend(
                    f"{name}{{{pairs}}} {number(value)}\n" if pairs else f"{name} {number(value)}\n"
                    for pairs, value in family.samples.items()
                )
                parts.extend(family.blocks.values())
        return "".join(parts).encode()
