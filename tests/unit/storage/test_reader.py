"""Reading events: pages, keys, and damage with its place. Following a log is in test_reader_follow.py."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealog.storage import reader as reader_module
from sealog.storage.errors import CorruptionError, UpgradeRequiredError
from sealog.storage.events import Event
from sealog.storage.format import KIND_EVENTS, Head
from sealog.storage.reader import LogReader, SharedFile, open_log_file, read_mark_bytes

if TYPE_CHECKING:
    from sealog.storage.events import Event as EventType

    from .conftest import Kit

SIZES = [1, 3, 1, 1, 20, 2, 1, 40]
TEXTS = [f"event {position}" for position in range(sum(SIZES))]


def texts(reader: LogReader, start: int = 0, stop: int | None = None) -> list[str]:
    stop = reader.head.position if stop is None else stop
    return [event.text for event in reader.view.events(start, stop, reader.head)]


def make_batches(kit: Kit) -> None:
    """Make a session of frames with different numbers of events."""
    kit.create()
    with kit.owner() as owner:
        for end, size in zip(itertools.accumulate(SIZES), SIZES, strict=True):
            owner.append(*TEXTS[end - size : end])
        owner.finish()


class TestPages:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(st.integers(0, 80), st.integers(0, 80))
    def test_every_page_is_a_slice(self, kit: Kit, start: int, stop: int) -> None:
        if not kit.log_path().exists():
            make_batches(kit)
        assert texts(kit.reader(), start, min(stop, len(TEXTS))) == TEXTS[start : min(stop, len(TEXTS))]

    @pytest.mark.parametrize("chunk", [32, 33, 64, 100, 500])
    def test_chunk_borders_are_no_borders(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch, chunk: int
    ) -> None:
        make_batches(kit)
        monkeypatch.setattr(reader_module, "READ_CHUNK_BYTES", chunk)
        assert texts(kit.reader()) == TEXTS
        assert texts(kit.reader(), 5, 27) == TEXTS[5:27]

    def test_frames_larger_than_a_chunk_are_read(self, kit: Kit) -> None:
        large = ["x" * (reader_module.READ_CHUNK_BYTES * 2), "small", "y" * reader_module.READ_CHUNK_BYTES]
        kit.make(*large)
        assert texts(kit.reader()) == large
        assert texts(kit.reader(), 1, 2) == ["small"]

    def test_a_page_does_not_read_what_is_before_it(self, kit: Kit) -> None:
        """The cost of a page is that of its events, and of at most 16 KiB of headers before it."""
        kit.make(*(f"{number} " + "x" * 5000 for number in range(30)))
        reader = kit.reader()
        kit.flip(kit.frames()[2].offset)
        assert texts(reader, 29) == ["29 " + "x" * 5000]
        with pytest.raises(CorruptionError):
            texts(reader, 1)

    def test_a_head_limits_what_is_read(self, kit: Kit) -> None:
        """Readers of a live log see the acknowledged part, whatever is behind it."""
        kit.create()
        owner = kit.owner()
        owner.append("a")
        head = owner.log.head
        owner.append("b")
        assert [event.text for event in owner.log.view.events(0, 9, head)] == ["a"]

    def test_events_are_fresh_copies(self, kit: Kit) -> None:
        kit.create()
        with kit.owner() as owner:
            owner.append(Event("note", "a", {"list": [1]}))
            owner.events()[0].data["list"].append(2)
            assert owner.events()[0].data == {"list": [1]}

    def test_reading_streams(self, kit: Kit) -> None:
        """The first event is there before the last frame is looked at."""
        kit.make("a", "b" * reader_module.READ_CHUNK_BYTES, "c")
        reader = kit.reader()
        kit.flip(kit.frames()[-1].offset)
        events = reader.view.events(0, 3, reader.head)
        assert next(events).text == "a"
        assert len(next(events).text) == reader_module.READ_CHUNK_BYTES
        with pytest.raises(CorruptionError):
            next(events)


class TestKeysFrom:
    def events(self, kit: Kit) -> Any:
        kit.create()
        owner = kit.owner()
        owner.append(Event("a", "", key="k0"), Event("a", ""), Event("a", "", key=""))
        owner.append(Event("a", "", key="k3"))
        return owner.log

    @pytest.mark.parametrize(
        ("start", "found"),
        [(0, [(0, "k0"), (2, ""), (3, "k3")]), (1, [(2, ""), (3, "k3")]), (3, [(3, "k3")]), (4, [])],
    )
    def test_keys_come_with_their_positions(self, kit: Kit, start: int, found: list[tuple[int, str]]) -> None:
        log = self.events(kit)
        assert list(log.view.keys_from(start, log.head)) == found


class TestFrameBefore:
    def test_it_is_the_frame_that_ends_there(self, kit: Kit) -> None:
        make_batches(kit)
        reader = kit.reader()
        for frame in kit.frames():
            head = Head(frame.end, frame.next_position, frame.header_check)
            assert reader.view.frame_before(head) == frame

    @pytest.mark.parametrize("labels", [0, 20_000])
    def test_it_is_found_by_an_older_head_while_the_log_grows(self, kit: Kit, labels: int) -> None:
        """The frame that follows starts at the same position, and may be in the index already."""
        kit.create(label="x" * labels)
        owner = kit.owner()
        heads = [owner.log.head]
        for _ in range(4):
            owner.append("x" * 20_000)
            heads.append(owner.log.head)
        found = [owner.log.view.frame_before(head) for head in heads]
        assert [frame.end for frame in found] == [head.end for head in heads]

    def test_the_seal_is_a_frame_too(self, kit: Kit) -> None:
        kit.make("a" * 20_000, "b" * 20_000, seal=True)
        reader = kit.reader()
        assert reader.view.frame_before(reader.head) == kit.frames()[-1]

    def test_a_head_where_no_frame_ends_is_corruption(self, kit: Kit) -> None:
        kit.make("a", "b")
        reader = kit.reader()
        with pytest.raises(CorruptionError, match="does not follow"):
            reader.view.frame_before(Head(reader.head.end - 1, 2, 0))


class TestDamage:
    """What was intact when the log was opened, and is not when it is read: never a shorter list."""

    @pytest.fixture
    def reader(self, kit: Kit) -> LogReader:
        kit.make("a", "b", "c")
        return kit.reader()

    def fails(self, reader: LogReader, match: str) -> CorruptionError:
        found: list[EventType] = []
        with pytest.raises(CorruptionError, match=match) as caught:
            found.extend(reader.view.events(0, 3, reader.head))
        assert [event.text for event in found] == ["a", "b", "c"][: caught.value.position]
        return caught.value

    def test_every_byte_of_a_frame(self, kit: Kit, reader: LogReader) -> None:
        frame = kit.frames()[2]
        for offset in range(frame.offset, frame.end):
            kit.flip(offset)
            error = self.fails(reader, "damaged")
            assert (error.offset, error.position) == (frame.offset, 1)
            kit.flip(offset)
        assert texts(reader) == ["a", "b", "c"]

    def test_a_log_that_was_cut(self, kit: Kit, reader: LogReader) -> None:
        last = kit.frames()[-1]
        for size in (last.end - 1, last.payload_offset, last.offset + 3, last.offset):
            kit.cut(size)
            error = self.fails(reader, r"damaged( or gone)?")
            assert (error.offset, error.position) == (last.offset, 2)

    def test_an_intact_frame_of_another_history(self, kit: Kit, reader: LogReader) -> None:
        frame = kit.frames()[2]
        kit.edit(
            lambda data: data.__setitem__(
                slice(frame.offset, frame.end), kit.stray_frame(frame.offset, 1, previous=7)
            )
        )
        assert self.fails(reader, "does not follow").offset == frame.offset

    @pytest.mark.parametrize(
        ("payload", "count", "reason"),
        [
            (b"\x91\xc1", 1, "cannot be decoded"),
            (b"\x91\x94\x03\xa1\xff\xc0\x00", 1, "cannot be decoded"),
            (b"\x91\x94\x03\xa1x\xc0\x00", 2, "holds 1 events where its header says 2"),
        ],
    )
    def test_events_that_do_not_fit_their_frame(
        self, kit: Kit, payload: bytes, count: int, reason: str
    ) -> None:
        """A writer's fault, since the digest is good; still never a wrong list of events."""
        kit.create()
        owner = kit.owner()
        end = owner.log.head.end
        owner.log._write(KIND_EVENTS, payload, count)
        with pytest.raises(CorruptionError, match=reason) as caught:
            owner.events()
        assert caught.value.offset == end

    def test_a_kind_of_the_future_in_the_middle(self, kit: Kit, reader: LogReader) -> None:
        frame = kit.frames()[2]
        stray = kit.stray_frame(frame.offset, 1, kind=7)
        kit.edit(lambda data: data.__setitem__(slice(frame.offset, frame.offset + len(stray)), stray))
        with pytest.raises(UpgradeRequiredError, match="kind 7"):
            texts(reader)


class TestFiles:
    def test_a_shared_file_closes_with_its_last_user(self, kit: Kit) -> None:
        kit.make("a")
        shared = SharedFile(kit.log_file())
        assert shared.acquire()
        shared.release()
        assert shared.file.pread(4, 0) == b"\x89SLG"
        shared.release()
        assert not shared.acquire()
        with pytest.raises(OSError, match="Bad file descriptor"):
            shared.file.pread(4, 0)

    def test_the_mark_of_a_session_without_a_lock_file_is_nothing(self, kit: Kit) -> None:
        kit.make("a")
        directory = kit.session()
        assert len(read_mark_bytes(directory)) == 32
        kit.forget_mark()
        assert read_mark_bytes(directory) == b""
        os.mkfifo(kit.path / "s" / "lock")
        assert read_mark_bytes(directory) == b""

    def test_a_log_that_may_not_be_read_is_an_os_error(self, kit: Kit) -> None:
        kit.make("a")
        kit.faults.fail("open log", 13)
        with pytest.raises(PermissionError):
            open_log_file(kit.session())

    def test_a_reader_that_cannot_open_leaves_no_file_open(self, kit: Kit) -> None:
        kit.make("a")
        kit.cut(20)
        with pytest.raises(CorruptionError):
            kit.reader()
        if os.path.isdir("/proc/self/fd"):
            links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
            assert str(kit.log_path()) not in links
