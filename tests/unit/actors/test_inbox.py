"""The view of one actor on its mailbox, and the supervisor's timers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sealog.actors import actor as actor_module
from sealog.actors.actor import GATHER_FRACTION, SLOW_SYNC_S, Inbox, Timers
from sealog.actors.mailbox import Mailbox

from ...api.kit import SAFETY_S, Task


class Message:
    size_bytes = 1


class Naps:
    """Counts how long the inbox slept to gather, and lets something happen meanwhile."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.meanwhile: Any = None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.meanwhile is not None:
            self.meanwhile()

    monotonic = staticmethod(time.monotonic)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> Naps:
    naps = Naps()
    monkeypatch.setattr(actor_module, "time", naps)
    return naps


def pair() -> tuple[Mailbox[Message], Inbox[Message]]:
    mailbox: Mailbox[Message] = Mailbox(lambda: None)
    mailbox.stay_awake()
    return mailbox, Inbox(mailbox)


def send(mailbox: Mailbox[Message], count: int) -> None:
    for _ in range(count):
        mailbox.send(Message())


def taken(inbox: Inbox[Message]) -> int:
    return len(inbox.get().message.batch)


def test_it_takes_all_that_waits(naps: Naps) -> None:
    mailbox, inbox = pair()
    send(mailbox, 3)
    assert taken(inbox) == 3
    assert naps.slept == []


def test_it_waits_for_a_message() -> None:
    mailbox, inbox = pair()
    taking = Task(taken, inbox)
    send(mailbox, 1)
    assert taking.result() == 1


def test_a_deadline_ends_the_wait_with_an_empty_turn() -> None:
    _, inbox = pair()
    inbox.deadline = time.monotonic()
    turn = inbox.get().message
    assert turn.command is None
    assert turn.batch == []


def test_a_message_before_the_deadline_ends_the_wait() -> None:
    mailbox, inbox = pair()
    inbox.deadline = time.monotonic() + SAFETY_S
    taking = Task(taken, inbox)
    send(mailbox, 1)
    assert taking.result() == 1


def test_a_lone_caller_never_waits_for_a_bigger_batch(naps: Naps) -> None:
    mailbox, inbox = pair()
    inbox.commit_s = 1.0
    for _ in range(5):
        send(mailbox, 1)
        assert taken(inbox) == 1
    assert naps.slept == []


def test_a_fast_disk_gathers_nothing(naps: Naps) -> None:
    mailbox, inbox = pair()
    inbox.commit_s = SLOW_SYNC_S / 2
    send(mailbox, 8)
    assert taken(inbox) == 8
    send(mailbox, 1)
    assert taken(inbox) == 1
    assert naps.slept == []


def test_a_slow_disk_waits_once_and_a_little_for_those_of_the_last_batch(naps: Naps) -> None:
    mailbox, inbox = pair()
    inbox.commit_s = 0.016
    send(mailbox, 8)
    assert taken(inbox) == 8
    naps.meanwhile = lambda: send(mailbox, 5)
    send(mailbox, 2)
    assert taken(inbox) == 7
    assert naps.slept == [0.016 / GATHER_FRACTION]


def test_a_batch_that_stays_small_is_soon_not_waited_for(naps: Naps) -> None:
    mailbox, inbox = pair()
    inbox.commit_s = 0.016
    send(mailbox, 4)
    taken(inbox)
    for _ in range(10):
        send(mailbox, 1)
        assert taken(inbox) == 1
    assert len(naps.slept) == 3


def test_timers_are_due_in_the_order_of_their_time() -> None:
    timers, called = Timers(), []
    for delay_s in (-1.0, -3.0, -2.0, SAFETY_S):
        timers.add(delay_s, lambda delay_s=delay_s: called.append(delay_s))  # type: ignore[misc]
    assert timers.deadline is not None
    assert timers.deadline < time.monotonic()
    for call in timers.due():
        call()
    assert called == [-3.0, -2.0, -1.0]
    assert timers.due() == []
    assert timers.deadline > time.monotonic()
    timers.clear()
    assert timers.deadline is None


def test_timers_of_one_moment_are_due_in_the_order_they_were_added() -> None:
    timers, called = Timers(), []
    for number in range(100):
        timers._heap.append((0.0, number, lambda number=number: called.append(number)))  # type: ignore[misc]
    for call in timers.due():
        call()
    assert called == list(range(100))
