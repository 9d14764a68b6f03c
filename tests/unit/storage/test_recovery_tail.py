"""The last two rows of the table of docs/recovery.md: what stands behind the valid frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sealog.storage.errors import CorruptionError, UpgradeRequiredError
from sealog.storage.format import FRAME_HEADER_SIZE

if TYPE_CHECKING:
    from .conftest import Kit


class TestRow4LaterFrame:
    def test_damage_in_the_middle(self, kit: Kit) -> None:
        """Any byte of a frame that is not the last one."""
        kit.make("a", "b", "c")
        kit.forget_mark()
        damaged = kit.frames()[2]
        for offset in range(damaged.offset, damaged.end):
            kit.flip(offset)
            with pytest.raises(CorruptionError, match="a later one stands at byte") as caught:
                kit.owner()
            assert (caught.value.offset, caught.value.position) == (damaged.offset, 1)
            kit.flip(offset)
            kit.forget_mark()

    def test_nothing_is_touched(self, kit: Kit) -> None:
        kit.make("a", "b", "c")
        kit.forget_mark()
        kit.flip(kit.frames()[2].payload_offset)
        assert f"later one stands at byte {kit.frames()[3].offset}" in kit.refused().reason

    @pytest.mark.parametrize("zeros", [100, 700_000, 1024 * 1024 - 20, 1024 * 1024, 2_500_000])
    def test_a_later_header_is_found_at_any_distance(self, kit: Kit, zeros: int) -> None:
        """Also across the borders of what is read at once."""
        kit.make("a")
        end = kit.frames()[-1].end
        kit.add(bytes(zeros) + kit.stray_frame(end + zeros, 2))
        assert f"at byte {end + zeros}" in kit.refused().reason

    def test_a_later_header_counts_without_its_payload(self, kit: Kit) -> None:
        kit.make("a")
        end = kit.frames()[-1].end
        kit.add(bytes(100) + kit.stray_frame(end + 100, 1)[:FRAME_HEADER_SIZE])
        assert "a later one stands" in kit.refused().reason

    @pytest.mark.parametrize(("position", "link"), [(1, 1), (2, 0), (0, 0)])
    def test_an_intact_frame_at_the_end_that_does_not_follow(
        self, kit: Kit, position: int, link: int
    ) -> None:
        """What it followed had been synced, and is not what stands there now."""
        kit.make("a")
        last = kit.frames()[-1]
        kit.add(kit.stray_frame(last.end, position, previous=last.header_check ^ link))
        error = kit.refused()
        assert "an intact frame here does not follow the one before it" in error.reason
        assert error.offset == last.end

    def test_a_later_header_of_a_lower_position_does_not_count(self, kit: Kit) -> None:
        kit.make("a", "b")
        end = kit.frames()[-1].end
        kit.add(bytes(100) + kit.stray_frame(end + 100, 1))
        kit.recovered(["a", "b"], "incomplete", 139)

    def test_a_copy_of_a_frame_at_another_place_does_not_count(self, kit: Kit) -> None:
        """A log pasted into an event's text, or a block written to the wrong place."""
        kit.make("a", "b")
        kit.add(b"torn" + kit.log_path().read_bytes())
        with kit.owner() as owner:
            assert owner.texts() == ["a", "b"]
            assert owner.log.recovered.status == "recovered"

    def test_frames_of_another_log_do_not_count(self, kit: Kit) -> None:
        kit.make("a", "b", "c", session_id="other")
        kit.make("a")
        end = kit.frames()[-1].end
        kit.add((kit.path / "other" / "log").read_bytes()[end:])
        with kit.owner() as owner:
            assert owner.texts() == ["a"]
            assert owner.log.recovered.status == "recovered"

    def test_an_unknown_kind_behind_damage_asks_for_an_upgrade(self, kit: Kit) -> None:
        kit.make("a")
        end = kit.frames()[-1].end
        kit.add(b"?" * 50 + kit.stray_frame(end + 50, 1, kind=9))
        assert "kind 9" in kit.refused(UpgradeRequiredError).reason


class TestRow5TheCommitInFlight:
    def test_a_cut_at_every_byte(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.forget_mark()
        whole, last = kit.log_path().read_bytes(), kit.frames()[-1]
        for size in range(last.offset + 1, last.end):
            kit.log_path().write_bytes(whole[:size])
            kit.recovered(["a"], "incomplete", len(whole[last.offset : size].rstrip(b"\0")))
            kit.forget_mark()

    def test_a_batch_is_whole_or_absent(self, kit: Kit) -> None:
        """INV-3: a cut at every byte of a frame of three events leaves none of them."""
        kit.create()
        with kit.owner() as owner:
            owner.append("a")
            owner.append("b", "c", "d")
            owner.finish()
        whole, last = kit.log_path().read_bytes(), kit.frames()[-1]
        for size in range(last.offset, last.end):
            kit.forget_mark()
            kit.log_path().write_bytes(whole[:size])
            with kit.owner() as owner:
                assert owner.texts() == ["a"]

    def test_zeros_after_every_byte(self, kit: Kit) -> None:
        """In allocated space the rest of the frame reads as zeros, which is no end of the file."""
        kit.make("a", "b")
        kit.forget_mark()
        whole, last = kit.log_path().read_bytes(), kit.frames()[-1]
        for size in range(last.offset + 1, last.end - 1):
            kit.log_path().write_bytes(whole[:size] + bytes(4096))
            with kit.owner() as owner:
                assert owner.texts() == ["a"]
                assert owner.log.recovered.status == "recovered"
            kit.forget_mark()

    @pytest.mark.parametrize(
        ("piece", "reason"),
        [(0, "incomplete"), (1, "incomplete"), (3, "incomplete"), (None, "damaged")],
    )
    def test_a_sector_of_zeros_is_an_interrupted_write(
        self, kit: Kit, piece: int | None, reason: str
    ) -> None:
        """Each sector of the frame arrived or not; a flipped bit is something else."""
        kit.make("a", "b" * 1600)
        kit.forget_mark()
        last = kit.frames()[-1]
        if piece is None:
            data = kit.flip(last.payload_offset + 700)
        else:
            start = max(last.offset, piece * 512)
            end = min(last.end, (piece + 1) * 512)
            data = kit.edit(lambda data: data.__setitem__(slice(start, end), bytes(end - start)))
        kit.recovered(["a"], reason, len(data[last.offset :].rstrip(b"\0")))

    def test_a_flipped_header_of_the_last_frame_may_have_been_acknowledged(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.forget_mark()
        last = kit.frames()[-1]
        kit.flip(last.offset + 17)
        kit.recovered(["a"], "damaged", last.end - last.offset)

    def test_noise_behind_the_end(self, kit: Kit) -> None:
        kit.make("a")
        kit.add(b"?" * 1000 + bytes(1000))
        kit.recovered(["a"], "damaged", 1000)

    def test_noise_shorter_than_a_header(self, kit: Kit) -> None:
        kit.make("a")
        kit.add(b"?")
        kit.recovered(["a"], "incomplete", 1)

    def test_a_frame_longer_than_the_file(self, kit: Kit) -> None:
        """A length is compared with the file before memory is taken for it."""
        kit.make("a", "b" * 10_000)
        kit.forget_mark()
        last = kit.frames()[-1]
        kit.cut(last.end - 1)
        kit.recovered(["a"], "incomplete", last.end - 1 - last.offset)

    def test_the_first_events_of_a_session(self, kit: Kit) -> None:
        kit.make("a")
        kit.forget_mark()
        kit.cut(kit.frames()[-1].end - 1)
        kit.recovered([], "incomplete", 38)

    def test_an_interrupted_seal(self, kit: Kit) -> None:
        kit.make("a", seal=True)
        kit.forget_mark()
        seal = kit.frames()[-1]
        kit.cut(seal.end - 5)
        with kit.owner() as owner:
            assert owner.log.receipt is None
            assert owner.append("b") == 1
