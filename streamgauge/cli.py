"""The command `streamgauge`; each subcommand imports what it needs, so that a plain install can say what is missing."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.environment import DEFAULT_URL
from streamgauge.errors import ReplayError, StreamgaugeError
from streamgauge.version import __version__

if TYPE_CHECKING:
    from collector.run import Run
    from streamgauge.replay_report import Report


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="streamgauge")
def main() -> None:
    """Flink-grade metrics for every Spark Structured Streaming query."""


def _look_apart() -> None:
    """Find service, collector and examples of a wheel, which keeps them from the packages of users (pyproject.toml)."""
    apart = Path(__file__).with_name("apart")
    if apart.is_dir():
        sys.path.insert(0, str(apart))


@main.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on, 0 for a free one.  [default: 8081]")
@click.option("--push-token", help="Take pushes with this token only; needed beyond loopback.")
@click.option("--read-token", help="Answer reads with this token only, as Bearer token or Basic password.")
@click.option("--insecure", is_flag=True, default=None, help="Listen beyond loopback without a token.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, help="A further name that requests may be sent to.")
@click.option("--max-push-bytes", type=click.IntRange(1), help="Longest push that is taken.  [default: 33554432]")
@click.option(
    "--metrics-max-series",
    type=click.IntRange(1),
    help="Series of a page that Prometheus scrapes; what would be more is told less finely.  [default: 250000]",
)
@click.option(
    "--archive",
    metavar="URL",
    help="Where ended jobs are kept: a file's path, sqlite:///path, postgresql://user:password@host/database, or none; "
    "a password is better in STREAMGAUGE_ARCHIVE, which `ps` hides.  [default: a file of this user's]",
)
@click.option("--archive-days", type=click.IntRange(1), help="Days that an ended run is kept.  [default: 7]")
@click.option(
    "--archive-jobs",
    type=click.IntRange(1),
    help="Ended runs of queries that are kept at most, and as many of batch executions.  [default: 1000]",
)
def serve(**options: object) -> None:
    """Collect from drivers, and serve the Flink REST and Prometheus."""
    _look_apart()
    try:
        from service.config import Config
        from service.server import serve as run
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed, the service needs it: pip install 'streamgauge[service]'"
        ) from None
    try:
        run(Config.read(os.environ, **options), lambda url: click.echo(f"Streamgauge listens on {url}"))
    except StreamgaugeError as error:
        raise click.ClickException(str(error)) from None


@main.command(context_settings={"allow_interspersed_args": False})
@click.option("--collector", metavar="URL", help=f"Where the collector listens.  [default: {DEFAULT_URL}]")
@click.option("--token", help="Its push token, where it asks for one; better in STREAMGAUGE_TOKEN, which `ps` hides.")
@click.option("--interval-ms", type=int, help="Between two pushes, 100 to 60000.  [default: 1000]")
@click.option("-m", "module", is_flag=True, help="COMMAND is a Python module, as after python -m.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(collector: str | None, token: str | None, interval_ms: int | None, module: bool, command: list[str]) -> None:
    """
    Run a PySpark job with the hooks attached, without a change to it.

    \b
    streamgauge run app.py …
    streamgauge run -m package.module …
    streamgauge run spark-submit … app.py …      (client mode)

    Input, output, signals and the exit code are the job's own. Any command will do: every Python that it starts
    attaches to the first Spark session it makes.
    """  # noqa: D301 - no raw string, for that is how click takes a backspace
    from spark_hooks import launcher
    from spark_hooks.settings import Settings

    given = {"STREAMGAUGE_URL": collector, "STREAMGAUGE_TOKEN": token, "STREAMGAUGE_INTERVAL_MS": interval_ms}
    environment = {
        **launcher.inherited(os.environ),
        **{name: str(value) for name, value in given.items() if value is not None},
    }
    try:
        Settings.read({}, {}, environment)
        if launcher.is_cluster_mode(command, environment):
            click.echo(
                "streamgauge cannot reach a driver in cluster mode, the job runs without it: "
                "call streamgauge.attach(spark) in the job itself",
                err=True,
            )
        else:
            environment = launcher.environment(environment)
        launcher.run(launcher.command_line(command, module), environment)
    except launcher.CannotRun as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(error.code) from None
    except StreamgaugeError as error:
        raise click.UsageError(str(error)) from None


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the service listens on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="Its port, 0 for a free one."
)
@click.option(
    "--speed",
    type=click.FloatRange(0, 86400, min_open=True),
    help="Simulated seconds a second.  [default: 14400]",
)
@click.option("--prometheus", is_flag=True, help="With Prometheus and Alertmanager, where they are installed.")
def demo(host: str, port: int, speed: float | None, prometheus: bool) -> None:
    """Start the service and a Spark job on real data, until Ctrl-C."""
    _look_apart()
    try:
        from examples.demo import run
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed, the demo needs it: pip install 'streamgauge[demo]'"
        ) from None
    try:
        run(host, port, speed, click.echo, prometheus)
    except StreamgaugeError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--archive",
    metavar="URL",
    help="Where the runs go, a SQLite file's path, sqlite:///… or postgresql://….  [serve's]",
)
@click.option("--replace", is_flag=True, help="Write over runs that the archive has already.")
@click.option("--serve", "serving", is_flag=True, help="Open the page on them; without --archive on them alone.")
@click.option("--host", help="Address to listen on, with --serve.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Its port, 0 for a free one.  [default: 8081]")
@click.option(
    "--json", "as_json", is_flag=True, help="JSON with stable keys, one log a line; null is what is not known."
)
def replay(
    paths: tuple[str, ...],
    archive: str | None,
    replace: bool,
    serving: bool,
    host: str | None,
    port: int | None,
    as_json: bool,
) -> None:
    """
    Bring the jobs of Spark's event logs into the archive, as ended ones.

    PATH is an event log, plain or compressed, a rolled one's folder, a folder of logs, or what Spark itself can read:
    hdfs://…, s3a://…. It needs no Spark otherwise. What of a log was skipped is told on standard error.
    A run that the archive has, from its own driver or an earlier replay, stays as it is.
    """
    _look_apart()
    try:
        from collector.archive import open_archive
        from collector.segment import run_id
        from service.config import NO_ARCHIVE, Config
        from service.server import serve as run
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed, replay needs it: pip install 'streamgauge[replay]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="streamgauge-", ignore_cleanup_errors=True) as folder:
        try:
            if archive is None and serving:
                archive = (Path(folder) / "archive.db").as_posix()
            url = Config.read(os.environ).archive if archive is None else archive
            if url == NO_ARCHIVE and not as_json:
                raise click.ClickException(
                    "the archive is switched off, so the runs would go nowhere: name one with --archive, or use --serve"
                )
            kept = None if url == NO_ARCHIVE else open_archive(url)

            def keep(run: Run) -> bool:
                if kept is None or (not replace and run_id(run.state) in kept.entries.by_run):
                    return False
                kept.write(run)
                return True

            try:
                read = _replay_all(paths, Path(folder), keep, as_json)
            finally:
                if kept is not None:
                    kept.close()
            if not read:
                raise SystemExit(1)
            if serving:
                config = Config.read(os.environ, host=host, port=port, archive=url)
                run(config, lambda address: click.echo(f"Streamgauge listens on {address}", err=as_json))
        except StreamgaugeError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:
            raise click.Abort from None


def _replay_all(paths: tuple[str, ...], folder: Path, keep: Callable[[Run], bool], as_json: bool) -> int:
    """Replay whatever is found at `paths`, and `keep` its runs; return how many logs could be read."""
    from collector.replayed import Replayed, summary
    from spark_hooks.event_log import find
    from spark_hooks.hadoop_log import fetch, is_remote
    from spark_hooks.replay import replay
    from streamgauge.replay_report import Report

    logs, read = [], 0
    for number, path in enumerate(paths):
        with _going_on(ReplayError):
            copies = [Path(path)]
            if is_remote(path):
                place = folder / f"copies-{number}"
                place.mkdir()
                copies = fetch(path, place)
            for each in copies:
                logs += find(each)
    for log in logs:
        runs: list[dict[str, str | int | bool | None]] = []

        def conclude(run: Run, runs: list[dict[str, str | int | bool | None]] = runs) -> None:
            runs.append({**summary(run), "written": keep(run)})

        into, report = Replayed(conclude), None
        # Every file is read twice.
        with _going_on(ReplayError), _progress(2 * log.nbytes, log.name) as advance:
            told = replay(log, into, advance)
            into.end()
            read += 1
            report = Report(
                log=log.name,
                app=told.app.id,
                spark_version=told.app.spark_version,
                events=told.events,
                first_ms=told.first_ms,
                last_ms=told.last_ms,
                ended=told.ended,
                unknown=dict(told.skipped.unknown),
                unreadable=told.skipped.unreadable,
                lines=tuple(told.skipped.lines),
                truncated=told.skipped.truncated,
                cut=told.cut,
                faults=told.faults,
                refused=tuple(into.refused),
                left_out=into.left_out,
                runs=tuple(runs),
            )
        if report is not None:
            _tell(report, as_json)
    return read


def _tell(report: Report, as_json: bool) -> None:
    if as_json:
        click.echo(report.json())
        return
    for line in report.runs_told():
        click.echo(line)
    for line in report.skipped_told():
        click.echo(line, err=True)


@contextlib.contextmanager
def _going_on(error: type[StreamgaugeError]) -> Iterator[None]:
    """Tell an error and go on: what follows may be read."""
    try:
        yield
    except error as fault:
        click.echo(f"Error: {fault}", err=True)


@contextlib.contextmanager
def _progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, on a terminal only; yield what moves it on."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update


def _reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of whatever reads a service."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="JSON with stable keys; null is what is not known."),
        click.option(
            "--token",
            envvar="STREAMGAUGE_READ_TOKEN",
            help="The read token, where the service asks for one; better in STREAMGAUGE_READ_TOKEN, which `ps` hides.",
        ),
        click.option(
            "--collector",
            metavar="URL",
            envvar="STREAMGAUGE_URL",
            default=DEFAULT_URL,
            show_default=True,
            help="Where the service listens; else STREAMGAUGE_URL.",
        ),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def _needing_rich(command: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        raise click.ClickException(
            f"{library} is not installed, {command} needs it: pip install 'streamgauge[top]', or use --json"
        ) from None


@main.command()
@click.option("-a", "--all", "ended", is_flag=True, help="List jobs that have ended, too.")
@_reading
def jobs(collector: str, token: str | None, ended: bool, as_json: bool) -> None:
    """
    List the jobs of a service, one a line.

    IN/S and OUT/S are records a second over the last minute; BATCH and TOOK are the last completed micro-batch and its
    duration. '-' is what is not known.
    """
    from streamgauge.clock import SystemClock
    from streamgauge.rest import Rest
    from streamgauge.survey import Question, Survey

    try:
        survey = Survey(Rest(collector, token), SystemClock())
        question = Question(ended=ended, whole=False)
        if as_json:
            click.echo(survey.read(question).json())
            return
        with _needing_rich("jobs"):
            from streamgauge import terminal
            from streamgauge.listing import listing
        console = terminal.stdout()
        terminal.write(console, listing(survey.read(question), terminal.width(console), ended))
    except StreamgaugeError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option("--job", help="Jobs whose id begins so, or whose name contains this; also those that have ended.")
@click.option("--once", is_flag=True, help="Read once, print, and end.")
@_reading
def top(collector: str, token: str | None, interval_s: float, job: str | None, once: bool, as_json: bool) -> None:
    """
    Show jobs, their vertices and the hooks in their drivers, live; q or Ctrl-C ends it.

    IN/S and OUT/S are records a second over the last minute. BUSY and BACKP are the shares of time that the busiest
    and the most back-pressured subtask spent so. LAG is the watermark's or the source's, PENDING the records that a
    source has left to read. DROPPED are records that the hooks had to give up, ACK the age of the last frame that the
    service took. '-' is what is not known. Without a terminal, every reading is printed.
    """
    from streamgauge.clock import SystemClock
    from streamgauge.rest import Rest
    from streamgauge.survey import Question, Survey
    from streamgauge.watch import readings

    clock, question = SystemClock(), Question(job)
    try:
        survey = Survey(Rest(collector, token), clock)
        if as_json:
            for found in readings(survey, lambda: question, interval_s, once):
                click.echo(found.json())
        else:
            with _needing_rich("top"):
                from streamgauge.live import follow
            follow(survey, question, interval_s, once, clock)
    except StreamgaugeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        return
