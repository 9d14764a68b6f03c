"""Checkpoints: caches that may be lost, damaged or old, and what an intact one proves."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING

import msgspec
import pytest
from xxhash import xxh3_64_intdigest

from sealog.storage import log as log_module
from sealog.storage.checkpoints import (
    Checkpoint,
    checkpoint_of,
    find_salt,
    read_checkpoint,
    write_checkpoint,
)
from sealog.storage.errors import CorruptionError
from sealog.storage.format import Frame, parse_file_header
from sealog.storage.log import CHECKPOINT_MIN_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Kit

TEXTS = [f"{number} " + "x" * 9000 for number in range(10)]


@pytest.fixture
def index_path(kit: Kit) -> Path:
    """Make a session that is large enough for an index checkpoint, and return that file's path."""
    kit.make(*TEXTS)
    path = kit.path / "s" / "checkpoints" / "index"
    assert path.is_file()
    return path


def stored(kit: Kit) -> Checkpoint:
    checkpoint = read_checkpoint(kit.session(), "index", kit.keys())
    assert checkpoint is not None
    return checkpoint


def damage_first_event(kit: Kit) -> int:
    """Damage a header that an open from a checkpoint does not look at; return its offset."""
    offset = kit.frames()[1].offset
    kit.flip(offset)
    return offset


def test_an_index_checkpoint_saves_the_walk(kit: Kit, index_path: Path) -> None:
    """The open does not read what the checkpoint covers; reading it later does."""
    assert index_path.stat().st_mode & 0o777 == 0o600
    offset = damage_first_event(kit)
    with kit.owner() as owner:
        assert owner.log.head.position == len(TEXTS)
        assert owner.events(start=9)[0].text == TEXTS[9]
        with pytest.raises(CorruptionError) as caught:
            owner.events()
    assert caught.value.offset == offset


def test_frames_behind_the_checkpoint_are_walked(kit: Kit, index_path: Path) -> None:
    with kit.owner() as owner:
        owner.append("one more")
    kit.clean([*TEXTS, "one more"])


def test_it_names_the_frame_that_it_covers(kit: Kit, index_path: Path) -> None:
    checkpoint, last = stored(kit), kit.frames()[-1]
    assert checkpoint == checkpoint_of(kit.keys(), last, checkpoint.body)
    assert (checkpoint.offset, checkpoint.end, checkpoint.position) == (last.offset, last.end, len(TEXTS))
    assert checkpoint.matches(last)
    assert checkpoint.head == kit.reader().head


@pytest.mark.parametrize(
    "change", [{"payload_length": 9}, {"event_count": 9}, {"header_check": 9}, {"digest": 9}]
)
def test_another_frame_does_not_match(kit: Kit, index_path: Path, change: dict[str, int]) -> None:
    last: Frame = kit.frames()[-1]
    assert not stored(kit).matches(msgspec.structs.replace(last, **change))
    assert not stored(kit).matches(None)


class TestDropped:
    """Every checkpoint that is not intact gives the same log as none at all."""

    @pytest.fixture(autouse=True)
    def make(self, index_path: Path) -> None:
        self.path = index_path

    def the_walk_is_done(self, kit: Kit) -> None:
        assert read_checkpoint(kit.session(), "index", kit.keys()) is None
        kit.clean(TEXTS)
        kit.forget_mark()
        damage_first_event(kit)
        with pytest.raises(CorruptionError, match="a later one stands"):
            kit.owner()

    def test_deleted(self, kit: Kit) -> None:
        self.path.unlink()
        self.the_walk_is_done(kit)

    def test_the_whole_folder_deleted(self, kit: Kit) -> None:
        self.path.unlink()
        self.path.parent.rmdir()
        self.the_walk_is_done(kit)

    def test_empty(self, kit: Kit) -> None:
        self.path.write_bytes(b"")
        self.the_walk_is_done(kit)

    def test_truncated_anywhere(self, kit: Kit) -> None:
        whole, directory, keys = self.path.read_bytes(), kit.session(), kit.keys()
        for size in range(len(whole)):
            self.path.write_bytes(whole[:size])
            assert read_checkpoint(directory, "index", keys) is None
        self.the_walk_is_done(kit)

    def test_any_byte_damaged(self, kit: Kit) -> None:
        whole, directory, keys = self.path.read_bytes(), kit.session(), kit.keys()
        for offset in range(len(whole)):
            self.path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
            assert read_checkpoint(directory, "index", keys) is None
        self.the_walk_is_done(kit)

    def test_of_a_newer_version(self, kit: Kit) -> None:
        whole = self.path.read_bytes()
        self.path.write_bytes(whole[:8] + struct.pack("<I", 2) + whole[12:])
        self.the_walk_is_done(kit)

    def test_of_another_log(self, kit: Kit) -> None:
        kit.make(*TEXTS, "more", session_id="other")
        self.path.write_bytes((kit.path / "other" / "checkpoints" / "index").read_bytes())
        self.the_walk_is_done(kit)

    @pytest.mark.parametrize("payload", [b"", b"\xc0", b"\x97\x01\x02\x03\x04\x05\x06\x07", b"\x91\xc4\x00"])
    def test_of_nonsense_with_a_good_digest(self, kit: Kit, payload: bytes) -> None:
        lead = struct.pack("<8sIQ", b"\x89SLC\r\n\x1a\n", 1, xxh3_64_intdigest(payload))
        self.path.write_bytes(lead + payload)
        self.the_walk_is_done(kit)

    def test_on_a_part_of_the_disk_that_cannot_be_read(self, kit: Kit) -> None:
        kit.faults.fail("pread index")
        self.the_walk_is_done(kit)

    def test_a_folder_in_its_place(self, kit: Kit) -> None:
        self.path.unlink()
        self.path.mkdir()
        self.the_walk_is_done(kit)

    def test_a_link_in_its_place_is_not_followed(self, kit: Kit, tmp_path: Path) -> None:
        self.path.rename(tmp_path / "elsewhere")
        self.path.symlink_to(tmp_path / "elsewhere")
        self.the_walk_is_done(kit)


class TestProof:
    """It was written after the sync of what it covers: an intact one says how far the log once went."""

    def test_a_shorter_log_is_corruption(self, kit: Kit, index_path: Path) -> None:
        kit.forget_mark()
        last = kit.frames()[-1]
        for size in (last.payload_offset - 1, last.offset, kit.frames()[3].end):
            kit.cut(size)
            assert "no longer holds what a checkpoint covers" in kit.refused().reason

    def test_a_cut_payload_of_the_covered_frame_is_corruption(self, kit: Kit, index_path: Path) -> None:
        kit.forget_mark()
        last = kit.frames()[-1]
        for size in (last.end - 1, last.payload_offset):
            kit.cut(size)
            assert "a frame that a checkpoint covers is damaged" in kit.refused().reason

    def test_another_frame_at_its_place_is_corruption(self, kit: Kit, index_path: Path) -> None:
        kit.forget_mark()
        kit.flip(kit.frames()[-1].offset + 9)
        assert "no longer holds" in kit.refused().reason

    def test_another_intact_frame_at_its_place_is_corruption(self, kit: Kit, index_path: Path) -> None:
        kit.forget_mark()
        last = kit.frames()[-1]
        kit.cut(last.offset)
        kit.add(kit.stray_frame(last.offset, last.first_position, previous=last.previous))
        assert "no longer holds" in kit.refused().reason

    def test_a_damaged_payload_of_the_covered_frame_is_corruption(self, kit: Kit, index_path: Path) -> None:
        kit.forget_mark()
        last = kit.frames()[-1]
        kit.flip(last.end - 1)
        error = kit.refused()
        assert "a frame that a checkpoint covers is damaged" in error.reason
        assert error.offset == last.offset

    def test_a_full_check_uses_it_as_proof_only(self, kit: Kit, index_path: Path) -> None:
        with kit.owner(full=True) as owner:
            assert owner.texts() == TEXTS
            assert len(owner.log.view.index) > 1
        kit.forget_mark()
        kit.cut(kit.frames()[3].end)
        with pytest.raises(CorruptionError, match="no longer holds"):
            kit.owner(full=True)

    def test_a_sealed_log_opens_from_it(self, kit: Kit) -> None:
        kit.make(*TEXTS, seal=True)
        assert stored(kit).end == kit.frames()[-1].end
        with kit.owner() as owner:
            assert owner.log.receipt is not None
            assert owner.log.receipt.events == len(TEXTS)


class TestWriting:
    def test_a_small_log_gets_none(self, kit: Kit) -> None:
        kit.make("a")
        assert not (kit.path / "s" / "checkpoints").exists()

    def test_it_is_written_again_only_when_the_log_has_grown_enough(self, kit: Kit, index_path: Path) -> None:
        before = index_path.read_bytes()
        with kit.owner() as owner:
            owner.append("x" * (CHECKPOINT_MIN_BYTES // 2))
            owner.finish()
        assert index_path.read_bytes() == before
        with kit.owner() as owner:
            owner.append("x" * CHECKPOINT_MIN_BYTES)
            owner.finish()
        assert stored(kit).position == len(TEXTS) + 2

    def test_what_checkpoints_cost_is_linear_in_the_log(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a large log, only a growth by a part of itself is worth one."""
        monkeypatch.setattr(log_module, "CHECKPOINT_GROWTH", 4)
        kit.create()
        with kit.owner() as owner:
            for units, covered in ((8, 1), (1, 1), (1, 1), (1, 4)):
                owner.append("x" * (CHECKPOINT_MIN_BYTES * units))
                owner.log.write_checkpoint(owner.directory)
                assert stored(kit).position == covered

    def test_a_long_session_asks_for_one(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log_module, "CHECKPOINT_EVERY_BYTES", 100_000)
        kit.create()
        with kit.owner() as owner:
            owner.append("x" * 90_000)
            assert not owner.log.checkpoint_due
            owner.append("x" * 20_000)
            assert owner.log.checkpoint_due
            owner.log.write_checkpoint(owner.directory)
            assert not owner.log.checkpoint_due

    def test_it_replaces_the_old_one_in_one_step(self, kit: Kit, index_path: Path) -> None:
        kit.faults.clear()
        assert write_checkpoint(kit.session(), "index", stored(kit))
        assert kit.faults.calls[-1] == "rename index"
        assert [path.name for path in index_path.parent.iterdir()] == ["index"]

    def test_a_leftover_of_an_interrupted_write_is_in_no_way(self, kit: Kit, index_path: Path) -> None:
        (index_path.parent / ".index.new").write_bytes(b"half")
        assert write_checkpoint(kit.session(), "index", stored(kit))
        assert [path.name for path in index_path.parent.iterdir()] == ["index"]

    @pytest.mark.parametrize("call", ["open .index.new", "pwrite .index.new", "rename index"])
    def test_a_full_disk_costs_speed_only(
        self, kit: Kit, index_path: Path, call: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        before, checkpoint = kit.snapshot(), stored(kit)
        kit.faults.fail(call, errno.ENOSPC)
        assert not write_checkpoint(kit.session(), "index", checkpoint)
        assert kit.snapshot() == before
        assert "checkpoint index not written" in caplog.text


class TestDerived:
    """Checkpoints of other names, as projections write them."""

    def test_it_comes_back(self, kit: Kit) -> None:
        kit.make("a")
        with kit.owner() as owner:
            assert owner.log.read_derived(owner.directory, "todo") is None
            assert owner.log.write_derived(owner.directory, "todo", b"state")
            found = owner.log.read_derived(owner.directory, "todo")
            assert found is not None
            assert (found.body, found.position) == (b"state", 1)

    def test_one_of_a_frame_that_is_gone_is_dropped(self, kit: Kit) -> None:
        kit.make("a")
        with kit.owner() as owner:
            owner.append("b")
            owner.log.write_derived(owner.directory, "todo", b"state")
        kit.forget_mark()
        kit.cut(kit.frames()[1].end)
        with kit.owner() as owner:
            assert owner.log.read_derived(owner.directory, "todo") is None
            owner.append("c")
            assert owner.log.read_derived(owner.directory, "todo") is None


def test_the_salt_is_found_in_any_intact_checkpoint(kit: Kit, index_path: Path) -> None:
    index_path.with_name("a").write_bytes(b"damaged")
    assert find_salt(kit.session()) == kit.keys().salt
    index_path.unlink()
    assert find_salt(kit.session()) is None


def test_the_salt_is_not_found_without_checkpoints(kit: Kit) -> None:
    kit.make("a")
    assert find_salt(kit.session()) is None
    assert parse_file_header(kit.log_path().read_bytes(), "log") is not None
