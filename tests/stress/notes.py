"""What a run of the stress is told, and what it notes."""

from __future__ import annotations

import collections
import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from concurrent.futures import Future


class Settings(msgspec.Struct):
    """What a run does.

    Args:
        seconds: how long.
        seed: of all random choices; threads add their own order.
        threads: that append.
        sessions: that they share.
        live: how many sessions may have an actor.
        faults: part of the writes that fail.
        signals: interrupt the main thread, which then appends too.
        chaos: stop all Pykka actors of the process again and again.
        reopen_s: time between two closings of the store; 0 for never.
        switch_s: of `sys.setswitchinterval`; 0 leaves it alone.
        messages_max: bound of the mailboxes; 0 leaves it alone.
        answer_s: an answer that takes longer will never come.
        private: each thread has a session of its own, so that nobody else wakes it.
    """

    seconds: float = 10.0
    seed: int = 1
    threads: int = 10
    sessions: int = 8
    live: int = 3
    faults: float = 0.004
    signals: bool = False
    chaos: bool = True
    reopen_s: float = 2.0
    switch_s: float = 0.0
    messages_max: int = 0
    answer_s: float = 30.0
    private: bool = False


class Result(msgspec.Struct):
    """What a run found. `violations` must be empty; `counts` tell what was exercised."""

    violations: list[str]
    counts: dict[str, int]
    acknowledged: int
    stored: int


class Flag:
    """As threading.Event, without its lock, which an interrupt in the main thread can leave locked."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.01))
        return self._is_set


class Notes:
    """What a run is told and what it saw, from all threads."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: list[str] = []
        self.said: list[tuple[str, str, str, int]] = []  # session, text, "at"/"absent"/"unknown", position
        self.futures: list[Future[Any]] = []
        self.stop = Flag()

    def violate(self, what: str) -> None:
        """Note what must not be, and end the run."""
        self.violations.append(what)
        self.stop.set()
