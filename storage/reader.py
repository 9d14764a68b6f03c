"""Reading events out of a log: by its owner's threads, and by processes that do not own it.

Reading takes no lock, changes nothing and streams: memory depends on the largest frame, not on the log.
"""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from .errors import CorruptionError, SessionDeletedError
from .events import Event, decode_keys, decode_payload
from .format import (
    FILE_HEADER_SIZE,
    FRAME_HEADER_SIZE,
    HEAD_MARK_SIZE,
    KIND_EVENTS,
    KIND_SEAL,
    FormatKeys,
    Frame,
    Head,
    Receipt,
    SessionHeader,
    parse_frame,
    parse_mark,
    payload_digest,
)
from .recovery import VERIFY_TAIL_BYTES, Reason, judge, read_receipt
from .scan import read_frame, walk_chain
from .vfs import close_quietly, sync_if_possible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .checkpoints import Checkpoint
    from .index import FrameIndex
    from .vfs import Directory, File, FileSystem

T = TypeVar("T")

LOG_NAME: Final = "log"
LOCK_NAME: Final = "lock"
READ_CHUNK_BYTES: Final = 128 * 1024
SOME_EVENTS: Final = 1024
SOME_BYTES: Final = 1024 * 1024
_NOT_A_FILE: Final = frozenset({errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV})


class SharedFile:
    """A file that closes when its last user has released it. The creator is the first user."""

    __slots__ = ("_count", "_lock", "file")

    def __init__(self, file: File) -> None:
        self.file = file
        self._count = 1
        self._lock = threading.Lock()

    def acquire(self) -> bool:
        """Become a user; False if the file is closed already."""
        with self._lock:
            if self._count == 0:
                return False
            self._count += 1
            return True

    def release(self) -> None:
        """Stop being a user."""
        with self._lock:
            self._count -= 1
            last = self._count == 0
        if last:
            self.file.close()


class LogView:
    """What reading one open log needs, from any number of threads: each has a `head` it may read up to."""

    __slots__ = ("index", "keys", "session_id", "shared")

    def __init__(self, shared: SharedFile, keys: FormatKeys, index: FrameIndex, session_id: str) -> None:
        self.shared = shared
        self.keys = keys
        self.index = index
        self.session_id = session_id

    def events(self, start: int, stop: int, head: Head) -> Iterator[Event]:
        """Yield the events at `start` up to `stop`, which must be within `head`.

        The caller holds the shared file for as long as it iterates.

        Raises:
            CorruptionError: what stands there is damaged or gone.
        """
        if start >= stop:
            return
        for frame, events in self._batches(start, head, decode_payload):
            first, behind = frame.first_position, frame.next_position
            if first < start or behind > stop:
                yield from events[max(start - first, 0) : stop - first]
            else:
                yield from events
            if behind >= stop:  # the next frame was not asked for, be it damaged or not
                return

    def frame_at(self, position: int, head: Head) -> tuple[int, list[Event]]:
        """Return the frame that holds an event: its first position, and all its events.

        Raises:
            CorruptionError: it is damaged or gone.
        """
        frame, events = next(self._batches(position, head, decode_payload))
        return frame.first_position, events

    def some_events(self, start: int, head: Head) -> list[Event]:
        """Return events from `start` on, as whole frames: no more than are read at once.

        Raises:
            CorruptionError: the first of them is damaged; what stands before damage is returned first.
        """
        found: list[Event] = []
        size_bytes = 0
        try:
            for frame, events in self._batches(start, head, decode_payload):
                found.extend(events[max(start - frame.first_position, 0) :])
                size_bytes += frame.payload_length
                if len(found) >= SOME_EVENTS or size_bytes >= SOME_BYTES:
                    break
        except CorruptionError:
            if not found:
                raise
        return found

    def events_after(self, known: Head, head: Head) -> Iterator[Event]:
        """Yield the events between two heads of this log.

        Raises:
            CorruptionError: what follows `known` is damaged or gone, or does not follow it.
        """
        for _, events in self._batches(known.position, head, decode_payload, known):
            yield from events

    def keys_from(self, start: int, head: Head) -> Iterator[tuple[int, str]]:
        """Yield position and key of each event from `start` on that has a key."""
        for frame, keys in self._batches(start, head, decode_keys):
            for position, key in enumerate(keys, frame.first_position):
                if key is not None and position >= start:
                    yield position, key

    def frame_before(self, head: Head) -> Frame:
        """Return the frame that ends at `head`.

        Raises:
            CorruptionError: it is damaged or gone.
        """
        file = self.shared.file
        # not by head.position itself: a frame that an owner has appended since starts there
        offset, position = self.index.find(max(head.position - 1, 0))
        if offset >= head.end:
            offset, position = FILE_HEADER_SIZE, 0
        while True:
            data = file.pread(FRAME_HEADER_SIZE, offset)
            frame = self._frame(data, 0, offset, position, None, head)
            if frame.end == head.end:
                return frame
            offset, position = frame.end, frame.next_position

    def holds(self, checkpoint: Checkpoint) -> bool:
        """Tell whether the frame that a checkpoint was derived from is in this log."""
        return checkpoint.matches(read_frame(self.shared.file, self.keys, checkpoint.offset))

    def _batches(
        self, start: int, head: Head, decode: Callable[[bytes], list[T]], known: Head | None = None
    ) -> Iterator[tuple[Frame, list[T]]]:
        """Yield the frames from the one that holds `start` on, with their decoded events.

        If a head that ends at `start` is known, nothing before it is read.
        """
        file = self.shared.file
        link: int | None = None
        if known is None:
            offset, position = self.index.find(start)
        else:
            offset, position, link = known.end, known.position, known.header_check
        chunk, base = b"", offset
        while offset < head.end:
            at = offset - base
            if at + FRAME_HEADER_SIZE > len(chunk):
                chunk, base, at = file.pread(min(READ_CHUNK_BYTES, head.end - offset), offset), offset, 0
            frame = self._frame(chunk, at, offset, position, link, head)
            if frame.kind == KIND_EVENTS and frame.next_position > start:
                at += FRAME_HEADER_SIZE
                payload = chunk[at : at + frame.payload_length]
                if len(payload) < frame.payload_length:
                    payload = file.pread(frame.payload_length, frame.payload_offset)
                yield frame, self._decode(frame, payload, decode)
            offset, position, link = frame.end, frame.next_position, frame.header_check

    def _frame(
        self, chunk: bytes, at: int, offset: int, position: int, link: int | None, head: Head
    ) -> Frame:
        path = self.shared.file.path
        frame = None
        if len(chunk) - at >= FRAME_HEADER_SIZE:
            frame = parse_frame(self.keys, chunk, at, offset, path)
        if frame is None:
            raise CorruptionError(path, offset, position, "an acknowledged frame is damaged or gone")
        if (
            frame.first_position != position
            or frame.end > head.end
            or (link is not None and frame.previous != link)
        ):
            raise CorruptionError(path, offset, position, "this frame does not follow the one before it")
        return frame

    def _decode(self, frame: Frame, payload: bytes, decode: Callable[[bytes], list[T]]) -> list[T]:
        path = self.shared.file.path
        if len(payload) < frame.payload_length or payload_digest(self.keys, payload) != frame.digest:
            raise CorruptionError(
                path, frame.offset, frame.first_position, "the payload of a frame is damaged"
            )
        try:
            events = decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptionError(
                path,
                frame.offset,
                frame.first_position,
                f"the events of a frame cannot be decoded: {error}",
            ) from error
        if len(events) != frame.event_count:
            raise CorruptionError(
                path,
                frame.offset,
                frame.first_position,
                f"a frame holds {len(events)} events where its header says {frame.event_count}",
            )
        return events


class LogReader:
    """A log that this process reads without owning it.

    Attributes:
        head: how far it has read; never more than is on stable storage.
        last: the frame that ends there.
        header: of the session.
        receipt: of the seal, None while unsealed.
        reason: `clean`, or why the owner-to-be will cut off a tail behind `head`.
        tail_bytes: size of that tail.
        view: for reading events.
    """

    head: Head
    last: Frame
    header: SessionHeader
    receipt: Receipt | None
    reason: Reason
    tail_bytes: int
    view: LogView

    def __init__(self, fs: FileSystem, directory: Directory, session_id: str, *, full: bool = False) -> None:
        """Open and judge a log; the directory may be closed afterwards.

        Raises:
            CorruptionError: damaged.
            UpgradeRequiredError: written by a newer version.
            OSError: it cannot be read.
        """
        self._fs = fs
        mark = read_mark_bytes(directory)
        file = open_log_file(directory)
        try:
            found = judge(directory, file, mark, session_id, full=full)
            self.head, self.header, self.receipt = found.head, found.header, found.receipt
            self.reason, self.tail_bytes = found.reason, found.tail_end - found.head.end
            self.last = found.last
            self._identity = file.stat().identity
            self.view = LogView(SharedFile(file), found.keys, found.index, session_id)
            known = parse_mark(found.keys, mark)
            if known is None or known.end < self.head.end:
                self._make_durable(self.last)
        except BaseException:
            file.close()
            raise

    def refresh(self) -> bool:
        """Look for events that the owner appended since; True if there are some, or a seal.

        Raises:
            SessionDeletedError: the log was deleted or replaced.
            CorruptionError: what had been read is no longer there.
        """
        file, before = self.view.shared.file, self.head
        found = self._fs.stat(file.path)
        if found is None or found.identity != self._identity:
            raise SessionDeletedError(self.header.session_id, file.path)
        self._check_frame(self.last)
        if self.receipt is not None:
            return False
        chain = walk_chain(
            file,
            self.view.keys,
            before,
            found.size_bytes,
            self.view.index,
            found.size_bytes - VERIFY_TAIL_BYTES,
        )
        if chain.last is None:
            return False
        self._make_durable(chain.last)
        if chain.last.kind == KIND_SEAL:
            self.receipt = read_receipt(file, chain.last)
        self.last, self.head = chain.last, chain.head
        return True

    def close(self) -> None:
        """Close the file, once nobody iterates any more."""
        self.view.shared.release()

    def _make_durable(self, last: Frame) -> None:
        """Sync what the owner may have written but not synced, before anybody is shown it."""
        sync_if_possible(self.view.shared.file)
        self._check_frame(last)

    def _check_frame(self, last: Frame) -> None:
        file = self.view.shared.file
        if read_frame(file, self.view.keys, last.offset) != last:
            reason = "a frame that had been read is no longer there"
            raise CorruptionError(file.path, last.offset, last.first_position, reason)


def open_log_file(directory: Directory, *, write: bool = False) -> File:
    """Open the log of a session.

    Raises:
        CorruptionError: there is none, or something else stands in its place.
        OSError: it cannot be opened.
    """
    path = f"{directory.path}/{LOG_NAME}"
    found = directory.stat(LOG_NAME)
    if found is None:
        raise CorruptionError(path, 0, 0, "the log is missing")
    try:
        return directory.open(LOG_NAME, write=write)
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            raise CorruptionError(path, 0, 0, "this is not a regular file") from error
        raise


def read_mark_bytes(directory: Directory) -> bytes:
    """Return the start of the lock file, where the head mark is; nothing if it cannot be read."""
    file = None
    try:
        file = directory.open(LOCK_NAME)
        return file.pread(HEAD_MARK_SIZE, 0)
    except OSError:
        return b""
    finally:
        close_quietly(file)
