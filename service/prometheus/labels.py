"""Labels as Prometheus reads them: sorted by name, escaped, no value longer than a bound."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

LABEL_CHARS = 512
"""
Longest value of a label. A name may have 8,192 characters and stands in every series of its vertex: the names of a few
long chains would be most of a scrape.
"""

_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_DIGEST_BYTES = 8


class Around(NamedTuple):
    """
    Labels into which one more is put: of the lines of a histogram or summary.

    Args:
        before: What stands before it, from the opening brace.
        after: What stands after it, to the closing brace.
        whole: All of them without it, as `labels` returns them.
    """

    before: str
    after: str
    whole: str


def labels(pairs: Mapping[str, str]) -> str:
    """
    Return label pairs as they stand between a sample's name and its value: `{a="1",b="2"}`, sorted; '' of none.

    Args:
        pairs: Name → value; names are the caller's to get right, values may be anything.

    Any thread.
    """
    return f"{{{listed(pairs)}}}" if pairs else ""


def around(pairs: Mapping[str, str], name: str) -> Around:
    """
    Return label pairs as they stand around a label that they lack.

    Args:
        pairs: As of `labels`; at least one.
        name: Of the label to come.

    Any thread.
    """
    lower = listed({key: value for key, value in pairs.items() if key < name})
    upper = listed({key: value for key, value in pairs.items() if key > name})
    return Around(f"{{{lower}," if lower else "{", f",{upper}}}" if upper else "}", labels(pairs))


def listed(pairs: Mapping[str, str]) -> str:
    """Return label pairs as `labels` does, without the braces; any thread."""
    return ",".join(pair(name, value) for name, value in sorted(pairs.items()))


def pair(name: str, value: str) -> str:
    """Return one label, its value bounded and escaped; any thread."""
    return f'{name}="{bounded(value).translate(_ESCAPED)}"'


def bounded(value: str) -> str:
    """
    Return a value of at most LABEL_CHARS characters.

    Of a longer one the end is replaced by a digest of all of it, so that values that differ still do.

    Any thread.
    """
    if len(value) <= LABEL_CHARS:
        return value
    digest = hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{value[: LABEL_CHARS - len(digest) - 1]}…{digest}"
