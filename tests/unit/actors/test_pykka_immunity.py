"""Nothing that Pykka does to its actors (test_pykka_facts.py) reaches ours: all appends are answered."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pykka
import pytest

import sealog
from sealog.actors.actor import Inbox, MailboxActor
from sealog.actors.session_actor import SessionActor
from sealog.actors.supervisor import Supervisor

from ...api.kit import SAFETY_S, Kit, Task, texts, until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Foreign(pykka.ThreadingActor):
    """Somebody else's actor."""

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, BaseException):
            raise message
        return message


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    pykka_logger = logging.getLogger("pykka")
    level = pykka_logger.level
    pykka_logger.setLevel(logging.CRITICAL)
    yield
    pykka_logger.setLevel(level)
    pykka.ActorRegistry.stop_all()


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def append_until(session: sealog.Session, stop: threading.Event, worker: int) -> list[int]:
    """Append until told to stop; return the positions."""
    positions = []
    while not stop.is_set():
        positions.append(session.append("m", f"{worker}-{len(positions)}"))
        futures = [session.append_nowait("m", f"{worker}-{len(positions) + at}") for at in range(3)]
        positions.extend(future.result(SAFETY_S) for future in futures)
    return positions


def test_our_actors_cannot_be_found_by_others(kit: Kit) -> None:
    store = kit.store()
    store.create_session("s").append("m", "x")
    assert threads("sealog-s")
    assert pykka.ActorRegistry.get_all() == []
    assert pykka.ActorRegistry.get_by_class(SessionActor) == []
    assert pykka.ActorRegistry.get_by_class(Supervisor) == []


@pytest.mark.parametrize("chaos", ["stop_all", "system-exit"])
def test_appends_go_on_while_others_stop_all_actors(kit: Kit, chaos: str) -> None:
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}") for number in range(3)]
    stop = threading.Event()
    workers = [
        Task(append_until, session, stop, worker) for worker, session in enumerate([*sessions, *sessions])
    ]
    for _ in range(30):
        foreign = Foreign.start()
        if chaos == "stop_all":
            pykka.ActorRegistry.stop_all()
        else:
            foreign.tell(SystemExit("foreign"))
        assert foreign.actor_stopped.wait(SAFETY_S)
    stop.set()
    acknowledged = [task.result() for task in workers]
    for number, session in enumerate(sessions):
        found = texts(session)
        for worker in (number, number + 3):
            assert [found[position] for position in acknowledged[worker]] == [
                f"{worker}-{at}" for at in range(len(acknowledged[worker]))
            ]
        assert len(found) == len(acknowledged[number]) + len(acknowledged[number + 3])
    assert store.stats().restarts == 0


def test_what_strangers_put_into_our_inbox_is_answered_and_dropped(kit: Kit) -> None:
    session = kit.store().create_session("s")
    actor = SessionActor(session._slot, lambda _: None, lambda _: None)
    future = actor.actor_ref.ask("stranger", block=False)
    assert future.get(timeout=SAFETY_S) is None
    actor.actor_ref.tell("stranger")
    actor.actor_ref.stop(block=False)
    assert actor.inbox.empty()
    assert session.append("m", "x") == 0


def test_our_inbox_replaces_pykkas_through_the_hook_that_the_pin_guards(kit: Kit) -> None:
    session = kit.store().create_session("s")
    actor = SessionActor(session._slot, lambda _: None, lambda _: None)
    assert isinstance(actor.actor_inbox, Inbox)
    assert actor.actor_inbox is actor.inbox


def test_a_failing_start_of_ours_calls_its_last_act(kit: Kit) -> None:
    """Pykka would only log it, and leave lock and files to nobody."""
    ended: list[SessionActor] = []
    told = threading.Event()

    def on_ended(actor: SessionActor) -> None:
        ended.append(actor)
        told.set()

    store = kit.store()
    slot = store.create_session("s")._slot
    store.close()
    kit.fs.fail("open-write", "s/log")
    SessionActor.start(slot, lambda _: None, on_ended)
    assert told.wait(SAFETY_S)
    assert isinstance(ended[0].cause, OSError)
    slot.release_lock()


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), GeneratorExit(), MemoryError()])
def test_an_exception_in_one_of_our_actors_stops_no_other(kit: Kit, error: BaseException) -> None:
    foreign = Foreign.start()
    store = kit.store()
    session, other = store.create_session("s"), store.create_session("other")
    gate = kit.fs.hold("sync_data", "s/log")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    future = session.append_nowait("m", "second")
    kit.fs.interrupt("sync_data", "s/log", error)
    gate.open()
    first.result()
    assert isinstance(future.exception(SAFETY_S), sealog.AppendOutcomeUnknownError)
    assert other.append("m", "x") == 0
    assert session.append("m", "x") == 1
    assert foreign.ask("still there") == "still there"
    foreign.stop()


def test_all_our_threads_are_daemons_with_names(kit: Kit) -> None:
    store = kit.store()
    store.create_session("s").append("m", "x")
    ours = threads("sealog")
    assert sorted(thread.name for thread in ours) == ["sealog-s", "sealog-supervisor"]
    assert all(thread.daemon for thread in ours)
    assert MailboxActor.use_daemon_thread
    store.close()
    until(lambda: not threads("sealog"), "the end of all threads")
