"""Walking frames and searching behind damage, across the borders of what is read at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealog.storage import scan
from sealog.storage.errors import UpgradeRequiredError
from sealog.storage.format import FILE_HEADER_SIZE, FRAME_HEADER_SIZE, KIND_EVENTS, Head, encode_frame
from sealog.storage.index import FrameIndex
from sealog.storage.scan import Chain, find_frame_behind, last_nonzero, read_payload, walk_chain

if TYPE_CHECKING:
    from .conftest import Kit


def walk(kit: Kit, *, verify_from: int = 0) -> Chain:
    size = kit.log_path().stat().st_size
    return walk_chain(kit.log_file(), kit.keys(), kit.first_head(), size, FrameIndex(), verify_from)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK_SIZE", 64)
    monkeypatch.setattr(scan, "SEARCH_CHUNK_SIZE", 40)


@pytest.mark.parametrize("chunk", [33, 64, 100, 1000, 64 * 1024])
def test_a_walk_finds_every_frame_whatever_is_read_at_once(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    texts = ["x" * size for size in (0, 1, 30, 63, 64, 65, 200)]
    kit.make(*texts)
    monkeypatch.setattr(scan, "CHUNK_SIZE", chunk)
    frames = kit.frames()
    chain = walk(kit)
    assert (chain.frames, chain.why, chain.last) == (len(texts) + 1, "end", frames[-1])
    assert chain.head == Head(frames[-1].end, len(texts), frames[-1].header_check)


def test_a_walk_stops_at_a_header_that_is_none(kit: Kit) -> None:
    kit.make("a", "b")
    frames = kit.frames()
    kit.flip(frames[2].offset)
    chain = walk(kit)
    assert (chain.why, chain.last, chain.stopped_at, chain.head.end) == (
        "no-header",
        frames[1],
        None,
        frames[1].end,
    )


def test_a_walk_stops_at_a_damaged_payload(kit: Kit) -> None:
    kit.make("a", "b")
    frames = kit.frames()
    kit.flip(frames[2].payload_offset)
    chain = walk(kit)
    assert (chain.why, chain.last, chain.stopped_at) == ("digest", frames[1], frames[2])


def test_a_walk_stops_at_a_frame_longer_than_the_file(kit: Kit) -> None:
    kit.make("a", "b")
    frames = kit.frames()
    kit.cut(frames[2].end - 1)
    chain = walk(kit)
    assert (chain.why, chain.last, chain.stopped_at) == ("past-end", frames[1], frames[2])


@pytest.mark.parametrize(("position", "wrong_link"), [(2, 0), (0, 0), (1, 1)])
def test_a_walk_stops_at_an_intact_frame_that_does_not_follow(
    kit: Kit, position: int, wrong_link: int
) -> None:
    kit.make("a")
    last = kit.frames()[-1]
    kit.add(kit.stray_frame(last.end, position, previous=last.header_check ^ wrong_link))
    chain = walk(kit)
    assert (chain.why, chain.last) == ("order", last)


def test_a_second_session_header_does_not_follow(kit: Kit) -> None:
    kit.make("a")
    last = kit.frames()[-1]
    kit.add(kit.stray_frame(last.end, 1, kind=1, previous=last.header_check))
    assert walk(kit).why == "order"


def test_a_walk_does_not_go_on_behind_a_seal(kit: Kit) -> None:
    kit.make("a", seal=True)
    seal = kit.frames()[-1]
    kit.add(kit.stray_frame(seal.end, 1, previous=seal.header_check))
    chain = walk(kit)
    assert (chain.why, chain.last) == ("end", seal)


@pytest.mark.parametrize(("kind", "flags"), [(9, 0), (0, 0)])
def test_a_walk_refuses_what_it_does_not_know(kit: Kit, kind: int, flags: int) -> None:
    kit.make("a")
    last = kit.frames()[-1]
    kit.add(kit.stray_frame(last.end, 1, kind=kind, previous=last.header_check))
    with pytest.raises(UpgradeRequiredError, match=f"byte {last.end}: frame of kind {kind}"):
        walk(kit)


def test_without_checks_only_the_last_payload_is_read(kit: Kit) -> None:
    kit.make("a", "b", "c")
    frames = kit.frames()
    kit.flip(frames[1].payload_offset)
    assert walk(kit, verify_from=10**9).last == frames[-1]
    kit.flip(frames[3].payload_offset)
    chain = walk(kit, verify_from=10**9)
    assert (chain.why, chain.last, chain.stopped_at, chain.frames) == ("digest", frames[2], frames[3], 3)
    assert chain.head == Head(frames[2].end, 2, frames[2].header_check)


def test_a_frame_that_was_taken_back_leaves_the_index(kit: Kit) -> None:
    kit.make("a" * 20_000, "b" * 20_000)
    frames, index = kit.frames(), FrameIndex()
    kit.flip(frames[2].payload_offset)
    size = kit.log_path().stat().st_size
    walk_chain(kit.log_file(), kit.keys(), kit.first_head(), size, index, 10**9)
    assert index.find(1) == (frames[0].offset, 0)


@pytest.mark.usefixtures("small_chunks")
def test_a_search_finds_a_header_at_every_offset(kit: Kit) -> None:
    kit.make("a")
    whole, frame, file = kit.log_path().read_bytes(), kit.frames()[1], kit.log_file()
    for start in range(frame.offset + 1):
        found = find_frame_behind(file, kit.keys(), start, len(whole), 0)
        assert found == (kit.frames()[0] if start <= FILE_HEADER_SIZE else frame)
    assert find_frame_behind(kit.log_file(), kit.keys(), frame.offset + 1, len(whole), 0) is None


@pytest.mark.usefixtures("small_chunks")
def test_a_search_passes_over_sync_words_that_start_nothing(kit: Kit) -> None:
    kit.make("a")
    end, sync = kit.frames()[-1].end, kit.keys().sync
    kit.add(sync * 50)
    offset = end + len(sync) * 50
    kit.add(kit.stray_frame(offset, 1))
    size = kit.log_path().stat().st_size
    found = find_frame_behind(kit.log_file(), kit.keys(), end, size, 1)
    assert found is not None
    assert found.offset == offset


def test_a_search_stops_at_the_given_size(kit: Kit) -> None:
    kit.make("a")
    frame = kit.frames()[-1]
    assert find_frame_behind(kit.log_file(), kit.keys(), 64, frame.offset + FRAME_HEADER_SIZE - 1, 0) is None
    assert find_frame_behind(kit.log_file(), kit.keys(), 64, frame.offset + FRAME_HEADER_SIZE, 0) == frame


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.integers(0, 100), st.integers(0, 200))
def test_the_last_byte_that_is_not_zero(kit: Kit, data: bytes, zeros: int, start: int) -> None:
    if not kit.path.joinpath("s").exists():
        kit.create()
    kit.log_path().write_bytes(data + bytes(zeros))
    scan_size = len(data) + zeros
    expected = start + len((data + bytes(zeros))[start:].rstrip(b"\0"))
    assert last_nonzero(kit.log_file(), start, scan_size) == expected


@pytest.mark.usefixtures("small_chunks")
def test_zeros_between_chunks_do_not_end_the_look(kit: Kit) -> None:
    kit.create()
    kit.log_path().write_bytes(b"a" + bytes(200) + b"b" + bytes(200))
    assert last_nonzero(kit.log_file(), 0, 402) == 202
    assert last_nonzero(kit.log_file(), 202, 402) == 202


def test_a_payload_that_is_cut_is_not_valid(kit: Kit) -> None:
    kit.make("a")
    frame = kit.frames()[-1]
    assert read_payload(kit.log_file(), kit.keys(), frame) is not None
    kit.cut(frame.end - 1)
    assert read_payload(kit.log_file(), kit.keys(), frame) is None


def test_a_log_that_shrinks_while_it_is_read_has_no_frames_there(kit: Kit) -> None:
    """An owner cuts off a tail while another process looks."""
    kit.make("a", "b")
    last, size = kit.frames()[-1], kit.log_path().stat().st_size
    kit.cut(last.offset + 5)
    chain = walk_chain(kit.log_file(), kit.keys(), kit.first_head(), size, FrameIndex(), 0)
    assert (chain.why, chain.head.end) == ("end", last.offset)
    assert find_frame_behind(kit.log_file(), kit.keys(), last.offset, size, 0) is None
    assert last_nonzero(kit.log_file(), last.offset, size) == last.offset + 5


def test_frames_are_chained_as_they_are_written(kit: Kit) -> None:
    kit.make("a", "b")
    head = kit.first_head()
    for frame in kit.frames():
        assert (frame.offset, frame.first_position, frame.previous) == (
            head.end,
            head.position,
            head.header_check,
        )
        head = Head(frame.end, frame.next_position, frame.header_check)
    assert encode_frame(kit.keys(), head, KIND_EVENTS, 0, b"")[1].previous == head.header_check
