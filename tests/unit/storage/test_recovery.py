"""The decision table of docs/recovery.md, row by row, and the order of its rows.

Each case damages the bytes of a small log, opens it, and compares outcome, reason and what was touched.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest
from xxhash import xxh3_64_intdigest

from sealog.storage.errors import CorruptionError, UpgradeRequiredError
from sealog.storage.format import (
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    MAGIC,
    Head,
    SessionHeader,
    encode_frame,
    encode_mark,
    encode_msgpack,
    file_header,
    new_salt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit

BODY = b"\x91\x94\x03\xa1x\xc0\x01"


class TestRow1FileHeaderOrSessionHeaderBad:
    @pytest.mark.parametrize(
        "data",
        [b"", bytes(413), b"\x89SLG", b'{"seq": 1}\n' * 20, file_header(new_salt())[:31]],
        ids=["empty", "zeros", "cut", "json", "one-byte-short"],
    )
    def test_a_file_that_is_no_log(self, kit: Kit, data: bytes) -> None:
        kit.make("a")
        kit.log_path().write_bytes(data)
        error = kit.refused()
        assert (error.offset, error.position) == (0, 0)  # type: ignore[attr-defined]
        assert "not the header of a sealog log" in error.reason

    def test_a_damaged_file_header(self, kit: Kit) -> None:
        kit.make("a")
        for offset in range(32):
            kit.flip(offset)
            with pytest.raises(CorruptionError, match="not the header of a sealog log"):
                kit.owner()
            kit.flip(offset)
        kit.clean(["a"])

    def test_a_file_header_and_nothing_else(self, kit: Kit) -> None:
        """Never a crash state: a session is moved into place when its first frame is synced."""
        kit.make("a")
        kit.cut(32)
        assert "no session header" in kit.refused().reason

    def test_a_cut_or_damaged_session_header(self, kit: Kit) -> None:
        kit.make("a")
        first = kit.frames()[0]
        whole = kit.log_path().read_bytes()
        for offset in range(first.offset, first.end):
            kit.flip(offset)
            with pytest.raises(CorruptionError, match="no session header"):
                kit.owner()
            kit.log_path().write_bytes(whole[:offset])
            with pytest.raises(CorruptionError, match="no session header"):
                kit.owner()
            kit.log_path().write_bytes(whole)

    @pytest.mark.parametrize(
        ("kind", "payload", "reason"),
        [
            (KIND_EVENTS, BODY, "no session header"),
            (KIND_SEAL, BODY, "no session header"),
            (KIND_SESSION_HEADER, b"\xc1", "cannot be decoded"),
            (KIND_SESSION_HEADER, b"\x81\xaasession_id\xa1\xff", "cannot be decoded"),
            (KIND_SESSION_HEADER, encode_msgpack({"session_id": "s"}), "cannot be decoded"),
            (KIND_SESSION_HEADER, encode_msgpack(SessionHeader("t", "now")), "of session 't', not of 's'"),
        ],
    )
    def test_another_first_frame(self, kit: Kit, kind: int, payload: bytes, reason: str) -> None:
        kit.make("a")
        data, _ = encode_frame(kit.keys(), kit.first_head(), kind, 0, payload)
        kit.log_path().write_bytes(kit.log_path().read_bytes()[:32] + data)
        assert reason in kit.refused().reason

    def test_the_log_of_another_session_under_this_id(self, kit: Kit) -> None:
        kit.make("a", session_id="other")
        kit.copy("other", "s")
        assert "this is the log of session 'other', not of 's'" in kit.refused().reason

    @pytest.mark.parametrize("in_place", ["directory", "fifo", "link", "nothing"])
    def test_something_else_in_the_place_of_the_log(self, kit: Kit, in_place: str) -> None:
        kit.make("a")
        kit.log_path().rename(kit.path / "aside")
        if in_place == "directory":
            kit.log_path().mkdir()
        elif in_place == "fifo":
            os.mkfifo(kit.log_path())
        elif in_place == "link":
            kit.log_path().symlink_to(kit.path / "aside")
        with pytest.raises(CorruptionError, match=r"the log is missing|not a regular file"):
            kit.owner()
        with pytest.raises(CorruptionError, match=r"the log is missing|not a regular file"):
            kit.reader()

    def test_another_major_version(self, kit: Kit) -> None:
        """Upgrade, not corruption: whoever wrote it is right."""
        kit.make("a")
        salt = kit.keys().salt
        check = xxh3_64_intdigest(MAGIC + struct.pack("<HH", 2, 0) + salt) & 0xFFFFFFFF
        header = MAGIC + struct.pack("<HHI", 2, 0, check) + salt
        kit.log_path().write_bytes(header + kit.log_path().read_bytes()[32:])
        assert "format version 2.0" in kit.refused(UpgradeRequiredError).reason


class TestRow2AcknowledgedFramesMissing:
    def test_a_mark_behind_the_end(self, kit: Kit) -> None:
        """Cut at any byte, also at the border of a frame: the mark knows better."""
        kit.make("a", "b")
        whole, last = kit.log_path().read_bytes(), kit.frames()[-1]
        for size in range(last.offset, last.end):
            kit.log_path().write_bytes(whole[:size])
            error = kit.refused()
            assert (error.offset, error.position) == (last.offset, 1)  # type: ignore[attr-defined]
            assert f"byte {last.end} and position 2 had been on disk" in error.reason

    @pytest.mark.parametrize(
        "change",
        [
            lambda head: Head(head.end, head.position + 1, head.header_check),
            lambda head: Head(head.end, head.position, head.header_check ^ 1),
            lambda head: Head(head.end + 1, head.position, head.header_check),
        ],
        ids=["position", "header-check", "one-byte-more"],
    )
    def test_a_mark_at_the_end_that_names_another_frame(
        self, kit: Kit, change: Callable[[Head], Head]
    ) -> None:
        kit.make("a")
        last = kit.frames()[-1]
        mark = encode_mark(kit.keys(), change(Head(last.end, 1, last.header_check)))
        (kit.path / "s" / "lock").write_bytes(mark)
        assert "acknowledged frames are missing or damaged" in kit.refused().reason

    def test_it_comes_before_the_clean_end(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.edit(lambda data: data.__setitem__(slice(kit.frames()[-1].offset, None), bytes(4096)))
        assert "acknowledged" in kit.refused().reason

    def test_it_comes_before_the_torn_tail(self, kit: Kit) -> None:
        """One flipped bit in the last frame: torn without the mark, damaged with it."""
        kit.make("a", "b")
        kit.flip(kit.frames()[-1].payload_offset)
        assert "acknowledged" in kit.refused().reason
        kit.forget_mark()
        kit.recovered(["a"], "damaged", 39)

    @pytest.mark.parametrize("size", [0, 31])
    def test_a_mark_that_is_not_there_is_not_needed(self, kit: Kit, size: int) -> None:
        kit.make("a")
        lock = kit.path / "s" / "lock"
        lock.write_bytes(lock.read_bytes()[:size])
        kit.clean(["a"])

    def test_a_damaged_mark_is_not_believed(self, kit: Kit) -> None:
        kit.make("a")
        lock = kit.path / "s" / "lock"
        lock.write_bytes(bytes([*lock.read_bytes()[:8], 0xFF, *lock.read_bytes()[9:]]))
        kit.clean(["a"])

    def test_a_mark_of_another_log_is_not_believed(self, kit: Kit) -> None:
        kit.make("a", "b", "c", session_id="other")
        kit.make("a")
        (kit.path / "s" / "lock").write_bytes((kit.path / "other" / "lock").read_bytes())
        kit.clean(["a"])

    def test_a_mark_before_the_end_is_true_and_says_nothing(self, kit: Kit) -> None:
        kit.make("a", "b")
        first = kit.frames()[1]
        mark = encode_mark(kit.keys(), Head(first.end, 1, first.header_check))
        (kit.path / "s" / "lock").write_bytes(mark)
        kit.clean(["a", "b"])

    def test_a_row_1_damage_comes_before_it(self, kit: Kit) -> None:
        kit.make("a")
        kit.cut(20)
        assert "not the header" in kit.refused().reason


class TestRow3CleanEnd:
    def test_the_end_of_the_file(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.forget_mark()
        kit.clean(["a", "b"])

    def test_a_session_without_events(self, kit: Kit) -> None:
        kit.create()
        kit.clean([])

    @pytest.mark.parametrize("zeros", [1, 31, 32, 4096, 3 * 1024 * 1024])
    def test_zeros_to_the_end(self, kit: Kit, zeros: int) -> None:
        """What was allocated and never written."""
        kit.make("a")
        kit.add(bytes(zeros))
        kit.clean(["a"])

    def test_zeros_behind_a_seal(self, kit: Kit) -> None:
        kit.make("a", seal=True)
        kit.add(bytes(4096))
        kit.clean(["a"])
