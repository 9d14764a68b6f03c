"""Subscriptions: catch up, follow, end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog import Event
from sealog.actors import subscription as subscription_module
from sealog.actors.requests import Signal

from .kit import SAFETY_S, Kit, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    return kit.store().create_session("s")


class Asleep:
    """Tells when a subscription has fallen asleep."""

    def __init__(self) -> None:
        self._asleep = threading.Semaphore(0)

    def wait(self) -> None:
        """Wait until a subscription that had nothing to give waits."""
        assert self._asleep.acquire(timeout=SAFETY_S)

    def note(self) -> None:
        self._asleep.release()


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asleep]:
    asleep = Asleep()

    class Noted(Signal):
        __slots__ = ()

        def wait(self, timeout_s: float | None = None) -> bool:
            asleep.note()
            return super().wait(timeout_s)

    monkeypatch.setattr(subscription_module, "Signal", Noted)
    return asleep


def got(subscription: sealog.Subscription, count: int) -> list[tuple[int, str]]:
    return [(position, event.text) for position, event in (subscription.get(SAFETY_S) for _ in range(count))]


def test_it_catches_up_and_follows(session: sealog.Session, asleep: Asleep) -> None:
    session.append_many([Event("m", "0"), Event("m", "1")])
    with session.subscribe() as subscription:
        assert got(subscription, 2) == [(0, "0"), (1, "1")]
        following = Task(got, subscription, 2)
        asleep.wait()
        session.append("m", "2")
        session.append_nowait("m", "3")
        assert following.result() == [(2, "2"), (3, "3")]


@pytest.mark.parametrize("start", [0, 1, 2, 5])
def test_it_starts_where_it_is_told(session: sealog.Session, start: int) -> None:
    session.append_many([Event("m", "0"), Event("m", "1")])
    with session.subscribe(start) as subscription:
        session.append_many([Event("m", str(number)) for number in range(2, 8)])
        assert got(subscription, 8 - start) == [(number, str(number)) for number in range(start, 8)]


def test_a_negative_start_is_refused(session: sealog.Session) -> None:
    with pytest.raises(ValueError, match="-1"):
        session.subscribe(-1)


def test_it_is_an_iterator_that_ends_with_the_seal(session: sealog.Session) -> None:
    session.append_many([Event("m", str(number)) for number in range(3000)])
    reading = Task(lambda: [position for position, _ in session.subscribe()])
    session.append("m", "last")
    session.seal()
    assert reading.result() == list(range(3001))


def test_a_wait_for_an_event_ends_with_the_seal(session: sealog.Session, asleep: Asleep) -> None:
    with session.subscribe() as subscription:
        waiting = Task(subscription.get)
        asleep.wait()
        session.seal()
        assert isinstance(waiting.wait(), sealog.SessionSealedError)
        with pytest.raises(StopIteration):
            next(subscription)


def test_nothing_in_time_is_a_timeout_and_it_goes_on(session: sealog.Session) -> None:
    with session.subscribe() as subscription:
        for timeout in (0, -1, 0.001):
            with pytest.raises(TimeoutError, match=r"'s'.*position 0"):
                subscription.get(timeout)
        session.append("m", "0")
        assert got(subscription, 1) == [(0, "0")]
        with pytest.raises(TimeoutError, match="position 1"):
            subscription.get(0)


def test_a_close_from_another_thread_ends_the_wait(session: sealog.Session, asleep: Asleep) -> None:
    subscription = session.subscribe()
    getting = Task(subscription.get)
    asleep.wait()
    subscription.close()
    error = getting.wait()
    assert isinstance(error, sealog.StoreClosedError)
    assert "subscription" in str(error)
    subscription.close()
    with pytest.raises(sealog.StoreClosedError):
        subscription.get(0)
    assert list(subscription) == []


def test_a_close_ends_an_iteration(session: sealog.Session, asleep: Asleep) -> None:
    subscription = session.subscribe()
    iterating = Task(list, subscription)
    asleep.wait()
    subscription.close()
    assert iterating.result() == []


@pytest.mark.parametrize("how", ["get", "iterate"])
def test_the_end_of_the_store_ends_it(kit: Kit, session: sealog.Session, asleep: Asleep, how: str) -> None:
    session.append("m", "0")
    subscription = session.subscribe(1)
    task = Task(subscription.get) if how == "get" else Task(list, subscription)
    asleep.wait()
    kit._stores[0].close()
    if how == "get":
        assert isinstance(task.wait(), sealog.StoreClosedError)
    else:
        assert task.result() == []


@pytest.mark.parametrize("how", ["get", "iterate"])
def test_the_end_of_the_session_is_an_error(
    kit: Kit, session: sealog.Session, asleep: Asleep, how: str
) -> None:
    subscription = session.subscribe()
    task = Task(subscription.get) if how == "get" else Task(list, subscription)
    asleep.wait()
    kit._stores[0].delete_session("s")
    assert isinstance(task.wait(), sealog.SessionDeletedError)
    subscription.close()


def test_only_durable_events_are_shown(kit: Kit, session: sealog.Session) -> None:
    with session.subscribe() as subscription:
        gate = kit.fs.hold("sync_data", "s/log")
        future = session.append_nowait("m", "0")
        gate.wait_reached()
        with pytest.raises(TimeoutError):
            subscription.get(0)
        gate.open()
        assert got(subscription, 1) == [(0, "0")]
        assert future.result(SAFETY_S) == 0


def test_what_was_never_acknowledged_is_not_shown(kit: Kit, session: sealog.Session) -> None:
    with session.subscribe() as subscription:
        kit.fs.fail("sync_data", "s/log")
        with pytest.raises(sealog.AppendOutcomeUnknownError):
            session.append("m", "unknown")
        with pytest.raises(TimeoutError):
            subscription.get(0)
        session.append("m", "0")
        assert got(subscription, 1) == [(0, "0")]


def test_it_follows_a_session_that_sleeps_and_wakes(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session, other = store.create_session("s"), store.create_session("other")

    def read(subscription: sealog.Subscription) -> list[tuple[int, str]]:
        return got(subscription, 30)

    with session.subscribe() as one, session.subscribe() as two:
        reading = [Task(read, one), Task(read, two)]
        for number in range(30):
            session.append("m", str(number))
            other.append("m", "x")
        for task in reading:
            assert task.result() == [(number, str(number)) for number in range(30)]


def test_it_looks_for_itself_once_the_session_was_put_to_sleep(kit: Kit, asleep: Asleep) -> None:
    """Then another process may append, which wakes nobody here."""
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "0")
    with session.subscribe(1) as subscription:
        waiting = Task(subscription.get)
        asleep.wait()
        store.create_session("other")
        asleep.wait()  # again, and now it polls
        assert subscription._follower.poll_s is not None
        session.append("m", "1")
        assert waiting.result()[0] == 1


def test_many_subscriptions_see_the_same(session: sealog.Session) -> None:
    subscriptions = [session.subscribe() for _ in range(5)]
    reading = [Task(got, subscription, 200) for subscription in subscriptions]

    def append(worker: int) -> None:
        for number in range(50):
            session.append("m", f"{worker}-{number}")

    for task in [Task(append, worker) for worker in range(4)]:
        task.result()
    seen = [task.result() for task in reading]
    assert all(one == seen[0] for one in seen)
    assert [position for position, _ in seen[0]] == list(range(200))
    for subscription in subscriptions:
        subscription.close()


def test_a_dropped_subscription_is_forgotten(session: sealog.Session) -> None:
    subscription: Any = session.subscribe()
    assert len(session._slot.watchers) == 1
    del subscription
    assert session._slot.watchers == []


def test_a_closed_handle_may_have_open_subscriptions(session: sealog.Session, kit: Kit) -> None:
    subscription = session.subscribe()
    session.close()
    kit.store().open_session("s").append("m", "0")
    assert got(subscription, 1) == [(0, "0")]
    subscription.close()
