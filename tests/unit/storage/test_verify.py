"""Verify: every byte is checked, every fault is named, and nothing is changed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from sealog.storage import recovery
from sealog.storage import verify as verify_module
from sealog.storage.errors import SessionNotFoundError
from sealog.storage.events import Event
from sealog.storage.format import KIND_SEAL, Receipt
from sealog.storage.reader import LogReader
from sealog.storage.verify import VerifyReport, verify_session

if TYPE_CHECKING:
    from .conftest import Kit


def verify(kit: Kit, session_id: str = "s") -> VerifyReport:
    """Verify a session; whatever is found, nothing is changed (INV-7)."""
    before = kit.snapshot()
    report = verify_session(kit.fs, kit.store, session_id)
    assert kit.snapshot() == before
    assert report.session_id == session_id
    assert report.ok == (not report.problems)
    return report


def with_attachments(kit: Kit) -> None:
    """Make a session of one event and two attachments."""
    kit.create()
    with kit.owner() as owner:
        owner.append("a")
        for position in (1, 2):
            kit.attach(owner, f"file {position}".encode() * 100)
        owner.finish()


def test_an_intact_session_is_ok(kit: Kit) -> None:
    kit.make("a", "b")
    size = kit.log_path().stat().st_size
    assert verify(kit) == VerifyReport("s", True, 2, size, False, 0, ())


def test_an_intact_sealed_session_is_ok(kit: Kit) -> None:
    kit.make("a", "b", seal=True)
    report = verify(kit)
    assert (report.ok, report.sealed, report.events) == (True, True, 2)


def test_an_empty_session_is_ok(kit: Kit) -> None:
    kit.create()
    assert verify(kit).ok


def test_a_torn_tail_is_no_fault(kit: Kit) -> None:
    """Nobody was told that it is stored; the next owner cuts it off."""
    kit.make("a", "b")
    kit.forget_mark()
    kit.cut(kit.frames()[-1].end - 1)
    report = verify(kit)
    assert (report.ok, report.events, report.tail_bytes) == (True, 1, 38)


def test_a_session_can_be_verified_while_it_is_open(kit: Kit) -> None:
    kit.create()
    owner = kit.owner()
    owner.append("a")
    assert verify(kit).events == 1


def test_damage_that_an_open_does_not_look_at_is_found(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "VERIFY_TAIL_BYTES", 0)
    kit.make("a", "b", "c")
    kit.flip(kit.frames()[2].payload_offset)
    kit.owner().crash()
    report = verify(kit)
    assert (report.ok, report.events) == (False, 1)
    assert f"at byte {kit.frames()[2].offset}" in report.problems[0]


def test_every_flipped_byte_of_a_sealed_log_is_found(kit: Kit) -> None:
    kit.make("a", seal=True)
    for offset in range(kit.log_path().stat().st_size):
        kit.flip(offset)
        assert not verify(kit).ok
        kit.flip(offset)
    assert verify(kit).ok


def test_damage_that_comes_while_it_is_verified_is_found(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.make("a", "b", "c")
    frame = kit.frames()[2]

    def damaged(*args: Any, **options: Any) -> LogReader:
        reader = LogReader(*args, **options)
        kit.flip(frame.payload_offset)
        return reader

    monkeypatch.setattr(verify_module, "LogReader", damaged)
    report = verify_session(kit.fs, kit.store, "s")
    assert (report.ok, report.events) == (False, 1)
    assert f"at byte {frame.offset}: the payload of a frame is damaged" in report.problems[0]


@pytest.mark.parametrize("data", [b"", bytes(413), b"garbage"])
def test_a_log_that_is_none_is_a_fault_and_no_error(kit: Kit, data: bytes) -> None:
    kit.make("a")
    kit.log_path().write_bytes(data)
    report = verify(kit)
    assert (report.ok, report.events, report.size_bytes) == (False, 0, len(data))
    assert len(report.problems) == 1


def test_a_missing_log_is_a_fault(kit: Kit) -> None:
    kit.make("a")
    kit.log_path().unlink()
    report = verify(kit)
    assert "the log is missing" in report.problems[0]
    assert report.size_bytes == 0


def test_a_log_of_a_newer_version_is_a_fault_that_says_so(kit: Kit) -> None:
    kit.make("a")
    end = kit.frames()[-1].end
    kit.add(kit.stray_frame(end, 1, kind=9))
    assert "a newer version of sealog is needed" in verify(kit).problems[0]


@pytest.mark.parametrize("change", [{"events": 5}, {"sha256": "00" * 32}])
def test_a_receipt_that_does_not_fit_is_a_fault(kit: Kit, change: dict[str, object]) -> None:
    """Somebody who can write digests has changed the log: the SHA-256 does not fit it any more."""
    kit.create()
    with kit.owner() as owner:
        owner.append("a")
        receipt = owner.seal()
    seal = kit.frames()[-1]
    kit.cut(seal.offset)
    kit.forget_mark()
    with kit.owner() as owner:
        forged: Receipt = msgspec.structs.replace(receipt, **change)
        owner.log._write(KIND_SEAL, msgspec.msgpack.encode(forged), 0)
    report = verify(kit)
    assert "the seal's receipt does not fit the log before it" in report.problems[0]
    assert report.events == 1


class TestAttachments:
    @pytest.fixture(autouse=True)
    def make(self, kit: Kit) -> None:
        with_attachments(kit)

    def test_intact_ones_are_ok(self, kit: Kit) -> None:
        report = verify(kit)
        assert (report.ok, report.events) == (True, 3)

    def test_a_missing_one_is_a_fault(self, kit: Kit) -> None:
        (kit.path / "s" / "attachments" / "1").unlink()
        report = verify(kit)
        assert len(report.problems) == 1
        assert "no attachment at position 1" in report.problems[0]

    def test_each_damaged_one_is_a_fault(self, kit: Kit) -> None:
        folder = kit.path / "s" / "attachments"
        (folder / "1").write_bytes(b"short")
        (folder / "2").write_bytes(b"X" + (folder / "2").read_bytes()[1:])
        report = verify(kit)
        assert [("position 1" in text, "position 2" in text) for text in report.problems] == [
            (True, False),
            (False, True),
        ]
        assert report.events == 3

    def test_the_whole_folder_missing_is_a_fault_for_each(self, kit: Kit) -> None:
        shutil.rmtree(kit.path / "s" / "attachments")
        assert len(verify(kit).problems) == 2

    def test_an_event_that_describes_no_file_is_a_fault(self, kit: Kit) -> None:
        with kit.owner() as owner:
            owner.append(Event("attachment", "?", {"no": "file"}))
        assert "does not describe a file" in verify(kit).problems[0]


def test_a_session_that_is_not_there_is_an_error(kit: Kit) -> None:
    with pytest.raises(SessionNotFoundError):
        verify_session(kit.fs, kit.store, "s")


def test_a_failing_disk_is_an_error(kit: Kit) -> None:
    kit.make("a")
    kit.faults.fail("open log", 5)
    with pytest.raises(OSError, match="made to fail"):
        verify_session(kit.fs, kit.store, "s")
