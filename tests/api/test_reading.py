"""Reading: iterators, slices, tails, copies, and what readers see while others write."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog import Event

from .kit import SAFETY_S, Kit, Task, texts, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 23


@pytest.fixture(params=["live", "dormant", "reopened", "read-only"])
def session(kit: Kit, request: pytest.FixtureRequest) -> sealog.Session:
    """Return a session of 23 events in frames of several sizes, in each state a reader may find."""
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "0")
    session.append_many([Event("m", str(number), {"n": [number]}) for number in range(1, 20)])
    session.append_many([Event("m", str(number)) for number in range(20, COUNT)])
    if request.param == "dormant":
        store.create_session("other")
    elif request.param in ("reopened", "read-only"):
        store.close()
        store = kit.store(read_only=request.param == "read-only")
        session = store.open_session("s")
    return session


ALL = [str(number) for number in range(COUNT)]
SLICES = [
    *(slice(None), slice(0, 0), slice(3, 7), slice(-5, None), slice(None, -20), slice(100, 200)),
    *(slice(7, 3), slice(None, None, 2), slice(1, 20, 7), slice(None, None, -1), slice(15, 3, -4)),
    *(slice(-1, -100, -3), slice(-100, 5), slice(20, 1000)),
]


@pytest.mark.parametrize("index", SLICES, ids=str)
def test_a_slice_reads_what_a_list_would(session: sealog.Session, index: slice) -> None:
    found = session[index]
    assert isinstance(found, list)
    assert [event.text for event in found] == ALL[index]


@pytest.mark.parametrize("index", [0, 1, 19, 20, COUNT - 1, -1, -COUNT])
def test_an_index_reads_what_a_list_would(session: sealog.Session, index: int) -> None:
    assert session[index].text == ALL[index]


@pytest.mark.parametrize("index", [COUNT, -COUNT - 1, 2**40])
def test_an_index_beyond_the_events_is_an_index_error(session: sealog.Session, index: int) -> None:
    with pytest.raises(IndexError, match=f"'s' has {COUNT} events, none at {index}"):
        session[index]


@pytest.mark.parametrize("index", ["0", None, 1.5])
def test_an_index_of_another_type_is_a_type_error(session: sealog.Session, index: Any) -> None:
    with pytest.raises(TypeError):
        session[index]


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (0, 0), (5, None), (3, 7), (7, 3), (COUNT, None), (100, None), (0, 1000)]
)
def test_events_are_iterated_between_two_positions(
    session: sealog.Session, start: int, stop: int | None
) -> None:
    assert [event.text for event in session.events(start, stop)] == ALL[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(-1, None), (0, -1), (-5, -1)])
def test_negative_positions_are_refused_at_the_call(
    session: sealog.Session, start: int, stop: int | None
) -> None:
    with pytest.raises(ValueError, match="tail"):
        session.events(start, stop)


@pytest.mark.parametrize("n", [0, 1, 3, 4, COUNT, COUNT + 1, 10**9])
def test_a_tail_is_the_last_events(session: sealog.Session, n: int) -> None:
    assert [event.text for event in session.tail(n)] == (ALL[-n:] if n else [])


def test_a_negative_tail_is_refused(session: sealog.Session) -> None:
    with pytest.raises(ValueError, match="-1"):
        session.tail(-1)


def test_length_iteration_and_truth(session: sealog.Session) -> None:
    assert len(session) == COUNT
    assert [event.text for event in session] == ALL
    assert texts(session) == ALL


def test_readers_get_fresh_copies(session: sealog.Session) -> None:
    for read in (lambda: session[5], lambda: next(session.events(5)), lambda: session.tail(18)[0]):
        event = read()
        assert event.data == {"n": [5]}
        event.data["n"].append("changed")
        assert read().data == {"n": [5]}
        with pytest.raises(AttributeError):
            event.text = "changed"


def test_reading_changes_nothing_on_disk(kit: Kit, session: sealog.Session) -> None:
    until_sleep = session._slot.is_open
    if until_sleep:
        until_lending(session)
    before = kit.snapshot()
    texts(session), session[0], session.tail(3), len(session), session.header, session.is_sealed
    list(session.attachments())
    assert kit.snapshot() == before


# -- an empty session


def test_an_empty_session_reads_as_an_empty_list(kit: Kit) -> None:
    session = kit.store().create_session("s")
    assert len(session) == 0
    assert texts(session) == session[:] == session.tail(5) == list(session.attachments()) == []
    for index in (0, -1):
        with pytest.raises(IndexError):
            session[index]


# -- while others write


def test_an_iterator_ends_where_the_session_ended_when_it_began(kit: Kit) -> None:
    session = kit.store().create_session("s")
    session.append_many([Event("m", str(number)) for number in range(3)])
    iterator = session.events()
    session.append("m", "3")
    assert next(iterator).text == "0"  # it begins at the first step
    session.append("m", "4")
    assert [event.text for event in iterator] == ["1", "2", "3"]


def test_an_iterator_goes_on_when_the_session_is_put_to_sleep_or_closed(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append_many([Event("m", str(number)) for number in range(3)])
    session.append("m", "3")
    iterator, other = session.events(), session.events()
    next(iterator), next(other)
    store.create_session("other").append("m", "x")
    assert [event.text for event in iterator] == ["1", "2", "3"]
    store.close()
    assert [event.text for event in other] == ["1", "2", "3"]


def test_a_dropped_iterator_gives_its_file_back(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    iterator = session.events()
    next(iterator)
    shared = session._slot.published[0].shared  # type: ignore[index]
    store.create_session("other").append("m", "x")
    assert shared.acquire()
    shared.release()
    del iterator
    assert not shared.acquire()


def test_what_is_acknowledged_is_seen_at_once_by_every_handle(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}") for number in range(3)]
    readers = [kit.store().open_session(f"s{number}") for number in range(3)]
    stop = threading.Event()

    def write(worker: int) -> None:
        for number in range(9):
            session = sessions[(worker + number) % 3]
            text = f"{worker}-{number}"
            position = session.append("m", text)
            reader = readers[(worker + number) % 3]
            assert reader[position].text == text
            assert len(reader) > position

    def read(session: sealog.Session) -> int:
        seen: list[str] = []
        rounds = 0
        while not stop.is_set():
            found = texts(session)
            assert found[: len(seen)] == seen
            assert len(found) <= len(session)
            seen = found
            rounds += 1
        return rounds

    reading = [Task(read, session) for session in readers]
    writing = [Task(write, worker) for worker in range(4)]
    for task in writing:
        task.result()
    stop.set()
    assert all(task.result() > 0 for task in reading)


def test_a_reader_does_not_see_what_is_not_durable_yet(kit: Kit) -> None:
    session = kit.store().create_session("s")
    session.append("m", "durable")
    gate = kit.fs.hold("sync_data", "s/log")
    appending = Task(session.append, "m", "not yet")
    gate.wait_reached()
    assert texts(session) == ["durable"]
    assert len(session) == 1
    assert session[-1].text == "durable"
    gate.open()
    assert appending.result() == 1
    assert texts(session) == ["durable", "not yet"]


def test_reading_waits_for_no_writer(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    session.append("m", "x")
    gate = kit.fs.hold("sync_data", "s/log")
    future = session.append_nowait("m", "y")
    gate.wait_reached()
    calls: list[Callable[[], Any]] = [
        lambda: texts(session),
        lambda: session.tail(1),
        lambda: session.is_sealed,
        lambda: session.header,
        lambda: store.describe("s"),
        store.session_ids,
        store.stats,
        lambda: store.verify("s"),
        lambda: store.create_session("other").append("m", "x"),
    ]
    for call in calls:
        Task(call).result()
    gate.open()
    assert future.result(SAFETY_S) == 1


def test_a_read_that_a_delete_overtakes_is_no_damage(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    store.create_session("other")
    gate = kit.fs.hold("open", "s/lock")
    reading = Task(texts, session)
    gate.wait_reached()
    store.delete_session("s")
    gate.open()
    assert isinstance(reading.wait(), sealog.SessionDeletedError)


@pytest.mark.parametrize("how", ["read", "subscribe", "describe", "attachment"])
def test_a_read_that_the_end_of_the_store_overtakes_says_so(kit: Kit, how: str) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    attachment = session.read_attachment(session.attach(b"x"))
    store.create_session("other")
    subscription = session.subscribe()
    calls: dict[str, Callable[[], Any]] = {
        "read": lambda: texts(session),
        "subscribe": lambda: subscription.get(SAFETY_S),
        "describe": lambda: store.describe("s"),
        "attachment": lambda: attachment.bytes,
    }
    gate = kit.fs.hold("open_directory", "store/s")
    reading = Task(calls[how])
    gate.wait_reached()
    store.close()
    gate.open()
    assert isinstance(reading.wait(), sealog.StoreClosedError)
    subscription.close()


@pytest.mark.parametrize("how", ["read", "subscribe"])
def test_a_reader_that_began_before_the_session_was_opened_sees_no_commit_in_flight(
    kit: Kit, how: str
) -> None:
    """It reads the file by itself then; a failed commit would be shown, and be gone a moment later."""
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "durable")
    store.create_session("other")
    opening = kit.fs.hold("open", "s/log")
    if how == "read":
        reading = Task(texts, session)
    else:
        subscription = session.subscribe(1)
        reading = Task(subscription.get, 0)
    opening.wait_reached()
    store.open_session("s")
    syncing = kit.fs.hold("sync_data", "s/log")
    appending = session.append_nowait("m", "in flight")
    syncing.wait_reached()
    opening.open()
    if how == "read":
        assert reading.result() == ["durable"]
    else:
        assert isinstance(reading.wait(), TimeoutError)
        subscription.close()
    syncing.open()
    assert appending.result(SAFETY_S) == 1
