"""The state behind a simulated file system: what is written, what is synced, who holds which lock."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from ..storage.vfs import DIRECTORY_MODE, FILE_MODE, FileStat
from .disk import Change, Content, Disk, Rename, Write, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from .handles import SimulatedFile

OPERATIONS_KEPT: Final = 10_000
_EPOCH_NS: Final = 1_700_000_000 * 10**9


class Operation(msgspec.Struct, frozen=True):
    """A call that changes or syncs something.

    Args:
        number: counted from 1.
        call: name of the method.
        path: of the file or directory.
        detail: what is written where, or the other name.
    """

    number: int
    call: str
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return f"#{self.number} {self.call} {self.path} {self.detail}".rstrip()


class CrashedError(OSError):
    """The simulated machine has crashed: no call of it has an effect any more."""

    def __init__(self) -> None:
        """Look like a dead disk to code that handles errors of one."""
        super().__init__(errno.EIO, "the simulated machine has crashed")


class Machine:
    """One running machine with its disk. Every method is called with `guard` held.

    Attributes:
        guard: makes each call atomic, and wakes who waits for a lock.
        tree: what the processes of the machine see.
        lockers: who holds the lock of a node, and whether exclusively.
        removed: directories that were removed, in which nothing can be made.
        crashed: whether no call has an effect any more.
    """

    def __init__(self, disk: Disk, *, preallocates: bool) -> None:
        """Start with what the disk holds: pending changes are still to be synced, locks are free."""
        self.guard = threading.Condition(threading.RLock())
        self.tree = disk.tree()
        self.preallocates = preallocates
        self.lockers: dict[int, dict[SimulatedFile, bool]] = {}
        self.removed: set[int] = set()
        self.operations: deque[Operation] = deque(maxlen=OPERATIONS_KEPT)
        self.before: Callable[[Operation], None] | None = None
        self.crash_at: int | None = None
        self._synced = dict(disk.synced)
        self._pending: dict[int, list[Change]] = {}
        for change in disk.pending:
            self._note(change)
        self._changes = disk.pending[-1].number if disk.pending else 0
        self._calls = 0
        self._next_node = max(self._synced) + 1
        self._modified: dict[int, int] = {}
        self.crashed = False

    def disk(self) -> Disk:
        """Return what the disk holds now."""
        changes = {change.number: change for some in self._pending.values() for change in some}
        return Disk(dict(self._synced), tuple(changes[number] for number in sorted(changes)))

    def crash(self) -> None:
        """Let every call from now on raise CrashedError."""
        self.crashed = True
        self.guard.notify_all()

    def check_alive(self) -> None:
        """Raise CrashedError after a crash."""
        if self.crashed:
            raise CrashedError

    def begin(self, call: str, path: str, detail: str = "") -> None:
        """Count a call that changes or syncs something; it may find the machine crashed."""
        self.check_alive()
        operation = Operation(self._calls + 1, call, path, detail)
        if operation.number == self.crash_at:
            self.crash()
            raise CrashedError
        self._calls += 1
        self.operations.append(operation)
        if self.before is not None:
            self.before(operation)
            self.check_alive()

    def next_number(self) -> int:
        """Return the number of the next change."""
        self._changes += 1
        return self._changes

    def change(self, change: Change) -> None:
        """Do a change, and note that it is not synced."""
        self.tree.apply(change)
        self._note(change)
        self._modified[change.node] = change.number

    def _note(self, change: Change) -> None:
        nodes = {change.node, change.target} if isinstance(change, Rename) else {change.node}
        for node in nodes:
            self._pending.setdefault(node, []).append(change)

    def sync(self, node: int) -> None:
        """Make all changes of a file or directory durable.

        A rename between two directories is durable with the first of them that is synced. It cannot overtake
        what was done before in the other one, which is then synced too.
        """
        nodes = [node]
        changes: dict[int, Change] = {}
        for one in nodes:
            for change in self._pending.pop(one, ()):
                changes[change.number] = change
                if isinstance(change, Rename):
                    nodes += [other for other in (change.node, change.target) if other not in nodes]
        tree = settle(self._synced, (changes[number] for number in sorted(changes)))
        for one in nodes:
            self._synced[one] = tree.content(one)

    def lose_writes(self, node: int) -> None:
        """Forget what was written to a file: it can still be read, but no sync will make it durable."""
        changes = self._pending.get(node, [])
        self._pending[node] = [change for change in changes if not isinstance(change, Write)]

    def add_node(self, content: Content) -> int:
        """Make a file or directory that has no name yet."""
        node = self._next_node
        self._next_node += 1
        self._synced[node] = content
        self.tree.add(node, content)
        return node

    def find(self, start: int, path: str) -> int | None:
        """Return what a path names, seen from a directory; None if nothing."""
        node = start
        for name in filter(None, path.split("/")):
            found = self.tree.entries(node).get(name) if self.tree.is_directory(node) else None
            if found is None:
                return None
            node = found
        return node

    def is_directory(self, start: int, path: str) -> bool:
        """Tell whether a path, if it names anything, names a directory."""
        node = self.find(start, path)
        return node is None or self.tree.is_directory(node)

    def describe(self, node: int) -> FileStat:
        """Return the attributes of a file or directory."""
        directory = self.tree.is_directory(node)
        return FileStat(
            (1, node),
            self.tree.size(node),
            directory,
            _EPOCH_NS + self._modified.get(node, 0),
            DIRECTORY_MODE if directory else FILE_MODE,
        )


def fail(code: int, path: str) -> NoReturn:
    """Raise the OSError of an errno."""
    raise OSError(code, os.strerror(code), path)
