"""What the hooks cut must fit what a collector takes: one text too long costs the whole push."""

from __future__ import annotations

from collector.limits import Limits
from spark_hooks import plan


def test_names_and_descriptions_of_plans_fit_the_collectors_limits() -> None:
    """With room for what redaction puts in a secret's place."""
    limits = Limits()
    assert limits.name_chars >= plan.NAME_LENGTH
    assert limits.name_chars >= plan.CHAIN_LENGTH
    assert limits.text_chars >= 2 * plan.DESCRIPTION_LENGTH
