"""What a watermark says beyond its number."""

from __future__ import annotations

import numpy as np
import pytest

from service.watermarks import standing, standing_ms
from streamgauge.watermarks import END_OF_INPUT_MS, NO_WATERMARK_MS


@pytest.mark.parametrize(
    ("watermark_ms", "delay_ms", "standing"),
    [
        (NO_WATERMARK_MS, 0, None),
        (NO_WATERMARK_MS + 1, 0, None),
        (NO_WATERMARK_MS + 2, 0, NO_WATERMARK_MS + 2),
        (NO_WATERMARK_MS + 2, 5, None),
        (NO_WATERMARK_MS + 6, 5, None),
        (NO_WATERMARK_MS + 7, 5, NO_WATERMARK_MS + 7),
        (-1, 5, -1),
        (0, 5, 0),
        (END_OF_INPUT_MS - 1, 5, END_OF_INPUT_MS - 1),
        (END_OF_INPUT_MS, 5, None),
    ],
)
def test_watermark_is_a_time_between_the_generators_start_and_the_end(
    watermark_ms: int, delay_ms: int, standing: int | None
) -> None:
    """Flink's generator starts at Long.MIN_VALUE + its delay + 1; Long.MAX_VALUE is the end of input."""
    assert standing_ms(watermark_ms, delay_ms) == standing


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_many_are_told_as_each(kind: type[np.generic]) -> None:
    """Of a column that has them as whole numbers, and of one that a hostile driver sent as others."""
    told = [-(2**63), -(2**63) + 1, -(2**63) + 2, -1, 0, 1_500, 2**62, 2**63 - 2, 2**63 - 1]
    column = np.array(told).astype(kind)
    each = [standing_ms(int(value)) is not None for value in column.tolist()]
    assert standing(column).tolist() == each
    assert not standing(np.array([np.nan, np.inf, -np.inf, 1e300])).any()
