"""What one turn does: requests in, one commit out, everybody answered.

Whoever holds the session's turn calls this: the actor's thread, or a caller that borrowed the turn. Order of
a commit: files renamed, frame written and synced, head published, all replies, head mark.
"""

from __future__ import annotations

import copy
import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from ..storage.attachments import publish_stages, remove_attachment_files
from ..storage.errors import (
    AppendOutcomeUnknownError,
    CorruptionError,
    PositionConflictError,
    SealogError,
    SessionDeletedError,
    SessionSealedError,
    StorageFullError,
)
from ..storage.events import BATCH_EVENTS_MAX, encode_payload
from ..storage.format import PAYLOAD_SIZE_MAX
from ..storage.vfs import FULL_ERRNOS
from .keyed import KeyBook
from .requests import AppendRequest, SealRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..storage.attachments import Stage
    from ..storage.format import Head
    from ..storage.log import Log
    from ..storage.vfs import Directory
    from .requests import Request
    from .slot import Slot

ARRAY_HEADER_BYTES: Final = 3

logger = logging.getLogger("sealog")


class Group:
    """The requests that share the next frame, and the answers that depend on it."""

    __slots__ = ("bodies", "files", "head", "keys", "refused", "repeated", "size_bytes", "staged")

    def __init__(self, head: Head) -> None:
        self.head = head
        self.bodies: list[bytes] = []
        self.size_bytes = ARRAY_HEADER_BYTES
        self.staged: list[AppendRequest] = []
        self.repeated: list[tuple[AppendRequest, int]] = []
        self.refused: list[tuple[AppendRequest, SealogError]] = []
        self.keys: dict[str, int] = {}
        self.files: list[tuple[Stage, int]] = []

    @property
    def next_position(self) -> int:
        """The position that the next event gets."""
        return self.head.position + len(self.bodies)

    def has_room(self, request: AppendRequest) -> bool:
        """Tell whether the frame can take this batch whole."""
        return not self.bodies or (
            self.size_bytes + request.size_bytes <= PAYLOAD_SIZE_MAX
            and len(self.bodies) + len(request.bodies) <= BATCH_EVENTS_MAX
        )

    def add(self, request: AppendRequest) -> None:
        """Give a batch its positions."""
        first = request.first_position = self.next_position
        self.bodies.extend(request.bodies)
        self.size_bytes += request.size_bytes
        self.staged.append(request)
        if request.stage is not None:
            self.files.append((request.stage, first))
        if request.keys is not None:
            for index, key in enumerate(request.keys):
                if key is not None:
                    self.keys[key] = first + index


class SessionWriter:
    """The one that appends to an open log.

    Attributes:
        log: the log.
        commit_s: how long the last commit took.
        fault_answered: a commit failed, and all whom that concerns know.
    """

    def __init__(self, slot: Slot, log: Log) -> None:
        self._slot = slot
        self._keys = KeyBook(slot, log)
        self._marked = log.head
        self.log = log
        self.commit_s = 0.0
        self.fault_answered = False
        self._lent = False

    def run_one(self, request: Request) -> None:
        """Take a turn with one request, on the thread of its caller."""
        self._lent = True
        self.run([request])
        self._lent = False

    def run(self, requests: list[Request]) -> None:
        """Take a turn: commit what was asked for and answer.

        Raises:
            BaseException: a commit failed; its requests are answered, later ones are not, and the log must be
                closed and opened again before anything else is appended.
        """
        group = Group(self.log.head)
        for request in requests:
            if not request.reply.start():
                self._discard(request)
            elif isinstance(request, SealRequest):
                self._commit(group)
                self._seal(request)
                group = Group(self.log.head)
            else:
                if not group.has_room(request):
                    self._commit(group)
                    group = Group(self.log.head)
                self._stage(group, request)
        self._commit(group)
        self._slot.touch()
        if self.log.head is not self._marked:
            self.log.write_mark()
            self._marked = self.log.head
        if self.log.checkpoint_due:
            self._write_checkpoint()

    def _stage(self, group: Group, request: AppendRequest) -> None:
        """Decide about one batch. A known key answers before `expected` and the seal are looked at."""
        try:
            if request.keys is not None:
                first = self._keys.find(group, request)
                if first is not None:
                    group.repeated.append((request, first))
                    return
            if self.log.receipt is not None:
                raise SessionSealedError(self.log.session_id)
            if request.expected is not None and request.expected != group.next_position:
                raise PositionConflictError(self.log.session_id, request.expected, group.next_position)
            self.log.check_room(
                ARRAY_HEADER_BYTES + request.size_bytes, len(group.bodies) + len(request.bodies)
            )
        except SealogError as error:
            group.refused.append((request, error))
        else:
            group.add(request)

    def _commit(self, group: Group) -> None:
        if group.bodies:
            started = time.monotonic()
            try:
                if group.files:
                    self._publish_files(group)
                self.log.commit(encode_payload(group.bodies), len(group.bodies))
            except BaseException as error:
                full = self._storage_full(error)
                if full is not None:
                    self._answer_full(group, full)
                    return
                self._answer_fault(group, error)
                raise
            self.commit_s = time.monotonic() - started
            self._keys.committed(group)
            self._slot.publish(self.log)
        for request in group.staged:
            request.succeed(request.first_position or 0)
        for request, first in group.repeated:
            self._discard(request)
            request.succeed(first)
        for request, refusal in group.refused:
            self._discard(request)
            request.reply.fail(refusal)

    def _storage_full(self, error: BaseException) -> StorageFullError | None:
        """Return the answer if the disk was only full, and what was written of the frame is gone again."""
        if not isinstance(error, OSError) or error.errno not in FULL_ERRNOS:
            return None
        try:
            self.log.roll_back()
        except OSError as again:
            logger.warning("%s: could not be rolled back: %s", self.log.path, again)
            return None
        return StorageFullError(self.log.session_id, self.log.path, error.errno)

    def _answer_full(self, group: Group, full: StorageFullError) -> None:
        self._remove_files([str(position) for _, position in group.files])
        stored = [(request, first) for request, first in group.repeated if first < group.head.position]
        for request, first in stored:  # known from earlier commits: a full disk changes nothing
            self._discard(request)
            request.succeed(first)
        for request in self._all(group):
            self._discard(request)
            request.reply.fail(copy.copy(full))

    def _answer_fault(self, group: Group, error: BaseException) -> None:
        """Answer after a failed commit; the owner that follows removes what it left.

        What waits behind it is taken before the first answer leaves: nothing is written past a hole, and
        whoever sends again after the answer waits for the owner that follows. A lent turn concerns its caller
        only, who may be interrupted in here: what others sent meanwhile is left to the owner that follows.
        """
        behind = self._slot.mailbox.take_all() if isinstance(error, Exception) and not self._lent else []
        self.fault_answered = True
        waiting = {id(request) for request in group.staged}
        waiting.update(id(request) for request, first in group.repeated if first >= group.head.position)
        everybody: list[Request] = [*self._all(group), *behind]
        for request in everybody:
            if isinstance(error, (SessionDeletedError, CorruptionError)):
                request.reply.fail(copy.copy(error))
            elif isinstance(request, AppendRequest) and id(request) in waiting:
                unknown = AppendOutcomeUnknownError(
                    self.log.session_id, f"a write or sync failed ({error!r})", request.positions
                )
                unknown.__cause__ = error
                request.reply.fail(unknown)
            else:
                request.reply.fail(self._slot.failed_error(error, given_up=False))

    @staticmethod
    def _all(group: Group) -> list[AppendRequest]:
        others = [request for request, _ in group.repeated] + [request for request, _ in group.refused]
        return group.staged + others

    def _publish_files(self, group: Group) -> None:
        directory = self._slot.open_directory()
        try:
            publish_stages(directory, group.files)
        finally:
            directory.close()

    def _discard(self, request: Request) -> None:
        """Remove the file of an attachment that is not stored."""
        if isinstance(request, AppendRequest) and request.stage is not None:
            self._remove_files([request.stage.name])

    def _remove_files(self, names: list[str]) -> None:
        if names:
            self._tidy(lambda directory: remove_attachment_files(directory, names))

    def _seal(self, request: SealRequest) -> None:
        """Seal, unless attachments came that the caller has not verified: then it is answered with None."""
        log = self.log
        if log.receipt is not None:
            request.reply.succeed(log.receipt)
            return
        later = log.view.events(request.verified_position, log.head.position, log.head)
        if any(event.kind == "attachment" for event in later):
            request.reply.succeed(None)
            return
        try:
            receipt = log.seal(request.hashed, request.hashed_end)
        except BaseException as error:
            full = self._storage_full(error)
            if full is not None:
                request.reply.fail(full)
                return
            unknown = AppendOutcomeUnknownError(log.session_id, f"the seal was not confirmed ({error!r})")
            unknown.__cause__ = error
            self._answer_fault(Group(log.head), error)
            request.reply.fail(unknown)
            raise
        self._slot.publish(log)
        request.reply.succeed(receipt)
        self.finish()

    def _write_checkpoint(self) -> None:
        self._tidy(self.log.write_checkpoint)

    def finish(self) -> None:
        """Leave a clean end on disk: trimmed, marked, checkpointed."""
        self._tidy(self.log.finish, self._keys.write_checkpoint)

    def _tidy(self, *steps: Callable[[Directory], None]) -> None:
        """Do what nobody waits for: what fails there is done later, and no fault of the session."""
        try:
            with closing(self._slot.open_directory()) as directory:
                for step in steps:
                    step(directory)
        except (SealogError, OSError) as error:
            logger.warning("%s: not tidied up: %s", self.log.path, error)
