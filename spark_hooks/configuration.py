"""How the application and its jobs are set, and in what process the driver runs: as it may leave the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_hooks import records
from spark_hooks.redaction import Redaction
from streamgauge import wire

SETTINGS = 5_000
"""Settings, and entries of a class path, that are told; of more the first by name, and the first in order."""
NAME_CHARS = 1_000
VALUE_CHARS = 30_000
"""Longer ones are cut: a collector refuses a whole push for one that is too long."""


def configuration(settings: Mapping[str, str], redact: Redaction) -> dict[str, str]:
    """Return settings by name in order, redacted and cut."""
    return {
        cut(redact(name), NAME_CHARS): cut(redact.setting(name, settings[name]), VALUE_CHARS)
        for name in sorted(settings)[:SETTINGS]
    }


def environment(told: records.Environment, redact: Redaction) -> wire.Environment:
    """Return the driver's process, redacted and cut."""
    return wire.Environment(
        java_version=cut(told.java, NAME_CHARS),
        architecture=cut(told.architecture, NAME_CHARS),
        java_options=_words([redact.argument(word) for word in told.arguments[:SETTINGS]]),
        class_path=_words([redact(entry) for entry in told.class_path[:SETTINGS]]),
    )


def cut(text: str, chars: int) -> str:
    """Return `text`, of which no more than `chars` characters are left."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _words(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(cut(word, VALUE_CHARS) for word in words)
