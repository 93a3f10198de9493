"""The body of a push: frames to MessagePack and back."""

from __future__ import annotations

import msgspec

from streamgauge.errors import MalformedFrame, UnsupportedVersion
from streamgauge.wire import WIRE_VERSION, Frame


class _Version(msgspec.Struct):
    version: int


_frames = msgspec.msgpack.Decoder(list[Frame])
_versions = msgspec.msgpack.Decoder(list[_Version])
_encoder = msgspec.msgpack.Encoder()


def encode(frames: list[Frame]) -> bytes:
    """Return the body of a push; any thread."""
    return _encoder.encode(frames)


def decode(body: bytes) -> list[Frame]:
    """
    Read the body of a push; any thread.

    Raises:
        UnsupportedVersion: a frame's version is not WIRE_VERSION. Told apart even where the other
            version's layout differs.
        MalformedFrame: anything else that does not fit; the message names the place.
    """
    try:
        return _checked(_frames.decode(body))
    except msgspec.ValidationError as error:
        _check_versions(body)
        raise MalformedFrame(f"the frame does not fit the wire format: {_told(error)}") from error
    except msgspec.DecodeError as error:
        raise MalformedFrame(f"the body is no whole MessagePack array of frames: {_told(error)}") from error
    except UnicodeDecodeError as error:
        raise MalformedFrame(f"the body holds a string that is no UTF-8: {error}") from error
    except RecursionError as error:
        raise MalformedFrame("the body is nested too deeply") from error


def _told(error: Exception) -> str:
    # msgspec repeats a wrong value in full, however long; the place stands at the end.
    text = str(error)
    return text if len(text) <= 400 else f"{text[:200]}…{text[-199:]}"


def _checked(frames: list[Frame]) -> list[Frame]:
    for frame in frames:
        _check_version(frame.version)
    return frames


def _check_versions(body: bytes) -> None:
    try:
        versions = _versions.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for found in versions:
        _check_version(found.version)


def _check_version(version: int) -> None:
    if version != WIRE_VERSION:
        raise UnsupportedVersion(
            f"frame version {version}, but this collector reads version {WIRE_VERSION}: "
            "install the same streamgauge version in the driver and in the service"
        )
