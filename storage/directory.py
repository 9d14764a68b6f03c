"""Stores and sessions as directories: made and deleted atomically, owned through locks.

Layout: docs/format.md, "The store".
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any, Final, cast

from .errors import (
    CorruptionError,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
    StorageFullError,
    StoreNotFoundError,
    UpgradeRequiredError,
)
from .format import HEAD_MARK_SIZE, HOLDER_OFFSET
from .header import is_session_id
from .log import create_log
from .reader import LOCK_NAME, LOG_NAME
from .vfs import FULL_ERRNOS, close_quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .format import SessionHeader
    from .vfs import Directory, File, FileSystem

MARKER_NAME: Final = ".sealog"
MARKER_TEXT: Final = b"sealog store 1\n"
NEW_PREFIX: Final = ".new-"
TRASH_PREFIX: Final = ".trash-"
HOLDER_SIZE: Final = 192
_LOCK_TRIES: Final = 100

logger = logging.getLogger("sealog")


class StoreMarker:
    """The marker file of a store, with a shared lock on it for as long as the store may be written."""

    def __init__(self, file: File) -> None:
        self._file = file

    def close(self) -> None:
        """Give up the lock."""
        with contextlib.suppress(OSError):
            self._file.unlock()
        self._file.close()

    def abandon(self) -> None:
        """Close the descriptor and leave the lock to the process that took it."""
        self._file.close()


def open_store_directory(fs: FileSystem, path: str, *, create: bool) -> Directory:
    """Open the directory of a store; make it, its parents and its marker if wanted.

    Args:
        fs: the file system.
        path: absolute.
        create: make what is missing.

    Raises:
        StoreNotFoundError: there is no store, or something else stands there.
        UpgradeRequiredError: the store was made by a newer version.
        OSError: it cannot be made or opened.
    """
    found = fs.stat(path)
    if found is None:
        if not create:
            raise StoreNotFoundError(path, "nothing is there; check the path, or make a store there first")
        _make_directories(fs, path)
    elif not found.is_directory:
        raise StoreNotFoundError(path, "a file is there; a store is a directory")
    try:
        directory = fs.open_directory(path)
    except FileNotFoundError as error:
        raise StoreNotFoundError(path, "a link is there that leads nowhere") from error
    try:
        if directory.stat(MARKER_NAME) is None:
            if not create:
                raise StoreNotFoundError(  # noqa: TRY301 — the directory must be closed on the way out
                    path, f"the directory there has no {MARKER_NAME} file; check the path"
                )
            _sync_above(fs, path)
            _make_marker(directory)
        _check_marker(directory, create=create)
    except BaseException:
        directory.close()
        raise
    return directory


def _make_directories(fs: FileSystem, path: str) -> None:
    parent = os.path.dirname(path)
    above = fs.stat(parent)
    if above is None:
        _make_directories(fs, parent)
    elif not above.is_directory:
        raise StoreNotFoundError(path, f"{parent} is a file, so no directory can be made in it")
    with contextlib.suppress(FileExistsError):
        fs.make_directory(path)


def _sync_above(fs: FileSystem, path: str) -> None:
    """Make the way to a new store durable: whoever made a directory on it may have died before its sync."""
    while (above := os.path.dirname(path)) != path:
        path = above
        try:
            directory = fs.open_directory(path)
        except PermissionError:  # not ours: we make directories that we can read
            continue
        try:
            directory.sync()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EINVAL):
                raise
        finally:
            directory.close()


def _make_marker(directory: Directory) -> None:
    """Make the marker in its place: of several first openers one makes it, and none replaces a locked one."""
    try:
        file = directory.open(MARKER_NAME, create=True)
    except FileExistsError:
        return
    try:
        _write_marker(directory, file)
    finally:
        file.close()


def _write_marker(directory: Directory, file: File) -> None:
    file.pwrite(MARKER_TEXT, 0)
    file.sync_data()
    directory.sync()


def _check_marker(directory: Directory, *, create: bool) -> None:
    try:
        file = directory.open(MARKER_NAME, write=create)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO):
            raise StoreNotFoundError(directory.path, f"its {MARKER_NAME} is not a regular file") from error
        raise
    try:
        text = file.pread(len(MARKER_TEXT) + 1, 0)
        if text != MARKER_TEXT and MARKER_TEXT.startswith(text.rstrip(b"\0")):
            # Its maker is not done yet, or died over it: what it writes is what is written here.
            if create:
                _write_marker(directory, file)
            text = MARKER_TEXT
    finally:
        file.close()
    if not text.startswith(MARKER_TEXT.split()[0]):
        raise StoreNotFoundError(
            directory.path, f"its {MARKER_NAME} file is damaged; it should hold the line {MARKER_TEXT!r}"
        )
    if text != MARKER_TEXT:
        raise UpgradeRequiredError(
            f"{directory.path}/{MARKER_NAME}",
            0,
            f"the store's marker says {text[:32]!r}, not {MARKER_TEXT!r}",
        )


def claim_store(directory: Directory) -> StoreMarker:
    """Hold the shared lock of a store; sweep it first if nobody else holds it.

    Raises:
        OSError: locks are not supported there, or the sweep failed.
    """
    file = directory.open(MARKER_NAME, write=True)
    try:
        if _lock(file, exclusive=True):
            _sweep_store(directory)
        # Not atomic: another store may sweep in between, when nothing of ours is there yet.
        _lock(file, exclusive=False, wait=True)
    except BaseException:
        file.close()
        raise
    return StoreMarker(file)


def _lock(file: File, *, exclusive: bool, wait: bool = False) -> bool:
    try:
        return file.lock(exclusive=exclusive, wait=wait)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(
                error.errno,
                "this file system has no locks, without which two owners could not be kept apart; "
                "put the store on a local file system",
                file.path,
            ) from error
        raise


def _sweep_store(directory: Directory) -> None:
    """Remove half-made and half-deleted sessions, with the exclusive lock held: ours and dead (INV-6)."""
    dead = [name for name in directory.names() if name.startswith((NEW_PREFIX, TRASH_PREFIX))]
    if dead:
        directory.sync()  # an unsynced move to the trash must not come undone once the session is emptied
    for name in dead:
        try:
            remove_tree(directory, name)
        except OSError as error:  # the store works with it, and the next sweep tries again
            logger.warning("%s/%s is left over and cannot be removed: %s", directory.path, name, error)


def remove_tree(directory: Directory, name: str) -> None:
    """Remove an entry with all it holds, following no links."""
    found = directory.stat(name)
    if found is None:
        return
    if not found.is_directory:
        directory.unlink(name)
        return
    inner = directory.open_directory(name)
    try:
        for entry in inner.names():
            remove_tree(inner, entry)
    finally:
        inner.close()
    directory.remove_directory(name)


def session_ids(directory: Directory) -> list[str]:
    """List the sessions of a store, sorted: directories named as sessions that hold a log or a lock."""
    return sorted(name for name in directory.names() if is_session_id(name) and _is_session(directory, name))


def _is_session(directory: Directory, name: str) -> bool:
    found = directory.stat(name)
    if found is None or not found.is_directory:
        return False
    try:
        return any(directory.stat(f"{name}/{entry}") is not None for entry in (LOG_NAME, LOCK_NAME))
    except PermissionError:  # a list never fails because of one entry
        return True


def open_session_directory(store: Directory, session_id: str) -> Directory:
    """Open the directory of a session.

    Raises:
        SessionNotFoundError: there is none; a link or a file of that name is none either.
    """
    try:
        return store.open_directory(session_id)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise SessionNotFoundError(session_id, store.path) from error
        raise


class SessionLock:
    """The held lock of a session, and the head mark beside it."""

    def __init__(self, file: File, session_id: str) -> None:
        self._file = file
        self.session_id = session_id

    def read_mark(self) -> bytes:
        """Return the bytes of the head mark."""
        return self._file.pread(HEAD_MARK_SIZE, 0)

    def write_mark(self, mark: bytes) -> None:
        """Write the head mark; not synced, since it is true whenever it is there."""
        self._file.pwrite(mark, 0)

    def sync(self) -> None:
        """Make the mark durable."""
        self._file.sync_data()

    def close(self) -> None:
        """Give the session up. Unlocking also frees copies of the descriptor in forked children."""
        with contextlib.suppress(OSError):
            self._file.unlock()
        self._file.close()

    def abandon(self) -> None:
        """Close the descriptor and leave the lock to the process that took it."""
        self._file.close()


def lock_session(fs: FileSystem, store: Directory, session_id: str) -> SessionLock:
    """Take the lock of a session, and note who holds it.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionLockedError: another process holds it; names that process.
    """
    for _ in range(_LOCK_TRIES):
        directory = open_session_directory(store, session_id)
        file: File | None = None
        try:
            file = _open_lock_file(directory)
            if not _lock(file, exclusive=True):
                raise SessionLockedError(session_id, file.path, _read_holder(file))
            # A session deleted and made anew meanwhile has another lock file at the same path.
            there = fs.stat(file.path)
            if there is not None and there.identity == file.stat().identity:
                file.pwrite(_holder(), HOLDER_OFFSET)
                lock, file = SessionLock(file, session_id), None
                return lock
        finally:
            close_quietly(file, directory)
    raise SessionLockedError(session_id, f"{store.path}/{session_id}/{LOCK_NAME}", None)


def _open_lock_file(directory: Directory) -> File:
    if directory.stat(LOCK_NAME) is None:  # restored from a backup that left it out
        if directory.stat(LOG_NAME) is None:
            raise CorruptionError(f"{directory.path}/{LOG_NAME}", 0, 0, "the log is missing")
        with contextlib.suppress(FileExistsError):
            return directory.open(LOCK_NAME, create=True)
    return directory.open(LOCK_NAME, write=True)


def _holder() -> bytes:
    text = json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname()[:64],
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
    )
    return text.encode().ljust(HOLDER_SIZE - 1) + b"\n"


def _read_holder(file: File) -> dict[str, Any] | None:
    try:
        holder = json.loads(file.pread(HOLDER_SIZE, HOLDER_OFFSET))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", holder) if isinstance(holder, dict) else None


def create_session(
    store: Directory,
    header: SessionHeader,
    batches: Iterable[tuple[bytes, int]] = (),
    fill: Callable[[Directory], None] | None = None,
) -> SessionLock:
    """Make a session: built aside with its lock held, synced, moved into place, synced.

    Args:
        store: directory of the store.
        header: of the session.
        batches: payloads and event counts of frames that the log starts with.
        fill: puts further files into the directory, before it is moved into place.

    Returns:
        The held lock.

    Raises:
        SessionExistsError: the id is taken.
        StorageFullError: no space; nothing is left but what the next sweep removes.
        OSError: the disk refused; likewise.
    """
    session_id = header.session_id
    path = f"{store.path}/{session_id}"
    if store.stat(session_id) is not None:
        raise SessionExistsError(session_id, path)
    name = f"{NEW_PREFIX}{secrets.token_hex(8)}"
    store.make_directory(name)
    lock_file: File | None = None
    directory: Directory | None = None
    try:
        directory = store.open_directory(name)
        lock_file = directory.open(LOCK_NAME, create=True)
        _lock(lock_file, exclusive=True)
        lock_file.pwrite(_holder(), HOLDER_OFFSET)
        create_log(directory, header, batches)
        if fill is not None:
            fill(directory)
        directory.sync()
        try:
            store.rename(name, store, session_id)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise SessionExistsError(session_id, path) from error
            raise
        _sync_or_undo(store, session_id, name)
    except BaseException as error:
        close_quietly(lock_file)
        with contextlib.suppress(OSError):
            remove_tree(store, name)
        if isinstance(error, OSError) and error.errno in FULL_ERRNOS:
            raise StorageFullError(session_id, path, error.errno) from error
        raise
    finally:
        close_quietly(directory)
    return SessionLock(lock_file, session_id)


def _sync_or_undo(store: Directory, session_id: str, name: str) -> None:
    """Make a rename durable, or take it back: what was reported as not made must not be there."""
    try:
        store.sync()
    except BaseException:
        with contextlib.suppress(OSError):
            store.rename(session_id, store, name)
        raise


def delete_session(store: Directory, session_id: str) -> None:
    """Remove a session whose lock is held: moved aside, synced, removed. Its log need not be readable.

    Raises:
        SessionNotFoundError: it is gone already.
        OSError: the disk refused; what is moved aside already is removed by the next sweep.
    """
    trash = f"{TRASH_PREFIX}{secrets.token_hex(8)}"
    try:
        store.rename(session_id, store, trash)
    except FileNotFoundError as error:
        raise SessionNotFoundError(session_id, store.path) from error
    store.sync()
    remove_tree(store, trash)
    store.sync()
