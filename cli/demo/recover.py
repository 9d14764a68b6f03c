"""The new process of the demo: it recovers all sessions, and reports each as a line of JSON."""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from ...actors.store import open_store
from ...storage.recovery import RecoveryReport


class RecoverJob(msgspec.Struct, frozen=True):
    """What the recovering process is told."""

    store: str


class RecoverLine(msgspec.Struct, frozen=True):
    """One line of its report; the last has no session but the time it took."""

    done: int
    total: int
    report: RecoveryReport | None = None
    seconds: float = 0.0


def run(job: Any) -> None:
    """Recover the store."""
    pipe = os.dup(1)
    os.dup2(2, 1)

    def tell(line: RecoverLine) -> None:
        text = msgspec.json.encode(line) + b"\n"
        while text:
            text = text[os.write(pipe, text) :]

    started = time.perf_counter()
    with open_store(msgspec.convert(job, RecoverJob).store, create=False) as store:
        reports = store.recover_all(lambda done, total, report: tell(RecoverLine(done, total, report)))
        seconds = time.perf_counter() - started
    tell(RecoverLine(len(reports), len(reports), seconds=seconds))
