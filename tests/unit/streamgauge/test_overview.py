"""What is made of figures: sums, order, JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.overview import Driver, Job, Overview, Vertex, in_flow_order, known, total


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        ("2.5", 2.5),
        ("1.0E10", 1e10),
        *((unknown, None) for unknown in ("NaN", float("inf"), True, "true", None, "", 10**400)),
    ],
)
def test_only_finite_numbers_are_known(value: object, number: float | None) -> None:
    """NaN is the REST's word for unknown."""
    assert known(value) == number


def test_a_sum_with_a_gap_is_unknown() -> None:
    """So is the sum of nothing."""
    assert (total([1.0, 2.0]), total([1.0, None]), total([])) == (3.0, None, None)


def test_vertices_come_behind_what_they_read() -> None:
    """Else in the order given; unknown vertices and circles hold nothing up."""
    assert in_flow_order({"sink": ["join"], "join": ["a", "b"], "b": [], "a": []}) == ["b", "a", "join", "sink"]
    assert in_flow_order({"x": ["nowhere"], "y": ["y"], "z": ["w"], "w": ["z"]}) == ["x", "y", "z", "w"]


@given(st.dictionaries(st.integers(0, 9).map(str), st.lists(st.integers(0, 9).map(str), max_size=3)))
def test_no_graph_loses_a_vertex(inputs: dict[str, list[str]]) -> None:
    """Whatever its edges."""
    assert sorted(in_flow_order(inputs)) == sorted(inputs)


def test_json_has_every_key_and_null_for_unknown() -> None:
    """The keys are what scripts rest on."""
    vertex = Vertex("v", "Scan", "RUNNING", 2, records_in_per_second=float("nan"))
    found = Overview(
        "http://c",
        5,
        states={"RUNNING": 1},
        jobs=(Job("j", "flights\n", "STREAMING", "RUNNING", vertices=(vertex,)),),
        drivers=(Driver("app-1", "flights", "host", False, hooks={"events": 1.0}),),
    ).json()
    assert b"\n" not in found
    assert json.loads(found) == {
        "collector": "http://c",
        "read_ms": 5,
        "error": None,
        "states": {"RUNNING": 1},
        "slots_total": None,
        "slots_available": None,
        "jobs": [
            {
                "id": "j",
                "name": "flights\n",
                "type": "STREAMING",
                "state": "RUNNING",
                "start_ms": None,
                "duration_ms": None,
                "uptime_ms": None,
                "restarts": None,
                "batch_id": None,
                "batch_duration_ms": None,
                "records_in_per_second": None,
                "records_out_per_second": None,
                "failure": None,
                "backlogged": None,
                "bottleneck": None,
                "vertices": [
                    {
                        "id": "v",
                        "name": "Scan",
                        "state": "RUNNING",
                        "parallelism": 2,
                        "records_in_per_second": None,
                        "records_out_per_second": None,
                        "busy_ratio": None,
                        "back_pressured_ratio": None,
                        "pending_records": None,
                        "fetch_lag_ms": None,
                        "watermark_lag_ms": None,
                        "bottleneck": False,
                    }
                ],
            }
        ],
        "drivers": [
            {
                "id": "app-1",
                "name": "flights",
                "host": "host",
                "silent": False,
                "last_frame_ms": None,
                "age_ms": None,
                "events_per_second": None,
                "hooks": {"events": 1.0},
            }
        ],
    }
