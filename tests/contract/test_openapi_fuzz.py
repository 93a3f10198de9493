"""
What the document says is what is answered, whatever is asked: schemathesis against a store full of jobs.

REST_FUZZ_EXAMPLES sets how many requests each operation gets, others with every run; without it they are the same ones.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.config import SchemathesisConfig

from collector.history import SAMPLE_INTERVAL_MS, History
from collector.readings import JOB_FIGURES, VERTEX_FIGURES
from service.app import create_app
from service.cluster import application_id
from service.config import Config
from service.flink.history import HEAT
from service.openapi.document import document
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from tests.conftest import APP, EXECUTORS, NOW_MS, recorded_frames, recording
from tests.contract.crowd import SILENCE_MS, crowd

FUZZED = os.environ.get("REST_FUZZ_EXAMPLES", "")
EXAMPLES = int(FUZZED or 30)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
"""Not that what is malformed is refused: an unknown parameter is ignored, an unknown metric left out, as in Flink."""

store = crowd(ManualClock(NOW_MS - SILENCE_MS))
MAIN = recording("main__job.json")
KNOWN: dict[str, list[str]] = {
    "applicationid": [APP.id, application_id(APP.id)],
    "jobid": sorted(store.snapshot().jobs),
    "vertexid": [vertex["id"] for vertex in MAIN["vertices"]],
    "subtaskindex": ["0", "1", "150"],
    "attempt": ["0"],
    "taskmanagerid": list(EXECUTORS),
    "name": ["main.js", "page.css", "icon.svg", "index.html", "none.js"],
    "get": [names.NUM_RECORDS_IN, f"0.{names.NUM_RECORDS_IN}", names.UPTIME, names.HEAP_USED, names.BUSY_TIME],
}


def _told() -> dict[str, Any]:
    """The service's document, its parameters as likely what the store holds as anything else that may be sent."""
    told = document()
    for item in told["paths"].values():
        for parameter in item.get("get", {}).get("parameters", ()):
            known = KNOWN.get(parameter["name"])
            if known is None:
                continue
            schema = parameter["schema"]
            if schema.get("type") == "array":
                schema["items"] = {"anyOf": [{"enum": known}, schema["items"]]}
            else:
                parameter["schema"] = {"anyOf": [{"enum": known}, schema]}
    return told


PUSHED = codec.encode(recorded_frames())
schemathesis.openapi.media_type(
    wire.CONTENT_TYPE, st.just(PUSHED) | st.integers(0, len(PUSHED)).map(lambda size: PUSHED[:size]) | st.binary()
)
schema = schemathesis.openapi.from_dict(_told(), config=SchemathesisConfig())
clock = ManualClock(NOW_MS)
history = History(store, clock)
for _ in range(3):
    history.sample()
    clock.advance(SAMPLE_INTERVAL_MS)
schema.app = create_app(Config(host="testserver", insecure=True), store, clock, history)
FIGURES = [*VERTEX_FIGURES, *JOB_FIGURES, HEAT]
"""Of a history, which tells all where nothing is asked for, and lists nothing."""


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=not FUZZED, suppress_health_check=list(HealthCheck))
def test_answers_are_as_told(case: schemathesis.Case) -> None:
    """No 5xx, no status, header, content type or body that the document does not tell of."""
    case.call_and_validate(checks=CHECKS)


READS = [each.ok() for each in schema.get_all_operations() if each.ok().method == "get"]


@pytest.mark.parametrize("operation", READS, ids=lambda each: each.label)
def test_every_job_is_as_told(operation: Any) -> None:
    """Whatever state a job is in and whatever its names: bodies hold to their schemas, with every metric asked for."""
    names_of = [parameter.name for parameter in operation.path_parameters]
    for values in itertools.product(*(KNOWN.get(name, ["0"]) for name in names_of)):
        case = operation.Case(path_parameters=dict(zip(names_of, values, strict=True)))
        listed = case.call_and_validate(checks=CHECKS)
        if "get" in [parameter.name for parameter in operation.query]:
            body = listed.json()
            wanted = [each["id"] for each in body] if isinstance(body, list) else FIGURES
            asked = operation.Case(path_parameters=case.path_parameters, query={"get": wanted})
            asked.call_and_validate(checks=CHECKS)
