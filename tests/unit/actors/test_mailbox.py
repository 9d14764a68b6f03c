"""The mailbox of a session's address: bounds, closing, wake-ups."""

from __future__ import annotations

from typing import Any

import pytest

from sealog.actors.mailbox import AWAKE, DORMANT, MESSAGES_MAX, SIZE_BYTES_MAX, Full, Mailbox, Sleep
from sealog.actors.requests import Signal

from ...api.kit import SAFETY_S, Task


class Message:
    def __init__(self, size_bytes: int = 1) -> None:
        self.size_bytes = size_bytes


class Reader:
    """A mailbox, and what an actor does with it."""

    def __init__(self, **bounds: Any) -> None:
        self.opened = 0
        self.mailbox: Mailbox[Message] = Mailbox(self._open, **bounds)
        self.signal = Signal()

    def _open(self) -> None:
        self.opened += 1

    def look(self, *, served: bool = False) -> Any:
        """Take a turn, or note a sleep and return 0."""
        return self.mailbox.next_turn(Sleep(self.signal), served=served, ready=lambda _: True)

    def woken(self) -> bool:
        """Tell whether the reader was woken since it fell asleep."""
        return self.signal.wait(0)


def closed() -> Exception:
    return ConnectionError("closed")


@pytest.fixture
def reader() -> Reader:
    reader = Reader()
    reader.mailbox.stay_awake()
    return reader


def test_a_turn_takes_everything_that_waits_in_order(reader: Reader) -> None:
    messages = [Message() for _ in range(5)]
    for message in messages:
        reader.mailbox.send(message)
    assert len(reader.mailbox) == 5
    assert reader.look() == (None, messages)
    assert len(reader.mailbox) == 0


def test_the_bounds_are_those_of_the_design() -> None:
    assert MESSAGES_MAX == 4096
    assert SIZE_BYTES_MAX == 32 * 1024 * 1024


def test_messages_are_bounded_in_number() -> None:
    mailbox = Reader(messages_max=2).mailbox
    assert mailbox.offer(Message())
    assert mailbox.offer(Message())
    assert not mailbox.offer(Message())
    with pytest.raises(Full):
        mailbox.send(Message(), 0.0)
    assert len(mailbox) == 2


def test_messages_are_bounded_in_bytes() -> None:
    mailbox = Reader(size_bytes_max=10).mailbox
    assert mailbox.offer(Message(6))
    assert not mailbox.offer(Message(5))
    assert mailbox.offer(Message(4))
    assert not mailbox.offer(Message(1))


def test_an_empty_mailbox_admits_any_single_message() -> None:
    mailbox = Reader(size_bytes_max=10).mailbox
    assert mailbox.offer(Message(1000))
    assert not mailbox.offer(Message(0))


def test_a_mailbox_without_bound_admits_all() -> None:
    mailbox = Reader(messages_max=None, size_bytes_max=1).mailbox
    assert all(mailbox.offer(Message(100)) for _ in range(10_000))


def test_a_full_mailbox_lets_senders_in_one_by_one_as_it_is_emptied() -> None:
    reader = Reader(messages_max=1)
    reader.mailbox.stay_awake()
    reader.mailbox.send(Message())
    waiting = [Task(reader.mailbox.send, Message()) for _ in range(4)]
    seen = 0
    while seen < 5:
        turn = reader.look()
        seen += len(turn[1]) if turn else 0
    for task in waiting:
        task.result()
    assert len(reader.mailbox) == 0


def test_withdrawing_makes_room() -> None:
    mailbox = Reader(messages_max=1).mailbox
    first, second = Message(), Message()
    mailbox.send(first)
    signal = Signal()
    assert not mailbox.offer(second, signal)
    assert mailbox.withdraw(first)
    assert signal.wait(0)
    assert mailbox.offer(second)
    assert not mailbox.withdraw(first)


def test_bytes_are_given_back_when_taken_and_withdrawn() -> None:
    reader = Reader(size_bytes_max=10)
    for _ in range(3):
        big = Message(9)
        assert reader.mailbox.offer(Message(1))
        assert reader.mailbox.offer(big)
        assert reader.mailbox.withdraw(big)
        assert reader.mailbox.offer(Message(9))
        reader.look()


def test_a_sender_that_gave_up_waiting_leaves_nothing_behind() -> None:
    mailbox = Reader(messages_max=1).mailbox
    mailbox.send(Message())
    for _ in range(3):
        with pytest.raises(Full):
            mailbox.send(Message(), 0.0)
    assert mailbox._waiting_for_room == []


def test_closing_hands_over_what_waits_and_refuses_what_comes(reader: Reader) -> None:
    message = Message()
    reader.mailbox.send(message)
    assert reader.mailbox.close(closed) == [message]
    with pytest.raises(ConnectionError, match="closed"):
        reader.mailbox.send(Message())
    assert reader.mailbox.close(closed) == []


def test_closing_wakes_those_who_wait_for_room() -> None:
    reader = Reader(messages_max=1)
    reader.mailbox.send(Message())
    waiting = Task(reader.mailbox.send, Message())
    while not reader.mailbox._waiting_for_room:
        assert waiting.running
    reader.mailbox.close(closed)
    assert isinstance(waiting.wait(), ConnectionError)


def test_refusing_leaves_what_waits_to_the_reader(reader: Reader) -> None:
    message = Message()
    reader.mailbox.send(message)
    reader.mailbox.refuse(closed)
    with pytest.raises(ConnectionError):
        reader.mailbox.offer(Message())
    assert reader.look() == (None, [message])


def test_the_first_reason_for_being_closed_stays(reader: Reader) -> None:
    reader.mailbox.refuse(closed)
    reader.mailbox.close(lambda: ValueError("later"))
    with pytest.raises(ConnectionError):
        reader.mailbox.offer(Message())


def test_a_closed_mailbox_can_be_opened_again(reader: Reader) -> None:
    reader.mailbox.close(closed)
    reader.mailbox.reopen()
    assert reader.mailbox.offer(Message())


# -- waking


def test_a_message_to_a_dormant_mailbox_asks_for_a_reader() -> None:
    reader = Reader()
    assert reader.mailbox.state is DORMANT
    reader.mailbox.send(Message())
    assert reader.opened == 1


def test_a_message_to_an_awake_reader_wakes_nobody(reader: Reader) -> None:
    reader.mailbox.send(Message())
    assert reader.opened == 0
    assert not reader.woken()


def test_a_message_to_a_sleeping_reader_wakes_it(reader: Reader) -> None:
    assert reader.look() == 0
    assert not reader.woken()
    reader.mailbox.send(Message())
    assert reader.woken()


def test_a_sleeping_reader_is_woken_once_by_many(reader: Reader) -> None:
    reader.look()
    for _ in range(10):
        reader.mailbox.send(Message())
    assert reader.woken()
    assert not reader.woken()


def test_a_late_sender_marks_its_own_sleep_and_not_the_next(reader: Reader) -> None:
    """One flag for all sleeps would lose the wake-up of the second message."""
    reader.look()
    first_sleep = reader.mailbox.state
    reader.mailbox.send(Message())
    assert reader.woken()
    assert reader.look()[1]
    assert reader.look() == 0  # asleep again, while the first sender still has the old sleep in its hands
    first_sleep.fired = True
    reader.mailbox.send(Message())
    assert reader.woken()


def test_the_signal_is_given_before_the_flag_is_set(reader: Reader) -> None:
    """A sender that is interrupted between the two must not keep others from waking the reader."""
    reader.look()
    sleep = reader.mailbox.state

    class Interrupted(Signal):
        def set(self) -> None:
            raise KeyboardInterrupt

    sleep.signal = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        reader.mailbox.offer(Message())
    assert not sleep.fired
    sleep.signal = reader.signal
    reader.mailbox.offer(Message())
    assert reader.woken()


def test_no_wake_up_is_lost_between_many_senders_and_a_reader() -> None:
    reader = Reader(messages_max=16)
    reader.mailbox.stay_awake()
    senders, each = 6, 500
    tasks = [Task(lambda: [reader.mailbox.send(Message()) for _ in range(each)]) for _ in range(senders)]
    seen = 0
    while seen < senders * each:
        turn = reader.look()
        if turn:
            seen += len(turn[1])
        else:
            assert reader.signal.wait(SAFETY_S), f"asleep with {len(reader.mailbox)} messages"
    for task in tasks:
        task.result()
    assert seen == senders * each


# -- the end of a reader


def test_resting_with_messages_asks_for_another_reader() -> None:
    reader = Reader()
    reader.mailbox.stay_awake()
    reader.mailbox.send(Message())
    assert not reader.mailbox.rest()
    assert reader.mailbox.state is AWAKE
    reader.look()
    assert reader.mailbox.rest()
    assert reader.mailbox.state is DORMANT


def test_resting_can_be_refused_for_those_who_wait_to_open(reader: Reader) -> None:
    assert not reader.mailbox.rest(stay_awake=True)
    assert reader.mailbox.state is AWAKE


@pytest.mark.parametrize("command", ["passivate", "close"])
def test_a_command_ends_an_idle_reader(reader: Reader, command: Any) -> None:
    reader.look()
    reader.mailbox.command(command)
    assert reader.woken()
    assert reader.look() == (command, [])
    assert reader.look() == 0


def test_close_comes_after_the_queue(reader: Reader) -> None:
    message = Message()
    reader.mailbox.send(message)
    reader.mailbox.command("close")
    assert reader.look(served=True) == (None, [message])
    assert reader.look(served=True) == ("close", [])


def test_passivate_comes_after_one_turn_and_leaves_the_queue_to_a_successor(reader: Reader) -> None:
    message = Message()
    reader.mailbox.send(message)
    reader.mailbox.command("passivate")
    assert reader.look(served=False) == (None, [message])
    reader.mailbox.send(Message())
    assert reader.look(served=True) == ("passivate", [])
    assert len(reader.mailbox) == 1


def test_commands_are_not_bounded(reader: Reader) -> None:
    full = Reader(messages_max=1)
    full.mailbox.send(Message())
    full.mailbox.command("close")
    full.look()
    assert full.look() == ("close", [])


def test_a_command_is_forgotten_with_its_reader(reader: Reader) -> None:
    reader.look()
    reader.mailbox.command("passivate")
    assert reader.mailbox.rest()
    assert reader.look() == 0


def test_a_reader_that_gathers_is_told_how_much_waits(reader: Reader) -> None:
    reader.mailbox.send(Message())
    reader.mailbox.send(Message())
    asked = []

    def ready(waiting: int) -> bool:
        asked.append(waiting)
        return len(asked) > 1

    assert reader.mailbox.next_turn(Sleep(reader.signal), served=False, ready=ready) == 2
    assert reader.mailbox.state is AWAKE
    _, batch = reader.mailbox.next_turn(Sleep(reader.signal), served=False, ready=ready)  # type: ignore[misc]
    assert len(batch) == 2
