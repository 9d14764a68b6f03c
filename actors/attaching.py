"""Taking in an attachment: its name and type, its bytes into a stage, its event."""

from __future__ import annotations

import contextlib
import errno
import io
import mimetypes
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from ..storage.attachments import Stage, remove_attachment_files, stage_attachment
from ..storage.errors import InvalidEventError, SealogError, StorageFullError
from ..storage.events import AttachmentData, is_blank
from ..storage.vfs import FULL_ERRNOS

if TYPE_CHECKING:
    from .slot import Slot

DEFAULT_NAME: Final = "attachment"
DEFAULT_TYPE: Final = "application/octet-stream"
NAME_BYTES_MAX: Final = 4096

Source = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO


class Incoming:
    """An attachment before it is stored.

    Args:
        source: bytes, a path, or a binary file open for reading.
        file_name: its name; from the path if left out.
        media_type: its type; guessed from the name if left out.

    Raises:
        InvalidEventError: a blank or unstorable name or type, or a source that is none of these.
    """

    def __init__(self, source: Any, file_name: str | None, media_type: str | None) -> None:
        self._path: str | None = None
        self._file: Any = None
        found = DEFAULT_NAME
        if isinstance(source, (str, os.PathLike)):
            self._path = os.fspath(cast("str | os.PathLike[str]", source))
            found = os.path.basename(self._path)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self._file = io.BytesIO(cast("bytes", source))
        elif hasattr(source, "read"):
            self._file = source
            name = getattr(source, "name", None)
            found = os.path.basename(name) if isinstance(name, str) else found
        else:
            raise InvalidEventError(
                "source", f"must be bytes, a path or a binary file, not {type(source).__name__}"
            )
        self.file_name = _check("file_name", found if file_name is None else file_name)
        guessed = mimetypes.guess_type(self.file_name)[0] or DEFAULT_TYPE
        self.media_type = _check("media_type", guessed if media_type is None else media_type)

    def data(self, stage: Stage) -> AttachmentData:
        """Return what the event says."""
        return AttachmentData(self.file_name, self.media_type, stage.size_bytes, stage.sha256)

    def stage(self, slot: Slot, name: str) -> Stage:
        """Stream the bytes into a stage of the session.

        Raises:
            StorageFullError: the disk is full; nothing is left.
            InvalidEventError: the file is open in text mode.
            OSError: the source cannot be read or the stage not written.
        """
        directory = slot.open_directory()
        try:
            if self._path is None:
                return stage_attachment(directory, name, _Binary(self._file))
            with open(self._path, "rb", opener=_open_regular) as file:
                return stage_attachment(directory, name, file)
        except OSError as error:
            if slot.store.stat(slot.session_id) is None:
                raise slot.deleted_error() from error
            if error.errno in FULL_ERRNOS:
                raise StorageFullError(slot.session_id, f"{slot.path}/attachments", error.errno) from error
            raise
        finally:
            directory.close()


def _open_regular(path: str, flags: int) -> int:
    """Open a file that has an end: a FIFO would wait for a writer, and a device may never end."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    found = os.fstat(fd).st_mode
    if not stat.S_ISREG(found):
        os.close(fd)
        if stat.S_ISDIR(found):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise InvalidEventError("source", f"is not a regular file: {path}")
    return fd


class _Binary:
    """A file that must give bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        if isinstance(data, str):
            raise InvalidEventError("source", "is a file in text mode; open it in binary mode ('rb')")
        return bytes(data or b"")


def _check(place: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidEventError(place, f"must be a str, not {type(value).__name__}")
    if is_blank(value):
        raise InvalidEventError(place, "is blank")
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidEventError(place, f"is not Unicode text: {value!r}") from None
    if size_bytes > NAME_BYTES_MAX:
        raise InvalidEventError(place, f"is longer than {NAME_BYTES_MAX} bytes of UTF-8")
    return str(value)


def remove_stage(slot: Slot, name: str) -> None:
    """Remove a stage whose event was not accepted; the error that is on its way says more."""
    with contextlib.suppress(SealogError, OSError):
        directory = slot.open_directory()
        try:
            remove_attachment_files(directory, [name])
        finally:
            directory.close()
