"""Sizes are read as Spark reads them."""

from __future__ import annotations

import pytest

from streamgauge.sizes import GIB, KIB, MIB, size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1g", GIB),
        ("512m", 512 * MIB),
        ("512MB", 512 * MIB),
        ("7k", 7 * KIB),
        ("2T", 2 << 40),
        ("1pb", 1 << 50),
        ("100b", 100),
        ("0", 0),
        ("384", 384 * MIB),
        (" 1g ", GIB),
    ],
)
def test_a_size_is_read(text: str, expected: int) -> None:
    """Without a suffix the setting's own unit counts."""
    assert size(text, MIB) == expected


@pytest.mark.parametrize("text", ["", "g", "0.5g", "1 g", "1x", "1gg", "-1", "1bb", "*********(redacted)", "9" * 20])
def test_what_is_no_size_is_none(text: str) -> None:
    """Spark would refuse it too, or it is hidden."""
    assert size(text, MIB) is None
