"""What the hooks cut must fit what a collector takes: one text too long costs the whole push."""

from __future__ import annotations

from collector.limits import Limits
from spark_hooks import (
    accumulators,
    batch_tasks,
    checkpoints,
    frames,
    latencies,
    native,
    observed,
    operator_names,
    plan,
    tap_rows,
    taps,
)
from streamgauge import names
from streamgauge.buckets import BUCKET_COUNT, DEFAULT_HISTORY_SIZE


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


def test_micro_batches_fit_the_collectors_limits() -> None:
    """As many as are held, each with as much as is told of one, and all of them within what a job may take."""
    limits = Limits()
    held = checkpoints.HELD + 2
    assert limits.checkpoints >= held
    assert limits.vertices >= batch_tasks.VERTICES
    assert limits.subtasks >= batch_tasks.SUBTASKS
    assert limits.job_series >= 4 * 4 * batch_tasks.SUBTASKS * held


def test_latencies_fit_the_collectors_limits() -> None:
    """Windows of source subtasks, all at one vertex in the worst case; all rings of a run, as figures that travel."""
    limits = Limits()
    assert limits.latencies >= 2 * latencies.SUBTASK_WINDOWS
    figures = 1 + len(names.LATENCY_STATISTICS)
    assert limits.job_series >= figures * (latencies.VALUES // DEFAULT_HISTORY_SIZE)


def test_taps_fit_the_collectors_limits() -> None:
    """As many as are followed, all at one vertex, each with two distributions, and timers besides; names as cut."""
    limits = Limits()
    assert limits.taps >= taps.TAPS
    assert limits.splits >= tap_rows.MAX_SPLITS
    assert limits.metric_chars >= tap_rows.MAX_SPLIT_CHARS
    assert limits.metric_chars >= frames.METRIC_CHARS + len(f" {tap_rows.MAX_SPLITS}")
    assert limits.distributions >= 2 * taps.TAPS + limits.operators
    split_values = tap_rows.MAX_SPLITS * (1 + len(names.SPLIT_METRICS))
    assert limits.job_series >= taps.TAPS * split_values + 2 * taps.TAPS * BUCKET_COUNT
