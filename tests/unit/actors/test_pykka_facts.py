"""What Pykka does that the runtime is built around, reproduced against the installed Pykka.

If one of these fails after an upgrade, the reason for a part of actors/ has changed: read that part again
before the pin is moved. test_pykka_immunity.py shows that none of it reaches us.
"""

from __future__ import annotations

import logging
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pykka
import pytest

from ...api.kit import SAFETY_S, Gate, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


class Recorder(pykka.ThreadingActor):
    """An actor that raises what it is sent, and notes which hooks were called."""

    def __init__(self, start_error: BaseException | None = None, stop_gate: Gate | None = None) -> None:
        super().__init__()
        self.hooks: list[str] = []
        self.thread: threading.Thread | None = None
        self._start_error = start_error
        self._stop_gate = stop_gate

    def on_start(self) -> None:
        self.thread = threading.current_thread()
        if self._start_error is not None:
            raise self._start_error

    def on_stop(self) -> None:
        self.hooks.append("on_stop")
        if self._stop_gate is not None:
            self._stop_gate.pass_through()

    def on_failure(self, *_: object) -> None:
        self.hooks.append("on_failure")

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, BaseException):
            raise message
        return message


@pytest.fixture(autouse=True)
def _no_actors_left() -> Iterator[None]:
    pykka_logger = logging.getLogger("pykka")
    level = pykka_logger.level
    pykka_logger.setLevel(logging.CRITICAL)
    yield
    pykka_logger.setLevel(level)
    pykka.ActorRegistry.stop_all()
    assert pykka.ActorRegistry.get_all() == []


def started(**arguments: Any) -> tuple[Recorder, pykka.ActorRef[Recorder]]:
    made: list[Recorder] = []

    class Kept(Recorder):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            made.append(self)

    ref = Kept.start(**arguments)
    return made[0], ref


def actor_of(ref: pykka.ActorRef[Any]) -> Recorder:
    """Return the actor behind a ref, which is alive as long as its thread runs or the test holds it."""
    actor = ref._actor_weakref()
    assert isinstance(actor, Recorder)
    return actor


def wait_dead(actor: Recorder) -> None:
    """Wait until the actor's thread has ended: from then on it answers nobody."""
    assert actor.actor_stopped.wait(SAFETY_S)
    assert actor.thread is not None
    actor.thread.join(SAFETY_S)
    assert not actor.thread.is_alive()


def test_an_ask_that_races_with_stop_is_never_answered() -> None:
    gate = Gate()

    class SlowInbox(queue.Queue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            if item.message == "late":
                gate.pass_through()
            super().put(item, block, timeout)

    class SlowToReach(Recorder):
        @staticmethod
        def _create_actor_inbox() -> Any:
            return SlowInbox()

    ref = SlowToReach.start()
    actor = actor_of(ref)
    asking = Task(ref.ask, "late", block=False)
    gate.wait_reached()  # is_alive() was looked at; the message is not in the inbox yet
    ref.stop()
    wait_dead(actor)
    gate.open()
    future = asking.result()
    assert actor.actor_inbox.qsize() == 1
    with pytest.raises(pykka.Timeout):
        future.get(timeout=0)


def test_a_failing_on_start_leaves_a_dead_ref_and_calls_no_hook() -> None:
    actor, ref = started(start_error=OSError("cannot open"))
    wait_dead(actor)
    assert not ref.is_alive()
    assert actor.hooks == []
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("anything")


def test_an_exception_from_a_tell_kills_the_actor() -> None:
    actor, ref = started()
    ref.tell(ValueError("told"))
    wait_dead(actor)
    assert actor.hooks == ["on_failure"]


def test_an_exception_from_an_ask_goes_to_the_asker_and_the_actor_lives() -> None:
    actor, ref = started()
    with pytest.raises(ValueError, match="asked"):
        ref.ask(ValueError("asked"))
    assert ref.ask("still there") == "still there"
    assert actor.hooks == []


def test_a_base_exception_in_one_actor_stops_all_of_them_and_answers_nobody() -> None:
    bystander, _ = started()
    culprit, ref = started()
    future = ref.ask(SystemExit("culprit"), block=False)
    wait_dead(culprit)
    wait_dead(bystander)
    assert bystander.hooks == ["on_stop"]
    with pytest.raises(pykka.Timeout):
        future.get(timeout=0)


def test_an_actor_is_not_alive_before_its_on_stop_has_ended() -> None:
    gate = Gate()
    _, ref = started(stop_gate=gate)
    stopping = Task(ref.stop)
    gate.wait_reached()
    assert not ref.is_alive()
    assert pykka.ActorRegistry.get_by_urn(ref.actor_urn) is None
    assert stopping.running
    gate.open()
    stopping.result()


def test_what_is_told_behind_a_stop_vanishes() -> None:
    gate = Gate()
    actor, ref = started(stop_gate=gate)
    stopping = Task(ref.stop)
    gate.wait_reached()
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("refused")
    actor.actor_inbox.put(pykka._envelope.Envelope(ValueError("put by a teller that looked before")))
    gate.open()
    stopping.result()
    wait_dead(actor)
    assert actor.hooks == ["on_stop"]


def test_the_inbox_has_no_bound_and_can_be_replaced() -> None:
    plain = Recorder._create_actor_inbox()
    assert isinstance(plain, queue.Queue)
    assert plain.maxsize == 0
    own: queue.Queue[Any] = queue.Queue()

    class WithInbox(Recorder):
        @staticmethod
        def _create_actor_inbox() -> Any:
            return own

    ref = WithInbox.start()
    assert ref.actor_inbox is own
    ref.stop()


@pytest.mark.parametrize("daemon", [False, True])
def test_an_actor_has_a_thread_that_is_a_daemon_only_if_told(daemon: bool) -> None:
    class Either(Recorder):
        use_daemon_thread = daemon

    before = threading.active_count()
    ref = Either.start()
    assert ref.ask("running") == "running"
    assert threading.active_count() == before + 1
    assert actor_of(ref).thread.daemon is daemon
    ref.stop()


SCRIPT = """
import atexit, threading
started = threading.Event()
def work():
    started.set()
    threading.main_thread().join()
    print("thread", flush=True)
threading.Thread(target=work, daemon={daemon}).start()
started.wait()
atexit.register(print, "atexit", flush=True)
"""


def test_atexit_runs_after_threads_that_are_no_daemons_were_joined() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(daemon=False)],
        capture_output=True,
        text=True,
        check=True,
        timeout=SAFETY_S,
    )
    assert found.stdout.split() == ["thread", "atexit"]


def test_a_daemon_actor_loses_what_was_told_when_the_interpreter_exits() -> None:
    script = """
import threading, pykka
class Slow(pykka.ThreadingActor):
    use_daemon_thread = True
    def on_receive(self, message):
        started.set()
        never.wait()
    def on_stop(self):
        print("stopped", flush=True)
started, never = threading.Event(), threading.Event()
ref = Slow.start()
for number in range(5):
    ref.tell(number)
started.wait()
print("end", flush=True)
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=SAFETY_S
    )
    assert found.stdout.split() == ["end"]
