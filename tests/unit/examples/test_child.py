import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.child import Child

SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(60)"])
print('up', grandchild.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def start(tmp_path: Path):
    children: list[Child] = []

    def start_child(code: str) -> Child:
        child = Child("job", [sys.executable, "-c", code], os.environ, tmp_path, log_output=True)
        children.append(child)
        return child

    yield start_child
    for child in children:
        child.end(0.0)


def await_output(child: Child) -> str:
    until(lambda: child.output().endswith("\n"))
    return child.output()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline


def test_end_lets_it_end_by_itself(start: Callable[[str], Child]) -> None:
    """A child that minds SIGTERM is not killed, and `end` does not use up its time."""
    child = start(SLEEPS)
    await_output(child)
    child.end(30.0)
    assert child.exit_code() == -15


def test_end_kills_the_whole_group(start: Callable[[str], Child]) -> None:
    """A child, or a grandchild such as a JVM, that ignores SIGTERM does not outlive the demo."""
    child = start(STUBBORN)
    grandchild = int(await_output(child).split()[1])
    child.end(0.2)
    assert child.exit_code() == -9
    stat = Path(f"/proc/{grandchild}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_end_of_what_has_ended_does_nothing(start: Callable[[str], Child]) -> None:
    """The demo ends its children on every way out."""
    child = start("pass")
    until(lambda: child.exit_code() is not None)
    child.end(30.0)
    assert child.exit_code() == 0


def test_reason_is_the_error_that_was_meant_for_people(start: Callable[[str], Child]) -> None:
    """One line, without the prefix that the demo's own message gets, though a JVM has written after it."""
    child = start("import sys; print('noise\\nError: port 8081 is taken\\nnoise'); sys.exit(1)")
    until(lambda: child.exit_code() is not None)
    assert child.reason() == "port 8081 is taken"


def test_reason_shows_the_log_of_what_nobody_foresaw(start: Callable[[str], Child]) -> None:
    """Else the cause would be lost with the temporary folder."""
    child = start("raise RuntimeError('unforeseen')")
    until(lambda: child.exit_code() is not None)
    assert child.reason().startswith("the job ended with exit code 1\n")
    assert "RuntimeError: unforeseen" in child.reason()
