"""Whether the catalogue tells of a metric, by its name or by a pattern of it."""

from __future__ import annotations

import re

from streamgauge import catalogue


def catalogued(scope: catalogue.Scope, name: str) -> bool:
    return catalogue.find(scope, name) is not None or any(
        pattern.scope == scope and _fits(pattern.name, name) for pattern in catalogue.PATTERNS
    )


def _fits(pattern: str, name: str) -> bool:
    parts = re.split(r"<[^>]+>", pattern)
    # What a connector calls as it likes may have dots; no other part has.
    part = ".+" if not any(parts) else "[^.]+"
    return re.fullmatch(part.join(map(re.escape, parts)), name) is not None
