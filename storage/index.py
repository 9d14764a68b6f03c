"""Where events stand in a log: one entry for every 16 KiB of frames, so that memory stays small."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from typing import Final

ENTRY_SPACING_BYTES: Final = 16 * 1024


class FrameIndex:
    """Offsets and first positions of some frames, in order.

    One thread adds, others look up at the same time: an offset is there before its position, and lookups
    search the positions.
    """

    __slots__ = ("_offsets", "_positions")

    def __init__(self, offsets: array[int] | None = None, positions: array[int] | None = None) -> None:
        self._offsets: array[int] = array("Q") if offsets is None else offsets
        self._positions: array[int] = array("I") if positions is None else positions

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, offset: int, position: int) -> None:
        """Note a frame, if the last noted one is far enough before it."""
        offsets = self._offsets
        if not offsets or offset - offsets[-1] >= ENTRY_SPACING_BYTES:
            offsets.append(offset)
            self._positions.append(position)

    def remove_last(self, offset: int) -> None:
        """Forget the last frame, if it was noted."""
        if self._offsets and self._offsets[-1] == offset:
            self._positions.pop()
            self._offsets.pop()

    def find(self, position: int) -> tuple[int, int]:
        """Return offset and first position of the last noted frame that starts at or before `position`.

        The frame may have no events, as the session header has none.
        """
        at = bisect_right(self._positions, position) - 1
        return self._offsets[at], self._positions[at]

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Return offsets and positions, little-endian."""
        return _little_endian(self._offsets).tobytes(), _little_endian(self._positions).tobytes()

    @classmethod
    def from_bytes(cls, offsets: bytes, positions: bytes) -> FrameIndex:
        """Rebuild an index.

        Raises:
            ValueError: the two do not belong together.
        """
        loaded_offsets, loaded_positions = array("Q"), array("I")
        loaded_offsets.frombytes(offsets)
        loaded_positions.frombytes(positions)
        if len(loaded_offsets) != len(loaded_positions):
            msg = "offsets and positions differ in number"
            raise ValueError(msg)
        return cls(_little_endian(loaded_offsets), _little_endian(loaded_positions))


def _little_endian(values: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return values
    swapped = values[:]
    swapped.byteswap()
    return swapped
