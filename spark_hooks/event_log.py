"""Event logs as Spark writes them: found in files and folders, put together, decompressed and cut into lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_hooks.compression import CutOff, Readable, codec_of, decompressed
from streamgauge.errors import ReplayError

IN_PROGRESS = ".inprogress"
_COMPACT = ".compact"
_ROLLED = "eventlog_v2_"
_STATUS = "appstatus_"
_EVENTS = re.compile(r"events_(\d+)_")
_CODECS = re.compile(r"\.(zstd|lz4|snappy|lzf)$")

LINE_BYTES = 512 * 1024 * 1024
"""A line that is longer is no event; the reading ends there."""


@dataclass(frozen=True, slots=True)
class EventLog:
    """
    One application's event log.

    Args:
        name: Of its file or folder.
        files: In the order in which they were written.
        in_progress: Spark has not said that it is whole.
    """

    name: str
    files: tuple[Path, ...]
    in_progress: bool

    @property
    def nbytes(self) -> int:
        """What its files take, as they are on disk."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def app_id(self) -> str:
        """The application's id, as the name tells it."""
        name = self.name.removesuffix(IN_PROGRESS)
        return _CODECS.sub("", name).removeprefix(_ROLLED)


@dataclass(slots=True)
class Lines:
    """
    The lines of a log, as chunks of whole ones.

    `cut` says, after all has been read, where a file could be read no further; `truncated` that the last line has no
    end, `lines` how many there were. `rest` is that last line.

    Args:
        log: To be read.
        read: Told of the bytes, as they are on disk, that were read since it was told last.
    """

    log: EventLog
    read: Callable[[int], None] = lambda _: None
    cut: list[str] = field(default_factory=list)
    rest: bytes = b""

    def __iter__(self) -> Iterator[bytes]:
        """
        Yield chunks, each of whole lines, the last one without its line break where the file ends without one.

        Raises:
            ReplayError: a file cannot be opened or read.
        """
        for path in self.log.files:
            begun: list[bytes] = []
            size = 0
            try:
                for chunk in self._chunks(path):
                    end = chunk.rfind(b"\n") + 1
                    if not end:
                        begun.append(chunk)
                        size += len(chunk)
                        if size > LINE_BYTES:
                            raise CutOff(f"a line is longer than {LINE_BYTES} bytes")
                        continue
                    yield b"".join([*begun, chunk[:end]])
                    begun, size = [chunk[end:]], len(chunk) - end
            except CutOff as cut:
                self.cut.append(f"{path.name}: {cut}")
            self.rest = b"".join(begun)
            if self.rest:
                yield self.rest

    def _chunks(self, path: Path) -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                codec = codec_of(file.read(8))
                file.seek(0)
                counted, before = _Counted(file), 0
                try:
                    for chunk in decompressed(counted, codec):
                        yield chunk
                        self.read(counted.nbytes - before)
                        before = counted.nbytes
                finally:
                    self.read(counted.nbytes - before)
        except OSError as error:
            raise ReplayError(f"{path} cannot be read: {error.strerror or error}") from error


class _Counted:
    """A file that counts what was read of it."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self.nbytes = 0

    def read(self, count: int, /) -> bytes:
        found = self._file.read(count)
        self.nbytes += len(found)
        return found


def find(path: Path) -> list[EventLog]:
    """
    Return the logs at a path, by name: a file's, a rolled one's folder, or all that lie in a folder.

    Raises:
        ReplayError: there is nothing, or nothing that could be a log.
    """
    try:
        if path.is_file():
            return [EventLog(path.name, (path,), path.name.endswith(IN_PROGRESS))]
        if not path.is_dir():
            raise ReplayError(f"{path}: there is no such file or folder; name an event log, or a folder of such")
        if path.name.startswith(_ROLLED) or any(_EVENTS.match(each.name) for each in path.iterdir()):
            return [_rolled(path)]
        found = []
        for each in sorted(path.iterdir()):
            if each.name.startswith((".", "_")):
                continue
            if each.is_dir() and each.name.startswith(_ROLLED):
                found.append(_rolled(each))
            elif each.is_file():
                found.append(EventLog(each.name, (each,), each.name.endswith(IN_PROGRESS)))
    except OSError as error:
        raise ReplayError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise ReplayError(f"{path}: the folder holds no event log; spark.eventLog.dir says where Spark writes them")
    return found


def _rolled(folder: Path) -> EventLog:
    files = {path: _place(path) for path in folder.iterdir() if _EVENTS.match(path.name)}
    if not files:
        raise ReplayError(f"{folder}: a rolled event log without its files, events_1_… and so on")
    return EventLog(folder.name, _current(files), any(path.name.endswith(IN_PROGRESS) for path in folder.iterdir()))


def _place(path: Path) -> tuple[int, bool]:
    found = _EVENTS.match(path.name)
    # A compacted file stands for the one of its number, and for all before that.
    return (int(found[1]) if found else 0, path.name.endswith(_COMPACT))


def _current(files: dict[Path, tuple[int, bool]]) -> tuple[Path, ...]:
    """Return the files that count: from the last compacted one on. Source: Spark, `RollingEventLogFilesFileReader`."""
    ordered: Sequence[Path] = sorted(files, key=files.__getitem__)
    compacted = [place for place, path in enumerate(ordered) if files[path][1]]
    return tuple(ordered[compacted[-1] if compacted else 0 :])
