"""Looking at a session without opening it: its header, and the frame that the head mark names.

This is what makes listing many sessions cheap. It only answers where mark and log agree; whatever else it
finds takes a closer look, by `LogReader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from .events import decode_payload
from .format import (
    FILE_HEADER_SIZE,
    FRAME_HEADER_SIZE,
    HEAD_MARK_SIZE,
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    FormatKeys,
    Frame,
    SessionHeader,
    decode_session_header,
    parse_file_header,
    parse_frame,
    parse_mark,
    payload_digest,
)
from .reader import LOCK_NAME, LOG_NAME
from .vfs import close_quietly

if TYPE_CHECKING:
    from .vfs import Directory

WINDOW_BYTES: Final = 16 * 1024
"""How much of the start and of the end of a log is read."""


class Glance(msgspec.Struct, frozen=True):
    """What a look at a session shows.

    Args:
        header: of the session.
        events: durable events.
        sealed: whether the last frame is a seal.
        last_at: time of the last event, None if there is none.
        size_bytes: of the log.
    """

    header: SessionHeader
    events: int
    sealed: bool
    last_at: int | None
    size_bytes: int


def glance(store: Directory, session_id: str) -> Glance | None:
    """Look at a session; None if it takes a closer look.

    Raises:
        OSError: it cannot be read.
        UpgradeRequiredError: written by a newer version.
    """
    lock = log = None
    try:
        lock = store.open(f"{session_id}/{LOCK_NAME}")
        mark_bytes = lock.pread(HEAD_MARK_SIZE, 0)
        log = store.open(f"{session_id}/{LOG_NAME}")
        start = log.pread(WINDOW_BYTES, 0)
        keys = parse_file_header(start[:FILE_HEADER_SIZE], log.path)
        mark = None if keys is None else parse_mark(keys, mark_bytes)
        if keys is None or mark is None:
            return None
        size = log.stat().size_bytes
        base = max(min(mark.end, size) - WINDOW_BYTES, 0)
        if size - mark.end > WINDOW_BYTES:
            return None
        window = start if size <= len(start) else log.pread(size - base, base)
        base = 0 if window is start else base
    finally:
        close_quietly(lock, log)
    header = _header(keys, start, session_id)
    last = _frame_ending_at(keys, window, base, mark.end)
    if header is None or last is None or last.header_check != mark.header_check:
        return None
    if last.next_position != mark.position or any(window[mark.end - base :]):
        return None
    return _finish(keys, window, base, header, last, size)


def _header(keys: FormatKeys, start: bytes, session_id: str) -> SessionHeader | None:
    if len(start) < FILE_HEADER_SIZE + FRAME_HEADER_SIZE:
        return None
    frame = parse_frame(keys, start, FILE_HEADER_SIZE, FILE_HEADER_SIZE, session_id)
    if frame is None or frame.kind != KIND_SESSION_HEADER or frame.end > len(start):
        return None
    payload = start[frame.payload_offset : frame.end]
    if payload_digest(keys, payload) != frame.digest:
        return None
    try:
        header = decode_session_header(payload)
    except msgspec.DecodeError:
        return None
    return header if header.session_id == session_id else None


def _frame_ending_at(keys: FormatKeys, window: bytes, base: int, end: int) -> Frame | None:
    """Return the frame that ends at an offset, if it starts in the window and is intact."""
    at = end - base - FRAME_HEADER_SIZE
    while (at := window.rfind(keys.sync, 0, at + len(keys.sync))) >= 0:
        frame = parse_frame(keys, window, at, base + at, "")
        if frame is not None and frame.end == end:
            payload = window[at + FRAME_HEADER_SIZE : end - base]
            return frame if payload_digest(keys, payload) == frame.digest else None
        at -= 1
    return None


def _finish(
    keys: FormatKeys, window: bytes, base: int, header: SessionHeader, last: Frame, size: int
) -> Glance | None:
    sealed = last.kind == KIND_SEAL
    frame: Frame | None = last
    if sealed:
        frame = _frame_ending_at(keys, window, base, last.offset)
    last_at: int | None = None
    if last.next_position:
        if frame is None or frame.kind != KIND_EVENTS:
            return None
        try:
            last_at = decode_payload(window[frame.payload_offset - base : frame.end - base])[-1].at
        except (msgspec.DecodeError, UnicodeDecodeError, IndexError):
            return None
    return Glance(header, last.next_position, sealed, last_at, size)
