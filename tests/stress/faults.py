"""A file system that fails, is slow, and knows who owns a log."""

from __future__ import annotations

import errno
import random
import time
from typing import TYPE_CHECKING

from sealog.storage.vfs import OsDirectory, OsFile, OsFileSystem

if TYPE_CHECKING:
    from .notes import Notes


class StressFile(OsFile):
    """A log that fails now and then, and must have one owner."""

    def __init__(self, fd: int, path: str, fs: StressFileSystem) -> None:
        super().__init__(fd, path)
        self._fs = fs
        fs.owners[path] = self

    def _check_owner(self, what: str) -> None:
        if self._fs.owners.get(self.path) is not self:
            self._fs.notes.violate(f"{what} of {self.path} by one who is not the owner")

    def pwrite(self, data: bytes, offset: int) -> None:
        self._check_owner("write")
        rnd, fs = self._fs.random, self._fs
        if rnd.random() < fs.faults and data[:4] != b"\x89SLG":
            kind = rnd.randrange(6)
            fs.notes.counts[f"write fault {kind}"] += 1
            if kind == 0:
                raise OSError(errno.EIO, "before")
            super().pwrite(data[: len(data) // 2] if kind == 1 else data, offset)
            if kind == 1:
                raise OSError(errno.ENOSPC, "half")
            if kind == 2:
                raise OSError(errno.EIO, "after")
            if kind == 3:
                raise SystemExit("in a commit")
            if kind == 4:
                raise KeyboardInterrupt
            raise MemoryError
        if rnd.random() < 0.1:
            time.sleep(rnd.random() * 0.002)
        super().pwrite(data, offset)
        self._check_owner("end of a write")

    def truncate(self, size: int) -> None:
        self._check_owner("truncation")
        if self._fs.random.random() < 0.3:
            time.sleep(self._fs.random.random() * 0.002)
        if self._fs.random.random() < self._fs.faults:
            self._fs.notes.counts["truncate fault"] += 1
            raise OSError(errno.EIO, "truncate")
        super().truncate(size)

    def sync_data(self) -> None:
        self._check_owner("sync")
        if self._fs.random.random() < self._fs.faults:
            self._fs.notes.counts["sync fault"] += 1
            raise OSError(errno.EIO, "sync")


class QuickFile(OsFile):
    """Any other file: nothing is really synced."""

    def sync_data(self) -> None:
        pass


class StressDirectory(OsDirectory):
    """A directory whose logs fail to open now and then."""

    def __init__(self, fd: int, path: str, fs: StressFileSystem) -> None:
        super().__init__(fd, path)
        self._fs = fs

    def open(self, name: str, *, write: bool = False, create: bool = False) -> OsFile:
        fs, path = self._fs, f"{self.path}/{name}"
        owned = name == "log" and write
        if owned:
            if fs.random.random() < 0.3:
                time.sleep(fs.random.random() * 0.002)
            if fs.random.random() < fs.faults * 3:
                fs.notes.counts["open fault"] += 1
                raise OSError(errno.EMFILE, "open")
        file = super().open(name, write=write, create=create)
        return StressFile(file._fd, path, fs) if owned else QuickFile(file._fd, path)

    def open_directory(self, name: str) -> StressDirectory:
        return StressDirectory(super().open_directory(name)._fd, f"{self.path}/{name}", self._fs)

    def sync(self) -> None:
        pass


class StressFileSystem(OsFileSystem):
    """The operating system without syncs and with faults."""

    def __init__(self, notes: Notes, seed: int, faults: float) -> None:
        self.notes = notes
        self.random = random.Random(seed)
        self.faults = faults
        self.owners: dict[str, StressFile] = {}

    def open_directory(self, path: str) -> StressDirectory:
        return StressDirectory(super().open_directory(path)._fd, path, self)
