"""What the readable exports share: text that shows what it holds, times, the heading of a session."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.attachments import Attachment
from ..storage.errors import AttachmentCorruptError, AttachmentMissingError
from ..storage.events import Event
from .jsontext import to_json
from .restoring import current_items, is_imported, items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..actors.readable import ReadableSession

__all__ = ["Shown", "data_text", "heading", "shown_events", "time_text", "visible"]

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls; tabs and line ends are text
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the text around them
    "\u2028\u2029\ufeff\U000e0000-\U000e007f]"  # line ends and tags that nobody sees
)


class Shown(msgspec.Struct):
    """An event to show.

    Args:
        position: of the event.
        event: the event.
        attachment: its file, if it is an attachment and the file is there as it was.
        problem: why the file cannot be shown.
    """

    position: int
    event: Event
    attachment: Attachment | None = None
    problem: str | None = None


def visible(text: str) -> str:
    """Return text with everything escaped that is not seen, or that moves what is."""
    return _HIDDEN.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 — what \x can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def time_text(at: int | None) -> str:
    """Return a time as RFC 3339 in UTC, to the millisecond."""
    if at is None:
        return ""
    try:
        moment = dt.datetime.fromtimestamp(at // 10**9, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{at} ns"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at // 10**6 % 1000:03d}Z"


def data_text(event: Event) -> str:
    """Return an event's data as JSON to read, of an imported record only the record's; or nothing."""
    data: Any = event.data
    if is_imported(data):
        data = data.get("json")
    if event.kind == "attachment" or data is None:
        return ""
    return json.dumps(json.loads(to_json(data)), ensure_ascii=False, indent=2)


def heading(session: ReadableSession) -> list[tuple[str, str]]:
    """Return what is said about a session before its events."""
    header = session.header
    facts = [("created", header.created_at), ("events", str(len(session)))]
    facts.extend(sorted(header.labels.items()))
    if session.is_sealed:
        facts.append(("sealed", "yes"))
    return facts


def shown_events(session: ReadableSession) -> Iterator[Shown]:
    """Iterate over the events to show; the file of an attachment is verified first."""
    for item in current_items(items(session)):
        for position, event in enumerate(item.events, item.position):
            yield (
                _attached(session, position, event) if event.kind == "attachment" else Shown(position, event)
            )


def _attached(session: ReadableSession, position: int, event: Event) -> Shown:
    try:
        attachment = session.read_attachment(position)
        attachment.verify()
    except (AttachmentMissingError, AttachmentCorruptError) as error:
        return Shown(position, event, problem=f"not shown: {error.reason}")
    return Shown(position, event, attachment)
