"""One session of a store on its way into KSESSIONLOG files."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Final

from ..storage.errors import SealogError, SessionExistsError
from ..storage.events import Role
from . import ksessionlog
from ._ksession_format import (
    ROLE_PENDING_OBJECT,
    KEvent,
    KHeader,
    KObject,
    KSession,
    log_name,
    object_name,
)
from ._ksession_kinds import NAME, ROLE_OF, object_key
from .errors import NotExportableError
from .target import Written

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from ..storage.events import Event

_NAMED_MAX: Final = 1_000
_OWN_LABELS: Final = ("format", "file")


def convert(session: ReadableSession) -> tuple[KSession, Written]:
    """Return a session as the format has it, and what it has no place for.

    Raises:
        NotExportableError: it has events that the format cannot hold; names them.
        AttachmentMissingError, AttachmentCorruptError: an attachment cannot be read.
        CorruptionError: an event is damaged.
    """
    sealed = session.is_sealed  # first: what is sealed then has all its events now
    header = session.header
    events: list[KEvent] = []
    refused: list[str] = []
    count = 0
    for position, event in enumerate(session.events()):
        reasons = _refusals(position, event)
        if reasons:
            count += 1
            if count <= _NAMED_MAX:
                refused.append(f"{position} ({', '.join(reasons)})")
        elif not count:
            events.append(KEvent(ROLE_OF[event.kind], event.text))
    if count:
        more = f" and {count - _NAMED_MAX:,} more" if count > _NAMED_MAX else ""
        reason = f"it has no place for what these events are or have: {', '.join(refused)}{more}"
        raise NotExportableError(session.session_id, NAME, reason, tuple(refused))
    objects: dict[int, KObject] = {}
    for position, kept in enumerate(events):
        if kept.role == ROLE_PENDING_OBJECT:
            found = session.read_attachment(position)
            objects[position] = KObject(found.file_name, found.media_type, found.bytes)
    whole = KSession(KHeader(session.session_id, header.created_at), tuple(events), sealed, objects)
    return whole, Written(len(events), dropped=_dropped(len(events), header.labels))


def _refusals(position: int, event: Event) -> list[str]:
    reasons: list[str] = []
    data: Any = event.data
    if event.kind not in ROLE_OF:
        reasons.append(f"kind {event.kind!r}")
    if data is not None and event.kind != Role.ATTACHMENT:
        reasons.append("data")
    own_key = object_key(position) if event.kind == Role.ATTACHMENT else None
    if event.key is not None and event.key != own_key:
        reasons.append(f"key {event.key!r:.100}")
    return reasons


def _dropped(events: int, labels: dict[str, str]) -> list[str]:
    dropped: list[str] = []
    if events:
        dropped.append(f"at, the times of {events:,} event{'s' * (events != 1)}")
    own = _OWN_LABELS if labels.get("format") == NAME else ()
    names = sorted(labels.keys() - own)
    if names:
        dropped.append(f"labels: {', '.join(names)}")
    return dropped


def put_session(wanted: KSession, directory: str, *, overwrite: bool) -> bool:
    """Write a session to a folder; False if it was there already.

    Raises:
        SessionExistsError: another one is there, or what remains of one.
        Everything that `ksessionlog.write` raises.
    """
    session_id = wanted.header.session_id
    in_the_way: SessionExistsError
    try:
        ksessionlog.write(wanted, directory)
    except SessionExistsError as error:
        in_the_way = error
    else:
        return True
    try:
        found = ksessionlog.read(directory, session_id)
    except (SealogError, OSError):
        found = None
    if found is not None and _content(found) == _content(wanted) and not found.dropped_bytes:
        return False
    outgrown = found is not None and _is_beginning(found, wanted)
    if not outgrown and not overwrite:
        raise in_the_way
    _replace(wanted, directory, outgrown=outgrown)
    return True


def _content(session: KSession) -> tuple[Any, ...]:
    return session.header, session.events, session.sealed, session.objects


def _is_beginning(found: KSession, wanted: KSession) -> bool:
    count = len(found.events)
    begin = {position: found for position, found in wanted.objects.items() if position < count}
    return (found.header, found.events, found.objects) == (
        wanted.header,
        wanted.events[:count],
        begin,
    ) and not (found.sealed and (len(wanted.events) > count or not wanted.sealed))


def _replace(wanted: KSession, directory: str, *, outgrown: bool) -> None:
    """Write a session in the place of one that is its beginning, or of anything else that is there."""
    session_id = wanted.header.session_id
    log = log_name(session_id)
    part = tempfile.mkdtemp(".part", ".ksessionlog-", directory)
    fd = os.open(directory, os.O_RDONLY)
    try:
        ksessionlog.write(wanted, part)
        if not outgrown:  # else an old log with new objects could be seen
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, log))
            os.fsync(fd)
        for name in [*(object_name(session_id, position) for position in wanted.objects), log]:
            if name == log:
                os.fsync(fd)
            os.replace(os.path.join(part, name), os.path.join(directory, name))
        os.fsync(fd)
        if not outgrown:
            for name in ksessionlog.read(directory, session_id).orphans:
                os.unlink(os.path.join(directory, name))
    finally:
        os.close(fd)
        shutil.rmtree(part, ignore_errors=True)
