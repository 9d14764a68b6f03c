"""Stores: folders of sessions, opened with `sealog.open`."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from ..storage.directory import claim_store, open_session_directory, open_store_directory, session_ids
from ..storage.errors import (
    BlockingCallError,
    FormatError,
    SealogError,
    SessionDeletedError,
    SessionLockedError,
    StoreClosedError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from ..storage.header import check_session_id, new_header
from ..storage.recovery import RecoveryReport
from ..storage.repair import RepairReport, repair_session
from ..storage.verify import VerifyReport, verify_session
from ..storage.vfs import OsFileSystem, supported
from .actor import on_actor_thread
from .describing import SessionInfo, describe, glance_at
from .process import open_runtime, release_runtime
from .session import Session
from .slot import SlotState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from ..storage.vfs import FileSystem
    from .runtime import Runtime
    from .slot import Slot


class StoreStats(msgspec.Struct, frozen=True):
    """What a store's machinery is doing in this process.

    Args:
        live_sessions: sessions with an actor: a thread and two descriptors each.
        known_sessions: sessions with a handle or an actor.
        waiting_requests: requests in all mailboxes.
        passivations: sessions put to sleep to make room, since the store was opened.
        restarts: actors started again after a fault, since the store was opened.
        failed_sessions: sessions that are not restarted any more.
    """

    live_sessions: int
    known_sessions: int
    waiting_requests: int
    passivations: int
    restarts: int
    failed_sessions: int


class Store:
    """A folder of sessions. Thread-safe; several handles on one folder share what runs behind them.

    Use it in `with`, or close it: closing commits what was accepted.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._closed = False
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<sealog.Store {self._runtime.path}{' closed' if self._closed else ''}>"

    def __reduce__(self) -> NoReturn:
        msg = "a store handle belongs to its process; send the path and open it there"
        raise TypeError(msg)

    @property
    def path(self) -> str:
        """The store's folder, absolute."""
        return self._runtime.path

    def _check(self) -> Runtime:
        if self._closed:
            raise StoreClosedError(self._runtime.path)
        self._runtime.check()
        return self._runtime

    # -- sessions

    def create_session(
        self, session_id: str, created_at: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Session:
        """Make a session; it is there wholly or not at all.

        Args:
            session_id: 1–255 characters of `[A-Za-z0-9_-]`.
            created_at: any non-blank text; the time of now, RFC 3339 UTC, if left out.
            labels: names and values of your own.

        Raises:
            InvalidSessionIdError, InvalidHeaderError: nothing was made.
            SessionExistsError: the id is taken.
            StoreClosedError, StoreReadOnlyError, BlockingCallError: the call is not possible here.
            OSError: the disk refused.
        """
        runtime = self._check()
        header = new_header(check_session_id(session_id), created_at, labels)
        return Session(self, runtime, runtime.create(header))

    def open_session(self, session_id: str, *, verify: Literal["tail", "full"] = "tail") -> Session:
        """Open a session, with recovery if its last owner died; `with` keeps it live until closed.

        Args:
            session_id: the session.
            verify: `tail` checks the end and the chain of frames, and the rest when it is read; `full`
                reads everything now.

        Raises:
            InvalidSessionIdError: not an id.
            SessionNotFoundError: there is no such session.
            SessionLockedError: another process owns it.
            SessionFailedError: it failed again and again; carries the cause.
            CorruptionError, UpgradeRequiredError: it cannot be used; nothing was changed.
            StoreClosedError, BlockingCallError: the call is not possible here.
        """
        runtime = self._check()
        check_session_id(session_id)
        if verify not in ("tail", "full"):
            msg = f"verify is 'tail' or 'full', not {verify!r}"
            raise ValueError(msg)
        slot = self._existing(session_id)
        if runtime.read_only:
            slot.open_reader(full=verify == "full").close()
        else:
            slot = self._open(slot, full=verify == "full")
        session = Session(self, runtime, slot)
        if verify == "full":
            for _ in session.events():
                pass
        return session

    def _open(self, slot: Slot, *, full: bool) -> Slot:
        try:
            self._runtime.open(slot, verify_full=full)
        except SessionDeletedError:  # this process knew an earlier session of that id
            slot = self._existing(slot.session_id)
            self._runtime.open(slot, verify_full=full)
        return slot

    def _existing(self, session_id: str) -> Slot:
        known = self._runtime.known(session_id)
        if known is not None and known.is_open:
            return known
        open_session_directory(self._runtime.directory, session_id).close()
        return self._runtime.slot(session_id)

    def session_ids(self) -> list[str]:
        """List all sessions, sorted; damaged ones too. Cost: the number of sessions."""
        return session_ids(self._check().directory)

    def describe(self, session_id: str) -> SessionInfo:
        """Look at one session without opening it; a damaged one is described, not raised.

        Raises:
            InvalidSessionIdError: not an id.
            SessionNotFoundError: there is no such session.
        """
        return describe(self._check(), check_session_id(session_id))

    def overview(self) -> Iterator[SessionInfo]:
        """Look at all sessions, in order of their ids, as cheaply as possible.

        Of a log that ended cleanly only the start and the end are read, so damage in the middle of it is not
        seen here, as `describe` sees it near the end and `verify` everywhere.
        """
        runtime = self._check()
        for session_id in session_ids(runtime.directory):
            info = glance_at(runtime, session_id)
            if info is not None:
                yield info

    def recover_all(
        self, progress: Callable[[int, int, RecoveryReport], None] | None = None
    ) -> list[RecoveryReport]:
        """Recover every session now, instead of when it is opened; what cannot be opened is reported.

        Args:
            progress: called after each session with how many are done, how many there are, and its report.

        Returns:
            A report for each session, in order of the ids.

        Raises:
            StoreClosedError, StoreReadOnlyError: the call is not possible here.
        """
        runtime = self._check()
        if runtime.read_only:
            raise StoreReadOnlyError(runtime.path, "recover_all")
        ids = self.session_ids()
        reports: list[RecoveryReport] = []
        for done, session_id in enumerate(ids, 1):
            report = self._recover(session_id)
            reports.append(report)
            if progress is not None:
                progress(done, len(ids), report)
        return reports

    def _recover(self, session_id: str) -> RecoveryReport:
        status: Literal["damaged", "locked", "failed"]
        try:
            return self._runtime.recover(session_id)
        except StoreClosedError:
            raise
        except SessionLockedError as error:
            status, reason = "locked", str(error)
        except FormatError as error:
            status, reason = "damaged", str(error)
        except (SealogError, OSError) as error:
            status, reason = "failed", str(error)
        return RecoveryReport(session_id, status, 0, reason=reason)

    def delete_session(self, session_id: str, *, require_sealed: bool = False) -> None:
        """Delete a session with all that belongs to it, readable or not.

        Args:
            session_id: the session.
            require_sealed: refuse to delete one that is not sealed.

        Raises:
            InvalidSessionIdError, SessionNotFoundError: nothing was deleted.
            SessionLockedError: another process owns it.
            SessionNotSealedError: it is not sealed.
            OSError: the disk refused.
        """
        runtime = self._check()
        check_session_id(session_id)
        runtime.writable("delete_session")
        runtime.delete(self._existing(session_id), require_sealed=require_sealed)

    def verify(self, session_id: str) -> VerifyReport:
        """Check every byte of a session and its attachments. Changes nothing and takes no lock (INV-7).

        Raises:
            InvalidSessionIdError, SessionNotFoundError: there is nothing to check.
            OSError: it cannot be read.
        """
        runtime = self._check()
        return verify_session(runtime.fs, runtime.directory, check_session_id(session_id))

    def repair(self, session_id: str, into: str | os.PathLike[str]) -> RepairReport:
        """Write what can be read of a damaged session into another store; the original is only read.

        Args:
            session_id: the session.
            into: folder of the store that gets the copy; made if missing.

        Raises:
            InvalidSessionIdError, SessionNotFoundError: there is nothing to repair.
            SessionExistsError: that store has a session of this id.
            CorruptionError: nothing at all can be read.
            OSError: reading or writing failed.
        """
        runtime = self._check()
        open_session_directory(runtime.directory, check_session_id(session_id)).close()
        target = open_store_directory(runtime.fs, os.path.abspath(os.fsdecode(into)), create=True)
        try:
            marker = claim_store(target)  # or whoever opens that store sweeps the half-made copy
            try:
                return repair_session(runtime.directory, session_id, target)
            finally:
                marker.close()
        finally:
            target.close()

    def stats(self) -> StoreStats:
        """Return what the store's machinery is doing in this process."""
        runtime = self._check()
        slots = runtime.slots()
        supervision = runtime.supervision
        return StoreStats(
            0 if supervision is None else supervision.live_sessions,
            len(slots),
            sum(len(slot.mailbox) for slot in slots),
            0 if supervision is None else supervision.passivations,
            0 if supervision is None else supervision.restarts,
            sum(slot.state is SlotState.FAILED for slot in slots),
        )

    # -- the handle

    def close(self, timeout: float | None = None) -> None:
        """Give up the handle; the last one commits what was accepted and closes all sessions.

        Args:
            timeout: seconds to wait; None for as long as it takes.

        Raises:
            TimeoutError: not done in time; it goes on, and a second call waits for it again.
            BlockingCallError: on an actor's own thread.
        """
        if on_actor_thread():
            raise BlockingCallError("close")
        if not self._closed:
            self._closed = True
            release_runtime(self._runtime, timeout)
        elif not self._runtime.users:
            self._runtime.shut_down(timeout)

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        runtime: Any = getattr(self, "_runtime", None)
        if runtime is None or self._closed or not runtime.usable:
            return
        self._closed = True
        runtime.abandon()  # first: a warning may be an error
        warnings.warn(f"store {runtime.path} was never closed", ResourceWarning, source=self, stacklevel=2)


def open_store(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    max_live_sessions: int = 256,
    exit_timeout_s: float = 5.0,
    file_system: FileSystem | None = None,
) -> Store:
    """Open a store: a folder of sessions.

    Args:
        path: of the folder; made with its parents if missing, unless `create` is False or it is read-only.
        read_only: take no locks, start no threads, change nothing.
        create: make a store that is not there.
        max_live_sessions: how many sessions have a thread and open files at once; others sleep until used.
        exit_timeout_s: how long interpreter exit waits for appends that were accepted.
        file_system: where the store lives, for tests with `sealog.testing`; that of the system if left out.

    Returns:
        A store, to be closed or used in `with`. All stores on one folder in a process share one runtime, and
        the settings of the first.

    Raises:
        StoreNotFoundError: nothing is there and it should not be made, or something else is there.
        StoreReadOnlyError: it cannot be written, and was not opened read-only.
        UpgradeRequiredError: the store was made by a newer version.
        ValueError: a bound that is not positive.
        OSError: it cannot be made, opened or locked; on platforms without POSIX file locks.
    """
    if max_live_sessions < 1 or exit_timeout_s < 0:
        bounds = f"{max_live_sessions=}, {exit_timeout_s=}"
        msg = f"at least one session must be live, and no time is negative: {bounds}"
        raise ValueError(msg)
    if not os.fspath(path):
        raise StoreNotFoundError("''", "the path is empty; '.' is the current folder")
    if file_system is None and not supported():
        msg = "sealog needs POSIX file locks and positioned writes: Linux or macOS"
        raise OSError(msg)
    runtime = open_runtime(
        OsFileSystem() if file_system is None else file_system,
        os.path.abspath(os.fsdecode(path)),
        read_only=read_only,
        create=create,
        max_live_sessions=max_live_sessions,
        exit_timeout_s=exit_timeout_s,
    )
    return Store(runtime)
