"""Splits and timers against what a real Flink lists of its own, and over the life of a collector."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge import codec, names
from streamgauge.clock import ManualClock
from tests.conftest import LATENCIES_MS, NOW_MS, Client, job_frame, recorded_frames, recording
from tests.programs import program

JOB = recording("main__job.json")
PATH = f"/jobs/{JOB['jid']}"
SOURCE, BEHIND = (vertex["id"] for vertex in JOB["vertices"][:2])
FLINKS = [name for name in names.SPLIT_METRICS if name.startswith("watermark.")]


def of_splits(ids: list[Mapping[str, str]]) -> set[str]:
    """Those that Flink has too; the others are ours."""
    return {each["id"] for each in ids if f".{names.SPLIT}" in each["id"] and each["id"].endswith(tuple(FLINKS))}


@pytest.mark.parametrize("where", ["metrics", "subtasks/metrics", "subtasks/0/metrics"])
def test_ids_are_the_recorded_ones(client: Client, where: str) -> None:
    """Flink 2.3's, to the letter: of the vertex with the subtask in front, elsewhere without."""
    recorded = of_splits(recording(f"main__v0__{where.replace('/', '_')}.json"))
    assert len(recorded) == len(FLINKS) * (1 if where == "subtasks/0/metrics" else 2)
    assert of_splits(client.get(f"{PATH}/vertices/{SOURCE}/{where}").json()) == recorded


def types(metrics: list[Mapping[str, str]]) -> dict[str, str]:
    """Of each split gauge of Flink's, whether it is written as a double."""
    return {each["id"]: "double" if "." in each["value"] else "long" for each in metrics if of_splits([each])}


def test_values_are_written_as_flinks(client: Client) -> None:
    """A double where Flink has one, a long where it has a long."""
    parts = [recording(f"main__v0__metrics_get_all_part{part}.json") for part in (0, 1)]
    recorded = types([each for part in parts for each in part])
    ids = of_splits(client.get(f"{PATH}/vertices/{SOURCE}/metrics").json())
    told = types(client.get(f"{PATH}/vertices/{SOURCE}/metrics?get={','.join(ids)}").json())
    assert told == recorded
    assert set(told.values()) == {"double", "long"}


def test_histogram_has_the_ids_of_a_flink_histogram(client: Client) -> None:
    """The eleven of the recorded user's histogram, under the operator's name."""
    recorded = json.loads((Path(__file__).parent / "flink_names" / "vertex.json").read_text())
    ends = {each["id"].rpartition("_")[2] for each in recorded if ".grp.val.myHistogram_" in each["id"]}
    listed = [each["id"] for each in client.get(f"{PATH}/vertices/{BEHIND}/metrics").json()]
    assert {each for each in listed if names.TIMER_LATENESS in each} == {
        f"0.Count_Map.{names.TIMER_LATENESS}_{end}" for end in ends
    }


ASKED = (
    *(f"/vertices/{vertex}/{what}" for vertex in (SOURCE, BEHIND) for what in ("splits", "timers")),
    f"/vertices/{SOURCE}/metrics",
)


def answers(client: Client) -> dict[str, Any]:
    found = {}
    for asked in ASKED:
        got = client.get(PATH + asked)
        assert got.status_code == 200
        found[asked] = got.json()
    return found


def test_source_and_what_is_behind_it_tell_the_same_tap(client: Client) -> None:
    """The slow split is named at the source; behind it stands how far it holds the vertex back, and Spark does not."""
    told = answers(client)
    [tap] = told[f"/vertices/{SOURCE}/splits"]["taps"]
    assert [(split["id"], split["drift-ms"]) for split in tap["splits"]] == [("2", 60_000), ("1", 0)]
    behind = told[f"/vertices/{BEHIND}/splits"]
    assert behind["combined"]["taps"] == [
        {"vertex-id": SOURCE, "vertex-name": JOB["vertices"][0]["name"], "name": "by source"}
    ]
    assert (behind["combined"]["watermark"], behind["spark"]["watermark"]) == (NOW_MS - 63_000, NOW_MS - 3_000)
    [timers] = told[f"/vertices/{BEHIND}/timers"]["operators"]
    assert timers["lateness"]["count"] == len(LATENCIES_MS)


def test_what_was_told_survives_a_collector(store: MetricStore, clock: ManualClock) -> None:
    """A collector that has lost everything asks for a full frame, and tells then what it told."""
    before = answers(Client(create_app(Config(), store, clock)))
    anew = Client(create_app(Config(), MetricStore(), clock))
    delta = msgspec.structs.replace(job_frame(JOB, seq=2), base=1, plan=None, vertices=(), checkpoints=None)
    assert anew.push(codec.encode([delta])).status_code == 409
    assert anew.push(codec.encode(recorded_frames())).status_code == 202
    assert answers(anew) == before


@pytest.mark.parametrize("what", ["splits", "timers"])
def test_refusals_have_the_one_shape(client: Client, what: str) -> None:
    """An unknown job and vertex are 404, what is no id 400."""
    statuses = {
        f"/jobs/{'0' * 32}/vertices/{SOURCE}/{what}": 404,
        f"{PATH}/vertices/{'0' * 32}/{what}": 404,
        f"{PATH}/vertices/nope/{what}": 400,
    }
    for path, status in statuses.items():
        answer = client.get(path)
        assert (answer.status_code, list(answer.json())) == (status, ["errors"]), path


@pytest.mark.parametrize("granularity", ["", "?granularity=subtask"])
def test_promtool_finds_nothing_to_say(client: Client, granularity: str) -> None:
    """Of names, units, types and help texts of everything that a job with taps and timers tells."""
    page = client.get(f"/metrics{granularity}").content
    assert b"streamgauge_split_" in page
    command = [program("promtool"), "check", "metrics"]
    found = subprocess.run(command, input=page, capture_output=True, timeout=60, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
