"""Sealing: final, proven, idempotent."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sealog

from .kit import SAFETY_S, Kit, Task, texts

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    session = kit.store().create_session("s", "then", {"a": "b"})
    session.append("m", "zero")
    session.attach(b"bytes", file_name="a.bin")
    return session


def test_a_sealed_session_is_read_as_before(session: sealog.Session) -> None:
    assert not session.is_sealed
    sealed = session.seal()
    assert session.is_sealed
    assert isinstance(sealed, sealog.SealedSession)
    assert sealed.session_id == "s"
    assert sealed.header == session.header
    assert len(sealed) == len(session) == 2
    assert texts(sealed) == texts(session) == ["zero", ""]
    assert [event.text for event in sealed.events(1)] == [""]
    assert [attachment.bytes for attachment in sealed.attachments()] == [b"bytes"]


def test_the_receipt_proves_the_bytes_before_the_seal(kit: Kit, session: sealog.Session) -> None:
    before = (kit.path / "s" / "log").read_bytes()
    receipt = session.seal().receipt
    log = (kit.path / "s" / "log").read_bytes()
    assert receipt.events == 2
    sealed_bytes = before.rstrip(b"\0")  # the log may be allocated ahead
    assert log.startswith(sealed_bytes)
    assert hashlib.sha256(log[: len(sealed_bytes)]).hexdigest() == receipt.sha256
    assert len(log) > len(sealed_bytes)


def test_sealing_twice_is_sealing_once(kit: Kit, session: sealog.Session) -> None:
    receipt = session.seal().receipt
    before = kit.snapshot()
    assert session.seal().receipt == receipt
    assert kit.store().open_session("s").seal().receipt == receipt
    assert kit.snapshot() == before
    kit._stores[0].close()
    for store in kit._stores:
        store.close()
    again = kit.store().open_session("s")
    assert again.is_sealed
    assert again.seal().receipt == receipt
    assert len(again) == 2


def test_an_empty_session_can_be_sealed(kit: Kit) -> None:
    session = kit.store().create_session("s")
    assert session.seal().receipt.events == 0
    assert session.is_sealed


@pytest.mark.parametrize("threads", [8])
def test_many_that_seal_get_one_receipt(session: sealog.Session, threads: int) -> None:
    receipts = [task.result().receipt for task in [Task(session.seal) for _ in range(threads)]]
    assert len(set(map(repr, receipts))) == 1


def damage_remove(path: Path) -> None:
    path.unlink()


def damage_change(path: Path) -> None:
    path.write_bytes(b"bytes"[::-1])


def damage_cut(path: Path) -> None:
    path.write_bytes(b"byte")


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (damage_remove, sealog.AttachmentMissingError),
        (damage_change, sealog.AttachmentCorruptError),
        (damage_cut, sealog.AttachmentCorruptError),
    ],
)
def test_a_session_with_a_damaged_attachment_is_not_sealed(
    kit: Kit, session: sealog.Session, damage: Callable[[Path], None], error: type[sealog.SealogError]
) -> None:
    path = kit.path / "s" / "attachments" / "1"
    damage(path)
    with pytest.raises(error) as caught:
        session.seal()
    assert caught.value.position == 1  # type: ignore[attr-defined]
    assert str(path) in str(caught.value)
    assert not session.is_sealed
    assert session.append("m", "still open") == 2
    path.write_bytes(b"bytes")
    assert session.seal().receipt.events == 3


def test_appends_that_race_with_a_seal_are_before_it_or_refused(kit: Kit) -> None:
    session = kit.store().create_session("s")
    started = threading.Semaphore(0)

    def append(worker: int) -> list[int]:
        positions: list[int] = []
        while True:
            try:
                if worker % 2:
                    positions.append(session.append("m", "x"))
                else:
                    positions.append(session.attach(b"x"))
            except sealog.SessionSealedError:
                return positions
            started.release()

    tasks = [Task(append, worker) for worker in range(4)]
    for _ in range(20):
        assert started.acquire(timeout=SAFETY_S)
    receipt = session.seal().receipt
    positions = sorted(position for task in tasks for position in task.result())
    assert positions == list(range(receipt.events))
    assert len(session) == receipt.events
    assert all(attachment.bytes == b"x" for attachment in session.attachments())
    assert kit.store().verify("s").ok


def test_an_attachment_that_comes_while_others_are_verified_is_verified_too(
    kit: Kit, session: sealog.Session
) -> None:
    gate = kit.fs.hold("open", "attachments/1")
    sealing = Task(session.seal)
    gate.wait_reached()
    path = Path(session.read_attachment(session.attach(b"later")).path)
    path.unlink()
    gate.open()
    error = sealing.wait()
    assert isinstance(error, sealog.AttachmentMissingError)
    assert error.position == 2
    assert not session.is_sealed
    path.write_bytes(b"later")
    assert session.seal().receipt.events == 3


def test_a_full_disk_does_not_seal_and_says_so(kit: Kit, session: sealog.Session) -> None:
    kit.fs.fail("pwrite", "s/log", 28, written=10)
    with pytest.raises(sealog.StorageFullError):
        session.seal()
    assert not session.is_sealed
    assert session.append("m", "x") == 2
    assert session.seal().receipt.events == 3


def test_a_seal_that_was_not_confirmed_can_be_repeated(kit: Kit, session: sealog.Session) -> None:
    kit.fs.fail("sync_data", "s/log")
    with pytest.raises(sealog.AppendOutcomeUnknownError, match="seal"):
        session.seal()
    assert session.seal().receipt.events == 2
    assert session.is_sealed
    assert kit.store().verify("s").ok


def test_a_sealed_view_survives_sleep_and_close_of_its_handle(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    sealed = session.seal()
    session.close()
    store.create_session("other").append("m", "x")
    assert texts(sealed) == ["x"]
    assert sealed.receipt.events == 1
    store.close()
    for read in (lambda: sealed.receipt, lambda: sealed.header, lambda: list(sealed.events())):
        with pytest.raises(sealog.StoreClosedError):
            read()
