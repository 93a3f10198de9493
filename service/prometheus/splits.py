"""The splits of taps in /metrics: what an alert asks of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from collector.store import VertexState
from collector.taps import figures
from service.prometheus.blocks import Blocks
from service.prometheus.labels import labels
from service.prometheus.text import Exposition, Value
from service.watermarks import standing_ms
from streamgauge import names, wire
from streamgauge.watermarks import NO_WATERMARK_MS

_LAG = "lag"


@dataclass(frozen=True, slots=True)
class SplitFamily:
    """
    A family of splits in /metrics.

    Args:
        metric: `names.SPLIT_…`, or _LAG, which is made of the watermark.
        divisor: From the metric's unit to the base unit; 1.0 leaves integers as they are.
    """

    name: str
    kind: Literal["counter", "gauge"]
    metric: str
    help: str
    divisor: float = 1.0


FAMILIES = (
    SplitFamily(
        "streamgauge_split_watermark_timestamp_seconds",
        "gauge",
        names.SPLIT_CURRENT_WATERMARK,
        "The split's watermark, as Unix time; absent before there is one and at the end of input.",
        1e3,
    ),
    SplitFamily(
        "streamgauge_split_watermark_lag_seconds",
        "gauge",
        _LAG,
        "By how much the split's watermark is behind the service's clock; absent where there is none.",
        1e3,
    ),
    SplitFamily(
        "streamgauge_split_watermark_drift_seconds",
        "gauge",
        names.SPLIT_WATERMARK_DRIFT,
        "By how much the split's watermark is behind the greatest of the tap's splits that are not idle.",
        1e3,
    ),
    SplitFamily(
        "streamgauge_split_records_total", "counter", names.SPLIT_RECORDS, "Records of the split, in this run."
    ),
    SplitFamily(
        "streamgauge_split_records_at_risk_total",
        "counter",
        names.SPLIT_RECORDS_AT_RISK,
        "Records of the split that were behind Spark's watermark, in this run.",
    ),
    SplitFamily(
        "streamgauge_split_idle", "gauge", names.SPLIT_IDLE, "1 while the split counts as idle, 0 while it does not."
    ),
)


def expose_splits(
    exposition: Exposition, vertex: VertexState, whose: Mapping[str, str], now_ms: int, blocks: Blocks
) -> None:
    """
    Add the splits of a vertex' taps, none by subtask.

    Args:
        whose: Labels of the vertex.
        now_ms: Wall time.
    """
    for place, tap in enumerate(vertex.taps.taps):
        told = figures(tap)
        standing: list[Value | None] = [*_standing(tap, told)]
        told[_LAG] = [None if since is None else now_ms - since for since in standing]
        told[names.SPLIT_CURRENT_WATERMARK] = standing
        of_tap = {**whose, "tap": tap.name}
        key, made_of = ("tap", *whose.values(), place), (tap.name, tap.splits)
        pairs = blocks.get(key, made_of, partial(_labels, of_tap, tap.splits))
        for family in FAMILIES:
            exposition.add(
                family.name,
                family.kind,
                family.help,
                (
                    (pair, value if family.divisor == 1.0 else value / family.divisor)
                    for pair, value in zip(pairs, told.get(family.metric, ()), strict=False)
                    if value is not None
                ),
            )


def _labels(of_tap: Mapping[str, str], splits: Sequence[str]) -> list[str]:
    return [labels({**of_tap, "split": split}) for split in splits]


def _standing(tap: wire.Tap, told: Mapping[str, Sequence[Value | None]]) -> Iterator[int | None]:
    for value in told.get(names.SPLIT_CURRENT_WATERMARK, ()):
        yield standing_ms(NO_WATERMARK_MS if value is None else int(value), tap.max_out_of_orderness_ms)
