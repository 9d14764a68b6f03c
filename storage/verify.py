"""Proving a session: every frame, event and attachment, and the seal. Read-only (INV-7)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from .attachments import Attachment
from .directory import open_session_directory
from .errors import AttachmentCorruptError, AttachmentMissingError, CorruptionError, FormatError
from .reader import LOG_NAME, LogReader
from .vfs import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .events import Event
    from .vfs import Directory, FileSystem


class VerifyReport(msgspec.Struct, frozen=True):
    """What a full check of one session found.

    Args:
        session_id: the session.
        ok: nothing acknowledged is damaged or missing.
        events: intact events from the start on.
        size_bytes: of the log.
        sealed: whether it is sealed; the receipt was checked then.
        tail_bytes: bytes of an interrupted write, which the next owner cuts off.
        problems: one sentence for each fault.
    """

    session_id: str
    ok: bool
    events: int
    size_bytes: int
    sealed: bool
    tail_bytes: int
    problems: tuple[str, ...]


def verify_session(fs: FileSystem, store: Directory, session_id: str) -> VerifyReport:
    """Check every byte of a session: frames, chain, events, seal, attachments. Changes nothing (INV-7).

    Args:
        fs: the file system.
        store: directory of the store.
        session_id: the session.

    Raises:
        SessionNotFoundError: there is no such session.
        OSError: it cannot be read.
    """
    while True:
        before = store.stat(session_id)
        directory = open_session_directory(store, session_id)
        try:
            report = _verify(fs, store, directory, session_id)
        finally:
            directory.close()
        after = None if report.ok else store.stat(session_id)
        if report.ok or (after is not None and before is not None and after.identity == before.identity):
            return report
        # Deleted meanwhile, and perhaps made anew: that is no damage.


def _verify(fs: FileSystem, store: Directory, directory: Directory, session_id: str) -> VerifyReport:
    problems: list[str] = []
    try:
        reader = LogReader(fs, directory, session_id, full=True)
    except FormatError as error:
        problems.append(str(error))
        position = error.position if isinstance(error, CorruptionError) else 0
        return VerifyReport(
            session_id,
            ok=False,
            events=position,
            size_bytes=_size(directory),
            sealed=False,
            tail_bytes=0,
            problems=tuple(problems),
        )
    events = 0
    try:
        for position, event in enumerate(reader.view.events(0, reader.head.position, reader.head)):
            events = position + 1
            if event.kind == "attachment":
                problems.extend(_attachment_problem(store, session_id, position, event))
        problems.extend(_receipt_problem(reader))
    except FormatError as error:
        problems.append(str(error))
    finally:
        reader.close()
    return VerifyReport(
        session_id,
        not problems,
        events,
        _size(directory),
        reader.receipt is not None,
        reader.tail_bytes,
        tuple(problems),
    )


def _size(directory: Directory) -> int:
    found = directory.stat(LOG_NAME)
    return 0 if found is None else found.size_bytes


def _attachment_problem(store: Directory, session_id: str, position: int, event: Event) -> Iterator[str]:
    path = f"{store.path}/{session_id}"
    try:
        Attachment(session_id, path, position, event, lambda: store.open_directory(session_id)).verify()
    except (AttachmentMissingError, AttachmentCorruptError) as error:
        yield str(error)


def _receipt_problem(reader: LogReader) -> Iterator[str]:
    receipt, file = reader.receipt, reader.view.shared.file
    if receipt is None:
        return
    digest = hashlib.sha256()
    for piece in pieces(file, 0, reader.last.offset):
        digest.update(piece)
    if receipt.sha256 != digest.hexdigest() or receipt.events != reader.head.position:
        yield f"{file.path}: the seal's receipt does not fit the log before it"
