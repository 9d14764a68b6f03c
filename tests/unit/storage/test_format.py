"""The bytes of a log: file header, frames, head mark. The layout itself is frozen by test_golden.py."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from sealog.storage import format as log_format
from sealog.storage.errors import UpgradeRequiredError
from sealog.storage.format import (
    FILE_HEADER_SIZE,
    FRAME_HEADER_SIZE,
    HEAD_MARK_SIZE,
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    MAGIC,
    PAYLOAD_SIZE_MAX,
    Frame,
    Head,
    SessionHeader,
    decode_session_header,
    encode_frame,
    encode_mark,
    encode_msgpack,
    file_header,
    first_previous,
    new_salt,
    parse_file_header,
    parse_frame,
    parse_mark,
    payload_digest,
)

SALT = b"\xc1\x01\x02\x03" + bytes(range(12))
HEADER = file_header(SALT)
KEYS = log_format.FormatKeys(SALT[:4], xxh3_64_intdigest(HEADER), SALT)
HEAD = Head(100, 7, 0xABCDEF01)
PAYLOAD = b"\x91\x94\x03\xa1x\xc0\x00"


def header_of_version(major: int, minor: int) -> bytes:
    check = xxh3_64_intdigest(MAGIC + struct.pack("<HH", major, minor) + SALT) & 0xFFFFFFFF
    return MAGIC + struct.pack("<HHI", major, minor, check) + SALT


def frame_with(**fields: Any) -> bytes:
    """Return an intact frame header with other values than this version writes."""
    values = {"kind": KIND_EVENTS, "flags": 0, "length": 0, "count": 1, "position": 0, "previous": 0} | fields
    body = struct.pack(
        "<QIHBBII",
        0,
        values["length"],
        values["count"],
        values["kind"],
        values["flags"],
        values["position"],
        values["previous"],
    )
    return KEYS.sync + struct.pack("<I", xxh3_64_intdigest(body, KEYS.seed ^ 32) & 0xFFFFFFFF) + body


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class TestSalt:
    def test_salts_differ(self) -> None:
        assert len({new_salt() for _ in range(100)}) == 100

    def test_the_sync_word_can_start_neither_msgpack_nor_text_nor_be_zero(self) -> None:
        for salt in (new_salt() for _ in range(1000)):
            assert len(salt) == 16
            assert salt[0] == 0xC1
            assert 0 not in salt[:4]

    def test_zeros_of_the_random_source_are_replaced_in_the_sync_word(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("os.urandom", bytes)
        assert new_salt() == b"\xc1\x01\x01\x01" + bytes(12)


class TestFileHeader:
    def test_it_gives_the_keys_of_the_log(self) -> None:
        assert parse_file_header(HEADER, "log") == KEYS
        assert len(HEADER) == FILE_HEADER_SIZE == 32

    def test_what_follows_it_does_not_matter(self) -> None:
        assert parse_file_header(HEADER + b"more", "log") == KEYS

    def test_every_flipped_bit_is_noticed(self) -> None:
        """A damaged version is damage, never "upgrade": the check covers it."""
        for bit in range(FILE_HEADER_SIZE * 8):
            assert parse_file_header(flipped(HEADER, bit), "log") is None

    def test_a_short_header_is_none(self) -> None:
        for size in range(FILE_HEADER_SIZE):
            assert parse_file_header(HEADER[:size], "log") is None

    def test_an_intact_header_of_another_major_version_asks_for_an_upgrade(self) -> None:
        with pytest.raises(UpgradeRequiredError, match=r"log: at byte 0: format version 2\.5, this is 1\.0"):
            parse_file_header(header_of_version(2, 5), "log")

    def test_a_later_minor_version_is_read(self) -> None:
        keys = parse_file_header(header_of_version(1, 7), "log")
        assert keys is not None
        assert keys.seed != KEYS.seed


class TestFrame:
    def test_it_comes_back(self) -> None:
        data, frame = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        assert parse_frame(KEYS, data, 0, HEAD.end, "log") == frame
        assert (frame.offset, frame.first_position, frame.previous) == (100, 7, 0xABCDEF01)
        assert (frame.payload_offset, frame.end) == (132, 132 + len(PAYLOAD))
        assert frame.next_position == 8
        assert data[FRAME_HEADER_SIZE:] == PAYLOAD
        assert frame.digest == payload_digest(KEYS, PAYLOAD)

    @given(
        st.integers(0, 2**63),
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**32 - 1),
        st.sampled_from([KIND_SESSION_HEADER, KIND_EVENTS, KIND_SEAL]),
        st.integers(0, 65_535),
        st.binary(max_size=50),
    )
    def test_all_fields_come_back(
        self, end: int, position: int, previous: int, kind: int, count: int, payload: bytes
    ) -> None:
        data, frame = encode_frame(KEYS, Head(end, position, previous), kind, count, payload)
        assert parse_frame(KEYS, b"xyz" + data, 3, end, "log") == frame
        assert frame == Frame(
            end,
            frame.header_check,
            payload_digest(KEYS, payload),
            len(payload),
            count,
            kind,
            position,
            previous,
        )

    def test_it_is_read_from_a_view_as_from_bytes(self) -> None:
        data, frame = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        assert parse_frame(KEYS, memoryview(data), 0, HEAD.end, "log") == frame

    def test_every_flipped_bit_of_the_header_is_noticed(self) -> None:
        data, _ = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        for bit in range(FRAME_HEADER_SIZE * 8):
            assert parse_frame(KEYS, flipped(data, bit), 0, HEAD.end, "log") is None

    def test_every_flipped_bit_of_the_payload_is_noticed(self) -> None:
        _, frame = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        for bit in range(len(PAYLOAD) * 8):
            assert payload_digest(KEYS, flipped(PAYLOAD, bit)) != frame.digest

    @pytest.mark.parametrize("offset", [0, 99, 101, 100 + 2**32])
    def test_it_is_none_at_another_offset(self, offset: int) -> None:
        data, _ = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        assert parse_frame(KEYS, data, 0, offset, "log") is None

    def test_it_is_none_in_another_log(self) -> None:
        """Even in one whose sync word is the same."""
        data, _ = encode_frame(KEYS, HEAD, KIND_EVENTS, 1, PAYLOAD)
        other = parse_file_header(file_header(SALT[:4] + bytes(12)), "log")
        assert other is not None
        assert other.sync == KEYS.sync
        assert parse_frame(other, data, 0, HEAD.end, "log") is None
        assert payload_digest(other, PAYLOAD) != payload_digest(KEYS, PAYLOAD)

    def test_zeros_are_no_frame(self) -> None:
        assert parse_frame(KEYS, bytes(32), 0, 32, "log") is None

    @pytest.mark.parametrize("kind", [0, 4, 255])
    def test_an_unknown_kind_asks_for_an_upgrade(self, kind: int) -> None:
        with pytest.raises(UpgradeRequiredError, match=f"log: at byte 32: frame of kind {kind}"):
            parse_frame(KEYS, frame_with(kind=kind), 0, 32, "log")

    @pytest.mark.parametrize("flags", [1, 0x80, 255])
    def test_an_unknown_flag_asks_for_an_upgrade(self, flags: int) -> None:
        with pytest.raises(UpgradeRequiredError, match=f"flags {flags:#04x}"):
            parse_frame(KEYS, frame_with(flags=flags), 0, 32, "log")

    def test_a_length_over_the_limit_is_not_believed(self) -> None:
        assert parse_frame(KEYS, frame_with(length=PAYLOAD_SIZE_MAX), 0, 32, "log") is not None
        assert parse_frame(KEYS, frame_with(length=PAYLOAD_SIZE_MAX + 1), 0, 32, "log") is None

    def test_the_first_frame_is_chained_to_the_file_header(self) -> None:
        assert first_previous(KEYS) == KEYS.seed & 0xFFFFFFFF


class TestHeadMark:
    MARK = encode_mark(KEYS, HEAD)

    def test_it_comes_back(self) -> None:
        assert parse_mark(KEYS, self.MARK) == HEAD
        assert parse_mark(KEYS, self.MARK + b"more") == HEAD
        assert len(self.MARK) == HEAD_MARK_SIZE == 32

    @given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
    def test_all_fields_come_back(self, end: int, position: int, check: int) -> None:
        head = Head(end, position, check)
        assert parse_mark(KEYS, encode_mark(KEYS, head)) == head

    def test_a_damaged_one_is_none(self) -> None:
        for bit in range(HEAD_MARK_SIZE * 8):
            assert parse_mark(KEYS, flipped(self.MARK, bit)) is None

    def test_a_short_one_is_none(self) -> None:
        for size in range(HEAD_MARK_SIZE):
            assert parse_mark(KEYS, self.MARK[:size]) is None

    def test_zeros_are_none(self) -> None:
        assert parse_mark(KEYS, bytes(32)) is None

    def test_one_of_another_log_is_none(self) -> None:
        other = parse_file_header(file_header(new_salt()), "log")
        assert other is not None
        assert parse_mark(other, self.MARK) is None


class TestSessionHeader:
    def test_fields_of_a_later_minor_version_are_ignored(self) -> None:
        payload = msgspec.msgpack.encode(
            {"session_id": "s", "created_at": "now", "more": 1, "labels": {"a": "b"}}
        )
        assert decode_session_header(payload) == SessionHeader("s", "now", {"a": "b"})

    def test_labels_may_be_left_out(self) -> None:
        payload = msgspec.msgpack.encode({"session_id": "s", "created_at": "now"})
        assert decode_session_header(payload) == SessionHeader("s", "now", {})

    def test_it_is_a_map_by_name(self) -> None:
        assert msgspec.msgpack.decode(encode_msgpack(SessionHeader("s", "now", {"a": "b"}))) == {
            "session_id": "s",
            "created_at": "now",
            "labels": {"a": "b"},
        }
