"""What observe() saw becomes metrics."""

from __future__ import annotations

from spark_hooks.observed import COLUMNS, observed


def test_values_stay_what_they_are() -> None:
    """Numbers, truth values and text; all else is JSON; null is absent."""
    row = {"n": 3, "x": 0.5, "ok": True, "word": "é", "all": [1, {"a": "ü"}], "none": None, "big": 2**70}
    assert observed({"seen": row, "odd": [1]}) == {
        "seen.n": 3,
        "seen.x": 0.5,
        "seen.ok": True,
        "seen.word": "é",
        "seen.all": '[1, {"a": "ü"}]',
        "seen.big": str(2**70),
    }


def test_columns_are_bounded() -> None:
    """A user may observe more than a collector takes."""
    assert len(observed({"seen": {str(number): number for number in range(COLUMNS + 9)}})) == COLUMNS
