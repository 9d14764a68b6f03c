"""The log of one session, as its owner sees it: commit, seal, roll back, close.

Nothing here is shared between threads; whoever holds the session's turn calls it. The order of writes and
syncs is the safety argument of docs/invariants.md (W1–W4).
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from .attachments import sweep_attachments
from .checkpoints import checkpoint_of, read_checkpoint, write_checkpoint
from .errors import (
    CorruptionError,
    LimitExceededError,
    SessionDeletedError,
    SessionLockedError,
    StorageFullError,
)
from .format import (
    FILE_HEADER_SIZE,
    KIND_EVENTS,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    PAYLOAD_SIZE_MAX,
    SESSION_EVENTS_MAX,
    Head,
    Receipt,
    SessionHeader,
    encode_frame,
    encode_mark,
    encode_msgpack,
    file_header,
    first_previous,
    new_salt,
    parse_file_header,
    parse_mark,
)
from .reader import LOG_NAME, LogView, SharedFile, open_log_file
from .recovery import INDEX_CHECKPOINT, RecoveryReport, encode_index, judge, recover, restore, write_again
from .vfs import FULL_ERRNOS, close_quietly, pieces

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Self

    from .checkpoints import Checkpoint
    from .directory import SessionLock
    from .events import Event
    from .recovery import Judgement
    from .vfs import Directory, File, FileSystem

ALLOCATE_MIN: Final = 4 * 1024
ALLOCATE_MAX: Final = 1024 * 1024
CHECKPOINT_EVERY_BYTES: Final = 64 * 1024 * 1024
CHECKPOINT_MIN_BYTES: Final = 64 * 1024
"""A log is not worth an index checkpoint before it takes more than one read to walk."""
CHECKPOINT_GROWTH: Final = 256

logger = logging.getLogger("sealog")


class Hash(Protocol):
    """A running digest of hashlib."""

    def copy(self) -> Self:
        """Return an independent digest of the same bytes."""
        ...

    def update(self, data: bytes, /) -> None:
        """Take in more bytes."""
        ...

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal."""
        ...


class Log:
    """The open log of a session this process owns.

    Attributes:
        head: the acknowledged end; everything before it is on stable storage.
        view: what readers need: the file, its keys and the frame index.
        receipt: of the seal, None while unsealed.
        recovered: what opening found.
    """

    def __init__(
        self, fs: FileSystem, lock: SessionLock, file: File, found: Judgement, report: RecoveryReport
    ) -> None:
        self._fs = fs
        self._lock = lock
        self._file = file
        self._identity = file.stat().identity
        self._allocated = found.size if found.reason == "clean" else found.head.end
        self._last = found.last
        self._checkpointed_end = found.checkpointed_end
        self.path = file.path
        self.header = found.header
        self.head = found.head
        self.receipt = found.receipt
        self.recovered = report
        self.view = LogView(SharedFile(file), found.keys, found.index, found.header.session_id)

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.header.session_id

    @property
    def salt(self) -> bytes:
        """What tells this log from another one of the same name."""
        return self.view.keys.salt

    @property
    def identity(self) -> tuple[int, int]:
        """What tells this file from another one at the same path."""
        return self._identity

    def commit(self, payload: bytes, event_count: int) -> int:
        """Append one frame of events and sync it.

        Args:
            payload: the encoded events.
            event_count: how many they are.

        Returns:
            The position of the first event.

        Raises:
            OSError: the write or the sync failed; the frame may be on disk. Call `roll_back` or close.
            SessionDeletedError: the log was removed from its path.
            CorruptionError: another file stands at the log's path.
        """
        first = self.head.position
        self._write(KIND_EVENTS, payload, event_count)
        return first

    def check_room(self, payload_size: int, event_count: int) -> None:
        """Refuse what the format has no room for, before anything is written.

        Raises:
            LimitExceededError: names the limit.
        """
        if payload_size > PAYLOAD_SIZE_MAX:
            raise LimitExceededError(
                "bytes of one batch",
                PAYLOAD_SIZE_MAX,
                payload_size,
                "split the batch or attach() large data",
                self.session_id,
            )
        if self.head.position + event_count > SESSION_EVENTS_MAX:
            raise LimitExceededError(
                "events of one session",
                SESSION_EVENTS_MAX,
                self.head.position + event_count,
                "seal it and go on in a new session",
                self.session_id,
            )

    def _write(self, kind: int, payload: bytes, event_count: int) -> None:
        head = self.head
        data, frame = encode_frame(self.view.keys, head, kind, event_count, payload)
        if frame.end > self._allocated:
            self._allocate(frame.end)
        self._file.pwrite(data, head.end)
        self._file.sync_data()
        self._check_path()
        self.view.index.add(head.end, head.position)
        self._last = frame
        self.head = Head(frame.end, head.position + event_count, frame.header_check)

    def _allocate(self, end: int) -> None:
        """Reserve space ahead, so that a commit need not change the file's size."""
        step = min(max(end // 8, ALLOCATE_MIN), ALLOCATE_MAX)
        wanted = -(-(end + step) // ALLOCATE_MIN) * ALLOCATE_MIN
        if self._file.allocate(self._allocated, wanted - self._allocated):
            self._allocated = wanted
        else:
            self._allocated = end

    def _check_path(self) -> None:
        found = self._fs.stat(self.path)
        if found is None:
            raise SessionDeletedError(self.session_id, self.path)
        if found.size_bytes < self._allocated:
            raise CorruptionError(
                self.path, found.size_bytes, self.head.position, "the log was cut short under its owner"
            )
        if found.identity != self._identity:
            raise CorruptionError(
                self.path,
                self.head.end,
                self.head.position,
                "another file was put in the place of the open log",
            )

    def roll_back(self) -> None:
        """Cut off what a failed commit left, so that the next one can follow the acknowledged end.

        Raises:
            OSError: that failed too; whether the frame is there is unknown.
        """
        self._allocated = self.head.end
        self._file.truncate(self.head.end)
        self._file.sync_data()

    def seal(self, hashed: Hash, hashed_end: int) -> Receipt:
        """Append the seal: no event can follow.

        Args:
            hashed: SHA-256 of the log's bytes before `hashed_end`.
            hashed_end: how far the caller has hashed already.

        Returns:
            The receipt.

        Raises:
            OSError: as for `commit`.
        """
        digest = hashed.copy()
        for piece in pieces(self._file, hashed_end, self.head.end):
            digest.update(piece)
        receipt = Receipt(self.head.position, self._last.digest, digest.hexdigest())
        self._write(KIND_SEAL, encode_msgpack(receipt), 0)
        self.receipt = receipt
        return receipt

    def write_mark(self) -> None:
        """Note the acknowledged end in the lock file; after a sync returned, never before (W3).

        The mark is true whenever it is there and never required, so failing to write it harms nothing now.
        """
        try:
            self._lock.write_mark(encode_mark(self.view.keys, self.head))
        except OSError as error:
            logger.warning("%s: head mark not written: %s", self.path, error)

    def write_checkpoint(self, directory: Directory) -> None:
        """Write the index checkpoint, if it would save the next open some work.

        Only after the log has grown by a part of itself: what checkpoints cost stays linear in the log.
        """
        grown = self.head.end - self._checkpointed_end
        if grown >= max(CHECKPOINT_MIN_BYTES, self.head.end // CHECKPOINT_GROWTH) and self.write_derived(
            directory, INDEX_CHECKPOINT, encode_index(self.view.index)
        ):
            self._checkpointed_end = self.head.end

    def write_derived(self, directory: Directory, name: str, body: bytes) -> bool:
        """Write a checkpoint that covers the log up to its head; False if that was not possible."""
        return write_checkpoint(directory, name, checkpoint_of(self.view.keys, self._last, body))

    def read_derived(self, directory: Directory, name: str) -> Checkpoint | None:
        """Return a checkpoint whose last covered frame is in this log, None if there is none."""
        checkpoint = read_checkpoint(directory, name, self.view.keys)
        if checkpoint is None or checkpoint.end > self.head.end:
            return None
        return checkpoint if self.view.holds(checkpoint) else None

    @property
    def checkpoint_due(self) -> bool:
        """Whether so much was appended since the last checkpoint that the next one should not wait."""
        return self.head.end - self._checkpointed_end >= CHECKPOINT_EVERY_BYTES

    def event_at(self, position: int) -> Event:
        """Read one acknowledged event.

        Raises:
            CorruptionError: it is damaged.
        """
        return next(self.view.events(position, position + 1, self.head))

    def finish(self, directory: Directory) -> None:
        """Leave the log as a clean end: trimmed, marked, checkpointed. What fails here costs speed only."""
        try:
            if self._allocated > self.head.end:
                self._file.truncate(self.head.end)
                self._allocated = self.head.end
            self.write_mark()
            self._lock.sync()
            self.write_checkpoint(directory)
        except OSError as error:
            logger.warning("%s: not trimmed or marked at close: %s", self.path, error)

    def unlock(self) -> None:
        """Give up the log to other owners; readers that are still iterating keep the file open."""
        with contextlib.suppress(OSError):
            self._file.unlock()

    def close(self) -> None:
        """Give up the log and the file."""
        self.unlock()
        self.view.shared.release()


def create_log(
    directory: Directory, header: SessionHeader, batches: Iterable[tuple[bytes, int]] = ()
) -> None:
    """Write the log of a new session into a directory that is not in place yet, and sync it.

    Args:
        directory: of the session to be.
        header: of the session.
        batches: payloads and event counts of frames that the log starts with.

    Raises:
        OSError: the disk refused.
    """
    start = file_header(new_salt())
    file = directory.open(LOG_NAME, create=True)
    try:
        keys = parse_file_header(start, file.path)
        if keys is None:
            raise CorruptionError(file.path, 0, 0, "the header that was just made cannot be read")
        file.pwrite(start, 0)
        head = Head(FILE_HEADER_SIZE, 0, first_previous(keys))
        kind, payload, count = KIND_SESSION_HEADER, encode_msgpack(header), 0
        more = iter(batches)
        while True:
            data, frame = encode_frame(keys, head, kind, count, payload)
            file.pwrite(data, head.end)
            head = Head(frame.end, frame.next_position, frame.header_check)
            batch = next(more, None)
            if batch is None:
                break
            kind, (payload, count) = KIND_EVENTS, batch
        file.sync_data()
    finally:
        file.close()


class Remembered(msgspec.Struct, frozen=True):
    """What a process that has owned a log without a break knows about it.

    Args:
        salt: of the log.
        identity: of the file; None once the lock was given up.
        head: the acknowledged end; None once the lock was given up.
    """

    salt: bytes
    identity: tuple[int, int] | None
    head: Head | None


def open_log(
    fs: FileSystem,
    store: Directory,
    directory: Directory,
    lock: SessionLock,
    *,
    staging: Collection[str] = (),
    remembered: Remembered | None = None,
    full: bool = False,
) -> Log:
    """Open the log of a session whose lock is held: judge, recover, sync, sweep, mark.

    Args:
        fs: the file system.
        store: directory of the store.
        directory: of the session.
        lock: of the session, held.
        staging: attachment stages that threads of this process are writing.
        remembered: what this process knows from an earlier incarnation.
        full: check every payload.

    Raises:
        CorruptionError: acknowledged data is damaged or gone.
        UpgradeRequiredError: written by a newer version.
        SessionDeletedError: another session was made under the same id.
        StorageFullError: no space to keep a tail that must be cut off; nothing was cut.
        OSError: the disk refused.
    """
    mark = lock.read_mark()
    file = open_log_file(directory, write=True)
    try:
        # The lock file can be removed by people who take it for stale; the log they leave alone.
        if not file.lock(exclusive=True):
            raise SessionLockedError(lock.session_id, file.path, None)  # noqa: TRY301 — closed on the way out
        head = None
        if remembered is not None:
            _check_salt(file, remembered, lock.session_id)
            head = remembered.head
            if head is not None and file.stat().identity == remembered.identity:
                restore(file, head)
        found = judge(directory, file, mark, lock.session_id, remembered=head, full=full)
        report = recover(directory, file, found)
        write_again(file, found, (head, parse_mark(found.keys, mark)))
        # W2: what a dead owner had written but not synced is either durable or not there
        # when the first answer leaves, also after a clean end.
        file.sync_data()
        directory.sync()
        store.sync()
        log = Log(fs, lock, file, found, report)
        leftovers = sweep_attachments(directory, staging, log.head.position, log.event_at)
        log.recovered = msgspec.structs.replace(report, leftovers=leftovers)
        log.write_mark()
    except BaseException as error:
        with contextlib.suppress(OSError):
            file.unlock()  # a child that was forked meanwhile has a copy of the descriptor
        close_quietly(file)
        if isinstance(error, OSError) and error.errno in FULL_ERRNOS:  # no space for the quarantine
            raise StorageFullError(lock.session_id, file.path, error.errno) from error
        raise
    return log


def _check_salt(file: File, remembered: Remembered, session_id: str) -> None:
    keys = parse_file_header(file.pread(FILE_HEADER_SIZE, 0), file.path)
    if keys is not None and keys.salt != remembered.salt:
        raise SessionDeletedError(session_id, file.path)
