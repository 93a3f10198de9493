"""docs/alerts.md and docs/runbooks: a page for each alert, and nothing in them that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.prometheus.alerts import alerts
from dashboards.prometheus.build import main
from dashboards.prometheus.recordings import recordings
from dashboards.prometheus.rule import Alert
from dashboards.prometheus.settings import Settings
from docs.metrics import PAGE as METRICS
from service.flink.rest import RESOURCES
from streamgauge import catalogue

DOCS = METRICS.parent
OVERVIEW = DOCS / "alerts.md"
ALERTS = alerts(Settings())
PAGES = sorted((DOCS / "runbooks").glob("*.md"))
HEADINGS = ["Meaning", "Impact", "What to look at", "What to do", "False alarms and tuning"]
PLAIN = {"/metrics", "/-/healthy", "/-/ready"}
"""What the service answers beside Flink's REST."""
METRIC_NAMES = {metric.name for metric in catalogue.METRICS}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors(page: str) -> set[str]:
    """What may stand behind # in a link to a page, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_alert_has_its_page_and_each_page_its_alert() -> None:
    """By the alert's name in lower case."""
    assert {page.name for page in PAGES} == {alert.runbook for alert in ALERTS}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_page_answers_the_same_five_questions(alert: Alert) -> None:
    """In one order, and none with nothing."""
    page = read(DOCS / "runbooks" / alert.runbook)
    assert page.startswith(f"# {alert.name}\n\nSeverity: {alert.severity}.\n\n## ")
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    assert parts[::2] == HEADINGS
    assert all(len(part.split()) > 10 for part in parts[1::2])


@pytest.mark.parametrize("page", [OVERVIEW, *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    """To a page that is there, and a heading in it."""
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", read(page)):
        linked = (page.parent / target).resolve() if target else page
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(read(linked)), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_asked_of_the_service_is_answered(page: Path) -> None:
    """Each path is a route, and each metric one of the catalogue."""
    asked = re.findall(r'curl -s "\$STREAMGAUGE_URL([^"?]*)(?:\?get=([^"&]*))?', read(page))
    assert asked or page.stem.endswith("down")
    for path, metrics in asked:
        route = path.replace("$JOB", ":jobid").replace("$VERTEX", ":vertexid")
        assert route in RESOURCES or route in PLAIN, route
        assert {name.removeprefix("$OPERATOR.") for name in metrics.split(",") if name} <= METRIC_NAMES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_and_alerts_that_pages_name_are_there(page: Path) -> None:
    """A renamed option, or alert, is renamed everywhere."""
    options = set(re.findall(r"`(--[a-z0-9-]+)", read(page))) - {"--allowed-host"}
    assert options <= {name for param in main.params for name in param.opts}
    assert set(re.findall(r"Streamgauge[A-Z]\w+", read(page))) <= {alert.name for alert in ALERTS}


def test_table_of_alerts_says_what_the_rules_say() -> None:
    """Name, page, severity and `for` of each."""
    rows = re.findall(r"^\| \[(\w+)\]\(runbooks/(\w+\.md)\) \| (\w+) \| (\w+) \| ", read(OVERVIEW), re.MULTILINE)
    assert sorted(rows) == sorted((each.name, each.runbook, each.severity, str(each.lasting)) for each in ALERTS)


def test_table_of_options_says_what_the_command_says() -> None:
    """Each option that has a default, with it."""
    told = dict(re.findall(r"^\| `(--[a-z0-9-]+)` \| (\S+) \| ", read(OVERVIEW), re.MULTILINE))
    known = {
        param.opts[0]: f"{param.default:g}" if isinstance(param.default, float) else str(param.default)
        for param in main.params
        if param.name not in {"lasting", "keep_firing", "output", "check"}
    }
    assert told == known | {"--for": "above", "--keep-firing-for": "above"}


def test_table_of_recorded_series_is_whole() -> None:
    """Dashboards may name them."""
    told = re.findall(r"^\| `(\w+:\w+:\w+)` \| ", read(OVERVIEW), re.MULTILINE)
    assert told == [each.record for each in recordings(Settings())]
