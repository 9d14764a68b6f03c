"""What is imported: a file or a folder, and enough of its content to tell the format by."""

from __future__ import annotations

import functools
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from .jsontext import WHITE_SPACE, parse
from .scanner import Scanner, StructureError, sketch

if TYPE_CHECKING:
    from io import BufferedReader

    from ..actors.store import Store

__all__ = ["BOM", "Source"]

BOM: Final = b"\xef\xbb\xbf"
_SAMPLE_LINES: Final = 32
_SAMPLE_BYTES: Final = 2 * 1024 * 1024
_SAMPLE_LINE_BYTES: Final = 2 * 1024 * 1024
_SAMPLE_READS: Final = 128


class Source:
    """A file or folder to import.

    Args:
        path: where it is.
        store: the store that it goes to, for formats that look there.

    Raises:
        OSError: there is nothing, or it cannot be looked at.
        ValueError: it is neither a file nor a folder.
    """

    def __init__(self, path: str | os.PathLike[str], store: Store | None = None) -> None:
        self.path = os.fspath(path)
        self.name = os.path.basename(os.path.abspath(self.path))
        self.stem = os.path.splitext(self.name)[0]
        self.store = store
        found = os.stat(self.path)
        self.is_directory = stat.S_ISDIR(found.st_mode)
        self.size_bytes = found.st_size
        if not self.is_directory and not stat.S_ISREG(found.st_mode):
            msg = f"{self.path} is neither a file nor a folder; copy its content to a file first"
            raise ValueError(msg)

    def __repr__(self) -> str:
        return f"Source({self.path!r})"

    def open(self) -> BufferedReader:
        """Open the file for reading bytes.

        Raises:
            OSError: it cannot be read.
        """
        return open(self.path, "rb")

    def forget(self) -> None:
        """Let go of what was read to tell the format."""
        for name in ("sample", "outline"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def sample(self) -> list[Any]:
        """The first lines, parsed; UNSET for one that is not JSON. None for a folder."""
        return [] if self.is_directory else self._read_sample()

    def _read_sample(self) -> list[Any]:
        found: list[Any] = []
        whole, size = True, 0
        with self.open() as file:
            if file.peek(len(BOM)).startswith(BOM):
                file.read(len(BOM))
            for _ in range(_SAMPLE_READS):
                line = file.readline(_SAMPLE_LINE_BYTES)
                if not line or len(found) == _SAMPLE_LINES or size > _SAMPLE_BYTES:
                    break
                begins, whole, size = whole, line.endswith(b"\n"), size + len(line)
                if begins and line.strip(WHITE_SPACE) and (whole or len(line) < _SAMPLE_LINE_BYTES):
                    found.append(parse(line).value)
        return found

    @functools.cached_property
    def outline(self) -> Any:
        """What the file looks like if it is one JSON document, see `sketch`; None if it is not."""
        if self.is_directory:
            return None
        with self.open() as file:
            scanner = Scanner(file)
            if scanner.peek() not in {b"{", b"["}:
                return None
            found = sketch(scanner)
            try:
                scanner.finish()
            except StructureError:
                return None  # a second value follows: JSON Lines
        return found
