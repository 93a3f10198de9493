"""Flink's own programs, as Maven Central has them: each pom beside this names one, and is fetched once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from tests.programs import missing, program

CACHE = Path(__file__).parents[2] / "build" / "clients"
TIMEOUT_S = 280


def jars(name: str) -> Path:
    """
    Return the folder of the jars that `<name>.xml` asks for, with all that they need.

    It is filled on first use and whenever the pom has changed; a download that breaks leaves nothing behind.
    """
    pom = Path(__file__).with_name(f"{name}.xml")
    folder = CACHE / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
        command = [
            program("mvn"),
            "-B",
            "-q",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={fresh}/jars",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            missing(f"Maven could not fetch what {pom.name} asks for: {done.stdout.strip()[:500]}")
        try:
            Path(fresh, "jars").rename(folder)
        except OSError:
            # Another worker was first.
            if not folder.is_dir():
                raise
    return folder


def java(name: str, *arguments: str | Path, before: Path | None = None) -> list[str]:
    """
    Return a command that runs Java with the jars of `<name>.xml` on its class path.

    Args:
        arguments: From the main class on.
        before: A folder that goes before the jars.
    """
    # In the order of their names: the autoscaler's jar has classes of its own in place of Flink's, and has to be first.
    path = [*([before] if before else []), *sorted(jars(name).glob("*.jar"))]
    return [program("java"), "-cp", os.pathsep.join(map(str, path)), *map(str, arguments)]
