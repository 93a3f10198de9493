"""`streamgauge jobs` and `streamgauge top` against the real service, in pipes and on a terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
import urllib3

from streamgauge import codec, wire

if sys.platform == "win32":
    pytest.skip("signals and terminals", allow_module_level=True)

import fcntl
import pty
import select
import struct
import termios

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "streamgauge"]
MAIN = "9e283f61da6ac64998d5e31ca6520bee"
LIMIT_S = 60
ALTERNATE, ORDINARY = b"\x1b[?1049h", b"\x1b[?1049l"
HIDDEN, VISIBLE = b"\x1b[?25l", b"\x1b[?25h"
WITHOUT_RICH = "import sys; sys.modules['rich'] = None; from streamgauge.cli import main; main()"


def environment(**settings: str) -> dict[str, str]:
    """The tests' own, without what changes the service or the drawing."""
    left_out = ("STREAMGAUGE_", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**inherited, "PYTHONUNBUFFERED": "1", "TERM": "xterm-256color", "STREAMGAUGE_ARCHIVE": "none", **settings}


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A service of its own process; its URL."""
    command = [*COMMAND, "serve", *(options if "--port" in options else ("--port", "0", *options))]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(LIMIT_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            announced = re.fullmatch(r"Streamgauge listens on (http://\S+)\n", process.stdout.readline())
            assert announced
            yield announced.group(1)
        finally:
            watchdog.cancel()
            process.kill()


def push(url: str, frames: list[wire.Frame]) -> None:
    headers = {"Content-Type": wire.CONTENT_TYPE}
    answer = urllib3.request("POST", url + wire.PUSH_PATH, body=codec.encode(frames), headers=headers)
    assert answer.status == 202


def said(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(**settings), capture_output=True, text=True, timeout=LIMIT_S
    )


def as_at_a_prompt() -> None:
    """
    Be started as by a shell, however the tests are.

    A process group of its own: Ctrl-Z does not stop an orphaned one. And Ctrl-C not ignored, as in the background.
    """
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*arguments: str, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs on; ended if the test has not done so."""
    command = [*COMMAND, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), preexec_fn=as_at_a_prompt, **streams)  # type: ignore[call-overload]
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


class Terminal:
    """A pseudo-terminal of 80 columns and 24 lines; `seen` is what was drawn since it was last looked at."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.seen = b""
        self.resize(80, 24)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def is_waiting_for_lines(self) -> bool:
        """Whether it echoes and hands over whole lines, as a shell's does."""
        modes = termios.tcgetattr(self.theirs)[3]
        return bool(modes & termios.ICANON and modes & termios.ECHO)

    def await_drawn(self, *wanted: bytes) -> bytes:
        """Read until all of it was drawn; the watchdog of the process ends the wait."""
        while not all(each in self.seen for each in wanted):
            assert select.select([self.ours], [], [], LIMIT_S)[0], f"{wanted} was not drawn: {self.seen[-2000:]!r}"
            self.seen += os.read(self.ours, 65536)
        drawn, self.seen = self.seen, b""
        return drawn

    def close(self) -> None:
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


@pytest.fixture
def service(recorded: list[wire.Frame]) -> Iterator[str]:
    """A service with the recorded jobs."""
    with serving() as url:
        push(url, recorded)
        yield url


def test_jobs_prints_a_line_a_job(service: str) -> None:
    """Whole ids and names in a pipe; those that ended with --all only; the URL from the environment."""
    done = said("jobs", "--collector", service)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.split(" {2,}", lines[0])[:3] == ["STATE", "JOB ID", "TYPE"]
    assert all(line.startswith("RUNNING") for line in lines[1:])
    assert [line.split()[1] for line in lines[1:] if line.endswith("  anchor-main")] == [MAIN]
    everything = said("jobs", "--all", STREAMGAUGE_URL=service).stdout
    assert everything.startswith(done.stdout.splitlines()[0])
    assert "FAILED" in everything
    assert "\x1b" not in everything


def test_jobs_as_json_is_one_object(service: str) -> None:
    """The same jobs."""
    found = json.loads(said("jobs", "--json", "--collector", service).stdout)
    listed = {each["id"]: each for each in found["jobs"]}
    assert listed[MAIN]["state"] == "RUNNING"
    assert listed[MAIN]["records_in_per_second"] == pytest.approx(2000.9333333333334)
    assert (found["error"], found["drivers"], listed[MAIN]["vertices"]) == (None, None, None)


def test_top_once_prints_jobs_vertices_and_hooks(service: str) -> None:
    """Plain text in a pipe; as wide as COLUMNS where that is set."""
    done = said("top", "--once", "--collector", service)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "JOB / VERTEX" in done.stdout
    assert "HOOKS IN DRIVER" in done.stdout
    narrow = said("top", "--once", "--collector", service, COLUMNS="70").stdout.splitlines()
    assert max(map(len, narrow)) <= 70
    one = said("top", "--once", "--json", "--job", MAIN, "--collector", service)
    found = json.loads(one.stdout)
    assert [each["id"] for each in found["jobs"]] == [MAIN]
    assert found["jobs"][0]["vertices"][0]["parallelism"] == 2
    assert {each["id"] for each in found["drivers"]} == {"spark-1", "spark-0"}


def test_an_unknown_job_is_an_error_where_it_is_asked_for_once(service: str) -> None:
    """One line, exit code 1."""
    done = said("top", "--once", "--json", "--job", "nope", "--collector", service)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: no job's id begins with, and no job's name contains, 'nope'")


def test_a_service_with_a_read_token_wants_it() -> None:
    """The message names the option; the token is taken from the environment too."""
    with serving("--read-token", "sécret") as url:
        for command in (("jobs",), ("top", "--once")):
            for given in ((), ("--token", "wrong")):
                done = said(*command, "--collector", url, *given)
                assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
                assert "give the read token with --token or STREAMGAUGE_READ_TOKEN" in done.stderr
        done = said("jobs", STREAMGAUGE_URL=url, STREAMGAUGE_READ_TOKEN="sécret")
        assert (done.returncode, done.stdout) == (0, "No running jobs.\n")


def test_nobody_there_is_one_line() -> None:
    """With the URL and the remedy; also where nothing could be drawn live yet."""
    with serving() as url:
        pass
    for command in (("jobs",), ("jobs", "--json"), ("top",), ("top", "--json")):
        done = said(*command, "--collector", url)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(
            rf"Error: {url} cannot be reached \(.*refused\): start the service .* or STREAMGAUGE_URL\n", done.stderr
        )


@pytest.mark.parametrize("arguments", [("--collector", "localhost:8081"), ("--token", "a b")])
def test_what_cannot_be_used_is_refused(arguments: tuple[str, str]) -> None:
    """One line."""
    done = said("jobs", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_a_plain_install_reads_json(service: str) -> None:
    """And says what the tables need."""
    for command in ("jobs", "top"):
        arguments = [sys.executable, "-c", WITHOUT_RICH, command, "--collector", service]
        done = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"Error: rich is not installed, {command} needs it: pip install 'streamgauge[top]', or use --json\n"
        )
        more = ["--json", *(["--once"] if command == "top" else [])]
        done = subprocess.run(
            [*arguments, *more], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["jobs"]


def test_top_as_json_goes_on_when_the_service_is_back(recorded: list[wire.Frame]) -> None:
    """A line a reading; what failed tells why; Ctrl-C ends it with 0."""
    arguments = ("top", "--json", "--interval", "0.1", "--collector")
    with ExitStack() as first, ExitStack() as rest:
        url = first.enter_context(serving())
        process = rest.enter_context(started(*arguments, url, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        assert process.stdout is not None
        lines = map(json.loads, process.stdout)
        assert next(lines)["jobs"] == []
        first.close()
        gone = next(line for line in lines if line["error"])
        assert gone["error"].startswith(f"{url} cannot be reached")
        assert (gone["jobs"], gone["drivers"]) == (None, None)
        push(rest.enter_context(serving("--port", url.rpartition(":")[2])), recorded)
        assert next(line for line in lines if line["jobs"])["states"]["RUNNING"] == 3
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=LIMIT_S)[1] == b""
        assert process.returncode == 0


def test_top_prints_reading_after_reading_into_a_pipe(service: str) -> None:
    """Without a terminal there is nothing to draw on; Ctrl-C ends it with 0."""
    arguments = ("top", "--interval", "0.1", "--collector", service)
    with started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        heads = 0
        while heads < 2:
            line = process.stdout.readline()
            assert line
            assert b"\x1b" not in line
            heads += line.startswith(b"streamgauge http")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=LIMIT_S)[1] == b""
        assert process.returncode == 0


@contextmanager
def drawing(terminal: Terminal, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Top on a terminal."""
    streams = {"stdin": terminal.theirs, "stdout": terminal.theirs, "stderr": terminal.theirs}
    with started("top", "--interval", "0.1", *arguments, **streams) as process:
        yield process


def leave(terminal: Terminal, process: subprocess.Popen[bytes], how: Callable[[], object]) -> None:
    """End top, and look at what it leaves behind."""
    assert not terminal.is_waiting_for_lines()
    how()
    assert process.wait(LIMIT_S) == 0
    end = terminal.await_drawn(ORDINARY, VISIBLE)
    assert end.rindex(VISIBLE) > end.rfind(HIDDEN)
    assert end.rindex(ORDINARY) > end.rfind(ALTERNATE)
    assert b"Traceback" not in end
    assert terminal.is_waiting_for_lines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_top_and_restores_the_terminal(service: str, terminal: Terminal, number: signal.Signals) -> None:
    """Exit code 0; the screen of before, its cursor and its modes."""
    with drawing(terminal, "--collector", service) as process:
        drawn = terminal.await_drawn(ALTERNATE, HIDDEN, b"JOB / VERTEX", b"anchor-main", b"HOOKS IN DRIVER")
        assert drawn.index(ALTERNATE) < drawn.index(b"anchor-main")
        leave(terminal, process, lambda: process.send_signal(number))


def test_q_ends_top(service: str, terminal: Terminal) -> None:
    """Other keys do nothing."""
    with drawing(terminal, "--collector", service) as process:
        terminal.await_drawn(b"anchor-main")
        os.write(terminal.ours, b"x\x1b[A")
        terminal.await_drawn(b"anchor-main")
        leave(terminal, process, lambda: os.write(terminal.ours, b"q"))


def test_top_gives_the_terminal_back_while_it_is_stopped(service: str, terminal: Terminal) -> None:
    """Ctrl-Z, and fg: the shell's screen in between, and drawn anew."""
    with drawing(terminal, "--collector", service) as process:
        terminal.await_drawn(b"anchor-main")
        process.send_signal(signal.SIGTSTP)
        terminal.await_drawn(ORDINARY, VISIBLE)
        # It stops after that, and would sleep through a SIGCONT that came before.
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        process.send_signal(signal.SIGCONT)
        terminal.await_drawn(b"anchor-main")
        leave(terminal, process, lambda: process.send_signal(signal.SIGINT))


def test_top_follows_the_size_of_the_terminal(service: str, terminal: Terminal) -> None:
    """Columns come with the width, and lines go with the height."""
    with drawing(terminal, "--collector", service) as process:
        assert b"RESTARTS" not in terminal.await_drawn(b"anchor-main", b"HOOKS IN DRIVER")
        terminal.resize(160, 24)
        terminal.await_drawn(b"RESTARTS")
        terminal.resize(80, 9)
        terminal.await_drawn(b" more vert")
        leave(terminal, process, lambda: process.send_signal(signal.SIGINT))


def test_top_says_that_the_service_is_away_and_goes_on(recorded: list[wire.Frame], terminal: Terminal) -> None:
    """What was read stays, with its age."""
    with ExitStack() as first, ExitStack() as rest:
        url = first.enter_context(serving())
        push(url, recorded)
        process = rest.enter_context(drawing(terminal, "--collector", url))
        terminal.await_drawn(b"anchor-main")
        first.close()
        terminal.await_drawn(b" old: ", b"cannot be reached", b"anchor-main")
        push(rest.enter_context(serving("--port", url.rpartition(":")[2])), recorded[:3])
        terminal.await_drawn(b"1 running")
        leave(terminal, process, lambda: process.send_signal(signal.SIGINT))


@pytest.mark.parametrize("setting", ["NO_COLOR", "TERM"])
def test_without_colours_there_are_none(service: str, terminal: Terminal, setting: str) -> None:
    """NO_COLOR; and a terminal that can do nothing is printed to, line by line."""
    value = {"NO_COLOR": "1", "TERM": "dumb"}[setting]
    command = [*COMMAND, "top", "--once", "--collector", service]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**{setting: value}), stdout=terminal.theirs, stderr=terminal.theirs
    ) as process:
        drawn = terminal.await_drawn(b"HOOKS IN DRIVER", b"driver.test")
        assert process.wait(LIMIT_S) == 0
    assert not re.search(rb"\x1b\[[0-9;]*[349][0-7]m", drawn)
    assert ALTERNATE not in drawn


def test_names_of_strangers_cannot_command_the_terminal(recorded: list[wire.Frame], terminal: Terminal) -> None:
    """Through the whole way: pushed, read, drawn."""
    frame = next(each for each in recorded if each.job is not None and each.job.jid == MAIN)
    assert frame.job is not None
    job = msgspec.structs.replace(frame.job, name="\x1b]0;owned\x07[red]流れ\u202e\x9b2J")
    with serving() as url:
        push(url, [msgspec.structs.replace(frame, job=job)])
        with drawing(terminal, "--collector", url) as process:
            drawn = terminal.await_drawn("[red]流れ".encode())
            assert b"\x1b]" not in drawn
            assert "\u202e".encode() not in drawn
            assert "\x9b".encode() not in drawn
            leave(terminal, process, lambda: process.send_signal(signal.SIGINT))
