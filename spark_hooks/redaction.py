"""What must not leave the driver: secrets in plan descriptions, names and failures."""

from __future__ import annotations

import re

REPLACEMENT = "*********(redacted)"
"""Source: Spark, `Utils.REDACTION_REPLACEMENT_TEXT`."""

_DEFAULT_KEYS = r"(?i)secret|password|passwd|token|access[.]?key|credential"
"""Source: Spark's default of spark.redaction.regex, and two words more."""

_USER_INFO = re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)")


class Redaction:
    """
    Replaces secrets in text. Immutable, any thread.

    Args:
        keys: spark.redaction.regex: names whose values are secret, in `name=value` and `name: value`.
        text: spark.sql.redaction.string.regex: what is secret wherever it stands; None for nothing more.

    A pattern of Java's that Python does not read is replaced by Spark's default.
    """

    def __init__(self, keys: str | None = None, text: str | None = None) -> None:
        flags, pattern = _split_flags(keys or _DEFAULT_KEYS)
        default_flags, default = _split_flags(_DEFAULT_KEYS)
        self._values = _compile(_assignment(pattern), flags) or re.compile(_assignment(default), default_flags)
        self._text = _compile(text, re.NOFLAG) if text else None

    def __call__(self, text: str) -> str:
        """Return `text` without its secrets."""
        if self._text is not None:
            text = self._text.sub(REPLACEMENT, text)
        text = _USER_INFO.sub(rf"\g<1>{REPLACEMENT}", text)
        return self._values.sub(rf"\g<1>{REPLACEMENT}", text)


def _assignment(keys: str) -> str:
    return rf"""([\w.\-]*(?:{keys})[\w.\-]*["']?\s*(?:=|:|->)\s*["']?)[^\s,;&"'\])}}]+"""


def _split_flags(pattern: str) -> tuple[re.RegexFlag, str]:
    """Java's leading (?i) may not stand in the middle of a pattern in Python."""
    if pattern.startswith("(?i)"):
        return re.IGNORECASE, pattern.removeprefix("(?i)")
    return re.NOFLAG, pattern


def _compile(pattern: str, flags: re.RegexFlag) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, flags)
    except re.error:
        return None
