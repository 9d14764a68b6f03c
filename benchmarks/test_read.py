"""Reading events back. Floor: the same events as JSON Lines in a plain file, decoded with json."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    import sealog
    from benchmarks.conftest import Beside

TAIL = 20


@pytest.fixture
def session(store: sealog.Store, beside: Beside, event: sealog.Event) -> sealog.Session:
    """Return a long session, every event a frame of its own."""
    made = store.create_session("s")
    for _ in range(beside.scaled(20_000, 30)):
        made.append(event.kind, event.text, event.data)
    return made


@pytest.fixture
def line(event: sealog.Event) -> bytes:
    return json.dumps(msgspec.structs.asdict(event)).encode() + b"\n"


@pytest.fixture
def plain(session: sealog.Session, line: bytes, tmp_path: Path) -> Iterator[BinaryIO]:
    """Return as many events as JSON Lines."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(line * len(session))
    with path.open("rb") as file:
        yield file


def test_read_all(beside: Beside, session: sealog.Session, plain: BinaryIO):
    def floor() -> int:
        plain.seek(0)
        return sum(1 for line in plain if json.loads(line))

    beside(lambda: sum(1 for _ in session.events()), floor, len(session))


def test_tail_20(beside: Beside, session: sealog.Session, plain: BinaryIO, line: bytes):
    times = beside.scaled(200, 2)

    def floor() -> int:
        for _ in range(times):
            plain.seek(-TAIL * len(line), 2)
            [json.loads(found) for found in plain]
        return times

    beside(lambda: [session.tail(TAIL) for _ in range(times)], floor, times)


def test_random(beside: Beside, session: sealog.Session, plain: BinaryIO, line: bytes):
    times = beside.scaled(1_000, 10)
    positions = random.Random(1).choices(range(len(session)), k=times)

    def floor() -> int:
        for position in positions:
            plain.seek(position * len(line))
            json.loads(plain.readline())
        return times

    beside(lambda: [session[position] for position in positions], floor, times)
