"""Whether the buckets of a histogram may come in: that they are of HdrHistogram's layout, and count what can be."""

from __future__ import annotations

import numpy as np

from streamgauge import wire
from streamgauge.buckets import BUCKET_COUNT, HIGHEST_COUNTED_MS, MAX_COUNT
from streamgauge.errors import MalformedFrame


def check_buckets(where: str, told: wire.Buckets) -> None:
    """
    Check buckets against their layout; any thread.

    Args:
        where: Names them in messages.

    Raises:
        MalformedFrame: lengths, indices or counts are not as `wire.Buckets` says, or the sum is none of such values.
    """
    filled, odd = divmod(len(told.indices), 2)
    if odd or len(told.counts) != 8 * filled:
        raise MalformedFrame(
            f"{where}: {len(told.indices)} bytes of indices and {len(told.counts)} of counts, expected 2 and 8 for "
            "each bucket"
        )
    for field in ("below", "above"):
        value: int = getattr(told, field)
        if not 0 <= value <= MAX_COUNT:
            raise MalformedFrame(f"{where}: {value} values {field}, expected 0 to {MAX_COUNT}")
    count = 0
    if filled:
        indices = np.frombuffer(told.indices, dtype="<u2").astype(np.int64)
        if indices[-1] >= BUCKET_COUNT or not (np.diff(indices) > 0).all():
            raise MalformedFrame(f"{where}: the buckets' indices do not ascend within 0 to {BUCKET_COUNT - 1}")
        counts = np.frombuffer(told.counts, dtype="<i8")
        if counts.min() < 1 or counts.max() > MAX_COUNT:
            raise MalformedFrame(
                f"{where}: the buckets' counts reach from {counts.min()} to {counts.max()}, expected 1 to {MAX_COUNT}"
            )
        # At most 2,048 counts of at most 2^53 are less than 2^64 and, as float64, near enough to tell.
        if counts.sum(dtype=np.float64) > MAX_COUNT:
            raise MalformedFrame(f"{where}: more than {MAX_COUNT} values in all buckets together")
        count = int(counts.sum())
    greatest = min(count * HIGHEST_COUNTED_MS, 2**63 - 1)
    if not 0 <= told.sum_ms <= greatest:
        raise MalformedFrame(
            f"{where}: the sum of {count} values is {told.sum_ms} ms, expected 0 to {greatest}: each is at most "
            f"{HIGHEST_COUNTED_MS} ms"
        )
