"""What must not leave the driver: secrets in plan descriptions, names and failures."""

from __future__ import annotations

import re
import warnings

REPLACEMENT = "*********(redacted)"
"""Source: Spark, `Utils.REDACTION_REPLACEMENT_TEXT`."""

_DEFAULT_KEYS = r"(?i)secret|password|passwd|token|access[.]?key|credential"
"""Source: Spark's default of spark.redaction.regex, and two words more."""

# A password may hold an '@' of its own: the last one before the path counts.
_USER_INFO = re.compile(r"(://[^\s/:@]*:|jdbc:oracle:\w+:[^\s/@]+/)[^\s/]+(?=@)")

_NO_FLAGS = re.RegexFlag(0)

# In quotes, all up to the closing one; else up to what separates options. A bracket or quote ends a value
# only where nothing but such follow it.
_VALUE = r"""(?:(?<=")(?:[^"\\]|\\.)*|(?<=')(?:[^'\\]|\\.)*"""
_VALUE += r"""|(?!\*{9}\(redacted\))(?:(?:Bearer|Basic)\s+)?(?:[^\s,;&\])}"']|[\])}"']+(?=[^\s,;&\])}"']))+)"""


class Redaction:
    """
    Replaces secrets in text. Immutable, any thread.

    Args:
        keys: spark.redaction.regex: names whose values are secret, in `name=value`, `name: value` and
            `name -> value`.
        text: spark.sql.redaction.string.regex: what is secret wherever it stands; None for nothing more.

    A pattern of Java's that Python does not read, or reads otherwise, is replaced by Spark's default.
    """

    def __init__(self, keys: str | None = None, text: str | None = None) -> None:
        flags, pattern = _split_flags(keys or _DEFAULT_KEYS)
        default_flags, default = _split_flags(_DEFAULT_KEYS)
        self._values = _compile(_assignment(pattern), flags) or re.compile(_assignment(default), default_flags)
        self._text = _compile(text, _NO_FLAGS) if text else None

    def __call__(self, text: str) -> str:
        """Return `text` without its secrets."""
        if self._text is not None:
            text = self._text.sub(REPLACEMENT, text)
        text = _USER_INFO.sub(rf"\g<1>{REPLACEMENT}", text)
        return self._values.sub(rf"\g<1>{REPLACEMENT}", text)


def _assignment(keys: str) -> str:
    # The bound keeps the time linear in text that repeats a key without end.
    return rf"""((?:{keys})[\w.\-]{{0,128}}["']?\s*(?:=>|->|:?=+|:)\s*["']?){_VALUE}"""


def _split_flags(pattern: str) -> tuple[re.RegexFlag, str]:
    """Java's leading (?i) may not stand in the middle of a pattern in Python."""
    if pattern.startswith("(?i)"):
        return re.IGNORECASE, pattern.removeprefix("(?i)")
    return _NO_FLAGS, pattern


def _compile(pattern: str, flags: re.RegexFlag) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern, flags)
    except (re.error, FutureWarning, DeprecationWarning):
        return None
