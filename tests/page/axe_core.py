"""axe-core, which finds what keeps people with other eyes and hands out of a page; it comes by npm, once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.programs import missing, program

PINNED = Path(__file__).with_name("axe")
CACHE = Path(__file__).parents[2] / "build" / "axe"
FILES = ("package.json", "package-lock.json")
TIMEOUT_S = 280


def source() -> str:
    """Return the script; what breaks while it is fetched leaves nothing behind."""
    pins = b"".join((PINNED / name).read_bytes() for name in FILES)
    held = CACHE / f"{hashlib.sha256(pins).hexdigest()[:12]}.js"
    if not held.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            for name in FILES:
                shutil.copy(PINNED / name, fresh)
            _install(fresh)
            Path(fresh, "node_modules", "axe-core", "axe.min.js").replace(held)
    return held.read_text(encoding="utf-8")


def _install(folder: str) -> None:
    command = [program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        missing(f"npm ci took longer than {TIMEOUT_S} s")
    if done.returncode:
        missing(f"npm ci failed: {(done.stderr or done.stdout).strip()[-500:]}")
