"""Walking the frames of a log: the chain from a known head on, and the search for frames behind damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from xxhash import xxh3_64_intdigest

from .errors import UpgradeRequiredError
from .format import (
    FILE_HEADER_SIZE,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    PAYLOAD_SIZE_MAX,
    FormatKeys,
    Frame,
    Head,
    parse_frame,
    payload_digest,
)

if TYPE_CHECKING:
    from .index import FrameIndex
    from .vfs import File

CHUNK_SIZE: Final = 64 * 1024
SEARCH_CHUNK_SIZE: Final = 1024 * 1024

StopReason = Literal["end", "no-header", "order", "past-end", "digest"]


class Chain(msgspec.Struct):
    """The valid frames that follow a head, and why the walk stopped.

    `stopped_at` is the intact frame header that could not be taken (out of order, longer than the file, or
    with a damaged payload), None if there was none.
    """

    head: Head
    last: Frame | None
    frames: int
    why: StopReason
    stopped_at: Frame | None


def walk_chain(  # noqa: C901, PLR0912, PLR0915 — one loop over every frame of a log: calls would double its cost
    file: File,
    keys: FormatKeys,
    start: Head,
    size: int,
    index: FrameIndex,
    verify_from: int,
) -> Chain:
    """Follow the frames from `start` as long as they are valid.

    Headers are all checked, and payloads of frames that end behind `verify_from`. The payload of the last
    frame is always checked: only that one may be a torn write.

    Args:
        file: the log.
        keys: of its file header.
        start: where to begin.
        size: how far the file goes.
        index: gets the frames that are found.
        verify_from: offset from which payloads are checked; 0 checks all of them.

    Raises:
        UpgradeRequiredError: an intact frame of a kind or with a flag this version does not know.
    """
    unpack, sync, seed = FRAME_HEADER.unpack_from, keys.sync, keys.seed
    offset, position, link = start.end, start.position, start.header_check
    before = (offset, position, link)
    last: tuple[int, int, int, int, int, int, int, int] | None = None
    last_before = last
    verified = True
    why: StopReason = "end"
    bad: tuple[int, int, int, int, int, int, int, int] | None = None
    frames = 0
    chunk, base = b"", offset
    while True:
        at = offset - base
        if at + FRAME_HEADER_SIZE > len(chunk):
            if offset + FRAME_HEADER_SIZE > size:
                break
            chunk, base, at = file.pread(min(CHUNK_SIZE, size - offset), offset), offset, 0
            if len(chunk) < FRAME_HEADER_SIZE:
                break
        found, check, digest, length, count, kind, flags, first, previous = unpack(chunk, at)
        if found != sync or xxh3_64_intdigest(chunk[at + 8 : at + 32], seed ^ offset) & 0xFFFF_FFFF != check:
            why = "no-header"
            break
        if flags or not KIND_SESSION_HEADER <= kind <= KIND_SEAL:
            raise UpgradeRequiredError(file.path, offset, f"frame of kind {kind}, flags {flags:#04x}")
        this = (offset, check, digest, length, count, kind, first, previous)
        end = offset + FRAME_HEADER_SIZE + length
        if (
            first != position
            or previous != link
            or (kind == KIND_SESSION_HEADER) != (offset == FILE_HEADER_SIZE)
        ):
            why, bad = "order", this
            break
        if length > PAYLOAD_SIZE_MAX or end > size:
            why, bad = "past-end", this
            break
        if end > verify_from:
            payload = chunk[at + FRAME_HEADER_SIZE : at + FRAME_HEADER_SIZE + length]
            if len(payload) < length:
                payload = file.pread(length, offset + FRAME_HEADER_SIZE)
            if xxh3_64_intdigest(payload, seed) != digest:
                why, bad = "digest", this
                break
            verified = True
        else:
            verified = False
        before, last_before = (offset, position, link), last
        last = this
        index.add(offset, position)
        frames += 1
        offset, position, link = end, position + count, check
        if kind == KIND_SEAL:
            break
    head = Head(offset, position, link)
    frame = None if last is None else Frame(*last)
    if frame is not None and not verified and read_payload(file, keys, frame) is None:
        index.remove_last(frame.offset)
        last_good = None if last_before is None else Frame(*last_before)
        return Chain(Head(*before), last_good, frames - 1, "digest", frame)
    return Chain(head, frame, frames, why, None if bad is None else Frame(*bad))


def read_frame(file: File, keys: FormatKeys, offset: int) -> Frame | None:
    """Return the intact frame header at an offset, None if there is none."""
    data = file.pread(FRAME_HEADER_SIZE, offset)
    return parse_frame(keys, data, 0, offset, file.path) if len(data) == FRAME_HEADER_SIZE else None


def read_payload(file: File, keys: FormatKeys, frame: Frame) -> bytes | None:
    """Return the payload of a frame; None if it is cut off, or has not the digest that its header names."""
    payload = file.pread(frame.payload_length, frame.payload_offset)
    intact = len(payload) == frame.payload_length and payload_digest(keys, payload) == frame.digest
    return payload if intact else None


def find_frame_behind(
    file: File, keys: FormatKeys, offset: int, size: int, position_min: int
) -> Frame | None:
    """Return the first intact frame header at or behind `offset` of an event at `position_min` or later.

    The payload is not looked at: a header at its own offset was written there, so what stood before it had
    been synced.
    """
    while offset + FRAME_HEADER_SIZE <= size:
        data = file.pread(min(SEARCH_CHUNK_SIZE, size - offset), offset)
        at = data.find(keys.sync)
        while 0 <= at <= len(data) - FRAME_HEADER_SIZE:
            frame = parse_frame(keys, data, at, offset + at, file.path)
            if frame is not None and frame.first_position >= position_min:
                return frame
            at = data.find(keys.sync, at + 1)
        if len(data) < FRAME_HEADER_SIZE:
            break
        offset += len(data) - FRAME_HEADER_SIZE + 1
    return None


def last_nonzero(file: File, offset: int, size: int) -> int:
    """Return the offset behind the last byte at or behind `offset` that is not zero; `offset` if none."""
    end = offset
    while offset < size:
        data = file.pread(min(SEARCH_CHUNK_SIZE, size - offset), offset)
        if not data:
            break
        kept = len(data.rstrip(b"\0"))
        if kept:
            end = offset + kept
        offset += len(data)
    return end
