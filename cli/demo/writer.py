"""The process that the demo kills: 16 threads append, attach and seal, and report what was acknowledged.

It reports over a pipe, a line at a time, each after the call returned; a line is written in one piece, since
it is far below PIPE_BUF. Lines: `ready`; `a SESSION POSITION DIGEST` appended; `f SESSION POSITION SHA256`
attached; `s SESSION EVENTS` sealed; `x TEXT` a call failed, which ends the process.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from ...actors.store import open_store
from ...storage.errors import SessionSealedError
from ...storage.events import Event, canonical_content
from .input import read_transcript
from .turns import Record, generated_turns

if TYPE_CHECKING:
    from ...actors.session import Session
    from ...actors.store import Store

_ATTACH_SHARE: Final = 0.005
_ATTACHMENT_BYTES: Final = (1_000, 200_000)
_SEALS: Final = 8
_SEAL_SPAN: Final = (0.3, 0.9)
"""When sessions are sealed, as shares of the time until the kill."""


class SessionPlan(msgspec.Struct, frozen=True):
    """One session of the demo: its id, and the transcript it replays, if any."""

    session_id: str
    transcript: str | None = None


class WriterJob(msgspec.Struct, frozen=True):
    """What the writing process is told."""

    store: str
    sessions: list[SessionPlan]
    threads: int
    seconds: float
    seed: int


def run(job: Any) -> None:
    """Append until killed."""
    _Writer(msgspec.convert(job, WriterJob)).run()


def digest(event: Event) -> str:
    """Return the digest of what an event says."""
    return hashlib.blake2b(canonical_content(event), digest_size=16).hexdigest()


class _Lane:
    """One session while it is written: the next record, and whether it is sealed."""

    def __init__(self, index: int, session: Session, records: list[Record], *, unique: bool) -> None:
        self.index = index
        self.session = session
        self.sealed = False
        self._records = records
        self._unique = unique
        self._taken = 0
        self._lock = threading.Lock()

    def next(self) -> Record:
        with self._lock:
            number = self._taken
            self._taken += 1
        record = self._records[number % len(self._records)]
        if not self._unique:
            return record
        return record._replace(data={**record.data, "number": number})


class _Writer:
    def __init__(self, job: WriterJob) -> None:
        self._job = job
        # The pipe is for acknowledgements only: what anything else prints goes to standard error.
        self._pipe = os.dup(1)
        os.dup2(2, 1)
        self._lanes: list[_Lane] = []
        self._started = threading.Event()
        self._start_s = 0.0

    def run(self) -> None:
        job = self._job
        store = open_store(job.store)
        self._make_lanes(store)
        threads = [
            threading.Thread(target=self._guarded, args=(number,), daemon=True)
            for number in range(job.threads)
        ]
        for thread in threads:
            thread.start()
        self._report("ready")
        self._start_s = time.monotonic()
        self._started.set()
        for thread in threads:
            thread.join()

    def _make_lanes(self, store: Store) -> None:
        turns = generated_turns(self._job.seed)
        transcripts: dict[str, list[Record]] = {}
        for index, plan in enumerate(self._job.sessions):
            labels = {"made-by": "sealog demo"}
            if plan.transcript is None:
                at = index * 5 % len(turns)
                records = turns[at:] + turns[:at]
            else:
                labels["transcript"] = os.path.basename(plan.transcript)
                records = transcripts.get(plan.transcript) or read_transcript(Path(plan.transcript)).records
                transcripts[plan.transcript] = records
            session = store.create_session(plan.session_id, labels=labels)
            self._lanes.append(_Lane(index, session, records, unique=plan.transcript is None))

    def _report(self, line: str) -> None:
        try:
            os.write(self._pipe, f"{line}\n".encode())
        except OSError:  # the demo itself was stopped
            os._exit(1)

    def _guarded(self, number: int) -> None:
        try:
            self._started.wait()
            self._work(number)
        except BaseException as error:  # noqa: BLE001 — the demo is told, whatever it is
            self._fail(error)

    def _fail(self, error: BaseException) -> NoReturn:
        text = f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()
        self._report(f"x {' '.join(text.split())[:400]}")
        os._exit(1)

    def _work(self, number: int) -> None:
        rng = random.Random(self._job.seed + number)  # noqa: S311 — repeatable, not secret
        seal_at_s = self._seal_time(rng) if number < self._seals() else None
        while True:
            lane = rng.choice(self._lanes)
            if seal_at_s is not None and time.monotonic() >= seal_at_s:
                seal_at_s = None
                self._seal(self._lanes[number])
            elif lane.sealed:
                continue
            else:
                try:
                    self._append(lane, rng)
                except SessionSealedError:  # by another thread, meanwhile
                    lane.sealed = True

    def _seals(self) -> int:
        return min(_SEALS, self._job.threads, len(self._lanes) - 1)

    def _seal_time(self, rng: random.Random) -> float:
        return self._start_s + self._job.seconds * rng.uniform(*_SEAL_SPAN)

    def _seal(self, lane: _Lane) -> None:
        sealed = lane.session.seal()
        self._report(f"s {lane.index} {len(sealed)}")
        lane.sealed = True

    def _append(self, lane: _Lane, rng: random.Random) -> None:
        if rng.random() < _ATTACH_SHARE:
            body = rng.randbytes(rng.randrange(*_ATTACHMENT_BYTES))
            position = lane.session.attach(body, file_name="screenshot.png", text="what the agent saw")
            self._report(f"f {lane.index} {position} {hashlib.sha256(body).hexdigest()}")
            return
        record = lane.next()
        position = lane.session.append(record.kind, record.text, record.data)
        self._report(f"a {lane.index} {position} {digest(Event(*record))}")
