"""What format modules hand to the importer: records, taken apart into what events say.

A module tells the parts of a record; `carving` makes the entry that is stored, `restoring` gives the record
back.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import msgspec

from ..storage.events import KIND_BYTES_MAX, Event, is_blank
from .embedded import JsonPath
from .source import Source

__all__ = [
    "Entry",
    "File",
    "Part",
    "RecordNumber",
    "Related",
    "Transcript",
    "clip",
    "own_kind",
    "pointer",
    "record_time_ns",
    "time_ns",
    "valid_kind",
]

RecordNumber = int | JsonPath
"""Which record of a file: its index, or where it stands in the one JSON document."""

TEXT_CHARS: Final = 4_000
"""Of a text that repeats what is in the data."""

_OWN_KIND: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (2**63, 1))


class Part(msgspec.Struct):
    """What one event says of a record. The first part of a record stands for all that no other part takes.

    Args:
        kind: of the event.
        text: of the event.
        at: the piece of the record that the event keeps; the whole record for the first.
        text_at: where in the record that text stands, if it stands there as it is.
        call_id: of a tool call, for what belongs to one.
        tool: name of the tool.
    """

    kind: str
    text: str
    at: JsonPath = ()
    text_at: JsonPath | None = None
    call_id: str | None = None
    tool: str | None = None


class File(msgspec.Struct):
    """A file that is attached before the events which refer to it.

    Args:
        key: idempotency key of the attachment.
        source: the bytes, or the path of a file.
        file_name: its name.
        media_type: its type.
        text: of the attachment event.
    """

    key: str
    source: bytes | str
    file_name: str
    media_type: str
    text: str = ""


class Entry(msgspec.Struct):
    """A record as it goes into a session. Its events are appended in one batch, after its files.

    Args:
        number: which record it is.
        digest: the same for equal records; stored with the first event.
        events: at least one, each with its key.
        files: attached first.
        size_bytes: roughly what the events take.
        offset: bytes of the source that were read so far.
        line: where it begins, from 1; 0 if that says nothing.
        problem: what is wrong with it; None if nothing is.
        provisional: counts only until a later record of the format follows it, as an unfinished last line.
    """

    number: RecordNumber
    digest: str
    events: list[Event]
    files: list[File] = []
    size_bytes: int = 0
    offset: int = 0
    line: int = 0
    problem: str | None = None
    provisional: bool = False


class Related(msgspec.Struct):
    """Another file that belongs to the one that is imported, and becomes a session of its own.

    Args:
        source: the file.
        suffix: what its session id adds to the id of the main session.
        labels: of its session; `parent`, the main session, is added.
    """

    source: Source
    suffix: str
    labels: dict[str, str]


class Transcript(msgspec.Struct):
    """What a format module reads from a source.

    Args:
        entries: the records, one at a time.
        labels: for a new session.
        created_at: for a new session; the time of the first record that says one if left out.
        session_id: of the session, if the source knows better than its file name.
        related: other files that are imported with it.
    """

    entries: Iterator[Entry]
    labels: dict[str, str] = {}
    created_at: str | None = None
    session_id: str | None = None
    related: Iterable[Related] = ()


def own_kind(format_name: str, name: object) -> str:
    """Return the kind of what is no part of a transcript, named as the other program names it."""
    return f"{format_name}.{name if isinstance(name, str) and _OWN_KIND.fullmatch(name) else 'record'}"


def valid_kind(kind: object) -> bool:
    """Tell whether an event may have a kind of that name."""
    if not isinstance(kind, str) or is_blank(kind):
        return False
    try:
        return len(kind.encode()) <= KIND_BYTES_MAX
    except UnicodeEncodeError:
        return False


def clip(text: str, limit: int = TEXT_CHARS) -> str:
    """Cut a text that is kept elsewhere in full."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} characters more)"


def pointer(number: RecordNumber) -> str:
    """Return a record's number as text: an index, or a JSON pointer."""
    if isinstance(number, int):
        return str(number)
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in number)


def time_ns(value: object) -> int | None:
    """Return a time in nanoseconds since the epoch: from RFC 3339 text, or a number in s, ms, µs or ns."""
    if isinstance(value, str):
        try:
            moment = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        found = (moment - _EPOCH) // _MICROSECOND * 1000
        return found if -(2**63) <= found < 2**63 else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        for limit, unit in _UNITS:
            if value < limit:
                return int(value * unit)
    return None


def record_time_ns(value: Any) -> int | None:
    """Return when a record says it was made."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name in ("timestamp", "at"):
            found = time_ns(fields.get(name))
            if found is not None:
                return found
    return None
