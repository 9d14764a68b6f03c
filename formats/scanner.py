"""Cutting one large JSON document into the texts of its parts, in one pass over the file.

Memory depends on the largest value that is asked for. The scanner checks brackets, strings and commas; what
a value says is for the JSON parser.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Scanner", "StructureError", "sketch"]

_CHUNK_BYTES: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TOKEN: Final = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|([{\[])|[}\]])', re.DOTALL)
_SCALAR: Final = re.compile(rb'[^\s,:"{}\[\]]++')
_SKETCH_DEPTH: Final = 4
_SKETCH_BYTES: Final = 1024


class StructureError(Exception):
    """The file is no JSON document; `line` is where that shows."""

    def __init__(self, line: int, reason: str) -> None:
        """Name the line and what is wrong there."""
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Scanner:
    """A cursor in a JSON document. Before each call it stands before a value.

    Args:
        file: opened for reading bytes, at its start.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0
        self._dropped = 0
        self._line = 1
        self._line_at = 0
        self._fill(0)
        if self._buffer.startswith(_BOM):
            self._at = len(_BOM)

    @property
    def offset(self) -> int:
        """How many bytes of the file lie behind the cursor."""
        return self._dropped + self._at

    @property
    def line(self) -> int:
        """Number of the line the cursor is in, from 1."""
        self._count_lines(self._at)
        return self._line

    def _count_lines(self, end: int) -> None:
        if end > self._line_at:
            self._line += self._buffer.count(b"\n", self._line_at, end)
            self._line_at = end

    def _fill(self, keep_from: int) -> bool:
        """Read on, and forget what lies before `keep_from`; False at the end of the file."""
        self._count_lines(keep_from)
        self._line_at -= keep_from
        self._dropped += keep_from
        self._at -= keep_from
        kept = self._buffer[keep_from:]
        data = self._file.read(max(_CHUNK_BYTES, len(kept)))  # doubling: a long value costs linear time
        self._buffer = kept + data
        return bool(data)

    def peek(self) -> bytes:
        """Return the next byte that is not white space, without passing it; nothing at the end."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = self._at if match is None else match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._fill(self._at):
                return b""

    def value(self) -> bytes:
        """Return the text of the next value and pass it.

        Raises:
            StructureError: none follows.
        """
        first = self.peek()
        if not first:
            raise self._error("the file ends too early")
        if first in b"{[":
            start, length = self._container(keep=True)
        elif first == b'"':
            start, length = self._match(_STRING)
        else:
            start, length = self._scalar()
        return self._buffer[start : start + length]

    def skip(self) -> None:
        """Pass the next value without keeping it.

        Raises:
            StructureError: none follows.
        """
        if self.peek() and self.peek() in b"{[":
            self._container(keep=False)
        else:
            self.value()

    def elements(self) -> Iterator[int]:
        """Enter an array: yield the index of each element, which the caller passes.

        Raises:
            StructureError: commas or brackets are wrong.
        """
        self._take(b"[")
        index = 0
        if self.peek() == b"]":
            self._at += 1
            return
        while True:
            yield index
            index += 1
            if self.peek() == b"]":
                self._at += 1
                return
            self._take(b",")

    def members(self) -> Iterator[bytes]:
        """Enter an object: yield the text of each key, whose value the caller passes.

        Raises:
            StructureError: commas, colons or brackets are wrong.
        """
        self._take(b"{")
        if self.peek() == b"}":
            self._at += 1
            return
        while True:
            if self.peek() != b'"':
                raise self._error("a key is missing")
            key = self.value()
            self._take(b":")
            yield key
            if self.peek() == b"}":
                self._at += 1
                return
            self._take(b",")

    def finish(self) -> None:
        """Check that nothing follows.

        Raises:
            StructureError: something does.
        """
        if self.peek():
            raise self._error("something follows the end of the document")

    def leave(self) -> None:
        """Pass what is left of the container the cursor is in, wherever in it that is.

        Raises:
            StructureError: the file ends first.
        """
        self._container(keep=False, depth=1)

    def _take(self, byte: bytes) -> None:
        if self.peek() != byte:
            raise self._error(f"{byte.decode()!r} is missing")
        self._at += 1

    def _container(self, *, keep: bool, depth: int = 0) -> tuple[int, int]:
        """Pass tokens until the brackets are even; return where it began and its length."""
        start = at = self._at
        while True:
            match = _TOKEN.match(self._buffer, at)
            if match is None:
                if not keep:
                    self._at = start = at
                read = self._fill(start)
                at, start = at - start, 0
                if not read:
                    raise self._error("the file ends inside a value")
                continue
            at = match.end()
            last = self._buffer[at - 1]
            depth += 1 if match[1] is not None else -1 if last in b"}]" else 0
            if depth == 0:
                self._at = at
                return start, at - start

    def _match(self, pattern: re.Pattern[bytes]) -> tuple[int, int]:
        while True:
            match = pattern.match(self._buffer, self._at)
            if match is not None:
                start, self._at = match.start(), match.end()
                return start, match.end() - start
            if not self._fill(self._at):
                raise self._error("the file ends inside a string")

    def _scalar(self) -> tuple[int, int]:
        while True:
            match = _SCALAR.match(self._buffer, self._at)
            if match is None:
                raise self._error("a value is missing")
            if match.end() == len(self._buffer) and self._fill(self._at):
                continue
            start, length = self._at, match.end() - match.start()
            self._at += length
            return start, length

    def _error(self, reason: str) -> StructureError:
        return StructureError(self.line, reason)


def sketch(scanner: Scanner, depth: int = 0) -> Any:
    """Return what a document looks like, and pass it: small scalars, all keys, first elements.

    Texts too long for that are None. What cannot be read any more is left out.
    """
    first = scanner.peek()
    if depth < _SKETCH_DEPTH and first == b"{":
        return _sketch_object(scanner, depth)
    if depth < _SKETCH_DEPTH and first == b"[":
        return _sketch_array(scanner, depth)
    if first and first in b"{[":
        scanner.skip()
        return {} if first == b"{" else []
    text = scanner.value()
    if len(text) > _SKETCH_BYTES:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _sketch_object(scanner: Scanner, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with contextlib.suppress(StructureError):
        for raw in scanner.members():
            found[_key(raw)] = sketch(scanner, depth + 1)
    return found


def _sketch_array(scanner: Scanner, depth: int) -> list[Any]:
    found: list[Any] = []
    with contextlib.suppress(StructureError):
        for _ in scanner.elements():
            found.append(sketch(scanner, depth + 1))
            scanner.leave()
            break
    return found


def _key(raw: bytes) -> str:
    try:
        return str(json.loads(raw))
    except ValueError:
        return ""
