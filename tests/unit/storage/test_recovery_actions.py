"""What recovery does after it has judged: quarantine, truncation, restoring; and judging a log that grows."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage import recovery
from sealog.storage.errors import CorruptionError, StorageFullError
from sealog.storage.events import encode_event, encode_payload
from sealog.storage.format import Head
from sealog.storage.log import Remembered
from sealog.storage.recovery import restore

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Kit


def tear(kit: Kit) -> bytes:
    """Make a session whose last frame lacks its last byte; return the tail."""
    kit.make("a", "b")
    kit.forget_mark()
    last = kit.frames()[-1]
    kit.cut(last.end - 1)
    return kit.log_path().read_bytes()[last.offset :]


def quarantined(kit: Kit) -> list[Path]:
    folder = kit.path / "s" / "quarantine"
    return sorted(folder.iterdir()) if folder.exists() else []


class TestRecover:
    def test_the_tail_is_kept_in_quarantine(self, kit: Kit) -> None:
        tail = tear(kit)
        with kit.owner() as owner:
            report = owner.log.recovered
        assert [path.read_bytes() for path in quarantined(kit)] == [tail]
        assert report.quarantined == str(quarantined(kit)[0])
        assert quarantined(kit)[0].name.startswith(f"{kit.frames()[-1].end}-{len(tail)}-")
        assert quarantined(kit)[0].stat().st_mode & 0o777 == 0o600

    def test_a_large_tail_is_kept_whole(self, kit: Kit) -> None:
        kit.make("a")
        tail = b"?" * (2 * 1024 * 1024 + 17)
        kit.add(tail)
        kit.owner().crash()
        assert [path.read_bytes() for path in quarantined(kit)] == [tail]

    def test_the_copy_is_safe_before_the_tail_is_cut(self, kit: Kit) -> None:
        tear(kit)
        kit.faults.clear()
        with kit.owner() as owner:
            name = str(owner.log.recovered.quarantined).rpartition("/")[2]
        calls = kit.faults.calls
        order = [
            f"pwrite {name}",
            f"sync_data {name}",
            "sync quarantine",
            "truncate log",
            "sync_data log",
            "sync s",
            "sync store",
            "pwrite lock",
        ]
        places = [len(calls) - calls[::-1].index(call) for call in order]
        assert places == sorted(places)
        assert calls[-1] == order[-1]
        assert calls[calls.index("truncate log") + 1] == "sync_data log"

    def test_it_is_idempotent(self, kit: Kit) -> None:
        tear(kit)
        kit.owner().crash()
        kit.clean(["a"])
        assert len(quarantined(kit)) == 1

    @pytest.mark.parametrize("call", ["sync quarantine", "truncate log", "sync_data log"])
    def test_an_interrupted_recovery_starts_again(self, kit: Kit, call: str) -> None:
        tail = tear(kit)
        kit.faults.fail(call)
        with pytest.raises(OSError, match="made to fail"):
            kit.owner()
        kit.faults.clear()
        with kit.owner() as owner:
            assert owner.texts() == ["a"]
        assert [path.read_bytes() for path in quarantined(kit)] == [tail]

    def test_without_space_for_the_copy_nothing_is_cut(self, kit: Kit) -> None:
        tear(kit)
        before = kit.log_path().read_bytes()
        kit.faults.fail("sync quarantine", errno.ENOSPC)
        with pytest.raises(StorageFullError):
            kit.owner()
        assert kit.log_path().read_bytes() == before

    def test_appends_go_on_at_the_next_position(self, kit: Kit) -> None:
        """The new event follows the last whole one, and both are read back."""
        tear(kit)
        with kit.owner() as owner:
            assert owner.append("c") == 1
            owner.finish()
        kit.clean(["a", "c"])

    def test_each_tail_gets_its_own_file(self, kit: Kit) -> None:
        first = tear(kit)
        with kit.owner() as owner:
            owner.append("c")
            owner.log.roll_back()
        kit.forget_mark()
        second = b"another tail"
        kit.add(second)
        kit.owner().crash()
        assert {path.read_bytes() for path in quarantined(kit)} == {first, second}

    def test_a_clean_log_gets_no_quarantine(self, kit: Kit) -> None:
        kit.make("a")
        kit.clean(["a"])
        assert quarantined(kit) == []

    def test_reading_cuts_nothing(self, kit: Kit) -> None:
        """INV-7"""
        tear(kit)
        before = kit.snapshot()
        assert kit.reader().reason == "incomplete"
        assert kit.snapshot() == before


class TestWriteAgain:
    """The page cache calls a frame clean whose sync failed, and no later sync brings it to the disk."""

    def test_a_last_frame_that_may_not_be_synced_is_written_again_before_the_sync(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.forget_mark()
        before = kit.log_path().read_bytes()
        kit.faults.clear()
        with kit.owner() as owner:
            assert owner.texts() == ["a", "b"]
        calls = [call for call in kit.faults.calls if call.endswith(" log")]
        assert calls == ["open log", "pwrite log", "sync_data log"]
        assert kit.log_path().read_bytes() == before

    def test_one_that_the_mark_covers_is_not(self, kit: Kit) -> None:
        kit.make("a", "b")
        kit.faults.clear()
        kit.owner().crash()
        assert "pwrite log" not in kit.faults.calls

    def test_nor_is_a_session_header(self, kit: Kit) -> None:
        """It was synced before the session got its name."""
        kit.create()
        kit.forget_mark()
        kit.faults.clear()
        kit.owner().crash()
        assert "pwrite log" not in kit.faults.calls


class TestWhatIsChecked:
    """Opening checks payloads near the end only; a full check reads everything."""

    def test_the_payload_of_the_last_frame_is_always_checked(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recovery, "VERIFY_TAIL_BYTES", 0)
        kit.make("a", "b", "c")
        kit.forget_mark()
        kit.flip(kit.frames()[-1].payload_offset)
        with kit.owner() as owner:
            assert owner.texts() == ["a", "b"]
            assert owner.append("d") == 2
            assert owner.seal().events == 3
            owner.finish()
        kit.clean(["a", "b", "d"])

    def test_earlier_payloads_are_checked_by_a_full_open(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recovery, "VERIFY_TAIL_BYTES", 0)
        kit.make("a", "b", "c")
        damaged = kit.frames()[2]
        kit.flip(damaged.payload_offset)
        with kit.owner() as owner, pytest.raises(CorruptionError) as caught:
            owner.events()
        assert caught.value.offset == damaged.offset
        for opened in (kit.owner, kit.reader):
            with pytest.raises(CorruptionError) as caught:
                opened(full=True)
            assert (caught.value.offset, caught.value.position) == (damaged.offset, 1)

    def test_damage_within_reach_of_the_end_is_found_at_open(self, kit: Kit) -> None:
        kit.make("a", "b", "c")
        kit.flip(kit.frames()[2].payload_offset)
        assert "acknowledged" in kit.refused().reason


class TestGrowingLog:
    """A log that its owner appends to while another process opens it for reading."""

    @pytest.fixture
    def meanwhile(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Call a function once, between the walk over the frames and the look at what is behind them."""
        plain = recovery.last_nonzero

        def install(action: Any) -> None:
            pending = [action]

            def last_nonzero(file: Any, offset: int, size: int) -> int:
                while pending:
                    pending.pop()()
                return plain(file, offset, size)

            monkeypatch.setattr(recovery, "last_nonzero", last_nonzero)

        return install

    @pytest.mark.parametrize("frames", [1, 2, 200])
    def test_frames_that_appear_while_reading_are_no_damage(
        self, kit: Kit, meanwhile: Any, frames: int
    ) -> None:
        kit.create()
        owner = kit.owner()
        owner.append("a")
        meanwhile(lambda: [owner.append("x" * 100) for _ in range(frames)])
        reader = kit.reader()
        assert (reader.reason, reader.tail_bytes) == ("clean", 0)
        assert reader.head == owner.log.head

    def test_a_seal_that_appears_while_reading_is_seen(self, kit: Kit, meanwhile: Any) -> None:
        kit.create()
        owner = kit.owner()
        owner.append("a")
        meanwhile(lambda: (owner.append("b"), owner.seal()))
        assert kit.reader().receipt == owner.log.receipt

    def test_a_frame_in_flight_is_a_tail(self, kit: Kit, meanwhile: Any) -> None:
        kit.create()
        owner = kit.owner()
        owner.append("a")
        end = owner.log.head.end

        def half() -> None:
            owner.append("b" * 2000)
            kit.edit(lambda data: data.__setitem__(slice(end + 700, None), bytes(len(data) - end - 700)))

        meanwhile(half)
        reader = kit.reader()
        assert reader.reason == "incomplete"
        assert reader.head.position == 1

    def test_damage_stays_damage(self, kit: Kit, meanwhile: Any) -> None:
        kit.make("a", "b", "c")
        kit.forget_mark()
        kit.flip(kit.frames()[2].payload_offset)
        meanwhile(lambda: None)
        with pytest.raises(CorruptionError, match="a later one stands"):
            kit.reader()


class TestRestore:
    """W4: after a failed sync, back to the acknowledged end under the unbroken lock."""

    def opened(self, kit: Kit) -> tuple[Any, Head]:
        kit.make("a" * 5000, "b")
        head = kit.reader().head
        return kit.log_file(write=True), head

    def test_what_is_behind_the_acknowledged_end_is_cut(self, kit: Kit) -> None:
        file, head = self.opened(kit)
        intact = kit.log_path().read_bytes()
        kit.add(b"half a frame" * 1000)
        restore(file, head)
        assert kit.log_path().read_bytes() == intact

    def test_truncation_is_synced_first_and_the_last_page_written_again(self, kit: Kit) -> None:
        file, head = self.opened(kit)
        kit.add(b"?")
        kit.faults.clear()
        restore(file, head)
        assert kit.faults.calls == ["truncate log", "sync_data log", "pwrite log", "sync_data log"]

    def test_an_end_at_the_border_of_a_page_has_no_page_to_write(self, kit: Kit) -> None:
        file, _ = self.opened(kit)
        kit.faults.clear()
        restore(file, Head(4096, 1, 0))
        assert kit.faults.calls == ["truncate log", "sync_data log", "sync_data log"]

    def test_a_remembered_owner_drops_what_it_had_not_acknowledged(self, kit: Kit) -> None:
        kit.create()
        owner = kit.owner()
        owner.append("a")
        known = Remembered(owner.log.salt, owner.log.identity, owner.log.head)
        kit.faults.fail("sync_data log")
        with pytest.raises(OSError, match="made to fail"):
            owner.append("b")
        owner.crash()
        kit.faults.clear()
        with kit.owner(remembered=known) as again:
            assert again.texts() == ["a"]
            assert again.log.recovered.status == "clean"

    def test_a_remembered_head_that_is_gone_is_corruption(self, kit: Kit) -> None:
        kit.create()
        owner = kit.owner()
        owner.append("a")
        short = kit.log_path().read_bytes()[: owner.log.head.end]
        owner.append("b")
        known = Remembered(owner.log.salt, owner.log.identity, owner.log.head)
        owner.crash()
        kit.forget_mark()
        kit.log_path().write_bytes(short)
        with pytest.raises(CorruptionError, match="had been on disk"):
            kit.owner(remembered=known)

    def test_another_file_is_not_cut_to_the_remembered_head(self, kit: Kit) -> None:
        """A copy from a backup that holds more stays as it is."""
        kit.make("a", "b", "c")
        middle = kit.frames()[2]
        known = Remembered(kit.keys().salt, (0, 0), Head(middle.end, 2, middle.header_check))
        with kit.owner(remembered=known) as owner:
            assert owner.texts() == ["a", "b", "c"]


def test_an_index_checkpoint_of_nonsense_is_dropped(kit: Kit) -> None:
    payload = encode_payload([encode_event("note", "x" * 100, None, 1, None)])
    kit.create()
    with kit.owner() as owner:
        owner.log.commit(payload, 1)
        assert owner.log.write_derived(owner.directory, "index", b"no index")
        owner.finish()
    kit.clean(["x" * 100])
