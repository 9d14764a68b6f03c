"""What a session is made with: its id, when, and labels. Checked before anything is written."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from .errors import InvalidHeaderError, InvalidSessionIdError
from .events import is_blank
from .format import SessionHeader

if TYPE_CHECKING:
    from collections.abc import Mapping

CREATED_AT_BYTES_MAX: Final = 64 * 1024
LABELS_BYTES_MAX: Final = 64 * 1024
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}", re.ASCII)


def is_session_id(name: str) -> bool:
    """Tell whether a name is 1–255 characters of `[A-Za-z0-9_-]`."""
    return _SESSION_ID.fullmatch(name) is not None


def check_session_id(session_id: object) -> str:
    """Return the id if it is one.

    Raises:
        InvalidSessionIdError: it is not 1–255 characters of `[A-Za-z0-9_-]`.
    """
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        raise InvalidSessionIdError(session_id)
    return str.__str__(session_id)


def new_header(session_id: str, created_at: object, labels: Mapping[str, str] | None) -> SessionHeader:
    """Return the header of a session to be made.

    Raises:
        InvalidHeaderError: created_at is blank or no text, or labels are not str → str.
    """
    if created_at is None:
        now_ns = time.time_ns()
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
        created_at = f"{seconds}.{now_ns % 10**9 // 1000:06d}Z"
    if not isinstance(created_at, str):
        raise InvalidHeaderError(session_id, "created_at", f"must be a str, not {type(created_at).__name__}")
    if is_blank(created_at):
        raise InvalidHeaderError(session_id, "created_at", "is blank; leave it out to get the time of now")
    if _check_utf8(session_id, "created_at", created_at) > CREATED_AT_BYTES_MAX:
        raise InvalidHeaderError(session_id, "created_at", f"is over {CREATED_AT_BYTES_MAX:,} bytes")
    size = 0
    checked: dict[str, str] = {}
    try:
        items = list({} if labels is None else labels.items())
    except AttributeError:
        raise InvalidHeaderError(
            session_id, "labels", f"must be a dict of str to str, not {type(labels).__name__}"
        ) from None
    for name, value in items:
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidHeaderError(session_id, "labels", f"must be str to str, not {name!r}: {value!r}")
        size += _check_utf8(session_id, "labels", name) + _check_utf8(session_id, "labels", value)
        checked[str.__str__(name)] = str.__str__(value)
    if size > LABELS_BYTES_MAX:
        raise InvalidHeaderError(session_id, "labels", f"are over {LABELS_BYTES_MAX:,} bytes in all")
    return SessionHeader(session_id, str.__str__(created_at), checked)


def _check_utf8(session_id: str, field: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidHeaderError(session_id, field, f"has a lone surrogate: {text!r}") from None
