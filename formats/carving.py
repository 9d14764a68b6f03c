"""How a record is kept as events so that it can be given back.

A record becomes one event or several, in one batch, after the files it carries. The first event's `data` is

    {"format": "claude-code", "record": 12, "digest": "…", "json": <the record>}

with the number of `parts` if there are several; the others' is

    {"format": "claude-code", "record": 12, "part": 1, "at": […], "json": <a piece of the record>}

What is kept elsewhere is taken out of the JSON: the pieces; the text that is the event's own `text`, at
`text_at`; the base64 of attached files, in `files` as [path, reference] (a path of null for a file whose text
was left in place). A record that JSON values cannot give back is kept as the text it was, in `raw` (bytes if
it is not UTF-8), or in the attached file `raw_file` if it is large. Every entry is put together again before
it is stored; one that does not come out equal is kept as text, too.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.events import Event
from .embedded import Embedded, encode_base64, file_reference, find_embedded, may_embed
from .jsontext import WHITE_SPACE, canonical, parse, storable
from .records import Entry, File, Part, RecordNumber, clip, own_kind, pointer, record_time_ns
from .restoring import PROVISIONAL, file_key, get_at, record_key, restore_value, set_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .embedded import JsonPath

__all__ = ["PARTS_MAX", "RECORD_BYTES_MAX", "make_entry", "make_file_entry"]

RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
"""A larger record is kept in a file, and only the beginning of its texts in events."""
PARTS_MAX: Final = 1_000
"""What a record says in more parts than that is not told apart any more."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.]+", re.ASCII)
_EXTENSIONS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "audio/wav": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


class _Draft(msgspec.Struct):
    """A record on its way into an entry."""

    format_name: str
    number: RecordNumber
    raw: bytes
    parts: list[Part]
    found: list[Embedded]
    at: int | None = None

    def data(self, part: int = 0) -> dict[str, Any]:
        """Return what the data of each of its events begins with."""
        number = self.number if isinstance(self.number, int) else list(self.number)
        return {"format": self.format_name, "record": number} | ({"part": part} if part else {})

    def events(self, datas: Sequence[dict[str, Any]], *, texts: bool = True) -> list[Event]:
        """Return its events, with the data they have; without `texts` only the beginnings of them."""
        key = record_key(self.format_name, self.number)
        return [
            Event(
                part.kind,
                part.text if texts else clip(part.text),
                data | _tool(part),
                self.at,
                f"{key}:{index}" if index else key,
            )
            for index, (part, data) in enumerate(zip(self.parts, datas, strict=True))
        ]

    def files(self) -> list[File]:
        """Return the files it carries, each once."""
        files: dict[str, File] = {}
        for item in self.found:
            if item.reference not in files:
                extension = _EXTENSIONS.get(item.media_type, "bin")
                files[item.reference] = File(
                    file_key(self.format_name, self.number, item.reference),
                    item.content,
                    f"{self.name()}-{item.reference[:8]}.{extension}",
                    item.media_type,
                )
        return list(files.values())

    def name(self) -> str:
        """Return what the names of its files begin with."""
        return f"record-{_UNSAFE.sub('-', pointer(self.number)).strip('-')}"


def _tool(part: Part) -> dict[str, Any]:
    named = {"call_id": part.call_id, "tool": part.tool}
    return {name: value for name, value in named.items() if value is not None}


def make_entry(
    format_name: str,
    number: RecordNumber,
    raw: bytes,
    read: Callable[[Any], Sequence[Part]],
    *,
    unfinished: bool = False,
) -> Entry:
    """Make the entry of one record.

    Args:
        format_name: of the format.
        number: of the record.
        raw: its text.
        read: tells the parts of a parsed value, at least one.
        unfinished: nothing follows it, not even a line end: it may be cut off.
    """
    parsed = parse(raw)
    draft = _Draft(format_name, number, raw, [], [])
    if parsed.value is msgspec.UNSET:
        return _unreadable(draft, parsed.problem, unfinished=unfinished)
    if unfinished and isinstance(parsed.value, (int, float)) and not isinstance(parsed.value, bool):
        return _unreadable(draft, "the last line is a number without a line end", unfinished=True)
    draft.parts = _limited(read(parsed.value), exact=parsed.exact)
    draft.at = record_time_ns(parsed.value)
    draft.found = find_embedded(parsed.value) if may_embed(raw) else []
    size_bytes = len(raw) - sum(len(item.content) * 4 // 3 for item in draft.found if item.exact)
    entry: Entry | None = None
    if parsed.exact:
        text = canonical(parsed.value)
        digest = _digest(text.encode())
        if size_bytes <= RECORD_BYTES_MAX:
            entry = _carved(draft, digest, parsed.value, text)
    else:
        digest = _digest(raw.strip(WHITE_SPACE))
    if entry is None:
        entry = _as_text(draft, digest)
        size_bytes = len(raw)
    entry.files[:0] = draft.files()
    entry.size_bytes = min(size_bytes, RECORD_BYTES_MAX)
    entry.problem = parsed.problem
    return entry


def make_file_entry(format_name: str, path: str, file_name: str, problem: str, digest: str) -> Entry:
    """Make the entry of a source that cannot be told apart into records: it is attached as it is.

    Args:
        format_name: of the format.
        path: of the file.
        file_name: for the attachment.
        problem: what is wrong with it.
        digest: of its content.
    """
    draft = _Draft(
        format_name,
        (),
        b"",
        [Part(own_kind(format_name, "document"), storable(f"{file_name}: {problem}"))],
        [],
    )
    data = draft.data() | {"digest": digest, "raw_file": digest[:16], PROVISIONAL: True}
    event = msgspec.structs.replace(draft.events([data])[0], key=f"{format_name}:document:{digest[:16]}")
    file = File(file_key(format_name, (), digest[:16]), path, storable(file_name), "application/json")
    return Entry((), digest, [event], [file], problem=problem, provisional=True)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _limited(parts: Sequence[Part], *, exact: bool) -> list[Part]:
    """Limit the parts, and replace what no event can hold: an exact record has none of that."""
    kept = list(parts[:PARTS_MAX])
    kept[0].at = ()
    if not exact:
        for part in kept:
            part.text = storable(part.text)
            part.call_id = None if part.call_id is None else storable(part.call_id)
            part.tool = None if part.tool is None else storable(part.tool)
    return kept


def _carved(draft: _Draft, digest: str, value: Any, text: str) -> Entry | None:
    """Take a value apart; None if it would not come back equal."""
    root, parts = [value], draft.parts
    datas = [draft.data(index) for index in range(len(parts))]
    datas[0]["digest"] = digest
    if len(parts) > 1:
        datas[0]["parts"] = len(parts)
    contents: dict[str, bytes] = {}
    try:
        for item in draft.found:
            owner = _owner(parts, item.path)
            place = list(item.path[len(parts[owner].at) :]) if item.exact else None
            datas[owner].setdefault("files", []).append([place, item.reference])
            if item.exact:
                contents[item.reference] = item.content
                set_at(root, item.path, item.prefix)
        for index, part in enumerate(parts):
            if part.text and part.text_at is not None and get_at(root, part.text_at) == part.text:
                datas[index]["text_at"] = list(part.text_at[len(part.at) :])
                set_at(root, part.text_at, "")
        for index in range(len(parts) - 1, 0, -1):
            datas[index] |= {"at": list(parts[index].at), "json": get_at(root, parts[index].at)}
            set_at(root, parts[index].at, None)
        datas[0]["json"] = root[0]
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(datas))
        pieces = zip((part.text for part in parts), stored, strict=True)
        restored = restore_value(pieces, lambda reference: encode_base64(contents[reference]))
    except (LookupError, TypeError):
        return None
    return Entry(draft.number, digest, draft.events(datas)) if canonical(restored) == text else None


def _owner(parts: Sequence[Part], path: JsonPath) -> int:
    """Return the part that keeps what stands at a path."""
    for index in range(1, len(parts)):
        if path[: len(parts[index].at)] == parts[index].at:
            return index
    return 0


def _as_text(draft: _Draft, digest: str) -> Entry:
    """Keep the record as the text it was."""
    datas = [draft.data(index) for index in range(len(draft.parts))]
    datas[0]["digest"] = digest
    if len(datas) > 1:
        datas[0]["parts"] = len(datas)
    if draft.found:
        references = dict.fromkeys(item.reference for item in draft.found)
        datas[0]["files"] = [[None, reference] for reference in references]
    files: list[File] = []
    large = len(draft.raw) > RECORD_BYTES_MAX
    if large:
        datas[0]["raw_file"] = reference = file_reference(draft.raw, "application/json")
        key = file_key(draft.format_name, draft.number, reference)
        files.append(File(key, draft.raw, f"{draft.name()}.json", "application/json"))
    else:
        datas[0]["raw"] = _text_or_bytes(draft.raw)
    return Entry(draft.number, digest, draft.events(datas, texts=not large), files)


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _unreadable(draft: _Draft, problem: str | None, *, unfinished: bool) -> Entry:
    """Keep what is not JSON; an unfinished line only until the file goes on."""
    kind = own_kind(draft.format_name, "incomplete" if unfinished else "raw")
    draft.parts = [Part(kind, clip(draft.raw.decode(errors="replace")))]
    digest = _digest(draft.raw if unfinished else draft.raw.strip(WHITE_SPACE))
    entry = _as_text(draft, digest)
    entry.size_bytes = min(len(draft.raw), RECORD_BYTES_MAX)
    entry.problem = problem
    if unfinished:
        head = entry.events[0]
        data = head.data | {PROVISIONAL: True}
        entry.events[0] = msgspec.structs.replace(head, data=data, key=f"{head.key}:incomplete:{digest[:16]}")
        entry.provisional = True
        entry.problem = f"{problem}; the file may go on here, and the record is replaced then"
    return entry
