r"""KSESSIONLOG 0.2.1, the session log that sealog replaces: `read` and `write` one session in a directory.

`<id>.session-log` is the magic `KSESSIONLOG\n` and frames behind each other, all numbers little-endian:

    +------+------------------+----------------------+---------+
    | kind | payload length   | SHA-256 of payload   | payload |
    | u8   | u64              | 32 bytes             |         |
    +------+------------------+----------------------+---------+
    kind 1, first: {"formatVersion":"0.2.1","sessionId":…,"createdAt":…}
    kind 2:        {"role":…,"text":…}; the event's position is its place in the order
    kind 3, last:  sealed; the payload is empty

`<id>-<position>.pending-object` is the file of an event of the role `pending-object`:

    +-----------------+---------+------+-------+-------+---------------+---------+------+-------+-------+
    | KSPENDING01\n   | version | name | media | bytes | SHA-256 of    | version | name | media | bytes |
    | 12 bytes        | u16     | u32  | u32   | u64   | bytes         | 0.2.1   |      | type  |       |
    +-----------------+---------+------+-------+-------+---------------+---------+------+-------+-------+

The same name with `.tmp` behind it is one that was never finished.
"""

from __future__ import annotations

import os

from ._ksession_format import (
    FORMAT_VERSION,
    LOG_SUFFIX,
    ROLES,
    KEvent,
    KHeader,
    KObject,
    KSession,
    is_session_id,
)
from ._ksession_read import read_session
from ._ksession_write import write_session

__all__ = [
    "FORMAT_VERSION",
    "ROLES",
    "KEvent",
    "KHeader",
    "KObject",
    "KSession",
    "read",
    "session_ids",
    "write",
]


def session_ids(directory: str | os.PathLike[str]) -> list[str]:
    """List the ids that have a log in a directory, sorted; names that cannot be ids are passed over.

    Raises:
        OSError: the directory cannot be read.
    """
    names = os.listdir(os.fspath(directory))
    ids = [name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)]
    return sorted(filter(is_session_id, ids))


def read(directory: str | os.PathLike[str], session_id: str) -> KSession:
    """Read a session, and change nothing.

    What the original program takes is taken and what it refuses is refused, with one exception: where it
    would cut off a damaged frame and valid ones with it, this raises `CorruptionError`. What it would repair
    is left out of the result: a torn tail is counted in `dropped_bytes`, object files that no event refers
    to are listed in `orphans`.

    Args:
        directory: where the session's files are.
        session_id: which session.

    Returns:
        The session with all its objects, each verified.

    Raises:
        InvalidSessionIdError: no session can have this id.
        SessionNotFoundError: there is no such log.
        CorruptionError: the log is damaged; names the byte.
        UpgradeRequiredError: a newer version of the format.
        FormatError: this is no session log, the header is for another session, or an event is not JSON
            that the original takes.
        AttachmentMissingError: the object of an event is not there.
        AttachmentCorruptError: the object of an event is damaged.
        OSError: the files cannot be read.
    """
    return read_session(os.fspath(directory), session_id)


def write(session: KSession, directory: str | os.PathLike[str]) -> None:
    """Write a session as the original would have: log, objects and seal, byte for byte.

    Nothing is ever overwritten. All files are on stable storage when this returns; when it raises, those it
    made are removed. The log comes last, so that a process that is killed leaves no half a session: only
    objects without a log, which the same call takes over.

    Args:
        session: what to write; `dropped_bytes` and `orphans` are ignored.
        directory: where to; made if it does not exist.

    Raises:
        InvalidSessionIdError: the format cannot hold the id.
        InvalidHeaderError: `created_at` is blank or not text.
        InvalidEventError: an event or object that the format cannot hold; names the place.
        LimitExceededError: a file name or a text that is too long.
        SessionExistsError: a file of this session is there already.
        StorageFullError: no space.
        OSError: the files cannot be written.
    """
    write_session(session, os.fspath(directory))
