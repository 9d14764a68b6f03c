"""Faults and restarts: back-off, intensity, giving up, and trying again."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import sealog
from sealog.actors import supervisor
from sealog.actors.session_actor import SessionActor

from ...api.kit import SAFETY_S, Kit, Task, texts, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the back-offs that were asked for; none of them is waited for."""
    asked: list[float] = []
    add = supervisor.Timers.add

    def at_once(timers: supervisor.Timers, delay_s: float, call: Callable[[], None]) -> None:
        asked.append(delay_s)
        add(timers, 0.0, call)

    monkeypatch.setattr(supervisor.Timers, "add", at_once)
    return asked


def fail_until_given_up(kit: Kit, session: sealog.Session) -> None:
    """Let all writes fail until the session has failed for good."""
    kit.fs.fail("pwrite", "s/log", times=None)
    with pytest.raises(sealog.AppendOutcomeUnknownError):
        session.append("m", "x")
    with pytest.raises(sealog.SessionFailedError) as caught:  # sent during the back-off, it waits for the end
        session.append("m", "x")
    assert caught.value.given_up
    kit.fs.heal()


def test_the_numbers_are_those_of_the_design() -> None:
    assert supervisor.RESTARTS_MAX == 3
    assert supervisor.RESTARTS_WITHIN_S == 60


def test_each_fault_doubles_the_back_off(kit: Kit, delays: list[float]) -> None:
    session = kit.store().create_session("s")
    fail_until_given_up(kit, session)
    assert delays == [supervisor.BACK_OFF_S * 2**fault for fault in range(3)]


def test_a_session_that_fails_too_often_is_given_up_and_keeps_its_cause(
    kit: Kit, delays: list[float]
) -> None:
    store = kit.store()
    session = store.create_session("s")
    session.append("m", "kept")
    fail_until_given_up(kit, session)
    for call in (
        lambda: session.append("m", "x"),
        lambda: session.append_nowait("m", "x"),
        lambda: session.append_many([sealog.Event("m", "x")]),
        lambda: session.append("m", "x", timeout=SAFETY_S),
    ):
        with pytest.raises(sealog.SessionFailedError) as caught:
            call()
        assert caught.value.given_up
        assert isinstance(caught.value.cause, OSError)
        assert caught.value.cause.errno == errno.EIO
        assert "open_session()" in str(caught.value)
    assert store.stats().failed_sessions == 1
    assert store.stats().restarts == 3
    info = store.describe("s")
    assert info.status == "failed"
    assert "Input/output" in str(info.reason)
    assert texts(session) == ["kept"]


def test_a_given_up_session_tries_again_when_opened_and_its_old_handles_work(
    kit: Kit, delays: list[float]
) -> None:
    store = kit.store()
    session = store.create_session("s")
    session.append("m", "kept")
    fail_until_given_up(kit, session)
    again = store.open_session("s")
    assert store.stats().failed_sessions == 0
    assert again.append("m", "new") == 1
    assert session.append("m", "newer") == 2
    assert store.describe("s").status == "ok"
    fail_until_given_up(kit, session)  # counted from zero again
    assert store.stats().failed_sessions == 1


def test_opening_a_given_up_session_on_a_disk_that_still_fails_raises_again(
    kit: Kit, delays: list[float]
) -> None:
    store = kit.store()
    session = store.create_session("s")
    fail_until_given_up(kit, session)
    kit.fs.fail("open-write", "s/log", times=None)
    with pytest.raises(sealog.SessionFailedError) as caught:
        store.open_session("s")
    assert caught.value.given_up
    kit.fs.heal()
    store.open_session("s")
    assert session.append("m", "x") == 0


def test_a_given_up_session_is_free_for_others(kit: Kit, delays: list[float]) -> None:
    """Its lock and its files are given back."""
    store = kit.store()
    session = store.create_session("s")
    fail_until_given_up(kit, session)
    assert store.stats().live_sessions == 0
    store.delete_session("s")
    with pytest.raises(sealog.SessionDeletedError):
        session.append("m", "x")
    assert store.create_session("s").append("m", "x") == 0


def test_the_lock_is_held_without_a_break_across_a_restart(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[Callable[[], None]] = []
    monkeypatch.setattr(supervisor.Timers, "add", lambda self, delay_s, call: later.append(call))
    store = kit.store()
    session = store.create_session("s")
    kit.fs.fail("pwrite", "s/log")
    with pytest.raises(sealog.AppendOutcomeUnknownError):
        session.append("m", "x")
    kit.store().stats()
    locks = kit.fs.calls["open-write", "lock"]
    appending = Task(session.append, "m", "y")
    opening = Task(store.open_session, "s")
    slot = session._slot
    while not later:
        assert appending.running
    assert slot.lock is not None
    assert slot.state == "back-off"
    slot_lock = slot.lock
    session._runtime.supervision.tell(later[0])
    assert appending.result() == 0
    opening.result()
    assert slot.lock is slot_lock
    assert kit.fs.calls["open-write", "lock"] == locks


def test_faults_of_long_ago_do_not_count(
    kit: Kit, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    session = kit.store().create_session("s")
    for number in range(10):
        assert session.append("m", "y") == number
        now[0] += supervisor.RESTARTS_WITHIN_S / 3 + 1
        kit.fs.fail("pwrite", "s/log")
        with pytest.raises(sealog.AppendOutcomeUnknownError):
            session.append("m", "x")
    assert session.append("m", "y") == 10
    assert set(delays) == {supervisor.BACK_OFF_S * 2**fault for fault in range(3)}


def test_an_interrupted_turn_restarts_at_once_and_is_not_counted(kit: Kit, delays: list[float]) -> None:
    store = kit.store()
    session = store.create_session("s")
    for number in range(10):
        until_lending(session)
        kit.fs.interrupt("sync_data", "s/log", KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            session.append("m", "never acknowledged")
        assert session.append("m", f"{number}") == number
    assert set(delays) == {0.0}
    assert store.stats().failed_sessions == 0
    assert texts(session) == [f"{number}" for number in range(10)]


def test_requests_that_wait_while_another_callers_turn_is_interrupted_are_stored(kit: Kit) -> None:
    session = kit.store().create_session("s")
    until_lending(session)
    gate = kit.fs.hold("pwrite", "s/log")
    kit.fs.interrupt("sync_data", "s/log", KeyboardInterrupt())
    borrowing = Task(session.append, "m", "interrupted")
    gate.wait_reached()
    waiting = [session.append_nowait("m", f"{number}") for number in range(5)]
    gate.open()
    assert isinstance(borrowing.wait(), KeyboardInterrupt)
    assert [future.result(SAFETY_S) for future in waiting] == [0, 1, 2, 3, 4]


# -- opening


def test_an_open_that_fails_once_is_tried_again(kit: Kit, delays: list[float]) -> None:
    store = kit.store()
    store.create_session("s").append("m", "x")
    store.close()
    store = kit.store()
    kit.fs.fail("open-write", "s/log")
    session = store.open_session("s")
    assert session.append("m", "y") == 1
    assert store.stats().restarts == 1


def test_appends_to_a_dormant_session_wait_while_its_open_is_tried_again(
    kit: Kit, delays: list[float]
) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    store.create_session("other")
    kit.fs.fail("open-write", "s/log", times=2)
    assert session.append("m", "x") == 0
    assert store.stats().restarts == 2


def test_an_open_that_is_refused_is_not_tried_again(kit: Kit, delays: list[float]) -> None:
    store = kit.store()
    store.create_session("s")
    store.close()
    (kit.path / "s" / "log").write_bytes(b"not a log")
    store = kit.store()
    with pytest.raises(sealog.CorruptionError):
        store.open_session("s")
    assert delays == []
    assert store.stats().live_sessions == 0


def test_what_waits_for_a_refused_open_gets_the_refusal(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    store.create_session("other")
    (kit.path / "s" / "log").write_bytes(b"not a log")
    future = session.append_nowait("m", "x")
    assert isinstance(future.exception(SAFETY_S), sealog.CorruptionError)
    with pytest.raises(sealog.CorruptionError):
        session.append("m", "x", timeout=SAFETY_S)


@pytest.mark.parametrize("call", ["open-write", "pread", "sync_data", "pwrite"])
@pytest.mark.parametrize("name", ["log", "lock"])
def test_an_open_that_fails_anywhere_gives_back_lock_and_files(
    kit: Kit, delays: list[float], call: str, name: str
) -> None:
    store = kit.store()
    store.create_session("s").append("m", "x")
    store.close()
    store = kit.store()
    descriptors = len(os.listdir("/proc/self/fd"))
    kit.fs.fail(call, f"s/{name}", times=None)
    with contextlib.suppress(sealog.SessionFailedError):
        store.open_session("s").close()
    kit.fs.heal()
    store.delete_session("s")
    assert len(os.listdir("/proc/self/fd")) == descriptors


# -- threads


@pytest.mark.parametrize("faults", [1, 3])
def test_a_thread_that_cannot_be_started_is_a_fault_like_others(
    kit: Kit, delays: list[float], monkeypatch: pytest.MonkeyPatch, faults: int
) -> None:
    left = [faults]
    start = threading.Thread.start

    def flaky(thread: threading.Thread) -> None:
        if thread.name == "sealog-s" and left[0]:
            left[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", flaky)
    store = kit.store()
    session = store.create_session("s")
    assert left == [0]
    assert session.append("m", "x") == 0
    assert store.stats().restarts == faults


def test_a_session_whose_threads_never_start_is_given_up(
    kit: Kit, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kit.store()
    store.create_session("s")
    store.close()
    store = kit.store()

    def never(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(SessionActor, "_start_actor_loop", never)
    with pytest.raises(sealog.SessionFailedError) as caught:
        store.open_session("s")
    assert "can't start new thread" in str(caught.value)
    monkeypatch.undo()
    assert store.open_session("s").append("m", "x") == 0
