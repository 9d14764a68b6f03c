"""A file system whose calls fail when they are told to: any call, with any errno, once or for ever."""

from __future__ import annotations

import errno
import itertools
import os
import threading
from typing import TYPE_CHECKING, NoReturn

import msgspec

from .handles import SimulatedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage.vfs import Directory, File, FileStat, FileSystem


class Fault(msgspec.Struct, frozen=True):
    """Calls that fail.

    Args:
        errno: of the OSError.
        call: name of the method; None means any.
        path: text that the path must contain.
        number: the first matching call that fails, counted from 1 when the fault is added.
        times: how many matching calls fail from there on; None means all.
        written: bytes of a failing `pwrite` that reach the file before it fails.
        lossy: a failing `sync_data` of a simulated file loses what was not synced: it can still be read, but
            no later sync writes it, as Linux does it.
    """

    errno: int
    call: str | None = None
    path: str = ""
    number: int = 1
    times: int | None = 1
    written: int = 0
    lossy: bool = False

    def hits(self, matched: int) -> bool:
        """Tell whether the matching call of this number fails."""
        return self.number <= matched and (self.times is None or matched < self.number + self.times)


class FaultyFileSystem:
    """A file system that does what another one does, and fails where it is told to. Safe to use from threads.

    Attributes:
        free_bytes: how much files may still grow before ENOSPC, None for no limit; may be changed any time.
        calls: every call so far, as method and path.
        failed: the calls that failed.
    """

    def __init__(self, inner: FileSystem, *faults: Fault, free_bytes: int | None = None) -> None:
        """Wrap `inner`."""
        self.free_bytes = free_bytes
        self.calls: list[tuple[str, str]] = []
        self.failed: list[tuple[str, str]] = []
        self._inner = inner
        self._guard = threading.RLock()
        self._faults: list[tuple[Fault, Iterator[int]]] = []
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Let calls fail from now on."""
        with self._guard:
            self._faults.append((fault, itertools.count(1)))

    def clear(self) -> None:
        """Let no call fail any more."""
        with self._guard:
            self._faults.clear()

    def open_directory(self, path: str) -> FaultyDirectory:
        """See `FileSystem`."""
        self.check("open_directory", path)
        return FaultyDirectory(self, self._inner.open_directory(path))

    def make_directory(self, path: str) -> None:
        """See `FileSystem`."""
        self.check("make_directory", path)
        self._inner.make_directory(path)

    def stat(self, path: str) -> FileStat | None:
        """See `FileSystem`."""
        self.check("stat", path)
        return self._inner.stat(path)

    def check(self, call: str, path: str) -> None:
        """Count a call, and raise if it is to fail."""
        fault = self.find_fault(call, path)
        if fault is not None:
            raise_fault(fault.errno, path)

    def find_fault(self, call: str, path: str) -> Fault | None:
        """Count a call; return the fault that hits it."""
        with self._guard:
            self.calls.append((call, path))
            hit = None
            for fault, numbers in self._faults:
                matches = fault.call in (None, call) and fault.path in path
                if matches and fault.hits(next(numbers)) and hit is None:
                    hit = fault
            if hit is not None:
                self.failed.append((call, path))
            return hit

    def take_space(self, wanted: int) -> int:
        """Take space for a growing file; return how much of it there was."""
        with self._guard:
            if self.free_bytes is None:
                return wanted
            taken = min(wanted, max(self.free_bytes, 0))
            self.free_bytes -= taken
            return taken

    def give_space(self, size: int) -> None:
        """Give back the space of a file that became shorter."""
        with self._guard:
            if self.free_bytes is not None:
                self.free_bytes += size


def raise_fault(code: int, path: str) -> NoReturn:
    """Raise the OSError of an errno."""
    raise OSError(code, os.strerror(code), path)


class FaultyFile:
    """A file of a faulty file system."""

    def __init__(self, fs: FaultyFileSystem, inner: File) -> None:
        """Wrap `inner`."""
        self.path = inner.path
        self._fs = fs
        self._inner = inner

    def pread(self, size: int, offset: int) -> bytes:
        """See `File`."""
        self._fs.check("pread", self.path)
        return self._inner.pread(size, offset)

    def pwrite(self, data: bytes, offset: int) -> None:
        """See `File`."""
        fault = self._fs.find_fault("pwrite", self.path)
        if fault is not None:
            if fault.written:
                self._inner.pwrite(data[: fault.written], offset)
            raise_fault(fault.errno, self.path)
        size = self._inner.stat().size_bytes
        growth = max(offset + len(data) - size, 0)
        missing = growth - self._fs.take_space(growth)
        fits = data[: len(data) - missing]
        if fits:
            self._inner.pwrite(fits, offset)
        if missing:
            raise_fault(errno.ENOSPC, self.path)

    def sync_data(self) -> None:
        """See `File`."""
        fault = self._fs.find_fault("sync_data", self.path)
        if fault is not None:
            if fault.lossy and isinstance(self._inner, SimulatedFile):
                self._inner.lose_writes()
            raise_fault(fault.errno, self.path)
        self._inner.sync_data()

    def truncate(self, size: int) -> None:
        """See `File`."""
        self._fs.check("truncate", self.path)
        before = self._inner.stat().size_bytes
        self._inner.truncate(size)
        self._fs.give_space(max(before - size, 0))

    def allocate(self, offset: int, size: int) -> bool:
        """See `File`."""
        self._fs.check("allocate", self.path)
        growth = max(offset + size - self._inner.stat().size_bytes, 0)
        taken = self._fs.take_space(growth)
        if taken == growth and self._inner.allocate(offset, size):
            return True
        self._fs.give_space(taken)
        return False

    def stat(self) -> FileStat:
        """See `File`."""
        self._fs.check("stat", self.path)
        return self._inner.stat()

    def lock(self, *, exclusive: bool, wait: bool = False) -> bool:
        """See `File`."""
        self._fs.check("lock", self.path)
        return self._inner.lock(exclusive=exclusive, wait=wait)

    def unlock(self) -> None:
        """See `File`."""
        self._fs.check("unlock", self.path)
        self._inner.unlock()

    def close(self) -> None:
        """See `File`. Never fails: the descriptor is gone in any case."""
        self._inner.close()


class FaultyDirectory:
    """A directory of a faulty file system."""

    def __init__(self, fs: FaultyFileSystem, inner: Directory) -> None:
        """Wrap `inner`."""
        self.path = inner.path
        self._fs = fs
        self.inner = inner

    def open(self, name: str, *, write: bool = False, create: bool = False) -> FaultyFile:
        """See `Directory`."""
        self._fs.check("create" if create else "open", f"{self.path}/{name}")
        return FaultyFile(self._fs, self.inner.open(name, write=write, create=create))

    def open_directory(self, name: str) -> FaultyDirectory:
        """See `Directory`."""
        self._fs.check("open_directory", f"{self.path}/{name}")
        return FaultyDirectory(self._fs, self.inner.open_directory(name))

    def make_directory(self, name: str) -> None:
        """See `Directory`."""
        self._fs.check("make_directory", f"{self.path}/{name}")
        self.inner.make_directory(name)

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """See `Directory`."""
        assert isinstance(target, FaultyDirectory)
        self._fs.check("rename", f"{self.path}/{name}")
        self.inner.rename(name, target.inner, new_name)

    def unlink(self, name: str) -> None:
        """See `Directory`."""
        self._fs.check("unlink", f"{self.path}/{name}")
        self.inner.unlink(name)

    def remove_directory(self, name: str) -> None:
        """See `Directory`."""
        self._fs.check("remove_directory", f"{self.path}/{name}")
        self.inner.remove_directory(name)

    def names(self) -> list[str]:
        """See `Directory`."""
        self._fs.check("names", self.path)
        return self.inner.names()

    def stat(self, name: str) -> FileStat | None:
        """See `Directory`."""
        self._fs.check("stat", f"{self.path}/{name}")
        return self.inner.stat(name)

    def sync(self) -> None:
        """See `Directory`."""
        self._fs.check("sync", self.path)
        self.inner.sync()

    def close(self) -> None:
        """See `Directory`. Never fails: the descriptor is gone in any case."""
        self.inner.close()
