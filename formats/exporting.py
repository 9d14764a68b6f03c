"""Export: a session in a format of other programs, or as a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .registry import READERS, find_writer
from .target import Target

if TYPE_CHECKING:
    import os

    from ..actors.readable import ReadableSession
    from .target import Writable

__all__ = ["ExportReport", "export_session"]


class ExportReport(msgspec.Struct):
    """What an export did.

    Args:
        session_id: of the session.
        format: that was written.
        records: that were written: records of the format, or events.
        skipped: events that the format has no place for.
    """

    session_id: str
    format: str
    records: int
    skipped: int


def export_session(
    session: ReadableSession,
    target: str | os.PathLike[str] | Writable,
    *,
    format: str | None = None,  # noqa: A002 — what it is called everywhere
    overwrite: bool = False,
) -> ExportReport:
    """Write a session.

    Args:
        session: a session, sealed or not.
        target: a path, at which the export appears when it is complete; or a binary file open for writing.
        format: name of the format; the one the session was imported from if left out, else JSON Lines.
        overwrite: replace a file at the path.

    Raises:
        UnknownFormatError: no format has that name.
        NotExportableError: the session has nothing in that format, or a record of it is not whole.
        AttachmentMissingError, AttachmentCorruptError: a file that belongs to a record cannot be read.
        FileExistsError: something is at the path.
        CorruptionError: an event is damaged.
        OSError: the target cannot be written.
    """
    module = find_writer(own_format(session) if format is None else format)
    with Target(target, overwrite=overwrite) as opened:
        written = module.write(session, opened)
    return ExportReport(session.session_id, module.NAME, written.records, written.skipped)


def own_format(session: ReadableSession) -> str:
    """Return the format that a session was imported from; JSON Lines if it was not."""
    label = session.header.labels.get("format")
    return label if label in {module.NAME for module in READERS} else "jsonl"
