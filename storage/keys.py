"""Which idempotency keys a session holds: 8 bytes for each, verified in the log on a hit.

An entry is the high half of the key's xxh3_64 and the position, in sorted chunks, so that a million keys
cost 9 MB and an insertion moves a few kilobytes.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Final

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_ENTRIES_MAX: Final = 2048
_HIGH_HALF: Final = 0xFFFF_FFFF_0000_0000


def _prefix(key: str) -> int:
    return xxh3_64_intdigest(key.encode()) & _HIGH_HALF


class KeyIndex:
    """Candidate positions by key. `covered` is the position up to which the log's keys are in it."""

    __slots__ = ("_chunks", "_firsts", "covered")

    def __init__(self) -> None:
        self._chunks: list[array[int]] = [array("Q")]
        self._firsts: list[int] = [0]
        self.covered = 0

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def add(self, key: str, position: int) -> None:
        """Note the key of the event at `position`."""
        entry = _prefix(key) | position
        at = bisect_right(self._firsts, entry) - 1
        chunk = self._chunks[at]
        insort(chunk, entry)
        if len(chunk) > CHUNK_ENTRIES_MAX:
            half = len(chunk) // 2
            self._chunks[at : at + 1] = [chunk[:half], chunk[half:]]
            self._firsts.insert(at + 1, chunk[half])

    def find(self, key: str) -> Iterator[int]:
        """Yield the positions of events that may have this key, lowest first."""
        prefix = _prefix(key)
        at = max(bisect_right(self._firsts, prefix) - 1, 0)
        while at < len(self._chunks):
            chunk = self._chunks[at]
            for entry in chunk[bisect_left(chunk, prefix) :]:
                if entry & _HIGH_HALF != prefix:
                    return
                yield entry & ~_HIGH_HALF
            at += 1

    def to_bytes(self) -> bytes:
        """Return all entries, little-endian."""
        entries = array("Q")
        for chunk in self._chunks:
            entries.extend(chunk)
        if sys.byteorder == "big":
            entries.byteswap()
        return entries.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, covered: int) -> KeyIndex:
        """Rebuild an index.

        Raises:
            ValueError: the bytes are no entries.
        """
        entries = array("Q")
        entries.frombytes(data)
        if sys.byteorder == "big":
            entries.byteswap()
        index = cls()
        index.covered = covered
        step = CHUNK_ENTRIES_MAX // 2
        if entries:
            index._chunks = [entries[at : at + step] for at in range(0, len(entries), step)]
            index._firsts = [0, *(chunk[0] for chunk in index._chunks[1:])]
        return index
