"""Asks again what the recorded Flink was asked, with our ids for its ids and our metrics for those that we lack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from tests.contract.recordings import Answer, Recording, replaced
from tests.contract.shapes import Difference

Send = Callable[[str, str, Mapping[str, str], bytes], Answer]
"""Method, target, headers and body of a request; returns what came back."""

HEADERS: dict[str, dict[str, str]] = {
    "hdr_accept_text": {"Accept": "text/plain"},
    "hdr_gzip": {"Accept-Encoding": "gzip"},
    "hdr_origin": {"Origin": "http://example.org"},
}
"""What these were recorded with; the others had no headers that matter."""
BODIES = {"err_post_stop_bad_json": b"{"}
STAND_INS = {
    "Count_Map.myNaNGauge": "busyTimeMsPerSecond",
    "1.Count_Map.myDoubleGauge": "1.numRecordsInPerSecond",
}
"""Metrics of the like for those that the recorded Flink's user had."""
_METRICS_AT_ONCE = 50


@dataclass
class Places:
    """
    What stands here for the recorded Flink's ids.

    Args:
        ids: Jobs and executors.
        applications: Those that are asked for as applications: Flink gives one the id of its only job.
        vertices: Recorded job → recorded vertex → ours.
        checkpoints: Recorded job → tells the checkpoint to ask for; at every request, for only the latest are held.
    """

    ids: dict[str, str] = field(default_factory=dict)
    applications: dict[str, str] = field(default_factory=dict)
    vertices: dict[str, dict[str, str]] = field(default_factory=dict)
    checkpoints: dict[str, Callable[[], str]] = field(default_factory=dict)

    def of(self, recording: Recording) -> dict[str, str]:
        """Return the ids that a recorded request and its answer name; those of vertices are their job's."""
        job = next((jid for jid in self.vertices if jid in recording.path), "")
        asked_of = self.applications if recording.resource.startswith("/applications/") else {}
        found = {**self.ids, **self.vertices.get(job, {}), **asked_of}
        return {**found, **{key.upper(): value.upper() for key, value in found.items() if key.upper() != key}}

    def target(self, recording: Recording) -> str:
        """Return the recorded target with our ids."""
        quoted = {quote(theirs, safe=""): quote(ours, safe="") for theirs, ours in self.of(recording).items()}
        target = replaced(recording.path, quoted)
        job = next((jid for jid in self.checkpoints if jid in recording.path), "")
        if not job or _is_odd(recording):
            return target
        return re.sub(r"(?<=/checkpoints/details/)[0-9]+", self.checkpoints[job](), target)


class Walk:
    """
    Asks recorded requests of a service; single thread.

    Args:
        send: How.
        places: Of what.
    """

    def __init__(self, send: Send, places: Places) -> None:
        self._send = send
        self._places = places

    def differences(self, recording: Recording) -> list[Difference]:
        """Ask what was recorded, and return where the answer differs."""
        target = self._places.target(recording)
        if recording.method == "GET" and "get=" in target:
            # What was recorded for how odd it is keeps its names, but for those that only the recorded Flink has.
            target = replaced(target, STAND_INS) if _is_odd(recording) else self._with_known_metrics(target)
        headers = HEADERS.get(recording.name, {})
        answer = self._send(recording.method, target, headers, BODIES.get(recording.name, b""))
        return recording.differences(answer, self._places.of(recording))

    def _with_known_metrics(self, target: str) -> str:
        path, _, query = target.partition("?")
        listed = self._send("GET", path, {}, b"").body
        if not isinstance(listed, list) or not listed:
            return target
        known = [each["id"] for each in listed]
        asked = [
            (name, ",".join(known_metrics(value.split(","), known)) if name == "get" else value)
            for name, value in parse_qsl(query, keep_blank_values=True)
        ]
        return f"{path}?{urlencode(asked)}"


def _is_odd(recording: Recording) -> bool:
    return recording.name.startswith("err_")


def known_metrics(asked: Iterable[str], known: list[str]) -> list[str]:
    """
    Return the metrics to ask for instead: those that are known, of another operator if need be; else any that are.

    An aggregate of one unknown metric is empty, so one would hide the structure of all the others.
    """
    ends = {_end(name): name for name in known}
    found = [name if name in known else ends.get(_end(name), "") for name in asked]
    return [name for name in dict.fromkeys(found) if name][:_METRICS_AT_ONCE] or sorted(known)[:_METRICS_AT_ONCE]


def _end(name: str) -> tuple[str, str]:
    """Return the subtask of a metric, where its id names one, and the id without operator."""
    index = re.match(r"[0-9]+\.", name)
    return index.group() if index else "", name.rpartition(".")[2]
