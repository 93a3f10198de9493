"""Which triggers have an interval."""

from __future__ import annotations

import pytest

from spark_hooks.triggers import interval_ms


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("ProcessingTimeTrigger(5000)", 5000),
        ("ProcessingTimeTrigger(0)", 0),
        ("AvailableNowTrigger", None),
        ("OneTimeTrigger", None),
        ("RealTimeTrigger(5000)", None),
        ("ContinuousTrigger(1000)", None),
        ("ProcessingTimeTrigger(5000) or so", None),
        ("", None),
    ],
)
def test_only_processing_time_has_an_interval(trigger: str, expected: int | None) -> None:
    """Triggers as Spark prints them; the others begin a micro-batch for reasons of their own."""
    assert interval_ms(trigger) == expected
