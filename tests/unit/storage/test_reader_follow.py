"""Following a log: events behind a known head, and refreshing a reader in another process."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sealog.storage import reader as reader_module
from sealog.storage import recovery
from sealog.storage.errors import CorruptionError, SessionDeletedError
from sealog.storage.format import Head

if TYPE_CHECKING:
    from sealog.storage.reader import LogReader

    from .conftest import Kit


def texts(reader: LogReader) -> list[str]:
    return [event.text for event in reader.view.events(0, reader.head.position, reader.head)]


class TestEventsAfter:
    """What a subscription reads: from a head it knows to the one it was told of."""

    def after(self, kit: Kit, known: Head) -> list[str]:
        reader = kit.reader()
        return [event.text for event in reader.view.events_after(known, reader.head)]

    def test_the_events_between_two_heads(self, kit: Kit) -> None:
        kit.create()
        owner = kit.owner()
        heads = [owner.log.head]
        for batch in (["a"], ["b", "c"], ["d"]):
            owner.append(*batch)
            heads.append(owner.log.head)
        assert [self.after(kit, head) for head in heads] == [
            ["a", "b", "c", "d"],
            ["b", "c", "d"],
            ["d"],
            [],
        ]
        assert [event.text for event in owner.log.view.events_after(heads[1], heads[2])] == ["b", "c"]

    def test_nothing_before_the_known_head_is_read(self, kit: Kit) -> None:
        kit.make("a", "b", "c")
        reader, frame = kit.reader(), kit.frames()[2]
        known = Head(frame.end, frame.next_position, frame.header_check)
        kit.edit(lambda data: data.__setitem__(slice(0, frame.end), bytes(frame.end)))
        assert [event.text for event in reader.view.events_after(known, reader.head)] == ["c"]

    def test_what_does_not_follow_the_known_head_is_corruption(self, kit: Kit) -> None:
        kit.make("a", "b", "c")
        frame = kit.frames()[2]
        with pytest.raises(CorruptionError, match="does not follow") as caught:
            self.after(kit, Head(frame.end, frame.next_position, frame.header_check ^ 1))
        assert caught.value.offset == frame.end


class TestRefresh:
    """A reader in another process follows without a lock and without a change."""

    def test_it_sees_what_was_appended_and_the_seal(self, kit: Kit) -> None:
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        assert not reader.refresh()
        owner.append("a")
        owner.append("b", "c")
        before = kit.snapshot()
        assert reader.head.position == 0
        assert reader.refresh()
        assert texts(reader) == ["a", "b", "c"]
        assert not reader.refresh()
        assert kit.snapshot() == before
        owner.append("d")
        receipt = owner.seal()
        assert reader.refresh()
        assert texts(reader) == ["a", "b", "c", "d"]
        assert reader.receipt == receipt
        assert not reader.refresh()

    def test_it_syncs_before_it_shows(self, kit: Kit) -> None:
        """What the owner wrote and had not synced when it died is durable before anybody saw it (INV-1)."""
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        owner.append("a")
        kit.faults.clear()
        assert reader.refresh()
        assert kit.faults.calls == ["sync_data log"]

    def test_opening_syncs_what_the_mark_does_not_cover(self, kit: Kit) -> None:
        kit.make("a")
        kit.faults.clear()
        kit.reader()
        assert "sync_data log" not in kit.faults.calls
        with kit.owner() as owner:
            owner.append("behind the mark")
        for forget in (False, True):
            if forget:
                kit.forget_mark()
            kit.faults.clear()
            kit.reader()
            assert kit.faults.calls[-1] == "sync_data log"

    def test_a_sync_that_fails_shows_nothing(self, kit: Kit) -> None:
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        owner.append("a")
        kit.faults.fail("sync_data log")
        with pytest.raises(OSError, match="made to fail"):
            reader.refresh()
        assert reader.head.position == 0
        kit.faults.clear()
        assert reader.refresh()

    @pytest.mark.parametrize("size", [1, 31, 32, 38])
    def test_a_frame_in_flight_is_not_there_yet(self, kit: Kit, size: int) -> None:
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        end = owner.log.head.end
        owner.append("a")
        whole = kit.log_path().read_bytes()
        kit.log_path().write_bytes(whole[: end + size] + bytes(len(whole) - end - size))
        assert not reader.refresh()
        kit.log_path().write_bytes(whole)
        assert reader.refresh()

    def test_a_frame_that_its_owner_took_back_was_never_shown(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk: the frame is there when the reader looks, and gone when it has synced."""
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        owner.append("a")
        whole = kit.log_path().read_bytes()
        end = reader.head.end

        def take_back(file: object) -> None:
            kit.log_path().write_bytes(whole[:end])

        with monkeypatch.context() as patched:
            patched.setattr(reader_module, "sync_if_possible", take_back)
            with pytest.raises(CorruptionError, match="no longer there"):
                reader.refresh()
        assert reader.head.position == 0
        assert not reader.refresh()
        kit.log_path().write_bytes(whole)
        assert reader.refresh()

    def test_a_deleted_session_says_so(self, kit: Kit) -> None:
        kit.make("a")
        reader = kit.reader()
        shutil.rmtree(kit.path / "s")
        with pytest.raises(SessionDeletedError):
            reader.refresh()
        assert texts(reader) == ["a"]

    def test_a_session_that_was_made_anew_says_so(self, kit: Kit) -> None:
        kit.make("a")
        reader = kit.reader()
        kit.copy("s", "aside")
        shutil.rmtree(kit.path / "s")
        (kit.path / "aside").rename(kit.path / "s")
        with pytest.raises(SessionDeletedError):
            reader.refresh()

    def test_a_log_that_lost_what_was_read_is_corruption(self, kit: Kit) -> None:
        kit.make("a", "b")
        reader = kit.reader()
        last = kit.frames()[-1]
        for size in (last.offset, last.offset + 31):
            kit.cut(size)
            with pytest.raises(CorruptionError, match="no longer there") as caught:
                reader.refresh()
            assert (caught.value.offset, caught.value.position) == (last.offset, 1)

    def test_new_payloads_near_the_end_are_checked(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        kit.create()
        owner = kit.owner()
        reader = kit.reader()
        owner.append("a")
        owner.append("b")
        kit.flip(kit.frames()[2].payload_offset)
        assert reader.refresh()
        assert texts(reader) == ["a"]
        assert recovery.VERIFY_TAIL_BYTES == 2 * 1024 * 1024
