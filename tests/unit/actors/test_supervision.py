"""Who may live, and who has a session to oneself: passivation, pins, check-out, the end of a store."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import sealog
from sealog.actors import runtime as runtime_module
from sealog.actors.actor import Timers
from sealog.actors.requests import OneShot
from sealog.actors.supervisor import Supervision, Supervisor
from sealog.storage.directory import create_session, open_store_directory

from ...api.kit import SAFETY_S, Kit, Task, texts, until

if TYPE_CHECKING:
    from pathlib import Path


def locked(path: Path) -> bool:
    """Tell whether anybody holds the lock of a session."""
    with (path / "lock").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


# -- passivation


def test_the_least_recently_used_session_is_passivated(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    a, b = store.create_session("a"), store.create_session("b")
    b.append("m", "x")
    a.append("m", "x")
    store.create_session("c")
    assert store.stats().live_sessions == 2
    assert not locked(kit.path / "b")
    assert locked(kit.path / "a")
    assert store.stats().passivations == 1


def test_a_passivated_session_is_read_and_appended_to_as_any_other(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    a, b = store.create_session("a"), store.create_session("b")
    for number in range(5):
        assert a.append("m", str(number)) == number
        assert b.append("m", str(number)) == number
        assert texts(a) == texts(b) == [str(n) for n in range(number + 1)]
    assert store.stats().passivations >= 9
    assert a.recovered is None


def test_many_threads_share_two_live_sessions(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}") for number in range(6)]

    def work(worker: int) -> None:
        for number in range(20):
            session = sessions[(worker + number) % len(sessions)]
            session.append("m", f"{worker}-{number}")
            assert store.stats().live_sessions <= 2

    for task in [Task(work, worker) for worker in range(6)]:
        task.result()
    found = [text for session in sessions for text in texts(session)]
    assert sorted(found) == sorted(f"{worker}-{number}" for worker in range(6) for number in range(20))
    assert len(set(found)) == len(found)


def test_a_pinned_session_is_not_passivated(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    a = store.create_session("a")
    with a:
        for number in range(5):
            store.create_session(f"s{number}").append("m", "x")
            assert locked(kit.path / "a")
    store.create_session("last").append("m", "x")
    store.open_session("s0").append("m", "y")
    assert not locked(kit.path / "a")


def test_a_dropped_handle_gives_its_pin_back(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    a = store.create_session("a")
    a.__enter__()
    slot = a._slot
    assert slot.pins == 1
    del a
    assert slot.pins == 0


def test_closing_a_handle_twice_gives_its_pin_back_once(kit: Kit) -> None:
    store = kit.store()
    first, second = store.create_session("a"), store.open_session("a")
    with second, first:
        first.close()
        first.close()
        assert second._slot.pins == 1
    assert second._slot.pins == 0


def test_with_all_sessions_pinned_the_bound_is_exceeded_with_one_warning(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sealog")
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}").__enter__() for number in range(5)]
    assert store.stats().live_sessions == 5
    warnings = [
        record for record in caplog.records if "max_live" in record.message or "pinned" in record.message
    ]
    assert len(warnings) == 1
    assert str(kit.path) in warnings[0].getMessage()
    for session in sessions:
        session.close()
    store.create_session("last")
    until(lambda: store.stats().live_sessions <= 2, "back to the bound")


def test_an_attachment_being_written_pins_its_session(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("a")
    gate = kit.fs.hold("make_directory", "a/attachments")
    attaching = Task(session.attach, b"bytes")
    gate.wait_reached()
    store.create_session("b")
    assert locked(kit.path / "a")
    gate.open()
    assert attaching.result() == 0
    assert session.read_attachment(0).bytes == b"bytes"


def test_a_message_to_a_session_that_is_being_passivated_is_stored(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    a = store.create_session("a")
    a.append("m", "first")
    gate = kit.fs.hold("truncate", "a/log")  # the last thing an owner does to its log
    creating = Task(store.create_session, "b")
    gate.wait_reached()
    future = a.append_nowait("m", "second")
    waiting = Task(a.append, "m", "third")
    gate.open()
    creating.result()
    assert future.result(SAFETY_S) == 1
    assert waiting.result() == 2
    assert texts(a) == ["first", "second", "third"]


def test_no_owner_starts_before_the_last_one_has_closed(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    a = store.create_session("a")
    a.append("m", "first")
    gate = kit.fs.hold("truncate", "a/log")
    creating = Task(store.create_session, "b")
    gate.wait_reached()
    opens = kit.fs.calls["open-write", "log"]
    opening = Task(store.open_session, "a")
    until(lambda: len(a._slot.waiters) == 1, "the call")
    assert kit.fs.calls["open-write", "log"] == opens
    assert opening.running
    gate.open()
    opening.result()
    creating.result()
    assert a.append("m", "second") == 1


def test_an_open_that_takes_long_keeps_nobody_else_waiting(kit: Kit) -> None:
    store = kit.store()
    store.create_session("slow")
    store.close()
    store = kit.store()
    gate = kit.fs.hold("open-write", "slow/log")
    opening = Task(store.open_session, "slow")
    gate.wait_reached()
    assert store.create_session("other").append("m", "x") == 0
    assert store.describe("slow").events == 0
    gate.open()
    opening.result()


# -- check-out


class InterruptedWait(OneShot):
    """A reply that nobody waits for: the caller is interrupted as soon as it tries."""

    def wait(self, timeout_s: float | None) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["delete_session", "create_session", "recover_all"])
def test_an_interrupted_caller_does_not_keep_the_session_for_ever(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = kit.store()
    session = store.create_session("s")
    session.append("m", "x")
    store.create_session("idle")
    until(lambda: session._slot.state == "live")
    arguments = {"delete_session": ("s",), "create_session": ("new",), "recover_all": ()}[call]
    if call == "recover_all":  # a live session is only looked at
        store.close()
        store = kit.store()
    monkeypatch.setattr(runtime_module, "OneShot", InterruptedWait)
    with pytest.raises(KeyboardInterrupt):
        getattr(store, call)(*arguments)
    monkeypatch.undo()
    target = arguments[0] if arguments else "idle"
    if call == "create_session":
        assert Task(store.create_session, "new").result().append("m", "x") == 0
    else:
        assert Task(lambda: store.open_session(target).append("m", "y")).result() in (0, 1)
    Task(store.close).result()


def test_a_store_can_be_closed_while_a_session_is_being_deleted(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    gate = kit.fs.hold("sync", "store")
    deleting = Task(store.delete_session, "s")
    gate.wait_reached()
    closing = Task(store.close)
    until(lambda: session._slot.mailbox._closed is not None)
    assert closing.running
    gate.open()
    deleting.result()
    closing.result()
    assert not (kit.path / "s").exists()


def test_a_store_closed_while_a_session_is_being_created_gives_its_lock_back(kit: Kit) -> None:
    store = kit.store()
    gate = kit.fs.hold("sync", "store")  # the session is in place, and its lock is held
    creating = Task(store.create_session, "s")
    gate.wait_reached()
    closing = Task(store.close)
    supervision = store._runtime.supervision
    assert supervision is not None
    until(lambda: supervision._closing is not None)
    gate.open()
    closing.result()
    error = creating.wait()
    assert error is None or isinstance(error, sealog.StoreClosedError)
    assert not locked(kit.path / "s")
    assert kit.store().open_session("s").append("m", "x") == 0


def test_eight_threads_that_create_one_session_make_one(kit: Kit) -> None:
    store = kit.store()
    tasks = [Task(store.create_session, "s") for _ in range(8)]
    errors = [task.wait() for task in tasks]
    assert errors.count(None) == 1
    assert all(isinstance(error, sealog.SessionExistsError) for error in errors if error is not None)
    assert store.open_session("s").append("m", "x") == 0


def test_a_handle_whose_folder_was_removed_never_writes_to_a_session_made_anew(kit: Kit) -> None:
    """Also if the owner could not close in order, since the folder was gone."""
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    shutil.rmtree(kit.path / "s")
    store.create_session("other")  # puts the session to sleep
    directory = open_store_directory(kit.fs, str(kit.path), create=False)
    create_session(directory, sealog.SessionHeader("s", "then")).close()  # as another process would
    directory.close()
    for _ in range(2):
        with pytest.raises(sealog.SessionDeletedError):
            session.append("m", "y")
    assert texts(store.open_session("s")) == []


def test_a_session_is_made_anew_right_after_it_was_deleted(kit: Kit) -> None:
    store = kit.store()
    for number in range(30):
        session = store.create_session("s")
        assert session.append("m", str(number)) == 0
        store.delete_session("s")


def test_a_session_that_another_thread_just_made_is_not_taken_for_a_deleted_one(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    store.create_session("other")  # now its slot remembers the log
    runtime = store._runtime
    answers = iter([None])
    stat = runtime.directory.stat

    def late(name: str) -> object:
        return next(answers, stat(name))  # what was there before the session was made

    runtime.directory.stat = late  # type: ignore[method-assign, assignment]
    with pytest.raises(sealog.SessionExistsError):
        store.create_session("s")
    assert session.append("m", "y") == 1


# -- the supervisor


def lose(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the supervisor's next turns raise where no handler of its own is at work."""
    due, left = Timers.due, [times]

    def failing(timers: Timers) -> object:
        if left[0]:
            left[0] -= 1
            raise MemoryError("lost")
        return due(timers)

    monkeypatch.setattr(Timers, "due", failing)


def test_a_lost_supervisor_has_a_successor_that_answers_what_it_was_asked(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = kit.store(max_live_sessions=1)
    a = store.create_session("a")
    lose(monkeypatch, 3)
    assert Task(store.create_session, "b").result().append("m", "x") == 0
    assert Task(a.append, "m", "x").result() == 0
    Task(store.close).result()
    assert any("supervisor was lost" in record.message for record in caplog.records)


def test_a_supervisor_without_a_thread_for_its_successor_goes_on(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kit.store(max_live_sessions=1)
    a = store.create_session("a")

    def never(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Supervisor, "start", never)
    lose(monkeypatch, 2)
    assert Task(store.create_session, "b").result().append("m", "x") == 0
    assert Task(a.append, "m", "x").result() == 0
    Task(store.close).result()


def test_a_handler_that_raises_ends_no_supervisor_and_answers_its_caller(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kit.store()
    session = store.create_session("s")

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Supervision, "check_out", broken)
        with pytest.raises(ZeroDivisionError):
            store.delete_session("s")
    assert session.append("m", "x") == 0
    store.delete_session("s")


def test_live_threads_end_with_the_store(kit: Kit) -> None:
    store = kit.store()
    for number in range(5):
        store.create_session(f"s{number}").append("m", "x")
    descriptors = len(os.listdir("/proc/self/fd"))
    store.close()
    assert len(os.listdir("/proc/self/fd")) < descriptors - 10
