"""Telling a torn tail from damage: is there a valid frame behind the place where reading stopped?

A writer that died leaves one incomplete frame at the end and nothing behind it. If a frame with the right
checksum follows, the incomplete one is no torn tail, and cutting there would lose acknowledged events.
"""

from __future__ import annotations

import hashlib
import re
from typing import IO, Final

from ._ksession_format import FRAME_HEADER

_WINDOW_BYTES: Final = 1024 * 1024
_CANDIDATE_COST: Final = 4096
"""What a look at a candidate costs beside its length, in bytes hashed."""
_BUDGET_MIN: Final = 64 * 1024 * 1024
_BUDGET_FACTOR: Final = 16
_EMPTY_DIGEST: Final = hashlib.sha256(b"").digest()


def find_frame(file: IO[bytes], start: int, size: int) -> int | None:
    """Return the offset of the first complete frame of any kind with the right checksum, None if none.

    What a dead writer leaves is searched at the speed of reading it. Bytes made to look like many frames
    cost more, up to a budget; once it is used up the next candidate counts as a frame unchecked, since
    nothing proves such a tail torn.

    Args:
        file: the log.
        start: the first offset where a frame may begin.
        size: where the log ends.
    """
    if size - start < FRAME_HEADER.size:
        return None
    candidates = _candidate_pattern(size - start - FRAME_HEADER.size)
    budget = _BUDGET_MIN + _BUDGET_FACTOR * (size - start)
    for base in range(start, size - FRAME_HEADER.size + 1, _WINDOW_BYTES):
        file.seek(base)
        window = file.read(min(_WINDOW_BYTES + FRAME_HEADER.size - 1, size - base))
        # Every length that fits has a zero byte, which JSON has not, and no frame is all zeros: most tails
        # are one or the other.
        if b"\0" not in window or not window.strip(b"\0"):
            continue
        for found in candidates.finditer(window):
            at = found.start()
            if at > len(window) - FRAME_HEADER.size:
                break
            _, length, digest = FRAME_HEADER.unpack_from(window, at)
            if base + at + FRAME_HEADER.size + length > size:
                continue
            budget -= _CANDIDATE_COST + length
            if budget < 0 or _digest(file, base + at + FRAME_HEADER.size, length) == digest:
                return base + at
    return None


def _candidate_pattern(length_max: int) -> re.Pattern[bytes]:
    """Match, without width, where a frame may begin: the length fits; if it is 0, the checksum is right."""
    low = max(1, (length_max.bit_length() + 7) // 8)
    some = b"(?!\\0{%d}).{%d}\\0{%d}" % (low, low, 8 - low)
    none = rb"\0{8}" + re.escape(_EMPTY_DIGEST)
    return re.compile(b"(?=.(?:" + none + b"|" + some + b"))", re.DOTALL)


def _digest(file: IO[bytes], start: int, size: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(start)
    while size and (data := file.read(min(size, _WINDOW_BYTES))):
        digest.update(data)
        size -= len(data)
    return digest.digest()
