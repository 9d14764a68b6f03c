"""Attachments: plain files beside the log, named after the position of their event.

The event says name, media type, size and SHA-256, so any program can open the file and this one can prove it.
A file is streamed and synced into a stage by the caller's thread, renamed to its position by the session's
owner, and counts from the commit of its event on.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import re
import secrets
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

import msgspec

from .errors import AttachmentCorruptError, AttachmentMissingError, CorruptionError
from .events import AttachmentData, Event
from .vfs import close_quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .vfs import Directory, File

DIRECTORY: Final = "attachments"
STAGE_PREFIX: Final = ".stage-"
_NOT_THERE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO, errno.ENODEV}
)
COPY_BYTES: Final = 1024 * 1024
_POSITION_NAME: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


class Source(Protocol):
    """Where an attachment's bytes come from: an open binary file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, nothing at the end."""
        ...


class Stage(msgspec.Struct, frozen=True):
    """A complete, synced file that no event refers to yet."""

    name: str
    size_bytes: int
    sha256: str


def stage_attachment(session: Directory, name: str, source: Source) -> Stage:
    """Stream bytes into a stage file and sync it.

    Args:
        session: the directory of the session.
        name: from `new_stage_name`, known to the owner so that it does not sweep it.
        source: the bytes.

    Raises:
        OSError: the disk refused; the stage is removed.
    """
    directory = open_attachments(session, create=True)
    file: File | None = None
    digest, size = hashlib.sha256(), 0
    try:
        file = directory.open(name, create=True)
        while data := source.read(COPY_BYTES):
            file.pwrite(data, size)
            digest.update(data)
            size += len(data)
        file.sync_data()
    except BaseException:
        if file is not None:
            close_quietly(file)
            with contextlib.suppress(OSError):
                directory.unlink(name)
        raise
    finally:
        close_quietly(file, directory)
    return Stage(name, size, digest.hexdigest())


def new_stage_name() -> str:
    """Return a name that no other stage has."""
    return STAGE_PREFIX + secrets.token_hex(8)


def open_attachments(session: Directory, *, create: bool = False) -> Directory:
    """Open the folder of attachments, made and synced first if wanted.

    Raises:
        FileNotFoundError: the session has none.
    """
    if create:
        if session.stat(DIRECTORY) is None:
            with contextlib.suppress(FileExistsError):
                session.make_directory(DIRECTORY)
        session.sync()  # also of a folder that another thread has just made and not synced yet
    return session.open_directory(DIRECTORY)


def publish_stages(session: Directory, stages: Collection[tuple[Stage, int]]) -> None:
    """Rename stages to their positions and sync the folder, before their events are committed.

    Raises:
        OSError: some may have been renamed; call `remove_attachment_files`.
    """
    directory = open_attachments(session)
    try:
        for stage, position in stages:
            directory.rename(stage.name, directory, str(position))
        directory.sync()
    finally:
        directory.close()


def remove_attachment_files(session: Directory, names: Collection[str]) -> None:
    """Remove files whose events were not committed; what cannot be removed is swept at the next open."""
    with contextlib.suppress(OSError):
        directory = open_attachments(session)
        try:
            for name in names:
                with contextlib.suppress(OSError):
                    directory.unlink(name)
        finally:
            directory.close()


def sweep_attachments(
    session: Directory, staging: Collection[str], next_position: int, event_at: Callable[[int], Event]
) -> tuple[str, ...]:
    """Remove what a dead owner left: stages nobody writes, and files that no event refers to (INV-6).

    Args:
        session: the directory of the session, whose lock is held.
        staging: stages that threads of this process are writing.
        next_position: of the log.
        event_at: reads an event.

    Returns:
        The names that were removed, sorted.
    """
    try:
        directory = open_attachments(session)
    except FileNotFoundError:
        return ()
    try:
        names = directory.names()
        if names:
            directory.sync()
        dead = sorted(
            name
            for name in names
            if (name.startswith(STAGE_PREFIX) and name not in staging)
            or (_POSITION_NAME.fullmatch(name) and not _is_attachment(int(name), next_position, event_at))
        )
        removed = [name for name in dead if _remove_file(directory, name)]
        if removed:
            directory.sync()
    finally:
        directory.close()
    return tuple(removed)


def _is_attachment(position: int, next_position: int, event_at: Callable[[int], Event]) -> bool:
    if position >= next_position:
        return False
    try:
        return event_at(position).kind == "attachment"
    except CorruptionError:  # a damaged event may have referred to it
        return True


def _remove_file(directory: Directory, name: str) -> bool:
    found = directory.stat(name)
    if found is None or found.is_directory:
        return False
    directory.unlink(name)
    return True


class Attachment:
    """A file of a session.

    Attributes:
        position: of its event.
        text: of its event.
        file_name: as it was attached.
        media_type: as it was attached or guessed from the name.
        size_bytes: of the file.
        sha256: of its bytes, in hexadecimal.
        path: where the plain file is.
    """

    __slots__ = (
        "_open_session",
        "_session_id",
        "file_name",
        "media_type",
        "path",
        "position",
        "sha256",
        "size_bytes",
        "text",
    )

    def __init__(
        self,
        session_id: str,
        path: str,
        position: int,
        event: Event,
        open_session: Callable[[], Directory],
    ) -> None:
        """Describe the attachment of an event; no file is touched.

        Raises:
            AttachmentMissingError: the event is no attachment.
        """
        self._session_id = session_id
        self._open_session = open_session
        self.position = position
        self.path = f"{path}/{DIRECTORY}/{position}"
        self.text = event.text
        if event.kind != "attachment":
            raise self._missing(f"the event there is a {event.kind}")
        try:
            data = event.decode(AttachmentData)
        except msgspec.ValidationError as error:
            raise self._missing(f"its event does not describe a file: {error}") from error
        self.file_name = data.file_name
        self.media_type = data.media_type
        self.size_bytes = data.size_bytes
        self.sha256 = data.sha256

    def __repr__(self) -> str:
        return (
            f"Attachment(position={self.position}, file_name={self.file_name!r}, "
            f"media_type={self.media_type!r}, size_bytes={self.size_bytes})"
        )

    @property
    def bytes(self) -> bytes:
        """All bytes, verified.

        Raises:
            AttachmentMissingError: the file is gone.
            AttachmentCorruptError: its size or SHA-256 differ.
        """
        with self.open() as file:
            return file.read(self.size_bytes)

    def open(self) -> BinaryIO:
        """Open for reading. Size is verified here; SHA-256 when a read from start to end reaches the end.

        Raises:
            AttachmentMissingError: the file is gone, or is not a regular file.
            AttachmentCorruptError: its size differs; from reads: its SHA-256 differs.
        """
        session = directory = file = None
        try:
            session = self._open_session()
            directory = open_attachments(session)
            file = directory.open(str(self.position))
            size = file.stat().size_bytes
        except OSError as error:
            close_quietly(file)
            if error.errno not in _NOT_THERE:  # it may well be there: no descriptors, a failing disk
                raise
            raise self._missing(error.strerror or repr(error)) from error
        finally:
            close_quietly(directory, session)
        if size != self.size_bytes:
            file.close()
            raise self.corrupt(f"it has {size:,} bytes, not {self.size_bytes:,}")
        try:
            return io.BufferedReader(_VerifyingReader(self, file), COPY_BYTES)
        except AttachmentCorruptError:
            file.close()
            raise

    def verify(self) -> None:
        """Read the whole file and compare it.

        Raises:
            AttachmentMissingError: the file is gone.
            AttachmentCorruptError: its size or SHA-256 differ.
        """
        with self.open() as file:
            while file.read(COPY_BYTES):
                pass

    def corrupt(self, reason: str) -> AttachmentCorruptError:
        """Return the error that says what is wrong with the file."""
        return AttachmentCorruptError(self._session_id, self.position, self.path, reason)

    def _missing(self, reason: str) -> AttachmentMissingError:
        return AttachmentMissingError(self._session_id, self.position, self.path, reason)


class _VerifyingReader(io.RawIOBase):
    """Reads a file, hashing along; a hash over all bytes in order is compared at the end."""

    def __init__(self, attachment: Attachment, file: File) -> None:
        self._attachment = attachment
        self._file = file
        self._offset = 0
        self._hashed: int = 0
        self._digest = hashlib.sha256()
        if not attachment.size_bytes:
            self._compare()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._attachment.size_bytes}[whence]
        self._offset = max(base + offset, 0)
        return self._offset

    def tell(self) -> int:
        return self._offset

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), max(self._attachment.size_bytes - self._offset, 0))
        data = self._file.pread(wanted, self._offset)
        if len(data) < wanted:
            raise self._attachment.corrupt("it was cut off while it was read")
        view[: len(data)] = data
        if self._offset == self._hashed and data:
            self._digest.update(data)
            self._hashed += len(data)
            if self._hashed == self._attachment.size_bytes:
                self._compare()
        self._offset += len(data)
        return len(data)

    def _compare(self) -> None:
        found = self._digest.hexdigest()
        if found != self._attachment.sha256:
            raise self._attachment.corrupt(f"its SHA-256 is {found}, not {self._attachment.sha256}")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
