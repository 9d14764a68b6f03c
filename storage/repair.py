"""Salvaging a damaged session into a copy; the original is only read.

Positions stay what they were: an event that cannot be read is replaced by one of kind `sealog.lost`, so that
attachments and whoever remembers a position still find the right event.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from .attachments import COPY_BYTES, Attachment, open_attachments
from .checkpoints import find_salt
from .directory import create_session, open_session_directory
from .errors import AttachmentCorruptError, AttachmentMissingError, CorruptionError
from .events import Event, decode_payload, encode_event, encode_payload
from .format import (
    FILE_HEADER_SIZE,
    HEAD_MARK,
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    FormatKeys,
    Frame,
    SessionHeader,
    decode_session_header,
    file_header,
    parse_file_header,
)
from .reader import open_log_file, read_mark_bytes
from .scan import find_frame_behind, last_nonzero, read_frame, read_payload
from .vfs import close_quietly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .vfs import Directory, File

LOST_KIND: Final = "sealog.lost"
_LOST_BATCH: Final = 10_000


class Gap(msgspec.Struct, frozen=True):
    """A stretch of a damaged log that could not be read.

    Args:
        offset: where it starts in the original log.
        size_bytes: how long it is.
        first_position: of the first event that is missing.
        events: how many are missing; None at the end of the log, where nobody can know.
    """

    offset: int
    size_bytes: int
    first_position: int
    events: int | None


class RepairReport(msgspec.Struct, frozen=True):
    """What salvaging a session gave.

    Args:
        session_id: the session.
        path: of the copy.
        events: events in the copy, those of kind `sealog.lost` among them.
        lost_events: how many of these.
        gaps: what could not be read of the original.
        sealed: whether a seal was found; the copy has none.
        attachments_lost: positions of attachments whose file is missing or damaged.
    """

    session_id: str
    path: str
    events: int
    lost_events: int
    gaps: tuple[Gap, ...]
    sealed: bool
    attachments_lost: tuple[int, ...]


def repair_session(store: Directory, session_id: str, into: Directory) -> RepairReport:
    """Write what can be read of a session into another store, as a new session of the same id.

    Args:
        store: directory of the store that holds the damaged session; only read.
        session_id: the session.
        into: directory of the store that gets the copy.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionExistsError: the target store has one of that id.
        CorruptionError: nothing at all can be read.
        OSError: reading or writing failed.
    """
    directory = open_session_directory(store, session_id)
    file: File | None = None
    try:
        file = open_log_file(directory)
        salvage = _Salvage(file, _find_keys(directory, file))
        header = salvage.session_header(session_id)
        lost: list[int] = []
        lock = create_session(
            into,
            header,
            salvage.batches(),
            lambda target: lost.extend(_copy_attachments(store, session_id, salvage.attachments, target)),
        )
        lock.close()
    finally:
        close_quietly(file, directory)
    return RepairReport(
        session_id,
        f"{into.path}/{session_id}",
        salvage.position,
        salvage.lost_events,
        tuple(salvage.gaps),
        salvage.sealed,
        tuple(lost),
    )


def _find_keys(directory: Directory, file: File) -> FormatKeys:
    """Return the keys of a log, also where its file header is damaged.

    A checkpoint keeps the whole salt; the head mark keeps the seed, and each frame starts with the sync word.
    """
    keys = parse_file_header(file.pread(FILE_HEADER_SIZE, 0), file.path)
    if keys is not None:
        return keys
    salt = find_salt(directory)
    if salt is not None and (keys := parse_file_header(file_header(salt), file.path)) is not None:
        return keys
    mark = read_mark_bytes(directory)
    if len(mark) == HEAD_MARK.size:
        seed = HEAD_MARK.unpack(mark)[0]
        keys = FormatKeys(file.pread(4, FILE_HEADER_SIZE), seed, b"")
        if read_frame(file, keys, FILE_HEADER_SIZE) is not None:
            return keys
    raise CorruptionError(
        file.path, 0, 0, "the file header is damaged and nothing else tells the keys of this log"
    )


class _Salvage:
    """One pass over a damaged log, and what it found."""

    def __init__(self, file: File, keys: FormatKeys) -> None:
        self._file = file
        self._keys = keys
        self._size = last_nonzero(file, 0, file.stat().size_bytes)
        self.position = 0
        self.lost_events = 0
        self.sealed = False
        self.gaps: list[Gap] = []
        self.attachments: list[tuple[int, Event]] = []

    def session_header(self, session_id: str) -> SessionHeader:
        """Return the session header, or a stand-in for it."""
        frame = read_frame(self._file, self._keys, FILE_HEADER_SIZE)
        if frame is not None and frame.kind == KIND_SESSION_HEADER:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                payload = read_payload(self._file, self._keys, frame)
                if payload is not None:
                    header = decode_session_header(payload)
                    if header.session_id != session_id:
                        raise CorruptionError(
                            self._file.path,
                            FILE_HEADER_SIZE,
                            0,
                            f"this is the log of session {header.session_id!r}, not of {session_id!r}",
                            "nothing was copied; put it back into the folder of its own session",
                        )
                    return header
        self.gaps.append(Gap(FILE_HEADER_SIZE, 0, 0, 0))
        return SessionHeader(session_id, "unknown", {})

    def batches(self) -> Iterator[tuple[bytes, int]]:
        """Yield the payloads of the copy's frames."""
        offset = FILE_HEADER_SIZE
        while offset < self._size:
            frame = read_frame(self._file, self._keys, offset)
            if frame is None or frame.first_position < self.position:
                frame = find_frame_behind(self._file, self._keys, offset + 1, self._size, self.position)
                if frame is None:
                    self.gaps.append(Gap(offset, self._size - offset, self.position, None))
                    return
            missing = frame.first_position - self.position
            if missing:
                yield from self._lose(offset, frame.offset - offset, missing)
            offset = frame.end
            if frame.kind == KIND_SEAL:
                self.sealed = True
            elif frame.kind == KIND_EVENTS:
                yield from self._events(frame)

    def _events(self, frame: Frame) -> Iterator[tuple[bytes, int]]:
        payload = read_payload(self._file, self._keys, frame)
        if payload is not None:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                events = decode_payload(payload)
                if len(events) == frame.event_count:
                    self.attachments.extend(
                        (self.position + index, event)
                        for index, event in enumerate(events)
                        if event.kind == "attachment"
                    )
                    self.position += len(events)
                    yield payload, len(events)
                    return
        if frame.end > self._size:
            self.gaps.append(Gap(frame.offset, self._size - frame.offset, self.position, None))
            return
        yield from self._lose(frame.offset, frame.end - frame.offset, frame.event_count)

    def _lose(self, offset: int, size: int, count: int) -> Iterator[tuple[bytes, int]]:
        self.gaps.append(Gap(offset, size, self.position, count))
        self.lost_events += count
        body = encode_event(LOST_KIND, "this event could not be read", None, 0, None)
        while count:
            step = min(count, _LOST_BATCH)
            self.position += step
            count -= step
            yield encode_payload([body] * step), step


def _copy_attachments(
    store: Directory, session_id: str, events: list[tuple[int, Event]], target: Directory
) -> Iterator[int]:
    """Copy the attachments that are intact; yield the positions of the others."""
    if not events:
        return
    folder = open_attachments(target, create=True)
    try:
        for position, event in events:
            try:
                attachment = Attachment(
                    session_id,
                    f"{store.path}/{session_id}",
                    position,
                    event,
                    lambda: store.open_directory(session_id),
                )
                attachment.verify()
            except (AttachmentMissingError, AttachmentCorruptError):
                yield position
                continue
            _copy(attachment, folder)
        folder.sync()
    finally:
        folder.close()


def _copy(attachment: Attachment, folder: Directory) -> None:
    file = folder.open(str(attachment.position), create=True)
    try:
        offset = 0
        with attachment.open() as source:
            while data := source.read(COPY_BYTES):
                file.pwrite(data, offset)
                offset += len(data)
        file.sync_data()
    finally:
        file.close()
