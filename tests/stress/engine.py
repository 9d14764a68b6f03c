"""Everything at once: many threads on few sessions, with faults, and a check of all that was said.

Goal: no acknowledged event is lost, repeated or out of a thread's order; nothing that was said to be absent
is there; every request is answered; a session never has two owners; nothing is left behind.
Method: workers append in all ways the API has and note what they were told. Sessions push each other out,
all Pykka actors are stopped, the store is closed and opened; the file system fails, is slow, and raises what
no disk raises; threads cannot be started; callers are interrupted by signals of another process. At the end
the logs are read and compared with the notes. Races are searched for, not power cuts: nothing is synced.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pykka

import sealog
from sealog.actors import supervisor
from sealog.actors.mailbox import Mailbox
from sealog.actors.session_actor import SessionActor

from .faults import StressFileSystem
from .notes import Notes, Result, Settings
from .worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Interrupt(BaseException):
    """What the signal handler raises in the main thread, wherever that is."""


class Foreign(pykka.ThreadingActor):
    """Somebody else's actor, which ends as badly as one can."""

    def on_receive(self, message: Any) -> None:
        raise SystemExit("foreign")


class Run:
    """One run: `run` does it, and returns what it found."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.settings = settings
        self.notes = Notes()
        self._path = path
        self._fs = StressFileSystem(self.notes, settings.seed, 0.0)
        self._main: list[Worker] = []
        self.store = self._open()
        for number in range(settings.sessions):
            self.store.create_session(f"s{number}")
        self._fs.faults = settings.faults

    def _open(self) -> sealog.Store:
        return sealog.open(self._path, max_live_sessions=self.settings.live, file_system=self._fs)

    def run(self) -> Result:
        """Run, stop, check."""
        with self._environment():
            workers = [Worker(self, number) for number in range(self.settings.threads)]
            calls: list[Callable[[], None]] = [worker.loop for worker in workers]
            calls += [self._chaos] if self.settings.chaos else []
            calls += [self._reopen] if self.settings.reopen_s else []
            threads = [threading.Thread(target=self._guard, args=(call,), daemon=True) for call in calls]
            watch = threading.Thread(target=self._watch, args=(workers,), daemon=True)
            for thread in [*threads, watch]:
                thread.start()
            if self.settings.signals:
                self._be_interrupted()
            else:
                self.notes.stop.wait(self.settings.seconds)
            self.notes.stop.set()
            if self.notes.violations:  # whoever hangs would hang for ever
                return Result(self.notes.violations, dict(self.notes.counts), 0, 0)
            for thread in threads:
                thread.join(2 * self.settings.answer_s)
                if thread.is_alive():
                    self.notes.violate(f"{thread.name} hangs")
        self._fs.faults = 0.0
        self._close()
        return self._check()

    def _watch(self, workers: list[Worker]) -> None:
        """Notice who hangs."""
        while not self.notes.stop.wait(0.1):
            late = time.monotonic() - 2 * self.settings.answer_s
            if any(worker.since < late for worker in [*workers, *self._main]):
                self.notes.violate("a worker hangs")

    @contextlib.contextmanager
    def _environment(self) -> Iterator[None]:
        """Set what is of the whole process, and set it back."""
        switch_s, start, slow = sys.getswitchinterval(), SessionActor._start_actor_loop, supervisor.BACK_OFF_S
        most, bound = supervisor.RESTARTS_MAX, Mailbox.__init__.__defaults__
        rnd, notes, faults = random.Random(self.settings.seed), self.notes, self.settings.faults

        def flaky(actor: SessionActor) -> None:
            if rnd.random() < faults * 2:
                pykka.ActorRegistry.unregister(actor.actor_ref)
                notes.counts["thread start fault"] += 1
                raise RuntimeError("can't start new thread")
            start(actor)

        SessionActor._start_actor_loop = flaky  # type: ignore[method-assign]
        supervisor.BACK_OFF_S, supervisor.RESTARTS_MAX = 0.002, 20  # type: ignore[misc]
        if self.settings.switch_s:
            sys.setswitchinterval(self.settings.switch_s)
        if self.settings.messages_max and bound:
            Mailbox.__init__.__defaults__ = (self.settings.messages_max, *bound[1:])
        try:
            yield
        finally:
            SessionActor._start_actor_loop = start  # type: ignore[method-assign]
            supervisor.BACK_OFF_S, supervisor.RESTARTS_MAX = slow, most  # type: ignore[misc]
            sys.setswitchinterval(switch_s)
            Mailbox.__init__.__defaults__ = bound

    def _guard(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 — nothing must escape
            self.notes.violate(f"escaped: {error!r}")

    def _chaos(self) -> None:
        while not self.notes.stop.wait(0.03):
            pykka.ActorRegistry.stop_all(block=False)
            with contextlib.suppress(pykka.ActorDeadError):  # stopped by the one before
                Foreign.start().tell("end")
            self.notes.counts["stop_all"] += 1

    def _reopen(self) -> None:
        while not self.notes.stop.wait(self.settings.reopen_s):
            self._close()
            self.store = self._open()

    def _close(self) -> None:
        store = self.store
        stats = store.stats()
        try:
            store.close(self.settings.answer_s)
        except TimeoutError:
            self.notes.violate(f"the store did not close: {stats}")
            return
        self.notes.counts["passivations"] += stats.passivations
        self.notes.counts["restarts"] += stats.restarts
        self.notes.counts["closes"] += 1

    def _be_interrupted(self) -> None:
        """Be a worker on the main thread, which another process sends signals."""
        rnd, left = random.Random(self.settings.seed), [0]

        def interrupt(*_: object) -> None:
            if left[0] or self.notes.violations:  # a violation: the main thread may hang for ever
                left[0] -= 1
                raise Interrupt

        def swallowed(found: sys.UnraisableHookArgs) -> None:
            left[0] = 0
            self.notes.counts[f"swallowed by {getattr(found.object, '__qualname__', found.object)}"] += 1
            left[0] = 1

        before, hook = signal.signal(signal.SIGALRM, interrupt), sys.unraisablehook
        sys.unraisablehook = swallowed  # __del__ and callbacks of weak references cannot raise
        script = (
            f"import os, random, time\nwhile os.getppid() == {os.getpid()}:\n"
            f"    time.sleep(random.random() * 0.002)\n    os.kill({os.getpid()}, 14)"
        )
        sender = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
        end = time.monotonic() + self.settings.seconds
        number = itertools.count(self.settings.threads)
        while not self.notes.stop.is_set() and time.monotonic() < end:
            worker = Worker(self, next(number))
            self._main[:] = [worker]
            try:
                try:
                    left[0] = rnd.choice((1, 1, 1, 2))
                    worker.loop(end)
                    left[0] = 0
                except Interrupt:
                    self.notes.counts["interrupts"] += 1  # where a second one may come
                    left[0] = 0
            except Interrupt:
                self.notes.counts["interrupts of an interrupt"] += 1
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        sender.kill()
        sender.wait()
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook

    def _check(self) -> Result:
        """Compare the notes with the logs."""
        notes = self.notes
        unanswered = sum(not future.done() for future in notes.futures)
        if unanswered:
            notes.violate(f"{unanswered} futures of {len(notes.futures)} were never answered")
        where: dict[tuple[str, str], int] = {}
        with sealog.open(self._path, file_system=self._fs) as store:
            for session_id in store.session_ids():
                session = store.open_session(session_id, verify="full")
                self._check_events(session, where)
                for attachment in session.attachments():
                    if attachment.bytes != attachment.text.encode():
                        notes.violate(f"attachment {session_id} {attachment.position}")
        acknowledged = sum(said == "at" for _, _, said, _ in notes.said)
        for session_id, text, said, position in notes.said:
            found = where.get((session_id, text))
            if said == "at" and found != position:
                notes.violate(f"lost: {session_id} {text} acknowledged at {position}, found at {found}")
            elif said == "absent" and found is not None:
                notes.violate(f"said to be absent: {session_id} {text} is at {found}")
        self._check_left_over()
        return Result(notes.violations, dict(notes.counts), acknowledged, len(where))

    def _check_events(self, session: sealog.Session, where: dict[tuple[str, str], int]) -> None:
        """Note where events are; each once, and those of a thread in its order."""
        last: dict[str, int] = {}
        for position, event in enumerate(session.events()):
            place = session.session_id, event.text
            if place in where:
                self.notes.violate(f"twice: {place}")
            where[place] = position
            worker, _, count = event.text.partition("-")
            if last.get(worker, 0) >= int(count):
                self.notes.violate(f"out of order: {place} after {last[worker]}")
            last[worker] = int(count)

    def _check_left_over(self) -> None:
        end = time.monotonic() + self.settings.answer_s
        while (left := [t.name for t in threading.enumerate() if t.name.startswith("sealog")]) and (
            time.monotonic() < end
        ):
            time.sleep(0.01)
        if left:
            self.notes.violate(f"threads left: {left}")
        stages = [path.name for path in self._path.glob("*/attachments/.stage-*")]
        if stages:
            self.notes.violate(f"stages left: {stages}")
