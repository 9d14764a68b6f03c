"""Attaching a file of 10 MB and reading it back. Floor: a plain copy with fsync, and a plain read."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import sealog
    from benchmarks.conftest import Beside

SIZE = 10_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "recording.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_attach_10_mb(beside: Beside, store: sealog.Store, source: Path, tmp_path: Path):
    session = store.create_session("s")

    def floor() -> int:
        with source.open("rb") as reading, (tmp_path / "copy").open("wb") as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
            writing.flush()
            os.fsync(writing.fileno())
        return 1

    beside(lambda: session.attach(source), floor)


def test_read_attachment_10_mb(beside: Beside, store: sealog.Store, source: Path):
    session = store.create_session("s")
    position = session.attach(source)
    beside(lambda: session.read_attachment(position).bytes, lambda: bool(source.read_bytes()))
