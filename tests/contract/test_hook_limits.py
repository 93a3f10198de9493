"""What the hooks cut must fit what a collector takes: one text too long costs the whole push."""

from __future__ import annotations

from collector.limits import Limits
from spark_hooks import batch_tasks, checkpoints, plan


def test_names_and_descriptions_of_plans_fit_the_collectors_limits() -> None:
    """With room for what redaction puts in a secret's place."""
    limits = Limits()
    assert limits.name_chars >= plan.NAME_LENGTH
    assert limits.name_chars >= plan.CHAIN_LENGTH
    assert limits.text_chars >= 2 * plan.DESCRIPTION_LENGTH


def test_micro_batches_fit_the_collectors_limits() -> None:
    """As many as are held, each with as much as is told of one, and all of them within what a job may take."""
    limits = Limits()
    held = checkpoints.HELD + 2
    assert limits.checkpoints >= held
    assert limits.vertices >= batch_tasks.VERTICES
    assert limits.subtasks >= batch_tasks.SUBTASKS
    assert limits.job_series >= 4 * 4 * batch_tasks.SUBTASKS * held
