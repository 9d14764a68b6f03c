"""Reading a KSESSIONLOG session: its frames, its objects, and what its writer would call orphans."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import IO, TYPE_CHECKING, Final

from ..storage.errors import (
    AttachmentCorruptError,
    AttachmentMissingError,
    CorruptionError,
    FormatError,
    InvalidSessionIdError,
    SessionNotFoundError,
    UpgradeRequiredError,
)
from ..storage.events import is_blank
from ._ksession_format import (
    FORMAT_VERSION,
    FRAME_HEADER,
    KIND_EVENT,
    KIND_HEADER,
    KIND_SEALED,
    LOG_MAGIC,
    OBJECT_HEADER,
    OBJECT_MAGIC,
    ROLE_PENDING_OBJECT,
    ROLES,
    U64_MAX,
    KEvent,
    KHeader,
    KObject,
    KSession,
    is_session_id,
    log_name,
    object_name,
    object_name_pattern,
)
from ._ksession_json import JsonError, read_struct
from ._ksession_scan import find_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_HEADER_FIELDS: Final = {"formatVersion": None, "sessionId": None, "createdAt": None}
_EVENT_FIELDS: Final = {"role": ROLES, "text": None}
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO in a file's place must not hang the open
    | getattr(os, "O_BINARY", 0)
)
_VERSION_NUMBERS: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")
_ADVICE: Final = "nothing was changed; restore the file from a backup"


def read_session(directory: str, session_id: str) -> KSession:
    """Read a session; `ksessionlog.read` says how."""
    if not is_session_id(session_id):
        raise InvalidSessionIdError(session_id)
    path = os.path.join(directory, log_name(session_id))
    try:
        file = _open(path)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFoundError(session_id, directory) from None
    if file is None:
        raise FormatError(path, 0, "is not a file", "remove what stands in the place of the session log")
    with file:
        log = _LogReader(file, path)
        log.read()
    header = log.header
    if header is None:
        raise _damaged(path, log.end, 0, "session log has no header")
    if header.session_id != session_id:
        raise FormatError(
            path,
            len(LOG_MAGIC),
            f"session filename and header identity differ: the header says {header.session_id!r}",
            "give the file the name of its session",
        )
    positions = [index for index, event in enumerate(log.events) if event.role == ROLE_PENDING_OBJECT]
    orphans = _find_orphans(directory, session_id, frozenset(positions))
    objects = {position: _read_object(directory, session_id, position) for position in positions}
    return KSession(header, tuple(log.events), log.sealed, objects, log.size - log.end, orphans)


class _LogReader:
    """Reads the frames of one log; `end` is where the last complete one ends."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self.header: KHeader | None = None
        self.events: list[KEvent] = []
        self.sealed = False
        self.size = os.fstat(file.fileno()).st_size
        self.end = len(LOG_MAGIC)
        self._file = file
        self._path = path

    def read(self) -> None:
        magic = self._file.read(len(LOG_MAGIC))
        if len(magic) < len(LOG_MAGIC):
            raise _damaged(self._path, 0, 0, "session log is shorter than its magic")
        if magic != LOG_MAGIC:
            raise FormatError(self._path, 0, "is not a session log", "only KSESSIONLOG files can be read")
        for kind, payload in self._frames():
            # The original leaves the kind out of the checksum, so it is checked after it.
            if kind == KIND_HEADER:
                self._take_header(payload)
            elif kind == KIND_EVENT:
                self._take_event(payload)
            elif kind == KIND_SEALED:
                self._take_seal(payload)
            else:
                raise self._damage(f"unknown complete session-log frame kind {kind}")

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        while self.size - self.end >= FRAME_HEADER.size:
            self._file.seek(self.end)
            kind, length, digest = FRAME_HEADER.unpack(self._read(FRAME_HEADER.size))
            end = self.end + FRAME_HEADER.size + length
            if end > U64_MAX:
                raise self._damage("session-log frame length overflow")
            if end > self.size:
                break
            payload = self._read(length)
            if hashlib.sha256(payload).digest() != digest:
                raise self._damage("session log has a checksum-invalid complete frame")
            yield kind, payload
            self.end = end
        self._refuse_later_frames()

    def _refuse_later_frames(self) -> None:
        later = find_frame(self._file, self.end + 1, self.size)
        if later is not None:
            raise self._damage(f"an incomplete frame that is not the last, another follows at byte {later}")

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise self._damage("session log became shorter while it was read")
        return data

    def _take_header(self, payload: bytes) -> None:
        if self.end != len(LOG_MAGIC):
            raise self._damage("duplicate session header")
        version, session_id, created_at = self._decode(payload, _HEADER_FIELDS)
        if version != FORMAT_VERSION:
            raise _unsupported(self._path, self.end, "session-log", version)
        if not is_session_id(session_id):
            raise self._unfit(f"header has {session_id!r:.60} as session ID")
        if is_blank(created_at):
            raise self._unfit("session creation time cannot be empty")
        self.header = KHeader(session_id, created_at)

    def _take_event(self, payload: bytes) -> None:
        if self.header is None:
            raise self._damage("session event precedes header")
        if self.sealed:
            raise self._damage("session event follows sealed footer")
        role, text = self._decode(payload, _EVENT_FIELDS)
        self.events.append(KEvent(role, text))

    def _take_seal(self, payload: bytes) -> None:
        if self.header is None:
            raise self._damage("sealed footer precedes header")
        if payload:
            raise self._damage("sealed footer payload must be empty")
        if self.sealed:
            raise self._damage("duplicate sealed footer")
        self.sealed = True

    def _decode(self, payload: bytes, fields: Mapping[str, Collection[str] | None]) -> list[str]:
        try:
            return read_struct(payload, fields)
        except JsonError as error:
            raise self._unfit(error.reason, FRAME_HEADER.size + error.offset) from None

    def _damage(self, reason: str) -> CorruptionError:
        return _damaged(self._path, self.end, len(self.events), reason)

    def _unfit(self, reason: str, offset: int = 0) -> FormatError:
        # The checksum is right: this was written as it is.
        return FormatError(self._path, self.end + offset, reason, "KSESSIONLOG 0.2.1 does not take it either")


def _open(path: str) -> IO[bytes] | None:
    """Open a regular file; None if something else has the name."""
    fd = os.open(path, _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return os.fdopen(fd, "rb")


def _read_object(directory: str, session_id: str, position: int) -> KObject:
    path = os.path.join(directory, object_name(session_id, position))
    try:
        file = _open(path)
    except (FileNotFoundError, NotADirectoryError):
        raise AttachmentMissingError(session_id, position, path, "the file does not exist") from None
    if file is None:
        raise AttachmentCorruptError(session_id, position, path, "it is not a file")
    with file:
        try:
            return _parse_object(file, path)
        except _ObjectError as error:
            raise AttachmentCorruptError(session_id, position, path, str(error)) from None


class _ObjectError(Exception):
    """What is wrong with an object file."""


def _parse_object(file: IO[bytes], path: str) -> KObject:
    head = file.read(OBJECT_HEADER.size)
    if len(head) < OBJECT_HEADER.size:
        raise _ObjectError(f"it is shorter than its header of {OBJECT_HEADER.size} bytes")
    magic, version_size, name_size, media_size, bytes_size, digest = OBJECT_HEADER.unpack(head)
    if magic != OBJECT_MAGIC:
        raise _ObjectError("it is not a pending-object file")
    declared = OBJECT_HEADER.size + version_size + name_size + media_size + bytes_size
    if declared > U64_MAX:
        raise _ObjectError("pending-object declared length overflow")
    # Before anything is read that has the size which the file claims.
    if declared != os.fstat(file.fileno()).st_size:
        raise _ObjectError("pending-object declared length differs from file length")
    version = _object_text(file, version_size)
    if version != FORMAT_VERSION:
        raise _unsupported(path, OBJECT_HEADER.size, "pending-object", version)
    file_name, media_type = _object_text(file, name_size), _object_text(file, media_size)
    if is_blank(file_name):
        raise _ObjectError("object filename is empty")
    if is_blank(media_type):
        raise _ObjectError("object media type is empty")
    return KObject(file_name, media_type, _object_bytes(file, bytes_size, digest))


def _object_bytes(file: IO[bytes], size: int, digest: bytes) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _ObjectError("it became shorter while it was read")
    if file.read(1):
        raise _ObjectError("pending-object file has trailing bytes")
    if hashlib.sha256(data).digest() != digest:
        raise _ObjectError("pending-object checksum mismatch")
    return data


def _object_text(file: IO[bytes], size: int) -> str:
    try:
        return file.read(size).decode()
    except UnicodeDecodeError:
        raise _ObjectError("a text in its header is not UTF-8") from None


def _find_orphans(directory: str, session_id: str, referenced: Collection[int]) -> tuple[str, ...]:
    matches = object_name_pattern(session_id).fullmatch
    orphans: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            found = matches(entry.name)
            if found is None or int(found[1]) > U64_MAX:
                continue
            temporary = found[2] is not None
            if int(found[1]) in referenced and not temporary:
                continue
            if entry.is_dir(follow_symlinks=False):
                # The original removes orphans when it opens the session, and gives up on this one.
                raise FormatError(
                    entry.path, 0, "is a directory with the name of an object", "move it away and try again"
                )
            orphans.append(entry.name)
    return tuple(sorted(orphans))


def _unsupported(path: str, offset: int, what: str, version: str) -> FormatError:
    reason = f"unsupported {what} format {version:.60}"
    found, known = _VERSION_NUMBERS.fullmatch(version), _VERSION_NUMBERS.fullmatch(FORMAT_VERSION)
    if found and known and tuple(map(int, found.groups())) > tuple(map(int, known.groups())):
        return UpgradeRequiredError(path, offset, reason)
    return FormatError(path, offset, reason, f"only format {FORMAT_VERSION} can be read")


def _damaged(path: str, offset: int, position: int, reason: str) -> CorruptionError:
    return CorruptionError(path, offset, position, reason, _ADVICE)
