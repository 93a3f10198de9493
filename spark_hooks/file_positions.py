"""How far a stream of files has been read, in files that Spark had listed."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """
    Of one micro-batch, in files since the run was first seen; both only grow.

    Args:
        read: Listed files that are known to have been read when it ended.
        listed: Those, and the ones that were still to be read.
    """

    read: int
    listed: int


class FilePositions:
    """
    The positions of one stream of files over the micro-batches of a run. Not thread safe.

    Spark lists the files that are there, reads some in each micro-batch, and lists anew when none is left. Its own
    offset, the number of batches that read something, does not tell how many are left. What had been listed at the
    trigger of a batch has been read by the first batch whose `read` is not less than that one's `listed`.

    Spark keeps 10,000 listed files at most (`maxCachedFiles`), and drops a rest that is much smaller than a batch
    (`discardCachedInputRatio`), to find it again in the next listing: these count as read a batch too early.
    """

    def __init__(self) -> None:
        self._unread = 0
        self._position = Position(0, 0)

    def take(self, unread: int | None) -> Position:
        """
        A micro-batch ended.

        Args:
            unread: Files that were listed and left when it began, not negative; None where no listing is kept: it has
                been read to its end, and so it has where it is 0.

        Returns:
            Where the batch ended.
        """
        read, listed = self._position
        # A listing only gets shorter: one that has not is another, and the one before was read to its end.
        if unread and unread < self._unread:
            read += self._unread - unread
        else:
            read = listed
        self._unread = unread or 0
        self._position = Position(read, read + self._unread)
        return self._position
