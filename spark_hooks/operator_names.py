"""What people call a plan's nodes: short, and the same in every batch."""

from __future__ import annotations

import re
from functools import lru_cache

from spark_hooks.descriptions import stable

NAME_LENGTH = 80

STREAM_SCANS = frozenset({"MicroBatchScan", "RealTimeStreamScan", "ContinuousScan"})
"""Scans of streams alone; a stream of files is scanned as a table of files is."""


def short_name(text: str) -> str:
    """Return a class or description cut down to a name: 'a.b.NoopTable$@1f' → 'Noop'."""
    name = re.split(r"[\[(@]", text.strip(), maxsplit=1)[0]
    name = re.sub(r"\$\$anon\$\d+", "", name).rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    name = re.sub(r"(StreamingWrite|Table|Sink|Scan)$", "", name)
    return name[:NAME_LENGTH] or text.strip()[:NAME_LENGTH]


def operator_name(node: str, description: str, leaf: bool, sink: bool) -> str:
    """
    Return what people call a node.

    Args:
        leaf: It is a source.
        sink: It ends the plan.

    Any thread.
    """
    if sink:
        return f"Sink: {node.removeprefix('Execute ')}"[:NAME_LENGTH]
    if leaf:
        return f"Source: {_source_name(stable(description), node)}"[:NAME_LENGTH]
    return node[:NAME_LENGTH]


@lru_cache(maxsize=1024)
def _source_name(description: str, node: str) -> str:
    """'MicroBatchScan[…] class a.b.RateStreamTable$$anon$1' → 'RateStream'; 'Scan json' → 'json'."""
    if node == "BatchScan" or node in STREAM_SCANS:
        found = re.search(r"\] class (\S+)", description)
        if found:
            return short_name(found.group(1))
    return node.removeprefix("Scan ")
