"""Codex rollouts: one record a line, `{"timestamp", "type", "payload"}`.

The transcript is in the `response_item` records. `event_msg` records tell most of it a second time, for the
screen, and are events of kinds of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..storage.events import Role
from .chat import ROLES, as_object, block_parts, blocks_text, call_text, text_of
from .jsontext import excerpt
from .lines import read_lines, write_lines
from .records import Part, Transcript, clip, own_kind

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .source import Source
    from .target import Target, Written

__all__ = ["NAME", "SUFFIX", "detect", "read", "write"]

NAME: Final = "codex"
SUFFIX: Final = ".jsonl"

_TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def detect(source: Source) -> bool:
    """Tell whether the first lines hold a record of Codex."""
    return any(_is_record(as_object(value)) for value in source.sample)


def _is_record(record: dict[str, Any]) -> bool:
    return text_of(record.get("type")) in _TYPES and isinstance(record.get("payload"), dict)


def read(source: Source) -> Transcript:
    """Read the lines."""
    return Transcript(read_lines(source, NAME, parts))


def parts(value: Any) -> list[Part]:
    """Tell the parts of a record."""
    record = as_object(value)
    kind = text_of(record.get("type"))
    payload = as_object(record.get("payload"))
    if kind == "response_item":
        return _item(payload) or [Part(own_kind(NAME, payload.get("type")), clip(excerpt(payload)))]
    if kind == "event_msg":
        return [_message(payload)]
    if kind == "compacted" and isinstance(payload.get("message"), str):
        return [Part(own_kind(NAME, kind), payload["message"], text_at=("payload", "message"))]
    return [Part(own_kind(NAME, kind), clip(excerpt(payload or value)))]


def _item(payload: dict[str, Any]) -> list[Part]:
    kind = text_of(payload.get("type")) or ""
    if kind == "message":
        return _content(payload)
    if kind == "reasoning":
        return [Part(own_kind(NAME, kind), blocks_text(payload.get("summary")))]
    call_id = text_of(payload.get("call_id")) or text_of(payload.get("id"))
    if kind.endswith("_call"):
        name = text_of(payload.get("name")) or kind
        arguments = payload.get("arguments", payload.get("input", payload.get("action", {})))
        return [Part(Role.TOOL_CALL, call_text(name, arguments), call_id=call_id, tool=name)]
    if kind.endswith("_output"):
        return [_output(payload, call_id)]
    return []


def _content(payload: dict[str, Any]) -> list[Part]:
    role = text_of(payload.get("role")) or ""
    kind = ROLES.get(role) or own_kind(NAME, role)
    content = payload.get("content")
    if isinstance(content, str):
        return [Part(kind, content, text_at=("payload", "content"))]
    return block_parts(kind, content, ("payload", "content")) or [Part(kind, "")]


def _output(payload: dict[str, Any], call_id: str | None) -> Part:
    output = payload.get("output")
    found = Part(Role.TOOL_RESULT, "", call_id=call_id)
    if isinstance(output, str):
        found.text, found.text_at = output, ("payload", "output")
        return found
    fields = as_object(output)
    if isinstance(fields.get("content"), str):
        found.text, found.text_at = fields["content"], ("payload", "output", "content")
    else:
        found.text = blocks_text(fields.get("content", output))
    if fields.get("success") is False:
        found.kind = Role.TOOL_ERROR
    return found


def _message(payload: dict[str, Any]) -> Part:
    kind = text_of(payload.get("type")) or ""
    name = Role.SYSTEM_ERROR if kind in {"error", "stream_error"} else own_kind(NAME, kind)
    for field in ("message", "text"):
        if isinstance(payload.get(field), str):
            return Part(name, payload[field], text_at=("payload", field))
    return Part(name, clip(excerpt(payload)))


def write(session: ReadableSession, target: Target) -> Written:
    """Write the records again.

    Raises:
        NotExportableError: the session holds none, or one is not whole.
        AttachmentMissingError, AttachmentCorruptError: an image cannot be read.
        OSError: the target cannot be written.
    """
    return write_lines(session, NAME, target)
