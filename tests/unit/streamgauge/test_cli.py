"""The command's help and version, and what it says where the service is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamgauge.cli import main
from streamgauge.version import __version__

ROOT = Path(__file__).parents[3]
WITHOUT = """
import sys
for name in ("fastapi", "starlette", "uvicorn", "prometheus_client", "hdrh", "pydantic"):
    sys.modules[name] = None
from streamgauge.cli import main
main()
"""


def plain_install(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where none of the service's libraries can be imported."""
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("argument", "expected"), [("--help", "serve"), ("--version", __version__)], ids=["help", "version"]
)
def test_plain_install_tells_help_and_version(argument: str, expected: str) -> None:
    """Nothing of the service is imported for it."""
    done = plain_install(argument)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout


def test_plain_install_says_what_serve_needs() -> None:
    """One line, with the command that brings it."""
    done = plain_install("serve")
    assert done.returncode == 1
    assert done.stderr.endswith("is not installed, the service needs it: pip install 'streamgauge[service]'\n")
    assert done.stderr.count("\n") == 1


def test_serve_lists_every_option() -> None:
    """Help names what the settings' manual names."""
    told = CliRunner().invoke(main, ["serve", "--help"]).output
    for option in ("--host", "--port", "--push-token", "--insecure", "--allowed-host", "--max-push-bytes"):
        assert option in told
    assert "8081" in told


def test_unknown_subcommand_is_a_usage_error() -> None:
    """Click's own exit code."""
    assert CliRunner().invoke(main, ["sevre"]).exit_code == 2


def test_demo_says_what_prometheus_lacks_before_it_starts_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, with the packages to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["demo", "--prometheus"])
    assert done.exit_code == 1
    assert done.output.startswith("Error: Prometheus and Alertmanager are not installed; install them (Debian")
    assert done.output.count("\n") == 1
