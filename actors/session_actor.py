"""The Pykka actor that owns one live session: it opens the log, takes turns, closes it and says so."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING

from ..storage.directory import lock_session
from ..storage.errors import SealogError, SessionNotFoundError
from ..storage.log import open_log
from .actor import MailboxActor, Turn
from .mailbox import Poison
from .requests import Request
from .writer import SessionWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..storage.directory import SessionLock
    from .slot import Slot

logger = logging.getLogger("sealog")


class Ending(enum.Enum):
    """Why an actor has ended."""

    CLOSED = "closed"
    REFUSED = "refused"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class SessionActor(MailboxActor[Request]):
    """The owner of a session, from open to close.

    Args:
        slot: the session.
        on_opened: told, with this actor, once the log is open.
        on_ended: told as the last act of the actor's thread, when its files are closed: the hand-over.
    """

    def __init__(
        self,
        slot: Slot,
        on_opened: Callable[[SessionActor], None],
        on_ended: Callable[[SessionActor], None],
    ) -> None:
        super().__init__(slot.mailbox, f"sealog-{slot.session_id}")
        self.slot = slot
        self.ending = Ending.CLOSED
        self.cause: BaseException | None = None
        self._on_opened = on_opened
        self._on_ended = on_ended
        self._writer: SessionWriter | None = None
        self._batch: list[Request] = []

    def begin(self) -> None:
        """Take the lock, open and recover the log, publish it."""
        slot = self.slot
        if slot.lock is None:
            slot.lock = self._lock()
        directory = slot.open_directory()
        try:
            log = open_log(
                slot.fs,
                slot.store,
                directory,
                slot.lock,
                staging=frozenset(slot.staging),
                remembered=slot.remembered,
                full=slot.verify_full,
            )
        finally:
            directory.close()
        self._writer = SessionWriter(slot, log)
        slot.touch()
        slot.opened(log)
        slot.mailbox.run_lent = self._writer.run_one
        self._on_opened(self)

    def _lock(self) -> SessionLock:
        slot = self.slot
        try:
            return lock_session(slot.fs, slot.store, slot.session_id)
        except SessionNotFoundError:
            if slot.remembered is not None:
                raise slot.deleted_error() from None
            raise

    def turn(self, turn: Turn[Request]) -> None:
        """Stop on a command; else commit what waited."""
        if isinstance(turn.command, Poison):
            self.failed(turn.command.error)
            self.actor_stopped.set()
        elif turn.command is not None:
            self.actor_stopped.set()
        elif turn.batch and self._writer is not None:
            self._batch = turn.batch
            self._writer.run(turn.batch)
            self._batch = []
            self.inbox.commit_s = self._writer.commit_s

    def failed(self, error: BaseException) -> None:
        """Note the first cause."""
        if self.cause is None:
            self.cause = error
            if not isinstance(error, Exception):
                self.ending = Ending.INTERRUPTED
            elif self._writer is None and isinstance(error, SealogError):
                self.ending = Ending.REFUSED
            else:
                self.ending = Ending.FAILED
                logger.warning("session %s: %r", self.slot.session_id, error)

    def last_act(self) -> None:
        """Answer what was taken, close the files, hand over."""
        try:
            self._close()
        except BaseException as error:  # noqa: BLE001 — the hand-over comes whatever happens
            self.failed(error)
        finally:
            self._on_ended(self)

    def _close(self) -> None:
        slot, writer = self.slot, self._writer
        slot.mailbox.run_lent = None
        if self.cause is not None:
            unanswered = self._batch
            if unanswered and writer is not None and not writer.fault_answered:
                unanswered += slot.mailbox.take_all()  # nothing is written past what was not
            for request in unanswered:  # what waits for a log that could not be opened waits for the next try
                request.reply.fail(slot.failed_error(self.cause, given_up=False))
        if writer is not None:
            clean = self.ending is Ending.CLOSED
            try:
                if clean:
                    writer.finish()
            finally:
                slot.closed(writer.log, clean=clean)
        if self.ending in (Ending.CLOSED, Ending.REFUSED):
            slot.release_lock()
