"""Appending: what comes back, what is refused, and when."""

from __future__ import annotations

import asyncio
import concurrent.futures
import enum
import math
import time
from typing import Any

import msgspec
import pytest

import sealog
from sealog import Event, Role
from sealog.actors.requests import OneShot

from .kit import SAFETY_S, Kit, Task, texts, until, until_lending


class Colour(enum.StrEnum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: list[float]


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    return kit.store().create_session("s")


def full(kit: Kit, session: sealog.Session) -> tuple[Any, list[Any]]:
    """Fill the mailbox behind a commit that waits; return its gate and the futures."""
    gate = kit.fs.hold("sync_data", f"{session.session_id}/log")
    futures = [session.append_nowait("m", "first")]
    gate.wait_reached()
    while True:
        try:
            futures.append(session.append_nowait("m", "filler"))
        except sealog.MailboxFullError:
            return gate, futures


# -- what comes back


def test_positions_are_given_from_zero_without_gaps(session: sealog.Session) -> None:
    assert session.append("m", "zero") == 0
    assert session.append_many([Event("m", "one"), Event("m", "two")]) == range(1, 3)
    future = session.append_nowait("m", "three")
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(SAFETY_S) == 3
    assert session.append(Role.USER_MESSAGE, "four") == 4
    assert texts(session) == ["zero", "one", "two", "three", "four"]
    assert session[4].kind == "user-message"


def test_the_time_is_set_when_it_is_left_out(session: sealog.Session) -> None:
    before = time.time_ns()
    session.append("m", "x")
    session.append_many([Event("m", "y"), Event("m", "z", at=5), Event("m", "w", at=-1)])
    session.append_nowait("m", "v").result(SAFETY_S)
    now, times = time.time_ns(), [event.at for event in session.events()]
    assert times[2:4] == [5, -1]
    for at in (times[0], times[1], times[4]):
        assert at is not None
        assert before <= at <= now


@pytest.mark.parametrize("empty", [[], (), iter(()), (event for event in ())], ids=repr)
def test_an_empty_batch_writes_nothing(kit: Kit, session: sealog.Session, empty: Any) -> None:
    session.append("m", "x")
    until_lending(session)
    before = kit.snapshot()
    assert session.append_many(empty) == range(1, 1)
    assert session.append_many([], expected=1) == range(1, 1)
    with pytest.raises(sealog.PositionConflictError) as caught:
        session.append_many([], expected=0)
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    assert kit.snapshot() == before


def test_a_batch_may_be_any_iterable(session: sealog.Session) -> None:
    assert session.append_many(Event("m", str(number)) for number in range(3)) == range(3)
    assert session.append_many((Event("m", "3"),)) == range(3, 4)


def test_a_future_is_awaited_by_asyncio(session: sealog.Session) -> None:
    async def work() -> list[int]:
        futures = [asyncio.wrap_future(session.append_nowait("m", str(n))) for n in range(10)]
        return await asyncio.gather(*futures)

    assert asyncio.run(work()) == list(range(10))


DATA: list[Any] = [
    None,
    *(True, False, 0, -(2**63), 2**63 - 1, 2**64 - 1, 1.5, -0.0, "", "text\0\u2028", b"", b"\xff"),
    *([], {}, [1, [2, [3]]], {"a": {"b": [None]}}, {"": 1}),
]


@pytest.mark.parametrize("data", DATA, ids=repr)
def test_data_comes_back_as_it_was(session: sealog.Session, data: Any) -> None:
    session.append("m", "x", data)
    session.append_many([Event("m", "x", data)])
    for event in session.events():
        assert event.data == data
        assert type(event.data) is type(data)


def test_data_of_other_types_comes_back_plain_and_is_decoded(session: sealog.Session) -> None:
    session.append("m", "x", Point(1, [2.0]))
    session.append("m", "x", (1, (2,)))
    session.append("m", "x", {"colour": Colour.RED, Colour.RED: 1})
    assert [event.data for event in session.events()] == [
        {"x": 1, "y": [2.0]},
        [1, [2]],
        {"colour": "red", "red": 1},
    ]
    assert session[0].decode(Point) == Point(1, [2.0])


def test_what_is_mutated_after_the_call_is_not_stored(kit: Kit, session: sealog.Session) -> None:
    gate = kit.fs.hold("sync_data", "s/log")
    held = session.append_nowait("m", "held")
    gate.wait_reached()
    data = {"a": [1]}
    future = session.append_nowait("m", "x", data)
    data["a"].append(2)
    batch = [Event("m", "y", data)]
    appending = Task(session.append_many, batch)
    until(lambda: kit.store().stats().waiting_requests == 2)
    data["a"].append(3)
    batch.clear()
    gate.open()
    assert (held.result(SAFETY_S), future.result(SAFETY_S), appending.result()) == (0, 1, range(2, 3))
    assert [event.data for event in session[1:]] == [{"a": [1]}, {"a": [1, 2]}]


# -- expected and keys


@pytest.mark.parametrize("expected", [0, 2, 5, -1, 2**40])
def test_an_unexpected_position_is_a_conflict_and_changes_nothing(
    kit: Kit, session: sealog.Session, expected: int
) -> None:
    session.append("m", "x")
    until_lending(session)
    before = kit.snapshot()
    for call in (
        lambda: session.append("m", "y", expected=expected),
        lambda: session.append("m", "y", expected=expected, timeout=SAFETY_S),
        lambda: session.append_many([Event("m", "y")], expected=expected),
        lambda: session.append_nowait("m", "y", expected=expected).result(SAFETY_S),
    ):
        with pytest.raises(sealog.PositionConflictError) as caught:
            call()
        error = caught.value
        assert (error.session_id, error.expected, error.actual) == ("s", expected, 1)
        assert "'s'" in str(error)
    assert kit.snapshot() == before
    assert session.append("m", "y", expected=1) == 1
    assert session.append_many([Event("m", "z")] * 2, expected=2) == range(2, 4)


def test_the_same_key_with_the_same_content_is_stored_once(kit: Kit, session: sealog.Session) -> None:
    data = {"b": 1, "a": [1, 2]}
    assert session.append("m", "x", data, key="k") == 0
    session.append("m", "other")
    until_lending(session)
    before = kit.snapshot()
    assert session.append("m", "x", {"a": [1, 2], "b": 1}, key="k") == 0
    assert session.append("m", "x", data, key="k", expected=17) == 0
    assert session.append_nowait("m", "x", data, key="k").result(SAFETY_S) == 0
    assert session.append_many([Event("m", "x", data, at=99, key="k")]) == range(1)
    assert kit.snapshot() == before
    session.close()
    kit._stores[0].close()
    again = kit.store().open_session("s")
    assert again.append("m", "x", data, key="k") == 0
    assert len(again) == 2


@pytest.mark.parametrize("other", [{"text": "y"}, {"kind": "n"}, {"data": 2}, {"data": None}], ids=repr)
def test_the_same_key_with_other_content_is_a_conflict(
    session: sealog.Session, other: dict[str, Any]
) -> None:
    first = {"kind": "m", "text": "x", "data": 1}
    session.append(**first, key="k")
    with pytest.raises(sealog.KeyConflictError) as caught:
        session.append(**{**first, **other}, key="k")
    error = caught.value
    assert (error.session_id, error.key, error.position) == ("s", "k", 0)
    assert "'k'" in str(error)
    assert "nothing was written" in str(error)
    assert session.append("m", "y") == 1


def test_identical_events_without_a_key_are_two(session: sealog.Session) -> None:
    assert [session.append("m", "x"), session.append("m", "x")] == [0, 1]
    assert [session.append("m", "x", key=""), session.append("m", "x", key="")] == [2, 2]


def keyed(*keys: str | None) -> list[Event]:
    return [Event("m", key or "none", key=key) for key in keys]


def test_a_batch_is_known_whole_or_not_at_all(session: sealog.Session) -> None:
    assert session.append_many(keyed("a", None, "b")) == range(3)
    assert session.append_many(keyed("a", None, "b")) == range(3)
    assert session.append_many(keyed("c")) == range(3, 4)
    assert session.append("m", "b", key="b") == 2
    for batch in (
        keyed("a", "new"),
        keyed("b", None, "a"),
        keyed("a", "b"),
        keyed("c", "a"),
        keyed("b", "c", "d"),
        keyed("x", "x"),
        [Event("m", "a", key="a"), Event("m", "something else"), Event("m", "b", key="b")],
    ):
        with pytest.raises(sealog.KeyConflictError) as caught:
            session.append_many(batch)
        assert caught.value.key in {"a", "b", "c", "d", "x", "new"}
    assert session.append_many(keyed("b", "c")) == range(2, 4)
    assert len(session) == 4


def test_many_keys_are_known_across_a_reopening(kit: Kit, session: sealog.Session) -> None:
    for start in range(0, 3000, 1000):
        session.append_many([Event("m", str(n), key=f"key {n}") for n in range(start, start + 1000)])
    assert session.append("m", "2999", key="key 2999") == 2999
    kit._stores[0].close()
    again = kit.store().open_session("s")
    for number in (0, 1, 1500, 2999):
        assert again.append("m", str(number), key=f"key {number}") == number
    assert again.append("m", "new", key="key 3000") == 3000


# -- sealed


def test_nothing_is_appended_to_a_sealed_session(kit: Kit, session: sealog.Session) -> None:
    session.append("m", "x", key="k")
    session.seal()
    before = kit.snapshot()
    for call in (
        lambda: session.append("m", "y"),
        lambda: session.append("m", "y", expected=1),
        lambda: session.append_many([Event("m", "y")]),
        lambda: session.append_nowait("m", "y").result(SAFETY_S),
        lambda: session.attach(b"y"),
    ):
        with pytest.raises(sealog.SessionSealedError) as caught:
            call()
        assert caught.value.session_id == "s"
        assert "new session" in str(caught.value)
    assert session.append("m", "x", key="k") == 0
    assert {name: value for name, value in kit.snapshot().items() if "attachments" not in name} == before
    assert texts(session) == ["x"]


# -- time


@pytest.mark.parametrize("timeout", [0, -1, 0.001])
def test_what_was_not_taken_in_time_is_certainly_absent(
    kit: Kit, session: sealog.Session, timeout: float
) -> None:
    gate = kit.fs.hold("sync_data", "s/log")
    held = session.append_nowait("m", "held")
    gate.wait_reached()
    for call in (
        lambda: session.append("m", "absent", timeout=timeout),
        lambda: session.append_many([Event("m", "absent")], timeout=timeout),
    ):
        with pytest.raises(sealog.MailboxFullError) as caught:
            call()
        assert caught.value.session_id == "s"
        assert "nothing was written" in str(caught.value)
        assert isinstance(caught.value, TimeoutError)
    gate.open()
    assert held.result(SAFETY_S) == 0
    assert session.append("m", "after") == 1
    assert texts(session) == ["held", "after"]


def test_what_was_taken_and_not_confirmed_in_time_is_unknown_and_can_be_waited_for(
    kit: Kit, session: sealog.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = kit.fs.hold("sync_data", "s/log")

    def expire(_: OneShot, timeout_s: float | None) -> bool:
        assert timeout_s is not None
        gate.wait_reached()  # the time is up when the commit is under way
        return False

    with monkeypatch.context() as patch:
        patch.setattr(OneShot, "wait", expire)
        with pytest.raises(sealog.AppendOutcomeUnknownError) as caught:
            session.append_many([Event("m", "x", key="k"), Event("m", "y")], timeout=SAFETY_S)
    error = caught.value
    assert error.session_id == "s"
    assert error.positions == range(2)
    assert error.future is not None
    assert not error.future.done()
    assert "same key" in str(error)
    assert isinstance(error, TimeoutError)
    gate.open()
    assert error.future.result(SAFETY_S) == range(2)
    assert session.append_many([Event("m", "x", key="k"), Event("m", "y")]) == range(2)


@pytest.mark.parametrize("timeout", [10.0, math.inf, 1e12])
def test_a_long_timeout_is_no_obstacle(session: sealog.Session, timeout: float) -> None:
    assert session.append("m", "x", timeout=timeout) == 0
    assert session.append_many([Event("m", "y")], timeout=timeout) == range(1, 2)


@pytest.mark.parametrize("timeout", ["soon", [1]])
def test_a_timeout_that_is_no_number_is_a_type_error(session: sealog.Session, timeout: Any) -> None:
    with pytest.raises(TypeError):
        session.append("m", "x", timeout=timeout)
    assert session.append("m", "y") == 0


def test_a_full_mailbox_refuses_at_once_or_after_the_timeout(kit: Kit, session: sealog.Session) -> None:
    gate, futures = full(kit, session)
    assert len(futures) == 4097
    with pytest.raises(sealog.MailboxFullError) as caught:
        session.append_nowait("m", "absent")
    assert "full" in str(caught.value)
    with pytest.raises(sealog.MailboxFullError, match="stayed full"):
        session.append("m", "absent", timeout=0)
    waiting = Task(session.append, "m", "waited")
    gate.open()
    assert [future.result(SAFETY_S) for future in futures] == list(range(4097))
    assert waiting.result() == 4097
    assert "absent" not in texts(session)


def test_a_cancelled_append_is_absent(kit: Kit, session: sealog.Session) -> None:
    gate, futures = full(kit, session)
    cancelled = [future for future in futures if future.cancel()]
    assert len(cancelled) == 4096
    gate.open()
    assert futures[0].result(SAFETY_S) == 0
    assert session.append("m", "after") == 1
    assert texts(session) == ["first", "after"]
