"""What must not leave the driver: secrets in settings, plan descriptions, names and failures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping

REPLACEMENT = "*********(redacted)"
"""Source: Spark, `Utils.REDACTION_REPLACEMENT_TEXT`."""

_DEFAULT_KEYS = r"(?i)secret|password|passwd|token|access[._-]?key|credential"
"""Source: Spark's default of spark.redaction.regex, and two words more."""

REGEXES = ("spark.redaction.regex", "spark.sql.redaction.string.regex", "spark.redaction.string.regex")
"""Spark's settings for names, and for text: of SQL, and of all that has none of its own."""

_OURS = r"(?i:streamgauge[._]\w*token)"
"""Settings of ours that are secret, whatever spark.redaction.regex says."""

KNOWN_CHARS = 8
"""A shorter secret is not looked for where its name does not stand: it may be a word of any text."""

KNOWN = 1_000
"""Secrets that are looked for wherever they stand; of more the longest."""

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
        known: Secrets that are known, and replaced wherever they stand; of KNOWN_CHARS characters at least.

    A pattern of Java's that Python does not read, or reads otherwise, is replaced by Spark's default.
    """

    def __init__(self, keys: str | None = None, text: str | None = None, known: Iterable[str] = ()) -> None:
        flags, pattern = _split_flags(keys or _DEFAULT_KEYS)
        compiled = _compile(_assignment(pattern), flags)
        if compiled is None:
            flags, pattern = _split_flags(_DEFAULT_KEYS)
            compiled = re.compile(_assignment(pattern), flags)
        self._values = compiled
        self._keys = re.compile(f"(?:{pattern})|{_OURS}", flags)
        self._text = _compile(text, _NO_FLAGS) if text else None
        long = {each for each in known if len(each) >= KNOWN_CHARS and each not in REPLACEMENT}
        # The longest first, for one may begin with another.
        found = sorted(long, key=lambda each: (-len(each), each))[:KNOWN]
        self._known = re.compile("|".join(map(re.escape, found))) if found else None

    @classmethod
    def of(cls, settings: Mapping[str, str], secrets: Iterable[str] = ()) -> Redaction:
        """
        Return what a Spark configuration asks for; what is secret in it is so wherever else it stands.

        Args:
            settings: Spark's, as they are.
            secrets: More that are known.
        """
        keys, sql, text = map(settings.get, REGEXES)
        text = sql or text
        bare = cls(keys)
        known = [secret for name, value in settings.items() for secret in bare._secrets(name, value)]
        return cls(keys, text, [*known, *secrets])

    def __call__(self, text: str) -> str:
        """Return `text` without its secrets."""
        if self._known is not None:
            text = self._known.sub(REPLACEMENT, text)
        if self._text is not None:
            text = self._text.sub(REPLACEMENT, text)
        text = _USER_INFO.sub(rf"\g<1>{REPLACEMENT}", text)
        return self._values.sub(rf"\g<1>{REPLACEMENT}", text)

    def setting(self, name: str, value: str) -> str:
        """
        Return a setting's value without secrets: none of it where the name, or the value itself, names one.

        Source: Spark, `Utils.redact`, which takes '-Dpassword=…' in a value for reason enough to hide all of it.
        """
        if self._keys.search(name) or self._keys.search(value):
            return REPLACEMENT
        return self(value)

    def argument(self, word: str) -> str:
        """Return an argument of a process: '-Dname=value' is a setting, anything else is text."""
        name, equals, value = word.partition("=")
        return f"{self(name)}={self.setting(name, value)}" if equals else self(word)

    def _secrets(self, name: str, value: str) -> list[str]:
        """What of a setting is secret."""
        if self._keys.search(name):
            return [value]
        found = [*self._values.finditer(value), *_USER_INFO.finditer(value)]
        return [each[0].removeprefix(each[1]) for each in found]


def _assignment(keys: str) -> str:
    # The bound keeps the time linear in text that repeats a key without end.
    return rf"""((?:(?:{keys})|{_OURS})[\w.\-]{{0,128}}["']?\s*(?:=>|->|:?=+|:)\s*["']?){_VALUE}"""


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


def distinct(names: Iterable[str]) -> list[str]:
    """Return redacted names, of which equal ones have got a number: what told them apart was a secret. Any thread."""
    found: dict[str, None] = {}
    for redacted in names:
        name, ordinal = redacted, 1
        while name in found:
            ordinal += 1
            name = f"{redacted} {ordinal}"
        found[name] = None
    return list(found)
