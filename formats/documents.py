"""One JSON document, in and out, for every format that keeps a whole session in one.

The document is cut where its lists are: every element of a list is a record, and so is every other member of
the objects around. A record's number is the path to it. What is no document is kept whole, as an attachment.
"""

from __future__ import annotations

import functools
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from .carving import make_entry, make_file_entry
from .errors import NotExportableError
from .jsontext import WHITE_SPACE, to_json
from .restoring import Files, Item, items, restored_text
from .scanner import Scanner, StructureError
from .target import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..actors.readable import ReadableSession
    from .embedded import JsonPath
    from .records import Entry, Part
    from .source import Source
    from .target import Target, Writable

__all__ = ["read_document", "write_document"]

_NAME_CHARS_MAX: Final = 256
_HASH_BYTES: Final = 1024 * 1024


def read_document(
    source: Source,
    format_name: str,
    read: Callable[[JsonPath, Any], Sequence[Part]],
    *,
    whole: bool = False,
) -> Iterator[Entry]:
    """Read a document, a record at a time.

    Args:
        source: the file.
        format_name: of the format.
        read: tells the parts of a record from its path and its value, at least one.
        whole: whether the elements of a list at the top are records as a whole.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        with source.open() as file:
            for _ in _pieces(Scanner(file), whole=whole):  # is it a document? before anything is stored
                pass
    except StructureError as error:
        yield _unread(source, format_name, error)
        return
    with source.open() as file:
        scanner = Scanner(file)
        for path, raw, line in _pieces(scanner, whole=whole):
            entry = make_entry(format_name, path, raw, functools.partial(read, path))
            entry.line, entry.offset = line, scanner.offset
            yield entry


def _unread(source: Source, format_name: str, error: StructureError) -> Entry:
    digest = hashlib.blake2b(digest_size=16)
    with source.open() as file:
        while data := file.read(_HASH_BYTES):
            digest.update(data)
    entry = make_file_entry(
        format_name, source.path, source.name, f"not a JSON document ({error.reason})", digest.hexdigest()
    )
    entry.line, entry.offset = error.line, source.size_bytes
    return entry


def _pieces(scanner: Scanner, *, whole: bool) -> Iterator[tuple[JsonPath, bytes, int]]:
    """Cut the document: the path of each record, its text and its line.

    Raises:
        StructureError: it is none, or has keys that no record can be named by.
    """
    if scanner.peek() == b"[":
        empty = True
        for index in scanner.elements():
            empty = False
            if scanner.peek() == b"{" and not whole:
                yield from _members(scanner, (index,))
            else:
                yield _piece(scanner, (index,))
        if empty:
            yield (), b"[]", scanner.line
    else:
        yield from _members(scanner, ())
    scanner.finish()


def _members(scanner: Scanner, path: JsonPath) -> Iterator[tuple[JsonPath, bytes, int]]:
    names: set[str] = set()
    for raw in scanner.members():
        name = _name(raw, scanner.line)
        if name in names:
            raise StructureError(scanner.line, f"the key {name!r} is there twice")
        names.add(name)
        if scanner.peek() == b"[":
            yield from _elements(scanner, (*path, name))
        else:
            yield _piece(scanner, (*path, name))
    if not names:
        yield path, b"{}", scanner.line


def _elements(scanner: Scanner, path: JsonPath) -> Iterator[tuple[JsonPath, bytes, int]]:
    line, empty = scanner.line, True
    for index in scanner.elements():
        empty = False
        yield _piece(scanner, (*path, index))
    if empty:
        yield path, b"[]", line


def _piece(scanner: Scanner, path: JsonPath) -> tuple[JsonPath, bytes, int]:
    scanner.peek()
    line = scanner.line
    return path, scanner.value(), line


def _name(raw: bytes, line: int) -> str:
    try:
        name = json.loads(raw)
        name.encode()
    except ValueError as error:
        raise StructureError(line, f"a key cannot be read ({error})") from error
    if len(name) > _NAME_CHARS_MAX:
        raise StructureError(line, f"a key has more than {_NAME_CHARS_MAX} characters")
    return cast("str", name)


_Node = dict[str | int, Any]
"""A container that is being put together: nodes, and the positions of records."""


def write_document(session: ReadableSession, format_name: str, target: Target) -> Written:
    """Write the document whose records were imported from a format.

    Args:
        session: the session.
        format_name: of the format.
        target: where to.

    Raises:
        NotExportableError: the session holds no records of it, or a record is not whole.
        AttachmentMissingError, AttachmentCorruptError: a file of a record cannot be read.
        OSError: the target cannot be written.
    """
    files: Files = {}
    root: _Node = {}
    written = Written()
    last: Item | None = None
    for item in items(session, files=files):
        if item.format_name == format_name:
            if not item.provisional:
                _put(root, cast("JsonPath", item.number), item.position)
            last = item
        elif item.events[0].kind != "attachment":
            written.skipped += len(item.events)
    if last is None:
        raise NotExportableError(session.session_id, format_name, "it holds no records of that format")
    out = target.file()
    writer = _Writer(session, format_name, files, out)
    if last.provisional:
        writer.copy(last)
    else:
        writer.write(root[""])
        out.write(b"\n")
    written.records = writer.records
    return written


def _put(root: _Node, path: JsonPath, position: int) -> None:
    """Put a record in its place. An empty container that has grown since gives way to its elements."""
    node: _Node = root
    step: str | int = ""
    for below in path:
        inner = node.get(step)
        if not isinstance(inner, dict):
            inner = node[step] = {}
        node, step = cast("_Node", inner), below
    if not isinstance(node.get(step), dict):
        node[step] = position


class _Writer:
    """Writes records in the order of the document, which after a growth is not that of the session."""

    def __init__(self, session: ReadableSession, format_name: str, files: Files, out: Writable) -> None:
        self.records = 0
        self._session = session
        self._format_name = format_name
        self._files = files
        self._out = out
        self._next = items(session)

    def write(self, node: Any) -> None:
        """Write a record, or a container with everything in it."""
        if isinstance(node, int):
            self._record(node)
            return
        entries = cast("_Node", node)
        indices = sorted(key for key in entries if isinstance(key, int))
        if indices and len(indices) != len(entries):
            raise NotExportableError(
                self._session.session_id, self._format_name, "it holds records of two unlike documents"
            )
        self._out.write(b"[" if indices else b"{")
        for count, key in enumerate(indices or entries):
            if count:
                self._out.write(b",\n")
            if not indices:
                self._out.write(to_json(key) + b":")
            self.write(entries[key])
        self._out.write(b"]" if indices else b"}")

    def _record(self, position: int) -> None:
        item = self._item(position)
        self._out.write(restored_text(self._session, item, self._files).strip(WHITE_SPACE))
        self.records += 1

    def _item(self, position: int) -> Item:
        """Return the record at a position, reading on from the last one if it follows."""
        for item in self._next:
            if item.position == position:
                return item
            if item.position > position or item.format_name is not None:
                break
        self._next = items(self._session, position)
        return next(self._next)

    def copy(self, item: Item) -> None:
        """Write a file that was no document, as it was."""
        key = f"{self._format_name}::file:{item.events[0].data['raw_file']}"
        with self._session.read_attachment(self._files[key]).open() as file:
            while data := file.read(_HASH_BYTES):
                self._out.write(data)
        self.records += 1
