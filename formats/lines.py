r"""JSON Lines, in and out, for every format that has a record a line.

Lines end with `\\n` and nothing else, so no character inside a text splits a record. Blank lines are no
records. The last line is unfinished if it has no line end and is no complete JSON value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .carving import make_entry
from .errors import NotExportableError
from .jsontext import WHITE_SPACE
from .restoring import Files, current_items, items, restored_text
from .source import BOM
from .target import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..actors.readable import ReadableSession
    from .records import Entry, Part
    from .source import Source
    from .target import Target

__all__ = ["read_lines", "write_lines"]


def read_lines(source: Source, format_name: str, read: Callable[[Any], Sequence[Part]]) -> Iterator[Entry]:
    """Read a record a line.

    Args:
        source: the file.
        format_name: of the format.
        read: tells the parts of a parsed line, at least one.

    Raises:
        OSError: the file cannot be read.
    """
    number = offset = 0
    with source.open() as file:
        for line, raw in enumerate(file, 1):
            offset += len(raw)
            text = raw.removeprefix(BOM) if line == 1 else raw
            if not text.strip(WHITE_SPACE):
                continue
            unfinished = not text.endswith(b"\n")
            entry = make_entry(format_name, number, text.removesuffix(b"\n"), read, unfinished=unfinished)
            entry.line, entry.offset = line, offset
            number += 1
            yield entry


def write_lines(session: ReadableSession, format_name: str, target: Target) -> Written:
    """Write the records that were imported from a format, a line each.

    Args:
        session: the session.
        format_name: of the format.
        target: where to.

    Raises:
        NotExportableError: the session holds no records of it, or a record is not whole.
        AttachmentMissingError, AttachmentCorruptError: a file of a record cannot be read.
        OSError: the target cannot be written.
    """
    files: Files = {}
    out = target.file()
    written = Written()
    for item in current_items(items(session, files=files)):
        if item.format_name == format_name:
            out.write(restored_text(session, item, files) + b"\n")
            written.records += 1
        elif item.events[0].kind != "attachment":
            written.skipped += len(item.events)
    if not written.records and session.header.labels.get("format") != format_name:
        raise NotExportableError(session.session_id, format_name, "it holds no records of that format")
    return written
