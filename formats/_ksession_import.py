"""One KSESSIONLOG session on its way into a store."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

import msgspec

from ..actors.attaching import Incoming
from ..storage.errors import (
    InvalidEventError,
    PositionConflictError,
    SessionExistsError,
    SessionNotFoundError,
    SessionSealedError,
)
from ..storage.events import AttachmentData, Event, Role, encode_event
from ._ksession_kinds import KINDS, NAME, object_key
from .errors import NotAnImportError
from .reports import ImportReport

if TYPE_CHECKING:
    from ..actors.session import Session
    from ..actors.store import Store
    from ._ksession_format import KSession

_BATCH_EVENTS: Final = 1_000
_BATCH_CHARACTERS: Final = 4 * 1024 * 1024


def import_session(store: Store, found: KSession, session_id: str, path: str) -> ImportReport:
    """Import a session that was read, or what is new in it.

    Nothing is written if sealog cannot hold all of it, or if the store's session is not the beginning of it.
    An import that is interrupted goes on exactly where it stopped.

    Args:
        store: where to.
        found: the session.
        session_id: of the session in the store.
        path: of the log, for reports and errors.
    """
    return _Importer(store, found, session_id, path).run()


class _Importer:
    def __init__(self, store: Store, found: KSession, session_id: str, path: str) -> None:
        self._store = store
        self._found = found
        self._path = path
        self._report = ImportReport(session_id, NAME, len(found.events), source=path)
        self._events: list[Event] = []
        self._compared = 0

    def run(self) -> ImportReport:
        report, found = self._report, self._found
        if found.dropped_bytes:
            report.add_problem(0, f"{found.dropped_bytes:,} bytes at the end were no whole event: left out")
        for name in found.orphans:
            report.add_problem(0, f"{name} belongs to no event: left out")
        self._events = [self._event(position) for position in range(len(found.events))]
        with self._open() as session:
            self._check_header(session)
            while not report.conflicting:
                self._compare(session)
                if not report.conflicting and self._complete(session):
                    break
        return report

    def _event(self, position: int) -> Event:
        """Return the event that the session must have, after checking that it can.

        Raises:
            InvalidEventError: it cannot.
        """
        source = self._found.events[position]
        kind, data = KINDS[source.role], None
        try:
            if kind == Role.ATTACHMENT:
                content = self._found.objects[position]
                Incoming(content.bytes, content.file_name, content.media_type)
                digest = hashlib.sha256(content.bytes).hexdigest()
                described = AttachmentData(content.file_name, content.media_type, len(content.bytes), digest)
                data = msgspec.to_builtins(described)
            encode_event(kind, source.text, data, 0, None)
        except InvalidEventError as error:
            raise InvalidEventError(f"{self._path}: events[{position}].{error.place}", error.reason) from None
        return Event(kind, source.text, data)

    def _open(self) -> Session:
        session_id = self._report.session_id
        try:
            return self._store.open_session(session_id)
        except SessionNotFoundError:
            labels = {"format": NAME, "file": os.path.basename(self._path)}
            try:
                return self._store.create_session(session_id, self._found.header.created_at, labels)
            except SessionExistsError:  # another import was faster
                return self._store.open_session(session_id)

    def _check_header(self, session: Session) -> None:
        created_at = session.header.created_at
        if created_at != self._found.header.created_at:
            self._report.add_conflict(("createdAt",), 0)
            self._report.add_problem(
                0, f"it was created at {self._found.header.created_at}, and the session at {created_at}"
            )

    def _compare(self, session: Session) -> None:
        """Compare what the session holds with the log, as far as that was not done before."""
        report, count = self._report, len(self._events)
        sealed, size = session.is_sealed, len(session)
        for event in session.events(self._compared, min(size, count)):
            position = self._compared
            wanted = self._events[position]
            if (event.kind, event.text, event.data) != (wanted.kind, wanted.text, wanted.data):
                report.add_conflict(position, 0)
            else:
                report.known += 1
                if event.kind == Role.ATTACHMENT:
                    session.read_attachment(position).verify()
            self._compared += 1
        if size > count:
            report.add_problem(0, f"the session has {size - count:,} events more than the log: it went on")
            if self._found.sealed:
                report.add_conflict(count, 0)
        elif size < count and sealed:
            report.add_problem(0, f"the session is sealed, and the log has {count - size:,} events more")
            for position in range(size, count):
                report.add_conflict(position, 0)

    def _complete(self, session: Session) -> bool:
        """Append what is missing, and seal; False if others append meanwhile, and it is to be compared."""
        position, count = self._compared, len(self._events)
        try:
            while position < count:
                if self._events[position].kind == Role.ATTACHMENT:
                    self._attach(session, position)
                    position += 1
                else:
                    batch = self._batch(position)
                    session.append_many(batch, expected=position)
                    position += len(batch)
                    self._note(len(batch))
                self._compared = position
            if self._found.sealed and not session.is_sealed:
                if len(session) != count:
                    return False
                session.seal()
        except (PositionConflictError, SessionSealedError):
            return False
        return True

    def _attach(self, session: Session, position: int) -> None:
        content = self._found.objects[position]
        placed = session.attach(
            content.bytes,
            file_name=content.file_name,
            media_type=content.media_type,
            text=self._events[position].text,
            key=object_key(position),
        )
        if placed != position:
            raise NotAnImportError(
                session.session_id, self._path, f"got other events while event {position} was imported"
            )
        session.read_attachment(position).verify()
        self._report.attachments += 1
        self._note(1)

    def _batch(self, start: int) -> list[Event]:
        batch: list[Event] = []
        size = 0
        for event in self._events[start : start + _BATCH_EVENTS]:
            size += len(event.text)
            if event.kind == Role.ATTACHMENT or (batch and size > _BATCH_CHARACTERS):
                break
            batch.append(event)
        return batch

    def _note(self, count: int) -> None:
        self._report.added += count
        self._report.events += count
