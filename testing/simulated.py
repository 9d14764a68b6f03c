"""An in-memory file system that keeps apart what was written and what was synced.

It stands behind `storage/vfs.py`, so the whole library runs on it. It is strict where POSIX allows a disk to
be: syncing a file does not make its name durable, syncing a directory does not sync the files in it, and
nothing need reach the disk in the order in which it was written.

Assumptions about the disk, the same as in docs/format.md: a torn write does not harm bytes that were not
being written, and a rename happens whole or not at all.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from .disk import ROOT, Disk
from .handles import SimulatedDirectory
from .machine import Machine, Operation, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..storage.vfs import FileStat


class SimulatedFileSystem:
    """A file system in memory that knows what a power cut would leave. Safe to use from many threads.

    Start a new one from `disk()` to go on after SIGKILL: everything written is there and still not synced,
    and locks are free. Start it from a disk of `power_cuts` to go on after a power cut.
    """

    def __init__(
        self, disk: Disk | None = None, *, preallocates: bool = True, crash_at: int | None = None
    ) -> None:
        """Start a machine.

        Args:
            disk: what its disk holds; an empty one by default.
            preallocates: whether `File.allocate` is supported.
            crash_at: number of the operation that finds the machine crashed, from 1.
        """
        self._machine = Machine(Disk() if disk is None else disk, preallocates=preallocates)
        self._machine.crash_at = crash_at

    def open_directory(self, path: str) -> SimulatedDirectory:
        """See `FileSystem`."""
        with self._machine.guard:
            return SimulatedDirectory(self._machine, self._directory_at(path), path)

    def make_directory(self, path: str) -> None:
        """See `FileSystem`."""
        parent, name = os.path.split(path)
        self.open_directory(parent).make_directory(name)

    def stat(self, path: str) -> FileStat | None:
        """See `FileSystem`."""
        with self._machine.guard:
            self._machine.check_alive()
            node = self._machine.find(ROOT, path)
            return None if node is None else self._machine.describe(node)

    def disk(self) -> Disk:
        """Return what the disk holds now; it does not change any more."""
        with self._machine.guard:
            return self._machine.disk()

    def crash(self) -> Disk:
        """Stop the machine: every call from now on raises CrashedError. Returns what the disk holds."""
        with self._machine.guard:
            self._machine.crash()
            return self._machine.disk()

    @property
    def crashed(self) -> bool:
        """Tell whether the machine has crashed."""
        return self._machine.crashed

    def before_each(self, callback: Callable[[Operation], None] | None) -> None:
        """Set what is called before each operation, in its thread; it may look at the disk, or crash."""
        with self._machine.guard:
            self._machine.before = callback

    def operations(self) -> Sequence[Operation]:
        """Return the last operations: the calls that changed or synced something."""
        with self._machine.guard:
            return list(self._machine.operations)

    def _directory_at(self, path: str) -> int:
        self._machine.check_alive()
        node = self._machine.find(ROOT, path)
        if node is None:
            fail(errno.ENOENT, path)
        if not self._machine.tree.is_directory(node):
            fail(errno.ENOTDIR, path)
        return node
