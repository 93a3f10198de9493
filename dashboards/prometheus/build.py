"""
Writes streamgauge.rules.yml: `make dashboards`, or `python -m dashboards.prometheus.build` in a checkout.

With options it writes rules of one's own: `--for 15s --latency-p99 30s --output my.rules.yml`. `--check` writes nothing
and fails where the file is another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import click

from dashboards.prometheus.alerts import alerts
from dashboards.prometheus.recordings import recordings
from dashboards.prometheus.rule import written
from dashboards.prometheus.settings import Duration, Settings, option
from streamgauge.errors import SettingError

RULES = Path(__file__).with_name("streamgauge.rules.yml")

_HEAD = "# Made by `python -m dashboards.prometheus.build`, which takes thresholds as options: see docs/alerts.md.\n"


def _span(text: str) -> Duration:
    try:
        return Duration.read(text)
    except SettingError as error:
        raise click.BadParameter(str(error)) from None


def _lasting(text: str) -> tuple[str, Duration]:
    alert, _, span = text.rpartition("=")
    return alert, _span(span)


def rules(settings: Settings) -> str:
    """
    Return the text of the rule file.

    Raises:
        SettingError: the settings name an alert that is not there.
    """
    # One group, for its rules are evaluated one after another: an alert sees what was recorded at the same moment.
    recorded = [each.document() for each in recordings(settings)]
    alerting = [each.document(settings.runbook_url) for each in alerts(settings)]
    return _HEAD + written({"name": "streamgauge", "interval": str(settings.interval), "rules": recorded + alerting})


def _thresholds(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting that has words of help."""
    for one in reversed(fields(Settings)):
        if "help" in one.metadata:
            is_span = isinstance(one.default, Duration)
            command = click.option(
                option(one.name),
                type=_span if is_span else type(one.default),
                default=str(one.default) if is_span else one.default,
                show_default=True,
                metavar="DURATION" if is_span else None,
                help=one.metadata["help"],
            )(command)
    return command


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--for",
    "lasting",
    type=_lasting,
    multiple=True,
    metavar="[ALERT=]DURATION",
    help="How long a state has to last before an alert fires: of all alerts, or of one; may be said several times.",
)
@click.option(
    "--keep-firing-for",
    "keep_firing",
    type=_lasting,
    multiple=True,
    metavar="[ALERT=]DURATION",
    help="How long an alert goes on firing when the state is over.",
)
@_thresholds
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RULES,
    help="Where to write them; without it the committed copy.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail where the file says something else.")
def main(
    lasting: tuple[tuple[str, Duration], ...],
    keep_firing: tuple[tuple[str, Duration], ...],
    output: Path,
    check: bool,
    **options: object,
) -> None:
    """Write Streamgauge's recording and alert rules for Prometheus 2.42 and later."""
    try:
        text = rules(Settings(dict(lasting), dict(keep_firing), **options))  # type: ignore[arg-type]
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    if not check:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{output} cannot be written: {error.strerror}") from None
    elif not output.is_file() or output.read_text(encoding="utf-8") != text:
        raise click.ClickException(f"{output} is not what these options make: run the command without --check")


if __name__ == "__main__":
    main()
