"""Chats of OpenAI's interface in one JSON document.

A list of messages; an object with such a list, as `messages`; or a list of such objects, whatever the list is
called in them. Messages are records, and so is each other member of the objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .chat import as_list, as_object, message_parts, text_of
from .documents import read_document, write_document
from .jsontext import excerpt
from .records import Part, Transcript, clip, own_kind

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .embedded import JsonPath
    from .source import Source
    from .target import Target, Written

__all__ = ["NAME", "SUFFIX", "detect", "read", "write"]

NAME: Final = "openai-chat"
SUFFIX: Final = ".json"


def detect(source: Source) -> bool:
    """Tell whether the file is one document with a list of messages."""
    outline = source.outline
    if isinstance(outline, list):
        first = as_list(outline)[:1]
        return bool(first) and (_is_message(first[0]) or _has_messages(first[0]))
    return _has_messages(outline)


def _is_message(value: Any) -> bool:
    fields = as_object(value)
    return isinstance(fields.get("role"), str) and not {"content", "tool_calls", "function_call"}.isdisjoint(
        fields
    )


def _has_messages(value: Any) -> bool:
    return any(_is_message(item) for below in as_object(value).values() for item in as_list(below)[:1])


def read(source: Source) -> Transcript:
    """Read the messages and what is around them."""
    first = as_list(source.outline)[:1]
    whole = bool(first) and _is_message(first[0])
    return Transcript(read_document(source, NAME, parts, whole=whole))


def parts(path: JsonPath, value: Any) -> list[Part]:
    """Tell the parts of a record."""
    message = as_object(value)
    if path and isinstance(path[-1], int) and text_of(message.get("role")):
        return message_parts(NAME, message)
    names = [step for step in path if isinstance(step, str)]
    return [Part(own_kind(NAME, names[-1] if names else "record"), clip(excerpt(value)))]


def write(session: ReadableSession, target: Target) -> Written:
    """Write the document again.

    Raises:
        NotExportableError: the session holds none, or a record is not whole.
        AttachmentMissingError, AttachmentCorruptError: an image cannot be read.
        OSError: the target cannot be written.
    """
    return write_document(session, NAME, target)
