"""What Spark says of a plan node, without what differs between batches, restarts and machines."""

from __future__ import annotations

import re
from functools import lru_cache

from spark_hooks.tap_rows import PREFIX

SKEW = re.compile(r"\(skew=true\)")
# A tap says what it was asked for, and has several aggregates for each split: hundreds of them.
_TAP = re.compile(rf"^(CollectMetrics {re.escape(PREFIX)}[\w-]+), .*", re.DOTALL)
# What differs in every plan. It goes first: what is left of a node is mostly the same again in the next batch.
_NUMBERED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r", state info \[.*$", re.DOTALL), ""),
    (re.compile(r",? ?\[(plan_id|id)=#?\d+\]"), ""),
    (re.compile(r"#\d+L?"), ""),
)
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    # Spark cuts what it tells of a file scan at 100 characters, volatile ones included, and a path without its bracket.
    (re.compile(r"Location: \w+ ?\(\d+ paths?\)\[.*?(?=, [A-Z]\w*: |$)"), "Location"),
    (re.compile(r"(\b[A-Z]\w*: )(?:(?!, [A-Z]\w*: ).)*\.\.\.(?=, [A-Z]\w*: |$)"), r"\1..."),
    (re.compile(r", (ENSURE_REQUIREMENTS|REQUIRED_BY_STATEFUL_OPERATOR|REPARTITION_BY_\w+|REBALANCE_\w+)"), ""),
    (re.compile(r"((?:hash|range)partitioning\(.*), \d+\)"), r"\1)"),
    (re.compile(r"(RoundRobinPartitioning|UnknownPartitioning)\(\d+\)"), r"\1()"),
    (re.compile(r"splits=(?:Some\(\d+\)|\d+)"), "splits"),
    (re.compile(r"\[epoch: \d+, "), "["),
    (re.compile(r"EventTimeWatermark [0-9a-f]{8}-[0-9a-f-]{27}, "), "EventTimeWatermark "),
    # What it drops rows by, as late.
    (re.compile(r"^(UpdateEventTimeColumn .*), -?\d+$"), r"\1"),
    (re.compile(r"\bReusedSubquery (?=Subquery)"), ""),
    (re.compile(r"\$\$Lambda\$?[\w/.]*"), ""),
    (re.compile(r"@[0-9a-f]{1,8}\b"), ""),
    (SKEW, ""),
    # current_timestamp() and its kin are literals that differ in every batch; a window's length, in microseconds,
    # may have as many digits, but it ends in zeros.
    (re.compile(r"\b\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?"), "<timestamp>"),
    (re.compile(r"\b1(?:[7-9]\d{8}(?<!000000)|\d{12}(?<!000000)|\d{15})\b"), "<timestamp>"),
    # Every batch gives rand(), uuid() and shuffle() new seeds, every restart gives sample() one.
    (re.compile(r"\b(randn?)\(-?\d+\)"), r"\1()"),
    (re.compile(r"\bSome\(-?\d+\)"), "Some()"),
    (re.compile(r"^(Sample .*), -?\d+$"), r"\1"),
    (re.compile(r"-?\b\d{17,19}\b"), "<number>"),
)


def readable(description: str) -> str:
    """Return a description without what nobody reads: of a tap no more than its name."""
    return _TAP.sub(r"\1", description)


def stable(description: str) -> str:
    """Return a description without what differs between batches, restarts and machines."""
    return _settled(_without(_NUMBERED, readable(description)))


@lru_cache(maxsize=1024)
def _settled(description: str) -> str:
    return _without(_VOLATILE, description)


def _without(patterns: tuple[tuple[re.Pattern[str], str], ...], description: str) -> str:
    for pattern, replacement in patterns:
        description = pattern.sub(replacement, description)
    return description
