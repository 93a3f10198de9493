"""
Generator, idleness timer and multiplexer against models that look at all that ever happened.

Each model is the definition, worked out anew from the whole history at every step, and keeps no state of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.watermarks import (
    END_OF_INPUT_MS,
    NO_WATERMARK_MS,
    BoundedOutOfOrderness,
    IdlenessTimer,
    WatermarkMultiplexer,
)


@given(st.integers(0, 10_000), st.lists(st.integers(-(10**15), 10**15)))
def test_generator_equals_the_greatest_of_all_records(delay_ms: int, events_ms: list[int]) -> None:
    """Delay and 1 ms before the greatest; before there is one, the least watermark."""
    generator = BoundedOutOfOrderness(delay_ms)
    for count, event_ms in enumerate(events_ms, 1):
        generator.observe(event_ms)
        assert generator.watermark_ms == max(events_ms[:count]) - delay_ms - 1
    if not events_ms:
        assert generator.watermark_ms == NO_WATERMARK_MS


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=40))
def test_idleness_equals_its_definition(timeout_ms: int, looks: list[tuple[int, bool]]) -> None:
    """Idle at a look: more than the timeout after the first of the looks without a record that end with it."""
    now_ms = 0
    timer = IdlenessTimer(timeout_ms, lambda: now_ms)
    history: list[tuple[int, bool]] = []
    for passed_ms, record in looks:
        now_ms += passed_ms
        if record:
            timer.activity()
        history.append((now_ms, record))
        without = [
            look_ms
            for place, (look_ms, _) in enumerate(history)
            if not any(there_was_one for _, there_was_one in history[place:])
        ]
        assert timer.is_idle() == (bool(without) and now_ms - without[0] > timeout_ms)


class Step(NamedTuple):
    """Something that happens; `watermark_ms` means something where one is emitted."""

    kind: str
    split: str = ""
    watermark_ms: int = 0


def steps() -> st.SearchStrategy[list[Step]]:
    splits, moments = st.sampled_from("abcd"), st.integers(0, 12)
    return st.lists(
        st.one_of(
            st.builds(Step, st.just("emit"), splits, moments),
            st.builds(Step, st.sampled_from(["idle", "add", "remove"]), splits),
            st.just(Step("combine")),
        ),
        max_size=60,
    )


def life(history: list[Step], split: str) -> list[Step] | None:
    """What a split did since it was last added; None where it is not there."""
    own = [step for step in history if step.split == split]
    there = [place for place, step in enumerate(own) if step.kind in ("add", "remove")]
    return own[there[-1] + 1 :] if there and own[there[-1]].kind == "add" else None


def watermark_of(own: list[Step]) -> int:
    return max((step.watermark_ms for step in own if step.kind == "emit"), default=NO_WATERMARK_MS)


def is_idle(own: list[Step]) -> bool:
    return bool(own) and own[-1].kind == "idle"


def least(history: list[Step]) -> int | None:
    """The least watermark of the splits that are not idle; None where there is none."""
    lives = [own for own in (life(history, split) for split in "abcd") if own is not None and not is_idle(own)]
    return min(map(watermark_of, lives), default=None)


def combined(history: list[Step]) -> tuple[int, bool]:
    """The greatest of all that the least ever was at a look, and whether all splits were idle at the last one."""
    watermark_ms, idle = NO_WATERMARK_MS, False
    for place, step in enumerate(history):
        before = history[:place]
        if step.kind == "combine" and any(life(before, split) is not None for split in "abcd"):
            found = least(before)
            idle = found is None
            watermark_ms = max(watermark_ms, NO_WATERMARK_MS if found is None else found)
    return watermark_ms, idle


@given(steps())
def test_multiplexer_equals_the_least_of_active_splits_at_its_looks(planned: list[Step]) -> None:
    """Splits come, turn idle, return and finish; the combined watermark, each split's and the drift follow."""
    multiplexer, history = WatermarkMultiplexer(), list[Step]()
    for step in planned:
        if step.kind != "combine" and (life(history, step.split) is None) is not (step.kind == "add"):
            continue
        history.append(step)
        if step.kind == "combine":
            before, _ = combined(history[:-1])
            assert multiplexer.combine() == (combined(history)[0] > before)
        elif step.kind == "emit":
            multiplexer.emit(step.split, step.watermark_ms)
        else:
            {"idle": multiplexer.mark_idle, "add": multiplexer.add, "remove": multiplexer.remove}[step.kind](step.split)
        assert (multiplexer.watermark_ms, multiplexer.idle) == combined(history)
        present = {split: own for split in "abcd" if (own := life(history, split)) is not None}
        moving = [watermark_of(own) for own in present.values() if not is_idle(own)]
        for split, own in present.items():
            mark = watermark_of(own)
            unknown = not moving or NO_WATERMARK_MS in (mark, max(moving))
            assert (multiplexer.watermark_of(split), multiplexer.is_idle(split)) == (mark, is_idle(own))
            assert multiplexer.drifts_ms()[split] == (None if unknown else max(moving) - mark)
    multiplexer.end()
    assert (multiplexer.watermark_ms, multiplexer.idle) == (END_OF_INPUT_MS, False)
