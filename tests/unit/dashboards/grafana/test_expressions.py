"""What the dashboards ask, as it is handed to whoever runs it."""

from __future__ import annotations

import re

import pytest

from dashboards.grafana import expressions

VALUES = {
    "application": ".*",
    "executor": ".*",
    "job": "flights by hour",
    "source": ".*",
    "vertex": ".*",
    "__rate_interval": "20s",
    "__range": "5m",
}


def test_variables_are_put_in() -> None:
    """Nothing of Grafana's is left, so Prometheus takes it as it is."""
    asked = [each.expr for each in expressions.resolved(VALUES)]
    assert not [expr for expr in asked if "$" in expr]
    assert 'max by (job_name) (streamgauge_job_uptime_seconds{job_name="flights by hour"})' in asked


def test_a_variable_without_a_value_is_refused() -> None:
    """Else an expression would be run that nobody asks."""
    with pytest.raises(KeyError, match="vertex"):
        list(expressions.resolved({name: value for name, value in VALUES.items() if name != "vertex"}))


def test_every_target_and_variable_of_every_file_is_there() -> None:
    """Counted in the text of the files, whatever their structure; rows that are closed are looked into."""
    text = "".join(path.read_text(encoding="utf-8") for path in expressions.FOLDER.glob("*.json"))
    written = [*expressions.written()]
    assert len([each for each in written if not each.label]) == len(re.findall(r'"expr": ', text))
    assert len([each for each in written if each.label]) == len(re.findall(r'"query": "label_values', text))
