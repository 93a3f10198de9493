"""Prometheus' text format: families in the order they came, each series once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge"]
Value = int | float

_LABEL = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n"})


def labels(pairs: Mapping[str, str]) -> str:
    """Return label pairs as they stand between the braces, values escaped; names are the caller's to get right."""
    return ",".join(f'{name}="{value.translate(_LABEL)}"' for name, value in pairs.items())


def number(value: Value) -> str:
    """Return a sample's value: an integer plainly, a float by its shortest digits, NaN, +Inf or -Inf."""
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


class Exposition:
    """
    Collects samples and renders them.

    Not thread safe. A series that comes a second time is left out: one duplicate would make Prometheus refuse
    the whole scrape.
    """

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, dict[str, Value]]] = {}

    def add(self, name: str, kind: Kind, text: str, series: Iterable[tuple[str, Value]]) -> None:
        """
        Add samples to a family, which the first call describes.

        Args:
            name: Of the family and of its samples; counters end in _total.
            kind: Its type.
            text: Its help.
            series: Labels, as `labels` returns them, and value.
        """
        family = self._families.get(name)
        if family is None:
            header = f"# HELP {name} {text.translate(_HELP)}\n# TYPE {name} {kind}\n"
            family = self._families[name] = (header, {})
        samples = family[1]
        for pairs, value in series:
            samples.setdefault(pairs, value)

    def render(self) -> bytes:
        """Return the text, UTF-8; families without a sample are left out."""
        parts = []
        for name, (header, samples) in self._families.items():
            if samples:
                parts.append(header)
                parts.extend(
                    f"{name}{{{pairs}}} {number(value)}\n" if pairs else f"{name} {number(value)}\n"
                    for pairs, value in samples.items()
                )
        return "".join(parts).encode()
