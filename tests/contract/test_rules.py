"""dashboards/prometheus: the rules are what is built, promtool has nothing to say, and all that they name is served."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from dashboards.prometheus.alerts import alerts
from dashboards.prometheus.build import RULES, rules
from dashboards.prometheus.recordings import recordings
from dashboards.prometheus.settings import Duration, Settings
from docs.metrics import PAGE
from tests.programs import program

TESTS = sorted((RULES.parent / "tests").glob("*.yml"))
ALERTS = {each.name: each for each in alerts(Settings())}
LABELS = {
    "application_id",
    "instance",
    "job",
    "job_id",
    "job_name",
    "job_type",
    "operator_name",
    "source_id",
    "source_name",
    "state",
    "subtask",
    "vertex_id",
    "vertex_name",
}
"""Of a family that rules name; job and instance are the scrape's."""
SHORT = Settings(
    lasting={"": Duration(15)},
    keep_firing={"": Duration(0)},
    interval=Duration(5),
    window=Duration(60),
    latency_p99=Duration(30),
    events_dropped=2.5,
)
"""What a demonstration asks for."""


def promtool(*arguments: str | Path) -> str:
    """What promtool says, which has to be content."""
    ran = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def named(text: str) -> set[str]:
    """Families in the text of rules; what is recorded is none."""
    found = re.findall(r"(?<![:\w])streamgauge_\w+(?![:\w])", text)
    return {re.sub("_bucket$", "", name) for name in found} - {"streamgauge"}


def test_rules_are_what_is_built() -> None:
    """The committed copy has the defaults."""
    assert RULES.read_text(encoding="utf-8") == rules(Settings()), "the rules are out of date: run `make dashboards`"


@pytest.mark.parametrize("settings", [Settings(), SHORT], ids=["default", "short"])
def test_promtool_takes_the_rules(settings: Settings, tmp_path: Path) -> None:
    """Each expression parses, and no rule is there twice."""
    file = tmp_path / "streamgauge.rules.yml"
    file.write_text(rules(settings), encoding="utf-8")
    count = len(alerts(settings)) + len(recordings(settings))
    assert f"SUCCESS: {count} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", file)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_alerts_fire_resolve_and_stay_silent(file: Path) -> None:
    """As the file beside the rules says, label by label and word by word."""
    promtool("test", "rules", file)


def test_each_alert_is_seen_to_fire_and_to_be_over() -> None:
    """In the files for promtool: once with its labels and words, and once not."""
    fires, is_over = set(), set()
    for file in TESTS:
        for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]:
            for case in test.get("alert_rule_test", ()):
                (fires if case.get("exp_alerts") else is_over).add(case["alertname"])
    assert fires == is_over == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_wrong_where_and_what_to_do(name: str) -> None:
    """Summaries are constant sentences; descriptions name the job or the application, and the value."""
    alert = ALERTS[name]
    assert re.fullmatch(r"[A-Z][^{}]*[a-z]\.", alert.summary)
    assert "$labels.job_name" in alert.description or name in {"StreamgaugeCollectorDown", "StreamgaugeEventsDropped"}
    has_value = name not in {"StreamgaugeJobFailed", "StreamgaugeJobSuspended", "StreamgaugeCollectorDown"}
    assert ("$value" in alert.description) is has_value
    assert alert.severity in {"critical", "warning", "info"}


def test_every_family_that_rules_and_pages_name_is_served() -> None:
    """Two pages have them all, and are themselves held to what is served."""
    pages = (PAGE, PAGE.with_name("prometheus.md"))
    served = {each for page in pages for each in re.findall(r"streamgauge_\w+", page.read_text(encoding="utf-8"))}
    files = [RULES, *TESTS, PAGE.with_name("alerts.md"), *PAGE.with_name("runbooks").glob("*.md")]
    for file in files:
        assert named(file.read_text(encoding="utf-8")) <= served, file.name


def test_every_recorded_series_that_alerts_name_is_recorded() -> None:
    """Under level:metric:operations."""
    names = [each.record for each in recordings(Settings())]
    assert all(re.fullmatch(r"(job_id|vertex_id|operator_name):streamgauge_\w+:\w+", name) for name in names)
    text = " ".join(each.expr + each.description for each in ALERTS.values())
    assert set(re.findall(r"\w+:streamgauge_\w+:\w+", text)) == set(names)


def test_every_label_that_rules_group_by_is_one() -> None:
    """Promtool takes any name, and a wrong one matches nothing."""
    text = RULES.read_text(encoding="utf-8")
    lists = re.findall(r"\b(?:by|without|ignoring|on) \(([^)]*)\)", text)
    assert lists
    assert {label for each in lists for label in re.findall(r"\w+", each)} <= LABELS
