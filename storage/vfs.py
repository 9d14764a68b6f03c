"""The one interface between sealog and the file system, and its implementation on the operating system.

Everything in `storage/` reads and writes through these protocols, so that a simulator can stand behind them
(`sealog.testing`). Names are always relative to an open directory, symbolic links are never followed, and
what is not a regular file is refused. Files are created 0600 and directories 0700 whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat as stat_module
import sys
from typing import TYPE_CHECKING, Protocol

import msgspec

if sys.platform != "win32":  # `supported` says so there
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

PIECE_BYTES = 1024 * 1024
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No space, quota or file-size limit: the disk works, it is only full."""


class FileStat(msgspec.Struct, frozen=True):
    """What a path names: `identity` tells two files apart, whatever their names."""

    identity: tuple[int, int]
    size_bytes: int
    is_directory: bool
    modified_ns: int
    mode: int


class File(Protocol):
    """An open file."""

    path: str

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`; fewer only at the end of the file."""
        ...

    def pwrite(self, data: bytes, offset: int) -> None:
        """Write all of `data` at `offset`, or raise OSError with any part of it written."""
        ...

    def sync_data(self) -> None:
        """Return when the contents, and the size needed to read them, are on stable storage."""
        ...

    def truncate(self, size: int) -> None:
        """Set the size of the file."""
        ...

    def allocate(self, offset: int, size: int) -> bool:
        """Reserve space that reads as zeros, growing the file; False where that is not supported."""
        ...

    def stat(self) -> FileStat:
        """Describe the open file, whatever its path names now."""
        ...

    def lock(self, *, exclusive: bool, wait: bool = False) -> bool:
        """Take the file's lock, which dies with the process; False if another one holds it."""
        ...

    def unlock(self) -> None:
        """Give the lock back, also for copies of the descriptor in forked children."""
        ...

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        ...


class Directory(Protocol):
    """An open directory; names are relative to it."""

    path: str

    def open(self, name: str, *, write: bool = False, create: bool = False) -> File:
        """Open a regular file, also one of a folder here (`a/b`); with `create` it must be new."""
        ...

    def open_directory(self, name: str) -> Directory:
        """Open a directory in this one."""
        ...

    def make_directory(self, name: str) -> None:
        """Make a directory."""
        ...

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """Move an entry, replacing a file of the new name."""
        ...

    def unlink(self, name: str) -> None:
        """Remove a file."""
        ...

    def remove_directory(self, name: str) -> None:
        """Remove an empty directory."""
        ...

    def names(self) -> list[str]:
        """List the entries, in no order."""
        ...

    def stat(self, name: str) -> FileStat | None:
        """Describe an entry, or one of a folder here (`a/b`), not following a link; None if there is none."""
        ...

    def sync(self) -> None:
        """Return when the entries are on stable storage."""
        ...

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        ...


class FileSystem(Protocol):
    """Where a store lives."""

    def open_directory(self, path: str) -> Directory:
        """Open a directory by its path; the last part may be a link."""
        ...

    def make_directory(self, path: str) -> None:
        """Make one directory."""
        ...

    def stat(self, path: str) -> FileStat | None:
        """Describe what a path names, following links; None if nothing."""
        ...


def supported() -> bool:
    """Tell whether this platform has what durability and ownership need: Linux and macOS have."""
    return sys.platform != "win32" and hasattr(os, "pwrite")


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(
        (found.st_dev, found.st_ino),
        found.st_size,
        stat_module.S_ISDIR(found.st_mode),
        found.st_mtime_ns,
        stat_module.S_IMODE(found.st_mode),
    )


if sys.platform == "darwin":  # fsync there leaves the data in the drive's cache

    def _sync_data(fd: int) -> None:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
else:
    _sync_data = getattr(os, "fdatasync", os.fsync)


@contextlib.contextmanager
def _named(path: str) -> Generator[None]:
    """Let errors name the whole path, and not only the name in its directory."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


class OsFile:
    """A file of the operating system."""

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path

    def pread(self, size: int, offset: int) -> bytes:
        """See `File`."""
        data = os.pread(self._fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (more := os.pread(self._fd, size - got, offset + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def pwrite(self, data: bytes, offset: int) -> None:
        """See `File`."""
        written = os.pwrite(self._fd, data, offset)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], offset + written)

    def sync_data(self) -> None:
        """See `File`."""
        _sync_data(self._fd)

    def truncate(self, size: int) -> None:
        """See `File`."""
        os.ftruncate(self._fd, size)

    def allocate(self, offset: int, size: int) -> bool:
        """See `File`."""
        if not hasattr(os, "posix_fallocate"):
            return False
        try:
            os.posix_fallocate(self._fd, offset, size)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, *FULL_ERRNOS):
                return False
            raise
        return True

    def stat(self) -> FileStat:
        """See `File`."""
        return _file_stat(os.fstat(self._fd))

    def lock(self, *, exclusive: bool, wait: bool = False) -> bool:
        """See `File`."""
        operation = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.flock(self._fd, operation if wait else operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """See `File`."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """See `File`."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsDirectory:
    """A directory of the operating system."""

    __slots__ = ("_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path

    def open(self, name: str, *, write: bool = False, create: bool = False) -> OsFile:
        """See `Directory`."""
        # O_NONBLOCK: a FIFO put in a file's place must not hang the open; it means nothing for regular files.
        flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_RDWR if write or create else os.O_RDONLY)
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        path = f"{self.path}/{name}"
        with _named(path):
            fd = os.open(name, flags, FILE_MODE, dir_fd=self._fd)
        try:
            if create:
                os.fchmod(fd, FILE_MODE)
            elif not stat_module.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)  # noqa: TRY301 — closed on the way out
        except BaseException:
            os.close(fd)
            raise
        return OsFile(fd, path)

    def open_directory(self, name: str) -> OsDirectory:
        """See `Directory`."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        path = f"{self.path}/{name}"
        with _named(path):
            return OsDirectory(os.open(name, flags, dir_fd=self._fd), path)

    def make_directory(self, name: str) -> None:
        """See `Directory`."""
        with _named(f"{self.path}/{name}"):
            os.mkdir(name, DIRECTORY_MODE, dir_fd=self._fd)
            os.chmod(name, DIRECTORY_MODE, dir_fd=self._fd)

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """See `Directory`."""
        assert isinstance(target, OsDirectory)  # noqa: S101 — directories of two file systems are never mixed
        os.rename(name, new_name, src_dir_fd=self._fd, dst_dir_fd=target._fd)  # noqa: SLF001

    def unlink(self, name: str) -> None:
        """See `Directory`."""
        with _named(f"{self.path}/{name}"):
            os.unlink(name, dir_fd=self._fd)

    def remove_directory(self, name: str) -> None:
        """See `Directory`."""
        with _named(f"{self.path}/{name}"):
            os.rmdir(name, dir_fd=self._fd)

    def names(self) -> list[str]:
        """See `Directory`."""
        # Not by this descriptor: listing moves its offset, which other threads share.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def stat(self, name: str) -> FileStat | None:
        """See `Directory`."""
        try:
            return _file_stat(os.stat(name, dir_fd=self._fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sync(self) -> None:
        """See `Directory`."""
        os.fsync(self._fd)

    def close(self) -> None:
        """See `Directory`."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsFileSystem:
    """The operating system's file system."""

    def open_directory(self, path: str) -> OsDirectory:
        """See `FileSystem`."""
        return OsDirectory(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)

    def make_directory(self, path: str) -> None:
        """See `FileSystem`."""
        os.mkdir(path, DIRECTORY_MODE)
        os.chmod(path, DIRECTORY_MODE)

    def stat(self, path: str) -> FileStat | None:
        """See `FileSystem`."""
        try:
            return _file_stat(os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None


def pieces(file: File, start: int, end: int) -> Iterator[bytes]:
    """Read a stretch of a file, a piece at a time."""
    for offset in range(start, end, PIECE_BYTES):
        yield file.pread(min(PIECE_BYTES, end - offset), offset)


def close_quietly(*handles: File | Directory | None) -> None:
    """Close what is there, on the way out of an error that says more."""
    for handle in handles:
        if handle is not None:
            with contextlib.suppress(OSError):
                handle.close()


def sync_if_possible(file: File) -> None:
    """Sync a file that was opened for reading; a read-only file system has nothing unsynced."""
    try:
        file.sync_data()
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EINVAL):
            raise
