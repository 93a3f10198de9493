"""The same requests as the recorded Flink answered, against the same jobs: same structure, status, content type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import get_type_hints

import msgspec
import pytest

from service.cluster import application_id
from service.flink.rest import RESOURCES
from tests.conftest import APP, Client
from tests.contract.recordings import Answer, Recording, recordings, unlisted
from tests.contract.walk import Places, Walk

FLINKS = {recording.resource for recording in recordings() if recording.method == "GET" and recording.status == "200"}
ASKED = [recording for recording in recordings() if recording.resource not in FLINKS - set(RESOURCES)]
BODIES = [recording for recording in ASKED if recording.status == "200" and recording.method == "GET"]
METRICS = [each for each in BODIES if each.name.startswith("err_") and "get=" in each.path and "Gauge" not in each.path]


# In Flink an application of one job has the job's id.
PLACES = Places(applications={"c8f9542298a966c6739b14e7a7e88134": application_id(APP.id)})


def name(recording: Recording) -> str:
    return recording.name


@pytest.fixture
def walk(client: Client) -> Walk:
    """Asks of the recorded jobs, whose ids are Flink's."""

    def send(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        got = client.request(method, target, headers=dict(headers), content=body)
        return Answer(str(got.status_code), got.headers["content-type"], got.json() if got.content else None)

    return Walk(send, PLACES)


@pytest.mark.parametrize("recording", ASKED, ids=name)
def test_answer_is_flinks(walk: Walk, recording: Recording) -> None:
    """Status, content type, structure, the words of a refusal: as recorded, or with a reason in the table."""
    assert unlisted(recording, walk.differences(recording)) == []


@pytest.mark.parametrize("recording", BODIES, ids=name)
def test_body_is_what_its_handler_declares(client: Client, recording: Recording) -> None:
    """Read as the return type and written again it is the same: no key is undeclared, none of another type."""
    declared = get_type_hints(RESOURCES[recording.resource], include_extras=True)["return"]
    body = client.get(PLACES.target(recording))
    assert json.loads(msgspec.json.encode(msgspec.json.decode(body.content, type=declared))) == body.json()


@pytest.mark.parametrize("recording", METRICS, ids=name)
def test_metrics_are_those_that_were_asked_for(client: Client, recording: Recording) -> None:
    """Repeated, empty, unknown and doubled names: the ids are as recorded; an aggregate's order is that of `get`."""
    got = [each["id"] for each in client.get(recording.path).json()]
    recorded = [each["id"] for each in recording.body]
    ordered = "agg=" in recording.path
    assert (got if ordered else sorted(got)) == (recorded if ordered else sorted(recorded))


def test_everything_that_was_recorded_is_answered() -> None:
    """No path at which Flink has a body is without one here."""
    assert set(RESOURCES) >= FLINKS
