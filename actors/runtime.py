"""One store's machinery in this process: its supervisor, its slots, and what handles have it do."""

from __future__ import annotations

import _thread
import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.directory import (
    create_session,
    delete_session,
    lock_session,
)
from ..storage.errors import (
    BlockingCallError,
    SessionDeletedError,
    SessionExistsError,
    SessionNotFoundError,
    SessionNotSealedError,
    StoreClosedError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from ..storage.log import open_log
from .actor import on_actor_thread
from .requests import OneShot
from .slot import Slot
from .supervisor import Supervision, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..storage.directory import SessionLock, StoreMarker
    from ..storage.format import SessionHeader
    from ..storage.recovery import RecoveryReport
    from ..storage.vfs import Directory, FileSystem

_CHILD: Final = "belongs to the parent of this forked process; open it again in this process"


class Runtime:
    """What runs behind the handles of one store.

    Args:
        fs: the file system.
        directory: of the store, open; closed with the runtime.
        marker: the store's shared lock; None for a store that is only read.
        max_live_sessions: how many sessions may have an actor at once.
        exit_timeout_s: how long interpreter exit waits for what was accepted.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: Directory,
        marker: StoreMarker | None,
        max_live_sessions: int,
        exit_timeout_s: float,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.path = directory.path
        self.exit_timeout_s = exit_timeout_s
        self.users = 1
        self.closed = threading.Event()
        self._marker = marker
        self._unusable: str | None = None
        self._slots: weakref.WeakValueDictionary[str, Slot] = weakref.WeakValueDictionary()
        self._slots_lock = threading.Lock()
        self.supervision: Supervision | None = None
        if marker is not None:
            self.supervision = Supervision(
                self.path, max_live_sessions, self.slots, self._forget, self._finished
            )
            Supervisor.start(self.supervision)

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read."""
        return self._marker is None

    @property
    def usable(self) -> bool:
        """Whether calls are possible: neither closed nor in a forked child."""
        return self._unusable is None and not self.closed.is_set()

    def check(self) -> None:
        """Refuse calls on a store that is closed or belongs to the parent process.

        Raises:
            StoreClosedError: it is one of these.
        """
        if self._unusable is not None:
            raise StoreClosedError(self.path, self._unusable)
        if self.closed.is_set():
            raise StoreClosedError(self.path)

    def writable(self, action: str) -> Supervision:
        """Return the supervision, for a call that writes.

        Raises:
            StoreClosedError: the store is closed.
            StoreReadOnlyError: the store was opened for reading.
        """
        self.check()
        if self.supervision is None:
            raise StoreReadOnlyError(self.path, action)
        return self.supervision

    # -- slots

    def slots(self) -> list[Slot]:
        """List the sessions this process knows."""
        with self._slots_lock:
            return list(self._slots.values())

    def slot(self, session_id: str) -> Slot:
        """Return the slot of a session, whether it exists or not."""
        with self._slots_lock:
            slot = self._slots.get(session_id)
            if slot is None:
                slot = Slot(self.fs, self.directory, session_id, self._open_slot)
                self._slots[session_id] = slot
            return slot

    def known(self, session_id: str) -> Slot | None:
        """Return the slot of a session if there is one."""
        return self._slots.get(session_id)

    def _forget(self, slot: Slot) -> None:
        with self._slots_lock:
            if self._slots.get(slot.session_id) is slot:
                del self._slots[slot.session_id]

    def _open_slot(self, slot: Slot) -> None:
        """Ask for an actor: something waits in the mailbox of a dormant session."""
        if self.supervision is not None:
            try:
                self.supervision.tell(self.supervision.wanted, slot)
            except StoreClosedError as error:
                path = error.path
                for request in slot.mailbox.close(lambda: StoreClosedError(path)):
                    request.reply.fail(StoreClosedError(path))

    # -- what handles do

    def ask(
        self,
        action: str,
        method: Callable[..., None],
        *arguments: Any,
        timeout_s: float | None = None,
        reply: OneShot | None = None,
    ) -> Any:
        """Have the supervisor do something and wait for its answer, in a reply of the caller's if given.

        Raises:
            BlockingCallError: on an actor's own thread.
            TimeoutError: no answer in time.
        """
        if on_actor_thread():
            raise BlockingCallError(action)
        supervision = self.writable(action)
        reply = reply or OneShot()
        supervision.tell(method, *arguments, reply=reply)
        if not reply.wait(timeout_s):
            msg = f"store {self.path}: {action} was not done in {timeout_s} s"
            raise TimeoutError(msg)
        return reply.result()

    def open(self, slot: Slot, *, verify_full: bool = False) -> None:
        """Make a session live.

        Raises:
            SealogError: it cannot be opened; what open_log and lock_session raise.
        """
        supervision = self.writable("open_session")
        self.ask("open_session", supervision.open, slot, verify_full)

    @contextlib.contextmanager
    def checked_out(self, slot: Slot, action: str) -> Generator[Callable[[], None]]:
        """Have a session to oneself, without an actor; the yielded function says that it was deleted."""
        supervision = self.writable(action)
        ticket, deleted = OneShot(), list[bool]()
        try:
            self.ask(action, supervision.check_out, slot, reply=ticket)
            yield lambda: deleted.append(True)
        finally:  # also of a caller that was interrupted while it waited
            supervision.tell(supervision.check_in, slot, ticket, bool(deleted))

    def create(self, header: SessionHeader) -> Slot:
        """Make a session and open it.

        Raises:
            SessionExistsError: the id is taken.
            OSError: the disk refused.
        """
        supervision, opened = self.writable("create_session"), OneShot()
        while True:
            self._check_free(header.session_id)
            slot = self.slot(header.session_id)
            try:
                with self.checked_out(slot, "create_session") as say_deleted:
                    if slot.remembered is None:
                        slot.lock = self._create(header)
                        # before it is checked in, when it could go to sleep and give its lock away
                        supervision.tell(supervision.open, slot, False, reply=opened)  # noqa: FBT003
                        break
                    self._check_free(header.session_id)
                    say_deleted()  # its session was deleted by another process: its handles are dead
            except SessionDeletedError:  # a slot that is about to be forgotten
                continue
        opened.wait(None)
        opened.result()
        return slot

    def _create(self, header: SessionHeader) -> SessionLock:
        try:
            return create_session(self.directory, header)
        except FileNotFoundError as error:
            if self.fs.stat(self.path) is None:
                reason = "the folder was removed while the store was open"
                raise StoreNotFoundError(self.path, reason) from error
            raise

    def _check_free(self, session_id: str) -> None:
        if self.directory.stat(session_id) is not None:
            raise SessionExistsError(session_id, f"{self.path}/{session_id}")

    def delete(self, slot: Slot, *, require_sealed: bool) -> None:
        """Delete a session; what its mailbox holds is committed first if it is live.

        Raises:
            SessionNotFoundError: there is none.
            SessionLockedError: another process owns it.
            SessionNotSealedError: it must be sealed and is not.
            OSError: the disk refused.
        """
        with self.checked_out(slot, "delete_session") as say_deleted:
            kept = slot.lock
            lock = kept or lock_session(self.fs, self.directory, slot.session_id)
            try:
                if require_sealed:
                    self._check_sealed(slot)
                delete_session(self.directory, slot.session_id)
                say_deleted()
            finally:
                if lock is not kept:
                    lock.close()

    def _check_sealed(self, slot: Slot) -> None:
        reader = slot.open_reader()
        try:
            if reader.receipt is None:
                raise SessionNotSealedError(slot.session_id, "deleted")
        finally:
            reader.close()

    def recover(self, session_id: str) -> RecoveryReport:
        """Open a session, let recovery do its work, and close it again; a live one only reports.

        Raises:
            SealogError: it cannot be opened.
            OSError: the disk refused.
        """
        while True:
            slot = self.slot(session_id)
            published = slot.published
            if published is not None and slot.recovered is not None:
                return msgspec.structs.replace(slot.recovered, events=published[1].position)
            try:
                with self.checked_out(slot, "recover_all") as say_deleted:
                    if slot.lock is None:
                        slot.lock = lock_session(self.fs, self.directory, session_id)
                    try:
                        return self._recover(slot)
                    except SessionDeletedError:  # this process knew an earlier session of that id
                        say_deleted()
                    finally:
                        slot.release_lock()
            except SessionDeletedError:  # a slot that is about to be forgotten
                continue

    def _recover(self, slot: Slot) -> RecoveryReport:
        if slot.lock is None:
            raise SessionNotFoundError(slot.session_id, self.path)
        directory = slot.open_directory()
        try:
            log = open_log(
                self.fs,
                self.directory,
                directory,
                slot.lock,
                staging=frozenset(slot.staging),
                remembered=slot.remembered,
            )
            log.finish(directory)
            slot.closed(log, clean=True)
            log.close()
        finally:
            directory.close()
        return log.recovered

    # -- the end

    def shut_down(self, timeout_s: float | None) -> None:
        """Commit what was accepted, close all sessions, give the store up.

        Raises:
            TimeoutError: that was not done in time; it goes on, and can be waited for again.
        """
        if self.supervision is None:
            self._finished()
        elif self._unusable is None and not self.closed.is_set():
            with contextlib.suppress(StoreClosedError):
                self.ask("close", self.supervision.shut_down, timeout_s=timeout_s)

    def abandon(self) -> None:
        """Shut down without waiting, when the last handle was dropped and not closed."""
        self.users -= 1
        if self.users > 0:
            return
        if self.supervision is None:
            self._finished()
        else:  # on a thread of its own: the handle may be collected while this one holds any lock
            with contextlib.suppress(RuntimeError):
                _thread.start_new_thread(self._shut_down_abandoned, ())

    def _shut_down_abandoned(self) -> None:
        if self.supervision is not None:
            with contextlib.suppress(StoreClosedError):
                self.supervision.tell(self.supervision.shut_down, reply=OneShot())

    def _finished(self) -> None:
        if self._marker is not None:
            self._marker.close()
        self.closed.set()  # before the directory: who finds that closed knows why
        self.directory.close()

    def forget_parent(self) -> None:
        """In a forked child: close the copies of all descriptors, unlock nothing, refuse all calls."""
        self._unusable = _CHILD
        path = self.path
        self._slots_lock = threading.Lock()
        for slot in list(self._slots.values()):
            slot.forget_parent(lambda: StoreClosedError(path, _CHILD))
        if self.supervision is not None:
            self.supervision.mailbox.forget_parent(lambda: StoreClosedError(path, _CHILD))
        if self._marker is not None:
            self._marker.abandon()
        self.directory.close()
