"""The mailbox of a session's address: it outlives the actors that read it.

A sender appends under the mailbox's lock and then wakes the reader: a sleeping actor by its signal, a dormant
session by asking the supervisor to open it. A reader takes everything that waits, which is the batch of its
next commit. While the actor sleeps and nothing waits, a blocking caller may borrow its turn (`lend`) and
commit by itself; whoever comes meanwhile queues, and the actor takes the queue.
"""

from __future__ import annotations

import _thread
import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from .requests import Signal

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES_MAX: Final = 4096
SIZE_BYTES_MAX: Final = 32 * 1024 * 1024

Command = Literal["passivate", "close"]


class Message(Protocol):
    """Whatever can wait in a mailbox."""

    @property
    def size_bytes(self) -> int:
        """What it counts towards the mailbox's bound."""
        ...


class Wakeable(Protocol):
    """Whatever can be told that something has changed, from any thread."""

    def set(self) -> None:
        """Note the change; must not raise."""
        ...


M = TypeVar("M", bound=Message)


class Sleep:
    """One sleep of one reader. A late sender sets this one and never the next."""

    __slots__ = ("fired", "signal")

    def __init__(self, signal: Signal) -> None:
        self.fired = False
        self.signal = signal


class Full(Exception):  # noqa: N818 — never leaves this package: callers get MailboxFullError
    """No room in time."""


class Poison:
    """A lent turn ended with an exception: the actor must end, since nobody knows what was written."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException = KeyboardInterrupt()


# What the reader is doing, written by the reading side only, under the lock: awake (it will look at the queue
# again), dormant (there is no actor), or one particular sleep.
AWAKE: Final = "awake"
DORMANT: Final = "dormant"


class Mailbox(Generic[M]):
    """A queue with one reader at a time.

    Args:
        open_reader: called, outside the lock, when something was put in while dormant.
        messages_max: how many messages may wait; None for no bound.
        size_bytes_max: how many bytes may wait; an empty mailbox admits any single message.
    """

    def __init__(
        self,
        open_reader: Callable[[], None],
        messages_max: int | None = MESSAGES_MAX,
        size_bytes_max: int = SIZE_BYTES_MAX,
    ) -> None:
        self.lock = _thread.allocate_lock()
        self.state: Any = DORMANT
        self.run_lent: Callable[[M], None] | None = None
        self._open_reader = open_reader
        self._messages_max = messages_max
        self._size_bytes_max = size_bytes_max
        self._queue: list[M] = []
        self._size_bytes = 0
        self._closed: Callable[[], BaseException] | None = None
        self._command: Command | None = None
        self._poison: Poison | None = None
        self._claim: object | None = None
        self._waiting_for_room: list[Wakeable] = []

    # -- senders

    def send(self, message: M, timeout_s: float | None = None) -> None:
        """Put a message in, waiting for room up to `timeout_s`.

        Raises:
            Full: there was no room in time.
            BaseException: the mailbox is closed; what it was closed with.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            room = Signal()
            if self.offer(message, room):
                return
            if not room.wait(None if deadline is None else deadline - time.monotonic()):
                self.stop_waiting(room)
                raise Full

    def offer(self, message: M, when_room: Wakeable | None = None) -> bool:
        """Put a message in if there is room.

        Args:
            message: the message.
            when_room: set once there may be room, if there is none now.

        Returns:
            False if there is no room.

        Raises:
            BaseException: the mailbox is closed; what it was closed with.
        """
        with self.lock:
            if self._closed is not None:
                raise self._closed()
            fits = self._has_room(message)
            if fits:
                self._size_bytes += message.size_bytes  # first: `withdraw` follows an interrupt of the append
                self._queue.append(message)
            elif when_room is not None:
                self._waiting_for_room.append(when_room)
            state = self.state if self._claim is None else AWAKE
        if state is not AWAKE:
            self._wake(state)
        return fits

    def stop_waiting(self, when_room: Wakeable) -> None:
        """Wait for room no longer."""
        with self.lock:
            if when_room in self._waiting_for_room:
                self._waiting_for_room.remove(when_room)

    def _has_room(self, message: M) -> bool:
        if self._messages_max is None or not self._queue:
            return True
        fits = self._size_bytes + message.size_bytes <= self._size_bytes_max
        return len(self._queue) < self._messages_max and fits

    def _wake(self, state: Any) -> None:
        if state is DORMANT:
            self._open_reader()
        elif not state.fired:
            state.signal.set()  # signal first, flag after: an interrupt in between loses no wake-up
            state.fired = True

    def lend(self, message: M) -> bool:
        """Run the reader's turn on this thread, if the reader sleeps and nothing waits.

        Returns:
            False if the turn could not be had: send the message.

        Raises:
            BaseException: the turn failed or was interrupted; the reader will end.
        """
        me = Poison()  # the claim is one store of this object, and is undone by identity
        sleep: Any = None
        try:
            with self.lock:
                sleep, run = self.state, self.run_lent
                if sleep.__class__ is not Sleep or run is None or not self._is_quiet():
                    return False
                self._claim = me
            run(message)
        except BaseException as error:
            if self._claim is me:
                self._poison = me
                me.error = error
            raise
        else:
            return True
        finally:
            # No way out of here with the claim held, whatever is raised. Not a method: an interrupt may be
            # raised when one is entered.
            interrupted: BaseException | None = None
            while self._claim is me:
                try:
                    with self.lock:
                        if self._queue or self._command is not None or self._poison is not None:
                            sleep.signal.set()
                        self._claim = None
                except BaseException as error:  # noqa: BLE001 — raised below, once the claim is undone
                    interrupted = error
            if interrupted is not None:
                raise interrupted

    def _is_quiet(self) -> bool:
        return (
            not self._queue
            and self._command is None
            and self._claim is None
            and self._poison is None
            and self._closed is None
        )

    def withdraw(self, message: M) -> bool:
        """Take a message back; False if the reader has it already."""
        with self.lock:
            for at, waiting in enumerate(self._queue):
                if waiting is message:
                    self._free_room()  # first: an interrupt afterwards takes nobody's turn
                    del self._queue[at]
                    self._size_bytes -= message.size_bytes
                    return True
            return False

    def command(self, command: Command) -> None:
        """Tell the reader to stop.

        `passivate`: once nothing waits or it has had a turn; `close`: once nothing waits.
        """
        with self.lock:
            self._command = command
            state = self.state if self._claim is None else AWAKE
        if state is not AWAKE and state is not DORMANT:
            self._wake(state)

    # -- the reading side

    def next_turn(
        self, sleep: Sleep, *, served: bool, ready: Callable[[int], bool]
    ) -> tuple[Command | Poison | None, list[M]] | int:
        """Return a command or the whole queue; else how much waits, having noted `sleep` if that is nothing.

        Args:
            sleep: noted as the reader's state if it may go to sleep.
            served: the reader has had a turn, so it can be passivated with messages waiting.
            ready: tells whether so many waiting messages are worth a turn now.
        """
        with self.lock:
            if self._claim is not None:  # a late wake-up: the lender signals again if something waits
                self.state = sleep
                return 0
            self.state = AWAKE
            if self._poison is not None:
                poison, self._poison = self._poison, None
                return poison, []
            command, waiting = self._command, len(self._queue)
            if command is not None and (not waiting or (served and command == "passivate")):
                self._command = None
                return command, []
            if waiting and ready(waiting):
                return None, self._take()
            if not waiting:
                self.state = sleep
            return waiting

    def _take(self) -> list[M]:
        self._free_room()
        queue, self._queue, self._size_bytes = self._queue, [], 0
        return queue

    def _free_room(self) -> None:
        """Wake those who wait for room; they look again when the lock is free. An interrupt forgets none."""
        for signal in self._waiting_for_room:
            signal.set()
        self._waiting_for_room.clear()

    def take_all(self) -> list[M]:
        """Empty the mailbox."""
        with self.lock:
            return self._take()

    def rest(self, *, stay_awake: bool = False) -> bool:
        """Become dormant; False if something waits, so that a reader must be started."""
        with self.lock:
            self._command = self._poison = None
            again = stay_awake or bool(self._queue)
            self.state = AWAKE if again else DORMANT
            return not again

    def stay_awake(self) -> None:
        """Note that a reader is on its way."""
        with self.lock:
            self.state = AWAKE

    def close(self, error: Callable[[], BaseException]) -> list[M]:
        """Admit nothing more: senders get `error()`. What waits goes to the caller, who answers it."""
        self.refuse(error)
        return self.take_all()

    def reopen(self) -> None:
        """Admit messages again."""
        with self.lock:
            self._closed = None

    def refuse(self, error: Callable[[], BaseException]) -> None:
        """Admit nothing more, and leave what waits to the reader."""
        with self.lock:
            if self._closed is None:
                self._closed = error

    def forget_parent(self, error: Callable[[], BaseException]) -> None:
        """In a forked child: another thread's hold of the lock stayed in the parent."""
        self.lock = _thread.allocate_lock()
        self._closed = error
        self._queue = []
        self.run_lent = None

    def __len__(self) -> int:
        return len(self._queue)
