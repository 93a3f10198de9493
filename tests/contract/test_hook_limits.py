"""What the hooks cut must fit what a collector takes: one text too long costs the whole push."""

from __future__ import annotations

from collector.limits import Limits
from spark_hooks import accumulators, frames, native, observed, operator_names, plan


def test_names_and_descriptions_of_plans_fit_the_collectors_limits() -> None:
    """With room for what redaction puts in a secret's place."""
    limits = Limits()
    assert limits.name_chars >= operator_names.NAME_LENGTH
    assert limits.name_chars >= plan.CHAIN_LENGTH
    assert limits.text_chars >= 2 * plan.DESCRIPTION_LENGTH


def test_native_metrics_and_observed_ones_fit_the_collectors_limits() -> None:
    """With room for the number that makes a name unique."""
    limits = Limits()
    assert limits.accumulators >= accumulators.COLUMNS
    assert limits.columns >= accumulators.COLUMNS
    assert limits.metric_chars >= native.NAME_LENGTH + 10
    assert limits.metric_chars >= frames.METRIC_CHARS
    assert limits.scalars >= observed.COLUMNS
