"""What a watermark says beyond its number: whether there is one yet, and whether the input has ended."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from streamgauge import wire
from streamgauge.watermarks import END_OF_INPUT_MS, NO_WATERMARK_MS


def standing_ms(watermark_ms: int, max_out_of_orderness_ms: int = 0) -> int | None:
    """
    Return the time at which a watermark stands, Unix ms; None before there is one and at the end of input.

    Args:
        max_out_of_orderness_ms: Of the generator that it may come from: as Flink's starts so much above Long.MIN_VALUE,
            and 1 ms, nothing up to there is a time.

    Any thread.

    Source: Flink's `BoundedOutOfOrdernessWatermarks`.
    """
    if watermark_ms >= END_OF_INPUT_MS or watermark_ms <= NO_WATERMARK_MS + max_out_of_orderness_ms + 1:
        return None
    return watermark_ms


def standing(watermarks_ms: wire.Array) -> npt.NDArray[np.bool_]:
    """Return which of many watermarks stand at a time, as `standing_ms` tells of each; any thread."""
    found: npt.NDArray[np.bool_] = (watermarks_ms < END_OF_INPUT_MS) & (watermarks_ms > NO_WATERMARK_MS + 1)
    return found
