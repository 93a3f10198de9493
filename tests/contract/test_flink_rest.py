"""The same requests as the recorded Flink answered, against the same jobs: same structure, status, content type."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from collector.store import MetricStore
from service.flink.rest import RESOURCES, FlinkRest
from streamgauge.clock import ManualClock

RECORDINGS = Path(__file__).parent / "flink"
with (RECORDINGS / "INDEX.tsv").open() as index:
    ROWS = list(csv.DictReader(index, delimiter="\t"))


def structure(value: Any) -> Any:
    """Types instead of values; a list is told by what its elements have in common, so they must agree."""
    if isinstance(value, dict):
        return {key: structure(inner) for key, inner in value.items()}
    if isinstance(value, list):
        kinds = [structure(inner) for inner in value]
        assert all(kind == kinds[0] for kind in kinds) or _optional(kinds), kinds
        return [max(kinds, key=lambda kind: len(str(kind)))] if kinds else []
    return type(value).__name__


def _optional(kinds: list[Any]) -> bool:
    """Plan nodes have `inputs` or not; nothing else differs between the elements of a list."""
    return all(kind | {"inputs": 0} == kinds[0] | {"inputs": 0} for kind in kinds)


def without_additions(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "streamgauge"} if isinstance(body, dict) else body


def answer(client: Any, row: dict[str, str]) -> Any:
    return client.request(row["method"], row["path"])


def ids(rows: list[dict[str, str]]) -> list[str]:
    return [row["file"].removesuffix(".json") for row in rows]


BODIES = [row for row in ROWS if row["method"] != "HEAD"]
STRUCTURES = [row for row in BODIES if row["status"] == "200" and not row["file"].startswith("err_")]
REFUSALS = [row for row in BODIES if row["status"] != "200"]
EMPTY = [row for row in BODIES if row["file"].startswith("err_") and (RECORDINGS / row["file"]).read_text() == "[]"]
ODD = [row for row in BODIES if row["file"].startswith("err_") and row not in REFUSALS and row not in EMPTY]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_status_and_content_type_are_flinks(client: Any, row: dict[str, str]) -> None:
    """Whatever the request, status and Content-Type are as recorded."""
    got = answer(client, row)
    assert (str(got.status_code), got.headers["content-type"]) == (row["status"], row["content_type"])


@pytest.mark.parametrize("row", STRUCTURES, ids=ids(STRUCTURES))
def test_structure_is_flinks(client: Any, row: dict[str, str]) -> None:
    """Keys and types are as recorded; where Flink's list has elements ours has some, alike."""
    got = without_additions(answer(client, row).json())
    recorded = json.loads((RECORDINGS / row["file"]).read_text())
    if recorded == []:
        # Flink forgot the metrics of ended jobs; here they stay until the job leaves the store.
        assert isinstance(got, list)
        return
    assert structure(got) == structure(recorded)


@pytest.mark.parametrize("row", STRUCTURES, ids=ids(STRUCTURES))
def test_body_is_what_its_handler_declares(client: Any, row: dict[str, str]) -> None:
    """Read as the return type and written again it is the same: no key is undeclared, none of another type."""
    found = FlinkRest(MetricStore(), ManualClock()).resolve(row["path"].partition("?")[0])
    assert found is not None
    declared = get_type_hints(RESOURCES[found[0]])["return"]
    body = answer(client, row)
    assert json.loads(msgspec.json.encode(msgspec.json.decode(body.content, type=declared))) == body.json()


@pytest.mark.parametrize("row", REFUSALS, ids=ids(REFUSALS))
def test_refusal_is_flinks_word_for_word(client: Any, row: dict[str, str]) -> None:
    """Malformed, unknown or unrouted: the message is the recorded one."""
    assert answer(client, row).json() == json.loads((RECORDINGS / row["file"]).read_text())


@pytest.mark.parametrize("row", EMPTY, ids=ids(EMPTY))
def test_nothing_is_an_empty_list(client: Any, row: dict[str, str]) -> None:
    """Metrics of what is unknown, and aggregates with an unknown metric, are [] with status 200."""
    assert answer(client, row).json() == []


@pytest.mark.parametrize("row", ODD, ids=ids(ODD))
def test_odd_requests_answer_as_recorded(client: Any, row: dict[str, str]) -> None:
    """Doubled slashes, repeated, empty and unknown parameters: structure and, for metrics, ids as recorded."""
    got = without_additions(answer(client, row).json())
    recorded = json.loads((RECORDINGS / row["file"]).read_text())
    assert structure(got) == structure(recorded)
    if isinstance(recorded, list) and "get=" in row["path"]:
        assert sorted(each["id"] for each in got) == sorted(each["id"] for each in recorded)


def test_aggregates_keep_the_order_of_get(client: Any) -> None:
    """Order and duplicates follow `get`, unlike in plain metrics."""
    for name in ("err_agg_order.json", "err_agg_dup_get.json"):
        row = next(row for row in ROWS if row["file"] == name)
        recorded = json.loads((RECORDINGS / name).read_text())
        assert [each["id"] for each in answer(client, row).json()] == [each["id"] for each in recorded]


def test_every_resource_has_a_recording() -> None:
    """No path of Flink's is answered whose structure was never compared."""
    rest = FlinkRest(MetricStore(), ManualClock())
    seen = {found[0] for row in STRUCTURES if (found := rest.resolve(row["path"].partition("?")[0]))}
    assert seen == {resource for resource in RESOURCES if not resource.startswith("/streamgauge/")}
