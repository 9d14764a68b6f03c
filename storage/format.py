"""The bytes of a log file: file header, frames, head mark. The document is docs/format.md.

All integers are little-endian. A frame's header check is seeded with the file's own SEED and the frame's
offset, so bytes of another place, file or event text are never taken for a frame.
"""

from __future__ import annotations

import os
import struct
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from .errors import UpgradeRequiredError

MAGIC: Final = b"\x89SLG\r\n\x1a\n"
MAJOR: Final = 1
MINOR: Final = 0

SALT_SIZE: Final = 16
FILE_HEADER: Final = struct.Struct("<8sHHI16s")
FILE_HEADER_SIZE: Final = FILE_HEADER.size

FRAME_HEADER: Final = struct.Struct("<4sIQIHBBII")
FRAME_HEADER_SIZE: Final = FRAME_HEADER.size
_CHECKED_FROM: Final = 8  # the header check covers header[8:32]

KIND_SESSION_HEADER: Final = 1
KIND_EVENTS: Final = 2
KIND_SEAL: Final = 3

PAYLOAD_SIZE_MAX: Final = 64 * 1024 * 1024
FRAME_EVENTS_MAX: Final = 65_535
SESSION_EVENTS_MAX: Final = 2**32 - 1

HEAD_MARK: Final = struct.Struct("<QQIIQ")
HEAD_MARK_SIZE: Final = HEAD_MARK.size
HOLDER_OFFSET: Final = 64

SECTOR_SIZE: Final = 512
"""What a disk writes whole or not at all."""

_M32: Final = 0xFFFF_FFFF


class FormatKeys(msgspec.Struct, frozen=True):
    """What a file header gives to its frames: the sync word, the seed and the salt."""

    sync: bytes
    seed: int
    salt: bytes


class Frame(msgspec.Struct, frozen=True):
    """A frame header that passed its check, and where it stands."""

    offset: int
    header_check: int
    digest: int
    payload_length: int
    event_count: int
    kind: int
    first_position: int
    previous: int

    @property
    def payload_offset(self) -> int:
        """Offset of the payload in the file."""
        return self.offset + FRAME_HEADER_SIZE

    @property
    def end(self) -> int:
        """Offset behind the frame."""
        return self.offset + FRAME_HEADER_SIZE + self.payload_length

    @property
    def next_position(self) -> int:
        """Position of the first event behind the frame."""
        return self.first_position + self.event_count


class Head(msgspec.Struct, frozen=True):
    """The end of a log: offset, next position and the header check of the frame that ends there."""

    end: int
    position: int
    header_check: int


class SessionHeader(msgspec.Struct, frozen=True):
    """What a session was created with.

    Args:
        session_id: 1–255 characters of `[A-Za-z0-9_-]`.
        created_at: any non-blank text; RFC 3339 UTC when the library sets it.
        labels: names and values of the application's own.
    """

    session_id: str
    created_at: str
    labels: dict[str, str] = {}


class Receipt(msgspec.Struct, frozen=True):
    """What a seal says about the log: it proves the session to whoever kept it.

    Args:
        events: number of events.
        last_digest: digest of the last frame before the seal.
        sha256: SHA-256 of all bytes of the log before the seal frame, in hexadecimal.
    """

    events: int
    last_digest: int
    sha256: str


encode_msgpack = msgspec.msgpack.Encoder().encode
decode_session_header = msgspec.msgpack.Decoder(SessionHeader).decode
decode_receipt = msgspec.msgpack.Decoder(Receipt).decode


def new_salt() -> bytes:
    """Return a random salt whose first bytes can neither start msgpack nor UTF-8 nor be zero."""
    salt = os.urandom(SALT_SIZE)
    return b"\xc1" + bytes(byte or 1 for byte in salt[1:4]) + salt[4:]


def file_header(salt: bytes) -> bytes:
    """Return the 32 bytes a log starts with."""
    check = _file_check(MAJOR, MINOR, salt)
    return FILE_HEADER.pack(MAGIC, MAJOR, MINOR, check, salt)


def _file_check(major: int, minor: int, salt: bytes) -> int:
    return xxh3_64_intdigest(MAGIC + struct.pack("<HH", major, minor) + salt) & _M32


def parse_file_header(header: bytes, path: str) -> FormatKeys | None:
    """Return the keys of a file header, None if it is not one.

    Raises:
        UpgradeRequiredError: an intact header of another major version.
    """
    if len(header) < FILE_HEADER_SIZE:
        return None
    magic, major, minor, check, salt = FILE_HEADER.unpack_from(header)
    if magic != MAGIC or check != _file_check(major, minor, salt):
        return None
    if major != MAJOR:
        raise UpgradeRequiredError(path, 0, f"format version {major}.{minor}, this is {MAJOR}.{MINOR}")
    return FormatKeys(salt[:4], xxh3_64_intdigest(header[:FILE_HEADER_SIZE]), salt)


def first_previous(keys: FormatKeys) -> int:
    """Return `previous` of the first frame, which has none before it."""
    return keys.seed & _M32


def payload_digest(keys: FormatKeys, payload: bytes | memoryview) -> int:
    """Return the digest of a payload."""
    return xxh3_64_intdigest(payload, keys.seed)


_BODY: Final = struct.Struct("<QIHBBII")
_LEAD: Final = struct.Struct("<4sI")


def encode_frame(
    keys: FormatKeys, head: Head, kind: int, event_count: int, payload: bytes
) -> tuple[bytes, Frame]:
    """Return the bytes of the frame that follows `head`, and its header."""
    digest, length = xxh3_64_intdigest(payload, keys.seed), len(payload)
    body = _BODY.pack(digest, length, event_count, kind, 0, head.position, head.header_check)
    check = xxh3_64_intdigest(body, keys.seed ^ head.end) & _M32
    frame = Frame(head.end, check, digest, length, event_count, kind, head.position, head.header_check)
    return _LEAD.pack(keys.sync, check) + body + payload, frame


def parse_frame(keys: FormatKeys, data: bytes | memoryview, at: int, offset: int, path: str) -> Frame | None:
    """Return the frame header at `data[at:]`, which stands at `offset` in the file; None if it is none.

    Raises:
        UpgradeRequiredError: an intact header with a kind or flag this version does not know.
    """
    sync, check, digest, length, count, kind, flags, position, previous = FRAME_HEADER.unpack_from(data, at)
    if sync != keys.sync:
        return None
    checked = data[at + _CHECKED_FROM : at + FRAME_HEADER_SIZE]
    if xxh3_64_intdigest(checked, keys.seed ^ offset) & _M32 != check:
        return None
    if flags or not KIND_SESSION_HEADER <= kind <= KIND_SEAL:
        raise UpgradeRequiredError(path, offset, f"frame of kind {kind} with flags {flags:#04x}")
    if length > PAYLOAD_SIZE_MAX:
        return None
    return Frame(offset, check, digest, length, count, kind, position, previous)


def encode_mark(keys: FormatKeys, head: Head) -> bytes:
    """Return the head mark: the end of the log that was synced last."""
    fields = HEAD_MARK.pack(keys.seed, head.end, head.position, head.header_check, 0)[:-8]
    return fields + xxh3_64_intdigest(fields).to_bytes(8, "little")


def parse_mark(keys: FormatKeys, data: bytes) -> Head | None:
    """Return the head that a mark names; None if it is damaged, missing or of another log."""
    if len(data) < HEAD_MARK_SIZE:
        return None
    seed, end, position, check, digest = HEAD_MARK.unpack_from(data)
    if seed != keys.seed or digest != xxh3_64_intdigest(data[: HEAD_MARK_SIZE - 8]):
        return None
    return Head(end, position, check)
