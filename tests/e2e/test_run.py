"""`streamgauge run`: jobs that know nothing of us behave as they do without us, and are seen."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.e2e.conftest import Rest, eventually

ROOT = Path(__file__).parents[2]
USER = Path(__file__).with_name("user")
EXAMPLES = Path(pyspark.__file__).parent / "examples/src/main/python/sql/streaming"
SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"
RUN = (sys.executable, "-m", "streamgauge", "run")

Guest = Callable[..., "subprocess.Popen[str]"]

DEFAULTS = """
spark.master                       local[2]
spark.driver.bindAddress           127.0.0.1
spark.driver.host                  127.0.0.1
spark.driver.memory                1g
spark.executor.heartbeatInterval   1s
spark.sql.shuffle.partitions       2
spark.ui.enabled                   false
spark.ui.showConsoleProgress       false
"""
QUIET = """
rootLogger.level = off
"""


@pytest.fixture
def guest(service: str, tmp_path: Path) -> Iterator[Guest]:
    """Starts a command where a user would: in a folder of the user's, and with a quiet local Spark."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(DEFAULTS)
    (conf / "log4j2.properties").write_text(QUIET)
    started: list[subprocess.Popen[str]] = []

    def start(*command: str | Path, cwd: Path = USER, **variables: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMGAUGE_")}
        environment |= {
            "PYSPARK_PYTHON": sys.executable,
            # This clone, wherever the installed one is.
            "PYTHONPATH": str(ROOT),
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
            "STREAMGAUGE_URL": service,
            **variables,
        }
        pipe = subprocess.PIPE
        words = list(map(str, command))
        started.append(
            subprocess.Popen(words, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def outcome(process: subprocess.Popen[str], given: str = "") -> tuple[int, str, list[str]]:
    """Exit code, stdout, and what stderr tells of us or of Python's failures, but not of a JVM's."""
    out, err = process.communicate(given, timeout=200)
    telling = re.compile(r"streamgauge|Traceback|^(?!java\.|org\.)\S*(Error|Exception):")
    ours = [line for line in err.splitlines() if telling.search(line)]
    return process.returncode, out, ours


@pytest.mark.parametrize("way", [[sys.executable, "sessionless.py"], [sys.executable, "-m", "sessionless"]], ids=str)
def test_a_script_without_a_session_is_as_without_us(guest: Guest, way: list[str]) -> None:
    """Arguments, standard input, path, modules, threads and exit code; nothing is imported that it did not ask for."""
    alone, launched = (outcome(guest(*prefix, *way, "a", "--token", "b"), "input") for prefix in ((), RUN))
    assert launched == alone
    assert alone[0] == 7
    assert "['a', '--token', 'b'] __main__ sessionless.py input" in alone[1]


@pytest.mark.parametrize("way", [["sessionless.py"], ["-m", "sessionless"]], ids=str)
def test_scripts_and_modules_need_no_python_in_front(guest: Guest, way: list[str]) -> None:
    """The Python that Streamgauge is installed for runs them."""
    assert outcome(guest(*RUN, *way, "x"), "y") == outcome(guest(sys.executable, *way, "x"), "y")


def test_the_users_own_sitecustomize_still_runs(guest: Guest, tmp_path: Path) -> None:
    """Ours hands on to the one that it stands in front of, and to the module's own failures."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.customised = __name__\n")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    alone, launched = (
        outcome(guest(*prefix, sys.executable, "sessionless.py", PYTHONPATH=path)) for prefix in ((), RUN)
    )
    assert launched == alone
    assert launched[1].endswith("\nsitecustomize\n")


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["no-such-command"], 127, "Error: no-such-command: there is no such command"),
        (["./service"], 126, "Error: ./service cannot be executed"),
        (["--interval-ms", "5", "sessionless.py"], 2, "Error: interval_ms 5: expected milliseconds between"),
        (["--colector", "x", "sessionless.py"], 2, "Error: No such option '--colector'. Did you mean '--collector'?"),
        (["--collector", "localhost:8081", "x.py"], 2, "Error: url 'localhost:8081': expected http://host:port"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(guest: Guest, command: list[str], code: int, told: str) -> None:
    """With a shell's exit code; a wrong setting stops before the job, not in it."""
    found, out, lines = outcome(guest(*RUN, *command))
    assert (found, out) == (code, "")
    assert lines[-1].startswith(told)
    assert "Traceback" not in lines


def test_an_unknown_variable_is_refused_before_the_job(guest: Guest) -> None:
    """With the nearest name."""
    code, _, lines = outcome(guest(*RUN, "sessionless.py", STREAMGAUGE_COLLECTOR_URL="x"))
    assert code == 2
    assert lines[-1].startswith("Error: unknown setting STREAMGAUGE_COLLECTOR_URL; did you mean STREAMGAUGE_")


def test_a_signal_ends_the_command_itself(guest: Guest) -> None:
    """It is executed in the launcher's place: nothing stands between it and its signals."""
    process = guest(*RUN, "sh", "-c", "echo $$; kill -TERM $$")
    assert outcome(process) == (-signal.SIGTERM, f"{process.pid}\n", [])
    assert outcome(guest(*RUN, "sh", "-c", "yes | head -1")) == (0, "y\n", [])


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LANG": "C", "LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}], ids=str)
def test_the_locale_is_the_users(guest: Guest, monkeypatch: pytest.MonkeyPatch, locale: dict[str, str]) -> None:
    """Python changes it for itself in a C locale; a JVM that is started must not notice."""
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    show = ("sh", "-c", "echo ${LANG-none} ${LC_ALL-none} ${LC_CTYPE-none}")
    assert outcome(guest(*RUN, *show, **locale)) == outcome(guest(*show, **locale))


# ---- With Spark


def folder_of(tmp_path: Path) -> tuple[Path, int]:
    """Text files for two batches, and their lines."""
    folder = tmp_path / "lines"
    folder.mkdir()
    for index, count in enumerate((30, 12)):
        (folder / f"{index}.txt").write_text("".join(f"line {line}\n" for line in range(count)))
    return folder, 42


def read_in(rest: Rest, name: str) -> int:
    job = eventually(lambda: (found := rest.job(name)) and found["state"] == "FINISHED" and found)
    return int(rest.get(f"/jobs/{job['jid']}")["vertices"][0]["metrics"]["read-records"])


@pytest.mark.spark
def test_a_job_is_as_without_us_and_is_seen(guest: Guest, rest: Rest, tmp_path: Path) -> None:
    """A module with packages called as ours; it forks twice, re-creates its session and ends with 3."""
    folder, lines = folder_of(tmp_path)
    way = (sys.executable, "-m", "streamgauge_app", folder)
    alone, launched = (outcome(guest(*prefix, *way)) for prefix in ((), RUN))
    assert launched == alone
    assert alone[0] == 3
    assert alone[1].splitlines() == [
        "the user's own collector | the user's own service | the user's own tests",
        "__main__ ['user'] True",
        f"guest first {lines}",
        "the child ends",
        "5",
        "the worker ends",
        f"guest after forks {lines}",
        f"guest again {lines}",
    ]
    for name in ("guest first", "guest after forks", "guest again"):
        assert read_in(rest, name) == lines


@pytest.mark.spark
@pytest.mark.parametrize("way", [(), RUN], ids=["alone", "launched"])
def test_sigterm_ends_a_job_at_once(guest: Guest, rest: Rest, way: tuple[str, ...]) -> None:
    """With the code of the signal; the collector notices the silence by itself."""
    process = guest(*way, sys.executable, "waits.py")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    if way:
        eventually(lambda: rest.job("guest waits"))
    process.send_signal(signal.SIGTERM)
    assert outcome(process) == (-signal.SIGTERM, "", [])


@pytest.mark.spark
def test_spark_submit_in_client_mode(guest: Guest, rest: Rest, tmp_path: Path) -> None:
    """spark-submit starts the driver's Python itself; its code is spark-submit's."""
    folder, lines = folder_of(tmp_path)
    options = ("--name", "submitted", "--conf", "spark.streamgauge.interval_ms=500")
    way = (SUBMIT, *options, USER / "submitted.py", folder, "submitted")
    alone, launched = (outcome(guest(*prefix, *way)) for prefix in ((), RUN))
    assert launched == alone
    assert alone == (1, f"submitted {lines}\n", [])
    assert read_in(rest, "submitted") == lines


def test_cluster_mode_is_told_in_one_line(guest: Guest, tmp_path: Path) -> None:
    """The driver is out of reach; the command runs all the same, without anything of ours in its environment."""
    submit = tmp_path / "spark-submit"
    submit.write_text('#!/bin/sh\necho "$PYTHONPATH" "$@"\n')
    submit.chmod(0o755)
    process = guest(*RUN, submit, "--deploy-mode", "cluster", "app.py", PYTHONPATH=str(ROOT))
    code, out, lines = outcome(process)
    assert (code, out) == (0, f"{ROOT} --deploy-mode cluster app.py\n")
    assert len(lines) == 1
    assert lines[0].startswith("streamgauge cannot reach a driver in cluster mode")


# ---- Spark's own examples


@contextmanager
def words(*lines: str) -> Iterator[int]:
    """A server, as netcat, that sends lines to whoever connects; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def send() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall("".join(f"{line}\n" for line in lines).encode())
                    ended.wait()

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            listener.close()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("structured_network_wordcount_windowed.py", ["10", "5"]),
        ("structured_network_wordcount_session_window.py", []),
    ],
)
def test_sparks_own_examples_run_unmodified(guest: Guest, rest: Rest, example: str, arguments: list[str]) -> None:
    """What the socket sent is what the source read, and its words are what came out of the explode."""
    lines = ("to be or not to be", "that is the question")
    with words(*lines) as port:
        before = {job["jid"] for job in rest.get("/jobs/overview")["jobs"]}
        process = guest(*RUN, EXAMPLES / example, "127.0.0.1", str(port), *arguments)

        def counts() -> tuple[int, int] | None:
            for job in rest.get("/jobs/overview")["jobs"]:
                if job["jid"] not in before and job["state"] == "RUNNING":
                    for vertex in rest.get(f"/jobs/{job['jid']}")["vertices"]:
                        columns = rest.columns(job["jid"], vertex["id"])
                        if "Generate.numRecordsOut" in columns:
                            source = next(name for name in columns if name.startswith("Source__"))
                            return total(columns[f"{source.partition('.')[0]}.numRecordsIn"]), total(
                                columns["Generate.numRecordsOut"]
                            )
            return None

        eventually(lambda: counts() == (len(lines), 10), 90)
        process.send_signal(signal.SIGTERM)
        code, out, told = outcome(process)
    assert (code, told) == (-signal.SIGTERM, [])
    assert "Batch: 0" in out


def total(column: dict[int, str]) -> int:
    return sum(map(int, column.values()))


@pytest.mark.spark
def test_an_example_that_spark_refuses_is_refused_the_same(guest: Guest) -> None:
    """structured_sessionization.py asks for update mode, which session windows have not, with us or without."""
    with words() as port:
        way = (sys.executable, EXAMPLES / "structured_sessionization.py", "127.0.0.1", str(port))
        alone, launched = (outcome(guest(*prefix, *way)) for prefix in ((), RUN))
    assert launched == alone
    assert alone[0] == 1
    assert "not supported for session window streaming aggregations" in alone[2][-1]
