"""What tests of dashboards take /metrics to tell, against the page itself."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import Client
from tests.contract.exposed import known


def test_the_page_has_the_names_labels_and_kinds_that_are_said_of_it(client: Client) -> None:
    """Of the recorded jobs: no series that is not listed, and none with other labels."""
    client.get("/metrics")
    families = [*text_string_to_metric_families(client.get("/metrics").text)]
    assert len(families) > 70
    for family in families:
        for sample in family.samples:
            listed = known(sample.name)
            assert {*sample.labels} == listed.labels, sample
            assert listed.kind == ("gauge" if family.type == "gauge" else "counter"), sample
