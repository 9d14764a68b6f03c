"""Files inside JSON: base64 where the known programs put it, found and decoded."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Embedded", "JsonPath", "encode_base64", "file_reference", "find_embedded", "may_embed"]

JsonPath = tuple[str | int, ...]
"""Where a value stands in a JSON value: object keys and array indices."""

_HINTS: Final = (b"base64", b"media_type", b"mimeType", b"input_audio", b"image_generation_call")
_DATA_URI: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,", re.ASCII)
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_WHITE_SPACE: Final = re.compile(r"\s+")
_STARTS: Final = {
    "JVBERi": "application/pdf",
    "iVBORw0KGg": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""How the base64 of well-known files begins."""
_CHARS_MIN: Final = 4
_UNKNOWN_TYPE: Final = "application/octet-stream"
_REFERENCE_CHARS: Final = 16


class Embedded(msgspec.Struct):
    """A file inside a JSON value.

    Args:
        path: where its text stands.
        prefix: what precedes the base64 there, as in a data URI.
        media_type: what it is said to be.
        content: the bytes.
        exact: whether encoding the bytes again gives the same text.
        reference: what the record calls the file by.
    """

    path: JsonPath
    prefix: str
    media_type: str
    content: bytes
    exact: bool
    reference: str


def file_reference(content: bytes, media_type: str) -> str:
    """Return what a record calls a file by: the same bytes twice in a record are one file."""
    return hashlib.sha256(media_type.encode() + b"\0" + content).hexdigest()[:_REFERENCE_CHARS]


def encode_base64(content: bytes) -> str:
    """Return the canonical base64 of bytes."""
    return base64.b64encode(content).decode()


def may_embed(raw: bytes) -> bool:
    """Tell quickly whether a JSON text is worth searching."""
    return any(hint in raw for hint in _HINTS)


def find_embedded(value: Any) -> list[Embedded]:
    """Return the files inside a value, in order."""
    found: list[Embedded] = []
    waiting: list[tuple[JsonPath, Any]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            found.extend(_data_uri(path, item))
        elif isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            name, media_type = _place(fields)
            if name is not None:
                found.extend(_decoded((*path, name), "", media_type, fields[name]))
            waiting.extend(((*path, key), fields[key]) for key in reversed(fields))
        elif isinstance(item, list):
            items = cast("list[Any]", item)
            waiting.extend(((*path, index), items[index]) for index in range(len(items) - 1, -1, -1))
    return found


def _place(fields: dict[str, Any]) -> tuple[str | None, str]:
    """Return which field of an object holds base64, and of what."""
    media_type: Any
    if isinstance(fields.get("data"), str):
        media_type = fields.get("media_type", fields.get("mimeType"))
        if media_type is None and isinstance(fields.get("format"), str):
            media_type = f"audio/{fields['format']}"  # OpenAI's input_audio
        if isinstance(media_type, str) and media_type.startswith("text/") and fields.get("type") != "base64":
            return None, ""  # text that is what it says
        name = "data"
    elif isinstance(fields.get("base64"), str):
        name, media_type = "base64", _named_or_seen(fields)
    elif fields.get("type") == "image_generation_call" and isinstance(fields.get("result"), str):
        name, media_type = "result", "image/png"
    else:
        return None, ""
    if not isinstance(media_type, str):
        return None, ""
    return name, media_type if _MEDIA_TYPE.fullmatch(media_type) else _UNKNOWN_TYPE


def _named_or_seen(fields: dict[str, Any]) -> str | None:
    """Return the type of what stands in `base64`: what is said, else what the first bytes show."""
    for name in ("media_type", "type"):
        said = fields.get(name)
        if isinstance(said, str) and _MEDIA_TYPE.fullmatch(said):
            return said
    text: str = fields["base64"]
    return next((seen for start, seen in _STARTS.items() if text.startswith(start)), None)


def _data_uri(path: JsonPath, text: str) -> Iterator[Embedded]:
    if text.startswith("data:"):
        match = _DATA_URI.match(text)
        if match is not None:
            yield from _decoded(path, match[0], match[1], text[match.end() :])


def _decoded(path: JsonPath, prefix: str, media_type: str, text: str) -> Iterator[Embedded]:
    if len(text) < _CHARS_MIN or text.startswith("data:"):
        return
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
        exact = encode_base64(content) == text
    except ValueError:
        exact = False
        try:
            packed = _WHITE_SPACE.sub("", text).rstrip("=")
            content = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
        except ValueError:
            return
    if content:
        yield Embedded(path, prefix, media_type, content, exact, file_reference(content, media_type))
