"""The command `streamgauge`; each subcommand imports what it needs, so that a plain install can say what is missing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from streamgauge.environment import DEFAULT_URL
from streamgauge.errors import StreamgaugeError
from streamgauge.version import __version__


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
