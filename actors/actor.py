"""What both kinds of actors share: Pykka's loop on a mailbox that is not Pykka's.

Facts of Pykka that this module is built around, each with a test in tests/unit/actors/test_pykka_facts.py:
its inbox is unbounded but replaceable; `stop_all()` of anybody reaches every registered actor; an actor is
"not alive" before it has closed its files; an exception from `on_start` calls no hook; a BaseException in any
actor stops all registered ones. So our actors leave the registry when they start, catch everything, are told
to stop through their mailbox, and say by the last act of their thread that they are gone.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Generic

import pykka
from pykka import ActorRegistry

from .mailbox import M, Mailbox, Poison, Sleep
from .requests import Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .mailbox import Command

SLOW_SYNC_S: Final = 0.0005
"""From this duration of a commit on, waiting a little for a bigger batch pays."""
GATHER_FRACTION: Final = 16
GATHER_MAX_S: Final = 0.005

_actor_threads: set[int] = set()


def forget_parent() -> None:
    """In a forked child: the threads stayed in the parent, and their idents are given out again."""
    _actor_threads.clear()


def on_actor_thread() -> bool:
    """Tell whether this thread belongs to an actor of ours, where a blocking call could wait for itself."""
    return threading.get_ident() in _actor_threads


class Envelope:
    """What Pykka's loop takes from an inbox: a message, and nobody to reply to."""

    __slots__ = ("message", "reply_to")

    def __init__(self, message: Any) -> None:
        self.message = message
        self.reply_to = None


class Turn(Generic[M]):
    """One message of an actor: a command, or everything that waited in the mailbox."""

    __slots__ = ("batch", "command")

    def __init__(self, command: Command | Poison | None, batch: list[M]) -> None:
        self.command = command
        self.batch = batch


class Inbox(Generic[M]):
    """The view that one incarnation of an actor has on its mailbox; what Pykka's loop reads from.

    Attributes:
        commit_s: how long the last commit took.
        deadline: when to wake up with an empty turn, by `time.monotonic`; None for never.
    """

    def __init__(self, mailbox: Mailbox[M]) -> None:
        self._mailbox = mailbox
        self._signal = Signal()
        self._served = False
        self._wanted = 1
        self._waited = False
        self.commit_s = 0.0
        self.deadline: float | None = None

    def put(self, envelope: Any) -> None:
        """Refuse what strangers send: our actors are not in the registry, nobody should have found us."""
        if envelope.reply_to is not None:
            envelope.reply_to.set(None)

    def empty(self) -> bool:
        """Say that nothing is left for Pykka to answer: the mailbox answers its own."""
        return True

    def get(self) -> Envelope:
        """Wait for the next turn."""
        self._waited = False
        while True:
            found = self._mailbox.next_turn(Sleep(self._signal), served=self._served, ready=self._is_ready)
            if isinstance(found, tuple):
                command, batch = found
                if batch:
                    self._served = True
                    self._wanted = max(len(batch), self._wanted - 1)
                return Envelope(Turn(command, batch))
            if found:
                time.sleep(min(self.commit_s / GATHER_FRACTION, GATHER_MAX_S))
                self._waited = True
            elif self.deadline is None:
                self._signal.wait()
            elif not self._signal.wait(self.deadline - time.monotonic()):
                return Envelope(Turn(None, []))

    def _is_ready(self, waiting: int) -> bool:
        """On a slow disk, let those that the last commit answered come back before the next one.

        A lone caller never waits: as many as last time are there already.
        """
        return self._waited or waiting >= self._wanted or self.commit_s < SLOW_SYNC_S


class MailboxActor(pykka.ThreadingActor, Generic[M]):
    """An actor that reads a mailbox and cannot be reached in any other way."""

    use_daemon_thread = True

    def __init__(self, mailbox: Mailbox[M], thread_name: str) -> None:
        self._mailbox = mailbox
        self._thread_name = thread_name
        self.inbox: Inbox[M] = Inbox(mailbox)
        super().__init__()

    def _create_actor_inbox(self) -> Any:  # type: ignore[override]  # the override point is a static method
        return self.inbox

    def _start_actor_loop(self) -> None:
        ActorRegistry.unregister(self.actor_ref)
        threading.Thread(target=self._run, name=self._thread_name, daemon=True).start()

    def _run(self) -> None:
        ident = threading.get_ident()
        _actor_threads.add(ident)
        try:
            self._actor_loop()
        except BaseException as error:  # noqa: BLE001 — an actor never dies without a last act
            self.failed(error)
        finally:
            try:
                self.last_act()  # callbacks run in there too
            finally:
                _actor_threads.discard(ident)

    def on_start(self) -> None:
        """Begin: what `begin` raises is a failure, which Pykka would only log."""
        try:
            self.begin()
        except BaseException as error:  # noqa: BLE001
            self.failed(error)
            self.actor_stopped.set()

    def on_receive(self, message: Turn[M]) -> None:
        """Take a turn: what it raises ends this actor and no other."""
        try:
            self.turn(message)
        except BaseException as error:  # noqa: BLE001
            self.failed(error)
            self.actor_stopped.set()

    def begin(self) -> None:
        """Prepare, on the actor's own thread."""

    def turn(self, turn: Turn[M]) -> None:
        """Handle one turn."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> None:
        """Note why this actor ends."""
        raise NotImplementedError

    def last_act(self) -> None:
        """Close what is open and say so: the very last thing this thread does."""
        raise NotImplementedError


class Timers:
    """Calls to make later, for the supervisor's back-off."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def add(self, delay_s: float, call: Callable[[], None]) -> None:
        """Have `call` made after `delay_s`."""
        self._count += 1
        heapq.heappush(self._heap, (time.monotonic() + delay_s, self._count, call))

    @property
    def deadline(self) -> float | None:
        """When the next call is due, by `time.monotonic`."""
        return self._heap[0][0] if self._heap else None

    def due(self) -> list[Callable[[], None]]:
        """Take the calls whose time has come."""
        now = time.monotonic()
        calls: list[Callable[[], None]] = []
        while self._heap and self._heap[0][0] <= now:
            calls.append(heapq.heappop(self._heap)[2])
        return calls

    def clear(self) -> None:
        """Forget all calls."""
        self._heap.clear()
