"""The command that writes the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dashboards.prometheus.build import main, rules
from dashboards.prometheus.settings import Duration, Settings
from streamgauge.errors import SettingError


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def alert(text: str, name: str) -> dict[str, Any]:
    """A rule of the file by its name."""
    found: dict[str, Any] = next(
        each for each in yaml.safe_load(text)["groups"][0]["rules"] if each.get("alert") == name
    )
    return found


def test_one_duration_is_that_of_all_alerts() -> None:
    """As a demonstration wants it, which has no ten minutes."""
    text = rules(Settings(lasting={"": Duration(15)}, keep_firing={"": Duration(0)}))
    alerts = [each for each in yaml.safe_load(text)["groups"][0]["rules"] if "alert" in each]
    assert {each["for"] for each in alerts} == {"15s"}
    assert not any("keep_firing_for" in each for each in alerts)


def test_the_duration_of_one_alert_beats_that_of_all() -> None:
    """Whatever the order."""
    text = rules(Settings(lasting={"StreamgaugeSkew": Duration(3600), "": Duration(15)}))
    assert alert(text, "StreamgaugeSkew")["for"] == "1h"
    assert alert(text, "StreamgaugeJobFailed")["for"] == "15s"


def test_an_alert_that_is_not_there_is_refused() -> None:
    """With the nearest name."""
    with pytest.raises(SettingError) as refused:
        rules(Settings(keep_firing={"StreamgaugeJobFaild": Duration(1)}))
    assert (
        str(refused.value)
        == "--keep-firing-for StreamgaugeJobFaild: there is no such alert, is it StreamgaugeJobFailed?"
    )


@pytest.mark.parametrize(
    ("option", "name", "part"),
    [
        (("--utilization", "0.75"), "StreamgaugeJobBackPressured", ":max > 0.75\n"),
        (("--catch-up", "90s"), "StreamgaugeJobBackPressured", "-90 *"),
        (("--backlog-time", "7m"), "StreamgaugeBacklogGrowing", "_seconds > 420\n"),
        (("--watermark-lag", "1h"), "StreamgaugeWatermarkLag", "> 3600\n"),
        (("--window", "20m"), "StreamgaugeWatermarkLag", "offset 20m)\n    > 120\n"),
        (("--late-ratio", "0.2"), "StreamgaugeLateRecordsDropped", "> 0.2"),
        (("--latency-p99", "30s"), "StreamgaugeLatencyHigh", "> 30\n"),
        (("--latency-intervals", "2"), "StreamgaugeLatencyHigh", "<= 2 *"),
        (("--restarts", "7"), "StreamgaugeJobRestarting", ">= 7\n"),
        (("--restart-window", "2h"), "StreamgaugeJobRestarting", "_total[2h]"),
        (("--restarting", "3m"), "StreamgaugeJobRestarting", "_seconds > 180\n"),
        (("--stall-intervals", "9"), "StreamgaugeJobStalled", "(9 *"),
        (("--stall-extra", "5m"), "StreamgaugeJobStalled", "+ 300)"),
        (("--first-batch", "2h"), "StreamgaugeJobStalled", "[2h]"),
        (("--skew", "6.5"), "StreamgaugeSkew", "> 6.5\n"),
        (("--skew-busy", "0.25"), "StreamgaugeSkew", "> 0.25\n"),
        (("--events-dropped", "10"), "StreamgaugeEventsDropped", "> 10\n"),
        (("--scrape-job", 'a "b"'), "StreamgaugeCollectorDown", 'up{job="a \\"b\\""}'),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_option_reaches_the_rule_that_it_is_for(
    option: tuple[str, str], name: str, part: str, tmp_path: Path
) -> None:
    """And no other alert changes but by the window."""
    file = tmp_path / "my.rules.yml"
    assert ran(*option, "--output", file).exit_code == 0
    assert part in alert(file.read_text(encoding="utf-8"), name)["expr"]


def test_runbooks_may_be_anywhere() -> None:
    """A slash at the end of the address makes no difference."""
    one, other = (rules(Settings(runbook_url=url)) for url in ("https://wiki/ops", "https://wiki/ops/"))
    assert one == other
    assert alert(one, "StreamgaugeSkew")["annotations"]["runbook_url"] == "https://wiki/ops/streamgaugeskew.md"


def test_check_fails_on_drift_and_writes_nothing(tmp_path: Path) -> None:
    """A file that is missing has drifted too."""
    file = tmp_path / "my.rules.yml"
    assert ran("--check", "--output", file).exit_code == 1
    assert ran("--skew", "4", "--output", file).exit_code == 0
    assert ran("--skew", "4", "--check", "--output", file).exit_code == 0
    failed = ran("--check", "--output", file)
    assert failed.exit_code == 1
    assert "is not what these options make" in failed.output
    assert "> 4\n" in file.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    """With the system's reason."""
    failed = ran("--output", tmp_path / "nowhere" / "my.rules.yml")
    assert failed.exit_code == 1
    assert "cannot be written: No such file or directory" in failed.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--for", "15"), "Invalid value for '--for': '15' is no duration"),
        (("--for", "StreamgaugeSkew="), "Invalid value for '--for': '' is no duration"),
        (("--window", "soon"), "Invalid value for '--window': 'soon' is no duration"),
        (("--skew", "much"), "Invalid value for '--skew'"),
        (("--skew", "0.5"), "--skew 0.5: a number above 1 is expected"),
        (("--for", "Streamgauge=1m"), "--for Streamgauge: there is no such alert"),
        (("--latency-p95", "1s"), "No such option"),
    ],
)
def test_what_is_no_value_is_refused_and_nothing_is_written(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """As click refuses: with exit code 2."""
    file = tmp_path / "my.rules.yml"
    refused = ran(*arguments, "--output", file)
    assert refused.exit_code == 2
    assert words in refused.output
    assert not file.exists()
