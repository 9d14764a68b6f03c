"""JSON Lines: `{"kind" or "role", "text", …}` a line; and the way out for every session.

A `kind` is taken as it is, a `role` as in chat messages; `text` is the text, else the message's content. The
export writes imported records of any format as they came, and all other events as
`{"kind", "text", "data", "at", "key"}`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.events import Role
from .chat import ROLES, as_object, blocks_text, message_parts, text_of
from .jsontext import excerpt, to_json
from .lines import read_lines
from .records import Part, Transcript, own_kind, valid_kind
from .restoring import Files, current_items, file_key, is_file_key, items, restored_text
from .target import Written

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from ..storage.events import Event
    from .source import Source
    from .target import Target, Writable

__all__ = ["NAME", "SUFFIX", "detect", "read", "write"]

NAME: Final = "jsonl"
SUFFIX: Final = ".jsonl"

_OLD_KINDS: Final[dict[str, str]] = {
    "kennedy-message": Role.ASSISTANT_MESSAGE,
    "kennedy-tool-call": Role.TOOL_CALL,
}
"""Kinds of KSESSIONLOG 0.2.1 that are called otherwise here."""
_BASE64_CHUNK: Final = 3 * 64 * 1024


def detect(source: Source) -> bool:
    """Tell whether most of the first lines are JSON, and one is an object."""
    lines = source.sample
    bad = sum(value is msgspec.UNSET for value in lines)
    return 2 * bad <= len(lines) and any(isinstance(value, dict) for value in lines)


def read(source: Source) -> Transcript:
    """Read the lines."""
    return Transcript(read_lines(source, NAME, parts))


def parts(value: Any) -> list[Part]:
    """Tell the parts of a line."""
    record = as_object(value)
    kind, role, text = record.get("kind"), record.get("role"), record.get("text")
    if isinstance(kind, str) and valid_kind(kind):
        name = own_kind(NAME, kind) if kind == Role.ATTACHMENT else _OLD_KINDS.get(kind, kind)
    elif isinstance(role, str) and role:
        if not isinstance(text, str):
            return message_parts(NAME, record)
        name = ROLES.get(role) or own_kind(NAME, role)
    else:
        name = own_kind(NAME, "record")
    if isinstance(text, str):
        found = Part(name, text, text_at=("text",))
    elif isinstance(record.get("content"), str):
        found = Part(name, record["content"], text_at=("content",))
    else:
        found = Part(name, blocks_text(record["content"]) if "content" in record else excerpt(value))
    data = as_object(record.get("data"))  # where an event has them
    found.call_id = text_of(record.get("call_id") or record.get("tool_call_id") or data.get("call_id"))
    found.tool = text_of(record.get("tool") or record.get("name") or data.get("tool"))
    return [found]


def write(session: ReadableSession, target: Target) -> Written:
    """Write every record and every event, a line each.

    Raises:
        NotExportableError: a record is not whole.
        AttachmentMissingError, AttachmentCorruptError: an attachment cannot be read.
        OSError: the target cannot be written.
    """
    out, files, written = target.file(), Files(), Written()
    for item in current_items(items(session, files=files)):
        event = item.events[0]
        if event.kind == Role.ATTACHMENT:
            if is_file_key(event.key):
                continue  # a part of the record that follows, or of one that an import could not finish
            _write_attachment(session, item.position, event, out)
        elif item.provisional and item.number == ():  # a whole file that could not be read
            position = files[file_key(item.format_name or "", (), event.data["raw_file"])]
            _write_attachment(session, position, session[position], out)
            out.write(_event_line(event))
            written.records += 1
        elif item.format_name is not None:
            text = restored_text(session, item, files)
            out.write(text.replace(b"\n", b" ") + b"\n")  # a document's record may be spread over lines
        else:
            out.write(_event_line(event))
        written.records += 1
    return written


def _event_line(event: Event) -> bytes:
    fields = {"kind": event.kind, "text": event.text, "data": event.data, "at": event.at, "key": event.key}
    return to_json({name: value for name, value in fields.items() if value is not None}) + b"\n"


def _write_attachment(session: ReadableSession, position: int, event: Event, out: Writable) -> None:
    """Write an attachment with its bytes, a piece at a time."""
    attachment = session.read_attachment(position)
    fields = {
        "kind": event.kind,
        "text": event.text,
        "file_name": attachment.file_name,
        "media_type": attachment.media_type,
        "sha256": attachment.sha256,
        "at": event.at,
        "key": event.key,
    }
    with attachment.open() as file:
        out.write(to_json({name: value for name, value in fields.items() if value is not None})[:-1])
        out.write(b',"type":"base64","data":"')
        while piece := file.read(_BASE64_CHUNK):
            out.write(base64.b64encode(piece))
    out.write(b'"}\n')
