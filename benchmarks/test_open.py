"""Opening a session: its owner ended well, or was killed. Floor: read the log once and sync it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.conftest import Beside

SESSIONS = 64
"""Of the store that is recovered as a whole."""


@pytest.fixture
def original(tmp_path: Path, beside: Beside, event: sealog.Event) -> Path:
    """Return a store with one long session, closed well: every append was a commit of its own."""
    path = tmp_path / "original"
    with sealog.open(path) as store:
        session = store.create_session("s")
        for _ in range(beside.scaled(30_000, 20)):
            session.append(event.kind, event.text, event.data)
    return path


class Copies:
    """Fresh copies of a store, each changed like a crash would, and the one that is open."""

    def __init__(self, original: Path, change: Callable[[Path], None]) -> None:
        self._original = original
        self._change = change
        self._store: sealog.Store | None = None
        self._path = original.parent / "copy"

    def prepare(self) -> tuple[Path]:
        self.close()
        shutil.copytree(self._original, self._path)
        self._change(self._path)
        for log in self._path.glob("*/log"):
            read_and_sync(log)
        return (self._path,)

    def open(self, path: Path) -> None:
        self._store = sealog.open(path)
        self._store.open_session("s")

    def recover_all(self, path: Path) -> None:
        self._store = sealog.open(path)
        self._store.recover_all()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        shutil.rmtree(self._path, ignore_errors=True)


@pytest.fixture
def copies(original: Path, request: pytest.FixtureRequest) -> Iterator[Copies]:
    made = Copies(original, request.param)
    yield made
    made.close()


def leave(path: Path) -> None:
    """Closed well: the checkpoint covers the whole log."""


def drop_checkpoints(path: Path) -> None:
    for session in path.iterdir():
        shutil.rmtree(session / "checkpoints", ignore_errors=True)


def tear(path: Path) -> None:
    """End each log with the start of a frame, and no checkpoint, as a kill in its first minutes would."""
    drop_checkpoints(path)
    for log in path.glob("*/log"):
        with log.open("r+b") as file:
            file.seek(16)
            sync = file.read(4)
            file.seek(0, os.SEEK_END)
            file.write(sync + b"torn" * 100)


def read_and_sync(log: Path) -> int:
    with log.open("rb") as file:
        while file.read(1 << 20):
            pass
        os.fsync(file.fileno())
    return 1


@pytest.mark.parametrize("copies", [leave, drop_checkpoints, tear], indirect=True)
def test_open(beside: Beside, original: Path, copies: Copies):
    beside(copies.open, lambda: read_and_sync(original / "s" / "log"), prepare=copies.prepare)


@pytest.fixture
def many(tmp_path: Path, beside: Beside, event: sealog.Event) -> Iterator[Copies]:
    with sealog.open(tmp_path / "original") as store:
        for number in range(beside.scaled(SESSIONS, 4)):
            session = store.create_session(f"s-{number}")
            for _ in range(beside.scaled(300, 2)):
                session.append(event.kind, event.text, event.data)
    made = Copies(tmp_path / "original", tear)
    yield made
    made.close()


def test_recover_all_64_torn(beside: Beside, tmp_path: Path, many: Copies):
    def floor() -> int:
        return sum(read_and_sync(log) for log in (tmp_path / "original").glob("*/log"))

    beside(many.recover_all, floor, beside.scaled(SESSIONS, 4), many.prepare)
