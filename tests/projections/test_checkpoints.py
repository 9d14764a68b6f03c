"""Checkpoints of projections: shortcuts that are dropped whenever anything disagrees."""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.projections import Projection
from sealog.storage.checkpoints import MAGIC

from .folds import CountByKind, Texts, fill
from .kit import CountingFileSystem

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(store: sealog.Store) -> sealog.Session:
    return store.create_session("s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store" / "s"


def checkpoint(folder: Path) -> Path:
    (path,) = (folder / "checkpoints").glob("projection-*")
    return path


def reopened(store_path: Path, fold: Projection[Any]) -> Any:
    with sealog.open(store_path) as store:
        return store.open_session("s").project(fold)


@pytest.fixture
def checkpointed(store: sealog.Store, session: sealog.Session, folder: Path) -> Path:
    """Return the checkpoint of `Texts` over 3000 events, 10 more in the log, the store closed."""
    fill(session, 3000)
    session.project(Texts())
    fill(session, 10, "y")
    store.close()
    return checkpoint(folder)


EXPECTED = ["5", "6", "7", "8", "9"]


def test_a_checkpoint_saves_the_work(checkpointed: Path, tmp_path: Path):
    texts = Texts()
    assert reopened(tmp_path / "store", texts) == EXPECTED
    assert texts.applied == 10


DAMAGES: dict[str, Any] = {
    "gone": lambda data: None,
    "empty": lambda data: b"",
    "short": lambda data: data[: len(data) // 2],
    "one byte less": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: b"\xa5" * len(data),
    "another version": lambda data: MAGIC + b"\x02" + data[9:],
    "a flipped bit": lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_dropped(checkpointed: Path, tmp_path: Path, damage: str):
    data = DAMAGES[damage](checkpointed.read_bytes())
    if data is None:
        checkpointed.unlink()
    else:
        checkpointed.write_bytes(data)
    texts = Texts()
    assert reopened(tmp_path / "store", texts) == EXPECTED
    assert texts.applied == 3010


def test_every_bit_of_a_checkpoint_counts(checkpointed: Path, tmp_path: Path):
    good = checkpointed.read_bytes()
    with sealog.open(tmp_path / "store", read_only=True) as store:
        for at in range(len(good)):
            checkpointed.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
            handle = store.open_session("s")
            handle._slot._folds.clear()
            assert handle.project(Texts()) == EXPECTED


def test_a_checkpoint_of_another_version_is_dropped(checkpointed: Path, tmp_path: Path):
    newer = Texts(version=2)
    assert reopened(tmp_path / "store", newer) == EXPECTED
    assert newer.applied == 3010
    older = Texts(version=1)
    assert reopened(tmp_path / "store", older) == EXPECTED
    assert older.applied == 3010


def test_a_checkpoint_of_another_log_is_dropped(checkpointed: Path, tmp_path: Path, folder: Path):
    data = checkpointed.read_bytes()
    with sealog.open(tmp_path / "store") as store:
        store.delete_session("s")
        session = store.create_session("s")
        fill(session, 3010, "z")
    (folder / "checkpoints").mkdir(exist_ok=True)
    checkpointed.write_bytes(data)
    texts = Texts()
    assert reopened(tmp_path / "store", texts) == ["3005", "3006", "3007", "3008", "3009"]
    assert texts.applied == 3010


def test_a_checkpoint_whose_state_has_another_type_is_dropped(checkpointed: Path, tmp_path: Path):
    class Other(CountByKind):
        name = Texts.name

    assert reopened(tmp_path / "store", Other()) == {"x": 3000, "y": 10}


def test_checkpoints_are_written_again_as_the_log_grows(
    store: sealog.Store, session: sealog.Session, folder: Path
):
    seen: set[bytes] = set()
    for _ in range(12):
        fill(session, 500)
        session.project(Texts())
        if (folder / "checkpoints").is_dir():
            seen.add(checkpoint(folder).read_bytes())
    assert len(seen) == 6


def test_a_checkpoint_that_cannot_be_written_harms_nothing(session: sealog.Session, folder: Path):
    (folder / "checkpoints").write_text("a file")
    for _ in range(2):
        fill(session, 1500)
        assert session.project(Texts()) == ["1495", "1496", "1497", "1498", "1499"]


def test_what_checkpoints_cost_is_linear_in_the_log(tmp_path: Path):
    class Everything(Projection[list[str]]):
        state_type = list[str]

        def initial(self) -> list[str]:
            return []

        def apply(self, state: list[str], event: sealog.Event, /) -> list[str]:
            state.append(event.text)
            return state

    fs = CountingFileSystem()
    totals: list[int] = []
    with sealog.open(tmp_path / "store", file_system=fs) as store:
        session = store.create_session("s")
        for batches in (50, 50, 100, 200):
            for _ in range(batches):
                session.append_many([sealog.Event("x", "some text of an event " * 5)] * 100)
                session.project(Everything())
            totals.append(sum(fs.written.values()))
            assert totals[-1] < 4 * fs.written["log"]
    assert all(after < 2.5 * before for before, after in pairwise(totals))


def test_a_log_put_back_from_an_older_copy_is_folded_again(tmp_path: Path):
    path, copy = tmp_path / "store", tmp_path / "copy"
    with sealog.open(path) as store:
        fill(store.create_session("s"), 10)
    shutil.copytree(path, copy)
    with sealog.open(path) as store:
        fill(store.open_session("s"), 20, "y")
    with sealog.open(path, read_only=True) as reader:
        texts = Texts()
        handle = reader.open_session("s")
        assert handle.project(texts)[-1] == "19"
        shutil.rmtree(path / "s")
        shutil.copytree(copy / "s", path / "s")
        assert handle.project(texts)[-1] == "9"
        with sealog.open(copy) as other:
            session = other.open_session("s")
            session.append_many([sealog.Event("z", "longer than what stood there " * 9)] * 40)
        shutil.rmtree(path / "s")
        shutil.copytree(copy / "s", path / "s")
        assert handle.project(texts) == ["longer than what stood there " * 9] * 5
        assert handle.project(CountByKind()) == {"x": 10, "z": 40}


def test_a_longer_log_of_the_same_salt_is_not_glued_to_what_was_folded(tmp_path: Path):
    path, copy = tmp_path / "store", tmp_path / "copy"
    with sealog.open(path) as store:
        fill(store.create_session("s"), 10)
    shutil.copytree(path, copy)
    for where, kind in ((path, "y"), (copy, "z")):
        with sealog.open(where) as store:
            session = store.open_session("s")
            for number in range(5 if kind == "y" else 50):
                session.append(kind, str(number))
    with sealog.open(path, read_only=True) as reader:
        handle = reader.open_session("s")
        assert handle.project(CountByKind()) == {"x": 10, "y": 5}
        shutil.rmtree(path / "s")
        shutil.copytree(copy / "s", path / "s")
        assert handle.project(CountByKind()) == {"x": 10, "z": 50}
