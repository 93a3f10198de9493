"""What a watermark says beyond its number."""

from __future__ import annotations

import pytest

from service.watermarks import standing_ms
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
