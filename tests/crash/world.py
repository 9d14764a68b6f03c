"""A store on a simulated disk, driven step by step, with the model of what it has acknowledged."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

import msgspec

from sealog.storage import directory as stores
from sealog.storage import header
from sealog.storage.attachments import (
    Attachment,
    new_stage_name,
    publish_stages,
    stage_attachment,
)
from sealog.storage.directory import SessionLock
from sealog.storage.events import AttachmentData, Event, encode_event, encode_payload
from sealog.storage.log import Log, Remembered, open_log
from sealog.storage.reader import LogReader
from sealog.storage.vfs import FULL_ERRNOS, Directory
from sealog.testing import FaultyFileSystem, SimulatedFileSystem

from .model import Expected, Found, Model, Sure, Tail, Violation, check_found, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealog.storage.recovery import RecoveryReport
    from sealog.storage.vfs import FileSystem
    from sealog.testing import Disk, Fault

STORE = "/data/store"
CREATED_AT = "2025-01-01T00:00:00Z"


def text(size: int, salt: int = 0) -> str:
    """Return text of so many bytes, none of whose sectors is like another."""
    digests = (hashlib.sha256(b"%d %d" % (salt, at)).hexdigest() for at in range(size // 64 + 1))
    return "".join(digests)[:size]


class Owner(msgspec.Struct):
    """An open session: its folder, lock and log."""

    directory: Directory
    lock: SessionLock
    log: Log


class World:
    """The storage API as the library uses it; `model` says at any time what a crash may leave.

    Attributes:
        fs: what the storage layer works on: the machine, or something that stands before it.
        machine: the simulated file system.
        path: of the store.
        model: what may be found, by session id.
        step: called before a step changes the model to what is certain, and after.
    """

    def __init__(self, fs: SimulatedFileSystem, model: Model | None = None, path: str = STORE) -> None:
        self.fs: FileSystem = fs
        self.machine = fs
        self.path = path
        self.model: Model = {} if model is None else dict(model)
        self.owners: dict[str, Owner] = {}
        self.step: Callable[[str], None] = lambda _: None

    def start(self) -> list[str]:
        """Open the store, sweep what a dead one left, and return the ids of the sessions."""
        self.store = stores.open_store_directory(self.fs, self.path, create=True)
        self.marker = stores.claim_store(self.store)
        ids = stores.session_ids(self.store)
        for session_id, expected in self.model.items():
            expected.there.check(session_id in ids, f"session {session_id} exists")
        if set(ids) - set(self.model):
            raise Violation(f"sessions that nobody made: {set(ids) - set(self.model)}")
        return ids

    def create(self, session_id: str) -> None:
        """Make a session and open it."""
        self.model[session_id] = Expected(Sure.MAYBE)
        lock = stores.create_session(self.store, header.new_header(session_id, CREATED_AT, None))
        self._expect(session_id, there=Sure.YES)
        self._own(session_id, lock)

    def open(self, session_id: str, *, torn: bool = True) -> Found:
        """Open a session for writing; from then on what was found must stay.

        Args:
            session_id: the session.
            torn: no disk but a torn one is possible, so that recovery must not call it damaged.
        """
        log = self._own(session_id, stores.lock_session(self.fs, self.store, session_id))
        found = self._look(session_id, log)
        check_found(session_id, self.model[session_id], found)
        self.model[session_id] = exactly(self.model[session_id], found)
        self._check_report(session_id, log.recovered, torn=torn)
        self.step("opened")
        return found

    def _own(self, session_id: str, lock: SessionLock) -> Log:
        directory = self.store.open_directory(session_id)
        try:
            log = open_log(self.fs, self.store, directory, lock)
        except BaseException:
            lock.close()
            raise
        self.owners[session_id] = Owner(directory, lock, log)
        return log

    def commit(self, session_id: str, *texts: str) -> None:
        """Append a batch."""
        at = self.owners[session_id].log.head.position
        self.append(session_id, *(Event("user-message", one, None, at + i) for i, one in enumerate(texts)))

    def attach(self, session_id: str, data: bytes) -> None:
        """Attach a file: staged, put in place, then committed."""
        owner = self.owners[session_id]
        position = owner.log.head.position
        stage = stage_attachment(owner.directory, new_stage_name(), io.BytesIO(data))
        publish_stages(owner.directory, [(stage, position)])
        described = AttachmentData("a.bin", "application/octet-stream", stage.size_bytes, stage.sha256)
        event = Event("attachment", "", msgspec.to_builtins(described), position)
        self._expect(session_id, files={**self.model[session_id].files, position: data})
        self.append(session_id, event)

    def append(self, session_id: str, *events: Event) -> None:
        """Append a batch of any events."""
        log = self.owners[session_id].log
        bodies = [encode_event(one.kind, one.text, one.data, one.at or 0, one.key) for one in events]
        self._expect(session_id, in_flight=events)
        log.commit(encode_payload(bodies), len(events))
        self._expect(session_id, events=self.model[session_id].events + events, in_flight=())
        log.write_mark()

    def commit_failing(self, session_id: str, fault: Fault, *texts: str) -> None:
        """Append a batch while something fails; afterwards it is certainly not there."""
        assert isinstance(self.fs, FaultyFileSystem)
        self.fs.add(fault)
        try:
            self.commit(session_id, *texts)
        except OSError as error:
            if error.errno in FULL_ERRNOS:
                self.owners[session_id].log.roll_back()
            else:
                self._restore(session_id)
        else:
            raise Violation("the commit did not fail")
        self._expect(session_id, in_flight=())

    def _restore(self, session_id: str) -> None:
        """Open the log again under the unbroken lock, as a supervisor does."""
        owner = self.owners[session_id]
        log = owner.log
        remembered = Remembered(log.salt, log.identity, log.head)
        log.close()
        owner.log = open_log(self.fs, self.store, owner.directory, owner.lock, remembered=remembered)
        found = self._look(session_id, owner.log)
        check_found(session_id, msgspec.structs.replace(self.model[session_id], in_flight=()), found)

    def seal(self, session_id: str) -> None:
        """Seal a session."""
        self._expect(session_id, sealed=Sure.MAYBE)
        log = self.owners[session_id].log
        log.seal(hashlib.sha256(), 0)
        self._expect(session_id, sealed=Sure.YES)
        log.write_mark()

    def close(self, session_id: str) -> None:
        """Leave a session as a clean end."""
        owner = self.owners.pop(session_id)
        owner.log.finish(owner.directory)
        owner.log.close()
        owner.lock.close()
        owner.directory.close()
        self.step("closed")

    def delete(self, session_id: str) -> None:
        """Delete a session."""
        owner = self.owners.pop(session_id)
        self._expect(session_id, there=Sure.MAYBE)
        stores.delete_session(self.store, session_id)
        self._expect(session_id, there=Sure.NO)
        owner.log.close()
        owner.lock.close()
        owner.directory.close()

    def expected_tail(self, session_id: str) -> None:
        """Note a tail that opening the session will cut off: no crash may lose it."""
        tail = read_tail(SimulatedFileSystem(self.machine.disk()), session_id)
        known = self.model[session_id].tails
        if tail is not None and tail not in known:
            self._expect(session_id, tails=(*known, tail))

    def _check_report(self, session_id: str, report: RecoveryReport, *, torn: bool) -> None:
        if torn and report.reason == "damaged":
            raise Violation(f"session {session_id}: a torn write is taken for damage")
        if (report.status == "recovered") != (report.quarantined is not None):
            raise Violation(f"session {session_id}: {report}")
        if report.quarantined is not None:
            size = self.fs.open_directory(f"{self.path}/{session_id}/quarantine").stat(
                report.quarantined.rpartition("/")[2]
            )
            if size is None or size.size_bytes != report.dropped_bytes:
                raise Violation(f"session {session_id}: the quarantine does not hold what was cut off")

    def _look(self, session_id: str, log: Log) -> Found:
        events = tuple(log.view.events(0, log.head.position, log.head))
        return Found(events, log.receipt is not None, read_files(self.store, session_id, events))

    def _expect(self, session_id: str, **changes: object) -> None:
        """Change the model; what a crash may leave is looked at before and after."""
        self.step("before the model changes")
        self.model[session_id] = msgspec.structs.replace(self.model[session_id], **changes)
        self.step("after the model changed")


def read_files(store: Directory, session_id: str, events: tuple[Event, ...]) -> dict[int, bytes]:
    """Return the attachments of a session, verified."""
    return {
        position: Attachment(
            session_id,
            f"{STORE}/{session_id}",
            position,
            event,
            lambda: store.open_directory(session_id),
        ).bytes
        for position, event in enumerate(events)
        if event.kind == "attachment"
    }


def read_session(fs: FileSystem, session_id: str, path: str = STORE) -> Found:
    """Read a session as a process does that does not own it."""
    store = fs.open_directory(path)
    reader = LogReader(fs, store.open_directory(session_id), session_id)
    events = tuple(reader.view.events(0, reader.head.position, reader.head))
    found = Found(events, reader.receipt is not None, read_files(store, session_id, events))
    reader.close()
    return found


def read_tail(fs: FileSystem, session_id: str) -> Tail | None:
    """Return the bytes that opening a session will cut off."""
    reader = LogReader(fs, fs.open_directory(f"{STORE}/{session_id}"), session_id)
    start, size = reader.head.end, reader.tail_bytes
    data = reader.view.shared.file.pread(size, start)
    reader.close()
    return Tail(start, data) if size else None


def check_tails(disk: Disk, model: Model) -> None:
    """Check that what recoveries cut off is still in the log, or in quarantine.

    Raises:
        Violation: it is gone.
    """
    files = disk.files()
    for session_id, expected in model.items():
        if expected.there is not Sure.YES:
            continue
        log = files.get(f"{STORE}/{session_id}/log", b"")
        folder = f"{STORE}/{session_id}/quarantine/"
        kept = [data for path, data in files.items() if path.startswith(folder)]
        for tail in expected.tails:
            if log[tail.start :][: len(tail.data)] != tail.data and tail.data not in kept:
                raise Violation(f"session {session_id}: the bytes cut off at {tail.start} are lost")
