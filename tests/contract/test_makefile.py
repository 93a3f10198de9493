import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, python: str | None) -> subprocess.CompletedProcess[str]:
    """`make demo` with a stand-in for Python that runs nothing but answers."""
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).touch()
    program = folder / "python"
    if python is not None:
        program.write_text(f"#!/bin/sh\n{python}\n")
        program.chmod(0o755)
    return subprocess.run(
        ["make", "--no-print-directory", f"PYTHON={program}", "demo"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("python", "told"),
    [
        (None, "does not run; install Python 3.10 or newer"),
        ('case "$2" in *version_info*) exit 1;; *python_version*) echo 3.9.1;; esac', "3.10 or newer is needed, "),
        ('case "$2" in *ensurepip*) exit 1;; esac', "has no venv module; install it (Debian and Ubuntu: the package"),
        ('case "$1 $2" in "-m venv") mkdir -p .venv/bin; ln -s ../../pip .venv/bin/python;; esac', "see pip's message"),
    ],
    ids=["no Python", "old Python", "no venv", "no network"],
)
def test_what_is_missing_is_told_in_one_line(tmp_path: Path, python: str | None, told: str) -> None:
    """A machine that is not ready gets the remedy, not a traceback, and the next try starts again."""
    pip = tmp_path / "pip"
    pip.write_text("#!/bin/sh\nexit 1\n")
    pip.chmod(0o755)
    done = make(tmp_path, python)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert told in errors[0]
    assert not list(tmp_path.glob(".venv/.installed-*"))
