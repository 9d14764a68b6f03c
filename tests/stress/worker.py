"""One thread of the stress: it appends in all ways there are, and notes what it was told."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final

import sealog
from sealog import Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from .engine import Run

ABSENT: Final = (
    sealog.MailboxFullError,
    sealog.SessionFailedError,
    sealog.StoreClosedError,
    sealog.StorageFullError,
    sealog.SessionDeletedError,
    sealog.SessionNotFoundError,
    sealog.BlockingCallError,
    CancelledError,
)


class Worker:
    """One thread's appends, each with a text that is its own."""

    def __init__(self, run: Run, number: int) -> None:
        self._run = run
        self._notes = run.notes
        self._number = number
        self._random = random.Random(run.settings.seed * 1000 + number)
        self._count = itertools.count(1)
        self._handles: dict[str, sealog.Session] = {}
        self._store: sealog.Store | None = None
        self.since = time.monotonic()

    def loop(self, end: float = float("inf")) -> None:
        """Append until the run ends; an interrupt leaves at any place."""
        while not self._notes.stop.is_set() and time.monotonic() < end:
            self.since = time.monotonic()
            try:
                self._step()
            except sealog.SessionLockedError as error:
                self._notes.violate(f"two owners: {error}")
            except sealog.SealogError as error:
                self._notes.counts[f"open {type(error).__name__}"] += 1
                time.sleep(0.001)
            except RuntimeError as error:
                # concurrent.futures: an interrupt in Condition.wait leaves its lock released
                if "un-acquired" not in str(error):
                    raise
                self._notes.counts["cpython: cannot release"] += 1

    def _text(self) -> str:
        return f"{self._number}-{next(self._count)}"

    def _session(self) -> tuple[str, sealog.Session]:
        store = self._run.store
        if store is not self._store:
            self._handles.clear()
            self._store = store
        sessions = self._run.settings.sessions
        number = self._number if self._run.settings.private else self._random.randrange(sessions)
        session_id = f"s{number % sessions}"
        session = self._handles.get(session_id)
        if session is None or self._random.random() < 0.02:
            session = self._handles[session_id] = store.open_session(session_id)
        return session_id, session

    def _step(self) -> None:
        session_id, session = self._session()
        what, rnd = self._random.random(), self._random
        if what < 0.5:
            text = self._text()
            self._told(session_id, [text], lambda: [session.append("m", text)])
        elif what < 0.65:
            text, timeout = self._text(), rnd.choice((0.0005, 0.003, 0.05))
            self._told(session_id, [text], lambda: [session.append("m", text, timeout=timeout)])
        elif what < 0.72:
            texts = [self._text() for _ in range(rnd.randrange(2, 6))]
            batch = [Event("m", text) for text in texts]
            self._told(session_id, texts, lambda: session.append_many(batch))
        elif what < 0.76:
            text = self._text()
            self._told(session_id, [text], lambda: [session.attach(text.encode(), text=text)])
        elif what < 0.8:
            self._read(session)
        else:
            self._pipelined(session_id, session)

    def _pipelined(self, session_id: str, session: sealog.Session) -> None:
        pending: list[tuple[str, Future[int]]] = []
        for _ in range(self._random.randrange(1, 20)):
            text = self._text()
            try:
                future = session.append_nowait("m", text)
            except ABSENT:
                self._notes.said.append((session_id, text, "absent", -1))
                continue
            self._notes.futures.append(future)
            pending.append((text, future))
            if self._random.random() < 0.05:
                future.cancel()
            if self._random.random() < 0.05:
                with contextlib.suppress(SystemExit):
                    future.add_done_callback(raise_system_exit)
        for text, future in pending:
            self._told(session_id, [text], lambda future=future: [future.result(self._run.settings.answer_s)])  # type: ignore[misc]

    def _told(self, session_id: str, texts: list[str], call: Callable[[], Any]) -> None:
        """Note what a call said about its texts."""
        said = self._notes.said
        try:
            positions = list(call())
        except sealog.SessionLockedError as error:  # by this very process: an owner too many
            self._notes.violate(f"two owners: {error}")
        except sealog.AppendOutcomeUnknownError:
            said.extend((session_id, text, "unknown", -1) for text in texts)
            self._notes.counts["unknown"] += 1
        except ABSENT as error:
            said.extend((session_id, text, "absent", -1) for text in texts)
            self._notes.counts[f"absent {type(error).__name__}"] += 1
        except TimeoutError:
            self._notes.violate(f"not answered: {session_id} {texts}")
        except (SystemExit, KeyboardInterrupt, MemoryError):  # of the disk, in a turn that was lent
            said.extend((session_id, text, "unknown", -1) for text in texts)
            self._notes.counts["borrowed turn interrupted"] += 1
        except BaseException:
            said.extend((session_id, text, "unknown", -1) for text in texts)
            raise
        else:
            said.extend(
                (session_id, text, "at", position) for text, position in zip(texts, positions, strict=True)
            )

    def _read(self, session: sealog.Session) -> None:
        count = len(session)
        for event in session.tail(5):
            if event.kind not in ("m", "attachment"):
                self._notes.violate(f"read {event!r}")
        if len(session) < count:
            self._notes.violate(f"{session!r} became shorter")


def raise_system_exit(_: object) -> None:
    """Be a bad callback."""
    raise SystemExit("callback")
