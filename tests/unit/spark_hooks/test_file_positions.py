"""How far a stream of files has been read."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.file_positions import FilePositions, Position


def positions(*unread: int | None) -> list[Position]:
    found = FilePositions()
    return [found.take(each) for each in unread]


def test_a_listing_is_read_file_by_file() -> None:
    """Five files, one a batch: what was listed at first has been read when nothing is left."""
    assert positions(4, 3, 2, 1, None) == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_zero_left_is_the_end_of_a_listing_as_none_kept_is() -> None:
    """Both say that it has been read."""
    assert positions(2, 0) == positions(2, None) == [(0, 2), (2, 2)]


def test_next_listing_goes_on_from_the_one_before() -> None:
    """Positions never go back."""
    assert positions(2, 1, None, 3, 1, None) == [(0, 2), (1, 2), (2, 2), (2, 5), (4, 5), (5, 5)]


def test_listing_that_is_no_shorter_is_another_one() -> None:
    """The batch that ended the one before was not seen: it has been read all the same."""
    assert positions(2, 2, 5) == [(0, 2), (2, 4), (4, 9)]


def test_stream_that_is_always_read_to_its_end_stays_where_it_is() -> None:
    """Whatever was there at a trigger has been read by that batch."""
    assert positions(None, None, 0) == [(0, 0)] * 3


@given(st.lists(st.one_of(st.none(), st.integers(0, 50))))
def test_positions_only_grow(unread: list[int | None]) -> None:
    """Whatever is told, and what was read had been listed."""
    found = positions(*unread)
    for before, after in pairwise(found):
        assert before.read <= after.read
        assert before.listed <= after.listed
    for each, left in zip(found, unread, strict=True):
        assert each.listed - each.read == (left or 0)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.integers(1, 4))
def test_what_was_listed_has_been_read_when_the_position_says_so(arriving: list[int], most: int) -> None:
    """
    Against a stream of files itself: it lists when it has nothing left, and reads `most` files a batch.

    The first batch whose `read` has reached a batch's `listed` is the first by whose end all files have been read
    that were known at that batch's trigger.
    """
    found = FilePositions()
    there, read = 0, 0
    listing: list[int] = []
    known: list[int] = []
    done: list[int] = []
    told: list[Position] = []
    for files in [*arriving, *[0] * sum(arriving)]:
        there += files
        if not listing:
            listing = list(range(read, there))
        if not listing:
            continue
        known.append(listing[-1] + 1)
        listing, taken = listing[most:], listing[:most]
        read = taken[-1] + 1
        done.append(read)
        told.append(found.take(len(listing) or None))
    for batch, position in enumerate(told):
        expected = next(later for later in range(batch, len(done)) if done[later] >= known[batch])
        assert next(later for later in range(batch, len(told)) if told[later].read >= position.listed) == expected
