"""Programs that tests run: in CI they are there."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Fail in CI, where everything has to be there; elsewhere skip with the reason."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; in CI nothing is skipped")
    pytest.skip(reason)


def program(*names: str) -> str:
    """
    Return the path of the first of the programs that is installed; without one, skip or fail as `missing` does.

    Some come as Python packages: they lie beside Python, and not on PATH unless its environment is activated.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    return found or missing(f"{' or '.join(names)} is not installed")
