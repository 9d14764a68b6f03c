"""Borrowing the turn of a sleeping reader."""

from __future__ import annotations

import dis
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sealog.actors.mailbox import DORMANT, Mailbox, Poison, Sleep
from sealog.actors.requests import Signal

from ...api.kit import Gate, Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


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
        lender.mailbox.refuse(lambda: ValueError())
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


# -- interrupts: CPython raises them between bytecodes, but only at some of them


class Interrupter:
    """Raises KeyboardInterrupt at the n-th place of the mailbox's code where a signal could.

    Places are the entry of a function, a jump back, and the end of a call of something written in C.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self._after_call: dict[FrameType, bool] = {}

    @property
    def fired(self) -> bool:
        return self.left < 0

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_back is not None:
            self._after_call[frame.f_back] = False  # a call of Python code ends without a look at signals
        if not frame.f_code.co_filename.endswith(("actors/mailbox.py", "test_lending.py")):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self._reach()
        elif event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if self._after_call.get(frame) or "JUMP_BACKWARD" in name:
                self._reach()
            self._after_call[frame] = name.startswith("CALL")
        return self

    def _reach(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt


def interrupted(at: int, call: Callable[[], object]) -> bool:
    """Call with an interrupt at the n-th place; False if there were fewer places."""
    interrupter = Interrupter(at)
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupter.fired


def test_an_interrupt_at_any_place_of_a_lent_turn_leaves_the_mailbox_usable() -> None:
    place = 0
    while True:
        lender = Lender()
        if not interrupted(place, lambda lender=lender: lender.mailbox.lend(Message())):  # type: ignore[misc]
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
        if not interrupted(place, lambda lender=lender: lender.mailbox.lend(Message())):  # type: ignore[misc]
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
        if not interrupted(place, lambda: lender.mailbox.send(message)):  # noqa: B023
            break
        place += 1
        assert not lender.mailbox.lock.locked(), f"interrupt {place}: the lock was left locked"
        lender.mailbox.withdraw(message)
        lender.mailbox.send(message)
        assert lender.woken(), f"interrupt {place}: the reader sleeps on"
        assert lender.look() == (None, [message])
    assert place > 5
