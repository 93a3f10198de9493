"""How each native SQL metric is kept."""

from __future__ import annotations

import pytest

from streamgauge.accumulators import rule, unit


@pytest.mark.parametrize(
    ("kind", "name", "kept"),
    [
        ("sum", "number of output rows", "flow"),
        ("size", "shuffle bytes written", "flow"),
        ("nsTiming", "shuffle write time", "flow"),
        ("timing", "time to commit changes", "flow"),
        ("sum", "number of total state rows", "level"),
        ("size", "memory used by state", "level"),
        ("size", "RocksDB: size of all SST files", "level"),
        ("size", "RocksDB: file manager - bytes copied", "flow"),
        ("size", "peak memory", "peak"),
        ("average", "avg hash probes per key", "average"),
        ("average", "what Spark 9 averages", "average"),
        ("size", "what Spark 9 weighs", "flow"),
    ],
)
def test_a_metric_is_kept_by_its_name_or_else_by_its_kind(kind, name, kept):
    """What is not known falls under its kind."""
    assert rule(kind, name) == kept


def test_kinds_have_units():
    """Plain numbers and averages have none."""
    assert [unit(kind) for kind in ("sum", "size", "timing", "nsTiming", "average")] == ["", "bytes", "ms", "ns", ""]
