"""The log as its owner sees it: commit, seal, roll back, finish, open."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from sealog.storage import log as log_module
from sealog.storage.errors import CorruptionError, LimitExceededError, SessionDeletedError
from sealog.storage.events import Event, decode_payload, encode_event, encode_payload
from sealog.storage.format import (
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    PAYLOAD_SIZE_MAX,
    SESSION_EVENTS_MAX,
    Head,
    encode_mark,
    parse_mark,
)
from sealog.storage.log import ALLOCATE_MAX, ALLOCATE_MIN, Remembered, create_log

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Kit, Owner

PAYLOAD = encode_payload([encode_event("note", "x", None, 1, None)])


@pytest.fixture
def owner(kit: Kit) -> Owner:
    """Return an empty session opened for writing, with the calls of opening forgotten."""
    kit.create()
    owner = kit.owner()
    kit.faults.clear()
    return owner


def mark_of(kit: Kit) -> Head | None:
    return parse_mark(kit.keys(), (kit.path / "s" / "lock").read_bytes())


class TestCommit:
    def test_positions_are_contiguous(self, owner: Owner) -> None:
        """INV-2"""
        assert [owner.append("a"), owner.append("b", "c", "d"), owner.append("e")] == [0, 1, 4]
        assert owner.log.head.position == 5
        assert owner.texts() == ["a", "b", "c", "d", "e"]

    def test_one_commit_is_one_write_and_one_sync(self, kit: Kit, owner: Owner) -> None:
        """W1: nothing else is in flight when it returns; the second needs no new space."""
        owner.append("a")
        kit.faults.clear()
        owner.append("b")
        assert kit.faults.calls == ["pwrite log", "sync_data log"]

    def test_a_batch_is_one_frame(self, kit: Kit, owner: Owner) -> None:
        owner.append("a", "b", "c")
        owner.finish()
        assert [(frame.kind, frame.event_count) for frame in kit.frames()] == [
            (KIND_SESSION_HEADER, 0),
            (KIND_EVENTS, 3),
        ]

    @pytest.mark.parametrize("call", ["pwrite log", "sync_data log"])
    def test_a_failed_commit_acknowledges_nothing(self, kit: Kit, owner: Owner, call: str) -> None:
        owner.append("a")
        before = owner.log.head
        kit.faults.fail(call)
        with pytest.raises(OSError, match="made to fail") as caught:
            owner.append("b")
        assert caught.value.errno == errno.EIO
        assert owner.log.head == before
        assert owner.texts() == ["a"]

    def test_a_removed_log_takes_nothing(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        before = owner.log.head
        kit.log_path().unlink()
        with pytest.raises(SessionDeletedError, match="was deleted"):
            owner.append("b")
        assert owner.log.head == before

    def test_a_removed_session_takes_nothing(self, kit: Kit, owner: Owner) -> None:
        shutil.rmtree(kit.path / "s")
        with pytest.raises(SessionDeletedError):
            owner.append("a")

    def test_a_log_whose_path_names_another_file_takes_nothing(self, kit: Kit, owner: Owner) -> None:
        """Not even if the bytes are the same: what is written here is not in the file that others see."""
        owner.append("a")
        copy = kit.log_path().with_name("copy")
        shutil.copyfile(kit.log_path(), copy)
        copy.replace(kit.log_path())
        with pytest.raises(CorruptionError, match="another file was put in the place") as caught:
            owner.append("b")
        assert caught.value.position == 1
        assert owner.log.head.position == 1


class TestRollBack:
    def test_the_next_commit_follows_the_acknowledged_end(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        kit.faults.fail("sync_data log", errno.ENOSPC)
        with pytest.raises(OSError, match="made to fail"):
            owner.append("b")
        kit.faults.clear()
        owner.log.roll_back()
        assert kit.faults.calls == ["truncate log", "sync_data log"]
        assert kit.log_path().stat().st_size == owner.log.head.end
        assert owner.append("c") == 1
        owner.finish()
        kit.clean(["a", "c"])

    def test_a_roll_back_that_fails_says_so(self, kit: Kit, owner: Owner) -> None:
        kit.faults.fail("sync_data log")
        with pytest.raises(OSError, match="made to fail"):
            owner.append("a")
        with pytest.raises(OSError, match="made to fail"):
            owner.log.roll_back()


class TestAllocation:
    def test_space_is_reserved_ahead_and_trimmed_at_the_end(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        size = kit.log_path().stat().st_size
        assert size % ALLOCATE_MIN == 0
        assert size >= owner.log.head.end + ALLOCATE_MIN
        assert kit.log_path().read_bytes()[owner.log.head.end :].strip(b"\0") == b""
        owner.finish()
        assert kit.log_path().stat().st_size == owner.log.head.end

    def test_it_is_an_eighth_of_the_log_within_limits(
        self, kit: Kit, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_module, "ALLOCATE_MAX", 16 * 1024)
        for length in (0, 80_000, 400_000):
            owner.append("x" * length)
            spare = kit.log_path().stat().st_size - owner.log.head.end
            wanted = min(max(owner.log.head.end // 8, ALLOCATE_MIN), 16 * 1024)
            assert wanted <= spare < wanted + ALLOCATE_MIN
        assert ALLOCATE_MAX == 1024 * 1024

    def test_many_commits_need_few_reservations(self, kit: Kit, owner: Owner) -> None:
        for number in range(200):
            owner.append(f"{number:040}")
        assert kit.faults.calls.count("pwrite log") == 200
        assert kit.faults.calls.count("allocate log") <= 5

    def test_reserved_space_is_used_again_after_a_crash(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        owner.crash()
        size = kit.log_path().stat().st_size
        with kit.owner() as again:
            again.append("b")
            assert kit.log_path().stat().st_size == size

    def test_it_works_where_space_cannot_be_reserved(
        self, kit: Kit, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "posix_fallocate")
        owner.append("a")
        owner.append("b")
        assert kit.log_path().stat().st_size == owner.log.head.end
        owner.finish()
        kit.clean(["a", "b"])


class TestLimits:
    def test_a_payload_of_64_mib_fits_and_no_more(self, owner: Owner) -> None:
        owner.log.check_room(PAYLOAD_SIZE_MAX, 1)
        with pytest.raises(LimitExceededError, match="bytes of one batch") as caught:
            owner.log.check_room(PAYLOAD_SIZE_MAX + 1, 1)
        assert (caught.value.maximum, caught.value.actual) == (PAYLOAD_SIZE_MAX, PAYLOAD_SIZE_MAX + 1)

    def test_the_last_position_is_used_and_no_more(self, owner: Owner) -> None:
        owner.log.head = Head(100, SESSION_EVENTS_MAX - 2, 0)
        owner.log.check_room(10, 2)
        with pytest.raises(LimitExceededError, match="events of one session: 4,294,967,296 is over"):
            owner.log.check_room(10, 3)


class TestSeal:
    def test_the_receipt_proves_the_bytes_before_it(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        owner.append("b", "c")
        receipt = owner.seal()
        owner.finish()
        seal = kit.frames()[-1]
        assert seal.kind == KIND_SEAL
        data = kit.log_path().read_bytes()
        assert receipt.events == 3
        assert receipt.last_digest == kit.frames()[-2].digest
        assert receipt.sha256 == hashlib.sha256(data[: seal.offset]).hexdigest()
        assert len(data) == seal.end

    def test_what_was_hashed_before_is_not_read_again(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        hashed_end = owner.log.head.end
        hashed = hashlib.sha256(kit.log_path().read_bytes()[:hashed_end])
        owner.append("b")
        receipt = owner.log.seal(hashed, hashed_end)
        data = kit.log_path().read_bytes()[: kit.frames()[-1].offset]
        assert receipt.sha256 == hashlib.sha256(data).hexdigest()
        assert hashed.hexdigest() == hashlib.sha256(data[:hashed_end]).hexdigest()

    def test_it_comes_back_at_the_next_open(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        receipt = owner.seal()
        owner.finish()
        with kit.owner() as again:
            assert again.log.receipt == receipt
            assert again.texts() == ["a"]

    def test_an_empty_session_can_be_sealed(self, kit: Kit, owner: Owner) -> None:
        assert owner.seal().events == 0
        owner.finish()
        kit.clean([])

    @pytest.mark.parametrize("call", ["pwrite log", "sync_data log"])
    def test_a_failed_seal_seals_nothing(self, kit: Kit, owner: Owner, call: str) -> None:
        owner.append("a")
        kit.faults.fail(call)
        with pytest.raises(OSError, match="made to fail"):
            owner.seal()
        assert owner.log.receipt is None
        kit.faults.clear()
        owner.log.roll_back()
        assert owner.append("b") == 1

    def test_bytes_behind_a_seal_are_corruption(self, kit: Kit, owner: Owner) -> None:
        owner.seal()
        owner.finish()
        end = kit.frames()[-1].end
        kit.add(bytes(100) + b"x")
        error = kit.refused()
        assert "there are bytes behind the seal" in error.reason
        assert error.offset == end

    def test_a_frame_behind_a_seal_is_corruption(self, kit: Kit, owner: Owner) -> None:
        owner.seal()
        owner.log.commit(PAYLOAD, 1)
        owner.crash()
        assert "behind the seal" in kit.refused().reason

    def test_a_seal_that_cannot_be_decoded_is_corruption(self, kit: Kit, owner: Owner) -> None:
        owner.log._write(KIND_SEAL, b"\x80", 0)
        owner.crash()
        assert "the seal cannot be decoded" in kit.refused().reason


class TestMark:
    def test_opening_writes_it_after_the_sync(self, kit: Kit) -> None:
        """W2, W3"""
        kit.create()
        kit.faults.clear()
        with kit.owner() as owner:
            assert kit.faults.calls[-4:] == ["sync_data log", "sync s", "sync store", "pwrite lock"]
            assert mark_of(kit) == owner.log.head

    def test_it_is_written_when_the_owner_says_so(self, kit: Kit, owner: Owner) -> None:
        before = mark_of(kit)
        owner.append("a")
        assert mark_of(kit) == before
        owner.log.write_mark()
        assert mark_of(kit) == owner.log.head != before

    def test_it_leaves_the_holder_readable(self, kit: Kit, owner: Owner) -> None:
        holder = (kit.path / "s" / "lock").read_bytes()[64:]
        owner.log.write_mark()
        assert (kit.path / "s" / "lock").read_bytes()[64:] == holder
        assert b'"pid"' in holder


class TestFinish:
    def test_it_trims_marks_and_syncs_the_mark(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        kit.faults.clear()
        owner.log.finish(owner.directory)
        assert kit.faults.calls == ["truncate log", "pwrite lock", "sync_data lock"]
        assert mark_of(kit) == owner.log.head

    @pytest.mark.parametrize("call", ["truncate log", "pwrite lock", "sync_data lock"])
    def test_what_fails_there_costs_speed_only(
        self, kit: Kit, owner: Owner, call: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        owner.append("a")
        kit.faults.fail(call)
        owner.finish()
        kit.faults.clear()
        assert caplog.record_tuples[0][:2] == ("sealog", logging.WARNING)
        kit.clean(["a"])


class TestOpen:
    def test_a_failure_closes_the_log(self, kit: Kit, owner: Owner) -> None:
        owner.crash()
        opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
        for call in ("sync_data log", "sync s", "sync store", "pwrite lock", "open log"):
            kit.faults.fail(call)
            with pytest.raises(OSError, match="made to fail"):
                kit.owner()
            kit.faults.clear()
        if opened is not None:
            assert len(os.listdir("/proc/self/fd")) == opened

    def test_dead_attachment_files_are_swept_and_reported(self, kit: Kit, owner: Owner) -> None:
        owner.append("a")
        owner.crash()
        folder = kit.path / "s" / "attachments"
        folder.mkdir()
        for name in ("0", "5", ".stage-1", ".stage-2", "notes.txt"):
            (folder / name).write_bytes(b"x")
        with kit.owner(staging={".stage-2"}) as again:
            assert again.log.recovered.leftovers == (".stage-1", "0", "5")
        assert sorted(path.name for path in folder.iterdir()) == [".stage-2", "notes.txt"]

    def test_another_session_under_the_same_id_is_not_taken_for_the_old_one(
        self, kit: Kit, owner: Owner
    ) -> None:
        known = Remembered(owner.log.salt, None, None)
        owner.crash()
        with kit.owner(remembered=known) as again:
            assert again.log.salt == known.salt
        shutil.rmtree(kit.path / "s")
        kit.create()
        with pytest.raises(SessionDeletedError):
            kit.owner(remembered=known)

    def test_one_event_is_read_by_position(self, owner: Owner) -> None:
        owner.append("a", "b")
        assert owner.log.event_at(1).text == "b"


class TestCreateLog:
    def test_it_may_start_with_frames(self, kit: Kit, tmp_path: Path) -> None:
        """As an import does: one sync for all of them, and no mark yet."""
        kit.create()
        owner = kit.owner()
        header = owner.log.header
        owner.crash()
        kit.log_path().unlink()
        kit.forget_mark()
        kit.faults.clear()
        batches = [(PAYLOAD, 1), (encode_payload([encode_event("note", "y", None, 1, None)] * 3), 3)]
        create_log(kit.session(), header, batches)
        assert kit.faults.calls.count("sync_data log") == 1
        assert [(frame.first_position, frame.event_count) for frame in kit.frames()] == [
            (0, 0),
            (0, 1),
            (1, 3),
        ]
        kit.clean(["x", "y", "y", "y"])

    def test_it_never_writes_over_a_log(self, kit: Kit, owner: Owner) -> None:
        with pytest.raises(FileExistsError):
            create_log(owner.directory, owner.log.header)


def test_a_mark_of_the_future_of_this_log_would_be_refused(kit: Kit, owner: Owner) -> None:
    """The mark of a frame that was never synced must not exist: it would forbid the open."""
    owner.append("a")
    end = owner.log.head
    mark = encode_mark(kit.keys(), Head(end.end + 39, end.position + 1, 7))
    owner.crash()
    (kit.path / "s" / "lock").write_bytes(mark)
    assert "had been on disk" in kit.refused().reason


def test_what_is_stored_is_what_was_given(owner: Owner) -> None:
    event = Event("myapp.note", "text", {"a": [1, b"x"]}, at=5, key="k")
    owner.append(event)
    assert owner.events() == [event]
    assert decode_payload(PAYLOAD) == [Event("note", "x", None, 1)]
