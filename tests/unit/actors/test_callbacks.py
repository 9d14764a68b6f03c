"""What callbacks of futures may do: they run on an actor's thread, which must not wait for itself."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import sealog

from ...api.kit import SAFETY_S, Kit, Task, texts, until, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable


class Called:
    """What a callback did, on whatever thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def __call__(self, _: object) -> None:
        try:
            self.value = self._call()
        except BaseException as error:  # noqa: BLE001 — looked at by the test
            self.error = error
        self._done.set()

    def wait(self) -> Called:
        assert self._done.wait(SAFETY_S), "the callback never returned"
        return self


def held(kit: Kit, session: sealog.Session, call: Callable[[], Any], *, failing: bool = False) -> Called:
    """Have a callback run by the actor that commits, or fails to commit, an append."""
    until_lending(session)
    gate = kit.fs.hold("sync_data", f"{session.session_id}/log")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    called = Called(call)
    session.append_nowait("m", "second").add_done_callback(called)
    if failing:
        kit.fs.fail("pwrite", f"{session.session_id}/log")
    gate.open()
    first.result()
    return called.wait()


BLOCKING: dict[str, Callable[[sealog.Store, sealog.Session], Any]] = {
    "append": lambda _, session: session.append("m", "x"),
    "append with timeout": lambda _, session: session.append("m", "x", timeout=SAFETY_S),
    "append_many": lambda _, session: session.append_many([sealog.Event("m", "x")]),
    "attach": lambda _, session: session.attach(b"bytes"),
    "seal": lambda _, session: session.seal(),
    "delete_abandoned": lambda _, session: session.delete_abandoned(),
    "delete_committed": lambda _, session: session.delete_committed(),
    "create_session": lambda store, _: store.create_session("new"),
    "open_session": lambda store, session: store.open_session(session.session_id),
    "delete_session": lambda store, session: store.delete_session(session.session_id),
    "recover_all": lambda store, _: store.recover_all(),
    "close": lambda store, _: store.close(),
}


@pytest.mark.parametrize("failing", [False, True], ids=["committed", "failed"])
@pytest.mark.parametrize("name", BLOCKING)
def test_a_blocking_call_from_a_callback_raises_instead_of_waiting_for_itself(
    kit: Kit, name: str, failing: bool
) -> None:
    store = kit.store()
    session = store.create_session("s")
    called = held(kit, session, lambda: BLOCKING[name](store, session), failing=failing)
    if isinstance(called.error, sealog.BlockingCallError):
        assert called.error.action
        assert "append_nowait" in str(called.error)
    else:
        assert name == "recover_all"  # a live session is only looked at
        assert called.error is None
    assert session.append("m", "after") == len(session) - 1
    assert "new" not in store.session_ids()
    assert sorted(path.name for path in kit.path.iterdir()) == [".sealog", "s"]


def test_a_blocking_call_from_an_answer_of_an_ending_actor_raises_too(kit: Kit) -> None:
    """Its last act answers what its turn did not: here the key of an append could not be looked up."""
    session = kit.store().create_session("s")
    session.append("m", "x")
    until_lending(session)
    gate = kit.fs.hold("sync_data", "s/log")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    called = Called(lambda: session.append("m", "blocking"))
    future = session.append_nowait("m", "y", key="k")
    future.add_done_callback(called)
    kit.fs.fail("pread", "s/log")
    gate.open()
    first.result()
    assert isinstance(called.wait().error, sealog.BlockingCallError)
    assert isinstance(future.exception(SAFETY_S), sealog.SessionFailedError)
    assert session.append("m", "after") == 2


def test_a_store_that_a_callback_tried_to_close_can_be_closed(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    assert isinstance(held(kit, session, store.close).error, sealog.BlockingCallError)
    store.close()
    assert kit.store().session_ids() == ["s"]


def test_a_callback_cannot_open_a_store_that_is_being_closed(kit: Kit) -> None:
    """Which waits for the callback."""
    store = kit.store()
    session = store.create_session("s")
    until_lending(session)
    gate = kit.fs.hold("sync_data", "s/log")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    called = Called(lambda: sealog.open(kit.path, file_system=kit.fs))
    session.append_nowait("m", "second").add_done_callback(called)
    closing = Task(store.close)
    until(lambda: not store._runtime.users)
    gate.open()
    first.result()
    assert isinstance(called.wait().error, sealog.BlockingCallError)
    closing.result()


@pytest.mark.parametrize("failing", [False, True], ids=["committed", "failed"])
def test_a_callback_may_append_without_waiting_and_read(kit: Kit, failing: bool) -> None:
    store = kit.store()
    session = store.create_session("s")

    def work() -> Any:
        return session.append_nowait("m", "third"), texts(session), session.tail(1), store.describe("s")

    called = held(kit, session, work, failing=failing)
    assert called.error is None
    future, seen, _, info = called.value
    expected = ["first"] if failing else ["first", "second"]
    assert seen == expected
    assert info.events == len(expected)
    assert future.result(SAFETY_S) == len(expected)
    assert texts(session) == [*expected, "third"]


def test_a_chain_of_callbacks_appends_one_after_the_other(kit: Kit) -> None:
    session = kit.store().create_session("s")
    done = threading.Event()

    def step(number: int) -> None:
        if number == 50:
            done.set()
        else:
            session.append_nowait("m", str(number)).add_done_callback(lambda _: step(number + 1))

    step(0)
    assert done.wait(SAFETY_S)
    assert texts(session) == [str(number) for number in range(50)]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), ValueError("callback")])
def test_a_callback_that_raises_harms_neither_the_session_nor_the_others(
    kit: Kit, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    store = kit.store()
    session = store.create_session("s")

    def raising() -> None:
        raise error

    gate = kit.fs.hold("sync_data", "s/log")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    futures = [session.append_nowait("m", str(number)) for number in range(5)]
    for future in futures:
        future.add_done_callback(lambda _: raising())
    gate.open()
    first.result()
    assert [future.result(SAFETY_S) for future in futures] == [1, 2, 3, 4, 5]
    assert session.append("m", "after") == 6
    assert store.stats().restarts == 0


def test_a_callback_may_be_called_by_the_supervisor_too(kit: Kit) -> None:
    """What waits for a session that cannot be opened is answered on another thread of ours."""
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    store.create_session("other")
    (kit.path / "s" / "log").write_bytes(b"not a log")
    called = Called(lambda: store.open_session("other"))
    session.append_nowait("m", "x").add_done_callback(called)
    assert isinstance(called.wait().error, sealog.BlockingCallError)
    assert store.open_session("other").append("m", "x") == 0


def test_a_thread_that_is_no_actors_any_more_may_block(kit: Kit) -> None:
    """Thread idents are given out again."""
    store = kit.store(max_live_sessions=1)
    sessions = [store.create_session(f"s{number}") for number in range(20)]
    until(lambda: store.stats().live_sessions == 1)
    for task in [Task(session.append, "m", "x") for session in sessions]:
        assert task.result() == 0
