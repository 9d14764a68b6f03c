"""The frame index: where to start reading for a position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.storage.index import ENTRY_SPACING_BYTES, FrameIndex

FRAMES = st.lists(
    st.tuples(st.integers(32, 3 * ENTRY_SPACING_BYTES), st.integers(0, 5)), min_size=1, max_size=60
)


def index_of(sizes: list[tuple[int, int]]) -> tuple[FrameIndex, list[tuple[int, int]]]:
    """Return an index of frames of these sizes and event counts, and where they all stand."""
    index, frames = FrameIndex(), []
    offset, position = 32, 0
    for size, count in sizes:
        index.add(offset, position)
        frames.append((offset, position))
        offset, position = offset + size, position + count
    return index, frames


def test_the_first_frame_is_always_noted() -> None:
    index, _ = index_of([(100, 0)])
    assert len(index) == 1
    assert index.find(0) == index.find(1000) == (32, 0)


def test_frames_close_to_a_noted_one_are_not_noted() -> None:
    index, frames = index_of([(1024, 1)] * 40)
    assert len(index) == 3
    assert index.find(15) == frames[0]
    assert index.find(16) == frames[16]
    assert index.find(39) == frames[32]


def test_memory_is_bounded_by_the_spacing() -> None:
    """12 bytes for each 16 KiB of log, whatever the number of events."""
    index, _ = index_of([(100, 1)] * 10_000)
    assert len(index) <= 10_000 * 100 // ENTRY_SPACING_BYTES + 1


@given(FRAMES, st.integers(0, 400))
def test_it_finds_a_frame_at_or_before_the_position_and_not_far(
    sizes: list[tuple[int, int]], position: int
) -> None:
    index, frames = index_of(sizes)
    offset, first = index.find(position)
    assert (offset, first) in frames
    assert first <= position
    wanted = max(frame for frame in frames if frame[1] <= position)
    between = [frame for frame in frames if offset < frame[0] <= wanted[0]]
    assert all(frame[0] - offset < ENTRY_SPACING_BYTES for frame in between)


def test_of_frames_at_one_position_the_last_noted_one_is_found() -> None:
    """A session header of many labels is followed by the first events, both at position 0."""
    index = FrameIndex()
    index.add(32, 0)
    index.add(32 + ENTRY_SPACING_BYTES, 0)
    assert index.find(0) == (32 + ENTRY_SPACING_BYTES, 0)


def test_the_last_frame_can_be_forgotten() -> None:
    index, frames = index_of([(ENTRY_SPACING_BYTES, 1)] * 3)
    index.remove_last(frames[2][0])
    assert len(index) == 2
    assert index.find(2) == frames[1]


def test_forgetting_a_frame_that_was_not_noted_changes_nothing() -> None:
    index, frames = index_of([(100, 1)] * 3)
    index.remove_last(frames[2][0])
    assert index.find(2) == frames[0]


@given(FRAMES)
def test_it_comes_back_from_bytes(sizes: list[tuple[int, int]]) -> None:
    index, _ = index_of(sizes)
    again = FrameIndex.from_bytes(*index.to_bytes())
    assert again.to_bytes() == index.to_bytes()
    assert [again.find(position) for position in range(300)] == [
        index.find(position) for position in range(300)
    ]


def test_its_bytes_are_little_endian() -> None:
    index = FrameIndex()
    index.add(0x0102030405, 0x0A0B)
    assert index.to_bytes() == (b"\x05\x04\x03\x02\x01\0\0\0", b"\x0b\x0a\0\0")


@pytest.mark.parametrize(
    ("offsets", "positions"),
    [(bytes(8), b""), (bytes(8), bytes(8)), (bytes(7), bytes(4)), (bytes(8), bytes(3))],
)
def test_bytes_that_do_not_fit_together_are_refused(offsets: bytes, positions: bytes) -> None:
    with pytest.raises(ValueError, match=r"differ in number|not a multiple of item size"):
        FrameIndex.from_bytes(offsets, positions)


def test_big_endian_machines_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = index_of([(ENTRY_SPACING_BYTES, 1)] * 3)
    little = index.to_bytes()
    monkeypatch.setattr("sys.byteorder", "big")
    swapped = index.to_bytes()
    assert swapped[0] == b"".join(little[0][at : at + 8][::-1] for at in range(0, 24, 8))
    assert FrameIndex.from_bytes(*swapped).find(1) == index.find(1)
