"""Borrowing the turn of a sleeping reader."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from sealog.actors.mailbox import DORMANT, Mailbox, Poison, Sleep
from sealog.actors.requests import Signal

from ...api.kit import Gate, Task
from .interrupts import interrupted

if TYPE_CHECKING:
    from collections.abc import Callable


class Message:
    size_bytes = 1


class Lender:
    """A mailbox whose reader sleeps and lends its turn."""

    def __init__(self, run: Callable[[Message], None] = lambda _: None) -> None:
        self.ran: list[Message] = []
        self.mailbox: Mailbox[Message] = Mailbox(lambda: None)
        self.signal = Signal()
        self.mailbox.stay_awake()
        self.look()

        def note(message: Message) -> None:
            self.ran.append(message)
            run(message)

        self.mailbox.run_lent = note

    def look(self) -> Any:
        return self.mailbox.next_turn(Sleep(self.signal), served=False, ready=lambda _: True)

    def woken(self) -> bool:
        return self.signal.wait(0)


def raising(error: BaseException) -> Callable[[Message], None]:
    def run(_: Message) -> None:
        raise error

    return run


def test_a_sleeping_reader_with_an_empty_mailbox_lends_its_turn() -> None:
    lender, message = Lender(), Message()
    assert lender.mailbox.lend(message)
    assert lender.ran == [message]
    assert not lender.woken()
    assert lender.mailbox.lend(Message())


def test_an_awake_reader_does_not_lend() -> None:
    lender = Lender()
    lender.mailbox.stay_awake()
    assert not lender.mailbox.lend(Message())
    assert lender.ran == []


def test_a_dormant_mailbox_does_not_lend() -> None:
    lender = Lender()
    lender.mailbox.rest()
    assert lender.mailbox.state is DORMANT
    assert not lender.mailbox.lend(Message())


def test_a_reader_that_has_ended_does_not_lend() -> None:
    lender = Lender()
    lender.mailbox.run_lent = None
    assert not lender.mailbox.lend(Message())


@pytest.mark.parametrize("what", ["message", "command", "closed"])
def test_nothing_is_lent_while_something_waits(what: str) -> None:
    lender = Lender()
    if what == "message":
        lender.mailbox.send(Message())
    elif what == "command":
        lender.mailbox.command("passivate")
    else:
        lender.mailbox.refuse(ValueError)
    assert not lender.mailbox.lend(Message())
    assert lender.ran == []


def test_a_turn_is_lent_to_one_at_a_time_and_others_queue() -> None:
    gate = Gate()
    lender = Lender(lambda _: gate.pass_through())
    borrowing = Task(lender.mailbox.lend, Message())
    gate.wait_reached()
    assert not lender.mailbox.lend(Message())
    queued = Message()
    lender.mailbox.send(queued)
    assert not lender.woken()  # the borrower will wake the reader
    gate.open()
    assert borrowing.result()
    assert lender.woken()
    assert lender.look() == (None, [queued])


def test_a_reader_that_wakes_meanwhile_leaves_the_turn_to_the_borrower() -> None:
    gate = Gate()
    lender = Lender(lambda _: gate.pass_through())
    borrowing = Task(lender.mailbox.lend, Message())
    gate.wait_reached()
    queued = Message()
    lender.mailbox.send(queued)
    assert lender.look() == 0
    gate.open()
    borrowing.result()
    assert lender.woken()
    assert lender.look() == (None, [queued])


def test_a_command_given_meanwhile_wakes_the_reader_afterwards() -> None:
    gate = Gate()
    lender = Lender(lambda _: gate.pass_through())
    borrowing = Task(lender.mailbox.lend, Message())
    gate.wait_reached()
    lender.mailbox.command("close")
    assert not lender.woken()
    gate.open()
    borrowing.result()
    assert lender.woken()
    assert lender.look() == ("close", [])


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt(), SystemExit()])
def test_an_exception_in_a_lent_turn_is_raised_and_poisons(error: BaseException) -> None:
    lender = Lender(raising(error))
    with pytest.raises(type(error)):
        lender.mailbox.lend(Message())
    assert lender.woken()
    assert not lender.mailbox.lend(Message())
    queued = Message()
    lender.mailbox.send(queued)
    command, batch = lender.look()
    assert isinstance(command, Poison)
    assert command.error is error
    assert batch == []
    assert lender.look() == (None, [queued])


def test_a_poison_is_forgotten_with_its_reader() -> None:
    lender = Lender(raising(ValueError("bad")))
    with pytest.raises(ValueError, match="bad"):
        lender.mailbox.lend(Message())
    lender.mailbox.rest()
    assert lender.look() == 0


# -- interrupts


def test_an_interrupt_at_any_place_of_a_lent_turn_leaves_the_mailbox_usable() -> None:
    place = 0
    while True:
        lender = Lender()
        lend = partial(lender.mailbox.lend, Message())
        if not interrupted(place, lend, "actors/mailbox.py", "test_lending.py"):
            break
        place += 1
        assert lender.mailbox._claim is None, f"interrupt {place}: the turn was never given back"
        assert not lender.mailbox.lock.locked(), f"interrupt {place}: the lock was left locked"
        queued = Message()
        lender.mailbox.send(queued)
        assert lender.woken(), f"interrupt {place}: the reader sleeps on"
        command, batch = lender.look()
        if isinstance(command, Poison):
            command, batch = lender.look()
        assert batch == [queued], f"interrupt {place}: the message is not taken"
    assert place > 5


def test_an_interrupted_turn_is_poisoned_wherever_it_was() -> None:
    place = 0
    while True:
        done: list[str] = []

        def run(_: Message, done: list[str] = done) -> None:
            done.append("written")
            done.append("synced")

        lender = Lender(run)
        lend = partial(lender.mailbox.lend, Message())
        if not interrupted(place, lend, "actors/mailbox.py", "test_lending.py"):
            break
        place += 1
        command = lender.look()
        poisoned = command and isinstance(command[0], Poison)
        assert poisoned or done in ([], ["written", "synced"]), f"interrupt {place} after {done}"
    assert place > 5


def test_an_interrupt_at_any_place_of_a_send_keeps_no_lock_and_loses_no_wake_up() -> None:
    place = 0
    while True:
        lender, message = Lender(), Message()
        if not interrupted(place, partial(lender.mailbox.send, message)):
            break
        place += 1
        assert not lender.mailbox.lock.locked(), f"interrupt {place}: the lock was left locked"
        lender.mailbox.withdraw(message)
        lender.mailbox.send(message)
        assert lender.woken(), f"interrupt {place}: the reader sleeps on"
        assert lender.look() == (None, [message])
    assert place > 5


def test_an_interrupt_at_any_place_of_a_withdrawal_forgets_nobody_who_waits_for_room() -> None:
    place = 0
    while True:
        mailbox: Mailbox[Message] = Mailbox(lambda: None, messages_max=2, size_bytes_max=2)
        mailbox.stay_awake()
        mine, other, rooms = Message(), Message(), [Signal(), Signal()]
        assert mailbox.offer(mine)
        assert mailbox.offer(other)
        for room in rooms:
            assert not mailbox.offer(Message(), room)
        if not interrupted(place, partial(mailbox.withdraw, mine)):
            break
        place += 1
        assert not mailbox.lock.locked()
        mailbox.withdraw(mine)
        assert all(room.wait(0) for room in rooms), f"interrupt {place}: somebody waits for ever"
        assert mailbox.offer(Message()), f"interrupt {place}: room was lost"
        assert not mailbox.offer(Message()), f"interrupt {place}: room was invented"
    assert place > 5


def test_an_interrupt_at_any_place_of_an_offer_leaves_the_bounds_as_they_are() -> None:
    place = 0
    while True:
        mailbox: Mailbox[Message] = Mailbox(lambda: None, size_bytes_max=2)
        mailbox.stay_awake()
        assert mailbox.offer(Message())
        mine = Message()
        if not interrupted(place, partial(mailbox.offer, mine)):
            break
        place += 1
        mailbox.withdraw(mine)  # as every sender does that is interrupted
        assert mailbox.offer(Message())
        assert not mailbox.offer(Message()), f"interrupt {place}: room was invented"
    assert place > 3
