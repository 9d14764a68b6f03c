"""Session handles: what a program holds to append to a session and to read it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..storage.attachments import new_stage_name
from ..storage.errors import (
    AppendOutcomeUnknownError,
    BlockingCallError,
    InvalidEventError,
    MailboxFullError,
    PositionConflictError,
    SessionSealedError,
    StoreReadOnlyError,
)
from ..storage.events import encode_event
from .actor import on_actor_thread
from .attaching import Incoming, Source, remove_stage
from .mailbox import Full
from .readable import ReadableSession
from .requests import AppendRequest, OneShot, ReplyFuture, append_request, batch_request
from .sealing import SealedSession, seal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from ..storage.events import Event
    from .mailbox import Wakeable
    from .requests import Request


class Session(ReadableSession):
    """A handle on one session. Cheap, for any number of threads; it survives passivation and restarts.

    Use it in `with` to keep the session live until the end of the block. `len(session)` is the number of
    events, `session[i]` and `session[i:j]` read them as from a list.
    """

    __slots__ = ()

    # -- appending

    def append(
        self,
        kind: str,
        text: str,
        data: Any = None,
        *,
        key: str | None = None,
        expected: int | None = None,
        timeout: float | None = None,
    ) -> int:
        """Append one event and return when it is on stable storage (INV-1).

        Args:
            kind: a `Role` or a kind of your own.
            text: what a person would read.
            data: anything `Event.data` takes.
            key: idempotency key: the same key with the same content returns the first position.
            expected: the position the event must get.
            timeout: seconds to wait; None for as long as it takes.

        Returns:
            The position of the event.

        Raises:
            InvalidEventError: the event cannot be stored.
            PositionConflictError: `expected` is not the next position.
            KeyConflictError: the key is known with other content.
            SessionSealedError: the session is sealed.
            SessionDeletedError: the session was deleted.
            SessionFailedError: not written; the session has failed or is restarting.
            MailboxFullError: not taken within `timeout`, certainly not written.
            AppendOutcomeUnknownError: taken, but not confirmed within `timeout` or because of a fault.
            StorageFullError: no space, certainly not written.
            LimitExceededError: over a limit of the format.
            SessionLockedError, CorruptionError, UpgradeRequiredError: a dormant session cannot be reopened.
            StoreClosedError, StoreReadOnlyError, BlockingCallError: the call is not possible here.
        """
        request = append_request(
            self._slot.session_id, kind, text, data, key=key, expected=expected, reply=OneShot()
        )
        position: int = self._submit("append", request, timeout)
        return position

    def append_many(
        self, events: Iterable[Event], *, expected: int | None = None, timeout: float | None = None
    ) -> range:
        """Append a batch: all of it or nothing (INV-3).

        Args:
            events: what to append; nothing is written if there are none.
            expected: the position the first event must get.
            timeout: seconds to wait; None for as long as it takes.

        Returns:
            The positions of the events. If all keys of the batch are known, those of the first time.

        Raises:
            Everything that `append` raises.
        """
        request = batch_request(self._slot.session_id, events, expected=expected, reply=OneShot())
        if not request.bodies:
            return self._empty_batch(expected)
        positions: range = self._submit("append_many", request, timeout)
        return positions

    def _empty_batch(self, expected: int | None) -> range:
        self._check_writable("append_many")
        count = len(self)
        if expected is not None and expected != count:
            raise PositionConflictError(self._slot.session_id, expected, count)
        return range(count, count)

    def append_nowait(
        self, kind: str, text: str, data: Any = None, *, key: str | None = None, expected: int | None = None
    ) -> Future[int]:
        """Append without waiting; a commit takes everything that waits.

        Args:
            kind: as for `append`.
            text: as for `append`.
            data: as for `append`.
            key: as for `append`.
            expected: as for `append`.

        Returns:
            A future of the position, resolved when the event is on stable storage. Cancelled before it is
            taken, the event is not appended. Its errors are those of `append`.

        Raises:
            InvalidEventError: the event cannot be stored.
            MailboxFullError: the mailbox is full; nothing was written.
            StoreClosedError, StoreReadOnlyError, SessionDeletedError, SessionFailedError: as for `append`.
        """
        future = ReplyFuture()
        request = append_request(
            self._slot.session_id, kind, text, data, key=key, expected=expected, reply=future
        )
        if not self.offer(request):
            raise MailboxFullError(self._slot.session_id, "the mailbox is full")
        return future

    def offer(self, request: Request, when_room: Wakeable | None = None) -> bool:
        """Put a request in without waiting: what `append_nowait` and `sealog.aio` are made of.

        Args:
            request: what to do.
            when_room: set once there may be room, if there is none now.

        Returns:
            False if there is no room.

        Raises:
            StoreClosedError, StoreReadOnlyError, SessionDeletedError, SessionFailedError: not possible here.
        """
        self._check_writable("append")
        mailbox = self._slot.mailbox
        try:
            return mailbox.offer(request, when_room)
        except BaseException:
            mailbox.withdraw(request)
            raise

    def withdraw(self, request: Request, when_room: Wakeable) -> None:
        """Undo `offer`, unless the session has taken the request already."""
        mailbox = self._slot.mailbox
        mailbox.withdraw(request)
        mailbox.stop_waiting(when_room)

    def _submit(self, action: str, request: Request, timeout_s: float | None) -> Any:
        """Have a request carried out: in the actor's turn, borrowed if it sleeps, or through its mailbox."""
        self._check_writable(action)
        if on_actor_thread():
            raise BlockingCallError(action)
        reply = request.reply
        assert isinstance(reply, OneShot)  # noqa: S101 — blocking calls make no other
        mailbox = self._slot.mailbox
        if timeout_s is None:
            try:
                if mailbox.lend(request):
                    return reply.result()
            except Exception as error:
                if reply.done:
                    return reply.result()
                raise AppendOutcomeUnknownError(
                    self._slot.session_id, f"the commit ended with {error!r}"
                ) from error
            return self._send(request, reply, None)
        return self._send(request, reply, time.monotonic() + timeout_s)

    def _send(self, request: Request, reply: OneShot, deadline: float | None) -> Any:
        mailbox, session_id = self._slot.mailbox, self._slot.session_id
        try:
            mailbox.send(request, None if deadline is None else deadline - time.monotonic())
            answered = reply.wait(None if deadline is None else deadline - time.monotonic())
        except Full:
            raise MailboxFullError(session_id, "the mailbox stayed full until the timeout") from None
        except BaseException:
            mailbox.withdraw(request)  # interrupted: not written, or unknown if the actor has it
            raise
        if not answered:
            if mailbox.withdraw(request):
                raise MailboxFullError(session_id, "the session did not take the request until the timeout")
            positions = request.positions if isinstance(request, AppendRequest) else None
            raise AppendOutcomeUnknownError(
                session_id, "not confirmed until the timeout", positions, reply.to_future()
            )
        return reply.result()

    def _check_writable(self, action: str) -> None:
        self._check()
        if self._runtime.read_only:
            raise StoreReadOnlyError(self._runtime.path, action)

    # -- attachments

    def attach(
        self,
        source: Source,
        *,
        file_name: str | None = None,
        media_type: str | None = None,
        text: str = "",
        key: str | None = None,
    ) -> int:
        """Store a file beside the log and append the event that refers to it.

        The bytes are streamed by this thread and are on disk before the event is.

        Args:
            source: bytes, a path, or a binary file open for reading.
            file_name: its name; the path's if left out.
            media_type: its type; guessed from the name if left out.
            text: of the event.
            key: idempotency key; name, type and SHA-256 belong to the content.

        Returns:
            The position of the event.

        Raises:
            InvalidEventError: a blank name or type, or a source of another kind.
            OSError: the source cannot be read, or the file not be written.
            Everything that `append` raises.
        """
        try:
            incoming = Incoming(source, file_name, media_type)
            encode_event("attachment", text, None, 0, key)  # refused before a large file is copied
        except InvalidEventError as error:
            raise InvalidEventError(error.place, error.reason, self._slot.session_id) from None
        self._check_writable("attach")
        slot = self._slot
        slot.pin()
        name = new_stage_name()
        slot.staging.add(name)
        try:
            self._runtime.open(slot)
            published = slot.published
            if key is None and published is not None and published[2] is not None:
                raise SessionSealedError(slot.session_id)  # noqa: TRY301 — before a file is made
            return self._attach(incoming, name, text, key)
        except AppendOutcomeUnknownError:
            raise  # the owner that follows decides what the stage was
        except Exception:  # not when interrupted: the owner may just be renaming it, in a commit with others
            remove_stage(slot, name)
            raise
        finally:
            slot.staging.discard(name)
            slot.unpin()

    def _attach(self, incoming: Incoming, name: str, text: str, key: str | None) -> int:
        stage = incoming.stage(self._slot, name)
        body = encode_event("attachment", text, incoming.data(stage), time.time_ns(), key)
        keys = None if key is None else (key,)
        request = AppendRequest((body,), keys, None, OneShot(), single=True, stage=stage)
        position: int = self._submit("attach", request, None)
        return position

    # -- sealing and deleting

    def seal(self) -> SealedSession:
        """Make the session final, after verifying every attachment. Sealing twice is sealing once.

        Raises:
            AttachmentMissingError, AttachmentCorruptError: not sealed.
            StorageFullError: not sealed.
            AppendOutcomeUnknownError: the seal was not confirmed; seal again.
            Everything else that `append` raises.
        """
        self._check_writable("seal")
        if on_actor_thread():
            raise BlockingCallError("seal")
        self._slot.pin()
        try:
            self._runtime.open(self._slot)
            seal(self._slot, lambda request: self._submit("seal", request, None))
        finally:
            self._slot.unpin()
        return SealedSession(self._store, self._runtime, self._slot)

    def delete_committed(self) -> None:
        """Delete the session, whose content was committed elsewhere. Sealed sessions only.

        Raises:
            SessionNotSealedError: it is not sealed; nothing was changed.
            SessionNotFoundError, SessionDeletedError: it is gone already.
            SessionLockedError: another process owns it.
            OSError: the disk refused.
        """
        self._check_writable("delete_committed")
        self._runtime.delete(self._slot, require_sealed=True)

    def delete_abandoned(self) -> None:
        """Delete the session, sealed or not, readable or not.

        Raises:
            SessionNotFoundError, SessionDeletedError: it is gone already.
            SessionLockedError: another process owns it.
            OSError: the disk refused.
        """
        self._check_writable("delete_abandoned")
        self._runtime.delete(self._slot, require_sealed=False)
