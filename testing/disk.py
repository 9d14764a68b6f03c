"""What a simulated disk holds: what is synced, and the changes that were written but not synced.

A power cut keeps what is synced and any of the pending changes; which of them is chosen in `crashes.py`. Here
is what a chosen change does, so that a running file system and a disk image can never disagree about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from xxhash import xxh3_128

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT: Final = 1

Content = bytes | dict[str, int]
"""Of a file, its bytes; of a directory, its names and the nodes that they stand for."""


class Write(msgspec.Struct, frozen=True, tag=True):
    """Bytes of a file. They do not make it grow: that is another change, which may come first or never."""

    number: int
    node: int
    offset: int
    data: bytes


class Grow(msgspec.Struct, frozen=True, tag=True):
    """A file becomes at least `size` bytes long, from `before`; what was never written there is zero."""

    number: int
    node: int
    before: int
    size: int


class Truncate(msgspec.Struct, frozen=True, tag=True):
    """A file becomes `size` bytes long."""

    number: int
    node: int
    size: int


class Link(msgspec.Struct, frozen=True, tag=True):
    """A new file or directory gets its name in the directory `node`."""

    number: int
    node: int
    name: str
    child: int


class Unlink(msgspec.Struct, frozen=True, tag=True):
    """A file or directory loses its name in the directory `node`."""

    number: int
    node: int
    name: str
    child: int


class Rename(msgspec.Struct, frozen=True, tag=True):
    """A file or directory gets another name, in the same or another directory, at once."""

    number: int
    node: int
    name: str
    target: int
    new_name: str
    child: int


Change = Write | Grow | Truncate | Link | Unlink | Rename


class _Body:
    """A file being changed; `data` may hold bytes behind `size`, which show only once the file grows."""

    __slots__ = ("data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.size = len(data)

    def write(self, offset: int, data: bytes) -> None:
        if offset > len(self.data):
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        del self.data[min(self.size, size) :]
        self.size = size

    def read(self, size: int, offset: int) -> bytes:
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        return bytes(memoryview(self.data)[offset:end]).ljust(end - offset, b"\0")


class Tree:
    """Files and directories after some changes. Contents that no change touched are shared, not copied."""

    def __init__(self, contents: Mapping[int, Content]) -> None:
        """Start from `contents`, which are not changed."""
        self._contents = dict(contents)
        self._bodies: dict[int, _Body] = {}
        self._copied: set[int] = set()

    def add(self, node: int, content: Content) -> None:
        """Put a new file or directory there, without a name yet."""
        self._contents[node] = content

    def is_directory(self, node: int) -> bool:
        """Tell a directory from a file."""
        return isinstance(self._contents[node], dict)

    def entries(self, node: int) -> Mapping[str, int]:
        """Return the names in a directory."""
        content = self._contents[node]
        assert isinstance(content, dict)
        return content

    def contains(self, folder: int, node: int) -> bool:
        """Tell whether a node is `folder`, or somewhere in it."""
        return any(found == node for _, found in self.walk(folder))

    def size(self, node: int) -> int:
        """Return the size of a file; of a directory, the number of its names."""
        body = self._bodies.get(node)
        return len(self._contents[node]) if body is None else body.size

    def read(self, node: int, size: int, offset: int) -> bytes:
        """Read bytes of a file; fewer only at its end."""
        body = self._bodies.get(node)
        if body is not None:
            return body.read(size, offset)
        content = self._contents[node]
        assert isinstance(content, bytes)
        return content[offset : offset + size]

    def apply(self, change: Change) -> None:
        """Do one change. Those before it may have been left out: any subset, in order, makes a tree."""
        if isinstance(change, Write):
            self._body(change.node).write(change.offset, change.data)
        elif isinstance(change, Grow):
            body = self._body(change.node)
            body.size = max(body.size, change.size)
        elif isinstance(change, Truncate):
            self._body(change.node).truncate(change.size)
        elif isinstance(change, Link):
            self._folder(change.node)[change.name] = change.child
        else:
            folder = self._folder(change.node)
            if folder.get(change.name) == change.child:
                del folder[change.name]
            if isinstance(change, Rename):
                self._folder(change.target)[change.new_name] = change.child

    def contents(self) -> dict[int, Content]:
        """Return everything that has a name, as it is now."""
        return {node: self._frozen(node) for _, node in self.walk()}

    def content(self, node: int) -> Content:
        """Return one file or directory as it is now."""
        return self._frozen(node)

    def walk(self, node: int = ROOT) -> Iterator[tuple[str, int]]:
        """Yield the path and node of everything that has a name, from `node` down, in order."""
        waiting = [("", node)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            content = self._contents[node]
            if isinstance(content, dict):
                names = sorted(content, reverse=True)
                waiting.extend((f"{path}/{name}", content[name]) for name in names)

    def digest(self) -> bytes:
        """Return a hash of all paths and bytes: equal for equal trees, whatever their history."""
        hashed = xxh3_128()
        for path, node in self.walk():
            content = self._frozen(node)
            data = b"/" if isinstance(content, dict) else content
            hashed.update(f"{path}\0{len(data)}\0".encode())
            hashed.update(data)
        return hashed.digest()

    def _frozen(self, node: int) -> Content:
        body = self._bodies.get(node)
        if body is not None:
            return body.read(body.size, 0)
        content = self._contents[node]
        return dict(content) if isinstance(content, dict) else content

    def _body(self, node: int) -> _Body:
        body = self._bodies.get(node)
        if body is None:
            content = self._contents[node]
            assert isinstance(content, bytes)
            body = self._bodies[node] = _Body(content)
        return body

    def _folder(self, node: int) -> dict[str, int]:
        content = self._contents[node]
        assert isinstance(content, dict)
        if node not in self._copied:
            self._copied.add(node)
            content = self._contents[node] = dict(content)
        return content


class Disk(msgspec.Struct, frozen=True):
    """A simulated disk at one moment.

    Args:
        synced: what any power cut leaves, by node.
        pending: what was written since, in order; a power cut keeps any part of it, a killed process all.
    """

    synced: dict[int, Content] = msgspec.field(default_factory=lambda: {ROOT: {}})
    pending: tuple[Change, ...] = ()

    def tree(self) -> Tree:
        """Return what a running system sees: everything that was written."""
        return settle(self.synced, self.pending)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of each file by its path, as a running system sees them."""
        tree = self.tree()
        found = ((path, tree.content(node)) for path, node in tree.walk())
        return {path: content for path, content in found if isinstance(content, bytes)}

    def digest(self) -> bytes:
        """Return a hash that tells disks apart; with nothing pending, equal files have equal hashes."""
        if not self.pending:
            return self.tree().digest()
        return xxh3_128(msgspec.msgpack.encode((self.synced, self.pending))).digest()


def settle(contents: Mapping[int, Content], changes: Iterable[Change]) -> Tree:
    """Return the tree that `contents` become by `changes`."""
    tree = Tree(contents)
    for change in changes:
        tree.apply(change)
    return tree
