"""Who starts, stops, restarts and hands out sessions.

`Supervision` is the logic: every method runs on the supervisor's thread, nothing blocks, nothing is locked.
`Supervisor` is the Pykka actor that runs it. A session has at most one actor: a new one is started only for a
slot whose last actor has said, as the last act of its thread, that its files are closed.
"""

from __future__ import annotations

import copy
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from ..storage.errors import SealogError, SessionDeletedError, StoreClosedError
from .actor import MailboxActor, Timers, Turn
from .mailbox import Mailbox
from .session_actor import Ending, SessionActor
from .slot import SlotState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .requests import Reply
    from .slot import Slot

RESTARTS_MAX: Final = 3
RESTARTS_WITHIN_S: Final = 60.0
BACK_OFF_S: Final = 0.05

logger = logging.getLogger("sealog")


class Call:
    """A message to the supervisor: one call of one of its methods, and who waits for the answer."""

    __slots__ = ("arguments", "method", "reply")
    size_bytes = 0

    def __init__(self, method: Callable[..., None], arguments: tuple[Any, ...], reply: Reply | None) -> None:
        self.method = method
        self.arguments = arguments
        self.reply = reply

    def make(self) -> None:
        """Make the call; an exception is the answer, and never the supervisor's end."""
        try:
            if self.reply is None:
                self.method(*self.arguments)
            else:
                self.method(*self.arguments, self.reply)
        except BaseException as error:
            logger.exception("the supervisor could not carry out %s", self.method.__name__)
            if self.reply is not None:
                self.reply.fail(error)


class Supervision:
    """The life of all sessions of one store.

    Args:
        path: of the store, for messages.
        max_live_sessions: how many may have an actor; more only if all are pinned.
        slots: lists all known slots.
        forget: told when a session was deleted.
        on_finished: told when all sessions are closed for good.
    """

    def __init__(
        self,
        path: str,
        max_live_sessions: int,
        slots: Callable[[], Iterable[Slot]],
        forget: Callable[[Slot], None],
        on_finished: Callable[[], None],
    ) -> None:
        self.max_live_sessions = max_live_sessions
        self.mailbox: Mailbox[Call] = Mailbox(lambda: None, messages_max=None)
        self.mailbox.stay_awake()
        self.timers = Timers()
        self.finished = False
        self.passivations = 0
        self.restarts = 0
        self._path = path
        self._slots = slots
        self._forget = forget
        self._on_finished = on_finished
        self._live: dict[str, Slot] = {}
        self._out: set[Slot] = set()
        self._failed_slots: set[Slot] = set()  # kept, so that their cause is
        self._queue: deque[Slot] = deque()
        self.calls: deque[Call] = deque()  # taken from the mailbox and not made yet
        self._closing: list[Reply] | None = None
        self._warned = False

    def tell(self, method: Callable[..., None], *arguments: Any, reply: Reply | None = None) -> None:
        """Have a method called on the supervisor's thread, with `reply` as its last argument if given.

        Raises:
            StoreClosedError: the supervisor has ended with the store.
        """
        self.mailbox.send(Call(method, arguments, reply))

    @property
    def live_sessions(self) -> int:
        """How many sessions have an actor."""
        return sum(slot.has_actor for slot in list(self._live.values()))

    # -- what callers ask

    def open(self, slot: Slot, verify_full: bool, reply: Reply) -> None:  # noqa: FBT001 — a message's argument
        """Answer once the session is live."""
        if slot.state is SlotState.DELETED:
            reply.fail(slot.deleted_error())
        elif self._closing is not None:
            reply.fail(self._closed_error())
        elif slot.state is SlotState.LIVE:
            reply.succeed(None)
        else:
            if slot.state is SlotState.FAILED:
                self._revive(slot)
            slot.verify_full = slot.verify_full or verify_full
            slot.waiters.append(reply)
            self.wanted(slot)

    def wanted(self, slot: Slot) -> None:
        """Start an actor for a dormant session that somebody waits for; for any other do nothing."""
        if slot.state is not SlotState.DORMANT:
            return
        if not slot.waiters and not len(slot.mailbox) and slot.mailbox.rest():
            return
        slot.mailbox.stay_awake()
        slot.state = SlotState.QUEUED
        self._live[slot.session_id] = slot
        self._queue.append(slot)
        self._pump()

    def check_out(self, slot: Slot, reply: Reply) -> None:
        """Answer once the session has no actor, and leave it to the caller until it is checked in."""
        if slot.state is SlotState.DELETED:
            reply.fail(slot.deleted_error())
            return
        if self._closing is not None:
            reply.fail(self._closed_error())
            return
        slot.checkouts.append(reply)
        if slot.state is SlotState.LIVE:
            self._stop(slot, "close")
        elif slot.state in (SlotState.DORMANT, SlotState.QUEUED, SlotState.BACK_OFF, SlotState.FAILED):
            if slot.state is SlotState.FAILED:
                self._revive(slot)
            self._rest(slot)

    def check_in(self, slot: Slot, ticket: Reply, deleted: bool) -> None:  # noqa: FBT001 — a message's argument
        """Take a session back, or off the list of an interrupted caller who did not wait for it."""
        if slot.checked_out_to is not ticket:
            if ticket in slot.checkouts:
                slot.checkouts.remove(ticket)
            return
        slot.checked_out_to = None
        self._out.discard(slot)
        if deleted:
            self._deleted(slot)
        else:
            slot.state = SlotState.DORMANT
            self._rest(slot)
        self._finish_if_closed()

    def shut_down(self, reply: Reply) -> None:
        """Answer once everything that was accepted is committed and all sessions are closed."""
        if self._closing is not None:
            self._closing.append(reply)
            return
        self._closing = [reply]
        for slot in self._slots():
            slot.mailbox.refuse(self._closed_error)
            if slot.state is SlotState.LIVE:
                self._stop(slot, "close")
            elif slot.state is SlotState.BACK_OFF:
                self._give_up(slot, self._closed_error, SlotState.DORMANT)
            elif slot.state is SlotState.DORMANT:
                self.wanted(slot)
        self._finish_if_closed()

    # -- what session actors say

    def opened(self, actor: SessionActor) -> None:
        """An actor has opened its log."""
        slot = actor.slot
        slot.verify_full = False
        slot.state = SlotState.LIVE
        waiters, slot.waiters = slot.waiters, []
        for reply in waiters:
            reply.succeed(None)
        if slot.checkouts or self._closing is not None:
            self._stop(slot, "close")
        self._pump()

    def ended(self, actor: SessionActor) -> None:
        """An actor's thread is about to end, and its files are closed: the slot is free again."""
        slot, cause = actor.slot, actor.cause
        slot.has_actor = False
        if actor.ending is Ending.CLOSED or cause is None:
            slot.state = SlotState.DORMANT
            self._rest(slot)
        elif isinstance(cause, SessionDeletedError):
            self._deleted(slot)
        elif actor.ending is Ending.REFUSED and isinstance(cause, SealogError):
            self._give_up(slot, lambda: copy.copy(cause), SlotState.DORMANT)
        elif actor.ending is Ending.INTERRUPTED:
            self._restart_later(slot, 0.0)
        else:
            self._failed(slot, cause)
        self._pump()
        self._finish_if_closed()

    # -- starting

    def _pump(self) -> None:
        """Start actors for the queue, as far as there may be more; else make room."""
        while self._queue:
            if self.live_sessions >= self.max_live_sessions and self._make_room():
                return
            slot = self._queue.popleft()
            if slot.state is SlotState.QUEUED:
                self._start(slot)

    def _make_room(self) -> bool:
        """Passivate the least recently used; False if all are pinned, and the bound must be exceeded."""
        closing = sum(slot.state is SlotState.CLOSING for slot in self._live.values())
        idle = sorted(
            (slot for slot in self._live.values() if slot.state is SlotState.LIVE and not slot.pins),
            key=lambda slot: slot.used,
        )
        for slot in idle[: max(len(self._queue) - closing, 0)]:
            self.passivations += 1
            self._stop(slot, "passivate")
        if closing or idle or any(slot.state is SlotState.OPENING for slot in self._live.values()):
            return True
        if not self._warned:
            self._warned = True
            logger.warning(
                "store %s: more than %d sessions are live, since all of them are pinned by `with` or attach",
                self._path,
                self.max_live_sessions,
            )
        return False

    def _start(self, slot: Slot) -> None:
        slot.state, slot.has_actor = SlotState.OPENING, True
        try:
            SessionActor.start(slot, self._tell_opened, self._tell_ended)
        except BaseException as error:  # noqa: BLE001 — no thread could be had: a fault like others
            slot.has_actor = False
            self._failed(slot, error)

    def _tell_opened(self, actor: SessionActor) -> None:
        self.tell(self.opened, actor)

    def _tell_ended(self, actor: SessionActor) -> None:
        self.tell(self.ended, actor)

    # -- stopping

    def _stop(self, slot: Slot, command: Any) -> None:
        slot.state = SlotState.CLOSING
        slot.mailbox.command(command)

    def _rest(self, slot: Slot) -> None:
        """Decide what a slot without an actor does next: be checked out, be opened again, or sleep."""
        if slot.checkouts:
            self._live.pop(slot.session_id, None)
            slot.state = SlotState.CHECKED_OUT
            self._out.add(slot)
            slot.checked_out_to = slot.checkouts.popleft()
            slot.checked_out_to.succeed(None)
            return
        slot.state = SlotState.DORMANT
        if not slot.mailbox.rest(stay_awake=bool(slot.waiters)):
            self.wanted(slot)
        else:
            self._live.pop(slot.session_id, None)
            slot.release_lock()  # of a session that was made, and not opened since the store closes

    def _deleted(self, slot: Slot) -> None:
        self._forget(slot)  # first, so that whoever is answered finds another one
        self._give_up(slot, slot.deleted_error, SlotState.DELETED)
        slot.release_lock()
        for reply in slot.checkouts:
            reply.fail(slot.deleted_error())
        slot.checkouts.clear()

    def _give_up(self, slot: Slot, error: Callable[[], BaseException], state: SlotState) -> None:
        """Answer everybody who waits with an error, and leave the slot in `state`."""
        slot.state = state
        slot.verify_full = False
        self._live.pop(slot.session_id, None)
        waiters, slot.waiters = slot.waiters, []
        for reply in waiters:
            reply.fail(error())
        if state is SlotState.DORMANT:
            for request in slot.mailbox.take_all():
                request.reply.fail(error())
            slot.release_lock()
            self._rest(slot)
        else:
            for request in slot.mailbox.close(error):
                request.reply.fail(error())
            slot.mailbox.rest()
        slot.wake_watchers()

    # -- restarting

    def _failed(self, slot: Slot, cause: BaseException) -> None:
        now = time.monotonic()
        slot.faults.append(now)
        while slot.faults[0] < now - RESTARTS_WITHIN_S:
            slot.faults.popleft()
        if self._closing is not None:
            self._give_up(slot, self._closed_error, SlotState.DORMANT)
        elif len(slot.faults) > RESTARTS_MAX:
            slot.cause = cause
            self._failed_slots.add(slot)
            self._give_up(slot, lambda: slot.failed_error(cause, given_up=True), SlotState.FAILED)
            slot.release_lock()
            if slot.checkouts:
                self._revive(slot)
                self._rest(slot)
        else:
            self._restart_later(slot, BACK_OFF_S * 2 ** (len(slot.faults) - 1))

    def _restart_later(self, slot: Slot, delay_s: float) -> None:
        self.restarts += 1
        slot.state = SlotState.BACK_OFF
        if slot.checkouts:
            self._rest(slot)
        else:
            self.timers.add(delay_s, lambda: self._restart(slot))

    def _restart(self, slot: Slot) -> None:
        if slot.state is SlotState.BACK_OFF:
            slot.state = SlotState.QUEUED
            slot.mailbox.stay_awake()
            self._queue.append(slot)
            self._pump()

    def _revive(self, slot: Slot) -> None:
        self._failed_slots.discard(slot)
        slot.faults.clear()
        slot.cause = None
        slot.state = SlotState.DORMANT
        slot.mailbox.reopen()

    # -- the end

    def _closed_error(self) -> StoreClosedError:
        return StoreClosedError(self._path)

    def _finish_if_closed(self) -> None:
        if self._closing is not None and not self._live and not self._out:
            self.finished = True

    def finish(self) -> None:
        """Answer whoever still asks, then those who wait for the end."""
        for call in [*self.calls, *self.mailbox.close(self._closed_error)]:
            if call.reply is not None:
                call.reply.fail(self._closed_error())
        for slot in self._slots():
            for request in slot.mailbox.close(self._closed_error):
                request.reply.fail(self._closed_error())
            slot.wake_watchers()
        self._on_finished()
        for reply in self._closing or ():
            reply.succeed(None)


class Supervisor(MailboxActor[Call]):
    """The actor that runs a `Supervision`; if it is lost, another one goes on with the same."""

    def __init__(self, supervision: Supervision) -> None:
        super().__init__(supervision.mailbox, "sealog-supervisor")
        self._supervision = supervision

    def begin(self) -> None:
        """Go on with the timers of a predecessor."""
        supervision = self._supervision
        self.inbox.deadline = 0.0 if supervision.calls else supervision.timers.deadline

    def turn(self, turn: Turn[Call]) -> None:
        """Make the calls that wait, each on its own: what one raises harms no other."""
        supervision = self._supervision
        calls = supervision.calls
        calls.extend(turn.batch)  # first, so that a successor finds them
        calls.extend(Call(method, (), None) for method in supervision.timers.due())
        while calls:
            calls.popleft().make()
        self.inbox.deadline = supervision.timers.deadline
        if supervision.finished:
            self.actor_stopped.set()

    def failed(self, error: BaseException) -> None:
        """Say so: this is a fault of the library."""
        logger.error("the supervisor was lost: %r", error)

    def last_act(self) -> None:
        """End with the store, or leave the work to a successor."""
        if not self._supervision.finished:
            try:
                Supervisor.start(self._supervision)
            except BaseException:
                logger.exception("no thread for a successor of the supervisor: it runs on this one")
                Supervisor(self._supervision)._run()  # noqa: SLF001 — of its own class
        else:
            self._supervision.finish()
