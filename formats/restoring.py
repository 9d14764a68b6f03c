"""From events back to the records they were imported from. The layout of `data` is described in `carving`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ..storage.events import Event
from .embedded import encode_base64
from .errors import NotExportableError
from .jsontext import to_json
from .records import RecordNumber, pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..actors.readable import ReadableSession

__all__ = [
    "PROVISIONAL",
    "Files",
    "Item",
    "current_items",
    "file_key",
    "get_at",
    "imported_as",
    "is_file_key",
    "is_imported",
    "items",
    "number_of",
    "record_key",
    "restore_value",
    "restored_text",
    "set_at",
]

PROVISIONAL: Final = "provisional"

_DIGEST: Final = re.compile("[0-9a-f]{32}")
_FILE_KEY: Final = re.compile("[a-z0-9-]+:.*:file:[0-9a-f]{16}", re.DOTALL)

Files = dict[str, int]
"""Keys of attachments and their positions, as far as the session was read."""


class Item(msgspec.Struct):
    """An imported record with all its events, or one event that was not imported.

    Args:
        position: of the first event.
        events: its events.
        format_name: of the format it was imported from; None if it was not.
        number: which record it is; -1 if it is none.
        provisional: whether a later record of that format replaces it.
    """

    position: int
    events: list[Event]
    format_name: str | None = None
    number: RecordNumber = -1
    provisional: bool = False


def record_key(format_name: str, number: RecordNumber) -> str:
    """Return the key of a record's first event; those of its others and its files begin with it."""
    return f"{format_name}:{pointer(number)}"


def file_key(format_name: str, number: RecordNumber, reference: str) -> str:
    """Return the key of a file that a record carries."""
    return f"{record_key(format_name, number)}:file:{reference}"


def is_file_key(key: str | None) -> bool:
    """Tell whether an attachment of that key was taken out of a record."""
    return key is not None and _FILE_KEY.fullmatch(key) is not None


def is_imported(data: Any) -> bool:
    """Tell whether an event's data is that of an imported record."""
    return isinstance(data, dict) and {"format", "record"} <= cast("dict[str, Any]", data).keys()


def imported_as(event: Event) -> dict[str, Any] | None:
    """Return the data of the first event of an imported record; None for any other event."""
    data: Any = event.data
    if not isinstance(data, dict) or event.key is None:
        return None
    fields = cast("dict[str, Any]", data)
    name, digest, number = fields.get("format"), fields.get("digest"), fields.get("record")
    if not isinstance(name, str) or not event.key.startswith(f"{name}:"):
        return None
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(number, (int, list)):
        return None
    return fields


def number_of(data: dict[str, Any]) -> RecordNumber:
    """Return the record's number from an event's data."""
    number = data["record"]
    return number if isinstance(number, int) else tuple(cast("list[str | int]", number))


def items(session: ReadableSession, start: int = 0, files: Files | None = None) -> Iterator[Item]:
    """Iterate over a session's events, those of one record together.

    Args:
        session: the session.
        start: position of the first event; not inside a record.
        files: gets the attachments that are passed.

    Raises:
        NotExportableError: events of a record are missing.
    """
    events = enumerate(session.events(start), start)
    for position, event in events:
        data = imported_as(event)
        if data is None:
            if files is not None and event.kind == "attachment" and event.key is not None:
                files[event.key] = position
            yield Item(position, [event])
            continue
        name, number = data["format"], number_of(data)
        found = [event]
        for part in range(1, data.get("parts", 1)):
            following = next(events, None)
            if following is None or not _is_part(following[1], data, part):
                raise NotExportableError(
                    session.session_id, name, f"a part of record {pointer(number)} is missing"
                )
            found.append(following[1])
        yield Item(position, found, name, number, bool(data.get(PROVISIONAL)))


def _is_part(event: Event, head: dict[str, Any], part: int) -> bool:
    data: Any = event.data
    if not is_imported(data):
        return False
    return (data["format"], data["record"], data.get("part")) == (head["format"], head["record"], part)


def current_items(found: Iterator[Item]) -> Iterator[Item]:
    """Leave out provisional records that a later record of their format replaces."""
    held: dict[str, Item] = {}
    for item in found:
        if item.format_name is not None:
            held.pop(item.format_name, None)
            if item.provisional:
                held[item.format_name] = item
                continue
        yield item
    yield from held.values()


def get_at(root: list[Any], path: Sequence[str | int]) -> Any:
    """Return what stands at a path of the value in a list of one.

    Raises:
        LookupError, TypeError: nothing does.
    """
    value = root[0]
    for step in path:
        value = value[step]
    return value


def set_at(root: list[Any], path: Sequence[str | int], value: Any) -> None:
    """Replace what stands at a path of the value in a list of one.

    Raises:
        LookupError, TypeError: nothing does.
    """
    holder: Any = root
    step: str | int = 0
    for below in path:
        holder, step = holder[step], below
    holder[step]  # pyright: ignore[reportUnusedExpression]
    holder[step] = value


def restore_value(pieces: Iterable[tuple[str, dict[str, Any]]], base64_of: Callable[[str], str]) -> Any:
    """Put a record together again.

    Args:
        pieces: text and data of all events of the record; the data are used up.
        base64_of: gives the base64 of a file, by its reference.

    Raises:
        LookupError, TypeError: the pieces do not fit.
    """
    root: list[Any] = [None]
    for text, data in pieces:
        piece = [data["json"]]
        text_at = data.get("text_at")
        if text_at is not None:
            set_at(piece, text_at, text)
        for path, reference in data.get("files", ()):
            if path is not None:
                set_at(piece, path, get_at(piece, path) + base64_of(reference))
        set_at(root, data.get("at", ()), piece[0])
    return root[0]


def restored_text(session: ReadableSession, item: Item, files: Files) -> bytes:
    """Return the JSON text of an imported record, or the text that was no JSON.

    Raises:
        AttachmentMissingError, AttachmentCorruptError: a file of the record cannot be read.
        NotExportableError: a file or a piece of the record is gone.
    """
    name = item.format_name or ""

    def content(reference: str) -> bytes:
        return session.read_attachment(files[file_key(name, item.number, reference)]).bytes

    data: dict[str, Any] = item.events[0].data
    try:
        if "raw" in data:
            raw = data["raw"]
            return raw if isinstance(raw, bytes) else raw.encode()
        if "raw_file" in data:
            return content(data["raw_file"])
        pieces = ((event.text, event.data) for event in item.events)
        return to_json(restore_value(pieces, lambda reference: encode_base64(content(reference))))
    except (KeyError, IndexError, TypeError) as error:
        raise NotExportableError(
            session.session_id, name, f"record {pointer(item.number)} is not whole ({error!r})"
        ) from error
