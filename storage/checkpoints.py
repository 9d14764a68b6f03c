"""Derived files under `checkpoints/`: caches that may be deleted at any time.

A checkpoint says what it was derived from: the salt of the log, the end it covers and the frame that ends
there. It is written after the sync of what it covers, so an intact one also proves how far the log once went.
It needs no sync of its own: a torn one has a wrong digest and is dropped. Layout: docs/format.md.
"""

from __future__ import annotations

import contextlib
import logging
import struct
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from .format import FormatKeys, Frame, Head
from .vfs import Directory, close_quietly

logger = logging.getLogger("sealog")

MAGIC: Final = b"\x89SLC\r\n\x1a\n"
VERSION: Final = 1
_LEAD: Final = struct.Struct("<8sIQ")
DIRECTORY: Final = "checkpoints"


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """A derived state and the log it was derived from.

    Args:
        salt: of the log.
        offset: where the last covered frame starts.
        end: where it ends.
        position: the next position there.
        header_check: of that frame.
        digest: of that frame.
        body: the derived state.
    """

    salt: bytes
    offset: int
    end: int
    position: int
    header_check: int
    digest: int
    body: bytes

    @property
    def head(self) -> Head:
        """The end of the log that is covered."""
        return Head(self.end, self.position, self.header_check)

    def matches(self, frame: Frame | None) -> bool:
        """Tell whether the frame that stands at `offset` is the one this was derived from."""
        return (
            frame is not None
            and frame.end == self.end
            and frame.next_position == self.position
            and frame.header_check == self.header_check
            and frame.digest == self.digest
        )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def checkpoint_of(keys: FormatKeys, frame: Frame, body: bytes) -> Checkpoint:
    """Return a checkpoint that covers the log up to the end of `frame`."""
    return Checkpoint(
        keys.salt, frame.offset, frame.end, frame.next_position, frame.header_check, frame.digest, body
    )


def write_checkpoint(session: Directory, name: str, checkpoint: Checkpoint) -> bool:
    """Replace a checkpoint; False if that was not possible, which harms nothing but speed.

    Args:
        session: the directory of the session.
        name: the file's name.
        checkpoint: what to store.
    """
    directory = None
    try:
        if session.stat(DIRECTORY) is None:
            session.make_directory(DIRECTORY)
        directory = session.open_directory(DIRECTORY)
        _replace(directory, name, _encode(checkpoint))
    except OSError as error:
        logger.warning("%s: checkpoint %s not written: %s", session.path, name, error)
        return False
    finally:
        close_quietly(directory)
    return True


def _replace(directory: Directory, name: str, payload: bytes) -> None:
    temporary = f".{name}.new"
    if directory.stat(temporary) is not None:
        directory.unlink(temporary)
    file = directory.open(temporary, create=True)
    try:
        file.pwrite(_LEAD.pack(MAGIC, VERSION, xxh3_64_intdigest(payload)) + payload, 0)
        file.close()
        directory.rename(temporary, directory, name)
    except OSError:
        close_quietly(file)
        with contextlib.suppress(OSError):
            directory.unlink(temporary)
        raise


def read_checkpoint(session: Directory, name: str, keys: FormatKeys) -> Checkpoint | None:
    """Return a checkpoint of this log; None if there is none, or it is damaged, newer or of another log."""
    try:
        directory = session.open_directory(DIRECTORY)
    except OSError:
        return None
    try:
        checkpoint = _read(directory, name)
    finally:
        directory.close()
    return checkpoint if checkpoint is not None and checkpoint.salt == keys.salt else None


def find_salt(session: Directory) -> bytes | None:
    """Return the salt that an intact checkpoint names, for a log whose own header is damaged."""
    try:
        directory = session.open_directory(DIRECTORY)
    except OSError:
        return None
    try:
        for name in sorted(directory.names()):
            checkpoint = _read(directory, name)
            if checkpoint is not None:
                return checkpoint.salt
    finally:
        directory.close()
    return None


def _read(directory: Directory, name: str) -> Checkpoint | None:
    try:
        file = directory.open(name)
    except OSError:
        return None
    try:
        data = file.pread(file.stat().size_bytes, 0)
    except OSError:
        return None
    finally:
        file.close()
    if len(data) < _LEAD.size:
        return None
    magic, version, digest = _LEAD.unpack_from(data)
    payload = memoryview(data)[_LEAD.size :]
    if magic != MAGIC or version != VERSION or digest != xxh3_64_intdigest(payload):
        return None
    try:
        return _decode(payload)
    except msgspec.DecodeError:
        return None
