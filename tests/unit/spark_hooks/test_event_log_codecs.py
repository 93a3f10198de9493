"""Every codec of Spark's is read as Spark wrote it, and as far as it goes where it is cut off or broken."""

from __future__ import annotations

from io import BytesIO

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_hooks import compression
from spark_hooks.compression import PLAIN, CutOff, codec_of, decompressed, unpacked
from tests.unit.spark_hooks.logs import FOLDER, content, first_lines

CODECS = ("lz4", "lzf", "snappy", "zstd")


def written(codec: str) -> bytes:
    return (FOLDER / f"first_lines_by_spark.{codec}").read_bytes()


def as_far_as(packed: bytes, codec: str) -> tuple[bytes, bool]:
    """What is read of a file, and whether it was found to be cut off."""
    found = bytearray()
    try:
        for chunk in decompressed(BytesIO(packed), codec):
            found += chunk
    except CutOff:
        return bytes(found), True
    return bytes(found), False


@pytest.mark.parametrize("codec", CODECS)
def test_what_spark_wrote_is_read(codec: str) -> None:
    assert codec_of(written(codec)[:8]) == codec
    assert content(written(codec)) == first_lines()


@pytest.mark.parametrize("codec", CODECS)
def test_files_that_are_put_one_after_the_other_are_read_as_one(codec: str) -> None:
    """Spark's streams may be several, for a codec ends one when it flushes."""
    assert content(written(codec) * 2) == first_lines() * 2


def test_plain_text_is_no_codec() -> None:
    assert codec_of(b'{"Event"') == PLAIN
    assert codec_of(b"") == PLAIN
    assert content(b"") == b""


@given(st.sampled_from(CODECS), st.floats(0, 1))
@example("zstd", 0.5)
@example("lzf", 0.999999)
def test_a_cut_gives_what_stands_before_it(codec: str, part: float) -> None:
    """Wherever a crash has cut a file off, what is read is a beginning of the whole."""
    whole = written(codec)
    found, _ = as_far_as(whole[: int(part * len(whole))], codec)
    assert first_lines().startswith(found)


@pytest.mark.parametrize("codec", CODECS)
def test_a_byte_that_is_missing_costs_one_block(codec: str) -> None:
    """Blocks are of 64 KiB at most."""
    found, cut = as_far_as(written(codec)[:-1], codec)
    assert cut
    assert len(first_lines()) - len(found) <= 65_536


@given(st.sampled_from(CODECS), st.integers(0, 2**31), st.integers(1, 255))
def test_a_broken_byte_ends_the_reading_and_no_more(codec: str, place: int, flip: int) -> None:
    """Whatever the bytes are, nothing but CutOff comes of them."""
    broken = bytearray(written(codec))
    broken[place % len(broken)] ^= flip
    as_far_as(bytes(broken), codec)


def test_whole_blocks_of_a_zstd_frame_that_is_cut_off_are_read() -> None:
    """A driver that crashes leaves a frame without its end."""
    text = first_lines() * 30
    packed = zstd_of_unknown_size(text)
    found, cut = as_far_as(packed[:-5], "zstd")
    assert cut
    assert 0 < len(found) < len(text)
    assert text.startswith(found)


def zstd_of_unknown_size(text: bytes) -> bytes:
    """A zstd frame as a stream writes it, which does not know how long it will be."""
    compressor = cramjam.zstd.Compressor()
    compressor.compress(text)
    return bytes(compressor.finish())


def test_a_long_zstd_frame_is_read_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FRAME_BYTES", 10)
    assert content(written("zstd")) == first_lines()


def test_a_block_that_claims_to_be_huge_is_not_asked_for() -> None:
    header = b"LZ4Block\x25" + b"\xff\xff\xff\x7f" * 3
    assert as_far_as(header, "lz4") == (b"", True)


@pytest.mark.parametrize(
    ("chunk", "content"),
    [
        pytest.param(b"\x02abc", b"abc", id="literal"),
        pytest.param(b"\x02abc\x20\x02", b"abcabc", id="copy"),
        pytest.param(b"\x00a\xe0\x05\x00", b"a" * 15, id="a copy of itself"),
    ],
)
def test_lzf_by_hand(chunk: bytes, content: bytes) -> None:
    """Source: ning compress-lzf; a length is three bits, and one byte more where those are 7."""
    assert unpacked(chunk, len(content)) == content


def test_lzf_that_refers_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="refers to 6 bytes before, of 3"):
        unpacked(b"\x02abc\x20\x05", 6)
