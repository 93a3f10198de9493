"""The framings in which Spark compresses event logs, read block by block: what a crash has cut off ends the reading."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol

from streamgauge.errors import ReplayError

CHUNK_BYTES = 1 << 20

BLOCK_BYTES = 256 * 1024 * 1024
"""A block that claims to be longer is none: Spark's are of 32 KiB to some MiB."""

FRAME_BYTES = 8 * 1024 * 1024
"""A zstd frame that is longer, compressed, is decompressed in a temporary file. Spark's own are shorter by far."""

PLAIN = "plain"

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LZ4_MAGIC = b"LZ4Block"
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_AGAIN = int.from_bytes(_SNAPPY_MAGIC[:4], "big")
_LZF_MAGIC = b"ZV"
_MAGICS = {_ZSTD_MAGIC: "zstd", _LZ4_MAGIC: "lz4", _SNAPPY_MAGIC: "snappy", _LZF_MAGIC: "lzf"}

_ZSTD_CHECKSUM, _ZSTD_SINGLE = 0x04, 0x20
_ZSTD_DICTIONARY_BYTES, _ZSTD_CONTENT_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3
_LZ4_RAW = 0x10
_LZF_RAW = 0


class Readable(Protocol):
    """A file, as far as it is needed here."""

    def read(self, count: int, /) -> bytes:
        """Return `count` bytes, fewer at the end alone."""


class CutOff(Exception):
    """The file ends within a block, or a block cannot be read; the message says which. All before it was yielded."""


def codec_of(head: bytes) -> str:
    """Return the codec that a file was written with, by its first eight bytes; PLAIN where it is none of Spark's."""
    return next((codec for magic, codec in _MAGICS.items() if head.startswith(magic)), PLAIN)


def decompressed(file: Readable, codec: str) -> Iterator[bytes]:
    """
    Yield what a file holds, as chunks of any length.

    Args:
        file: At its beginning.
        codec: As `codec_of` says.

    Raises:
        CutOff: after all that could be read.
        ReplayError: cramjam is not installed.

    One block is held at a time; of zstd a frame, which Spark ends whenever it flushes the log.
    """
    if codec == PLAIN:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
        return
    blocks = {"zstd": _zstd, "lz4": _lz4, "snappy": _snappy, "lzf": _lzf}[codec]
    # Spark's zstd frames and LZ4 blocks are some KiB: to search each for its lines would take longer than its events.
    held: list[bytes] = []
    size = 0
    try:
        for block in blocks(file):
            held.append(block)
            size += len(block)
            if size >= CHUNK_BYTES:
                yield b"".join(held)
                held, size = [], 0
    except CutOff:
        yield b"".join(held)
        raise
    yield b"".join(held)


def _cramjam() -> ModuleType:
    try:
        import cramjam
    except ModuleNotFoundError:
        raise ReplayError(
            "cramjam is not installed, compressed event logs need it: pip install 'streamgauge[replay]'"
        ) from None
    return cramjam


def _take(file: Readable, count: int, what: str) -> bytes:
    """Return exactly `count` bytes; where there are not so many, the file is cut off."""
    if count > BLOCK_BYTES:
        raise CutOff(f"{what} claims {count} bytes")
    found = file.read(count)
    if len(found) < count:
        raise CutOff(f"the file ends within {what}")
    return found


def _zstd(file: Readable) -> Iterator[bytes]:
    """Yield zstd frames' content. Source: RFC 8878, 3.1.1."""
    cramjam = _cramjam()
    while magic := file.read(4):
        if magic != _ZSTD_MAGIC:
            raise CutOff("what follows a zstd frame is none")
        frame = bytearray(magic)
        cut = _zstd_frame(file, frame)
        yield from _zstd_content(cramjam, frame)
        if cut is not None:
            raise cut


def _zstd_frame(file: Readable, frame: bytearray) -> CutOff | None:
    """
    Read a frame's rest into `frame`.

    Returns:
        Where the file ends within it: then the blocks that are whole are made a frame of their own, or nothing is left.
    """
    last_at = -1
    try:
        descriptor = _take(file, 1, "a zstd frame")[0]
        frame.append(descriptor)
        single = bool(descriptor & _ZSTD_SINGLE)
        content = _ZSTD_CONTENT_BYTES[descriptor >> 6] or (1 if single else 0)
        frame += _take(file, (not single) + _ZSTD_DICTIONARY_BYTES[descriptor & 3] + content, "a zstd frame")
        while True:
            header = _take(file, 3, "a zstd frame")
            told = int.from_bytes(header, "little")
            kind = told >> 1 & 3
            if kind == _ZSTD_RESERVED:
                raise CutOff("a zstd block is of no kind that there is")
            block = _take(file, 1 if kind == _ZSTD_RLE else told >> 3, "a zstd block")
            last_at = len(frame)
            frame += header + block
            if told & 1:
                break
        if descriptor & _ZSTD_CHECKSUM:
            frame += _take(file, 4, "a zstd checksum")
    except CutOff as cut:
        if last_at < 0 or content:
            # A content size would be wrong now; Spark, which streams, writes none.
            frame.clear()
        else:
            frame[4] &= ~_ZSTD_CHECKSUM
            frame[last_at] |= 1
        return cut
    return None


def _zstd_content(cramjam: ModuleType, frame: bytearray) -> Iterator[bytes]:
    if not frame:
        return
    try:
        if len(frame) <= FRAME_BYTES:
            yield bytes(cramjam.zstd.decompress(frame))
            return
        with tempfile.TemporaryDirectory(prefix="streamgauge-") as folder:
            packed, unpacked = Path(folder, "packed"), Path(folder, "unpacked")
            packed.write_bytes(frame)
            frame.clear()
            cramjam.zstd.decompress_into(cramjam.File(str(packed)), cramjam.File(str(unpacked)))
            with unpacked.open("rb") as content:
                yield from iter(lambda: content.read(CHUNK_BYTES), b"")
    except cramjam.DecompressionError as error:
        raise CutOff(f"a zstd frame cannot be read: {error}") from error


def _lz4(file: Readable) -> Iterator[bytes]:
    """Yield LZ4 blocks' content. Source: lz4-java, `LZ4BlockOutputStream`."""
    cramjam = _cramjam()
    while magic := file.read(8):
        if magic != _LZ4_MAGIC:
            raise CutOff(
                "what follows an LZ4 block is none" if len(magic) == 8 else "the file ends within an LZ4 block"
            )
        header = _take(file, 13, "an LZ4 block")
        packed = int.from_bytes(header[1:5], "little")
        size = int.from_bytes(header[5:9], "little")
        block = _take(file, packed, "an LZ4 block")
        if not size:
            # It ends a stream; another one may follow.
            continue
        if size > BLOCK_BYTES:
            raise CutOff(f"an LZ4 block claims {size} bytes")
        if header[0] & 0xF0 == _LZ4_RAW:
            yield block
            continue
        try:
            yield bytes(cramjam.lz4.decompress_block(block, output_len=size))
        except cramjam.DecompressionError as error:
            raise CutOff(f"an LZ4 block cannot be read: {error}") from error


def _snappy(file: Readable) -> Iterator[bytes]:
    """Yield Snappy blocks' content. Source: snappy-java, `SnappyOutputStream`."""
    cramjam = _cramjam()
    _take(file, 16, "the header")
    while length := file.read(4):
        if len(length) < 4:
            raise CutOff("the file ends within a snappy block")
        packed = int.from_bytes(length, "big")
        if packed == _SNAPPY_AGAIN:
            _take(file, 12, "a snappy header")
            continue
        block = _take(file, packed, "a snappy block")
        try:
            yield bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise CutOff(f"a snappy block cannot be read: {error}") from error


def _lzf(file: Readable) -> Iterator[bytes]:
    """Yield LZF chunks' content. Source: ning compress-lzf, `LZFChunk`, `VanillaChunkDecoder`."""
    while magic := file.read(2):
        if magic != _LZF_MAGIC:
            raise CutOff(
                "what follows an LZF chunk is none" if len(magic) == 2 else "the file ends within an LZF chunk"
            )
        kind = _take(file, 1, "an LZF chunk")[0]
        packed = int.from_bytes(_take(file, 2, "an LZF chunk"), "big")
        if kind == _LZF_RAW:
            yield _take(file, packed, "an LZF chunk")
            continue
        size = int.from_bytes(_take(file, 2, "an LZF chunk"), "big")
        try:
            yield unpacked(_take(file, packed, "an LZF chunk"), size)
        except (IndexError, ValueError) as error:
            raise CutOff(f"an LZF chunk cannot be read: {error}") from error


def unpacked(chunk: bytes, size: int) -> bytes:
    """
    Return what a compressed LZF chunk holds.

    Args:
        size: Bytes that it holds, at most 65535.

    Raises:
        IndexError, ValueError: it is none.
    """
    out = bytearray()
    at, end = 0, len(chunk)
    while at < end:
        control = chunk[at]
        at += 1
        if control < 32:
            out += chunk[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += chunk[at]
            at += 1
        back = ((control & 31) << 8) + chunk[at] + 1
        at += 1
        start = len(out) - back
        if start < 0:
            raise ValueError(f"it refers to {back} bytes before, of {len(out)}")
        length += 2
        if back >= length:
            out += out[start : start + length]
        else:
            # What it refers to is being written as it is read: a pattern repeats.
            out += (bytes(out[start:]) * (length // back + 1))[:length]
    if len(out) != size:
        raise ValueError(f"it holds {len(out)} bytes and not {size}")
    return bytes(out)
