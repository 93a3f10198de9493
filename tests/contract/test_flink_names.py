"""The catalogue against the metric ids that a real Flink 2.3 lists (recorded answers in flink_names/)."""

import json
from pathlib import Path

import pytest

from streamgauge import names

RECORDED = Path(__file__).parent / "flink_names"

OURS = {
    ("job", "lastCheckpointProcessedRows"),
    ("job", "numInputRows"),
    ("job", "numOutputRows"),
    ("coordinator", "numInputRows"),
    ("coordinator", "inputRowsPerSecond"),
    ("coordinator", "processedRowsPerSecond"),
    # Flink's too, with metrics.system-resource on, as the recorded one had it not.
    ("driver", "System.Memory.Total"),
    ("executor", "System.Memory.Total"),
}
"""What Spark tells and Flink has no word for; the hooks' own figures are ours altogether."""


def _ids(file: str) -> list[str]:
    return [entry["id"] for entry in json.loads((RECORDED / file).read_text())]


def _known(metric: names.Metric) -> bool:
    if metric.scope == "job":
        return metric.name in _ids("job.json")
    if metric.scope == "vertex":
        return f"0.{metric.name}" in _ids("vertex.json")
    if metric.scope == "operator":
        return f"0.Count_Map.{metric.name}" in _ids("vertex.json")
    return metric.name in _ids("taskmanager.json" if metric.scope == "executor" else "jobmanager.json")


@pytest.mark.parametrize(
    "metric",
    [metric for metric in names.METRICS if metric.scope != "hooks"],
    ids=lambda metric: f"{metric.scope}-{metric.name}",
)
def test_a_name_is_flinks_or_declared_as_ours(metric: names.Metric) -> None:
    """Names are Flink's, exactly, at the same scope; what is not is on a short list, and nothing on it is Flink's."""
    assert _known(metric) is ((metric.scope, metric.name) not in OURS)


def test_nothing_is_declared_as_ours_in_vain() -> None:
    """The list holds only what the catalogue has."""
    assert {(metric.scope, metric.name) for metric in names.METRICS} >= OURS


def test_an_operators_name_is_filtered_as_flink_does() -> None:
    """'Count Map' is listed as 'Count_Map'."""
    assert any(entry.startswith(f"0.{names.filtered('Count Map')}.numRecordsIn") for entry in _ids("vertex.json"))
