"""What is told of a source apart from columns."""

from __future__ import annotations

from spark_hooks.intake import METRICS, NAME_CHARS, PARTITIONS, Intake
from spark_hooks.progress import Source
from streamgauge import names


def taken(source: Source) -> Intake:
    intake = Intake(0)
    intake.take(source, 100, None)
    return intake


def test_connectors_own_metrics_are_numbers_where_they_are() -> None:
    """Kafka tells text; what is no number stays text, what no 64 bits hold becomes a float, and there is an end."""
    own = {"behind": "12", "share": "0.5", "topic": "t1", "huge": "9" * 30, names.INPUT_ROWS: "-1", "n" * 999: "1"}
    assert taken(Source("kafka", num_input_rows=5, metrics=own)).metrics() == {
        names.INPUT_ROWS: 5,
        "behind": 12,
        "share": 0.5,
        "topic": "t1",
        "huge": 1e30,
        "n" * NAME_CHARS: 1,
    }
    many = taken(Source("kafka", num_input_rows=5, metrics={f"m{number}": "1" for number in range(2 * METRICS)}))
    assert len(many.metrics()) == METRICS + 1


def test_each_partition_has_its_pending_rows() -> None:
    """'pendingRecords.<topic>.<partition>', those that have none too."""
    end, latest = {"flights": {"0": 5, "1": 7}}, {"flights": {"0": 9, "1": 7}}
    found = taken(Source("KafkaV2[Subscribe[flights]]", None, end, latest, 3)).metrics()
    assert found == {names.INPUT_ROWS: 3, "pendingRecords.flights.0": 4, "pendingRecords.flights.1": 0}


def test_of_too_many_partitions_there_is_the_total_alone() -> None:
    """A part of them would look like all of them."""
    end = {"t": {str(number): 1 for number in range(PARTITIONS + 1)}}
    latest = {"t": {str(number): 3 for number in range(PARTITIONS + 1)}}
    intake = taken(Source("KafkaV2[Subscribe[t]]", None, end, latest, 3))
    assert intake.metrics() == {names.INPUT_ROWS: 3}
    assert intake.figures.pending == 2 * (PARTITIONS + 1)


def test_metrics_are_made_once_a_batch() -> None:
    """A frame is built every second, and a source may have a thousand partitions."""
    intake = taken(Source("rate", num_input_rows=3))
    before = intake.metrics()
    assert intake.metrics() is before
    intake.take(Source("rate", num_input_rows=4), 200, None)
    assert intake.metrics() == {names.INPUT_ROWS: 7}
