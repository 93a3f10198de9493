"""How figures are written: short, with a unit, and a dash for what is not known."""

from __future__ import annotations

from tests.page.conftest import Open

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

WORDS = {
    ("duration", 0): "0 ms",
    ("duration", 850.4): "850 ms",
    ("duration", 12_345): "12.3 s",
    ("duration", 4 * MINUTE + 5 * SECOND): "4 min 5 s",
    ("duration", 2 * HOUR): "2 h",
    ("duration", -(5 * DAY + 7 * HOUR)): "-5 d 7 h",
    ("duration", 99 * DAY + 23 * HOUR): "99 d 23 h",
    ("duration", 5_034 * DAY + 12 * HOUR): "5034 d",
    ("count", 9_999): "9999",
    ("count", 1_234_567): "1.23 M",
    ("rate", 1_234.5): "1230/s",
    ("bytes", 12.3 * 2**20): "12.3 MiB",
    ("share", 0.1254): "12.5 %",
    ("msPerSecond", 1_000): "100 %",
    ("percent", 2.5): "2.5 %",
}
FORMATS = ("count", "rate", "bytes", "byteRate", "duration", "share", "msPerSecond", "percent", "clock", "moment")


def test_figures_are_written_short(open_page: Open) -> None:
    """As people say them; what is not known is a dash in every format."""
    shown = open_page("/")
    assert {told: shown.formatted(*told) for told in WORDS} == WORDS
    assert {name: shown.formatted(name, None) for name in FORMATS} == dict.fromkeys(FORMATS, "–")
