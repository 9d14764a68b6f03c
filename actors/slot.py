"""The address of one session in this process: its mailbox, its lock, and what its owner has published.

A slot outlives the actors that serve it. Its state is moved by the supervisor only; what readers see is
published by whoever holds the session's turn.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import itertools
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ..storage.directory import open_session_directory
from ..storage.errors import (
    FormatError,
    SessionDeletedError,
    SessionFailedError,
    SessionNotFoundError,
    StoreClosedError,
)
from ..storage.log import Remembered
from ..storage.reader import LogReader
from .mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..storage.directory import SessionLock
    from ..storage.format import Head, Receipt, SessionHeader
    from ..storage.log import Log
    from ..storage.reader import LogView
    from ..storage.recovery import RecoveryReport
    from ..storage.vfs import Directory, FileSystem
    from .mailbox import Wakeable
    from .requests import Reply, Request

Published = tuple["LogView", "Head", "Receipt | None"]

FOLDS_MAX: Final = 32

_ticks: Final = itertools.count(1)


class SlotState(enum.StrEnum):
    """Where a session is in its life."""

    DORMANT = "dormant"
    QUEUED = "queued"
    OPENING = "opening"
    LIVE = "live"
    CLOSING = "closing"
    BACK_OFF = "back-off"
    CHECKED_OUT = "checked-out"
    FAILED = "failed"
    DELETED = "deleted"


class Slot:
    """One session of one store, as this process knows it.

    Attributes:
        mailbox: where its requests wait.
        lock: the session's lock while this process owns it, also between an actor and its successor.
        remembered: what is known of its log from the time it was last open.
        staging: names of attachment stages that threads are writing.
        pins: how many handles want it to stay live.
        state, waiters, checkouts, checked_out_to, faults, cause, verify_full: the supervisor's.
        published: what readers may read: the open log, its durable end, its seal; None while not open here.
        header, recovered: published once by the owner.
    """

    def __init__(
        self, fs: FileSystem, store: Directory, session_id: str, open_me: Callable[[Slot], None]
    ) -> None:
        self.fs = fs
        self.store = store
        self.session_id = session_id
        self.path = f"{store.path}/{session_id}"
        self.mailbox: Mailbox[Request] = Mailbox(lambda: open_me(self))
        self.lock: SessionLock | None = None
        self.remembered: Remembered | None = None
        self.staging: set[str] = set()
        self.pins = 0
        self._small_lock = threading.RLock()  # a handle may be collected while it is held
        self.used = 0

        self.state = SlotState.DORMANT
        self.has_actor = False
        self.waiters: list[Reply] = []
        self.checkouts: deque[Reply] = deque()
        self.checked_out_to: Reply | None = None
        self.faults: deque[float] = deque()
        self.cause: BaseException | None = None
        self.verify_full = False

        self.published: Published | None = None
        self.header: SessionHeader | None = None
        self.recovered: RecoveryReport | None = None
        self.watchers: list[Wakeable] = []
        self._folds: dict[Any, Any] = {}

    @property
    def is_open(self) -> bool:
        """Whether this process has the log open, and so publishes what is appended."""
        return self.published is not None

    def touch(self) -> None:
        """Note a use, for choosing whom to passivate."""
        self.used = next(_ticks)

    def pin(self) -> None:
        """Keep the session from being passivated."""
        with self._small_lock:
            self.pins += 1

    def unpin(self) -> None:
        """Undo one `pin`."""
        with self._small_lock:
            self.pins -= 1

    def open_directory(self) -> Directory:
        """Open the directory of the session.

        Raises:
            SessionNotFoundError: it is gone.
            StoreClosedError: the store was closed in the meantime.
        """
        try:
            return open_session_directory(self.store, self.session_id)
        except OSError as error:
            if error.errno == errno.EBADF:  # of the store's directory, the only descriptor used here
                raise StoreClosedError(self.store.path) from error
            raise

    # -- the owner's side

    def opened(self, log: Log) -> None:
        """Publish an opened log."""
        stale = self.published
        self.header = log.header
        if self.recovered is None or log.recovered.status != "clean" or log.recovered.leftovers:
            self.recovered = log.recovered
        self.published = (log.view, log.head, log.receipt)
        if stale is not None:
            stale[0].shared.release()
        self.wake_watchers()

    def publish(self, log: Log) -> None:
        """Publish what was just committed."""
        self.published = (log.view, log.head, log.receipt)
        if self.watchers:
            self.wake_watchers()

    def wake_watchers(self) -> None:
        """Let subscriptions look again."""
        for signal in tuple(self.watchers):
            signal.set()

    def closed(self, log: Log, *, clean: bool) -> None:
        """Note that an owner has ended.

        After a fault the view stays, so that readers are not shown what the restart will cut off.
        """
        log.unlock()
        self.remembered = Remembered(log.salt, None if clean else log.identity, log.head)
        if clean:
            self.drop_view()

    def drop_view(self) -> None:
        """Stop reading through the last owner's file."""
        published, self.published = self.published, None
        if published is not None:
            published[0].shared.release()
            self.wake_watchers()  # from now on they have to look for themselves

    def release_lock(self) -> None:
        """Give the session up to other processes."""
        self.drop_view()
        lock, self.lock = self.lock, None
        if lock is not None:
            lock.close()
        if self.remembered is not None:
            self.remembered = Remembered(self.remembered.salt, None, self.remembered.head)

    # -- the readers' side

    @contextlib.contextmanager
    def reading(self) -> Generator[tuple[LogView, Head, Receipt | None, SessionHeader]]:
        """Hold the log open for reading, up to what is known to be durable.

        Raises:
            SessionNotFoundError, SessionDeletedError: it is gone.
            CorruptionError, UpgradeRequiredError: it cannot be read.
        """
        reader: LogReader | None = None
        while reader is None:
            published, header = self.published, self.header
            if published is not None and header is not None:
                view, head, receipt = published
                if view.shared.acquire():  # else the log was closed or opened again in between
                    try:
                        yield view, head, receipt, header
                    finally:
                        view.shared.release()
                    return
            else:
                reader = self._open_reader_unless_published()
        try:
            yield reader.view, reader.head, reader.receipt, reader.header
        finally:
            reader.close()

    def _open_reader_unless_published(self) -> LogReader | None:
        """Open a reader; None if an owner has come meanwhile, whose commit in flight it could have seen."""
        try:
            reader = self.open_reader()
        except FormatError:  # the owner may just have been recovering it
            if self.published is None:
                raise
            return None
        if self.published is None:
            return reader
        reader.close()
        return None

    def fold(self, projection: Any, make: Callable[[], Any]) -> Any:
        """Return the cached fold of a projection; the oldest ones are forgotten when there are many."""
        with self._small_lock:
            fold = self._folds.pop(projection, None) or make()
            self._folds[projection] = fold
            while len(self._folds) > FOLDS_MAX:
                del self._folds[next(iter(self._folds))]
            return fold

    def open_reader(self, *, full: bool = False) -> LogReader:
        """Read the log as a process that does not own it; close the reader afterwards.

        Raises:
            SessionNotFoundError, SessionDeletedError: it is gone.
            CorruptionError, UpgradeRequiredError: it cannot be read.
        """
        if self.state is SlotState.DELETED:
            raise self.deleted_error()
        try:
            reader = self._open_reader(full=full)
        except (
            FormatError,
            FileNotFoundError,
        ):  # damaged, or deleted while it was looked at: then it is gone now
            reader = self._open_reader(full=full)
        if self.remembered is not None and reader.view.keys.salt != self.remembered.salt:
            reader.close()
            raise self.deleted_error()
        return reader

    def _open_reader(self, *, full: bool) -> LogReader:
        try:
            directory = self.open_directory()
        except SessionNotFoundError:
            if self.remembered is not None:
                raise self.deleted_error() from None
            raise
        try:
            return LogReader(self.fs, directory, self.session_id, full=full)
        finally:
            directory.close()

    def deleted_error(self) -> SessionDeletedError:
        """Return the error of a handle whose session is gone."""
        return SessionDeletedError(self.session_id, self.path)

    def failed_error(self, cause: BaseException, *, given_up: bool) -> SessionFailedError:
        """Return the error of a request that was not written because of `cause`."""
        return SessionFailedError(self.session_id, self.path, cause, given_up=given_up)

    # -- in a forked child

    def forget_parent(self, error: Callable[[], BaseException]) -> None:
        """Close the child's copies of the descriptors; the lock stays with the parent."""
        self.mailbox.forget_parent(error)
        self._small_lock = threading.RLock()  # a handle may be collected while it is held
        published, self.published = self.published, None
        if published is not None:
            published[0].shared.file.close()
        lock, self.lock = self.lock, None
        if lock is not None:
            lock.abandon()
