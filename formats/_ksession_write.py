"""Writing a session as KSESSIONLOG 0.2.1 does, byte for byte, and all of it or nothing.

Objects come first and the log last, each complete and synced under a name of its own before it gets the one
that counts. So a log that can be seen has all its objects, whenever the machine stops.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import sys
from typing import TYPE_CHECKING, Final

from ..storage.errors import (
    InvalidEventError,
    InvalidHeaderError,
    InvalidSessionIdError,
    LimitExceededError,
    SessionExistsError,
    StorageFullError,
)
from ..storage.events import is_blank
from ..storage.vfs import FULL_ERRNOS, OsFile
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
    TEMPORARY_SUFFIX,
    U32_MAX,
    KHeader,
    KObject,
    KSession,
    is_session_id,
    log_name,
    object_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

if sys.platform != "win32":  # sealog does not run there
    import fcntl

_NAME_BYTES_MAX: Final = 255
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK})


def write_session(session: KSession, directory: str) -> None:
    """Write a session; `ksessionlog.write` says how."""
    session_id = session.header.session_id
    if not is_session_id(session_id):
        raise InvalidSessionIdError(session_id)
    log = _encode_log(session)
    files = [(object_name(session_id, at), parts) for at, parts in _encode_objects(session)]
    for name in (log_name(session_id), *(name + TEMPORARY_SUFFIX for name, _ in files)):
        if len(name) > _NAME_BYTES_MAX:
            raise LimitExceededError(
                "bytes of a file name", _NAME_BYTES_MAX, len(name), "give the session a shorter id"
            )
    try:
        _make_directories(os.path.abspath(directory))
        _publish_all(directory, [*files, (log_name(session_id), log)])
    except FileExistsError as error:
        raise SessionExistsError(session_id, str(error.filename)) from None
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise StorageFullError(session_id, directory, error.errno) from error
        raise


def _publish_all(directory: str, files: Sequence[tuple[str, Sequence[bytes]]]) -> None:
    fd = os.open(directory, os.O_RDONLY)
    published: list[str] = []
    try:
        # Two writers of one session would take over each other's objects, and remove them when they fail.
        fcntl.flock(fd, fcntl.LOCK_EX)
        *objects, (log_file, log) = files
        _check_free(os.path.join(directory, log_file))
        for name, parts in objects:
            _publish(os.path.join(directory, name), parts, published)
        os.fsync(fd)
        _publish(os.path.join(directory, log_file), log, published)
        os.fsync(fd)
    except BaseException:
        for name in reversed(published):
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise
    finally:
        os.close(fd)


def _check_free(path: str) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "is in the way", path)


def _encode_log(session: KSession) -> list[bytes]:
    parts = [LOG_MAGIC, *_frame(KIND_HEADER, _encode_header(session.header))]
    for position, event in enumerate(session.events):
        if event.role not in ROLES:
            raise InvalidEventError(f"events[{position}].role", f"{event.role!r:.60} is not one of {ROLES}")
        text = _encode_json(f"events[{position}].text", event.text)
        parts += _frame(KIND_EVENT, b'{"role":"%b","text":%b}' % (event.role.encode(), text))
    if session.sealed:
        parts += _frame(KIND_SEALED, b"")
    return parts


def _encode_header(header: KHeader) -> bytes:
    try:
        created_at = _encode_json("created_at", header.created_at)
        _check_not_blank("created_at", header.created_at)
    except InvalidEventError as error:
        raise InvalidHeaderError(header.session_id, error.place, error.reason) from None
    names = FORMAT_VERSION.encode(), header.session_id.encode()
    return b'{"formatVersion":"%b","sessionId":"%b","createdAt":%b}' % (*names, created_at)


def _frame(kind: int, payload: bytes) -> tuple[bytes, bytes]:
    return FRAME_HEADER.pack(kind, len(payload), hashlib.sha256(payload).digest()), payload


def _encode_objects(session: KSession) -> Iterator[tuple[int, Sequence[bytes]]]:
    left = set(session.objects)
    for position, event in enumerate(session.events):
        if event.role == ROLE_PENDING_OBJECT:
            if position not in left:
                raise InvalidEventError(
                    f"objects[{position}]", "is missing, and its event is a pending-object"
                )
            left.remove(position)
            yield position, _encode_object(f"objects[{position}]", session.objects[position])
    for position in sorted(left):
        raise InvalidEventError(f"objects[{position}]", "has no pending-object event at its position")


def _encode_object(place: str, found: KObject) -> Sequence[bytes]:
    texts: list[bytes] = []
    for field, text in (("file_name", found.file_name), ("media_type", found.media_type)):
        texts.append(_encode_text(f"{place}.{field}", text))
        _check_not_blank(f"{place}.{field}", text)
        if len(texts[-1]) > U32_MAX:
            raise LimitExceededError(f"bytes of {place}.{field}", U32_MAX, len(texts[-1]), "shorten it")
    if not isinstance(found.bytes, bytes):
        raise InvalidEventError(f"{place}.bytes", f"must be bytes, not {type(found.bytes).__name__}")
    version, (name, media_type) = FORMAT_VERSION.encode(), texts
    sizes = len(version), len(name), len(media_type), len(found.bytes)
    header = OBJECT_HEADER.pack(OBJECT_MAGIC, *sizes, hashlib.sha256(found.bytes).digest())
    return header, version, name, media_type, found.bytes


def _encode_json(place: str, text: object) -> bytes:
    _encode_text(place, text)
    # The same escapes as serde_json's: the short ones, else \u00 and two lower-case digits, and no others.
    return json.dumps(text, ensure_ascii=False).encode()


def _encode_text(place: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise InvalidEventError(place, f"must be a str, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidEventError(place, f"has a lone surrogate at character {error.start}") from None


def _check_not_blank(place: str, text: str) -> None:
    if is_blank(text):
        raise InvalidEventError(place, "is blank")


def _publish(path: str, parts: Sequence[bytes], published: list[str]) -> None:
    """Give a complete file its name, which must be free or have these bytes already.

    Raises:
        FileExistsError: another file has the name.
    """
    temporary = os.path.join(os.path.dirname(path), f".ksessionlog-{secrets.token_hex(8)}.tmp")
    try:
        _write_file(temporary, parts)
        try:
            _rename_new(temporary, path)
        except FileExistsError:
            # A writer that died after it published this object leaves it to the next one.
            if not _has_bytes(path, parts):
                raise FileExistsError(errno.EEXIST, "is in the way", path) from None
        else:
            published.append(path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _write_file(path: str, parts: Sequence[bytes]) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, _FILE_MODE)) as file:
        file.writelines(parts)
        file.flush()
        OsFile(file.fileno(), path).sync_data()


def _rename_new(name: str, new_name: str) -> None:
    try:
        os.link(name, new_name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _check_free(new_name)
        os.rename(name, new_name)


def _has_bytes(path: str, parts: Sequence[bytes]) -> bool:
    if not os.path.isfile(path) or os.path.getsize(path) != sum(map(len, parts)):
        return False
    with open(path, "rb") as file:
        return all(file.read(len(part)) == part for part in parts)


def _make_directories(path: str) -> None:
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    _make_directories(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _DIRECTORY_MODE)
    fd = os.open(parent, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
