"""Repair: what can be read goes into a copy, at its old position; the original is only read."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sealog.storage.directory import open_store_directory, session_ids
from sealog.storage.errors import (
    CorruptionError,
    SessionExistsError,
    SessionNotFoundError,
    UpgradeRequiredError,
)
from sealog.storage.format import KIND_EVENTS, encode_frame
from sealog.storage.repair import LOST_KIND, Gap, RepairReport, repair_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sealog.storage.vfs import Directory

    from .conftest import Kit

LOST = "this event could not be read"


@pytest.fixture
def into(kit: Kit, tmp_path: Path) -> Iterator[Directory]:
    """Return another store."""
    directory = open_store_directory(kit.fs, str(tmp_path / "into"), create=True)
    yield directory
    directory.close()


def repair(kit: Kit, into: Directory) -> tuple[RepairReport, list[str]]:
    """Repair session `s`; return the report and the texts of the copy, which must be a clean session."""
    before = kit.snapshot()
    report = repair_session(kit.store, "s", into)
    assert kit.snapshot() == before
    assert (report.session_id, report.path) == ("s", f"{into.path}/s")
    if "copy" in session_ids(kit.store):
        shutil.rmtree(kit.path / "copy")
    kit_path = kit.path
    kit.path, kit.store = kit.path.parent / "into", into
    try:
        with kit.owner() as owner:
            assert owner.log.recovered.status == "clean"
            assert owner.log.recovered.leftovers == ()
            events = owner.events()
            assert [event.text for event in events if event.kind == LOST_KIND] == [LOST] * report.lost_events
            assert len(events) == report.events
            owner.append("goes on")
    finally:
        kit.path = kit_path
    return report, [event.text for event in events]


def make(kit: Kit) -> None:
    """Make frames of 1, 3, 2 and 1 events."""
    kit.create(case="repair")
    with kit.owner() as owner:
        owner.append("0")
        owner.append("1", "2", "3")
        owner.append("4", "5")
        owner.append("6")
        owner.finish()


def test_an_intact_session_is_copied_whole(kit: Kit, into: Directory) -> None:
    make(kit)
    report, texts = repair(kit, into)
    assert texts == ["0", "1", "2", "3", "4", "5", "6"]
    assert report == RepairReport("s", f"{into.path}/s", 7, 0, (), False, ())


def test_header_and_labels_are_kept(kit: Kit, into: Directory) -> None:
    make(kit)
    repair(kit, into)
    kit.path = kit.path.parent / "into"
    assert kit.reader().header.labels == {"case": "repair"}
    assert kit.reader().header.created_at == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("part", ["header", "payload"])
def test_lost_events_keep_the_positions_of_the_others(kit: Kit, into: Directory, part: str) -> None:
    make(kit)
    frame = kit.frames()[2]
    kit.flip(frame.offset + 20 if part == "header" else frame.payload_offset + 3)
    report, texts = repair(kit, into)
    assert texts == ["0", LOST, LOST, LOST, "4", "5", "6"]
    assert report.gaps == (Gap(frame.offset, frame.end - frame.offset, 1, 3),)
    assert (report.events, report.lost_events) == (7, 3)


def test_damage_over_several_frames_is_one_gap(kit: Kit, into: Directory) -> None:
    make(kit)
    frames = kit.frames()
    for frame in frames[2:4]:
        kit.flip(frame.offset)
    report, texts = repair(kit, into)
    assert texts == ["0", LOST, LOST, LOST, LOST, LOST, "6"]
    assert report.gaps == (Gap(frames[2].offset, frames[4].offset - frames[2].offset, 1, 5),)


def test_every_gap_is_listed(kit: Kit, into: Directory) -> None:
    make(kit)
    frames = kit.frames()
    kit.flip(frames[1].payload_offset)
    kit.flip(frames[3].offset)
    report, texts = repair(kit, into)
    assert texts == [LOST, "1", "2", "3", LOST, LOST, "6"]
    assert [(gap.first_position, gap.events) for gap in report.gaps] == [(0, 1), (4, 2)]


def test_any_flipped_byte_loses_one_frame_at_most(kit: Kit, tmp_path: Path) -> None:
    make(kit)
    frames = kit.frames()
    for offset in range(frames[1].offset, frames[-1].offset, 17):
        kit.flip(offset)
        target = open_store_directory(kit.fs, str(tmp_path / f"into-{offset}"), create=True)
        report = repair_session(kit.store, "s", target)
        hit = next(frame for frame in frames if frame.offset <= offset < frame.end)
        assert report.lost_events == hit.event_count
        assert report.events == 7
        target.close()
        kit.flip(offset)


@pytest.mark.parametrize("keep", [1, 20, 32, 38])
def test_the_end_of_a_torn_log_is_a_gap_of_unknown_events(kit: Kit, into: Directory, keep: int) -> None:
    make(kit)
    last = kit.frames()[-1]
    kit.cut(last.offset + keep)
    report, texts = repair(kit, into)
    assert texts == ["0", "1", "2", "3", "4", "5"]
    assert report.lost_events == 0
    (gap,) = report.gaps
    assert (gap.offset, gap.first_position, gap.events) == (last.offset, 6, None)
    assert 0 < gap.size_bytes <= keep


def test_an_intact_frame_of_a_position_that_is_known_is_not_taken(kit: Kit, into: Directory) -> None:
    make(kit)
    end = kit.frames()[-1].end
    kit.add(kit.stray_frame(end, 3))
    report, texts = repair(kit, into)
    assert texts == ["0", "1", "2", "3", "4", "5", "6"]
    assert report.gaps == (Gap(end, 39, 7, None),)


def test_allocated_space_at_the_end_is_no_gap(kit: Kit, into: Directory) -> None:
    make(kit)
    kit.add(bytes(8192))
    assert repair(kit, into)[0].gaps == ()


def test_many_lost_events_stay_many(kit: Kit, into: Directory) -> None:
    """More than one frame of stand-ins."""
    kit.create()
    with kit.owner() as owner:
        owner.append(*["x"] * 25_000)
        owner.append("last")
        owner.finish()
    kit.flip(kit.frames()[1].payload_offset + 7)
    report, texts = repair(kit, into)
    assert texts[25_000] == "last"
    assert (report.events, report.lost_events) == (25_001, 25_000)


class TestHeaders:
    def test_a_damaged_session_header_gets_a_stand_in(self, kit: Kit, into: Directory) -> None:
        make(kit)
        kit.flip(kit.frames()[0].payload_offset)
        report, texts = repair(kit, into)
        assert texts == ["0", "1", "2", "3", "4", "5", "6"]
        assert report.gaps[0] == Gap(32, 0, 0, 0)
        kit.path = kit.path.parent / "into"
        assert (kit.reader().header.created_at, kit.reader().header.labels) == ("unknown", {})

    def test_a_damaged_frame_header_of_the_session_header_loses_no_events(
        self, kit: Kit, into: Directory
    ) -> None:
        make(kit)
        kit.flip(40)
        assert repair(kit, into)[1] == ["0", "1", "2", "3", "4", "5", "6"]

    def test_a_damaged_file_header_is_made_up_for_by_the_mark(self, kit: Kit, into: Directory) -> None:
        make(kit)
        for offset in (0, 12, 16, 31):
            kit.flip(offset)
        report, texts = repair(kit, into)
        assert texts == ["0", "1", "2", "3", "4", "5", "6"]
        assert report.lost_events == 0

    def test_a_damaged_file_header_is_made_up_for_by_a_checkpoint(self, kit: Kit, into: Directory) -> None:
        kit.make("x" * 70_000, "y")
        kit.forget_mark()
        kit.edit(lambda data: data.__setitem__(slice(0, 32), bytes(32)))
        assert repair(kit, into)[1] == ["x" * 70_000, "y"]

    def test_without_header_mark_and_checkpoint_nothing_can_be_read(self, kit: Kit, into: Directory) -> None:
        make(kit)
        kit.forget_mark()
        kit.flip(16)
        with pytest.raises(CorruptionError, match="nothing else tells the keys"):
            repair_session(kit.store, "s", into)
        assert session_ids(into) == []

    def test_a_mark_of_another_log_is_no_help(self, kit: Kit, into: Directory) -> None:
        make(kit)
        kit.make("a", session_id="other")
        shutil.copy(kit.path / "other" / "lock", kit.path / "s" / "lock")
        kit.flip(16)
        with pytest.raises(CorruptionError, match="nothing else tells the keys"):
            repair_session(kit.store, "s", into)

    def test_the_log_of_another_session_is_not_saved_under_this_id(self, kit: Kit, into: Directory) -> None:
        kit.make("a", session_id="other")
        kit.copy("other", "s")
        with pytest.raises(CorruptionError, match="log of session 'other'"):
            repair(kit, into)


class TestSeal:
    def test_a_sealed_session_is_copied_without_its_seal(self, kit: Kit, into: Directory) -> None:
        """The receipt proves other bytes than those of the copy."""
        kit.make("a", seal=True)
        report, texts = repair(kit, into)
        assert (report.sealed, texts) == (True, ["a"])

    def test_frames_behind_a_seal_are_saved(self, kit: Kit, into: Directory) -> None:
        kit.create()
        with kit.owner() as owner:
            owner.append("a")
            owner.seal()
            owner.append("b")
        report, texts = repair(kit, into)
        assert (report.sealed, texts) == (True, ["a", "b"])


class TestAttachments:
    @pytest.fixture(autouse=True)
    def make(self, kit: Kit) -> None:
        kit.create()
        with kit.owner() as owner:
            owner.append("0")
            kit.attach(owner, b"one" * 1000)
            kit.attach(owner, b"two")
            kit.attach(owner, b"")
            owner.finish()

    def copied(self, kit: Kit) -> dict[str, bytes]:
        folder = kit.path.parent / "into" / "s" / "attachments"
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def test_intact_ones_are_copied_to_their_positions(self, kit: Kit, into: Directory) -> None:
        report, _ = repair(kit, into)
        assert report.attachments_lost == ()
        assert self.copied(kit) == {"1": b"one" * 1000, "2": b"two", "3": b""}

    def test_others_are_listed(self, kit: Kit, into: Directory) -> None:
        (kit.path / "s" / "attachments" / "1").write_bytes(b"damaged")
        (kit.path / "s" / "attachments" / "3").unlink()
        report, _ = repair(kit, into)
        assert report.attachments_lost == (1, 3)
        assert self.copied(kit) == {"2": b"two"}

    def test_they_keep_their_positions_behind_lost_events(self, kit: Kit, into: Directory) -> None:
        kit.flip(kit.frames()[1].payload_offset)
        report, texts = repair(kit, into)
        assert texts[0] == LOST
        assert report.attachments_lost == ()
        assert self.copied(kit).keys() == {"1", "2", "3"}


class TestRefused:
    def test_a_session_that_is_not_there(self, kit: Kit, into: Directory) -> None:
        with pytest.raises(SessionNotFoundError):
            repair_session(kit.store, "s", into)

    def test_a_target_that_has_one_of_that_id(self, kit: Kit) -> None:
        make(kit)
        with pytest.raises(SessionExistsError):
            repair_session(kit.store, "s", kit.store)

    def test_a_missing_log(self, kit: Kit, into: Directory) -> None:
        make(kit)
        kit.log_path().unlink()
        with pytest.raises(CorruptionError, match="missing"):
            repair_session(kit.store, "s", into)

    def test_a_log_of_a_newer_version(self, kit: Kit, into: Directory) -> None:
        """It is not damaged, and this version would throw away what it does not know."""
        make(kit)
        end = kit.frames()[-1].end
        kit.add(kit.stray_frame(end, 7, kind=9))
        with pytest.raises(UpgradeRequiredError):
            repair_session(kit.store, "s", into)
        assert session_ids(into) == []


def test_undecodable_events_with_a_good_digest_are_lost_ones(kit: Kit, into: Directory) -> None:
    make(kit)
    reader = kit.reader()
    data, _ = encode_frame(kit.keys(), reader.head, KIND_EVENTS, 2, b"\x92\xc1\xc1")
    kit.add(data)
    report, texts = repair(kit, into)
    assert texts[6:] == ["6", LOST, LOST]
    assert report.lost_events == 2
