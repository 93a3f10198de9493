"""The spread of a figure, against what a real Flink told of known values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_hooks import spreads
from spark_hooks.spreads import Spread
from streamgauge import wire

RECORDINGS = Path(__file__).parents[2] / "contract" / "flink"


def spread(*values: int) -> wire.Spread | None:
    found = Spread()
    for value in values:
        found.add(value)
    return found.told()


def test_nothing_has_no_spread() -> None:
    """Zeros would be figures that nobody measured."""
    assert spread() is None


@pytest.mark.parametrize("figure", ["end_to_end_duration", "state_size", "checkpointed_size"])
def test_spread_is_flinks(figure: str) -> None:
    """Of a Flink job whose only two checkpoints are all in its history: average and quantiles as it told them."""
    recorded = json.loads((RECORDINGS / "finite__checkpoints.json").read_text())
    told = spread(*(checkpoint[figure] for checkpoint in reversed(recorded["history"])))
    assert told is not None
    assert {name: getattr(told, name) for name in told.__struct_fields__} == recorded["summary"][figure]


def test_average_is_rounded_down() -> None:
    """Flink divides integers."""
    told = spread(1, 2)
    assert told is not None
    assert told.avg == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=300), st.integers(64, 128))
def test_bounds_are_of_all_and_quantiles_of_the_latest(values: list[int], window: int) -> None:
    """Whatever the room has grown to; the window is made small here, so that it is passed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spreads, "WINDOW", window)
        told = spread(*values)
    assert told is not None
    assert (told.min, told.max, told.avg) == (min(values), max(values), sum(values) // len(values))
    quantiles = np.quantile(values[-window:], [0.5, 0.9, 0.95, 0.99, 0.999], method="weibull").tolist()
    assert [told.p50, told.p90, told.p95, told.p99, told.p999] == quantiles


def test_room_is_bounded() -> None:
    """A run of years holds the latest values alone."""
    found = Spread()
    for value in range(spreads.WINDOW * 2 + 7):
        found.add(value)
    assert len(found._ring) == spreads.WINDOW
    told = found.told()
    assert told is not None
    assert told.min == 0
    assert told.p50 == np.median(range(spreads.WINDOW + 7, spreads.WINDOW * 2 + 7))
