"""Snapshots, and looking jobs up in them."""

from __future__ import annotations

import pytest

from streamgauge.errors import UnknownJob


def test_unknown_job_is_named(collector, frames):
    """A job that was never seen raises, naming it."""
    with pytest.raises(UnknownJob, match=f"Job {frames.JID} not found"):
        collector.store.snapshot().job(frames.JID)


def test_snapshot_that_is_held_does_not_change(collector, frames):
    """What a read returned stays as it was, whatever is written later."""
    empty = collector.store.snapshot()
    collector.push(frames.frame(), frames.app_frame())
    assert (len(empty.jobs), len(empty.apps)) == (0, 0)
    assert (len(collector.store.snapshot().jobs), len(collector.store.snapshot().apps)) == (1, 1)


def test_snapshot_cannot_be_written_to(collector, frames):
    """The mappings of a snapshot refuse assignment."""
    collector.push(frames.frame())
    with pytest.raises(TypeError, match="does not support item assignment"):
        collector.store.snapshot().jobs[frames.JID] = collector.job()
