"""The page's modules against the types that stand in their comments, as TypeScript, which comes by npm, reads them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from service.web import site
from tests.programs import missing, program

ROOT = Path(__file__).parents[2]
TYPES = Path(__file__).with_name("page_types")
FILES = ROOT / "service" / "web" / "files"
CACHE = ROOT / "build" / "page-types"
TIMEOUT_S = 250
SOURCES = ("package.json", "package-lock.json", "tsconfig.json", "globals.d.ts")


@pytest.fixture(scope="module")
def checker() -> Path:
    """The folder that everything is installed in, on first use and whenever what is asked for has changed."""
    sources = b"".join((TYPES / name).read_bytes() for name in SOURCES)
    made = CACHE / hashlib.sha256(sources).hexdigest()[:12]
    if not made.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fresh = Path(folder, "types")
            fresh.mkdir()
            for name in SOURCES:
                shutil.copy(TYPES / name, fresh)
            status, words = run(fresh, program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
            if status:
                missing(f"npm ci failed: {words.strip()[-500:]}")
            # Where another worker was quicker, its folder stays.
            with contextlib.suppress(OSError):
                fresh.rename(made)
    return made


def run(folder: Path, *command: str) -> tuple[int, str]:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        missing(f"{Path(command[0]).name} {command[1]} took longer than {TIMEOUT_S} s")
    return done.returncode, done.stdout + done.stderr


def check(checker: Path, project: Path) -> tuple[int, list[str]]:
    """What TypeScript says of a project."""
    tsc = str(checker / "node_modules" / "typescript" / "bin" / "tsc")
    status, words = run(checker, program("node", "nodejs"), tsc, "--pretty", "false", "--project", str(project))
    return status, words.splitlines()


def test_every_module_has_the_types_that_it_says(checker: Path) -> None:
    """Strictly: nothing is any that is not said to be, and what an index finds may be undefined."""
    assert check(checker, checker / "tsconfig.json") == (0, [])


def test_every_module_is_looked_at(checker: Path) -> None:
    """And none is excused from it by a comment."""
    tsc = str(checker / "node_modules" / "typescript" / "bin" / "tsc")
    _, listed = run(checker, program("node", "nodejs"), tsc, "--listFilesOnly", "--project", "tsconfig.json")
    assert {Path(line).resolve() for line in listed.splitlines()} >= {*FILES.glob("*.js")}
    for path in FILES.glob("*.js"):
        assert re.findall(r"@ts-(?:nocheck|ignore|expect-error)", path.read_text(encoding="utf-8")) == [], path.name


def test_what_is_wrong_is_found(checker: Path, tmp_path: Path) -> None:
    """Else the first test could not fail: another type, a name that is not there, what may be undefined or null."""
    (tmp_path / "wrong.js").write_text(
        f"""
        import {{ bytes }} from "{FILES.as_posix()}/format.js";
        bytes("12");
        new uPlot({{ width: "12" }});
        new dagre.graphlib.Graf();
        /** @type {{string[]}} */
        const words = [];
        words[0].trim();
        document.querySelector("p").hidden = true;
        /** @param {{string}} word */
        export function shown(word, other) {{ return word + other; }}
        """
    )
    project = tmp_path / "tsconfig.json"
    included = [str(checker / "globals.d.ts"), str(tmp_path / "wrong.js")]
    project.write_text(json.dumps({"extends": str(checker / "tsconfig.json"), "include": included}))
    status, words = check(checker, project)
    assert status != 0
    told = {int(found[1]) for line in words if (found := re.match(r"[^ ]*wrong\.js\((\d+),", line))}
    assert told == {3, 4, 5, 8, 9, 11}


def test_types_are_those_of_the_libraries_that_are_loaded() -> None:
    """Those of uPlot are its own, of the very release; dagre's are of 0.7, which has what 0.6 has."""
    [release] = re.findall(r"\(v([\d.]+)\)", _loaded("uplot.js")[:500])
    assert json.loads((TYPES / "package.json").read_text())["dependencies"]["uplot"] == release
    assert 'module.exports="0.6.4"' in _loaded("dagre.js")


def _loaded(name: str) -> str:
    distribution, path = site._LIBRARIES[name]
    return Path(str(metadata.distribution(distribution).locate_file(path))).read_text(encoding="utf-8")
