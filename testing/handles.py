"""Open files and directories of a simulated file system."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from .disk import Grow, Link, Rename, Truncate, Unlink, Write
from .machine import fail

if TYPE_CHECKING:
    from ..storage.vfs import Directory, FileStat
    from .disk import Content
    from .machine import Machine


class SimulatedFile:
    """A file of a simulated file system. Closing it, or the death of its machine, frees its lock."""

    def __init__(self, machine: Machine, node: int, path: str, *, write: bool) -> None:
        """Open a node."""
        self.path = path
        self._machine = machine
        self._node = node
        self._write = write
        self._closed = False

    def pread(self, size: int, offset: int) -> bytes:
        """See `File`."""
        with self._machine.guard:
            self._check()
            return self._machine.tree.read(self._node, size, offset)

    def pwrite(self, data: bytes, offset: int) -> None:
        """See `File`."""
        machine = self._machine
        with machine.guard:
            self._check(write=True)
            machine.begin("pwrite", self.path, f"{len(data)} bytes at {offset}")
            if not data:
                return
            before, end = machine.tree.size(self._node), offset + len(data)
            machine.change(Write(machine.next_number(), self._node, offset, bytes(data)))
            if end > before:
                machine.change(Grow(machine.next_number(), self._node, before, end))

    def sync_data(self) -> None:
        """See `File`."""
        with self._machine.guard:
            self._check()
            self._machine.begin("sync_data", self.path)
            self._machine.sync(self._node)

    def lose_writes(self) -> None:
        """Do what a failed sync does on Linux: what was written can be read, but no later sync writes it."""
        with self._machine.guard:
            self._check()
            self._machine.begin("lose_writes", self.path)
            self._machine.lose_writes(self._node)

    def truncate(self, size: int) -> None:
        """See `File`."""
        with self._machine.guard:
            self._check(write=True)
            self._machine.begin("truncate", self.path, f"to {size}")
            if size != self._machine.tree.size(self._node):
                self._machine.change(Truncate(self._machine.next_number(), self._node, size))

    def allocate(self, offset: int, size: int) -> bool:
        """See `File`."""
        machine = self._machine
        with machine.guard:
            self._check(write=True)
            if not machine.preallocates:
                return False
            machine.begin("allocate", self.path, f"{size} bytes at {offset}")
            before = machine.tree.size(self._node)
            if offset + size > before:
                machine.change(Grow(machine.next_number(), self._node, before, offset + size))
            return True

    def stat(self) -> FileStat:
        """See `File`."""
        with self._machine.guard:
            self._check()
            return self._machine.describe(self._node)

    def lock(self, *, exclusive: bool, wait: bool = False) -> bool:
        """See `File`."""
        machine = self._machine
        with machine.guard:
            self._check()
            lockers = machine.lockers.setdefault(self._node, {})
            while any(held or exclusive for other, held in lockers.items() if other is not self):
                if not wait:
                    return False
                machine.guard.wait()
                self._check()
            lockers[self] = exclusive
            machine.guard.notify_all()
            return True

    def unlock(self) -> None:
        """See `File`."""
        with self._machine.guard:
            self._check()
            self._release()

    def close(self) -> None:
        """See `File`."""
        with self._machine.guard:
            if not self._closed:
                self._release()
                self._closed = True

    def _release(self) -> None:
        self._machine.lockers.get(self._node, {}).pop(self, None)
        self._machine.guard.notify_all()

    def _check(self, *, write: bool = False) -> None:
        self._machine.check_alive()
        if self._closed or (write and not self._write):
            fail(errno.EBADF, self.path)


class SimulatedDirectory:
    """A directory of a simulated file system."""

    def __init__(self, machine: Machine, node: int, path: str) -> None:
        """Open a node."""
        self.path = path
        self._machine = machine
        self.node = node
        self._closed = False

    def open(self, name: str, *, write: bool = False, create: bool = False) -> SimulatedFile:
        """See `Directory`."""
        machine, path = self._machine, f"{self.path}/{name}"
        with machine.guard:
            self._check()
            if create:
                return SimulatedFile(machine, self._create("create", name, b""), path, write=True)
            node = self._entry(name)
            if machine.tree.is_directory(node):
                fail(errno.EISDIR if write else errno.EINVAL, path)
            return SimulatedFile(machine, node, path, write=write)

    def open_directory(self, name: str) -> SimulatedDirectory:
        """See `Directory`."""
        path = f"{self.path}/{name}"
        with self._machine.guard:
            self._check()
            node = self._entry(name)
            if not self._machine.tree.is_directory(node):
                fail(errno.ENOTDIR, path)
            return SimulatedDirectory(self._machine, node, path)

    def make_directory(self, name: str) -> None:
        """See `Directory`."""
        with self._machine.guard:
            self._check()
            self._create("make_directory", name, {})

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        """See `Directory`."""
        assert isinstance(target, SimulatedDirectory)
        machine = self._machine
        with machine.guard:
            self._check()
            machine.begin("rename", f"{self.path}/{name}", f"to {target.path}/{new_name}")
            node = self._entry(name)
            target.check_there()
            if machine.tree.contains(node, target.node):
                fail(errno.EINVAL, f"{target.path}/{new_name}")
            there = machine.tree.entries(target.node).get(new_name)
            if there is not None and there != node:
                self._check_replaceable(node, there, f"{target.path}/{new_name}")
                machine.removed.add(there)
            machine.change(Rename(machine.next_number(), self.node, name, target.node, new_name, node))

    def _check_replaceable(self, node: int, there: int, path: str) -> None:
        tree = self._machine.tree
        if tree.contains(there, self.node):
            fail(errno.ENOTEMPTY, path)
        if not tree.is_directory(there):
            if tree.is_directory(node):
                fail(errno.ENOTDIR, path)
        elif not tree.is_directory(node):
            fail(errno.EISDIR, path)
        elif tree.entries(there):
            fail(errno.ENOTEMPTY, path)

    def unlink(self, name: str) -> None:
        """See `Directory`."""
        with self._machine.guard:
            self._check()
            self._machine.begin("unlink", f"{self.path}/{name}")
            node = self._entry(name)
            if self._machine.tree.is_directory(node):
                fail(errno.EISDIR, f"{self.path}/{name}")
            self._unlink(name, node)

    def remove_directory(self, name: str) -> None:
        """See `Directory`."""
        path = f"{self.path}/{name}"
        with self._machine.guard:
            self._check()
            self._machine.begin("remove_directory", path)
            node = self._entry(name)
            if not self._machine.tree.is_directory(node):
                fail(errno.ENOTDIR, path)
            if self._machine.tree.entries(node):
                fail(errno.ENOTEMPTY, path)
            self._machine.removed.add(node)
            self._unlink(name, node)

    def names(self) -> list[str]:
        """See `Directory`."""
        with self._machine.guard:
            self._check()
            return list(self._machine.tree.entries(self.node))

    def stat(self, name: str) -> FileStat | None:
        """See `Directory`."""
        with self._machine.guard:
            self._check()
            folder, _, _ = name.rpartition("/")
            if folder and not self._machine.is_directory(self.node, folder):
                return None
            node = self._machine.find(self.node, name)
            return None if node is None else self._machine.describe(node)

    def sync(self) -> None:
        """See `Directory`."""
        with self._machine.guard:
            self._check()
            self._machine.begin("sync", self.path)
            self._machine.sync(self.node)

    def close(self) -> None:
        """See `Directory`."""
        self._closed = True

    def _entry(self, name: str) -> int:
        node = self._machine.tree.entries(self.node).get(name)
        if node is None:
            fail(errno.ENOENT, f"{self.path}/{name}")
        return node

    def _create(self, call: str, name: str, content: Content) -> int:
        machine, path = self._machine, f"{self.path}/{name}"
        machine.begin(call, path)
        self.check_there()
        if name in machine.tree.entries(self.node):
            fail(errno.EEXIST, path)
        node = machine.add_node(content)
        machine.change(Link(machine.next_number(), self.node, name, node))
        return node

    def _unlink(self, name: str, node: int) -> None:
        self._machine.change(Unlink(self._machine.next_number(), self.node, name, node))

    def check_there(self) -> None:
        """Raise if the directory was removed: nothing can be made in it any more."""
        if self.node in self._machine.removed:
            fail(errno.ENOENT, self.path)

    def _check(self) -> None:
        self._machine.check_alive()
        if self._closed:
            fail(errno.EBADF, self.path)
