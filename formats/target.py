"""Where an export goes: an open file, or a path at which something appears when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING, BinaryIO, Protocol

import msgspec

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Target", "Writable", "Written"]


class Writable(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take some bytes."""
        ...


class Written(msgspec.Struct):
    """What a format wrote.

    Args:
        records: records, or events where the format has one for each.
        skipped: events that the format has no place for.
        dropped: what else the format has no place for, in words.
        unchanged: whether all of it was there already.
        path: of the file, where the format chose it.
    """

    records: int = 0
    skipped: int = 0
    dropped: list[str] = []
    unchanged: bool = False
    path: str = ""


class Target:
    """What a format module writes to: it calls `file` or `folder`, once. Use it in `with`.

    With a path, the file or folder has another name until the block ends well, and is gone if it does not.
    Files are made with mode 0600, folders with 0700.

    Args:
        place: a path, or a binary file open for writing.
        overwrite: whether a file may be replaced; a folder never is.

    Raises:
        FileExistsError: something is at the path.
    """

    def __init__(self, place: str | os.PathLike[str] | Writable, *, overwrite: bool = False) -> None:
        self._file: Writable | None = None
        self._path: str | None = None
        self._part: str | None = None
        self._opened: BinaryIO | None = None
        self._overwrite = overwrite
        if isinstance(place, (str, os.PathLike)):
            self._path = os.fspath(place)
            self._refuse_existing()
        else:
            self._file = place

    def _refuse_existing(self) -> None:
        assert self._path is not None  # noqa: S101 — callers have looked
        if os.path.lexists(self._path) and (not self._overwrite or os.path.isdir(self._path)):
            msg = f"{self._path} exists; nothing was written"
            raise FileExistsError(msg)

    def _part_path(self) -> str:
        if self._path is None:
            msg = "this format is a folder: name a path"
            raise ValueError(msg)
        folder, name = os.path.split(os.path.abspath(self._path))
        self._part = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}.part")
        return self._part

    def file(self) -> Writable:
        """Return the file to write to.

        Raises:
            OSError: it cannot be made.
        """
        if self._file is None:
            descriptor = os.open(self._part_path(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._opened = os.fdopen(descriptor, "wb")
            self._file = self._opened
        return self._file

    def folder(self) -> str:
        """Return the path of a new, empty folder to fill.

        Raises:
            OSError: it cannot be made.
            ValueError: the target is an open file.
        """
        path = self._part_path()
        os.mkdir(path, 0o700)
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._opened is not None:
                if kind is None:
                    self._opened.flush()
                    os.fsync(self._opened.fileno())
                self._opened.close()
            if kind is None and self._part is not None and self._path is not None:
                self._refuse_existing()
                os.rename(self._part, self._path)
                self._part = None
        finally:
            if self._part is not None:
                shutil.rmtree(self._part, ignore_errors=True)
                with contextlib.suppress(OSError):
                    os.unlink(self._part)
