"""What full frames and deltas make of the taps and distributions before them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from collector.taps import figures
from streamgauge import names, wire
from streamgauge.errors import MalformedFrame

SECOND = "e" * 32


@pytest.fixture
def held(collector, frames):
    """A vertex of two operators, each tapped, with a distribution each."""
    plan = frames.plan(frames.vertex(operators=(frames.OPERATOR, SECOND)))
    shares = wire.column(names.SPLIT_IDLE_TIME, np.array([5, 6]))
    first = frames.tap(7, 9)
    first = msgspec.structs.replace(first, columns=(*first.columns, shares))
    told = frames.figures(
        taps=(first, frames.tap(1, name="other", operator=SECOND)),
        distributions=(
            frames.distribution(3, 3, 5),
            frames.distribution(8, operator=SECOND, metric=names.TIMER_LATENESS),
        ),
    )
    collector.push(frames.frame(plan=plan, vertices=(told,)))
    return collector


def _of(collector, frames):
    return collector.job().vertices[frames.VERTEX].taps


def _delta(frames, **changes):
    return frames.frame(seq=2, base=1, vertices=(frames.figures(**changes),))


def test_everything_that_is_held_is_counted(held, frames):
    """Six numbers a tap, a name and a value a column for each split; of a distribution its buckets and four more."""
    assert _of(held, frames).series == (6 + 2 * (1 + 3)) + (6 + 1 * (1 + 2)) + (4 + 2) + (4 + 1)
    assert held.job().series == _of(held, frames).series


def test_delta_replaces_all_taps(held, frames):
    """One that is no longer told is gone; distributions stay."""
    before = _of(held, frames)
    held.push(_delta(frames, taps=(frames.tap(8),)))
    after = _of(held, frames)
    assert [(tap.name, figures(tap)[names.SPLIT_CURRENT_WATERMARK]) for tap in after.taps] == [("by partition", [8])]
    assert after.distributions == before.distributions
    assert after.series < before.series


def test_delta_without_taps_can_take_them_away(held, frames):
    """An empty list is told, None is not."""
    held.push(_delta(frames, taps=()))
    assert _of(held, frames).taps == ()


def test_delta_replaces_the_distributions_it_has_and_keeps_the_rest(held, frames):
    """By operator and metric; each is of the whole run."""
    before = _of(held, frames)
    held.push(
        _delta(frames, distributions=(frames.distribution(9, metric=names.RECORD_QUEUEING), frames.distribution(4)))
    )
    after = _of(held, frames)
    assert after.taps is before.taps
    assert dict(after.distributions) == {
        (frames.OPERATOR, names.RECORD_LATENCY): frames.buckets(4),
        (SECOND, names.TIMER_LATENESS): frames.buckets(8),
        (frames.OPERATOR, names.RECORD_QUEUEING): frames.buckets(9),
    }


def test_delta_without_either_keeps_both(held, frames):
    """Nothing was said, nothing has changed."""
    before = _of(held, frames)
    held.push(_delta(frames, columns=(frames.column("numRecordsIn", 1, 2),)))
    assert _of(held, frames) is before


def test_full_frame_tells_all(held, frames):
    """What a full frame does not repeat is gone."""
    held.push(frames.frame(seq=2, vertices=(frames.figures(distributions=(frames.distribution(1),)),)))
    after = _of(held, frames)
    assert (after.taps, list(after.distributions)) == ((), [(frames.OPERATOR, names.RECORD_LATENCY)])


def test_ended_job_keeps_all_but_shares_of_time(held, frames):
    """A split that reads no more has no share of a second; its watermark is what one looks for."""
    before = _of(held, frames)
    held.push(frames.frame(seq=2, base=1, job=frames.job(state="FINISHED")))
    after = _of(held, frames)
    assert list(figures(after.taps[0])) == [names.SPLIT_CURRENT_WATERMARK, names.SPLIT_RECORDS]
    assert after.taps[1] == before.taps[1]
    assert after.distributions == before.distributions
    assert after.series == before.series - 2


def test_plan_that_lost_an_operator_takes_its_taps_along(held, frames):
    """What cannot be shown must not be held."""
    held.push(frames.frame(seq=2, base=1, plan=frames.plan(frames.vertex(operators=(frames.OPERATOR,)))))
    after = _of(held, frames)
    assert [tap.operator for tap in after.taps] == [frames.OPERATOR]
    assert list(after.distributions) == [(frames.OPERATOR, names.RECORD_LATENCY)]
    assert held.job().series == after.series


def test_plan_that_has_all_keeps_the_same_taps(held, frames):
    """A plan that comes again copies nothing."""
    before = _of(held, frames)
    plan = frames.plan(frames.vertex(operators=(frames.OPERATOR, SECOND)))
    held.push(frames.frame(seq=2, base=1, plan=plan))
    assert _of(held, frames) is before


def test_splits_need_not_be_as_many_as_subtasks(held, frames):
    """A vertex that grows does not need its taps anew."""
    before = _of(held, frames)
    held.push(_delta(frames, size=9))
    assert _of(held, frames) is before


@pytest.mark.parametrize("told", ["tap", "distribution"])
def test_operator_that_is_not_in_the_plan_is_malformed(held, frames, told):
    """It is one of the vertex, and the remedy is to send the plan."""
    before = held.store.snapshot()
    unknown = "f" * 32
    changes = (
        {"taps": (frames.tap(1, operator=unknown),)}
        if told == "tap"
        else {"distributions": (frames.distribution(1, operator=unknown),)}
    )
    with pytest.raises(MalformedFrame, match=rf"operator 'f+' of (a )?{told}.* is not in the vertex's plan: send"):
        held.push(_delta(frames, **changes))
    assert held.store.snapshot() is before


def test_figures_have_none_where_a_split_has_no_value(frames):
    """What is not known is absent, not 0."""
    column = wire.column(names.SPLIT_WATERMARK_DRIFT, np.array([4, 0, 6]), np.array([True, False, True]))
    tap = frames.tap(1, 2, 3, columns=(column,))
    assert figures(tap) == {names.SPLIT_WATERMARK_DRIFT: [4, None, 6]}
