"""What Grafana takes for a dashboard, as a JSON Schema: made from its own TypeScript types, which come by npm, once."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.programs import missing, program

ROOT = Path(__file__).parents[2]
TYPES = Path(__file__).with_name("grafana_types")
CACHE = ROOT / "build" / "grafana-schema"
TIMEOUT_S = 280
FILES = ("package.json", "package-lock.json", "types.ts")


def schema() -> dict[str, Any]:
    """
    Return the schema, its types under `definitions`.

    It is made on first use and whenever its sources have changed; what breaks leaves nothing behind.
    """
    sources = b"".join((TYPES / name).read_bytes() for name in FILES)
    made = CACHE / f"{hashlib.sha256(sources).hexdigest()[:12]}.json"
    if not made.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            made_there = Path(fresh, made.name)
            made_there.write_text(json.dumps(_make(Path(fresh))), encoding="utf-8")
            made_there.replace(made)
    found: dict[str, Any] = json.loads(made.read_text(encoding="utf-8"))
    return found


def _make(folder: Path) -> dict[str, Any]:
    for name in FILES:
        shutil.copy(TYPES / name, folder)
    _run(folder, program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    maker = folder / "node_modules" / "typescript-json-schema" / "bin" / "typescript-json-schema"
    flags = ("--required", "--noExtraProps", "--strictNullChecks", "--skipLibCheck")
    made: dict[str, Any] = json.loads(_run(folder, program("node", "nodejs"), str(maker), "types.ts", "*", *flags))
    for record in _records(made):
        record["additionalProperties"] = True
    return made


def _run(folder: Path, *command: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        missing(f"{Path(command[0]).name} {command[1]} took longer than {TIMEOUT_S} s")
    if done.returncode:
        missing(f"{Path(command[0]).name} {command[1]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _records(node: Any) -> Iterator[dict[str, Any]]:
    """Yield what stands for TypeScript's Record: an object of any keys, which --noExtraProps would leave none."""
    if isinstance(node, dict):
        if node.get("type") == "object" and not node.get("properties"):
            yield node
        for inner in node.values():
            yield from _records(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _records(inner)
