"""KSESSIONLOG 0.2.1: the types, sizes and names that its reader and its writer share."""

from __future__ import annotations

import builtins
import re
import struct
from typing import Final

import msgspec

FORMAT_VERSION: Final = "0.2.1"

LOG_SUFFIX: Final = ".session-log"
LOG_MAGIC: Final = b"KSESSIONLOG\n"
KIND_HEADER: Final = 1
KIND_EVENT: Final = 2
KIND_SEALED: Final = 3
FRAME_HEADER: Final = struct.Struct("<BQ32s")
"""Kind, payload length, SHA-256 of the payload."""

OBJECT_SUFFIX: Final = ".pending-object"
TEMPORARY_SUFFIX: Final = ".tmp"
OBJECT_MAGIC: Final = b"KSPENDING01\n"
OBJECT_HEADER: Final = struct.Struct("<12sHIIQ32s")
"""Magic, lengths of version, file name, media type and bytes, SHA-256 of the bytes."""

U64_MAX: Final = 2**64 - 1
U32_MAX: Final = 2**32 - 1

ROLE_PENDING_OBJECT: Final = "pending-object"
ROLES: Final = (
    "system-message",
    "system-error",
    "user-message",
    "kennedy-message",
    "kennedy-tool-call",
    "tool-result",
    "tool-error",
    "object",
    ROLE_PENDING_OBJECT,
)
"""Every role of the format, in its own order."""

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")


class KHeader(msgspec.Struct, frozen=True):
    """Who the session is: its id, and the text its writer gave as the time of creation."""

    session_id: str
    created_at: str


class KEvent(msgspec.Struct, frozen=True):
    """One entry; its position is its index. `role` is one of `ROLES`."""

    role: str
    text: str


class KObject(msgspec.Struct, frozen=True):
    """The file that belongs to a `pending-object` event."""

    file_name: str
    media_type: str
    bytes: builtins.bytes


class KSession(msgspec.Struct, frozen=True):
    """One session, whole.

    Args:
        header: id and time of creation.
        events: in order.
        sealed: nothing can follow.
        objects: by position, one for each `pending-object` event.
        dropped_bytes: size of the torn tail that reading left out; writing ignores it.
        orphans: names of object files that no event refers to, sorted; writing ignores them.
    """

    header: KHeader
    events: tuple[KEvent, ...] = ()
    sealed: bool = False
    objects: dict[int, KObject] = {}
    dropped_bytes: int = 0
    orphans: tuple[str, ...] = ()


def is_session_id(session_id: object) -> bool:
    """Tell whether the format takes this as an id: 1 to 255 of A-Z, a-z, 0-9, `_` and `-`."""
    return isinstance(session_id, str) and _SESSION_ID.fullmatch(session_id) is not None


def log_name(session_id: str) -> str:
    """Return the file name of a session's log."""
    return session_id + LOG_SUFFIX


def object_name(session_id: str, position: int) -> str:
    """Return the file name of the object at a position."""
    return f"{session_id}-{position}{OBJECT_SUFFIX}"


def object_name_pattern(session_id: str) -> re.Pattern[str]:
    """Return what full-matches the names of a session's object files: group 1 position, group 2 temporary.

    A position may still be over `U64_MAX`, which makes the name a stranger's.
    """
    suffix, temporary = re.escape(OBJECT_SUFFIX), re.escape(TEMPORARY_SUFFIX)
    return re.compile(f"{re.escape(session_id)}-(0|[1-9][0-9]*){suffix}({temporary})?")
