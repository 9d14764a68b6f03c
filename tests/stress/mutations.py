"""Known mistakes, each put in on purpose: the stress has to find every one of them.

Each was made, or nearly made, once. Without runs that fall over them nobody would know that the stress can
fall.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sealog.actors import actor, mailbox
from sealog.actors.mailbox import AWAKE, DORMANT, Mailbox, Sleep
from sealog.actors.session_actor import SessionActor
from sealog.actors.slot import SlotState
from sealog.actors.supervisor import Supervision

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealog.actors.mailbox import Wakeable
    from sealog.actors.requests import Signal
    from sealog.actors.slot import Slot


def hand_over_before_closing() -> None:
    """Tell the supervisor first, and close the files after: two owners."""

    def last_act(self: SessionActor) -> None:
        self._on_ended(self)
        time.sleep(0.002)
        self._close()

    SessionActor.last_act = last_act  # type: ignore[method-assign]


def closed_without_lock() -> None:
    """Look whether a mailbox is closed, and put the message in afterwards: never answered."""

    def offer(self: Mailbox[Any], message: Any, when_room: Wakeable | None = None) -> bool:
        if self._closed is not None:
            raise self._closed()
        time.sleep(0.0005)  # the window, made wider
        with self.lock:
            if not self._has_room(message):
                if when_room is not None:
                    self._waiting_for_room.append(when_room)
                return False
            self._queue.append(message)
            self._size_bytes += message.size_bytes
            state = self.state if self._claim is None else AWAKE
        if state is not AWAKE:
            self._wake(state)
        return True

    Mailbox.offer = offer  # type: ignore[method-assign]


def no_second_look() -> None:
    """Let a session whose actor has ended sleep without a look into its mailbox: never answered."""
    rest = Supervision._rest

    def careless(self: Supervision, slot: Slot) -> None:
        if slot.checkouts or slot.waiters:
            rest(self, slot)
            return
        slot.state = SlotState.DORMANT
        self._live.pop(slot.session_id, None)
        slot.release_lock()
        with slot.mailbox.lock:
            slot.mailbox._command = slot.mailbox._poison = None
            slot.mailbox.state = DORMANT

    Supervision._rest = careless  # type: ignore[method-assign]


def flag_before_signal() -> None:
    """Note that the reader was woken, and wake it then: an interrupt in between loses all later wake-ups."""

    def wake(self: Mailbox[Any], state: Any) -> None:
        if state is DORMANT:
            self._open_reader()
        elif not state.fired:
            state.fired = True
            time.sleep(0.0002)  # the window, made wider
            state.signal.set()

    Mailbox._wake = wake  # type: ignore[method-assign]


def one_flag_for_all_sleeps() -> None:
    """Use one flag again and again: a late sender marks the next sleep as woken."""
    sleeps: dict[Signal, Sleep] = {}

    def same(signal: Signal) -> Sleep:
        sleep = sleeps.setdefault(signal, Sleep(signal))
        sleep.fired = False
        return sleep

    def wake(self: Mailbox[Any], state: Any) -> None:
        if state is DORMANT:
            self._open_reader()
        elif not state.fired:
            state.signal.set()
            time.sleep(0)
            state.fired = True

    actor.Sleep = same  # type: ignore[attr-defined,misc]
    Mailbox._wake = wake  # type: ignore[method-assign]


def turn_given_back_by_a_method() -> None:
    """End a lent turn in a function of its own: an interrupt on its entry keeps the turn for ever."""

    def give_back(self: Mailbox[Any], me: object, sleep: Any) -> None:
        time.sleep(0.0002)  # the window, made wider
        while self._claim is me:
            with self.lock:
                if self._queue or self._command is not None or self._poison is not None:
                    sleep.signal.set()
                self._claim = None

    def lend(self: Mailbox[Any], message: Any) -> bool:
        me, sleep = mailbox.Poison(), None
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
            give_back(self, me, sleep)

    Mailbox.lend = lend  # type: ignore[method-assign]


MUTATIONS: Final[dict[str, tuple[Callable[[], None], dict[str, Any]]]] = {
    mutation.__name__: (mutation, settings)
    for mutation, settings in (
        (hand_over_before_closing, {"live": 2}),
        (closed_without_lock, {"live": 2, "reopen_s": 0.05}),
        (no_second_look, {"live": 2, "reopen_s": 0.0, "private": True}),
        (flag_before_signal, {"threads": 1, "sessions": 1, "reopen_s": 0.0, "signals": True}),
        (one_flag_for_all_sleeps, {"threads": 3, "sessions": 1, "reopen_s": 0.0}),
        (turn_given_back_by_a_method, {"threads": 1, "sessions": 1, "reopen_s": 0.0, "signals": True}),
    )
}
"""What each mistake needs to show itself soon."""
